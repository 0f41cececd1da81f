#include "profile/share.h"

#include <algorithm>
#include <numeric>

namespace gpuutil {

std::vector<int64_t> share_out(int64_t amount, std::span<const int64_t> weights) {
  std::vector<int64_t> parts(weights.size(), 0);
  if (parts.empty()) return parts;
  __extension__ using Wide = __int128;
  Wide total = 0;
  for (int64_t w : weights) total += w;
  if (total == 0) {
    parts.back() = amount;
    return parts;
  }
  std::vector<Wide> remainders(weights.size());
  int64_t left = amount;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Wide product = static_cast<Wide>(amount) * weights[i];
    parts[i] = static_cast<int64_t>(product / total);
    remainders[i] = product % total;
    left -= parts[i];
  }
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (size_t i = 0; left > 0; ++i, --left) ++parts[order[i]];
  return parts;
}

}  // namespace gpuutil
