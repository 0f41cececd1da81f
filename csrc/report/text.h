// Lines of plain text with a fixed number of columns. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuutil {

// Printable ASCII only: control characters and line ends become a space, each other character a
// '?'. A name in the user's script must not be able to break a line of the log.
std::string plain(std::string_view text);

// At most `columns` of plain text, "..." where something was cut.
std::string fit(std::string_view text, size_t columns);

// `head` is cut, `tail` never (unless it alone is too long).
std::string fit_with_tail(std::string_view head, std::string_view tail, size_t columns);

// Broken at spaces; later lines are indented. What does not fit into `lines` is cut.
std::vector<std::string> wrap(std::string_view text, size_t columns, size_t lines, size_t indent);

}  // namespace gpuutil
