#include "tune/ledger.h"

#include <doctest/doctest.h>

namespace gpuutil {
namespace {

Change workers(int64_t from, int64_t to, uint32_t loader = 1) {
  return {"loader_workers", loader, from, to};
}
Change threads(int64_t from, int64_t to) { return {"main_threads", 0, from, to}; }

int64_t add(Ledger& ledger, std::vector<Change> changes, bool in_force = true) {
  LedgerRow row;
  row.changes = std::move(changes);
  row.in_force = in_force;
  row.outcome = in_force ? Outcome::kept : Outcome::undone;
  return ledger.add(row);
}

}  // namespace

TEST_CASE("ids count from one and rows are found by them") {
  Ledger ledger;
  CHECK(add(ledger, {workers(0, 2)}) == 1);
  CHECK(add(ledger, {threads(2, 1)}) == 2);
  REQUIRE(ledger.find(2) != nullptr);
  CHECK(ledger.find(2)->remedy() == "main_threads");
  CHECK(ledger.find(3) == nullptr);
}

TEST_CASE("the recipe is the code that makes a change permanent") {
  CHECK(recipe({workers(0, 2), {"loader_prefetch", 1, 0, 2}, threads(2, 1)}) ==
        "DataLoader(..., num_workers=2, prefetch_factor=2)\ntorch.set_num_threads(1)");
  CHECK(recipe({threads(2, 1)}) == "torch.set_num_threads(1)");
  CHECK(recipe({{"loader_batch_fetch", 1, 0, 1}}) ==
        "DataLoader(..., batch_size=None, sampler=BatchSampler(sampler, batch_size, drop_last))");
  CHECK(recipe({{"loader_batch_fetch", 1, 0, 2}}) ==
        "# collate_fn: one numpy.stack a field instead of one tensor a sample");
  CHECK(recipe({{"loader_persistent", 1, 0, 1}}) == "DataLoader(..., persistent_workers=True)");
  CHECK(describe({{"loader_persistent", 1, 0, 1}}) == "persistent workers 0 -> 1");
  CHECK(recipe({{"fd_limit", 0, 1024, 65536}}) ==
        "resource.setrlimit(resource.RLIMIT_NOFILE, (65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))");
  CHECK(recipe({{"worker_affinity", 1, 0, 1}}) ==
        "# at the end of worker_init_fn: os.sched_setaffinity(0, cpus), with the trainer's own CPUs");
  CHECK(recipe({}).empty());
}

TEST_CASE("what is built upon a row is undone before it, the rest stays") {
  Ledger ledger;
  const int64_t first = add(ledger, {workers(0, 2), threads(2, 1)});
  const int64_t other = add(ledger, {workers(0, 4, 2)});
  const int64_t second = add(ledger, {workers(2, 3)});
  const int64_t undone = add(ledger, {workers(3, 4)}, false);
  const int64_t third = add(ledger, {threads(1, 2)});
  CHECK(ledger.undo_order(first) == std::vector<int64_t>{third, second, first});
  CHECK(ledger.undo_order(other) == std::vector<int64_t>{other});
  CHECK(ledger.undo_order(undone).empty());
  CHECK(ledger.undo_order(99).empty());
}

TEST_CASE("changes in force add up to one value for each setting") {
  Ledger ledger;
  add(ledger, {workers(0, 2), threads(2, 1)});
  add(ledger, {workers(2, 3)});
  add(ledger, {threads(1, 2)});
  CHECK(ledger.in_force() == std::vector<Change>{workers(0, 3)});
}

TEST_CASE("the ledger is bounded and never drops a change in force") {
  Ledger ledger(4);
  const int64_t kept = add(ledger, {workers(0, 2)});
  for (int i = 0; i < 20; ++i) add(ledger, {threads(2, 1)}, false);
  CHECK(ledger.rows().size() == 4);
  CHECK(ledger.dropped() == 17);
  REQUIRE(ledger.find(kept) != nullptr);
  CHECK(ledger.rows().back().id == 21);
}

}  // namespace gpuutil
