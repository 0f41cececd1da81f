#include "report/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "diagnose/wording.h"
#include "report/text.h"
#include "tune/recipe_part.h"

namespace gpuutil {
namespace {

struct Setting {
  std::string remedy;
  uint32_t subject = 0;
  int64_t first = 0;  // before anything of ours
  int64_t last = 0;
};

void merge(std::vector<Setting>& settings, const Change& change) {
  const auto at = std::find_if(settings.begin(), settings.end(), [&](const Setting& setting) {
    return setting.remedy == change.remedy && setting.subject == change.subject;
  });
  if (at == settings.end()) {
    settings.push_back({change.remedy, change.subject, change.from, change.to});
  } else {
    at->last = change.to;
  }
}

// DataLoader refuses prefetch_factor and persistent_workers without workers.
void drop_idle_settings(std::vector<Setting>& settings) {
  std::erase_if(settings, [&](const Setting& idle) {
    if (idle.remedy != "loader_prefetch" && idle.remedy != "loader_persistent") return false;
    return std::any_of(settings.begin(), settings.end(), [&](const Setting& workers) {
      return workers.remedy == "loader_workers" && workers.subject == idle.subject &&
             workers.last == 0;
    });
  });
}

std::string loader_name(std::span<const LoaderName> loaders, uint32_t id) {
  const auto at =
      std::find_if(loaders.begin(), loaders.end(), [&](const LoaderName& l) { return l.id == id; });
  return at == loaders.end() || at->name.empty() ? fmt::format("loader {}", id) : plain(at->name);
}

}  // namespace

std::string run_recipe(std::span<const LedgerRow> ledger, std::span<const LoaderName> loaders,
                       std::string_view replay_path) {
  std::vector<const LedgerRow*> rows;
  for (const LedgerRow& row : ledger) {
    if (row.outcome == Outcome::kept) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LedgerRow* a, const LedgerRow* b) { return a->step < b->step; });
  std::vector<Setting> settings;
  double gained = 1;
  bool measured = std::any_of(rows.begin(), rows.end(), [](const LedgerRow* row) { return !row->protective; });
  for (const LedgerRow* row : rows) {
    for (const Change& change : row->changes) merge(settings, change);
    if (row->protective) continue;  // gains nothing, and is no reason to doubt the rest
    measured = measured && row->speedup.has_value();
    gained *= row->speedup ? row->speedup->mid : 1;
  }
  std::erase_if(settings, [](const Setting& setting) { return setting.first == setting.last; });
  drop_idle_settings(settings);

  std::vector<std::string> lines;
  std::map<uint32_t, std::string> arguments;  // by loader
  for (const Setting& setting : settings) {
    const RecipePart part = recipe_part(setting.remedy, setting.last);
    if (!part.process_call.empty()) {
      lines.push_back(fmt::format("{}  # was {}", part.process_call, setting.first));
    } else if (!part.loader_argument.empty()) {
      arguments[setting.subject] += ", " + part.loader_argument;
    } else if (!part.comment.empty()) {
      const bool replayed = setting.remedy == "loader_batch_fetch";
      lines.push_back(part.comment + (replayed ? " (or the replay below)" : ""));
    } else {
      lines.push_back(
          fmt::format("# {}: {} instead of {} (no line of code for it: use the replay below)",
                      plain(setting.remedy), setting.last, setting.first));
    }
  }
  for (const auto& [id, text] : arguments) {
    lines.push_back(fmt::format("DataLoader(...{})  # {}", text, loader_name(loaders, id)));
  }
  if (lines.empty()) return "# gpuutil kept no change: nothing to make permanent";

  std::string out =
      measured ? fmt::format("# what gpuutil kept in this run, {} together", speedup_text(gained))
               : std::string("# what gpuutil kept in this run");
  for (const std::string& line : lines) out += "\n" + line;
  if (!replay_path.empty()) {
    out +=
        "\n# or, without touching the code, the same changes from the first step on and no trials:";
    out += fmt::format("\nGPUUTIL_REPLAY={}", replay_path);
  }
  return out;
}

}  // namespace gpuutil
