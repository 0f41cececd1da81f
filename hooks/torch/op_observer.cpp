#include "op_observer.h"

#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>

#include "range_kind.h"
#include "record/event.h"

namespace gpuutil::torch_hooks {
namespace {

std::atomic<const GpuutilRecorderTable*> g_table{nullptr};

// Odd while the observer is in place. Every switch moves it on, so that whatever a thread still
// holds from an earlier period is recognised as stale.
std::atomic<uint32_t> g_generation{0};

std::atomic<pid_t> g_owner{
    0};  // the process that connected; a forked child leaves PyTorch's registry alone

std::mutex g_switch_mutex;  // guards g_handle; never held while a callback runs
at::CallbackHandle g_handle = at::INVALID_CALLBACK_HANDLE;

// An open range. It is recognised by its address: an asynchronous range or one that ends on another
// thread can leave its entry behind, and must not make others end in its place.
struct OpenRange {
  const at::RecordFunction* range;
  int64_t begin_ns;
  RangeKind kind;
  bool function_scope;
  bool outermost;       // no other range of function scope around it
  bool outermost_sync;  // a sync, and no other sync around it
};

// Past kMaxOpen nothing is reported; what is reported is outermost or a sync, and neither is that
// deep in practice.
constexpr int kMaxOpen = 64;

struct OpenRanges {
  uint32_t generation;
  int count;
  int functions;  // open ranges of function scope
  int syncs;      // open syncs
  OpenRange open[kMaxOpen];
};
// Registering a destructor could deadlock a child that is forked in that moment.
static_assert(std::is_trivially_destructible_v<OpenRanges>);
thread_local OpenRanges t_ranges;

void emit(const GpuutilRecorderTable* table, EventKind kind, uint32_t subject, int64_t time_ns,
          int64_t value) {
  table->emit(static_cast<uint16_t>(kind), 0, subject, time_ns, value);
}

// The calling thread's open ranges, or null while nothing is to be recorded.
OpenRanges* current_ranges(const at::RecordFunction& range, const GpuutilRecorderTable* table) {
  if (table == nullptr || table->inert() != 0 || range.isAsync()) return nullptr;
  const uint32_t generation = g_generation.load(std::memory_order_acquire);
  if (generation % 2 == 0) return nullptr;
  OpenRanges& ranges = t_ranges;
  if (ranges.generation != generation) {
    ranges.generation = generation;
    ranges.count = ranges.functions = ranges.syncs = 0;
  }
  return &ranges;
}

std::unique_ptr<at::ObserverContext> range_begins(const at::RecordFunction& range) {
  const GpuutilRecorderTable* table = g_table.load(std::memory_order_acquire);
  OpenRanges* ranges = current_ranges(range, table);
  if (ranges == nullptr || ranges->count == kMaxOpen) return nullptr;

  OpenRange entry{&range, 0, RangeKind::ignored, true, false, false};
  switch (range.scope()) {
    case at::RecordScope::USER_SCOPE:
      entry.kind = kind_of_user_range(range.name());
      if (entry.kind == RangeKind::ignored) return nullptr;
      entry.function_scope = false;
      break;
    case at::RecordScope::BACKWARD_FUNCTION:
      entry.kind = RangeKind::backward_node;
      break;
    default:
      entry.kind = kind_of_function(range.name());
      break;
  }
  if (entry.function_scope) {
    entry.outermost = ranges->functions++ == 0;
    if (entry.kind == RangeKind::sync) entry.outermost_sync = ranges->syncs++ == 0;
  }
  if (!entry.function_scope || entry.outermost || entry.outermost_sync) {
    entry.begin_ns = table->now_ns();
  }
  ranges->open[ranges->count++] = entry;
  if (entry.kind == RangeKind::optimizer) {
    emit(table, EventKind::optimizer_begin, 0, entry.begin_ns, 0);
  }
  return nullptr;
}

void report(const OpenRange& entry, const char* name, const GpuutilRecorderTable* table) {
  if (entry.function_scope && !entry.outermost && !entry.outermost_sync) return;
  const int64_t end_ns = table->now_ns();
  const int64_t duration_ns = end_ns - entry.begin_ns;
  if (entry.outermost_sync) emit(table, EventKind::sync, 0, end_ns, duration_ns);
  if (entry.outermost) {
    const bool node = entry.kind == RangeKind::backward_node;
    emit(table, node ? EventKind::backward_node : EventKind::op, 0, end_ns, duration_ns);
  }
  if (entry.kind == RangeKind::zero_grad) {
    emit(table, EventKind::zero_grad, 0, end_ns, duration_ns);
  } else if (entry.kind == RangeKind::named) {
    emit(table, EventKind::range, table->intern(name, std::strlen(name)), end_ns, duration_ns);
  }
}

void range_ends(const at::RecordFunction& range, at::ObserverContext* /*context*/) {
  const GpuutilRecorderTable* table = g_table.load(std::memory_order_acquire);
  OpenRanges* ranges = current_ranges(range, table);
  if (ranges == nullptr) return;
  int at = ranges->count - 1;
  while (at >= 0 && ranges->open[at].range != &range) --at;
  if (at < 0) return;  // begun before the observer came, or a user range that means nothing to us
  const OpenRange entry = ranges->open[at];
  for (; ranges->count > at; --ranges->count) {  // entries above it have lost their end
    const OpenRange& gone = ranges->open[ranges->count - 1];
    if (gone.function_scope) --ranges->functions;
    if (gone.kind == RangeKind::sync) --ranges->syncs;
  }
  report(entry, range.name(), table);
}

void switch_observer(int on) noexcept {
  // PyTorch's registry, and ours, are behind mutexes that a forked child may have inherited locked.
  // inert() is no help here: the observer has to go even when it is already true.
  if (getpid() != g_owner.load(std::memory_order_acquire)) return;
  try {
    const std::lock_guard<std::mutex> lock(g_switch_mutex);
    const bool in_place = g_handle != at::INVALID_CALLBACK_HANDLE;
    if ((on != 0) == in_place) return;
    if (in_place) {
      g_generation.fetch_add(1, std::memory_order_acq_rel);
      const at::CallbackHandle handle = g_handle;
      g_handle = at::INVALID_CALLBACK_HANDLE;
      at::removeCallback(handle);
      return;
    }
    g_handle = at::addGlobalCallback(
        at::RecordFunctionCallback(range_begins, range_ends)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                     at::RecordScope::USER_SCOPE}));
    g_generation.fetch_add(1, std::memory_order_acq_rel);
  } catch (...) {
    // Out of memory at worst: this step is not sampled.
  }
}

}  // namespace

void connect_observer(const GpuutilRecorderTable* table) noexcept {
  g_table.store(table, std::memory_order_release);
  g_owner.store(getpid(), std::memory_order_release);
  table->set_observer(switch_observer);
  table->set_grad_mode([] { return c10::GradMode::is_enabled() ? 1 : 0; });
}

void disconnect_observer() noexcept {
  const GpuutilRecorderTable* table = g_table.load(std::memory_order_acquire);
  if (table == nullptr) return;
  switch_observer(0);
  table->set_observer(nullptr);
  table->set_grad_mode(nullptr);
}

}  // namespace gpuutil::torch_hooks
