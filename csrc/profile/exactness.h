// How far a change may move the result of training (DESIGN 7).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuutil {

enum class Exactness : uint8_t { exact, rounding, distribution, precision, semantics };

constexpr std::string_view exactness_name(Exactness value) {
  constexpr std::string_view names[] = {"exact", "rounding", "distribution", "precision",
                                        "semantics"};
  return names[static_cast<size_t>(value)];
}

constexpr std::optional<Exactness> exactness_from_name(std::string_view name) {
  for (const Exactness value : {Exactness::exact, Exactness::rounding, Exactness::distribution,
                                Exactness::precision, Exactness::semantics}) {
    if (exactness_name(value) == name) return value;
  }
  return std::nullopt;
}

}  // namespace gpuutil
