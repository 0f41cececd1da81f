// One epoch as text for the log: at most eight lines of at most 100 columns, plain ASCII, no tabs,
// no newline at the end. The first line alone tells how fast the epoch was. Pure; any thread.
#pragma once

#include <string>

#include "report/summary.h"

namespace gpuutil {

inline constexpr size_t kReportColumns = 100;
inline constexpr size_t kReportLines = 8;

std::string epoch_report(const EpochSummary& epoch);

}  // namespace gpuutil
