// Numbers as people read them, for the texts of findings and reports. Pure; any thread.
#pragma once

#include <string>

namespace gpuutil {

std::string percent_text(double ratio);  // 0.4312 -> "43 %", 0.0123 -> "1.2 %"
std::string percent_range_text(double low,
                               double high);  // "29-48 %"; one number where both print alike
std::string duration_text(double seconds);    // "830 us", "62.1 ms", "1.24 s", "95 s"
std::string cores_text(double cores);         // "1.95", "2": CPUs to two digits
std::string speedup_text(double ratio);       // "1.78x"
std::string count_text(double value);         // "258", "2.1": three digits at most after rounding

}  // namespace gpuutil
