#include "report/change_line.h"

#include <doctest/doctest.h>

#include "summary_cases.h"

namespace gpuutil {
namespace {

TEST_CASE("a trial is announced with its class, its finding, its reason and the way back") {
  LedgerRow row = kept_row();
  row.outcome = Outcome::running;
  CHECK(change_line(row) ==
        "trying loader_workers 0->2, main_threads 2->1 from step 42 on (rounding): "
        "input_cpu_bound: 80 % of the step waits for input, 2 CPUs allow at most 1.92x; undo: "
        "mon.revert(1)");
}

TEST_CASE("a kept change is told with step times, interval and CPU time a sample") {
  CHECK(change_line(kept_row()) ==
        "kept loader_workers 0->2, main_threads 2->1: 110 ms -> 62.1 ms a step, 1.78x (1.71-1.84), "
        "CPU 8.70 ms -> 7.90 ms a sample; undo: mon.revert(1)");
  LedgerRow row = kept_row();
  row.provisional = true;
  CHECK(change_line(row).starts_with("kept for now loader_workers"));
}

TEST_CASE("a guard is told as what it is: kept without a measurement") {
  LedgerRow row;
  row.changes = {{"fd_limit", 0, 1024, 65536}};
  row.outcome = Outcome::kept;
  row.conclusion = "protective";
  row.protective = row.in_force = true;
  row.undo = "mon.revert(1)";
  CHECK(change_line(row) == "kept fd_limit 1024->65536: protective; undo: mon.revert(1)");
  CHECK(change_result(row, {}).text == "changed: fd_limit 1024->65536, kept as a safeguard");
}

TEST_CASE("what is not in force offers no undo") {
  LedgerRow row = kept_row();
  row.outcome = Outcome::undone;
  row.in_force = false;
  row.conclusion = "slower";
  CHECK(change_line(row).ends_with("a sample: slower"));
  row.outcome = Outcome::failed;
  row.conclusion = "a worker did not start within 20 s";
  CHECK(change_line(row) ==
        "could not do loader_workers 0->2, main_threads 2->1: a worker did not start within 20 s; "
        "training goes on as it was");
  row.outcome = Outcome::refused;
  row.changes = {{"loader_workers", 1, 0, 0}};
  row.conclusion = "an IterableDataset repeats its data in every worker";
  CHECK(change_line(row) ==
        "left alone: loader_workers: an IterableDataset repeats its data in every worker");
}

TEST_CASE("the line stays within 200 columns and keeps the way back whatever the reason") {
  LedgerRow row = kept_row();
  row.outcome = Outcome::running;
  row.reason = std::string(500, 'r') + "\n\t";
  const std::string line = change_line(row);
  CHECK(line.size() == 200);
  CHECK(line.ends_with("; undo: mon.revert(1)"));
  CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("a loader is named only where there are several") {
  const std::vector<Change> changes = {{"loader_workers", 1, 0, 2}, {"main_threads", 0, 2, 1}};
  const std::vector<LoaderName> one = {{1, "train"}};
  const std::vector<LoaderName> two = {{1, "train"}, {2, "validation"}};
  CHECK(change_list(changes, one) == "loader_workers 0->2, main_threads 2->1");
  CHECK(change_list(changes, one, true) == "workers 0->2, threads 2->1");
  CHECK(change_list(changes, two) == "loader_workers 0->2 on train, main_threads 2->1");
}

}  // namespace
}  // namespace gpuutil
