#include "report/text.h"

#include <algorithm>

namespace gpuutil {

std::string plain(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += ' ';
    } else if ((byte & 0xc0) != 0x80) {  // the first byte of a character; the others follow it
      out += '?';
    }
  }
  return out;
}

std::string fit(std::string_view text, size_t columns) {
  std::string line = plain(text);
  if (line.size() <= columns) return line;
  if (columns <= 3) return line.substr(0, columns);
  line.resize(columns - 3);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line + "...";
}

std::string fit_with_tail(std::string_view head, std::string_view tail, size_t columns) {
  const std::string end = fit(tail, columns);
  return fit(head, columns - end.size()) + end;
}

std::vector<std::string> wrap(std::string_view text, size_t columns, size_t lines, size_t indent) {
  std::vector<std::string> out;
  std::string rest = plain(text);
  while (!rest.empty() && out.size() < lines) {
    const std::string lead(out.empty() ? 0 : std::min(indent, columns / 2), ' ');
    const size_t room = columns - lead.size();
    if (rest.size() <= room || out.size() + 1 == lines) {
      out.push_back(lead + fit(rest, room));
      break;
    }
    size_t cut = rest.rfind(' ', room);
    if (cut == std::string::npos || cut == 0) cut = room;
    out.push_back(lead + rest.substr(0, cut));
    rest.erase(0, std::min(rest.size(), rest[cut] == ' ' ? cut + 1 : cut));
  }
  return out;
}

}  // namespace gpuutil
