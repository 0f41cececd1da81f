#include "report/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

namespace gpuutil {
namespace {

template <typename T>
std::string written(const T& what) {
  JsonWriter json;
  json.value(what);
  return json.text();
}

TEST_CASE("objects and arrays keep the order of their keys") {
  JsonWriter json;
  json.begin_object().field("b", 1).field("a", "x").key("list").begin_array();
  json.value(true)
      .null()
      .begin_object()
      .end_object()
      .value(0.5)
      .end_array()
      .field("z", false)
      .end_object();
  CHECK(json.text() == R"({"b":1,"a":"x","list":[true,null,{},0.5],"z":false})");
  CHECK(json_is_valid(json.text()));
}

TEST_CASE("numbers read back as the same number, and what is not finite is null") {
  CHECK(written(std::numeric_limits<int64_t>::max()) == "9223372036854775807");
  CHECK(written(std::numeric_limits<int64_t>::min()) == "-9223372036854775808");
  CHECK(written(0.1) == "0.1");
  CHECK(written(1.0 / 3) == "0.3333333333333333");
  CHECK(written(std::nan("")) == "null");
  CHECK(written(std::numeric_limits<double>::infinity()) == "null");
  CHECK(written(-std::numeric_limits<double>::infinity()) == "null");
  CHECK(written(std::optional<double>()) == "null");
  CHECK(written(std::optional<double>(2.5)) == "2.5");
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random();
    double number = 0;
    static_assert(sizeof(bits) == sizeof(number));
    std::memcpy(&number, &bits, sizeof(number));
    if (!std::isfinite(number)) continue;
    const std::string text = written(number);
    REQUIRE(json_is_valid(text));
    REQUIRE(std::strtod(text.c_str(), nullptr) == number);
  }
}

TEST_CASE("strings are escaped and bytes that are not UTF-8 are replaced") {
  CHECK(written("a\"b\\c\n\t\r") == R"("a\"b\\c\n\t\r")");
  CHECK(written(std::string_view("\0\x1f", 2)) == R"("\u0000\u001f")");
  CHECK(written("\xc3\xa9\xf0\x9f\x98\x80") == "\"\xc3\xa9\xf0\x9f\x98\x80\"");
  for (const std::string_view broken :
       {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    std::string bytes = "<";
    bytes.append(broken).append(">");
    const std::string text = written(bytes);
    CHECK(text.find("\xef\xbf\xbd") != std::string::npos);
    CHECK(json_is_valid(text));
  }
}

TEST_CASE("any bytes at all make valid JSON") {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 40, ' ');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    JsonWriter json;
    json.begin_object().field(bytes, bytes).end_object();
    REQUIRE(json_is_valid(json.text()));
  }
}

TEST_CASE("JSON made elsewhere is taken whole or not at all") {
  JsonWriter json;
  json.begin_object().key("a").raw("[1, 2]").key("b").raw("[1, 2").end_object();
  CHECK(json.text() == R"({"a":[1, 2],"b":null})");
  JsonWriter members;
  members.begin_object().field("own", 1).raw_members(R"( {"x": 2, "y": {}} )").raw_members("{ }");
  members.raw_members("[3]").raw_members("{broken").field("last", 4).end_object();
  CHECK(members.text() == R"({"own":1,"x": 2, "y": {},"last":4})");
  CHECK(json_is_valid(members.text()));
}

TEST_CASE("the checker takes JSON and refuses what only looks like it") {
  for (const char* good :
       {"null", " [ ] ", "{\"a\":{\"b\":[1,-0.5e+3,true,\"\\u00e9\"]}}", "\"\"", "0", "-1"}) {
    CAPTURE(good);
    CHECK(json_is_valid(good));
  }
  for (const char* bad : {"",   "nul", "[1,]",    "{\"a\":}", "{a:1}", "01",        "1.",
                          "+1", "NaN", "\"\\x\"", "\"\n\"",   "[1] 2", "{\"a\" 1}", "'a'",
                          "[",  "\"",  "\xff",    "1e",       "--1",   "\"\\u12\""}) {
    CAPTURE(bad);
    CHECK_FALSE(json_is_valid(bad));
  }
  CHECK_FALSE(json_is_valid(std::string(100000, '[')));  // no stack is used up
}

}  // namespace
}  // namespace gpuutil
