#include "report/time_shares.h"

#include <doctest/doctest.h>

#include <random>

#include "summary_cases.h"

namespace gpuutil {
namespace {

double ratio_of(const TimeShares& shares, std::string_view label) {
  for (const TimeShare& part : shares.parts) {
    if (part.label == label) return part.ratio;
  }
  return -1;
}

TEST_CASE("the shares are those of the epoch budget, zeros left out except for input") {
  const TimeShares shares = time_shares(photograph_epoch());
  CHECK(shares.split);
  CHECK(ratio_of(shares, "input") == doctest::Approx(0.8));
  CHECK(ratio_of(shares, "backward") == doctest::Approx(620.0 / 6900));
  CHECK(ratio_of(shares, "eval") == -1);
  EpochSummary e = photograph_epoch();
  e.budget[Phase::input_wait] = 0;
  CHECK(ratio_of(time_shares(e), "input") == 0);
}

TEST_CASE("whatever the epoch, shares sum to one, printed percentages to 100, and the line fits") {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    EpochSummary e;
    for (int64_t& ns : e.budget.ns)
      ns = random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 1'000'000'000);
    e.profile.coverage_ratio = 0.09;
    if (e.budget.total() == 0) continue;
    const TimeShares shares = time_shares(e);
    double sum = 0;
    int percent = 0;
    for (const TimeShare& part : shares.parts) {
      REQUIRE(part.ratio >= 0);
      REQUIRE(part.percent >= 0);
      sum += part.ratio;
      percent += part.percent;
    }
    CHECK(sum == doctest::Approx(1));
    CHECK(percent == 100);
    const std::string line = time_line(e, 100);
    CHECK(line.size() <= 100);
    CHECK(line.find("...") == std::string::npos);
    int printed = 0;
    for (size_t at = line.find(" %"); at != std::string::npos && at < line.find(" (");
         at = line.find(" %", at + 1)) {
      printed += std::stoi(line.substr(line.rfind(' ', at - 1)));
    }
    CHECK(printed == 100);
  }
}

TEST_CASE("without sampled steps forward, backward and optimizer are one number") {
  EpochSummary e = photograph_epoch();
  e.budget = {};
  e.budget[Phase::input_wait] = 80 * kMs;
  e.budget[Phase::other] = 20 * kMs;
  const std::string line = time_line(e, 100);
  CHECK(line == "time: input 80 % | training 20 %   (forward, backward, optimizer not told apart)");
}

TEST_CASE("no time is no share") { CHECK(time_line(EpochSummary{}, 100) == "time: not measured"); }

}  // namespace
}  // namespace gpuutil
