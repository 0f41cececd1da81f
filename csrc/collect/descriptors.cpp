#include "collect/descriptors.h"

#include <string>
#include <string_view>
#include <vector>

#include "collect/process_times.h"
#include "collect/text.h"

namespace gpuutil {
namespace {

// A number or "unlimited", which is no number at all.
bool take_limit(std::string_view& rest, std::optional<int64_t>& limit) {
  const std::string_view word = next_word(rest);
  if (word == "unlimited") return true;
  limit = to_int(word);
  return limit.has_value();
}

}  // namespace

Reading<Descriptors> read_descriptors(FileReader& reader) {
  const ProcPath limits(0, 0, "limits");
  const Reading<std::string_view> text = reader.read(limits);
  if (!text) return text.unknown();
  std::optional<std::string_view> line = line_of(*text, "Max open files");
  Descriptors descriptors;
  if (!line || !take_limit(*line, descriptors.soft_limit) ||
      !take_limit(*line, descriptors.hard_limit)) {
    return Unknown{ReadState::malformed, std::string(limits.view()) + ": no limit of open files"};
  }
  std::vector<int32_t> numbers;
  const Reading<bool> all = reader.list_numbers(ProcPath(0, 0, "fd"), numbers, kMaxDescriptors);
  if (!all) return all.unknown();
  descriptors.open = static_cast<int64_t>(numbers.size());
  return descriptors;
}

}  // namespace gpuutil
