// What the rules on input have in common: how long training waits for batches, whether the work
// behind the wait computes or sleeps, and what this job's CPUs allow at best. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "diagnose/finding.h"
#include "diagnose/thresholds.h"
#include "profile/features.h"

namespace gpuutil {

struct InputView {
  std::string missing;  // which source is not there; empty where the rest is filled
  bool waits = false;   // the wait is long enough to speak of
  bool bursts = false;  // ... and comes in bursts

  double wait_ratio = 0;    // of the wall time; what free input would save
  double step_seconds = 0;  // now
  double headspace_seconds = 0;
  int32_t workers = 0;

  double used_cores = 0;  // this process and the workers
  double budget_cores = 0;
  // The workers fill the CPUs that their own masks leave them, fewer than they could use.
  bool held_by_mask = false;
  double crowding_cores = 0;  // what others take of the budget; 0 where unknown
  bool crowding_known = false;

  // The step cannot fall under (CPU seconds of input and trainer) / cores. What that leaves to
  // save, with the whole budget and with what the others leave of it.
  double budget_gain_ratio = 0;
  double crowded_gain_ratio = 0;

  double evidence = 0;  // 0.5..1 by the number of steps and by whether neighbours were seen
};

InputView view_input(const Features& features, const Thresholds& thresholds);

// What rules on steps say where they cannot speak yet; empty where they can.
std::string steps_missing(const Features& features, const Thresholds& thresholds);
double steps_evidence(const Features& features, const Thresholds& thresholds);  // 0.5..1

// CPU of the loader's workers: the total where it was measured, else the sum over those that could be
// read, if they all could. 0 without workers.
std::optional<double> worker_cores(const Features& features);

// Threads of the workers that could run at a time, on average: CPU got over the share of that time in
// which a CPU was there. Of the workers that were read.
double worker_demand(const Features& features);

// CPUs that this job could use if no mask of ours were narrower than what the process came with; 0
// where nothing is known.
double reachable_cores(const HostFeatures& host);

// Whether the input work computes (1) or sleeps (0).
struct InputNature {
  std::optional<double> cpu_share;
  double confidence = 0;
  std::string text;     // "97 % of a fetch is CPU work"
  std::string missing;  // where there is no share
};

InputNature input_nature(const Features& features, const Thresholds& thresholds);

// How every rule begins that speaks of a wait for one kind of work.
enum class InputWork : uint8_t { computes, sleeps };
struct InputWait {
  std::optional<RuleResult> ended;  // not such a wait, or nobody can tell: the rule's answer
  InputView input;
  InputNature nature;
};
InputWait view_input_wait(const Features& features, const Thresholds& thresholds, InputWork work);

// The share saved by a remedy that overlaps input with training and reaches the given part of the
// bound.
GainRange overlap_gain(const InputView& input, double reached, double most = 1);

// Workers that would keep up: input work of a step over the step that the budget allows; never more
// than the CPUs where the work computes.
int32_t workers_needed(const InputView& input, bool computes);

// Evidence that every rule on the same wait shows, in the order in which a reader wants it.
void add_wait_evidence(const InputView& input, std::vector<Evidence>& evidence);
void add_budget_evidence(const InputView& input, std::vector<Evidence>& evidence);
void add_alternatives_evidence(const InputView& input, std::vector<Evidence>& evidence);

// Whether worker count may be changed here, and if not, why, as a sentence for the advice.
bool workers_changeable(const Features& features);
std::string workers_fixed_reason(const Features& features);

// "num_workers=2" or, where threads and workers would exceed the CPUs, with torch.set_num_threads()
// beside it.
std::string workers_call(const Features& features, const InputView& input, bool computes);

}  // namespace gpuutil
