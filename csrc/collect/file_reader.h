// Reads small kernel files below a root directory ("/" in production, a fixture tree in tests) into
// one buffer that is kept between reads: open, read, close; no stream, no descriptor left open. One
// thread at a time. Throws nothing but std::bad_alloc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collect/reading.h"

namespace gpuutil {

class FileReader {
 public:
  static constexpr size_t kMaxBytes = size_t{8} << 20;

  explicit FileReader(std::string root = "/");

  // `path` is absolute, as seen inside the root. The view lives until the next call. Reasons name
  // `path`.
  Reading<std::string_view> read(std::string_view path);

  bool exists(std::string_view path);

  // Entries that are numbers (the processes of /proc, the threads of a task folder), ascending,
  // into `numbers`, at most `limit`; the value says whether that was all of them.
  Reading<bool> list_numbers(std::string_view path, std::vector<int32_t>& numbers, size_t limit);

  // Names of sub-folders, at most `limit`, in no order. Empty where there is nothing to list.
  std::vector<std::string> list_folders(std::string_view path, size_t limit);

  // The path outside of the root, for system calls; lives until the next call.
  const char* locate(std::string_view path);

 private:
  const std::string root_;  // without a trailing slash
  std::string path_;
  std::vector<char> buffer_;
};

}  // namespace gpuutil
