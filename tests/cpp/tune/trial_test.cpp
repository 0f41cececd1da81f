#include "tune/trial.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tune/simulate_trial.h"

namespace gpuutil {
namespace {

TrialSetup setup(double predicted = 0.05) {
  TrialSetup result;
  result.proposal.gain_low = result.proposal.gain_high = predicted;
  result.step_seconds = 0.1;
  return result;
}

// Drives a trial: a step takes `before` seconds, `after` with the change in force.
struct Driver {
  Trial trial;
  double before = 0.1;
  double after = 0.1;
  int64_t index = 0;
  int64_t now_ns = 0;
  int applies = 0;
  int reverts = 0;
  int delay_steps = 0;  // from the answer to the effect
  std::optional<int64_t> due;
  bool answer = true;
  int64_t epoch_steps = 1'000'000;
  double turn_seconds = 0;  // with the change, at each epoch turn

  explicit Driver(const TrialSetup& s) : trial(s, Policy{}) {}

  void step(bool held = false, bool countable = true) {
    StepSample sample;
    sample.index = index++;
    sample.epoch = sample.index / epoch_steps;
    const bool turn = sample.index > 0 && sample.index % epoch_steps == 0;
    sample.seconds =
        (trial.in_force() ? after : before) * (1 + 0.01 * static_cast<double>(index % 3));
    if (turn && trial.in_force()) sample.seconds += turn_seconds;
    sample.countable = countable && !turn;
    sample.held = held;
    sample.counts_samples = true;
    sample.work = 4;
    now_ns += static_cast<int64_t>(sample.seconds * 1e9);
    trial.observe(sample);
    trial.check_deadline(now_ns);
    if (due && sample.index >= *due) {
      due.reset();
      trial.effective(sample.index);
    }
    const auto wanted = trial.wanted();
    if (!wanted) return;
    (*wanted == CommandKind::apply ? applies : reverts) += 1;
    trial.sent(now_ns);
    if (!answer) return;
    trial.applied();
    due = sample.index + delay_steps;
  }

  void run(int most = 5000) {
    while (!trial.done() && most-- > 0) step();
  }
};

}  // namespace

TEST_CASE("a clear gain is kept, and measured without and with the change") {
  Driver driver(setup());
  driver.after = 0.08;
  driver.run();
  REQUIRE(driver.trial.done());
  CHECK(driver.trial.result().outcome == Outcome::kept);
  CHECK(driver.trial.in_force());
  CHECK(driver.applies == driver.reverts + 1);
  CHECK(driver.applies >= 4);  // in turns, not once
  CHECK(driver.trial.result().speedup->mid == doctest::Approx(1.25).epsilon(0.02));
  CHECK(*driver.trial.result().before.step_seconds == doctest::Approx(0.101).epsilon(0.02));
  CHECK(*driver.trial.result().after.samples_per_second ==
        doctest::Approx(4 / 0.0808).epsilon(0.02));
}

TEST_CASE("a change without effect is taken back") {
  Driver driver(setup());
  driver.run();
  CHECK(driver.trial.result().outcome == Outcome::undone);
  CHECK_FALSE(driver.trial.in_force());
  CHECK(driver.applies == driver.reverts);
}

TEST_CASE("a large predicted gain is kept after eight steps and then verified") {
  Driver driver(setup(0.5));
  driver.after = 0.05;
  while (!driver.trial.result().provisional && driver.index < 100) driver.step();
  CHECK(driver.index <= 12 + 6 + 8);
  CHECK_FALSE(driver.trial.done());
  CHECK(driver.trial.result().speedup);
  driver.run();
  CHECK(driver.trial.result().outcome == Outcome::kept);
  CHECK_FALSE(driver.trial.result().provisional);
  CHECK(driver.applies == 1);
  CHECK(driver.reverts == 0);
  CHECK(driver.index < 60);
}

TEST_CASE("a provisional keep that does not last is not kept") {
  Driver driver(setup(0.5));
  driver.after = 0.05;
  while (!driver.trial.result().provisional && driver.index < 100) driver.step();
  driver.after = 0.13;  // the queue's head start is used up
  driver.run();
  CHECK(driver.trial.result().outcome == Outcome::undone);
  CHECK_FALSE(driver.trial.in_force());
}

TEST_CASE("a change that is clearly slower goes after a few steps") {
  Driver driver(setup(0.5));
  driver.after = 0.2;
  driver.run();
  CHECK(driver.trial.result().outcome == Outcome::undone);
  CHECK(driver.index < 40);
  CHECK(driver.trial.result().regret_seconds == doctest::Approx(14 * 0.1).epsilon(0.3));
}

TEST_CASE("steps in flight are discarded") {
  TrialSetup with_flight = setup(0.5);
  with_flight.proposal.settle_steps = 12;
  Driver driver(with_flight);
  driver.after = 0.05;
  while (!driver.trial.in_force()) driver.step();
  // The queue still holds what was made before: these must not count.
  driver.after = 0.001;
  for (int i = 0; i < 12; ++i) driver.step();
  driver.after = 0.05;
  driver.run();
  CHECK(driver.trial.result().speedup->high < 2.2);
}

TEST_CASE("a remedy that fails leaves nothing in force") {
  Driver driver(setup());
  driver.answer = false;
  while (!driver.trial.awaiting_answer()) driver.step();
  driver.trial.failed("no memory");
  CHECK(driver.trial.done());
  CHECK(driver.trial.result().outcome == Outcome::failed);
  CHECK(driver.trial.result().conclusion == "no memory");
  CHECK_FALSE(driver.trial.in_force());
}

TEST_CASE("a change that never takes effect is taken back after the deadline") {
  Driver driver(setup());
  driver.delay_steps = 1'000'000;
  driver.run(2000);
  REQUIRE(driver.trial.done());
  CHECK(driver.trial.result().outcome == Outcome::failed);
  CHECK(driver.reverts == 1);
  CHECK_FALSE(driver.trial.in_force());
}

TEST_CASE("an answer after the deadline is undone") {
  Driver driver(setup());
  driver.answer = false;
  driver.run(1000);
  CHECK_FALSE(driver.trial.done());  // the command is out: it may still take effect
  CHECK_FALSE(driver.trial.wanted());
  driver.trial.applied();
  CHECK(driver.trial.wanted() == CommandKind::revert);
  driver.trial.sent(driver.now_ns);
  driver.trial.applied();
  CHECK(driver.trial.done());
  CHECK_FALSE(driver.trial.in_force());
}

TEST_CASE("an undo that fails is asked for again, and then said to have failed") {
  Driver driver(setup());
  while (!driver.trial.in_force()) driver.step();
  driver.trial.give_up(Outcome::reverted, "STOP", true);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(driver.trial.wanted() == CommandKind::revert);
    driver.trial.sent(0);
    driver.trial.failed("busy");
  }
  CHECK(driver.trial.done());
  CHECK(driver.trial.result().undo_failed);
  CHECK(driver.trial.in_force());
}

TEST_CASE("steps while others take CPU count in no arm, and too many of them end the trial") {
  Driver driver(setup());
  for (int i = 0; i < 500 && !driver.trial.done(); ++i) driver.step(true);
  CHECK(driver.trial.done());
  CHECK(driver.trial.result().outcome == Outcome::inconclusive);
  CHECK(driver.applies == 0);
}

TEST_CASE("short epochs are compared as wholes: what turns cost decides") {
  Driver cheap(setup(0.5));
  cheap.epoch_steps = 10;
  cheap.after = 0.05;
  cheap.turn_seconds = 0.1;
  cheap.run();
  CHECK(cheap.trial.result().outcome == Outcome::kept);
  CHECK(cheap.trial.setup().epoch_mode);
  CHECK(cheap.trial.result().speedup->mid < 1.9);

  Driver dear(setup(0.5));
  dear.epoch_steps = 10;
  dear.after = 0.05;
  dear.turn_seconds = 0.7;
  dear.run();
  CHECK(dear.trial.result().outcome == Outcome::undone);
  CHECK_FALSE(dear.trial.in_force());
}

TEST_CASE("a second look undoes a change that gains nothing any more and keeps one that does") {
  TrialSetup look = setup();
  look.in_force = true;
  Driver lost(look);
  lost.after = 0.11;
  lost.run();
  CHECK(lost.trial.result().outcome == Outcome::undone);
  CHECK_FALSE(lost.trial.in_force());
  Driver good(look);
  good.after = 0.08;
  good.run();
  CHECK(good.trial.result().outcome == Outcome::kept);
  CHECK(good.trial.in_force());
}

TEST_CASE("what was asked for by hand is measured once and kept") {
  TrialSetup wanted = setup();
  wanted.by_hand = true;
  Driver driver(wanted);
  driver.after = 0.12;
  driver.run();
  CHECK(driver.trial.result().outcome == Outcome::kept);
  CHECK(driver.trial.in_force());
  CHECK(driver.applies == 1);
  CHECK(driver.reverts == 0);
  CHECK(driver.trial.result().speedup->mid < 0.9);
}

TEST_CASE("bursts of workers do not look like a gain") {
  TrialSetup bursts = setup(0.5);
  bursts.proposal.burst_to = 4;
  Trial trial(bursts, Policy{});
  for (int64_t i = 0; !trial.done() && i < 4000; ++i) {
    StepSample sample;
    sample.index = i;
    // With four workers three steps in four are free and the fourth waits for all: the mean is the
    // same.
    sample.seconds = trial.in_force() ? (i % 4 == 0 ? 0.37 : 0.01) : 0.1;
    trial.observe(sample);
    if (!trial.wanted()) continue;
    trial.sent(0);
    trial.applied();
    trial.effective(i);
  }
  CHECK(trial.done());
  CHECK(trial.result().outcome == Outcome::undone);
}

TEST_CASE("simulated trials on clean noise keep gains and refuse nothing") {
  std::vector<double> series;
  for (int i = 0; i < 997; ++i) series.push_back(0.01 * (1 + 0.02 * ((i * 7919) % 101) / 101.0));
  int kept_nothing = 0, kept_gain = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const bool cheap : {false, true}) {
      kept_nothing += simulate_trial(series, 0, seed, cheap).outcome == Outcome::kept;
      kept_gain += simulate_trial(series, 0.05, seed, cheap).outcome == Outcome::kept;
    }
  }
  CHECK(kept_nothing == 0);
  CHECK(kept_gain == 80);
  CHECK_THROWS_AS(simulate_trial({}, 0, 1, false), std::invalid_argument);
  CHECK_THROWS_AS(simulate_trial(series, -1, 1, false), std::invalid_argument);
}

}  // namespace gpuutil
