// Changes that the hands offer and findings ask for: tried once, measured, kept or taken back like any other.
#include <doctest/doctest.h>

#include "tune/controller.h"
#include "tune/simulated_trainer.h"

namespace gpuutil {

using testing::SimulatedTrainer;
using testing::TrainerFacts;

namespace {

// Compute-bound as far as workers go: only what is offered helps.
SimulatedTrainer offered(double speedup, RemedyOffer offer) {
  TrainerFacts facts;
  facts.input_seconds = 0.0004;
  facts.trainer_seconds = 0.02;
  SimulatedTrainer trainer(facts);
  trainer.offer_speedup = speedup;
  Finding finding;
  finding.id = "per_row_fetch";
  finding.remedies = {"not_there", offer.remedy};
  finding.gain_ratio = {0.2, 0.5};
  finding.confidence = 0.8;
  finding.title = "rows are fetched one by one";
  trainer.extra_findings = {finding};
  trainer.loader.offers = {std::move(offer)};
  return trainer;
}

RemedyOffer batch_fetch() {
  RemedyOffer offer;
  offer.remedy = "loader_batch_fetch";
  offer.to = 1;
  return offer;
}

}  // namespace

TEST_CASE("an offer that a finding asks for is tried, and kept where it helps") {
  SimulatedTrainer trainer = offered(1.6, batch_fetch());
  Controller controller({});
  trainer.run(&controller, 400);
  REQUIRE(controller.ledger().rows().size() == 1);
  const LedgerRow& row = controller.ledger().rows()[0];
  CHECK(row.outcome == Outcome::kept);
  CHECK(row.finding == "per_row_fetch");
  CHECK(row.reason == "rows are fetched one by one");
  CHECK(row.changes == std::vector<Change>{{"loader_batch_fetch", 1, 0, 1}});
  CHECK(row.speedup->low > 1.3);
  CHECK(trainer.loader.offers[0].value == 1);
  CHECK(controller.request_revert(row.id).empty());
  trainer.run(&controller, 50);
  CHECK(trainer.loader.offers[0].value == 0);
  trainer.run(&controller, 2000);
  CHECK(trainer.loader.offers[0].value == 0);  // taken back by the user: never again unasked
}

TEST_CASE("an offer that does not help is taken back and not tried again") {
  SimulatedTrainer trainer = offered(1.0, batch_fetch());
  ControllerOptions options;
  options.policy.backoff_ns = 1'000'000'000'000'000;
  Controller controller(options);
  trainer.run(&controller, 3000);
  REQUIRE(controller.ledger().rows().size() == 1);
  CHECK_FALSE(controller.ledger().rows()[0].in_force);
  CHECK(trainer.loader.offers[0].value == 0);
}

TEST_CASE("an offer beyond the rung is withheld with the call, and can be asked for by hand") {
  RemedyOffer offer = batch_fetch();
  offer.exactness = Exactness::distribution;
  SimulatedTrainer trainer = offered(1.6, offer);
  ControllerOptions options;
  options.policy.rung = Rung::exact;
  Controller controller(options);
  trainer.run(&controller, 100);
  CHECK(trainer.commands.empty());
  REQUIRE(controller.withheld().size() == 1);
  CHECK(controller.withheld()[0].call == "mon.apply(\"loader_batch_fetch\")");
  CHECK(controller.request_apply("loader_batch_fetch").empty());
  trainer.run(&controller, 100);
  CHECK(trainer.loader.offers[0].value == 1);
  CHECK_FALSE(controller.request_apply("loader_batch_fetch").empty());  // in force already
}

TEST_CASE("an offer that is refused has its reason in the ledger, once") {
  RemedyOffer offer = batch_fetch();
  offer.refusal = "the tensors require gradients";
  SimulatedTrainer trainer = offered(1.6, offer);
  Controller controller({});
  trainer.run(&controller, 500);
  CHECK(trainer.commands.empty());
  REQUIRE(controller.ledger().rows().size() == 1);
  CHECK(controller.ledger().rows()[0].outcome == Outcome::refused);
  CHECK(controller.ledger().rows()[0].conclusion ==
        "not possible: the tensors require gradients");
  CHECK(controller.request_apply("loader_batch_fetch") == "the tensors require gradients");
}

TEST_CASE("what begins with the next epoch is compared by whole epochs, without a deadline") {
  RemedyOffer offer = batch_fetch();
  offer.at_epoch_turn = true;
  SimulatedTrainer trainer = offered(1.6, offer);
  trainer.facts.epoch_steps = 40;
  ControllerOptions options;
  options.policy.deadline_ns = 100'000'000;
  Controller controller(options);
  trainer.start_steps = 40;
  trainer.run(&controller, 1500);
  REQUIRE(controller.ledger().rows().size() == 1);
  CHECK(controller.ledger().rows()[0].outcome == Outcome::kept);
  CHECK(trainer.loader.offers[0].value == 1);
}

TEST_CASE("with more than one rank offers are advice") {
  SimulatedTrainer trainer = offered(1.6, batch_fetch());
  trainer.ranks = 2;
  Controller controller({});
  trainer.run(&controller, 300);
  CHECK(trainer.commands.empty());
  CHECK_FALSE(controller.withheld().empty());
}

}  // namespace gpuutil
