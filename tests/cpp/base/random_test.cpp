#include "base/random.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

namespace gpuutil {
namespace {

TEST_CASE("the seeding generator gives the published values for seed 1234567") {
  uint64_t state = 1234567;
  CHECK(split_mix_64(state) == 6457827717110365317u);
  CHECK(split_mix_64(state) == 3203168211198807973u);
  CHECK(split_mix_64(state) == 9817491932198370423u);
}

TEST_CASE("the same seed repeats the stream and another seed does not") {
  Random a(7);
  Random b(7);
  Random c(8);
  int equal_to_c = 0;
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a.next();
    CHECK(value == b.next());
    equal_to_c += value == c.next() ? 1 : 0;
  }
  CHECK(equal_to_c == 0);
}

TEST_CASE("seed 0 is as good as any other") {
  Random random(0);
  CHECK(random.next() != random.next());
}

TEST_CASE("below(n) stays below n and hits every value equally often") {
  Random random(3);
  CHECK(random.below(0) == 0);
  CHECK(random.below(1) == 0);
  constexpr int kDraws = 70'000;
  std::array<int, 7> hits{};
  for (int i = 0; i < kDraws; ++i) ++hits.at(random.below(7));
  double chi_square = 0;
  for (const int hit : hits) {
    const double excess = hit - kDraws / 7.0;
    chi_square += excess * excess / (kDraws / 7.0);
  }
  CHECK(chi_square < 22.5);  // 6 degrees of freedom, p = 0.001; the seed is fixed
}

// With n = 3 * 2^62 a plain remainder or product would give one third of the values twice the
// weight of the rest.
TEST_CASE("below(n) has no bias where n is a large part of the word") {
  Random random(11);
  constexpr uint64_t kThird = uint64_t{1} << 62;
  constexpr int kDraws = 30'000;
  std::array<int, 3> hits{};
  for (int i = 0; i < kDraws; ++i) ++hits.at(random.below(3 * kThird) / kThird);
  for (const int hit : hits) CHECK(hit == doctest::Approx(kDraws / 3.0).epsilon(0.05));
  std::array<int, 3> remainders{};
  for (int i = 0; i < kDraws; ++i) ++remainders.at(random.below(3 * kThird) % 3);
  for (const int hit : remainders) CHECK(hit == doctest::Approx(kDraws / 3.0).epsilon(0.05));
}

TEST_CASE("unit() covers [0, 1) with mean one half and variance one twelfth") {
  Random random(5);
  constexpr int kDraws = 50'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.unit();
    REQUIRE(value >= 0);
    REQUIRE(value < 1);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kDraws;
  CHECK(mean == doctest::Approx(0.5).epsilon(0.01));
  CHECK(squares / kDraws - mean * mean == doctest::Approx(1 / 12.0).epsilon(0.02));
}

}  // namespace
}  // namespace gpuutil
