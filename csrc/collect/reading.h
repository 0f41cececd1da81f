// What one reading of the host gave: a value, or a state with a reason why there is none. A reading
// is never 0 for 'could not be read'. Plain data, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace gpuutil {

enum class ReadState : uint8_t {
  ok,
  waiting,  // a rate, and there is only one reading so far
  absent,  // this kernel, container or process does not have it
  unreadable,  // it exists and reading it failed
  malformed,  // it was read and is not what it should be
  inconsistent,  // readings contradict one another
};

struct Unknown {
  ReadState state = ReadState::waiting;
  std::string reason;
};

// What a reading of several parts could not see; ok where it saw everything.
struct Gap {
  ReadState state = ReadState::ok;
  std::string reason;

  explicit operator bool() const { return state != ReadState::ok; }
  // The first one found is kept.
  void note(Unknown found) {
    if (state != ReadState::ok) return;
    state = found.state;
    reason = std::move(found.reason);
  }
  Unknown unknown() const { return {state, reason}; }
};

template <class T>
struct Reading {
  std::optional<T> value;
  ReadState state = ReadState::waiting;
  std::string reason = "not read yet";

  Reading() = default;
  Reading(T known) : value(std::move(known)), state(ReadState::ok), reason() {}  // NOLINT: implicit
  Reading(Unknown why) : state(why.state), reason(std::move(why.reason)) {}  // NOLINT: implicit

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
  // Only where there is no value: the reason, for a reading of another type.
  Unknown unknown() const { return {state, reason}; }
};

}  // namespace gpuutil
