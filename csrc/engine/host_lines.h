// What can be read of this host and what cannot, as (name, text) for `gpuutil doctor`. Reads once; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gpuutil {

std::vector<std::pair<std::string, std::string>> host_lines(const std::string& root = "/");

}  // namespace gpuutil
