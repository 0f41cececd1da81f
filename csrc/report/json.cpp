#include "report/json.h"

#include <array>
#include <charconv>
#include <cmath>

namespace gpuutil {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// Length of the UTF-8 character that starts here; 0 where there is none (RFC 3629: no surrogates,
// no overlong forms, nothing above U+10FFFF).
size_t utf8_length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  }
  if (length == 0 || text.size() < length) return 0;
  if (at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// A recursive descent over RFC 8259. Strings may hold any byte from 0x20 up that is UTF-8.
class Checker {
 public:
  explicit Checker(std::string_view text) : rest_(text) {}
  bool whole() { return value(0) && (space(), rest_.empty()); }

 private:
  static constexpr int kDeepest = 256;

  void space() {
    while (!rest_.empty() &&
           std::string_view(" \t\r\n").find(rest_.front()) != std::string_view::npos) {
      rest_.remove_prefix(1);
    }
  }
  bool take(char c) {
    space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    if (!rest_.starts_with(w)) return false;
    rest_.remove_prefix(w.size());
    return true;
  }
  bool digits() {
    size_t n = 0;
    while (n < rest_.size() && rest_[n] >= '0' && rest_[n] <= '9') ++n;
    rest_.remove_prefix(n);
    return n > 0;
  }
  bool number() {
    word("-");
    if (!word("0") && !digits()) return false;
    if (word(".") && !digits()) return false;
    if (word("e") || word("E")) {
      if (!word("+")) word("-");
      return digits();
    }
    return true;
  }
  bool string() {
    if (!take('"')) return false;
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '"') {
        rest_.remove_prefix(1);
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\') {
        rest_.remove_prefix(1);
        if (rest_.empty()) return false;
        const char kind = rest_.front();
        rest_.remove_prefix(1);
        if (kind == 'u') {
          if (rest_.size() < 4) return false;
          if (rest_.substr(0, 4).find_first_not_of("0123456789abcdefABCDEF") !=
              std::string_view::npos)
            return false;
          rest_.remove_prefix(4);
        } else if (std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
          return false;
        }
        continue;
      }
      const size_t length = utf8_length(rest_);
      if (length == 0) return false;
      rest_.remove_prefix(length);
    }
    return false;
  }
  bool value(int depth) {
    if (depth > kDeepest) return false;
    space();
    if (rest_.empty()) return false;
    switch (rest_.front()) {
      case '{':
        take('{');
        if (take('}')) return true;
        do {
          if (!string() || !take(':') || !value(depth + 1)) return false;
        } while (take(','));
        return take('}');
      case '[':
        take('[');
        if (take(']')) return true;
        do {
          if (!value(depth + 1)) return false;
        } while (take(','));
        return take(']');
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  std::string_view rest_;
};

}  // namespace

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
  } else if (!filled_.empty()) {
    if (filled_.back()) text_ += ',';
    filled_.back() = true;
  }
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  filled_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  if (!filled_.empty()) filled_.pop_back();
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                 number);  // shortest that reads back
  text_.append(digits.data(), end.ptr);
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  separate();
  text_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  text_ += "null";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  if (!json_is_valid(json)) return null();
  separate();
  text_ += json;
  return *this;
}

JsonWriter& JsonWriter::raw_members(std::string_view json) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = json.find_first_not_of(kSpace);
  if (first == std::string_view::npos || json[first] != '{' || !json_is_valid(json)) return *this;
  const size_t last = json.rfind('}');
  const std::string_view inside = json.substr(first + 1, last - first - 1);
  if (inside.find_first_not_of(kSpace) == std::string_view::npos) return *this;
  separate();
  text_ += inside;
  return *this;
}

void JsonWriter::quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text_ += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) {
      text_ += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    const char c = text.front();
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (c == '\t') {
      text_ += "\\t";
    } else if (c == '\r') {
      text_ += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      text_ += "\\u00";
      text_ += kHex[static_cast<unsigned char>(c) >> 4];
      text_ += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  text_ += '"';
}

bool json_is_valid(std::string_view text) { return Checker(text).whole(); }

}  // namespace gpuutil
