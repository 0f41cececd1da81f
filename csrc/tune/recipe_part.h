// The code that makes one setting permanent: the one place where remedies are turned into lines. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuutil {

struct RecipePart {
  std::string loader_argument;  // of DataLoader: "num_workers=2"
  std::string process_call;     // a statement: "torch.set_num_threads(1)"
  std::string comment;          // "# ...", where no statement says it; all empty where there is no code for it
};

RecipePart recipe_part(std::string_view remedy, int64_t value);

}  // namespace gpuutil
