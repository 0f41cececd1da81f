// A root directory for the readers of collect/, unpacked from data/NAME.tree into a temporary
// folder. A .tree file is text: comments, then "=== path" before the content of each file; a path
// that ends in '/' makes a folder, which cannot be read as a file by anybody.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace gpuutil {

class FixtureTree {
 public:
  explicit FixtureTree(const std::string& name = "") {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpuutil-tree-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
    if (!name.empty()) unpack(name);
  }
  ~FixtureTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FixtureTree(const FixtureTree&) = delete;
  FixtureTree& operator=(const FixtureTree&) = delete;

  std::string root() const { return root_.string(); }

  void write(std::string_view path, std::string_view content) const {
    const std::filesystem::path full = root_ / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << content;
  }

  void remove(std::string_view path) const { std::filesystem::remove_all(root_ / path); }

  void replace(const std::string& name) const {
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
      std::filesystem::remove_all(entry.path());
    }
    unpack(name);
  }

 private:
  void unpack(const std::string& name) const {
    std::ifstream tree(std::string(GPUUTIL_TEST_DATA) + "/" + name + ".tree");
    REQUIRE(tree.is_open());
    constexpr std::string_view kHeading = "=== ";
    std::string path;
    std::string content;
    std::string line;
    const auto finish = [&] {
      if (path.empty()) return;
      if (path.back() == '/') {
        std::filesystem::create_directories(root_ / path);
      } else {
        write(path, content);
      }
    };
    while (std::getline(tree, line)) {
      if (line.rfind(kHeading, 0) == 0) {
        finish();
        path = line.substr(kHeading.size());
        content.clear();
      } else {
        content += line + "\n";
      }
    }
    finish();
  }

  std::filesystem::path root_;
};

}  // namespace gpuutil
