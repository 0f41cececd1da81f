#include "collect/pressure.h"

#include <algorithm>

#include "collect/text.h"

namespace gpuutil {
namespace {

std::optional<int64_t> total_of(std::string_view text, std::string_view kind) {
  std::optional<std::string_view> line = line_of(text, kind);
  if (!line) return std::nullopt;
  constexpr std::string_view kTotal = "total=";
  while (!line->empty()) {
    const std::string_view word = next_word(*line);
    if (word.substr(0, kTotal.size()) == kTotal) return to_int(word.substr(kTotal.size()));
  }
  return std::nullopt;
}

Reading<PressureTotals> read(FileReader& reader, const std::string& path) {
  const Reading<std::string_view> text = reader.read(path);
  return text ? parse_pressure(*text) : text.unknown();
}

}  // namespace

Reading<PressureTotals> parse_pressure(std::string_view text) {
  const std::optional<int64_t> some = total_of(text, "some");
  if (!some) return Unknown{ReadState::malformed, "pressure: no total of stalls"};
  return PressureTotals{*some, total_of(text, "full")};
}

Pressure read_system_pressure(FileReader& reader) {
  return {read(reader, "/proc/pressure/cpu"), read(reader, "/proc/pressure/io"),
          read(reader, "/proc/pressure/memory")};
}

Pressure read_cgroup_pressure(FileReader& reader, const std::string& folder) {
  return {read(reader, folder + "/cpu.pressure"), read(reader, folder + "/io.pressure"),
          read(reader, folder + "/memory.pressure")};
}

Reading<double> some_ratio(const Reading<PressureTotals>& before,
                           const Reading<PressureTotals>& after, double interval_seconds) {
  if (!after) return after.unknown();
  if (!before) return Unknown{ReadState::waiting, "pressure: one reading so far"};
  const int64_t stalled_us = after->some_us - before->some_us;
  if (stalled_us < 0 || interval_seconds <= 0) {
    return Unknown{ReadState::inconsistent, "pressure: the total went back"};
  }
  // The two clocks are read some microseconds apart: a stall of the whole interval may look a
  // little longer.
  return std::min(1.0, static_cast<double>(stalled_us) * 1e-6 / interval_seconds);
}

}  // namespace gpuutil
