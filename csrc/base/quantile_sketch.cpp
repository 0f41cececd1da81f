#include "base/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace gpuutil {

QuantileSketch::QuantileSketch(double relative_error, size_t max_buckets)
    : relative_error_(relative_error),
      log_growth_(std::log1p(relative_error) - std::log1p(-relative_error)),
      max_buckets_(max_buckets) {
  // The lower end keeps the numbers of buckets within int32_t.
  if (!(relative_error >= 1e-6 && relative_error < 1)) {
    throw std::invalid_argument("relative_error must be at least 1e-6 and below 1");
  }
  if (max_buckets == 0) throw std::invalid_argument("max_buckets must be at least 1");
}

int32_t QuantileSketch::bucket_of(double value) const {
  return static_cast<int32_t>(std::ceil(std::log(value) / log_growth_));
}

// The point of a bucket whose relative distance to both borders is the same: 2 g^i / (g + 1), where
// 2 / (g + 1) = 1 - error.
double QuantileSketch::value_of(int32_t bucket) const {
  return std::exp(bucket * log_growth_) * (1 - relative_error_);
}

uint64_t& QuantileSketch::counter(int32_t bucket) {
  if (counts_.empty()) {
    counts_.resize(1);
    first_ = bucket;
    return counts_.front();
  }
  const int32_t last = std::max(bucket, first_ + static_cast<int32_t>(counts_.size()) - 1);
  const auto wanted = static_cast<size_t>(last - std::min(bucket, first_)) + 1;
  const size_t size = std::min(wanted, max_buckets_);
  const int32_t first = last - static_cast<int32_t>(size) + 1;
  if (first < first_) {
    counts_.insert(counts_.begin(), static_cast<size_t>(first_ - first), 0);
  } else if (first > first_) {
    const auto shift = std::min(static_cast<size_t>(first - first_), counts_.size());
    const auto kept = counts_.begin() + static_cast<std::ptrdiff_t>(shift);
    const uint64_t folded = std::accumulate(counts_.begin(), kept, uint64_t{0});
    counts_.erase(counts_.begin(), kept);
    if (counts_.empty()) counts_.push_back(0);
    counts_.front() += folded;
    collapsed_ = collapsed_ || folded != 0;
  }
  first_ = first;
  counts_.resize(size);
  if (bucket < first) collapsed_ = true;
  return counts_[static_cast<size_t>(std::max(bucket, first) - first)];
}

bool QuantileSketch::add(double value) {
  if (!(value >= 0) || value > std::numeric_limits<double>::max()) return false;
  if (value < std::numeric_limits<double>::min()) {  // zero, or too small for full precision
    ++zeros_;
  } else {
    ++counter(bucket_of(value));
    min_ = zeros_ == count_ ? value : std::min(min_, value);
    max_ = std::max(max_, value);
  }
  ++count_;
  return true;
}

bool QuantileSketch::merge(const QuantileSketch& other) {
  if (other.relative_error_ != relative_error_) return false;
  if (&other == this) return merge(QuantileSketch(other));
  // From the top, so that what lies too low is folded once, into its final place.
  for (size_t i = other.counts_.size(); i-- > 0;) {
    if (other.counts_[i] != 0) counter(other.first_ + static_cast<int32_t>(i)) += other.counts_[i];
  }
  if (other.zeros_ != other.count_) {
    min_ = zeros_ == count_ ? other.min_ : std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }
  zeros_ += other.zeros_;
  count_ += other.count_;
  collapsed_ = collapsed_ || other.collapsed_;
  return true;
}

std::optional<double> QuantileSketch::quantile(double q) const {
  if (count_ == 0 || !(q >= 0 && q <= 1)) return std::nullopt;
  const auto rank = static_cast<uint64_t>(q * static_cast<double>(count_ - 1));
  if (rank < zeros_) return 0.0;
  uint64_t seen = zeros_;
  size_t i = 0;
  while (i + 1 < counts_.size() && (seen += counts_[i]) <= rank) ++i;
  // The exact value lies between min and max, so moving the estimate there never moves it away.
  return std::clamp(value_of(first_ + static_cast<int32_t>(i)), min_, max_);
}

void QuantileSketch::clear() {
  counts_.clear();
  zeros_ = 0;
  count_ = 0;
  min_ = 0;
  max_ = 0;
  collapsed_ = false;
}

}  // namespace gpuutil
