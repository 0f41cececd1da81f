#include "base/intern.h"

namespace gpuutil {

Interner::Interner(size_t max_names) : max_names_(max_names) {
  for (const char* reserved : {"", "(other)"}) {
    const std::string& stored = names_.emplace_back(reserved);
    ids_.emplace(stored, static_cast<uint32_t>(names_.size() - 1));
  }
}

uint32_t Interner::intern(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
  if (names_.size() >= max_names_ + 2) {
    ++overflows_;
    return kOther;
  }
  const auto id = static_cast<uint32_t>(names_.size());
  ids_.emplace(names_.emplace_back(name), id);
  return id;
}

std::string_view Interner::name(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return id < names_.size() ? std::string_view(names_[id]) : std::string_view();
}

size_t Interner::size() const {
  const std::lock_guard lock(mutex_);
  return names_.size();
}

uint64_t Interner::overflows() const {
  const std::lock_guard lock(mutex_);
  return overflows_;
}

}  // namespace gpuutil
