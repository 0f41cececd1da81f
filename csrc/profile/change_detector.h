// Has the run become another one since the record was taken (DESIGN 8: re-arm when the step time or
// the wait moves by 1.4)? Compares medians of whole groups of steps, so single outliers do not
// count. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "timeline/step.h"

namespace gpuutil {

struct Movement {
  bool wait = false;  // the wait moved; else the step time
  double factor = 1;  // now / record
};

class ChangeDetector {
 public:
  static constexpr size_t kGroup = 16;
  static constexpr double kFactor = 1.4;
  static constexpr double kLeastShare =
      0.05;  // of the step: a wait that stays below it never counts

  // Comparable steps only: others are passed over. The first kGroup after rearm() become the
  // record.
  void add(const Step& step);
  // Against the record; empty while there is none or nothing moved.
  std::optional<Movement> moved() const;
  // The next steps become the record.
  void rearm();

 private:
  struct Times {
    double wall_ns = 0;
    double wait_ns = 0;
  };
  static Times middle(const std::deque<Times>& group);

  std::optional<Times> record_;
  std::deque<Times> group_;
};

}  // namespace gpuutil
