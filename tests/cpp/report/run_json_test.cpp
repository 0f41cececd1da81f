#include "report/run_json.h"

#include <doctest/doctest.h>

#include <limits>

#include "report/json.h"
#include "summary_cases.h"

namespace gpuutil {
namespace {

RunSummary photograph_run() {
  RunSummary run;
  run.run.id = "20260807-101500-4711";
  run.run.started_unix_seconds = 1786097700.25;
  run.run.apply = "auto";
  run.run.gpuutil_version = "0.1.0";
  run.run.torch_version = "2.13.0";
  run.run.python_version = "3.11.7";
  run.environment_json = R"({"cpu_model": "any", "containers": ["docker"]})";
  run.cpu_budget_cores = 2;
  run.cpu_budget_source = "affinity: 2 CPUs";
  run.epochs = {photograph_epoch(), tuned_epoch()};
  run.budget = run.epochs[0].budget;
  run.budget += run.epochs[1].budget;
  run.profile = run.epochs[1].profile;
  run.profile.waterfall = {{"compute", 0.52}, {"input_cpu_bound", 0.45}};
  run.profile.unexplained_ratio = 0.03;
  run.findings = run.epochs[1].findings;
  run.ledger = {kept_row()};
  run.loaders = {{1, "PhotoDataset"}};
  run.overhead = {1.2, 1.9e-5, 1};
  run.replay_path = "gpuutil_logs/20260807-101500-4711/report.json";
  return run;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// `keys` occur in this order.
bool in_order(const std::string& text, const std::vector<std::string>& keys) {
  size_t at = 0;
  for (const std::string& key : keys) {
    at = text.find("\"" + key + "\":", at);
    if (at == std::string::npos) return false;
  }
  return true;
}

TEST_CASE("the run has the keys of the schema, in its order") {
  const std::string json = run_json(photograph_run());
  REQUIRE(json_is_valid(json));
  CHECK(json.starts_with(R"({"schema_version":1,"run":{"id":"20260807-101500-4711")"));
  RunSummary bare = photograph_run();
  bare.epochs.clear();
  CHECK(in_order(run_json(bare), {"schema_version",
                                  "run",
                                  "device",
                                  "environment",
                                  "cpu_budget",
                                  "epochs",
                                  "epoch_budget",
                                  "phases",
                                  "profile",
                                  "step_seconds",
                                  "p50",
                                  "p95",
                                  "phases",
                                  "device",
                                  "busy_ratio",
                                  "waterfall",
                                  "unexplained_ratio",
                                  "coverage",
                                  "findings",
                                  "ledger",
                                  "recipe",
                                  "overhead",
                                  "microseconds_per_step",
                                  "ratio"}));
  CHECK(has(json, R"("cpu_budget":{"cores":2,"source":"affinity: 2 CPUs"},"cpu_model": "any")"));
  CHECK(has(json, R"("waterfall":[{"cause":"compute","ratio":0.52},{"cause":"input_cpu_bound",)"));
}

TEST_CASE("a finding has the keys of the schema, in its order") {
  const std::string json = findings_json(photograph_epoch().findings);
  REQUIRE(json_is_valid(json));
  CHECK(in_order(json, {"id", "family", "severity", "title", "evidence", "where", "gain_ratio",
                        "low", "high", "confidence", "remedies", "advice"}));
  CHECK(has(json, R"("id":"input_cpu_bound","family":2,"severity":"critical")"));
  CHECK(has(json, R"("input_wait_ratio":{"value":0.8,"text":"80 % of the step waits for input"})"));
  CHECK(has(json, R"("remedies":["loader_workers","main_threads"])"));
}

TEST_CASE("a row of the ledger has the keys of the schema, in its order") {
  const std::string json =
      ledger_json(std::vector{kept_row()}, std::vector<LoaderName>{{1, "PhotoDataset"}});
  REQUIRE(json_is_valid(json));
  CHECK(in_order(
      json, {"id", "remedy", "class", "reason", "step", "before", "after", "speedup", "low", "mid",
             "high", "cpu_seconds_per_sample", "before", "after", "outcome", "undo", "recipe"}));
  CHECK(has(json, R"("remedy":"loader_workers + main_threads","class":"rounding")"));
  CHECK(has(json,
            R"({"remedy":"loader_workers","subject":1,"loader":"PhotoDataset","from":0,"to":2})"));
  CHECK(has(json, R"("speedup":{"low":1.71,"mid":1.78,"high":1.84})"));
  CHECK(has(json, R"("outcome":"kept")"));
  CHECK(has(json, R"_("undo":"mon.revert(1)")_"));
}

TEST_CASE("what was not measured is null and never zero") {
  LedgerRow refused;
  refused.outcome = Outcome::refused;
  const std::string row = ledger_json(std::vector{refused});
  CHECK(has(row, R"("before":{"step_seconds":null,"samples_per_second":null})"));
  CHECK(has(row, R"("speedup":{"low":null,"mid":null,"high":null})"));
  CHECK(has(row, R"("undo":null,"recipe":null)"));
  const std::string epoch = epoch_json(EpochSummary{});
  REQUIRE(json_is_valid(epoch));
  CHECK(has(epoch, R"("samples_per_second":null)"));
  CHECK(has(epoch, R"("step_seconds":{"p50":null,"p95":null})"));
  CHECK(has(epoch, R"("forward":null)"));
  CHECK(has(epoch, R"("device":{"busy_ratio":null})"));
  CHECK(has(epoch, R"("overhead":{"microseconds_per_step":null,"ratio":null,"threads":0})"));
}

TEST_CASE("the phases of the epoch budget sum to its wall time") {
  const std::string json = epoch_json(photograph_epoch());
  REQUIRE(json_is_valid(json));
  CHECK(json.find('\n') == std::string::npos);  // one line of epochs.jsonl
  double sum = 0;
  for (const std::string_view name : kPhaseNames) {
    std::string key = "\"";
    key.append(name).append("\":");
    sum += std::strtod(json.c_str() + json.find(key) + key.size(), nullptr);
  }
  CHECK(sum == doctest::Approx(6.9));
}

TEST_CASE("phases that nobody told apart are null, not zero") {
  EpochSummary epoch = photograph_epoch();
  epoch.budget = {};
  epoch.budget[Phase::input_wait] = 80 * kMs;
  epoch.budget[Phase::other] = 20 * kMs;
  const std::string json = epoch_json(epoch);
  CHECK(has(json, R"("phases":{"input_wait":0.08,"host_to_device":null,"forward":null,)"));
  CHECK(has(json, R"("evaluation":0,"gpuutil":0,"other":0.02})"));
}

TEST_CASE(
    "numbers that are not numbers and an environment that is not JSON do not spoil the report") {
  RunSummary run = photograph_run();
  run.environment_json = "{oops";
  run.run.id = "\xff\n\"";
  run.profile.unexplained_ratio = std::numeric_limits<double>::quiet_NaN();
  run.findings.front().gain_ratio.high = std::numeric_limits<double>::infinity();
  const std::string json = run_json(run);
  CHECK(json_is_valid(json));
  CHECK(has(json, R"("unexplained_ratio":null)"));
}

TEST_CASE("empty lists are lists") {
  CHECK(findings_json({}) == "[]");
  CHECK(ledger_json({}) == "[]");
  CHECK(json_is_valid(run_json(RunSummary{})));
}

}  // namespace
}  // namespace gpuutil
