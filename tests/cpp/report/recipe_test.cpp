#include "report/recipe.h"

#include <doctest/doctest.h>

#include "summary_cases.h"

namespace gpuutil {
namespace {

LedgerRow row_of(int64_t id, std::vector<Change> changes, Outcome outcome = Outcome::kept) {
  LedgerRow row;
  row.id = id;
  row.step = id * 100;
  row.changes = std::move(changes);
  row.outcome = outcome;
  return row;
}

const std::vector<LoaderName> kLoaders = {{1, "PhotoDataset"}, {2, "Validation"}};

TEST_CASE("the final values stand in the recipe, whatever the path that led to them") {
  const std::vector<LedgerRow> ledger = {
      row_of(1, {{"loader_workers", 1, 0, 2}, {"main_threads", 0, 2, 1}}),
      row_of(2, {{"loader_prefetch", 1, 2, 4}}),
      row_of(3, {{"loader_workers", 1, 2, 3}}, Outcome::undone),
      row_of(4, {{"loader_workers", 1, 2, 4}}),
      row_of(5, {{"loader_workers", 2, 0, 1}}),
  };
  CHECK(run_recipe(ledger, kLoaders, "logs/run/report.json") ==
        "# what gpuutil kept in this run\n"
        "torch.set_num_threads(1)  # was 2\n"
        "DataLoader(..., num_workers=4, prefetch_factor=4)  # PhotoDataset\n"
        "DataLoader(..., num_workers=1)  # Validation\n"
        "# or, without touching the code, the same changes from the first step on and no trials:\n"
        "GPUUTIL_REPLAY=logs/run/report.json");
}

TEST_CASE("the gain of all kept changes together stands on top where it was measured") {
  CHECK(run_recipe(std::vector{kept_row()}, kLoaders, "")
            .starts_with("# what gpuutil kept in this run, 1.78x together\n"));
}

TEST_CASE("changes that cancel each other, and trials that were not kept, leave nothing") {
  const std::vector<LedgerRow> ledger = {
      row_of(1, {{"loader_workers", 1, 2, 4}}), row_of(2, {{"loader_workers", 1, 4, 2}}),
      row_of(3, {{"main_threads", 0, 2, 1}}, Outcome::inconclusive),
      row_of(4, {{"main_threads", 0, 2, 1}}, Outcome::running),
      row_of(5, {{"main_threads", 0, 2, 1}}, Outcome::reverted)};
  CHECK(run_recipe(ledger, kLoaders, "report.json") ==
        "# gpuutil kept no change: nothing to make permanent");
  CHECK(run_recipe({}, {}, "report.json") == "# gpuutil kept no change: nothing to make permanent");
}

TEST_CASE("batches fetched whole are a sampler of batches, and a stack a field is a comment") {
  const std::vector<LedgerRow> ledger = {row_of(1, {{"loader_batch_fetch", 1, 0, 1}}),
                                         row_of(2, {{"loader_batch_fetch", 2, 0, 2}})};
  CHECK(run_recipe(ledger, kLoaders, "") ==
        "# what gpuutil kept in this run\n"
        "# collate_fn: one numpy.stack a field instead of one tensor a sample (or the replay below)\n"
        "DataLoader(..., batch_size=None, sampler=BatchSampler(sampler, batch_size, drop_last))  "
        "# PhotoDataset");
}

TEST_CASE("no prefetch_factor without workers: DataLoader refuses it") {
  const std::vector<LedgerRow> ledger = {
      row_of(1, {{"loader_prefetch", 1, 2, 4}}),
      row_of(2, {{"loader_workers", 1, 2, 0}, {"loader_prefetch", 1, 4, 0}})};
  const std::string text = run_recipe(ledger, kLoaders, "");
  CHECK(text.find("num_workers=0") != std::string::npos);
  CHECK(text.find("prefetch_factor") == std::string::npos);
}

TEST_CASE("workers that were kept are one word in the recipe") {
  const std::vector<LedgerRow> ledger = {row_of(1, {{"loader_persistent", 1, 0, 1}})};
  CHECK(run_recipe(ledger, kLoaders, "").find(
            "DataLoader(..., persistent_workers=True)  # PhotoDataset") != std::string::npos);
}

TEST_CASE(
    "a remedy without a line of code is a comment, and a loader without a name has a number") {
  const std::vector<LedgerRow> ledger = {row_of(1, {{"gc_limit", 0, 0, 1}}),
                                         row_of(2, {{"loader_workers", 7, 0, 1}})};
  const std::string text = run_recipe(ledger, kLoaders, "");
  CHECK(text.find("# gc_limit: 1 instead of 0") != std::string::npos);
  CHECK(text.find("DataLoader(..., num_workers=1)  # loader 7") != std::string::npos);
}


TEST_CASE("what guards the run and where workers may run have lines of their own") {
  const std::vector<LedgerRow> ledger = {row_of(1, {{"fd_limit", 0, 1024, 65536}}),
                                         row_of(2, {{"worker_affinity", 1, 0, 1}})};
  const std::string text = run_recipe(ledger, kLoaders, "");
  CHECK(text.find("resource.setrlimit(resource.RLIMIT_NOFILE, (65536, "
                  "resource.getrlimit(resource.RLIMIT_NOFILE)[1]))  # was 1024\n") != std::string::npos);
  CHECK(text.find("# at the end of worker_init_fn: os.sched_setaffinity(0, cpus)") != std::string::npos);
}

TEST_CASE("a guard that nobody measured leaves the gain of the measured changes on top") {
  LedgerRow guard = row_of(9, {{"fd_limit", 0, 1024, 65536}});
  CHECK(run_recipe(std::vector{guard}, kLoaders, "").starts_with("# what gpuutil kept in this run\n"));
  guard.protective = true;
  CHECK(run_recipe(std::vector{guard}, kLoaders, "").starts_with("# what gpuutil kept in this run\n"));
  CHECK(run_recipe(std::vector{kept_row(), guard}, kLoaders, "")
            .starts_with("# what gpuutil kept in this run, 1.78x together\n"));
}

}  // namespace
}  // namespace gpuutil
