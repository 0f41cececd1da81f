#include "tune/loader_search.h"

#include <doctest/doctest.h>

namespace gpuutil {
namespace {

Features features(int workers, int threads, double cores) {
  Features f;
  LoaderFacts loader;
  loader.id = 7;
  loader.workers = loader.user_workers = workers;
  loader.prefetch = workers > 0 ? 2 : 0;
  loader.workers_changeable = true;
  f.loader = loader;
  f.main_threads = threads;
  f.host.cpu_budget_cores = cores;
  return f;
}

StepTimes times(double step, double wait) {
  StepTimes result;
  result.step_seconds = step;
  result.wait_seconds = wait;
  result.steps = 20;
  return result;
}

std::vector<Proposal> propose(const Features& f, const StepTimes& t, LoaderFreedom freedom = {},
                              std::vector<std::string> findings = {}) {
  const auto model = model_loader(f, t);
  REQUIRE(model);
  return LoaderSearch(f.main_threads).propose(f, *model, freedom, Policy{}, findings);
}

LoaderSetting reached(const Features& f, const Proposal& proposal) {
  return LoaderSearch::target({f.loader->workers, f.loader->prefetch, f.main_threads}, proposal);
}

}  // namespace

TEST_CASE("nothing is modelled before the CPU budget is known") {
  Features f = features(0, 2, 2);
  f.host.cpu_budget_cores.reset();
  CHECK_FALSE(model_loader(f, times(0.1, 0.08)));
  CHECK_FALSE(model_loader(Features{}, times(0.1, 0.08)));
}

TEST_CASE("the model ranks the settings of the two-core measurements as they were") {
  // Measured on two cores, ms: (0 workers, 2 threads) 128, (1,2) 144, (2,2) 133, (2,1) 91.
  Features f = features(0, 2, 2);
  f.fetch_cpu_ratio = 1.0;
  const auto model = model_loader(f, times(0.128, 0.083));
  REQUIRE(model);
  const double none = model->predict({0, 0, 2});
  const double together = model->predict({2, 2, 1});
  CHECK(none == doctest::Approx(0.128));
  CHECK(together < 0.75 * none);
  CHECK(together < model->predict({1, 2, 2}));
  CHECK(together < model->predict({2, 2, 2}));
  CHECK(model->predict({2, 2, 2}) > 1.2 * together);
}

TEST_CASE("decode-bound on two cores moves workers and main threads together") {
  Features f = features(0, 2, 2);
  f.fetch_cpu_ratio = 1.0;
  const auto proposals = propose(f, times(0.128, 0.1), {}, {"input_cpu_bound"});
  REQUIRE(proposals.size() == 1);
  CHECK(reached(f, proposals[0]) == LoaderSetting{2, 2, 1});
  CHECK(proposals[0].finding == "input_cpu_bound");
  CHECK(proposals[0].gain_low + proposals[0].gain_high >= 0.6);  // the fast path may keep it
  CHECK(proposals[0].changes.size() == 3);
}

TEST_CASE("latency-bound input takes more workers than cores, within cap and memory") {
  Features f = features(0, 2, 2);
  f.fetch_cpu_ratio = 0.03;
  const auto proposals = propose(f, times(0.22, 0.2), {}, {"input_latency_bound"});
  REQUIRE(proposals.size() == 1);
  CHECK(reached(f, proposals[0]).workers > 6);
  CHECK(reached(f, proposals[0]).workers <= Policy{}.max_workers);
  CHECK(proposals[0].finding == "input_latency_bound");
  f.host.available_memory_bytes = 2e9;  // half of it, at 200 MB a worker
  CHECK(reached(f, propose(f, times(0.22, 0.2))[0]).workers == 5);
}

TEST_CASE("far jumps are made in leaps, each of them measured") {
  Features f = features(0, 2, 2);
  f.fetch_cpu_ratio = 0.03;
  CHECK(reached(f, propose(f, times(0.11, 0.107)).front()).workers == Policy{}.first_workers);
  f = features(8, 1, 2);
  f.host.worker_cores = 0.2;
  CHECK(reached(f, propose(f, times(0.0135, 0.011)).front()).workers == 16);
  f = features(0, 2, 32);
  f.fetch_cpu_ratio = 1;
  CHECK(reached(f, propose(f, times(0.11, 0.107)).front()).workers > Policy{}.first_workers);
}

TEST_CASE("nearly the same number of workers is not tried again") {
  CHECK(nearly_same({30, 2, 1}, {32, 2, 1}));
  CHECK_FALSE(nearly_same({2, 2, 1}, {3, 2, 1}));
  CHECK_FALSE(nearly_same({30, 2, 1}, {32, 2, 2}));
  CHECK_FALSE(nearly_same({30, 2, 1}, {32, 4, 1}));
  Features f = features(16, 1, 2);
  f.host.worker_cores = 0.4;
  const auto model = model_loader(f, times(0.0075, 0.005));
  REQUIRE(model);
  LoaderSearch search(1);
  const auto first = search.propose(f, *model, {}, Policy{}, {});
  REQUIRE_FALSE(first.empty());
  REQUIRE(reached(f, first.front()).workers > 25);
  search.concluded({16, 2, 1}, first.front(), Outcome::inconclusive);
  for (const Proposal& again : search.propose(f, *model, {}, Policy{}, {})) {
    CHECK_FALSE(nearly_same(reached(f, again), reached(f, first.front())));
  }
}

TEST_CASE("a full budget has nothing for one more worker that computes, unless batches come unevenly") {
  Features f = features(2, 1, 2);
  f.host.own_cores = 0.15;
  f.host.worker_cores = 1.85;
  StepTimes even = times(0.034, 0.027);
  CHECK(propose(f, even).empty());
  StepTimes uneven = even;
  uneven.spread_ratio = 2;
  CHECK_FALSE(propose(f, uneven).empty());
}

TEST_CASE("input that is never late is left alone") {
  CHECK(propose(features(2, 2, 4), times(0.1, 0.0005)).empty());
  CHECK(propose(features(0, 2, 2), times(0.1, 0.001)).empty());
}

TEST_CASE("without freedom of threads the workers still move where that gains") {
  Features f = features(0, 2, 4);
  f.fetch_cpu_ratio = 1.0;
  const auto proposals = propose(f, times(0.13, 0.1), {.workers = true, .threads = false});
  REQUIRE(proposals.size() == 1);
  CHECK(reached(f, proposals[0]).threads == 2);
  CHECK(reached(f, proposals[0]).workers >= 2);
  CHECK(propose(f, times(0.13, 0.1), {.workers = false, .threads = false}).empty());
}

TEST_CASE("more threads than the user's run has are never proposed") {
  Features f = features(0, 1, 8);
  f.fetch_cpu_ratio = 1.0;
  for (const Proposal& proposal : propose(f, times(0.13, 0.1)))
    CHECK(reached(f, proposal).threads <= 1);
}

TEST_CASE("threads of a trainer on a device stay as they are") {
  Features f = features(0, 2, 2);
  f.device_is_host = false;
  f.fetch_cpu_ratio = 1.0;
  const auto proposals = propose(f, times(0.13, 0.1));
  REQUIRE(proposals.size() == 1);
  CHECK(reached(f, proposals[0]).threads == 2);
}

TEST_CASE("the class follows what the items draw and what threads do to sums") {
  Features f = features(0, 2, 2);
  f.loader->draws_random = false;
  CHECK(loader_proposal(f, {0, 0, 2}, {2, 2, 2}).exactness == Exactness::exact);
  CHECK(loader_proposal(f, {0, 0, 2}, {2, 2, 1}).exactness == Exactness::rounding);
  f.loader->draws_random = true;
  CHECK(loader_proposal(f, {0, 0, 2}, {2, 2, 1}).exactness == Exactness::distribution);
  CHECK(loader_proposal(f, {0, 0, 2}, {2, 2, 2}).exactness_reason.find("trainer's own stream") !=
        std::string::npos);
  f.loader->draws_random.reset();
  CHECK(loader_proposal(f, {2, 2, 2}, {3, 2, 2}).exactness == Exactness::distribution);
  CHECK(loader_proposal(f, {2, 2, 2}, {2, 4, 2}).exactness == Exactness::exact);
  f.device_is_host = false;
  CHECK(loader_proposal(f, {2, 2, 2}, {2, 2, 1}).exactness == Exactness::exact);
}

TEST_CASE("what failed twice in a direction is not tried a third time, until the run moves") {
  Features f = features(4, 1, 8);
  f.host.worker_cores = 1.0;
  f.host.own_cores = 1.0;
  LoaderSearch search(1);
  const auto next = [&] {
    const auto model = model_loader(f, times(0.1, 0.05));
    return search.propose(f, *model, {}, Policy{}, {});
  };
  int trials = 0;
  while (!next().empty()) {
    const Proposal proposal = next().front();
    search.concluded({4, 2, 1}, proposal, Outcome::undone);
    REQUIRE(++trials < 10);
  }
  CHECK(trials >= 2);
  search.forget_undecided();
  CHECK(next().empty());
  search.forget();
  CHECK_FALSE(next().empty());
}

TEST_CASE(
    "fewer workers are tried where input is never late, but not below the user's own number") {
  Features f = features(6, 1, 8);
  f.loader->user_workers = 0;
  const auto proposals = propose(f, times(0.1, 0.0001));
  REQUIRE(proposals.size() == 1);
  CHECK(proposals[0].saving);
  CHECK(reached(f, proposals[0]).workers == 4);
  f.loader->user_workers = 6;
  CHECK(propose(f, times(0.1, 0.0001)).empty());
}


TEST_CASE("a number of threads that a rule advises is proposed under its name, beyond the user's too") {
  LoaderFreedom freedom;
  freedom.thread_wish = ThreadWish{3, 0.1, 0.4, 0.6, "one thread computes"};
  const Features f = features(0, 1, 4);
  CHECK(propose(f, times(0.1, 0.0001)).empty());
  const auto proposals = propose(f, times(0.1, 0.0001), freedom);
  REQUIRE(proposals.size() == 1);
  CHECK(proposals[0].changes == std::vector<Change>{{"main_threads", 0, 1, 3}});
  CHECK(proposals[0].finding == "main_threads");
  CHECK(proposals[0].reason == "one thread computes");
  CHECK(proposals[0].exactness == Exactness::rounding);
  CHECK(proposals[0].gain_high == 0.4);
  freedom.threads = false;
  CHECK(propose(f, times(0.1, 0.0001), freedom).empty());
}

}  // namespace gpuutil
