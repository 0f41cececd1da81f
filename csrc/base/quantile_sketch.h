// Quantiles of a stream of non-negative values with bounded relative error in bounded memory, after
// DDSketch (Masson, Rim, Lee 2019): counts in buckets whose borders grow by a constant factor.
// Owned by one thread at a time. Negative values, NaN and infinities are refused, not clamped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gpuutil {

class QuantileSketch {
 public:
  static constexpr double kDefaultRelativeError = 0.01;
  // With 1 % error, 2048 buckets span a factor of 6e17: nanoseconds to decades. 16 KiB when all are
  // used.
  static constexpr size_t kDefaultMaxBuckets = 2048;

  // `relative_error` in [1e-6, 1), `max_buckets` at least 1; std::invalid_argument otherwise.
  explicit QuantileSketch(double relative_error = kDefaultRelativeError,
                          size_t max_buckets = kDefaultMaxBuckets);

  // False where the value was refused. Allocates only while the range of values widens.
  bool add(double value);

  // Adds what the other has seen: the same result, whatever the order, as adding every value here.
  // False, and nothing changes, where the two were made with different errors.
  bool merge(const QuantileSketch& other);

  // The value of rank floor(q (n - 1)), counted from 0 in sorted order, within relative_error() of
  // the exact one; zeros are exact. std::nullopt where nothing was added or q is outside [0, 1].
  std::optional<double> quantile(double q) const;

  uint64_t count() const { return count_; }
  double relative_error() const { return relative_error_; }

  // True once values spread over more buckets than allowed and the lowest were folded together. A
  // quantile that falls into the lowest bucket is then only known not to lie above it.
  bool collapsed() const { return collapsed_; }

  void clear();

 private:
  int32_t bucket_of(double value) const;
  double value_of(int32_t bucket) const;
  // The counter of a bucket, after making room for it; that of the lowest one kept where it lies
  // below.
  uint64_t& counter(int32_t bucket);

  double relative_error_;
  double log_growth_;  // ln((1 + error) / (1 - error))
  size_t max_buckets_;
  // Bucket i holds the values in (g^(i-1), g^i]; counts_[0] belongs to bucket `first_`.
  std::vector<uint64_t> counts_;
  int32_t first_ = 0;
  uint64_t zeros_ = 0;
  uint64_t count_ = 0;
  double min_ = 0;  // of the values above zero
  double max_ = 0;
  bool collapsed_ = false;
};

}  // namespace gpuutil
