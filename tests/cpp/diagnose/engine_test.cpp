#include "diagnose/engine.h"

#include <doctest/doctest.h>

#include <set>
#include <stdexcept>

#include "diagnose/rule_result.h"
#include "feature_cases.h"

namespace gpuutil {
namespace {

std::string verdict_of(const Features& features) {
  const Diagnosis diagnosis = diagnose(features);
  return diagnosis.findings.empty() ? "" : diagnosis.findings.front().id;
}

Finding simple(std::string id, double low, double confidence) {
  Finding finding;
  finding.id = std::move(id);
  finding.gain_ratio = {low, low};
  finding.confidence = confidence;
  return finding;
}

TEST_CASE("each case of the casebook gets one verdict") {
  CHECK(verdict_of(photographs_without_workers()) == "input_cpu_bound");
  CHECK(verdict_of(photographs_with_workers()) == "too_few_cpus");
  CHECK(verdict_of(object_store_without_workers()) == "input_latency_bound");
  CHECK(verdict_of(object_store_with_two_workers()) == "input_latency_bound");
  CHECK(verdict_of(healthy_loop()) == "");
}

TEST_CASE(
    "a loop where input and training take turns and the work is unknown is a single process") {
  Features f = photographs_without_workers();
  f.fetch_cpu_ratio.reset();
  CHECK(verdict_of(f) == "input_single_process");
}

TEST_CASE("a healthy loop has looked at everything and found nothing") {
  const Diagnosis diagnosis = diagnose(healthy_loop());
  CHECK(diagnosis.findings.empty());
  CHECK(diagnosis.not_measured.empty());
  CHECK(diagnosis.clear.size() == kRules.size());
}

TEST_CASE("three steps give no finding and one reason from every rule") {
  Features f = photographs_without_workers();
  f.steps = 3;
  const Diagnosis diagnosis = diagnose(f);
  CHECK(diagnosis.findings.empty());
  REQUIRE(diagnosis.not_measured.size() == kRules.size());
  for (const NotMeasured& rule : diagnosis.not_measured)
    CHECK(rule.reason == "3 comparable steps seen, 8 needed");
}

TEST_CASE("features of nothing at all give no finding and no crash") {
  const Diagnosis diagnosis = diagnose(Features{});
  CHECK(diagnosis.findings.empty());
  CHECK(diagnosis.not_measured.size() == kRules.size());
}

TEST_CASE("findings are ranked by the low end, ties by confidence, then by id") {
  std::vector<Finding> findings = {simple("small", 0.1, 1.0), simple("b_tie", 0.3, 0.5),
                                   simple("sure", 0.3, 0.9), simple("a_tie", 0.3, 0.5)};
  rank_findings(findings);
  std::vector<std::string> order;
  for (const Finding& finding : findings) order.push_back(finding.id);
  CHECK(order == std::vector<std::string>{"sure", "a_tie", "b_tie", "small"});
}

TEST_CASE("a danger to the run ranks by its severity, although it saves no time") {
  std::vector<Finding> findings = {simple("some", 0.05, 1.0), simple("danger", 0, 0.9),
                                   simple("hint", 0.01, 1.0), simple("much", 0.3, 1.0)};
  findings[1].at_least = Severity::warning;
  CHECK(severity(findings[1]) == Severity::warning);
  rank_findings(findings);
  std::vector<std::string> order;
  for (const Finding& finding : findings) order.push_back(finding.id);
  CHECK(order == std::vector<std::string>{"much", "some", "danger", "hint"});
}

RuleResult broken(const Features&, const Thresholds&) {
  throw std::runtime_error("division of labour");
}
RuleResult fine(const Features&, const Thresholds&) { return found(simple("fine", 0.1, 1)); }

TEST_CASE("a rule that throws is not measured and takes no other rule with it") {
  const std::vector<RuleEntry> rules = {{"broken", Family::data, broken},
                                        {"fine", Family::data, fine}};
  const Diagnosis diagnosis = diagnose(healthy_loop(), kThresholds, rules);
  REQUIRE(diagnosis.findings.size() == 1);
  REQUIRE(diagnosis.not_measured.size() == 1);
  CHECK(diagnosis.not_measured[0].reason == "the rule failed: division of labour");
}

TEST_CASE("the table lists every rule once, under the id and family that its finding carries") {
  std::set<std::string_view> ids;
  for (const RuleEntry& rule : kRules) CHECK(ids.insert(rule.id).second);
  Features python = healthy_loop();
  python.user_python_seconds = 0.02;
  Features descriptors = healthy_loop();
  descriptors.host.open_descriptors = 700;
  std::set<std::string_view> found_ids;
  for (const Features& f : {photographs_without_workers(), photographs_with_workers(),
                            object_store_without_workers(), python, rows_one_by_one(),
                            arrays_put_together(), short_epochs(), descriptors,
                            workers_on_one_cpu(), throttled_container(), crowded_machine(),
                            one_thread_on_four_cpus(), nested_threads(),
                            container_shared_memory()}) {
    for (const RuleEntry& rule : kRules) {
      const RuleResult result = rule.run(f, kThresholds);
      if (result.verdict != Verdict::found) continue;
      CHECK(result.finding->id == rule.id);
      CHECK(result.finding->family == rule.family);
      // "verdict: maybe <id>: <title>" in 100 columns.
      CHECK(result.finding->title.size() + rule.id.size() <= 100 - 17);
      found_ids.insert(rule.id);
    }
  }
  CHECK(found_ids == ids);
}

}  // namespace
}  // namespace gpuutil
