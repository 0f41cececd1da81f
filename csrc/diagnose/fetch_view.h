// What the rules on a fetch in the training process have in common: where its time goes, and what
// of a step's wait a cheaper part of it would save. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/input_view.h"
#include "profile/features.h"

namespace gpuutil {

struct FetchView {
  std::string missing;    // which source is not there; empty where the rest is filled
  bool shortened = false; // batches are made the short way already
  double row_seconds = 0;      // of a batch, torch's own way
  double collate_seconds = 0;
  double whole_seconds = 0;    // both
  double batches_per_step = 1;
  std::optional<double> batch_seconds;
  std::optional<double> stack_seconds;
};

FetchView view_fetch(const Features& features);

// The share of the step that is saved where `saved` seconds of a batch are. Batches were timed early
// and the wait is of now: the smaller of what the seconds and what the share of a fetch come to.
double saved_share(const InputView& input, const FetchView& fetch, double saved);

void add_fetch_evidence(const FetchView& fetch, std::vector<Evidence>& evidence);

}  // namespace gpuutil
