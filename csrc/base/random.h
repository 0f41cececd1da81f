// A small seeded generator of our own: decisions repeat under a seed and no stream of the user's is
// ever touched. Not thread-safe, not for secrets; the seed always comes from the caller.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace gpuutil {

// SplitMix64 (Steele, Lea, Flood 2014): one well-mixed word for each call; spreads a seed over a
// state.
constexpr uint64_t split_mix_64(uint64_t& state) noexcept {
  state += 0x9e3779b97f4a7c15u;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

// xoshiro256** (Blackman, Vigna 2018).
class Random {
 public:
  explicit constexpr Random(uint64_t seed) noexcept {
    for (uint64_t& word : state_) word = split_mix_64(seed);
  }

  // Uniform over all 64-bit words.
  constexpr uint64_t next() noexcept {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform over 0 .. n - 1, without modulo bias; 0 for n = 0. Multiply, and reject the few
  // products that would favour some results (Lemire 2019).
  constexpr uint64_t below(uint64_t n) noexcept {
    Wide product = Wide{next()} * n;
    if (static_cast<uint64_t>(product) < n) {
      const uint64_t biased = (0 - n) % n;
      while (static_cast<uint64_t>(product) < biased) product = Wide{next()} * n;
    }
    return static_cast<uint64_t>(product >> 64);
  }

  // Uniform over [0, 1), in steps of 2^-53.
  constexpr double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  __extension__ using Wide = unsigned __int128;

  std::array<uint64_t, 4> state_{};
};

}  // namespace gpuutil
