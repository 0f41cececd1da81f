#include "collect/file_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fixture.h"

using namespace gpuutil;

TEST_CASE("a file is read whole, below the root and not beside it") {
  FixtureTree tree;
  tree.write("proc/loadavg", "0.1 0.2 0.3\n");
  FileReader reader(tree.root() + "/");
  const auto text = reader.read("/proc/loadavg");
  REQUIRE(text);
  CHECK(*text == "0.1 0.2 0.3\n");
  CHECK(text.state == ReadState::ok);
  CHECK_FALSE(reader.read("/proc/stat"));
}

TEST_CASE(
    "a file larger than the buffer is read whole, and the buffer serves small files after it") {
  FixtureTree tree;
  const std::string large(100'000, 'x');
  tree.write("large", large);
  tree.write("small", "s");
  tree.write("empty", "");
  FileReader reader(tree.root());
  CHECK(*reader.read("/large") == large);
  CHECK(*reader.read("/small") == "s");
  CHECK(*reader.read("/empty") == "");
}

TEST_CASE(
    "a file that is not there is absent, one that cannot be read is unreadable, and the reason "
    "names it") {
  FixtureTree tree;
  tree.write("folder/file", "");
  FileReader reader(tree.root());
  const auto absent = reader.read("/proc/pressure/cpu");
  CHECK(absent.state == ReadState::absent);
  CHECK(absent.reason == "/proc/pressure/cpu: No such file or directory");
  CHECK(reader.read("/folder/file/below").state == ReadState::absent);
  const auto folder = reader.read("/folder");
  CHECK(folder.state == ReadState::unreadable);
  CHECK(folder.reason == "/folder: Is a directory");
}

TEST_CASE("a file without end is given up instead of filling the memory") {
  FileReader reader("/");
  const auto text = reader.read("/dev/zero");
  CHECK(text.state == ReadState::malformed);
  CHECK_FALSE(text);
}

TEST_CASE("numbers in a folder come sorted and up to the limit; names are left out") {
  FixtureTree tree;
  for (const char* name : {"task/30", "task/4", "task/100", "task/self", "task/7x"}) {
    tree.write(std::string(name) + "/stat", "");
  }
  FileReader reader(tree.root());
  std::vector<int32_t> numbers{1};
  const auto all = reader.list_numbers("/task", numbers, 10);
  REQUIRE(all);
  CHECK(*all);
  CHECK(numbers == std::vector<int32_t>{4, 30, 100});
  const auto some = reader.list_numbers("/task", numbers, 2);
  REQUIRE(some);
  CHECK_FALSE(*some);
  CHECK(numbers.size() == 2);
  CHECK(reader.list_numbers("/none", numbers, 2).state == ReadState::absent);
  CHECK(numbers.empty());
}

TEST_CASE("folders of a folder are listed without files") {
  FixtureTree tree;
  tree.write("a/x", "");
  tree.write("b/x", "");
  tree.write("file", "");
  FileReader reader(tree.root());
  std::vector<std::string> names = reader.list_folders("/", 10);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"a", "b"});
  CHECK(reader.list_folders("/", 1).size() == 1);
  CHECK(reader.list_folders("/none", 10).empty());
}
