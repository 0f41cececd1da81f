#include "timeline/thread_roles.h"

namespace gpuutil {
namespace {

// A second thread that gives as good evidence takes over when the first has been silent for this
// many of its ends: a notebook that trains on a fresh thread each time, say.
constexpr int kTakeover = 16;
constexpr int kFetchTakeover = 64;

int evidence_of(EventKind kind, bool own_work) {
  switch (kind) {
    case EventKind::user_step:
      return 4;
    case EventKind::optimizer_end:
      return 3;
    case EventKind::backward_node:
      return own_work ? 2 : 0;  // a device thread only serves another
    case EventKind::fetch_end:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

ThreadRoles::Thread& ThreadRoles::find(uint32_t thread) {
  for (Thread& t : threads_) {
    if (t.id == thread) return t;
  }
  threads_.push_back({thread, 0, false, 0});
  return threads_.back();
}

bool ThreadRoles::is_autograd(uint32_t thread) const {
  for (const Thread& t : threads_) {
    if (t.id == thread) return !t.own_work;
  }
  return false;
}

bool ThreadRoles::see(uint32_t thread, EventKind kind) {
  Thread& seen = find(thread);
  if (kind != EventKind::backward_node) seen.own_work = true;
  const int evidence = evidence_of(kind, seen.own_work);
  if (evidence == 0) return false;
  if (evidence > seen.evidence) seen.evidence = evidence;
  if (training_ == thread) {
    if (threads_.size() > 1 && evidence == seen.evidence) {
      for (Thread& t : threads_) t.alone = 0;
    }
    return false;
  }
  if (training_) {
    const int reigning = find(*training_).evidence;
    Thread& challenger = find(thread);
    if (evidence < reigning && evidence < 3) return false;
    if (evidence <= reigning && ++challenger.alone < (evidence == 1 ? kFetchTakeover : kTakeover)) {
      return false;
    }
    challenger.alone = 0;
  }
  training_ = thread;
  return true;
}

}  // namespace gpuutil
