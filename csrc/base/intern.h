// Names as small numbers, so that an event carries four bytes in place of a string. Any thread;
// every call takes one mutex, which is fine because hooks intern a name once and keep its id. Never
// call it in a forked child: another thread may have held the mutex at the fork.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gpuutil {

class Interner {
 public:
  static constexpr uint32_t kEmpty = 0;  // ""
  static constexpr uint32_t kOther = 1;  // "(other)": every name that came after the limit
  static constexpr size_t kDefaultMaxNames = 4096;

  // `max_names` does not count the two reserved ones.
  explicit Interner(size_t max_names = kDefaultMaxNames);
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;

  // The id of `name`; the same for as long as the Interner lives. Allocates where the name is new.
  uint32_t intern(std::string_view name);

  // Valid for as long as the Interner lives. "" for an id that was never given out.
  std::string_view name(uint32_t id) const;

  // Names that have an id, the reserved ones included.
  size_t size() const;

  // Calls that got kOther because the limit was reached.
  uint64_t overflows() const;

 private:
  const size_t max_names_;
  mutable std::mutex mutex_;
  std::deque<std::string> names_;  // by id; a deque never moves its elements, so views into it hold
  std::unordered_map<std::string_view, uint32_t> ids_;
  uint64_t overflows_ = 0;
};

}  // namespace gpuutil
