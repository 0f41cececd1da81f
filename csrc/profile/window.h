// The recent comparable steps: clean, of one shape, under one setting (DESIGN 4). Bounded. One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "timeline/step.h"

namespace gpuutil {

class Window {
 public:
  static constexpr size_t kCapacity = 200;
  static constexpr size_t kNewShape = 3;  // steps in a row of another shape that make it the shape

  explicit Window(size_t capacity = kCapacity) : capacity_(capacity) {}

  // Steps that are not comparable are left out. kStepChanged and a new cycle restart the window.
  void add(const Step& step);
  void restart();

  const std::deque<Step>& steps() const { return steps_; }
  size_t size() const { return steps_.size(); }
  bool empty() const { return steps_.empty(); }
  size_t sampled() const { return sampled_; }

 private:
  void put(const Step& step);

  size_t capacity_;
  size_t sampled_ = 0;
  std::deque<Step> steps_;
  std::deque<Step> other_shape_;  // the latest steps in a row that did not fit
};

}  // namespace gpuutil
