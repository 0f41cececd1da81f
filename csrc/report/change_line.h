// One row of the ledger as one line: for the log when it changes state, and for the epoch report.
// Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "report/summary.h"

namespace gpuutil {

// "loader_workers 0->2, main_threads 2->1", in brief "workers 0->2, threads 2->1"; a loader is named where there are
// several.
std::string change_list(std::span<const Change> changes, std::span<const LoaderName> loaders = {},
                        bool brief = false);

// For the log, at the moment at which the row changes state: what, why, what it brought, how to
// undo it. At most 200 columns; what is cut is the reason, never the way back.
std::string change_line(const LedgerRow& row, std::span<const LoaderName> loaders = {});

// For the epoch report: what became of it, and apart from it the way back, which must not be cut.
struct ChangeResult {
  std::string text;
  std::string undo;  // "; undo: mon.revert(1)"; empty where there is nothing to undo
};

ChangeResult change_result(const LedgerRow& row, std::span<const LoaderName> loaders = {});

}  // namespace gpuutil
