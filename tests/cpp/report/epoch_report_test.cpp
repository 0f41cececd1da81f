#include "report/epoch_report.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "summary_cases.h"

namespace gpuutil {
namespace {

void check_shape(const std::string& text) {
  const std::vector<std::string> lines = lines_of(text);
  CHECK(lines.size() <= kReportLines);
  for (const std::string& line : lines) {
    CAPTURE(line);
    CHECK(line.size() <= kReportColumns);
    for (const char c : line) CHECK((c >= 0x20 && c < 0x7f));
  }
  CHECK(lines.front().starts_with("epoch "));
  CHECK(lines.back().starts_with("gpuutil: "));
}

// The files are the report as a reader sees it. GPUUTIL_UPDATE_GOLDEN=1 writes them anew: look at
// the difference.
void check_golden(const std::string& name, const EpochSummary& epoch) {
  CAPTURE(name);
  const std::string text = epoch_report(epoch);
  check_shape(text);
  const std::string path = std::string(GPUUTIL_TEST_DATA) + "/" + name + ".txt";
  if (std::getenv("GPUUTIL_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text << "\n";
  }
  CHECK(text + "\n" == read_file(path));
}

TEST_CASE("a healthy epoch says so") { check_golden("healthy", healthy_epoch()); }

TEST_CASE("an input-bound epoch names the cause, what removing it saves and what to do") {
  check_golden("input_bound", photograph_epoch());
}

TEST_CASE(
    "after a kept change the report shows its effect, the way back and what bounds the rest") {
  check_golden("kept_change", tuned_epoch());
}

TEST_CASE("trials that wait for other programs are explained") {
  EpochSummary e = photograph_epoch();
  e.foreign.cores = 1.3;
  e.foreign.held_seconds = 5.2;
  Features f = photograph_features();
  f.host.crowding_cores = 0.9;
  add_diagnosis(e, f);
  check_golden("foreign_load", e);
}

TEST_CASE("without the sampled phases the report says what is missing") {
  EpochSummary e = photograph_epoch();
  e.profile.phase_ratio = {};
  e.profile.coverage_ratio.reset();
  e.budget = {};
  e.budget[Phase::input_wait] = 5520 * kMs;
  e.budget[Phase::other] = 1380 * kMs;
  e.missing = {
      {"_torch",
       "built for torch 2.12.1, this is 2.13.0: run pip install --force-reinstall gpuutil"}};
  Features f = photograph_features();
  f.fetch_cpu_ratio.reset();
  f.user_python_seconds.reset();
  add_diagnosis(e, f);
  check_golden("no_torch_module", e);
}

TEST_CASE("three steps are too few for a verdict and enough for a report") {
  EpochSummary e;
  e.epoch = 1;
  e.steps = 3;
  e.wall_seconds = 0.33;
  e.samples_per_second = 9.7;
  e.budget[Phase::input_wait] = 250 * kMs;
  e.budget[Phase::other] = 80 * kMs;
  e.overhead = {1.4, 1.3e-5, 1};
  Features f = photograph_features();
  f.steps = 3;
  add_diagnosis(e, f);
  check_golden("three_steps", e);
}

TEST_CASE("an epoch of which nothing was measured claims nothing") {
  check_golden("nothing_measured", EpochSummary{});
}

TEST_CASE("everything at once still fits into eight lines, and no way back is cut") {
  EpochSummary e = tuned_epoch();
  const std::string long_name(300, 'x');
  e.loaders = {{1, long_name}, {2, "validation\tloader\n\xc3\xa9"}};
  e.missing = {{"_torch", long_name}, {"cgroup", long_name}};
  e.foreign.cores = 0.7;
  for (int64_t id = 2; id < 12; ++id) {
    LedgerRow row = kept_row();
    row.id = id;
    row.undo = "mon.revert(" + std::to_string(id) + ")";
    row.changes.insert(row.changes.end(), {{"loader_prefetch", 1, 2, 4}, {long_name, 2, 0, 1}});
    e.changes.push_back(row);
  }
  e.findings.front().title += " " + long_name;
  e.findings.front().advice += " " + long_name;
  const std::string text = epoch_report(e);
  check_shape(text);
  CHECK(lines_of(text).size() == kReportLines);
  CHECK(text.find("undo: mon.revert(1); 10 more in mon.ledger") != std::string::npos);
  check_golden("everything", e);
}

TEST_CASE("tried, failed and refused changes are told apart") {
  EpochSummary e = healthy_epoch();
  LedgerRow slower = kept_row();
  slower.changes = {{"loader_prefetch", 1, 2, 4}};
  slower.speedup = Interval{0.95, 0.97, 0.99};
  slower.outcome = Outcome::undone;
  slower.in_force = false;
  LedgerRow failed = slower;
  failed.changes = {{"loader_workers", 1, 2, 3}};
  failed.speedup.reset();
  failed.outcome = Outcome::failed;
  failed.conclusion = "a worker did not start within 20 s";
  LedgerRow running = kept_row();
  running.id = 4;
  running.changes = {{"main_threads", 0, 2, 1}};
  running.speedup.reset();
  running.outcome = Outcome::running;
  running.undo = "mon.revert(4)";
  e.changes = {slower, failed, running};
  check_golden("trials", e);
}

TEST_CASE(
    "the first line compares with the first epoch in both directions and is silent on a tie of "
    "nothing") {
  EpochSummary e = tuned_epoch();
  const auto first_line = [&] { return lines_of(epoch_report(e)).front(); };
  CHECK(first_line().find("(1.78x faster than epoch 1)") != std::string::npos);
  e.first_step_seconds_p50 = 0.0500;
  CHECK(first_line().find("(1.24x slower than epoch 1)") != std::string::npos);
  e.first_step_seconds_p50 = 0.0625;
  CHECK(first_line().find("(as in epoch 1)") != std::string::npos);
  e.first_step_seconds_p50.reset();
  CHECK(first_line().find("epoch 1)") == std::string::npos);
  e.first_samples_per_second = 128.8;
  CHECK(first_line().find("(2.00x faster than epoch 1)") != std::string::npos);
}

TEST_CASE("foreign load below the controller's line is not worth a line") {
  EpochSummary e = photograph_epoch();
  e.foreign.cores = 0.19;
  CHECK(epoch_report(e).find("other programs") == std::string::npos);
  e.foreign.cores = 0.21;
  CHECK(epoch_report(e).find("other programs used 0.21 of 2 CPUs: step times include that") !=
        std::string::npos);
  e.foreign.cores.reset();
  CHECK(epoch_report(e).find("other programs") == std::string::npos);
}

TEST_CASE("a finding that may save nothing is not a verdict") {
  EpochSummary e = healthy_epoch();
  Finding small;
  small.id = "host_python";
  small.title = "6 % of the step is left over";
  small.gain_ratio = {0.0, 0.06};
  e.findings = {small};
  CHECK(epoch_report(e).find(
            "verdict: nothing that surely saves 2 % of a step; nearest: host_python") !=
        std::string::npos);
}


TEST_CASE("a danger to the run is a verdict that promises no time") {
  EpochSummary e = healthy_epoch();
  Finding danger;
  danger.id = "shm_small";
  danger.title = "batches in flight may need 60 MB of the 67.1 MB in /dev/shm";
  danger.confidence = 0.9;
  danger.at_least = Severity::critical;
  danger.advice = "give the container more";
  e.findings = {danger};
  const std::string text = epoch_report(e);
  CHECK(text.find("verdict: shm_small: batches in flight") != std::string::npos);
  CHECK(text.find("a danger to the run, not time lost: give the container more") != std::string::npos);
}

}  // namespace
}  // namespace gpuutil
