#include "diagnose/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpuutil {
namespace {

// The number with at most `decimals` decimals, trailing zeros removed.
std::string trimmed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

int percent_decimals(double percent) {
  const double size = std::abs(percent);
  if (size >= 9.95 || size == 0) return 0;
  if (size >= 0.995) return 1;
  // Below one percent two digits that say something, down to a millionth.
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(size))), 2, 4);
}

std::string percent_number(double ratio) {
  const double percent = ratio * 100;
  return trimmed(percent, percent_decimals(percent));
}

}  // namespace

std::string percent_text(double ratio) { return percent_number(ratio) + " %"; }

std::string percent_range_text(double low, double high) {
  const std::string from = percent_number(low);
  const std::string to = percent_number(high);
  return from == to ? from + " %" : from + "-" + to + " %";
}

std::string duration_text(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 99.95) return fmt::format("{:.0f} s", seconds);
  if (size >= 9.995) return fmt::format("{:.1f} s", seconds);
  if (size >= 0.9995) return fmt::format("{:.2f} s", seconds);
  if (size >= 0.09995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (size >= 0.009995) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (size >= 0.0009995) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (size >= 9.995e-6) return fmt::format("{:.0f} us", seconds * 1e6);
  return trimmed(seconds * 1e6, 1) + " us";
}

std::string cores_text(double cores) {
  return trimmed(cores, cores >= 10 ? 0 : cores >= 2 ? 1 : 2);
}

std::string speedup_text(double ratio) { return fmt::format("{:.2f}x", ratio); }

std::string count_text(double value) {
  if (std::abs(value) >= 99.5) return fmt::format("{:.0f}", value);
  return trimmed(value, std::abs(value) >= 9.95 ? 1 : 2);
}

}  // namespace gpuutil
