#include "report/text.h"

#include <doctest/doctest.h>

namespace gpuutil {
namespace {

TEST_CASE(
    "names cannot break a line: control characters become spaces, other characters one question "
    "mark") {
  CHECK(plain("a\tb\nc\x1b[31m") == "a b c [31m");
  CHECK(plain("Bj\xc3\xb6rn \xe6\x97\xa5") == "Bj?rn ?");
}

TEST_CASE("what is too long ends in three dots at the column") {
  CHECK(fit("short", 10) == "short");
  CHECK(fit("exactly ten", 11) == "exactly ten");
  CHECK(fit("one word too many", 10) == "one wor...");
  CHECK(fit("one two three", 10) == "one two...");
  CHECK(fit("abcdef", 2) == "ab");
}

TEST_CASE("the tail survives a long head") {
  CHECK(fit_with_tail("a long explanation", "; undo: x", 20) == "a long e...; undo: x");
  CHECK(fit_with_tail("head", "tail", 20) == "headtail");
}

TEST_CASE("lines break at spaces and the last one is cut") {
  CHECK(wrap("one two three four", 9, 9, 2) ==
        std::vector<std::string>{"one two", "  three", "  four"});
  CHECK(wrap("one two three four", 9, 2, 2) == std::vector<std::string>{"one two", "  thre..."});
  CHECK(wrap("abcdefghijkl", 5, 9, 1) == std::vector<std::string>{"abcde", " fghi", " jkl"});
  CHECK(wrap("", 9, 9, 2).empty());
}

}  // namespace
}  // namespace gpuutil
