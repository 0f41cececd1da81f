// The structured reports of DESIGN 10 as JSON text: one epoch (a line of epochs.jsonl), the whole
// run (report.json), the findings and the ledger. Base units and ratios, null where not measured.
// Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "report/summary.h"

namespace gpuutil {

inline constexpr int kSchemaVersion = 1;

std::string epoch_json(const EpochSummary& epoch);
std::string run_json(const RunSummary& run);
std::string findings_json(std::span<const Finding> findings);
std::string ledger_json(std::span<const LedgerRow> ledger,
                        std::span<const LoaderName> loaders = {});

}  // namespace gpuutil
