#include "report/run_json.h"

#include "profile/epoch_budget.h"
#include "report/json.h"
#include "report/recipe.h"
#include "report/time_shares.h"

namespace gpuutil {
namespace {

// An empty text is one that is not there.
void text_or_null(JsonWriter& json, std::string_view key, std::string_view text) {
  json.key(key);
  if (text.empty()) {
    json.null();
  } else {
    json.value(text);
  }
}

void write_budget(JsonWriter& json, const PhaseTimes& budget) {
  json.key("epoch_budget").begin_object().key("phases").begin_object();
  const bool split =
      phases_split(budget);  // else that time is in `other`, and none of it is a zero
  for (size_t i = 0; i < kPhaseCount; ++i) {
    json.key(kPhaseNames[i]);
    if (!split && needs_observer(static_cast<Phase>(i))) {
      json.null();
    } else {
      json.value(static_cast<double>(budget.ns[i]) * 1e-9);
    }
  }
  json.end_object().end_object();
}

void write_profile(JsonWriter& json, const ProfileSummary& profile) {
  json.key("profile").begin_object();
  json.field("steps", profile.steps);
  json.key("step_seconds").begin_object();
  json.field("p50", profile.step_seconds_p50).field("p95", profile.step_seconds_p95).end_object();
  json.key("phases").begin_object();
  for (size_t i = 0; i < kPhaseCount; ++i) json.field(kPhaseNames[i], profile.phase_ratio[i]);
  json.end_object();
  json.key("device").begin_object().field("busy_ratio", profile.device_busy_ratio).end_object();
  json.key("waterfall").begin_array();
  for (const WaterfallPart& part : profile.waterfall) {
    json.begin_object().field("cause", part.cause).field("ratio", part.ratio).end_object();
  }
  json.end_array();
  json.field("unexplained_ratio", profile.unexplained_ratio);
  json.field("coverage", profile.coverage_ratio);
  json.end_object();
}

void write_finding(JsonWriter& json, const Finding& finding) {
  json.begin_object();
  json.field("id", finding.id).field("family", static_cast<int>(finding.family));
  json.field("severity", severity_name(severity(finding))).field("title", finding.title);
  json.key("evidence").begin_object();
  for (const Evidence& item : finding.evidence) {
    json.key(item.name)
        .begin_object()
        .field("value", item.value)
        .field("text", item.text)
        .end_object();
  }
  json.end_object();
  text_or_null(json, "where", finding.where);
  json.key("gain_ratio").begin_object();
  json.field("low", finding.gain_ratio.low).field("high", finding.gain_ratio.high).end_object();
  json.field("confidence", finding.confidence);
  json.key("remedies").begin_array();
  for (const std::string& remedy : finding.remedies) json.value(remedy);
  json.end_array();
  text_or_null(json, "advice", finding.advice);
  json.end_object();
}

void write_findings(JsonWriter& json, std::span<const Finding> findings) {
  json.begin_array();
  for (const Finding& finding : findings) write_finding(json, finding);
  json.end_array();
}

void write_not_measured(JsonWriter& json, std::span<const NotMeasured> rules) {
  json.key("not_measured").begin_array();
  for (const NotMeasured& rule : rules) {
    json.begin_object().field("id", rule.id).field("reason", rule.reason).end_object();
  }
  json.end_array();
}

void write_measured(JsonWriter& json, std::string_view key, const Measured& measured) {
  json.key(key).begin_object();
  json.field("step_seconds", measured.step_seconds);
  json.field("samples_per_second", measured.samples_per_second).end_object();
}

// What GPUUTIL_REPLAY reads back.
void write_change(JsonWriter& json, const Change& change, std::span<const LoaderName> loaders) {
  json.begin_object().field("remedy", change.remedy).field("subject", change.subject);
  std::string_view name;
  for (const LoaderName& loader : loaders) {
    if (change.subject != 0 && loader.id == change.subject) name = loader.name;
  }
  text_or_null(json, "loader", name);
  json.field("from", change.from).field("to", change.to).end_object();
}

void write_row(JsonWriter& json, const LedgerRow& row, std::span<const LoaderName> loaders) {
  json.begin_object();
  json.field("id", row.id).field("remedy", row.remedy());
  json.field("class", exactness_name(row.exactness));
  text_or_null(json, "class_reason", row.exactness_reason);
  text_or_null(json, "finding", row.finding);
  text_or_null(json, "reason", row.reason);
  json.field("step", row.step);
  json.key("changes").begin_array();
  for (const Change& change : row.changes) write_change(json, change, loaders);
  json.end_array();
  write_measured(json, "before", row.before);
  write_measured(json, "after", row.after);
  json.key("speedup").begin_object();
  const std::optional<Interval>& speedup = row.speedup;
  json.field("low", speedup ? std::optional(speedup->low) : std::nullopt);
  json.field("mid", speedup ? std::optional(speedup->mid) : std::nullopt);
  json.field("high", speedup ? std::optional(speedup->high) : std::nullopt).end_object();
  json.key("cpu_seconds_per_sample").begin_object();
  json.field("before", row.before.cpu_seconds_per_sample);
  json.field("after", row.after.cpu_seconds_per_sample).end_object();
  json.field("outcome", outcome_name(row.outcome));
  text_or_null(json, "conclusion", row.conclusion);
  json.field("provisional", row.provisional).field("in_force", row.in_force);
  text_or_null(json, "undo", row.undo);
  text_or_null(json, "recipe", row.recipe);
  json.end_object();
}

void write_ledger(JsonWriter& json, std::span<const LedgerRow> ledger,
                  std::span<const LoaderName> loaders) {
  json.begin_array();
  for (const LedgerRow& row : ledger) write_row(json, row, loaders);
  json.end_array();
}

void write_missing(JsonWriter& json, std::span<const Missing> missing) {
  json.key("missing").begin_array();
  for (const Missing& part : missing) {
    json.begin_object().field("part", part.part);
    text_or_null(json, "reason", part.reason);
    json.end_object();
  }
  json.end_array();
}

void write_overhead(JsonWriter& json, const Overhead& overhead) {
  json.key("overhead").begin_object();
  json.field("microseconds_per_step", overhead.microseconds_per_step)
      .field("ratio", overhead.ratio);
  json.field("threads", overhead.threads).end_object();
}

void write_epoch(JsonWriter& json, const EpochSummary& epoch) {
  json.begin_object();
  json.field("schema_version", kSchemaVersion);
  json.field("epoch", epoch.epoch).field("steps", epoch.steps);
  json.field("wall_seconds", epoch.wall_seconds);
  json.field("samples_per_second", epoch.samples_per_second);
  write_budget(json, epoch.budget);
  write_profile(json, epoch.profile);
  json.key("findings");
  write_findings(json, epoch.findings);
  write_not_measured(json, epoch.not_measured);
  json.key("ledger");
  write_ledger(json, epoch.changes, epoch.loaders);
  json.key("foreign_cpu").begin_object();
  json.field("cores", epoch.foreign.cores).field("budget_cores", epoch.foreign.budget_cores);
  json.field("held_seconds", epoch.foreign.held_seconds).end_object();
  write_missing(json, epoch.missing);
  write_overhead(json, epoch.overhead);
  json.end_object();
}

void write_run(JsonWriter& json, const RunInfo& run) {
  json.key("run").begin_object();
  json.field("id", run.id);
  json.field("started_unix_seconds", run.started_unix_seconds);
  json.field("ended_unix_seconds", run.ended_unix_seconds);
  text_or_null(json, "apply", run.apply);
  text_or_null(json, "gpuutil_version", run.gpuutil_version);
  text_or_null(json, "torch_version", run.torch_version);
  text_or_null(json, "python_version", run.python_version);
  json.field("rank", run.rank).field("ranks", run.ranks).end_object();
}

}  // namespace

std::string epoch_json(const EpochSummary& epoch) {
  JsonWriter json;
  write_epoch(json, epoch);
  return json.text();
}

std::string findings_json(std::span<const Finding> findings) {
  JsonWriter json;
  write_findings(json, findings);
  return json.text();
}

std::string ledger_json(std::span<const LedgerRow> ledger, std::span<const LoaderName> loaders) {
  JsonWriter json;
  write_ledger(json, ledger, loaders);
  return json.text();
}

std::string run_json(const RunSummary& run) {
  JsonWriter json;
  json.begin_object();
  json.field("schema_version", kSchemaVersion);
  write_run(json, run.run);
  json.key("device").begin_object();
  json.field("kind", run.device.kind);
  text_or_null(json, "name", run.device.name);
  json.field("count", run.device.count).end_object();
  json.key("environment").begin_object();
  json.key("cpu_budget").begin_object().field("cores", run.cpu_budget_cores);
  text_or_null(json, "source", run.cpu_budget_source);
  json.end_object().raw_members(run.environment_json).end_object();
  json.key("epochs").begin_array();
  for (const EpochSummary& epoch : run.epochs) write_epoch(json, epoch);
  json.end_array();
  write_budget(json, run.budget);
  write_profile(json, run.profile);
  json.key("findings");
  write_findings(json, run.findings);
  write_not_measured(json, run.not_measured);
  json.key("ledger");
  write_ledger(json, run.ledger, run.loaders);
  text_or_null(json, "recipe", run_recipe(run.ledger, run.loaders, run.replay_path));
  write_missing(json, run.missing);
  write_overhead(json, run.overhead);
  json.end_object();
  return json.text();
}

}  // namespace gpuutil
