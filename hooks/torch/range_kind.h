// Tells what an observed range is from its name: first character, then a prefix, because it runs
// for every operator of a sampled step. Reads the name in place and never keeps it (user range
// names die with the range).
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuutil::torch_hooks {

enum class RangeKind : uint8_t {
  ignored,        // a user range that means nothing to us
  op,             // an operator, or anything else in FUNCTION scope
  sync,           // an operator whose result the host has to wait for
  backward_node,  // one node, run by the autograd engine
  optimizer,
  zero_grad,
  named,  // DDP and FSDP say what they are doing
};

// FUNCTION scope. The syncs are those that the name alone gives away: .item() and bool(tensor), and
// operators whose output size depends on the data. Copies to the host cannot be told from other
// copies without their arguments.
constexpr RangeKind kind_of_function(std::string_view name) {
  if (name.empty() || name[0] != 'a') return RangeKind::op;
  if (name.starts_with("autograd::engine::evaluate_function")) return RangeKind::backward_node;
  if (!name.starts_with("aten::")) return RangeKind::op;
  const std::string_view op = name.substr(6);
  if (op.empty()) return RangeKind::op;
  switch (op[0]) {
    case '_':
      return op == "_local_scalar_dense" || op == "_unique2" ? RangeKind::sync : RangeKind::op;
    case 'e':
      return op == "equal" ? RangeKind::sync : RangeKind::op;
    case 'i':
      return op == "item" || op == "is_nonzero" ? RangeKind::sync : RangeKind::op;
    case 'm':
      return op == "masked_select" ? RangeKind::sync : RangeKind::op;
    case 'n':
      return op == "nonzero" ? RangeKind::sync : RangeKind::op;
    default:
      return RangeKind::op;
  }
}

// USER_SCOPE. The ranges of the DataLoader are left out: the fetch itself is hooked, always.
constexpr RangeKind kind_of_user_range(std::string_view name) {
  if (name.empty()) return RangeKind::ignored;
  switch (name[0]) {
    case 'O':
      if (name.starts_with("Optimizer.step#")) return RangeKind::optimizer;
      if (name.starts_with("Optimizer.zero_grad#")) return RangeKind::zero_grad;
      return RangeKind::ignored;
    case 'D':
      return name.starts_with("DistributedDataParallel.") ? RangeKind::named : RangeKind::ignored;
    case 'F':
      return name.starts_with("FSDP::") || name.starts_with("FullyShardedDataParallel.")
                 ? RangeKind::named
                 : RangeKind::ignored;
    default:
      return RangeKind::ignored;
  }
}

}  // namespace gpuutil::torch_hooks
