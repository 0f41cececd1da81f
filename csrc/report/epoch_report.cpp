#include "report/epoch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "diagnose/thresholds.h"
#include "diagnose/wording.h"
#include "report/change_line.h"
#include "report/text.h"
#include "report/time_shares.h"

namespace gpuutil {
namespace {

// Below it a verdict is printed as a guess.
constexpr double kDoubtfulConfidence = 0.5;

// " (1.78x faster than epoch 1)": by step time where both are known, else by samples a second.
std::string comparison(const EpochSummary& epoch) {
  if (!epoch.first_epoch) return {};
  double ratio = 0;
  if (epoch.first_step_seconds_p50 && epoch.profile.step_seconds_p50 &&
      *epoch.profile.step_seconds_p50 > 0) {
    ratio = *epoch.first_step_seconds_p50 / *epoch.profile.step_seconds_p50;
  } else if (epoch.first_samples_per_second && epoch.samples_per_second &&
             *epoch.first_samples_per_second > 0) {
    ratio = *epoch.samples_per_second / *epoch.first_samples_per_second;
  }
  if (!(ratio > 0) || !std::isfinite(ratio)) return {};
  if (std::abs(ratio - 1) < kThresholds.min_gain_ratio)
    return fmt::format(" (as in epoch {})", *epoch.first_epoch);
  return ratio > 1
             ? fmt::format(" ({} faster than epoch {})", speedup_text(ratio), *epoch.first_epoch)
             : fmt::format(" ({} slower than epoch {})", speedup_text(1 / ratio),
                           *epoch.first_epoch);
}

std::string head_line(const EpochSummary& epoch) {
  std::string line = fmt::format("epoch {}: ", epoch.epoch);
  if (epoch.steps == 0) return line + "no training steps in " + duration_text(epoch.wall_seconds);
  line += fmt::format("{} step{}, ", epoch.steps, epoch.steps == 1 ? "" : "s");
  if (epoch.profile.step_seconds_p50) {
    line += duration_text(*epoch.profile.step_seconds_p50) + " a step";
  } else {
    line +=
        duration_text(epoch.wall_seconds / static_cast<double>(epoch.steps)) + " a step on average";
  }
  line += comparison(epoch);
  if (epoch.samples_per_second)
    line += fmt::format(", {} samples/s", count_text(*epoch.samples_per_second));
  return line + fmt::format(", {} in all", duration_text(epoch.wall_seconds));
}

// Reasons with the rules that share them: "sampled steps missing (host_python)".
std::string not_measured_list(const EpochSummary& epoch) {
  std::vector<std::pair<std::string, std::string>> by_reason;
  for (const NotMeasured& rule : epoch.not_measured) {
    const auto at = std::find_if(by_reason.begin(), by_reason.end(),
                                 [&](const auto& entry) { return entry.first == rule.reason; });
    if (at == by_reason.end()) {
      by_reason.emplace_back(rule.reason, rule.id);
    } else {
      at->second += ", " + rule.id;
    }
  }
  std::string text;
  for (const auto& [reason, ids] : by_reason) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", reason, ids);
  }
  return text;
}

// All rules silent for one and the same reason: the reason is the answer.
bool one_reason(const EpochSummary& epoch) {
  return !epoch.not_measured.empty() &&
         std::all_of(epoch.not_measured.begin(), epoch.not_measured.end(),
                     [&](const NotMeasured& rule) {
                       return rule.reason == epoch.not_measured.front().reason;
                     });
}

std::vector<std::string> verdict_lines(const EpochSummary& epoch) {
  if (!epoch.findings.empty()) {
    const Finding& first = epoch.findings.front();
    if (severity(first) == Severity::info) {
      return {fit(fmt::format("verdict: nothing that surely saves {} of a step; nearest: {}: {}",
                              percent_text(kThresholds.min_gain_ratio), first.id, first.title),
                  kReportColumns)};
    }
    const char* doubt = first.confidence < kDoubtfulConfidence ? "maybe " : "";
    std::vector<std::string> lines = {
        fit(fmt::format("verdict: {}{}: {}", doubt, first.id, first.title), kReportColumns)};
    const GainRange& gain = first.gain_ratio;
    std::string why =
        gain.high > 0 ? fmt::format("  removing it saves {} of a step ({:.1f}-{:.1f}x)",
                                    percent_range_text(gain.low, gain.high), 1 / (1 - gain.low),
                                    1 / (1 - gain.high))
                      : std::string("  a danger to the run, not time lost");
    if (!first.advice.empty()) why += ": " + first.advice;
    for (std::string& line : wrap(why, kReportColumns, 2, 2)) lines.push_back(std::move(line));
    return lines;
  }
  if (!epoch.not_measured.empty()) {
    const std::string text =
        one_reason(epoch) && epoch.not_measured.size() > 1
            ? "verdict: none: " + epoch.not_measured.front().reason
            : "verdict: nothing found; not measured: " + not_measured_list(epoch);
    return {fit(text, kReportColumns)};
  }
  const double total = static_cast<double>(epoch.budget.total());
  if (epoch.steps == 0 || !(total > 0)) return {"verdict: none: nothing was measured"};
  const double wait = static_cast<double>(epoch.budget[Phase::input_wait]) / total;
  return {fmt::format("verdict: nothing to change: waiting for input takes {} of the time",
                      percent_text(wait))};
}

// What a reader wants to hear of first, where not everything fits.
int importance(Outcome outcome) {
  switch (outcome) {
    case Outcome::kept:
      return 0;
    case Outcome::running:
      return 1;
    case Outcome::reverted:
      return 2;
    case Outcome::failed:
      return 3;
    case Outcome::undone:
      return 4;
    case Outcome::inconclusive:
      return 5;
    case Outcome::refused:
      return 6;
  }
  return 7;
}

std::vector<std::string> change_lines(const EpochSummary& epoch, size_t room) {
  std::vector<const LedgerRow*> rows;
  for (const LedgerRow& row : epoch.changes) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const LedgerRow* a, const LedgerRow* b) {
    return importance(a->outcome) < importance(b->outcome);
  });
  std::vector<std::string> lines;
  for (size_t i = 0; i < rows.size() && lines.size() < room; ++i) {
    const ChangeResult result = change_result(*rows[i], epoch.loaders);
    const size_t more = lines.size() + 1 == room ? rows.size() - i - 1 : 0;
    const std::string rest =
        more > 0 ? fmt::format("; {} more in mon.ledger", more) : std::string();
    lines.push_back(fit_with_tail(result.text, result.undo + rest, kReportColumns));
  }
  return lines;
}

std::string foreign_line(const EpochSummary& epoch) {
  const ForeignUse& load = epoch.foreign;
  const bool held = load.held_seconds >= 1;
  if (!load.cores || (*load.cores < kThresholds.foreign_cores && !held)) return {};
  std::string line = fmt::format("other programs used {}", cores_text(*load.cores));
  line += load.budget_cores ? fmt::format(" of {} CPUs", cores_text(*load.budget_cores))
                            : std::string(" CPUs");
  return line + (held
                     ? fmt::format(": trials waited {} for quiet", duration_text(load.held_seconds))
                     : std::string(": step times include that"));
}

std::string missing_line(const EpochSummary& epoch) {
  std::string text;
  for (const Missing& part : epoch.missing) {
    text += text.empty() ? "missing: " : "; ";
    text += part.part;
    if (!part.reason.empty()) text += ": " + part.reason;
  }
  return text;
}

std::string cost_line(const EpochSummary& epoch) {
  std::string line = "gpuutil: ";
  if (epoch.overhead.microseconds_per_step) {
    line += duration_text(*epoch.overhead.microseconds_per_step * 1e-6) + " a step";
    if (epoch.overhead.ratio) line += fmt::format(" ({})", percent_text(*epoch.overhead.ratio));
  } else {
    line += "own cost not measured";
  }
  return line + fmt::format(", {} thread{}", epoch.overhead.threads,
                            epoch.overhead.threads == 1 ? "" : "s");
}

}  // namespace

std::string epoch_report(const EpochSummary& epoch) {
  std::vector<std::string> lines = {fit(head_line(epoch), kReportColumns),
                                    time_line(epoch, kReportColumns)};
  std::vector<std::string> verdict = verdict_lines(epoch);
  const std::string foreign = foreign_line(epoch);
  const std::string missing = missing_line(epoch);

  // Head, time and cost are always there; one change comes before the second line of advice.
  const size_t fixed = lines.size() + 1 + (foreign.empty() ? 0 : 1) + (missing.empty() ? 0 : 1);
  const size_t changes_least = epoch.changes.empty() ? 0 : 1;
  const size_t verdict_most = kReportLines - fixed - changes_least;
  if (verdict.size() > verdict_most) {
    verdict.resize(verdict_most);
    verdict.back() = fit(verdict.back() + " ...", kReportColumns);
  }
  const size_t change_room = kReportLines - fixed - verdict.size();

  for (std::string& line : verdict) lines.push_back(std::move(line));
  for (std::string& line : change_lines(epoch, change_room)) lines.push_back(std::move(line));
  if (!foreign.empty()) lines.push_back(fit(foreign, kReportColumns));
  if (!missing.empty()) lines.push_back(fit(missing, kReportColumns));
  lines.push_back(fit(cost_line(epoch), kReportColumns));

  std::string text;
  for (const std::string& line : lines) text += text.empty() ? line : "\n" + line;
  return text;
}

}  // namespace gpuutil
