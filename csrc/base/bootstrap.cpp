// Sources: Politis and Romano, "A circular block-resampling procedure for stationary data" (1992);
// Politis and White, "Automatic block-length selection for the dependent bootstrap" (2004), with
// the correction of Patton, Politis and White (2009). Widening: the variance of a block bootstrap
// is that of a spectrum under a Bartlett window, with 3 n / (2 length) equivalent degrees of
// freedom at frequency 0 (Priestley 1981, chapter 6).
#include "base/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "base/robust.h"

namespace gpuutil {

namespace {

constexpr size_t kMinBlocks = 4;

// What the median of a series sees of each value: on which side of it the value lies. The median is
// to first order linear in these signs, so their memory is the one that counts, and a spike weighs
// no more than any other value.
std::vector<double> median_signs(std::span<const double> series) {
  const double centre = median(series).value();
  std::vector<double> signs;
  signs.reserve(series.size());
  for (const double value : series) {
    signs.push_back(value > centre ? 1 : value < centre ? -1 : 0);
  }
  const double mean =
      std::accumulate(signs.begin(), signs.end(), 0.0) / static_cast<double>(signs.size());
  for (double& sign : signs) sign -= mean;
  return signs;
}

// How many times its raw width an interval must have for `blocks` = n / length: each block spends
// some of its variance on the mean of the circle, and a spread estimated from few blocks is itself
// uncertain (Student's t in place of the normal, by the expansion in Abramowitz and Stegun 26.7.5).
double widening(double blocks, double tail) {
  double low = 0;
  double high = 40;  // bisect for the normal quantile of `tail`
  for (int i = 0; i < 60; ++i) {
    const double z = std::midpoint(low, high);
    (std::erfc(z / std::sqrt(2.0)) / 2 > tail ? low : high) = z;
  }
  const double z2 = low * low;
  const double freedom = 1.5 * blocks;
  const double student = 1 + (z2 + 1) / (4 * freedom) +
                         ((5 * z2 + 16) * z2 + 3) / (96 * freedom * freedom);
  return student / std::sqrt(1 - 1 / blocks);
}

double autocovariance(std::span<const double> centred, size_t lag) {
  double sum = 0;
  for (size_t i = lag; i < centred.size(); ++i) sum += centred[i] * centred[i - lag];
  return sum / static_cast<double>(centred.size());
}

// The last lag before five correlations in a row look like noise; 0 for white noise.
size_t memory_length(std::span<const double> centred) {
  constexpr size_t kQuietRun = 5;
  const auto n = static_cast<double>(centred.size());
  const double noise = 2 * std::sqrt(std::log10(n) / n) * autocovariance(centred, 0);
  size_t memory = 0;
  for (size_t lag = 1; lag <= std::min(memory + kQuietRun, centred.size() / 2); ++lag) {
    if (std::abs(autocovariance(centred, lag)) > noise) memory = lag;
  }
  return memory;
}

// Draws medians of circular block resamples of one sample. The sample is sorted once; a resample is
// then only a count of how often each rank was drawn, and its median is found by walking those
// counts.
class MedianResampler {
 public:
  MedianResampler(std::span<const double> series, size_t block_length)
      : size_(series.size()),
        block_(block_length),
        sorted_(size_),
        ranks_(size_ + block_),
        counts_(size_) {
    std::vector<uint32_t> order(size_);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](uint32_t x, uint32_t y) { return series[x] < series[y]; });
    for (size_t rank = 0; rank < size_; ++rank) {
      sorted_[rank] = series[order[rank]];
      ranks_[order[rank]] = static_cast<uint32_t>(rank);
    }
    // The circle, unrolled far enough for a block that starts at the last value.
    std::copy_n(ranks_.begin(), block_, ranks_.begin() + static_cast<std::ptrdiff_t>(size_));
  }

  double sample_median() const {
    return std::midpoint(sorted_[(size_ - 1) / 2], sorted_[size_ / 2]);
  }

  double blocks() const { return static_cast<double>(size_) / static_cast<double>(block_); }

  double draw(Random& random) {
    std::fill(counts_.begin(), counts_.end(), 0u);
    for (size_t left = size_; left > 0;) {
      const size_t length = std::min(block_, left);
      const uint32_t* rank = ranks_.data() + random.below(size_);
      for (const uint32_t* end = rank + length; rank != end; ++rank) ++counts_[*rank];
      left -= length;
    }
    return counted_median();
  }

 private:
  double counted_median() const {
    const size_t low_place = (size_ - 1) / 2;
    size_t rank = 0;
    size_t seen = counts_[0];
    while (seen <= low_place) seen += counts_[++rank];
    const double low = sorted_[rank];
    if (size_ % 2 == 1) return low;
    while (seen <= low_place + 1) seen += counts_[++rank];
    return std::midpoint(low, sorted_[rank]);
  }

  size_t size_;
  size_t block_;
  std::vector<double> sorted_;
  std::vector<uint32_t> ranks_;   // of the values in time order, then again of the first block
  std::vector<uint32_t> counts_;  // by rank, of the current draw
};

bool usable(std::span<const double> values) {
  return values.size() >= kMinBlocks && std::all_of(values.begin(), values.end(), [](double value) {
    return value > 0 && std::isfinite(value);
  });
}

MedianResampler resampler(std::span<const double> series, const BootstrapOptions& options) {
  const size_t block = options.block_length ? *options.block_length : suggest_block_length(series);
  return MedianResampler(series, std::min(block, series.size() / kMinBlocks));
}

}  // namespace

size_t suggest_block_length(std::span<const double> series) {
  const size_t size = series.size();
  if (size < 2 * kMinBlocks) return 1;
  const auto n = static_cast<double>(size);
  const size_t longest = size / kMinBlocks;
  const size_t shortest = std::min(longest, static_cast<size_t>(std::ceil(std::cbrt(n))));
  const std::vector<double> signs = median_signs(series);
  const size_t memory = memory_length(signs);
  if (memory == 0) return shortest;

  // The length that minimises the error of the variance estimate is (2 g^2 / d)^(1/3) n^(1/3),
  // where g sums lag times covariance and d is 4/3 of the squared spectrum at 0, both under a
  // flat-top window (1 up to half of its width, then falling to 0). An interval that is too narrow
  // is worse than one that is too wide: twice that length.
  const size_t width = std::min(2 * memory, size / 2);
  double spectrum = autocovariance(signs, 0);
  double slope = 0;
  for (size_t lag = 1; lag <= width; ++lag) {
    const double place = static_cast<double>(lag) / static_cast<double>(width);
    const double weight = 2 * std::min(1.0, 2 * (1 - place)) * autocovariance(signs, lag);
    spectrum += weight;
    slope += weight * static_cast<double>(lag);
  }
  if (!(spectrum > 0)) return longest;  // the memory is too long for this series to tell
  const double ratio = slope / spectrum;
  const double length = 2 * std::ceil(std::cbrt(1.5 * ratio * ratio * n));
  return std::clamp(static_cast<size_t>(std::min(length, n)), shortest, longest);
}

std::optional<Interval> median_ratio_interval(std::span<const double> a, std::span<const double> b,
                                              const BootstrapOptions& options) {
  if (!usable(a) || !usable(b)) return std::nullopt;
  if (options.rounds == 0 || options.block_length == size_t{0}) return std::nullopt;
  if (!(options.confidence > 0 && options.confidence < 1)) return std::nullopt;

  MedianResampler draw_a = resampler(a, options);
  MedianResampler draw_b = resampler(b, options);
  const double median_a = draw_a.sample_median();
  const double median_b = draw_b.sample_median();
  const double tail = (1 - options.confidence) / 2;
  const double widen_a = widening(draw_a.blocks(), tail);
  const double widen_b = widening(draw_b.blocks(), tail);

  Random random(options.seed);
  std::vector<double> deviations(options.rounds);  // of the logarithm of the ratio
  for (double& deviation : deviations) {
    deviation = widen_a * std::log(draw_a.draw(random) / median_a);
    deviation -= widen_b * std::log(draw_b.draw(random) / median_b);
  }
  const double mid = median_a / median_b;
  return Interval{.low = mid * std::exp(quantile_in_place(deviations, tail).value()),
                  .mid = mid,
                  .high = mid * std::exp(quantile_in_place(deviations, 1 - tail).value())};
}

}  // namespace gpuutil
