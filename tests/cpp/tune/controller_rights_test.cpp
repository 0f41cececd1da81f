// What the controller may do: rungs, ranks, loaders that cannot change, requests by hand, replays.
#include <doctest/doctest.h>

#include "tune/controller.h"
#include "tune/simulated_trainer.h"

namespace gpuutil {

using testing::decode_bound;
using testing::SimulatedTrainer;
using testing::TrainerFacts;

namespace {

ControllerOptions with_rung(Rung rung) {
  ControllerOptions options;
  options.policy.rung = rung;
  return options;
}

const LedgerRow& row(const Controller& controller, int64_t id) {
  REQUIRE(controller.ledger().find(id) != nullptr);
  return *controller.ledger().find(id);
}

}  // namespace

TEST_CASE("observe changes nothing and says what it would do") {
  SimulatedTrainer trainer(decode_bound());
  Controller controller(with_rung(Rung::observe));
  trainer.run(&controller, 100);
  CHECK(trainer.commands.empty());
  CHECK(controller.ledger().rows().empty());
  REQUIRE(controller.withheld().size() == 1);
  CHECK(controller.withheld()[0].call == "mon.apply(\"loader_workers\")");
  CHECK(controller.withheld()[0].proposal.gain_high > 0.3);
}

TEST_CASE("what was withheld can be asked for by hand, and is kept") {
  SimulatedTrainer trainer(decode_bound());
  Controller controller(with_rung(Rung::observe));
  trainer.run(&controller, 50);
  CHECK(controller.request_apply("loader_workers").empty());
  CHECK_FALSE(controller.request_apply("bf16_autocast").empty());
  trainer.run(&controller, 100);
  CHECK(trainer.loader.workers == 2);
  CHECK(row(controller, 1).outcome == Outcome::kept);
  trainer.run(&controller, 1000);
  CHECK(controller.ledger().rows().size() == 1);
}

TEST_CASE("the exact rung moves workers of items that draw nothing, and leaves the threads") {
  TrainerFacts facts = decode_bound();
  facts.cores = 4;
  SimulatedTrainer draws(facts);
  Controller refused(with_rung(Rung::exact));
  draws.run(&refused, 200);
  CHECK(draws.loader.workers == 0);
  CHECK_FALSE(refused.withheld().empty());

  SimulatedTrainer exact(facts);
  exact.loader.draws_random = false;
  Controller allowed(with_rung(Rung::exact));
  exact.run(&allowed, 200);
  CHECK(exact.loader.workers > 0);
  CHECK(exact.threads == 2);
  CHECK(row(allowed, 1).exactness == Exactness::exact);
}

TEST_CASE("a loader whose workers cannot change gets one row that says why") {
  SimulatedTrainer trainer(decode_bound());
  trainer.loader.workers_changeable = false;
  trainer.loader.workers_reason = "an IterableDataset splits itself";
  Controller controller({});
  trainer.run(&controller, 500);
  CHECK(trainer.commands.empty());
  REQUIRE(controller.ledger().rows().size() == 1);
  CHECK(row(controller, 1).outcome == Outcome::refused);
  CHECK(row(controller, 1).conclusion.find("IterableDataset") != std::string::npos);
  CHECK(controller.request_apply("loader_workers") == "an IterableDataset splits itself");
}

TEST_CASE("with more than one rank it observes and advises") {
  SimulatedTrainer trainer(decode_bound());
  trainer.ranks = 2;
  Controller controller({});
  trainer.run(&controller, 200);
  CHECK(trainer.commands.empty());
  REQUIRE_FALSE(controller.withheld().empty());
  CHECK(controller.withheld()[0].why.find("rank") != std::string::npos);
  CHECK_FALSE(controller.request_apply("loader_workers").empty());
}

TEST_CASE("a replay applies its changes first and tries nothing") {
  ControllerOptions options;
  options.replay = {{"loader_workers", 1, 0, 1}, {"loader_prefetch", 1, 0, 2}};
  SimulatedTrainer trainer(decode_bound());
  Controller controller(options);
  trainer.turn(&controller);
  CHECK(trainer.loader.workers == 1);
  trainer.run(&controller, 1000);
  CHECK(trainer.commands.size() == 1);
  CHECK(trainer.loader.workers == 1);
  CHECK(row(controller, 1).outcome == Outcome::kept);
  CHECK(controller.request_revert(1).empty());
  trainer.run(&controller, 5);
  CHECK(trainer.loader.workers == 0);
}

}  // namespace gpuutil
