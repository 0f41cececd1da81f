// Cutting the small text files of procfs and cgroups into words and numbers: no copies, no
// allocation, no locale. Every function consumes from the front of the view that it is given.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuutil {

inline std::string_view next_until(std::string_view& text, char end) {
  const size_t length = text.find(end);
  const std::string_view part = text.substr(0, length);
  text.remove_prefix(length == text.npos ? text.size() : length + 1);
  return part;
}

inline std::string_view next_line(std::string_view& text) { return next_until(text, '\n'); }

inline std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// Empty at the end of the text.
inline std::string_view next_word(std::string_view& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) {
    text = {};
    return {};
  }
  text.remove_prefix(first);
  const size_t length = text.find_first_of(" \t\r\n");
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(word.size());
  return word;
}

// The whole word, or nothing.
template <class Int = int64_t>
std::optional<Int> to_int(std::string_view word) {
  Int number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (word.empty() || error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return number;
}

inline std::optional<int64_t> next_int(std::string_view& text) { return to_int(next_word(text)); }

// The rest of the line that starts with `key` followed by a colon, a space or a tab.
inline std::optional<std::string_view> line_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (line.size() <= key.size() || line.substr(0, key.size()) != key) continue;
    const char after = line[key.size()];
    if (after == ':' || after == ' ' || after == '\t') return trimmed(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

// The first number of that line.
inline std::optional<int64_t> number_of(std::string_view text, std::string_view key) {
  std::optional<std::string_view> line = line_of(text, key);
  return line ? next_int(*line) : std::nullopt;
}

}  // namespace gpuutil
