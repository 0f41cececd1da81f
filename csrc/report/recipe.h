// The lines of code that make the kept changes permanent: for each loader and for the process the
// final values only, whatever the path that led to them. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "report/summary.h"

namespace gpuutil {

// Several lines, no newline at the end. `replay_path` is report.json's; empty where none is
// written.
std::string run_recipe(std::span<const LedgerRow> ledger, std::span<const LoaderName> loaders,
                       std::string_view replay_path);

}  // namespace gpuutil
