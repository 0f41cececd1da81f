#include "tune/policy.h"

#include <doctest/doctest.h>

namespace gpuutil {

TEST_CASE("each rung of the ladder allows what the one below allows, and its own class") {
  const Exactness classes[] = {Exactness::exact, Exactness::rounding, Exactness::distribution,
                               Exactness::precision, Exactness::semantics};
  const struct {
    Rung rung;
    int allowed;
  } rows[] = {{Rung::observe, 0},
              {Rung::exact, 1},
              {Rung::automatic, 3},
              {Rung::precision, 4},
              {Rung::all, 5}};
  for (const auto& row : rows) {
    CAPTURE(rung_name(row.rung));
    Policy policy;
    policy.rung = row.rung;
    for (int i = 0; i < 5; ++i) CHECK(policy.allows(classes[i]) == (i < row.allowed));
  }
}

TEST_CASE("a rung is read from the word that attach takes, and no other") {
  CHECK(rung_from_name("auto") == Rung::automatic);
  CHECK(rung_from_name("observe") == Rung::observe);
  CHECK(rung_from_name("all") == Rung::all);
  CHECK_FALSE(rung_from_name("automatic"));
  CHECK_FALSE(rung_from_name(""));
}

}  // namespace gpuutil
