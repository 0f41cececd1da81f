#include "base/intern.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

namespace gpuutil {
namespace {

TEST_CASE("the same name always has the same id, another name another one") {
  Interner interner;
  const uint32_t forward = interner.intern("forward");
  const uint32_t backward = interner.intern("backward");
  CHECK(forward != backward);
  CHECK(interner.intern(std::string("forward")) == forward);
  CHECK(interner.name(forward) == "forward");
  CHECK(interner.name(backward) == "backward");
}

TEST_CASE("id 0 is the empty name and an id never given out has none") {
  Interner interner;
  CHECK(interner.intern("") == Interner::kEmpty);
  CHECK(interner.name(0).empty());
  CHECK(interner.name(12345).empty());
  CHECK(interner.intern("(other)") == Interner::kOther);
}

TEST_CASE("names past the limit share one id, and those before it keep theirs") {
  Interner interner(2);
  const uint32_t a = interner.intern("a");
  const uint32_t b = interner.intern("b");
  CHECK(interner.intern("c") == Interner::kOther);
  CHECK(interner.intern("d") == Interner::kOther);
  CHECK(interner.name(Interner::kOther) == "(other)");
  CHECK(interner.overflows() == 2);
  CHECK(interner.size() == 4);
  CHECK(interner.intern("a") == a);
  CHECK(interner.intern("b") == b);
  CHECK(interner.overflows() == 2);
}

TEST_CASE("a name stays where it is while others are added") {
  Interner interner;
  const std::string_view first = interner.name(interner.intern("first"));
  const char* const place = first.data();
  for (int i = 0; i < 1000; ++i) interner.intern("name " + std::to_string(i));
  CHECK(interner.name(interner.intern("first")).data() == place);
  CHECK(first == "first");
}

TEST_CASE("threads that intern the same names agree on their ids") {
  Interner interner;
  std::vector<std::vector<uint32_t>> ids(2);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) mine.push_back(interner.intern(std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(ids[0] == ids[1]);
  CHECK(interner.size() == 502);
}

}  // namespace
}  // namespace gpuutil
