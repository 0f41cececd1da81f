#include "report/change_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/wording.h"
#include "report/text.h"

namespace gpuutil {
namespace {

constexpr size_t kLogColumns = 200;
constexpr size_t kNameColumns = 24;

std::string with(std::string_view before, const std::string& text) {
  return text.empty() ? std::string() : std::string(before) + text;
}

// "1.78x (1.71-1.84)"
std::string speedup(const LedgerRow& row) {
  if (!row.speedup) return {};
  return fmt::format("{} ({:.2f}-{:.2f})", speedup_text(row.speedup->mid), row.speedup->low,
                     row.speedup->high);
}

// "110 ms -> 62.1 ms a step, 1.78x (1.71-1.84), CPU 8.2 ms -> 7.9 ms a sample"
std::string measured(const LedgerRow& row) {
  std::string text;
  const auto add = [&](const std::string& part) { text += text.empty() ? part : ", " + part; };
  if (row.before.step_seconds && row.after.step_seconds) {
    add(fmt::format("{} -> {} a step", duration_text(*row.before.step_seconds),
                    duration_text(*row.after.step_seconds)));
  }
  if (row.speedup) add(speedup(row));
  if (row.before.cpu_seconds_per_sample && row.after.cpu_seconds_per_sample) {
    add(fmt::format("CPU {} -> {} a sample", duration_text(*row.before.cpu_seconds_per_sample),
                    duration_text(*row.after.cpu_seconds_per_sample)));
  }
  return text;
}

// "workers", "threads": where the whole ids would push the result off the line.
std::string brief_name(const std::string& remedy) {
  for (const std::string_view prefix : {"loader_", "main_"}) {
    if (remedy.starts_with(prefix)) return remedy.substr(prefix.size());
  }
  return remedy;
}

std::string undo_tail(const LedgerRow& row) {
  return row.in_force ? with("; undo: ", row.undo) : std::string();
}

}  // namespace

std::string change_list(std::span<const Change> changes, std::span<const LoaderName> loaders,
                        bool brief) {
  std::string text;
  for (const Change& change : changes) {
    // A change that was never made has a name and no values.
    text += (text.empty() ? "" : ", ") + (brief ? brief_name(change.remedy) : change.remedy);
    if (change.from != change.to) text += fmt::format(" {}->{}", change.from, change.to);
    if (change.subject == 0 || loaders.size() < 2) continue;
    const auto at = std::find_if(loaders.begin(), loaders.end(), [&](const LoaderName& loader) {
      return loader.id == change.subject;
    });
    if (at != loaders.end()) text += " on " + fit(at->name, kNameColumns);
  }
  return text;
}

std::string change_line(const LedgerRow& row, std::span<const LoaderName> loaders) {
  const std::string what = change_list(row.changes, loaders);
  const std::string numbers = with(": ", measured(row));
  const std::string why = with(": ", row.conclusion);
  std::string head;
  switch (row.outcome) {
    case Outcome::running:
      head = fmt::format("trying {} from step {} on ({}){}{}", what, row.step,
                         exactness_name(row.exactness), with(": ", row.finding),
                         with(": ", row.reason));
      break;
    case Outcome::kept:
      head = row.provisional ? fmt::format("kept for now {}{}, still being verified", what, numbers)
                             : fmt::format("kept {}{}{}", what, numbers, row.protective ? why : "");
      break;
    case Outcome::undone:
      head = fmt::format("undid {}{}{}", what, numbers, why);
      break;
    case Outcome::inconclusive:
      head = fmt::format("undid {}, no clear gain{}{}", what, numbers, why);
      break;
    case Outcome::failed:
      head = fmt::format("could not do {}{}; training goes on as it was", what, why);
      break;
    case Outcome::refused:
      head = fmt::format("left alone: {}{}", what, why);
      break;
    case Outcome::reverted:
      head = fmt::format("took back {}{}", what, why);
      break;
  }
  return fit_with_tail(head, undo_tail(row), kLogColumns);
}

ChangeResult change_result(const LedgerRow& row, std::span<const LoaderName> loaders) {
  const std::string what = change_list(row.changes, loaders, row.changes.size() > 2);
  const std::string numbers = with(": ", speedup(row));
  const std::string why = with(": ", row.conclusion);
  ChangeResult result;
  result.undo = undo_tail(row);
  switch (row.outcome) {
    case Outcome::running:
      result.text = fmt::format("on trial: {} since step {}", what, row.step);
      break;
    case Outcome::kept:
      result.text = fmt::format("changed: {}{}, {}", what, numbers,
                                row.provisional  ? "being verified"
                                : row.protective ? "kept as a safeguard"
                                                 : "kept");
      break;
    case Outcome::undone:
      result.text = fmt::format("tried: {}{}, undone{}", what, numbers, why);
      break;
    case Outcome::inconclusive:
      result.text = fmt::format("tried: {}{}, no clear gain, undone", what, numbers);
      break;
    case Outcome::failed:
      result.text = fmt::format("failed: {}{}", what, why);
      break;
    case Outcome::refused:
      result.text = fmt::format("left alone: {}{}", what, why);
      break;
    case Outcome::reverted:
      result.text = fmt::format("taken back: {}{}", what, why);
      break;
  }
  return result;
}

}  // namespace gpuutil
