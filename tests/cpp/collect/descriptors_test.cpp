#include "collect/descriptors.h"

#include <doctest/doctest.h>

#include <string>

#include "fixture.h"

using namespace gpuutil;

namespace {

std::string limits(const std::string& soft, const std::string& hard) {
  return "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max processes             unlimited            unlimited            processes \n"
         "Max open files            " + soft + "                 " + hard + "              files     \n";
}

void open_files(const FixtureTree& tree, int count) {
  for (int i = 0; i < count; ++i) tree.write("proc/self/fd/" + std::to_string(i), "");
}

}  // namespace

TEST_CASE("open descriptors are counted beside both limits") {
  FixtureTree tree;
  tree.write("proc/self/limits", limits("1024", "4096"));
  open_files(tree, 7);
  FileReader reader(tree.root());
  const auto descriptors = read_descriptors(reader);
  REQUIRE(descriptors);
  CHECK(descriptors->open == 7);
  CHECK(descriptors->soft_limit == 1024);
  CHECK(descriptors->hard_limit == 4096);
}

TEST_CASE("no limit is none, not a number") {
  FixtureTree tree;
  tree.write("proc/self/limits", limits("65536", "unlimited"));
  open_files(tree, 1);
  FileReader reader(tree.root());
  const auto descriptors = read_descriptors(reader);
  REQUIRE(descriptors);
  CHECK(descriptors->soft_limit == 65536);
  CHECK_FALSE(descriptors->hard_limit.has_value());
}

TEST_CASE("descriptors that cannot be read have a reason") {
  FixtureTree tree;
  FileReader reader(tree.root());
  CHECK(read_descriptors(reader).state == ReadState::absent);
  tree.write("proc/self/limits", "Max processes 1 1 processes\n");
  CHECK(read_descriptors(reader).state == ReadState::malformed);
  tree.write("proc/self/limits", limits("few", "4096"));
  CHECK(read_descriptors(reader).reason == "/proc/self/limits: no limit of open files");
  tree.write("proc/self/limits", limits("1024", "4096"));
  CHECK(read_descriptors(reader).reason == "/proc/self/fd: No such file or directory");
}
