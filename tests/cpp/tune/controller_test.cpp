#include "tune/controller.h"

#include <doctest/doctest.h>

#include "tune/simulated_trainer.h"

namespace gpuutil {

using testing::decode_bound;
using testing::Hands;
using testing::SimulatedTrainer;
using testing::TrainerFacts;

namespace {

const LedgerRow& row(const Controller& controller, int64_t id) {
  REQUIRE(controller.ledger().find(id) != nullptr);
  return *controller.ledger().find(id);
}

}  // namespace

TEST_CASE("decode-bound on two cores ends near the best of the whole grid, and soon") {
  for (const double speedup : {1.13, 1.34, 1.9}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      TrainerFacts facts = decode_bound();
      facts.thread_speedup = {1, speedup};
      SimulatedTrainer trainer(facts, seed);
      Controller controller({});
      const double best = trainer.best_of_grid(6, 2);
      trainer.run(&controller, 60);
      CHECK(best / trainer.truth_now() >= 0.95);
      trainer.run(&controller, 1500);
      CHECK(best / trainer.truth_now() >= 0.95);
      CHECK(trainer.threads == 1);
      CHECK(row(controller, 1).outcome == Outcome::kept);
      CHECK(row(controller, 1).speedup->low > 1.3);
      CHECK(row(controller, 1).undo == "mon.revert(1)");
      CHECK(row(controller, 1).before.cpu_seconds_per_sample);
      CHECK(controller.recipe_now().find("torch.set_num_threads(1)") != std::string::npos);
    }
  }
}

TEST_CASE("latency-bound input gets many workers") {
  TrainerFacts facts;
  facts.input_seconds = 0.2;
  facts.input_cpu_share = 0.05;
  facts.trainer_seconds = 0.012;
  facts.thread_speedup = {1, 1.2};
  SimulatedTrainer trainer(facts);
  Controller controller({});
  trainer.run(&controller, 120);
  CHECK(trainer.best_of_grid(32, 2) / trainer.truth_now() >= 0.95);
  CHECK(trainer.loader.workers >= 12);
}

TEST_CASE("input that varies is found too") {
  TrainerFacts facts = decode_bound();
  facts.noise_ratio = 0.25;
  facts.spike_ratio = 0.03;
  SimulatedTrainer trainer(facts, 5);
  Controller controller({});
  trainer.run(&controller, 1500);
  CHECK(trainer.best_of_grid(6, 2) / trainer.truth_now() >= 0.95);
}

TEST_CASE("a good setting and a compute-bound loop are left alone") {
  TrainerFacts good;
  good.input_seconds = 0.03;
  good.trainer_seconds = 0.1;
  good.cores = 4;
  SimulatedTrainer fed(good);
  fed.loader.workers = fed.loader.user_workers = fed.loader.prefetch = 2;
  TrainerFacts compute;
  compute.input_seconds = 0.001;
  compute.trainer_seconds = 0.1;
  SimulatedTrainer busy(compute);
  TrainerFacts drifting = compute;
  drifting.drift_per_step = 0.001;
  SimulatedTrainer moving(drifting);
  for (SimulatedTrainer* trainer : {&fed, &busy, &moving}) {
    Controller controller({});
    trainer->run(&controller, 3000);
    CHECK(trainer->commands.empty());
    CHECK(controller.ledger().rows().empty());
    CHECK(controller.state(trainer->now_ns).activity == Activity::idle);
  }
}

TEST_CASE("a large gain is found through drift, and drift is no regression") {
  TrainerFacts facts = decode_bound();
  facts.drift_per_step = 0.001;
  SimulatedTrainer trainer(facts);
  Controller controller({});
  trainer.run(&controller, 3000);
  CHECK(trainer.loader.workers >= 2);
  CHECK(row(controller, 1).in_force);
}

TEST_CASE("trials wait while others use our cores, and go on afterwards") {
  SimulatedTrainer trainer(decode_bound());
  Controller controller({});
  trainer.foreign_cores = 0.6;
  controller.observe_host(trainer.host());
  trainer.run(&controller, 100);
  CHECK(trainer.commands.empty());
  CHECK(controller.state(trainer.now_ns).activity == Activity::holding);
  CHECK(controller.state(trainer.now_ns).foreign_cores == 0.6);
  trainer.foreign_cores = 0;
  trainer.run(&controller, 100);
  CHECK(trainer.loader.workers == 2);
}

TEST_CASE("a load that appears within a trial stops the measuring, and in the end the trial") {
  TrainerFacts facts = decode_bound();
  facts.input_seconds = 0.02;  // too little for the fast path
  facts.trainer_seconds = 0.1;
  facts.cores = 4;
  SimulatedTrainer trainer(facts);
  Controller controller({});
  while (controller.state(trainer.now_ns).trial_ledger_id == 0 && trainer.index < 200) {
    trainer.turn(&controller);
  }
  REQUIRE(controller.state(trainer.now_ns).activity == Activity::trial);
  trainer.foreign_cores = 1;
  trainer.run(&controller, 400);
  CHECK(trainer.loader.workers == 0);
  CHECK(row(controller, 1).outcome == Outcome::inconclusive);
  CHECK_FALSE(row(controller, 1).in_force);
}

TEST_CASE("a remedy that fails is written down and not repeated at once") {
  SimulatedTrainer trainer(decode_bound());
  trainer.hands = Hands::failing;
  Controller controller({});
  trainer.run(&controller, 300);
  CHECK(row(controller, 1).outcome == Outcome::failed);
  CHECK(row(controller, 1).conclusion == "no memory for another process");
  CHECK(trainer.loader.workers == 0);
  CHECK(trainer.commands.size() <= 3);
}

TEST_CASE("a change that never takes effect is taken back") {
  SimulatedTrainer trainer(decode_bound());
  trainer.hands = Hands::never_effective;
  Controller controller({});
  trainer.run(&controller, 1200);
  CHECK(row(controller, 1).outcome == Outcome::failed);
  CHECK_FALSE(row(controller, 1).in_force);
  REQUIRE(trainer.commands.size() >= 2);
  CHECK(trainer.commands[1].kind == CommandKind::revert);
}

TEST_CASE("hands that never answer get no second command") {
  SimulatedTrainer trainer(decode_bound());
  trainer.hands = Hands::silent;
  Controller controller({});
  trainer.run(&controller, 2000);
  CHECK(trainer.commands.size() == 1);
}

TEST_CASE("a kept change that becomes slower than the run without it is undone") {
  SimulatedTrainer trainer(decode_bound());
  Controller controller({});
  trainer.run(&controller, 400);
  REQUIRE(row(controller, 1).in_force);
  trainer.worker_slowdown = 2.6;  // say, the workers' disk became slow
  trainer.run(&controller, 1500);
  CHECK(row(controller, 1).outcome == Outcome::undone);
  CHECK_FALSE(row(controller, 1).in_force);
  CHECK(trainer.loader.workers == 0);
}

TEST_CASE("workers that start again at each turn of a long epoch are undone by what epochs cost") {
  TrainerFacts facts = decode_bound();
  facts.epoch_steps = 100;
  facts.turn_seconds = 6;
  SimulatedTrainer trainer(facts);
  Controller controller({});
  trainer.run(&controller, 3000);
  CHECK(row(controller, 1).outcome == Outcome::undone);
  CHECK(trainer.loader.workers == 0);
}

TEST_CASE("what the user takes back stays back, and what was built upon it goes first") {
  TrainerFacts facts = decode_bound();
  SimulatedTrainer trainer(facts);
  Controller controller({});
  trainer.run(&controller, 500);
  REQUIRE(row(controller, 1).in_force);
  CHECK(controller.request_revert(1).empty());
  trainer.run(&controller, 1500);
  CHECK(row(controller, 1).outcome == Outcome::reverted);
  CHECK(row(controller, 1).undo.empty());
  CHECK(trainer.loader.workers == 0);
  CHECK(trainer.threads == 2);
  CHECK_FALSE(controller.request_revert(1).empty());
  CHECK_FALSE(controller.request_revert(99).empty());
}

TEST_CASE("STOP in any state ends at the user's settings, and nothing is tried afterwards") {
  for (int at = 0; at < 400; at += 7) {
    CAPTURE(at);
    TrainerFacts facts = decode_bound();
    if (at % 2 == 0) {  // the long way: no fast path
      facts.input_seconds = 0.03;
      facts.trainer_seconds = 0.1;
      facts.cores = 4;
    }
    SimulatedTrainer trainer(facts);
    Controller controller({});
    trainer.run(&controller, at);
    controller.revert_all("STOP file");
    trainer.run(&controller, 30);
    CHECK(trainer.loader.workers == 0);
    CHECK(trainer.loader.prefetch == 0);
    CHECK(trainer.threads == 2);
    const size_t commands = trainer.commands.size();
    trainer.run(&controller, 300);
    CHECK(trainer.commands.size() == commands);
    CHECK(controller.state(trainer.now_ns).activity == Activity::stopped);
    for (const LedgerRow& one : controller.ledger().rows()) CHECK_FALSE(one.in_force);
  }
}

TEST_CASE("no trial begins in the last twentieth of a run of known length") {
  SimulatedTrainer trainer(decode_bound());
  trainer.index = 960;
  Controller controller({});
  controller.set_run_length(1000);
  trainer.run(&controller, 40);
  CHECK(trainer.commands.empty());
}

TEST_CASE("a trial that the end of the run overtakes is taken back") {
  TrainerFacts facts;
  facts.input_seconds = 0.01;
  facts.trainer_seconds = 0.1;
  facts.noise_ratio = 0.1;
  facts.cores = 4;
  SimulatedTrainer trainer(facts);
  Controller controller({});
  controller.set_run_length(100);
  trainer.run(&controller, 100);
  CHECK(trainer.loader.workers == 0);
}

TEST_CASE("epochs of a few steps are compared as wholes") {
  TrainerFacts facts = decode_bound();
  facts.epoch_steps = 15;
  facts.turn_seconds = 0.02;
  SimulatedTrainer cheap(facts);
  Controller first({});
  cheap.run(&first, 600);
  CHECK(cheap.loader.workers >= 2);
  facts.turn_seconds = 0.6;  // more than fifteen faster steps bring
  SimulatedTrainer dear(facts);
  Controller second({});
  dear.run(&second, 1500);
  CHECK(dear.loader.workers == 0);
}

TEST_CASE("tuning stops when it has cost what it may") {
  ControllerOptions options;
  options.policy.regret_credit_seconds = 0;
  options.policy.regret_ratio = 0;
  SimulatedTrainer trainer(decode_bound());
  Controller controller(options);
  trainer.run(&controller, 300);
  CHECK(trainer.commands.empty());
  CHECK(controller.state(trainer.now_ns).text == "tuning has cost what it may");
}

TEST_CASE("a search that found nothing sleeps, and wakes when the run moves") {
  TrainerFacts facts = decode_bound();
  SimulatedTrainer trainer(facts);
  trainer.worker_slowdown = 3;  // workers do not help here
  ControllerOptions options;
  options.policy.regret_credit_seconds = 1000;
  options.policy.backoff_ns = 1'000'000'000'000'000;
  Controller controller(options);
  trainer.run(&controller, 1000);
  const size_t tried = controller.ledger().rows().size();
  CHECK(tried >= 1);
  CHECK(trainer.loader.workers == 0);
  trainer.run(&controller, 1000);
  CHECK(controller.ledger().rows().size() == tried);
  trainer.facts.input_seconds *= 2;
  trainer.worker_slowdown = 1;
  trainer.run(&controller, 500);
  CHECK(controller.ledger().rows().size() > tried);
  CHECK(trainer.loader.workers == 2);
}

TEST_CASE("a change that breaks after it was kept is taken back") {
  SimulatedTrainer trainer(decode_bound());
  Controller controller({});
  trainer.run(&controller, 60);
  REQUIRE(row(controller, 1).in_force);
  const int64_t command = trainer.commands.front().id;
  controller.failed(command, "an exception in a worker");
  trainer.run(&controller, 30);
  CHECK(row(controller, 1).outcome == Outcome::failed);
  CHECK_FALSE(row(controller, 1).in_force);
  CHECK(trainer.loader.workers == 0);
}

TEST_CASE("a run that ends leaves no row without an outcome, and what was kept stays kept") {
  for (int at = 0; at < 400; at += 3) {
    CAPTURE(at);
    TrainerFacts facts = decode_bound();
    if (at % 2 == 0) {  // the long way: no fast path
      facts.input_seconds = 0.03;
      facts.trainer_seconds = 0.1;
      facts.cores = 4;
    }
    SimulatedTrainer trainer(facts);
    Controller controller({});
    trainer.run(&controller, at);
    std::vector<Outcome> before;
    for (const LedgerRow& one : controller.ledger().rows()) before.push_back(one.outcome);
    controller.run_ended();
    CHECK_FALSE(controller.poll(trainer.now_ns));
    REQUIRE(controller.ledger().rows().size() == before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      const LedgerRow& one = controller.ledger().rows()[i];
      CHECK(one.outcome != Outcome::running);
      CHECK(one.in_force == (one.outcome == Outcome::kept));
      if (before[i] != Outcome::running) CHECK(one.outcome == before[i]);
    }
  }
}

TEST_CASE("the same inputs give the same decisions") {
  std::vector<std::vector<Command>> runs;
  for (int i = 0; i < 2; ++i) {
    SimulatedTrainer trainer(decode_bound(), 11);
    Controller controller({});
    trainer.run(&controller, 800);
    runs.push_back(trainer.commands);
  }
  REQUIRE(runs[0].size() == runs[1].size());
  for (size_t i = 0; i < runs[0].size(); ++i) {
    CHECK(runs[0][i].id == runs[1][i].id);
    CHECK(runs[0][i].changes == runs[1][i].changes);
  }
}

}  // namespace gpuutil
