// What the training thread is doing at an instant (DESIGN 5). The phases partition its wall time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>

namespace gpuutil {

enum class Phase : uint8_t {
  input_wait,
  host_to_device,
  forward,
  backward,
  optimizer,
  sync_wait,
  collective_wait,
  logging,
  checkpoint,
  evaluation,
  gpuutil,
  other,
};
inline constexpr size_t kPhaseCount = 12;

inline constexpr std::array<std::string_view, kPhaseCount> kPhaseNames = {
    "input_wait", "host_to_device",  "forward", "backward",   "optimizer",  "sync_wait",
    "collective_wait", "logging",    "checkpoint", "evaluation", "gpuutil", "other"};

constexpr std::string_view phase_name(Phase phase) {
  return kPhaseNames[static_cast<size_t>(phase)];
}

constexpr std::optional<Phase> phase_from_name(std::string_view name) {
  for (size_t i = 0; i < kPhaseCount; ++i) {
    if (kPhaseNames[i] == name) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

// Nanoseconds by phase. Whoever fills one keeps total() equal to the wall time it covers.
struct PhaseTimes {
  std::array<int64_t, kPhaseCount> ns{};

  int64_t& operator[](Phase phase) { return ns[static_cast<size_t>(phase)]; }
  int64_t operator[](Phase phase) const { return ns[static_cast<size_t>(phase)]; }
  int64_t total() const { return std::accumulate(ns.begin(), ns.end(), int64_t{0}); }
  PhaseTimes& operator+=(const PhaseTimes& more) {
    for (size_t i = 0; i < kPhaseCount; ++i) ns[i] += more.ns[i];
    return *this;
  }
};

}  // namespace gpuutil
