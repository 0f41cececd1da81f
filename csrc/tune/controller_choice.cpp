// What the controller tries next. The rest of it, commands and their answers, is in controller.cpp.
#include <algorithm>

#include "tune/controller.h"

namespace gpuutil {

namespace {

double predicted(const Proposal& proposal) { return (proposal.gain_low + proposal.gain_high) / 2; }

double rank(const Proposal& proposal) {
  return predicted(proposal) * proposal.confidence / std::max(1.0, proposal.risk);
}

bool moves(const Proposal& proposal, const std::string& remedy) {
  return std::any_of(proposal.changes.begin(), proposal.changes.end(),
                     [&](const Change& change) { return change.remedy == remedy; });
}

std::optional<int64_t> value_of(const Features& features, const std::string& remedy) {
  if (remedy == "loader_workers") return features.loader->workers;
  if (remedy == "loader_prefetch") return features.loader->prefetch;
  if (remedy == "main_threads") return features.main_threads;
  if (const RemedyOffer* offer = find_offer(*features.loader, remedy)) return offer->value;
  return std::nullopt;
}

std::string not_allowed(const Policy& policy, const Proposal& proposal) {
  return "apply=\"" + std::string(rung_name(policy.rung)) + "\" does not allow " +
         std::string(exactness_name(proposal.exactness));
}

LoaderSetting setting_of(const Features& features) {
  return {features.loader->workers, features.loader->prefetch, features.main_threads};
}

}  // namespace

int Controller::burst() const {
  return features_ && features_->loader ? burst_steps(features_->loader->workers) : 1;
}

// The facts must be of the present settings: they are collected by others and may lag behind.
bool Controller::consistent(const Features& features) const {
  return std::all_of(values_.begin(), values_.end(), [&](const auto& entry) {
    const auto& [setting, value] = entry;
    if (features.loader->id != setting.second && setting.second != 0) return true;
    const std::optional<int64_t> known = value_of(features, setting.first);
    return !known || *known == value;
  });
}

// Its changes start from the present values: what was asked for may have been overtaken.
bool Controller::starts_here(const Proposal& proposal) const {
  return std::all_of(proposal.changes.begin(), proposal.changes.end(), [&](const Change& change) {
    const std::optional<int64_t> known = value_of(*features_, change.remedy);
    return !known || *known == change.from;
  });
}

bool Controller::may_try(int64_t now_ns) const {
  return !quiet_tail() && !foreign_.holds(policy_) &&
         regret_.left(elapsed_seconds(now_ns), policy_) > 0;
}

void Controller::choose(int64_t now_ns) {
  if (!by_hand_.empty() && features_->loader && consistent(*features_)) {
    const Proposal proposal = by_hand_.front();
    by_hand_.erase(by_hand_.begin());
    if (starts_here(proposal)) start(proposal, true, false, false);
    return;
  }
  if (suspicion_ != Suspicion::none && may_try(now_ns)) return second_look();
  if (!features_ || !features_fresh_ || !features_->loader) return;
  const std::optional<Proposal> proposal = choose_for_loader(now_ns);
  if (!proposal) return;
  if (quiet_tail()) {
    idle_reason_ = "the run is about to end";
  } else if (regret_.left(elapsed_seconds(now_ns), policy_) <= 0) {
    idle_reason_ = "tuning has cost what it may";
  } else if (!foreign_.holds(policy_)) {
    start(*proposal, false, false, false);
  }
}

Controller::Search& Controller::search_of(const Features& features) {
  return searches_.try_emplace(features.loader->id, Search{LoaderSearch(features.main_threads), {}}).first->second;
}

std::optional<Proposal> Controller::choose_for_loader(int64_t now_ns) {
  const Features& features = *features_;
  withheld_.clear();
  const std::optional<StepTimes> times =
      recent_.times(burst(), static_cast<size_t>(policy_.baseline_steps));
  if (!times) return std::nullopt;
  if (!consistent(features)) {
    idle_reason_ = "waiting for the facts of the present settings";
    return std::nullopt;
  }
  const std::optional<LoaderModel> model = model_loader(features, *times);
  if (!model) {
    idle_reason_ = "the CPU budget is not known";
    return std::nullopt;
  }
  Search& search = search_of(features);
  if (backoff_.moved(times->step_seconds, times->wait_seconds, policy_)) {
    backoff_.rearm();
    search.numbers.forget();
    search.offers.forget();
  }
  if (backoff_.asleep(now_ns)) return std::nullopt;
  if (backoff_.dozing()) {
    backoff_.wake();
    search.numbers.forget_undecided();
    search.offers.forget_undecided();
  }

  std::optional<Proposal> best = choose_offer(search);
  if (const std::optional<Proposal> number = choose_number(*model, search)) {
    if (!best || rank(*number) > rank(*best)) best = number;
  }
  if (best) return best;
  features_fresh_ = false;
  if (search.numbers.has_tried() || search.offers.has_tried()) {
    backoff_.sleep(now_ns, times->step_seconds, times->wait_seconds, policy_);
    idle_reason_ = "nothing more to try for now";
  } else {
    idle_reason_ = withheld_.empty() ? "no change promises 2 %" : withheld_.front().why;
  }
  return std::nullopt;
}

bool Controller::vetoed(const std::string& remedy) const {
  return std::any_of(vetoed_.begin(), vetoed_.end(),
                     [&](const Change& change) { return change.remedy == remedy; });
}

std::vector<std::string> Controller::finding_ids() const {
  std::vector<std::string> ids;
  for (const Finding& finding : findings_) ids.push_back(finding.id);
  return ids;
}

// Workers, depth and threads, by the model of the loader.
std::optional<Proposal> Controller::choose_number(const LoaderModel& model, Search& search) {
  const Features& features = *features_;
  const std::vector<std::string> ids = finding_ids();
  LoaderFreedom all;
  all.thread_wish = thread_wish();
  for (const Proposal& proposal : search.numbers.propose(features, model, all, policy_, ids)) {
    if (proposal.saving) continue;
    if (features.ranks > 1) {
      withhold(proposal, "more than one rank: observe and advise");
    } else if (moves(proposal, "loader_workers") && !features.loader->workers_changeable) {
      refuse(proposal, features.loader->workers_reason);
    } else if (!policy_.allows(proposal.exactness)) {
      withhold(proposal, not_allowed(policy_, proposal));
    }
  }
  if (features.ranks > 1) return std::nullopt;

  const bool draws_nothing = features.loader->draws_random == false;
  LoaderFreedom freedom = all;
  freedom.workers = features.loader->workers_changeable && !vetoed("loader_workers") &&
                    policy_.allows(draws_nothing ? Exactness::exact : Exactness::distribution);
  freedom.threads =
      !vetoed("main_threads") &&
      policy_.allows(features.device_is_host ? Exactness::rounding : Exactness::exact);
  std::optional<Proposal> best;
  for (const Proposal& proposal : search.numbers.propose(features, model, freedom, policy_, ids)) {
    if (!policy_.allows(proposal.exactness)) continue;
    if (moves(proposal, "loader_prefetch") && vetoed("loader_prefetch")) continue;
    if (!best || rank(proposal) > rank(*best)) best = proposal;
  }
  return best;
}

// What the rule main_threads advises: it knows of time inside operators, which the model of the loader does not.
std::optional<ThreadWish> Controller::thread_wish() const {
  for (const Finding& finding : findings_) {
    if (finding.id != "main_threads") continue;
    const auto advised = std::find_if(finding.evidence.begin(), finding.evidence.end(), [](const Evidence& item) {
      return item.name == "threads_advised";
    });
    if (advised == finding.evidence.end()) return std::nullopt;
    return ThreadWish{static_cast<int>(advised->value), finding.gain_ratio.low, finding.gain_ratio.high,
                      finding.confidence, finding.title};
  }
  return std::nullopt;
}

// What a finding asks for and the hands offer.
std::optional<Proposal> Controller::choose_offer(const Search& search) {
  std::optional<Proposal> best;
  for (const OfferSearch::Wish& wish : search.offers.wishes(*features_, findings_)) {
    const Proposal& proposal = wish.proposal;
    if (!proposal.protective && predicted(proposal) < policy_.min_gain) continue;
    if (features_->ranks > 1) {
      withhold(proposal, "more than one rank: observe and advise");
    } else if (!wish.refusal.empty()) {
      refuse(proposal, wish.refusal);
    } else if (proposal.by_hand) {
      withhold(proposal, "made only when asked for");
    } else if (!policy_.allows(proposal.exactness)) {
      withhold(proposal, not_allowed(policy_, proposal));
    } else if (!proposal.protective && !vetoed(proposal.changes.front().remedy) &&
               (!best || rank(proposal) > rank(*best))) {
      best = proposal;
    }
  }
  return best;
}

void Controller::withhold(const Proposal& proposal, const std::string& why) {
  withheld_.push_back(
      Withheld{proposal, "mon.apply(\"" + proposal.changes.front().remedy + "\")", why});
}

void Controller::refuse(const Proposal& proposal, const std::string& why) {
  const std::pair<uint32_t, std::string> what{features_->loader->id, proposal.changes.front().remedy};
  if (std::find(refused_.begin(), refused_.end(), what) != refused_.end()) return;
  refused_.push_back(what);
  LedgerRow row = row_of(proposal);
  row.conclusion = "not possible: " + why;
  row.step = step_;
  row.outcome = Outcome::refused;
  ledger_.add(std::move(row));
}

void Controller::start(const Proposal& proposal, bool by_hand, bool in_force, bool by_epochs) {
  TrialSetup setup;
  setup.proposal = proposal;
  setup.by_hand = by_hand;
  setup.in_force = in_force;
  setup.seed = ++seed_;
  setup.epoch_mode =
      by_epochs || proposal.at_epoch_turn || (epochs_.epoch_steps() && *epochs_.epoch_steps() < policy_.epoch_mode_steps);
  if (const std::optional<StepTimes> times = recent_.times(1, 2))
    setup.step_seconds = times->step_seconds;
  if (features_ && features_->loader) trial_from_ = setting_of(*features_);
  trial_.emplace(setup, policy_);
  trial_row_ = 0;
  trial_command_ = 0;
  if (cores_looks_ > 0) trial_->observe_cores(cores_sum_ / cores_looks_);
  if (setup.epoch_mode) return;
  // The last comparable steps are the beginning of the baseline.
  const auto run =
      static_cast<size_t>(std::max(1, in_force ? proposal.burst_to : proposal.burst_from));
  const size_t wanted = (static_cast<size_t>(policy_.baseline_steps) + run - 1) / run * run;
  const std::deque<StepSample> samples = recent_.samples();
  for (size_t i = samples.size() - std::min(samples.size(), wanted); i < samples.size(); ++i) {
    trial_->observe(samples[i]);
  }
}

void Controller::second_look() {
  const bool by_epochs = suspicion_ == Suspicion::epochs;
  suspicion_ = Suspicion::none;
  if (kept_.empty()) return;
  const Kept& kept = kept_.back();
  LedgerRow* row = ledger_.find(kept.watch.ledger_id());
  if (row == nullptr || !row->in_force) return;
  const int64_t id = row->id;
  if (ledger_.undo_order(id).size() != 1) return;  // something asked for by hand builds upon it
  row->outcome = Outcome::running;
  start(kept.proposal, false, true, by_epochs);
  trial_row_ = id;
}

std::string Controller::request_apply(const std::string& remedy) {
  if (stopped_) return "tuning is off: " + stop_reason_;
  if (!features_ || !features_->loader) return "nothing is known about the run yet";
  const Features& features = *features_;
  if (features.ranks > 1) return "more than one rank: observe and advise";
  if (remedy == "loader_workers" && !features.loader->workers_changeable) {
    return features.loader->workers_reason;
  }
  if (const RemedyOffer* offer = find_offer(*features.loader, remedy)) {
    if (!offer->refusal.empty()) return offer->refusal;
    if (offer->value == offer->to) return remedy + " is in force already";
    Proposal proposal = offer_proposal(features, *offer);
    proposal.reason = "asked for by hand";
    std::erase_if(vetoed_, [&](const Change& change) { return change.remedy == remedy; });
    by_hand_.push_back(std::move(proposal));
    return "";
  }
  std::vector<Proposal> candidates;
  for (const Withheld& withheld : withheld_) candidates.push_back(withheld.proposal);
  const std::optional<StepTimes> times = recent_.times(burst(), 2);
  const std::optional<LoaderModel> model = times ? model_loader(features, *times) : std::nullopt;
  if (candidates.empty() && model) {
    const LoaderSearch fresh(features.main_threads);
    LoaderFreedom all;
    all.thread_wish = thread_wish();
    candidates = fresh.propose(features, *model, all, policy_, finding_ids());
  }
  const auto match =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const Proposal& proposal) { return moves(proposal, remedy); });
  if (match == candidates.end()) return "no value of " + remedy + " promises a gain here";
  std::erase_if(vetoed_, [&](const Change& change) { return change.remedy == remedy; });
  by_hand_.push_back(*match);
  return "";
}

}  // namespace gpuutil
