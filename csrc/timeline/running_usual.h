// The median of the last 64 values, kept sorted: what is usual right now. Follows a lasting change
// within 32 values. Plain value type.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpuutil {

class RunningUsual {
 public:
  static constexpr size_t kValues = 64;

  void add(int64_t value) {
    if (size_ == kValues) {
      auto old = std::lower_bound(sorted_.begin(), sorted_.end(), ring_[next_]);
      std::copy(old + 1, sorted_.end(), old);
      --size_;
    }
    const auto end = sorted_.begin() + static_cast<std::ptrdiff_t>(size_);
    auto place = std::upper_bound(sorted_.begin(), end, value);
    std::copy_backward(place, end, end + 1);
    *place = value;
    ring_[next_] = value;
    next_ = (next_ + 1) % kValues;
    ++size_;
  }
  size_t size() const { return size_; }
  std::optional<int64_t> median() const {
    if (size_ == 0) return std::nullopt;
    return sorted_[size_ / 2];
  }

 private:
  std::array<int64_t, kValues> ring_{}, sorted_{};
  size_t size_ = 0, next_ = 0;
};

}  // namespace gpuutil
