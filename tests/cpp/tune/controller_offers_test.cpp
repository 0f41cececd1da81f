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

TEST_CASE("what is made only by hand is advice with its call, on every rung") {
  RemedyOffer offer = batch_fetch();
  offer.by_hand = true;
  SimulatedTrainer trainer = offered(1.6, offer);
  ControllerOptions options;
  options.policy.rung = Rung::all;
  Controller controller(options);
  trainer.run(&controller, 300);
  CHECK(trainer.commands.empty());
  REQUIRE_FALSE(controller.withheld().empty());
  CHECK(controller.withheld()[0].call == "mon.apply(\"loader_batch_fetch\")");
  CHECK(controller.request_apply("loader_batch_fetch").empty());
  trainer.run(&controller, 100);
  CHECK(trainer.loader.offers[0].value == 1);
  CHECK(controller.ledger().rows()[0].outcome == Outcome::kept);
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

// A limit that is near: no gain to measure, a danger to take away.
SimulatedTrainer near_a_limit(Severity severity) {
  RemedyOffer offer;
  offer.remedy = "fd_limit";
  offer.value = 1024;
  offer.to = 65536;
  offer.protective = offer.of_process = true;
  SimulatedTrainer trainer = offered(1.0, offer);
  Finding finding;
  finding.id = "fd_limit";
  finding.remedies = {"fd_limit"};
  finding.confidence = 0.9;
  finding.title = "700 descriptors are open and 1024 are allowed";
  finding.at_least = severity;
  trainer.extra_findings = {finding};
  return trainer;
}

TEST_CASE("a guard against a danger is put up without a trial, and kept") {
  SimulatedTrainer trainer = near_a_limit(Severity::warning);
  trainer.foreign_cores = 1.5;  // no trial could begin
  Controller controller({});
  trainer.run(&controller, 30);
  REQUIRE(controller.ledger().rows().size() == 1);
  const LedgerRow& row = controller.ledger().rows()[0];
  CHECK(row.outcome == Outcome::kept);
  CHECK(row.conclusion == "protective");
  CHECK(row.protective);
  CHECK(row.in_force);
  CHECK(row.undo == "mon.revert(1)");
  CHECK_FALSE(row.speedup.has_value());
  CHECK(row.changes == std::vector<Change>{{"fd_limit", 0, 1024, 65536}});
  CHECK(trainer.loader.offers[0].value == 65536);
  trainer.run(&controller, 500);
  CHECK(trainer.commands.size() == 1);
}

TEST_CASE("a guard is taken back by hand for good, and with everything else by STOP") {
  SimulatedTrainer trainer = near_a_limit(Severity::critical);
  Controller controller({});
  trainer.run(&controller, 30);
  CHECK(controller.request_revert(1).empty());
  trainer.run(&controller, 500);
  CHECK(trainer.loader.offers[0].value == 1024);
  CHECK(controller.ledger().rows()[0].outcome == Outcome::reverted);
  CHECK(trainer.commands.size() == 2);
  CHECK(controller.request_apply("fd_limit").empty());
  trainer.foreign_cores = 1.5;
  trainer.run(&controller, 30);
  CHECK(trainer.loader.offers[0].value == 65536);  // at once, as the first time
  CHECK(controller.ledger().rows().back().reason == "asked for by hand");

  SimulatedTrainer stopped = near_a_limit(Severity::critical);
  Controller other({});
  stopped.run(&other, 30);
  other.revert_all("STOP file");
  stopped.run(&other, 30);
  CHECK(stopped.loader.offers[0].value == 1024);
}

TEST_CASE("a guard that STOP overtakes on its way is taken back when it arrives") {
  SimulatedTrainer trainer = near_a_limit(Severity::warning);
  Controller controller({});
  trainer.hands = testing::Hands::silent;
  trainer.run(&controller, 30);
  REQUIRE(trainer.commands.size() == 1);
  controller.revert_all("STOP file");
  controller.applied(trainer.commands[0].id);
  const std::optional<Command> undo = controller.poll(trainer.now_ns);
  REQUIRE(undo);
  CHECK(undo->kind == CommandKind::revert);
}

TEST_CASE("a guard waits for a danger, for the right to act and for one rank") {
  SimulatedTrainer harmless = near_a_limit(Severity::info);
  Controller calm({});
  harmless.run(&calm, 300);
  CHECK(harmless.commands.empty());

  SimulatedTrainer watched = near_a_limit(Severity::critical);
  ControllerOptions options;
  options.policy.rung = Rung::observe;
  Controller observer(options);
  watched.run(&observer, 300);
  CHECK(watched.commands.empty());
  REQUIRE(observer.withheld().size() >= 1);
  CHECK(observer.withheld()[0].call == "mon.apply(\"fd_limit\")");

  SimulatedTrainer ranked = near_a_limit(Severity::critical);
  ranked.ranks = 2;
  Controller careful({});
  ranked.run(&careful, 300);
  CHECK(ranked.commands.empty());
}

TEST_CASE("a guard that the hands cannot put up is told once and not asked for again") {
  SimulatedTrainer trainer = near_a_limit(Severity::warning);
  trainer.hands = testing::Hands::failing;
  Controller controller({});
  trainer.run(&controller, 1000);
  CHECK(trainer.commands.size() == 1);
  CHECK(controller.ledger().rows()[0].outcome == Outcome::failed);
  CHECK_FALSE(controller.ledger().rows()[0].in_force);
}

TEST_CASE("a guard leaves the search for what gains as it was") {
  SimulatedTrainer trainer = near_a_limit(Severity::warning);
  trainer.loader.offers.push_back(batch_fetch());
  Finding finding;
  finding.id = "per_row_fetch";
  finding.remedies = {"loader_batch_fetch"};
  finding.gain_ratio = {0.2, 0.5};
  finding.confidence = 0.8;
  trainer.extra_findings.push_back(finding);
  trainer.offer_speedup = 1.6;
  Controller controller({});
  trainer.run(&controller, 600);
  REQUIRE(controller.ledger().rows().size() == 2);
  CHECK(controller.ledger().rows()[0].protective);
  CHECK(controller.ledger().rows()[1].outcome == Outcome::kept);
  CHECK(controller.ledger().rows()[1].speedup.has_value());
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
