// Random sequences of everything that can happen to a controller. Whatever comes: one command at a
// time, no change applied without a row in the ledger, and revert_all ends at the user's settings.
#include <doctest/doctest.h>

#include <map>

#include "tune/controller.h"
#include "tune/simulated_trainer.h"

namespace gpuutil {
namespace {

using testing::SimulatedTrainer;
using testing::TrainerFacts;

// Hands that answer when, and as, chance has it.
class RandomHands {
 public:
  RandomHands(SimulatedTrainer* trainer, uint64_t seed) : trainer_(trainer), random_(seed) {}

  void take(const Command& command) {
    CHECK_FALSE(open_);  // the one before was answered
    open_ = command;
  }
  bool open() const { return open_.has_value(); }

  void answer(Controller* controller, bool may_fail) {
    if (!open_) return;
    const Command command = *open_;
    open_.reset();
    if (may_fail && random_.below(4) == 0) return controller->failed(command.id, "chance");
    const bool apply = command.kind == CommandKind::apply;
    for (const Change& change : command.changes) set(change, apply);
    applied_[command.ledger_id] = apply;
    last_ = command.id;
    controller->applied(command.id);
  }
  void effect(Controller* controller) { controller->effective(last_, trainer_->index); }
  void breaks(Controller* controller) { controller->failed(last_, "broke later"); }
  const std::map<int64_t, bool>& applied() const { return applied_; }

 private:
  void set(const Change& change, bool apply) {
    int64_t* value = change.remedy == "main_threads"     ? &threads_
                     : change.remedy == "loader_workers" ? &workers_
                                                         : &prefetch_;
    CHECK(*value == (apply ? change.from : change.to));  // never out of order
    *value = apply ? change.to : change.from;
    trainer_->threads = static_cast<int>(threads_);
    trainer_->loader.workers = static_cast<int>(workers_);
    trainer_->loader.prefetch = static_cast<int>(prefetch_);
  }

  SimulatedTrainer* trainer_;
  Random random_;
  std::optional<Command> open_;
  std::map<int64_t, bool> applied_;  // rows, as the hands know them
  int64_t last_ = 0;
  int64_t threads_ = 2, workers_ = 0, prefetch_ = 0;
};

void one_run(uint64_t seed) {
  CAPTURE(seed);
  Random random(seed);
  TrainerFacts facts;
  facts.input_seconds = 0.005 + 0.2 * random.unit();
  facts.input_cpu_share = 0.05 + 0.95 * random.unit();
  facts.trainer_seconds = 0.01 + 0.1 * random.unit();
  facts.cores = static_cast<double>(1 + random.below(8));
  facts.noise_ratio = 0.1 * random.unit();
  if (random.below(2) == 0) facts.epoch_steps = static_cast<int64_t>(5 + random.below(80));
  facts.turn_seconds = random.unit();
  SimulatedTrainer trainer(facts, seed);
  ControllerOptions options;
  options.policy.backoff_ns = 1'000'000'000;
  options.policy.regret_credit_seconds = 1000;
  options.policy.deadline_ns = 2'000'000'000;
  options.seed = seed;
  Controller controller(options);
  RandomHands hands(&trainer, seed + 1);
  const bool lazy = random.below(3) == 0;

  const auto check = [&] {
    for (const auto& [id, applied] : hands.applied()) {
      if (!applied) continue;
      const LedgerRow* row = controller.ledger().find(id);
      REQUIRE(row != nullptr);
      CHECK(row->in_force);
    }
  };
  const auto step = [&](bool may_fail) {
    const Step done = trainer.step();
    controller.observe_step(done);
    if (random.below(4) == 0) controller.observe_host(trainer.host());
    if (random.below(4) == 0) controller.observe_features(trainer.features(), trainer.findings());
    if (random.below(lazy ? 40 : 3) == 0) hands.answer(&controller, may_fail);
    if (random.below(5) == 0) hands.effect(&controller);
    if (const auto command = controller.poll(trainer.now_ns)) hands.take(*command);
    check();
  };
  const int steps = static_cast<int>(100 + random.below(500));
  for (int i = 0; i < steps; ++i) {
    step(true);
    switch (random.below(400)) {
      case 0:
        controller.request_revert(static_cast<int64_t>(random.below(6)));
        break;
      case 1:
        controller.request_apply("loader_workers");
        break;
      case 2:
        hands.breaks(&controller);
        break;
      case 3:
        trainer.foreign_cores = random.below(2) == 0 ? 0 : 1;
        break;
      case 4:
        trainer.slowdown = 0.5 + random.unit() * 2;
        break;
      case 5:
        controller.set_run_length(trainer.index * 2);
        break;
      case 6:
        controller.applied(static_cast<int64_t>(random.below(50) + 1000));
        break;
      case 7:
        trainer.worker_slowdown = 0.5 + random.unit() * 2;
        break;
      default:
        break;
    }
  }
  controller.revert_all("end");
  for (int i = 0; i < 600; ++i) step(false);
  CHECK(trainer.loader.workers == 0);
  CHECK(trainer.loader.prefetch == 0);
  CHECK(trainer.threads == 2);
  CHECK_FALSE(hands.open());
  for (const LedgerRow& row : controller.ledger().rows()) {
    CHECK_FALSE(row.in_force);
    CHECK(row.outcome != Outcome::running);
  }
}

}  // namespace

TEST_CASE(
    "whatever happens, one command at a time, a row for each change, and the way back works") {
  for (uint64_t seed = 1; seed <= 300; ++seed) one_run(seed);
}

}  // namespace gpuutil
