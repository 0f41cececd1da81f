#include "profile/window.h"

namespace gpuutil {
namespace {

bool same_shape(const Step& a, const Step& b) {
  return a.micro_steps == b.micro_steps && a.optimizer_ends == b.optimizer_ends &&
         a.loader == b.loader;
}

}  // namespace

void Window::restart() {
  steps_.clear();
  other_shape_.clear();
  sampled_ = 0;
}

void Window::put(const Step& step) {
  steps_.push_back(step);
  sampled_ += step.sampled ? 1 : 0;
  if (steps_.size() <= capacity_) return;
  sampled_ -= steps_.front().sampled ? 1 : 0;
  steps_.pop_front();
}

void Window::add(const Step& step) {
  if ((step.marks & kStepChanged) != 0) {
    restart();
    return;
  }
  if (step.marks != kStepClean) return;
  if (steps_.empty() || same_shape(step, steps_.back())) {
    other_shape_.clear();
    put(step);
    return;
  }
  // One step without its optimizer (GradScaler) is another shape for once; a new accumulation
  // stays.
  if (!other_shape_.empty() && !same_shape(step, other_shape_.back())) other_shape_.clear();
  other_shape_.push_back(step);
  if (other_shape_.size() < kNewShape) return;
  std::deque<Step> fresh;
  fresh.swap(other_shape_);
  restart();
  for (const Step& s : fresh) put(s);
}

}  // namespace gpuutil
