#include "collect/file_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "collect/text.h"

namespace gpuutil {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// A process that is gone, a file this kernel does not make, pressure accounting switched off at
// boot.
bool means_absent(int error) {
  return error == ENOENT || error == ENOTDIR || error == ENODEV || error == ESRCH ||
         error == EOPNOTSUPP;
}

Unknown failure(std::string_view path, int error) {
  return {means_absent(error) ? ReadState::absent : ReadState::unreadable,
          std::string(path) + ": " + std::generic_category().message(error)};
}

std::string without_trailing_slash(std::string root) {
  while (!root.empty() && root.back() == '/') root.pop_back();
  return root;
}

}  // namespace

FileReader::FileReader(std::string root)
    : root_(without_trailing_slash(std::move(root))), buffer_(4096) {}

const char* FileReader::locate(std::string_view path) {
  path_.assign(root_).append(path);
  return path_.c_str();
}

Reading<std::string_view> FileReader::read(std::string_view path) {
  const Descriptor file{open(locate(path), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
  if (file.fd < 0) return failure(path, errno);
  size_t used = 0;
  while (true) {
    if (used == buffer_.size()) {
      if (used >= kMaxBytes) {
        return Unknown{ReadState::malformed, std::string(path) + ": larger than expected"};
      }
      buffer_.resize(used * 2);
    }
    const ssize_t got = ::read(file.fd, buffer_.data() + used, buffer_.size() - used);
    if (got > 0) {
      used += static_cast<size_t>(got);
    } else if (got == 0) {
      return std::string_view(buffer_.data(), used);
    } else if (errno != EINTR) {
      return failure(path, errno);
    }
  }
}

bool FileReader::exists(std::string_view path) {
  struct stat found{};
  return stat(locate(path), &found) == 0;
}

Reading<bool> FileReader::list_numbers(std::string_view path, std::vector<int32_t>& numbers,
                                       size_t limit) {
  numbers.clear();
  const Folder folder(opendir(locate(path)));
  if (!folder) return failure(path, errno);
  bool all = true;
  while (const dirent* entry = readdir(folder.get())) {
    const std::optional<int32_t> number = to_int<int32_t>(entry->d_name);
    if (!number) continue;
    if (numbers.size() == limit) {
      all = false;
      break;
    }
    numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return all;
}

std::vector<std::string> FileReader::list_folders(std::string_view path, size_t limit) {
  std::vector<std::string> names;
  const Folder folder(opendir(locate(path)));
  if (!folder) return names;
  while (const dirent* entry = readdir(folder.get())) {
    if (names.size() == limit) break;
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace gpuutil
