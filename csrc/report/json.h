// Writes JSON text: keys in the order in which they are given, no white space, numbers that read
// back as the same number, null for what is not finite or not there. Strings are UTF-8; bytes that
// are not become U+FFFD. One writer makes one value. Not thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuutil {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool flag);
  template <std::signed_integral Int>
  JsonWriter& value(Int number) {
    return integer(static_cast<int64_t>(number));
  }
  JsonWriter& value(uint32_t number) { return integer(static_cast<int64_t>(number)); }
  JsonWriter& null();
  // A value that is JSON already; null where it is not.
  JsonWriter& raw(std::string_view json);
  // The members of an object that is JSON already, into the object that is open here; nothing where
  // it is no object. Its keys must not repeat ours.
  JsonWriter& raw_members(std::string_view json);

  template <typename T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  template <typename T>
  JsonWriter& field(std::string_view name, const T& what) {
    return key(name).value(what);
  }

  // The text. Only whole once every begin has its end.
  const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& integer(int64_t number);
  void separate();
  void quote(std::string_view text);

  std::string text_;
  std::vector<bool> filled_;  // a level of nesting: does it hold a value already
  bool after_key_ = false;
};

// Whether the text is one JSON value (RFC 8259), nested at most 256 deep.
bool json_is_valid(std::string_view text);

}  // namespace gpuutil
