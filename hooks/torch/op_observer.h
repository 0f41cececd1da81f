// The operator observer of sampled steps (tier H2): one RecordFunction callback, added when a
// sampled step begins and removed when it ends. It is never left registered: even a disabled one
// costs every autograd node of every step. Callbacks run on whichever thread runs the operator and
// write to that thread's recorder only.
#pragma once

#include "record/table.h"

namespace gpuutil::torch_hooks {

// What is written, per thread and with end times that never go back:
//   op             operators outside of any other operator; disjoint from each other and from
//   backward_node backward_node  nodes of the autograd engine that are not inside another range of
//   FUNCTION scope sync           host syncs at any depth, outermost only; each lies inside an op
//   or a backward_node optimizer_begin, zero_grad, range   from the ranges that PyTorch opens
//   itself
// A range that was open when the observer came is not reported, nor is one that is open when it
// goes.

// Connects to `_core` and hands it the switch. The table must outlive the process's last operator.
void connect_observer(const GpuutilRecorderTable* table) noexcept;

// Removes the callback if it is in place and takes the switch back.
void disconnect_observer() noexcept;

}  // namespace gpuutil::torch_hooks
