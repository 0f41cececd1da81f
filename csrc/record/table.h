/* The plain C table through which `_torch` reaches the recorders of `_core`: no C++ type crosses
 * between the two shared objects. `_core` owns the one table and hands it out in a capsule whose
 * name is GPUUTIL_RECORDER_NAME; it lives as long as the process. A reader checks the name, then
 * `size` (fields are only ever appended). Nothing here takes the GIL, throws, or allocates after a
 * thread's first event. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define GPUUTIL_RECORDER_NAME "gpuutil.recorder.v1"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds (on != 0) or removes (on == 0) the operator observer. Any thread, without or with the GIL;
 * does nothing in a forked child. Best called between operators: one that is open meanwhile is not
 * reported. */
typedef void (*GpuutilObserverSwitch)(int on);

/* 1 while gradients are recorded on the calling thread. A few nanoseconds. */
typedef int (*GpuutilGradMode)(void);

typedef struct GpuutilRecorderTable {
  uint32_t size; /* sizeof(GpuutilRecorderTable) of the side that made it */
  uint32_t reserved;

  /* Writes one event to the calling thread's recorder; `kind` and `flags` as in record/event.h.
   * Nothing is written while inert. */
  void (*emit)(uint16_t kind, uint16_t flags, uint32_t subject, int64_t time_ns, int64_t value);

  /* CLOCK_MONOTONIC, the clock of every time_ns. */
  int64_t (*now_ns)(void);

  /* The number of a name, the same for the same bytes; the bytes are copied. May lock: not for
   * every operator. */
  uint32_t (*intern)(const char* name, size_t length);

  /* 1 in a forked child and while nothing is attached: callbacks test this before anything else. */
  int (*inert)(void);

  /* Gives `_core` the switch of the operator observer; NULL takes it back. */
  void (*set_observer)(GpuutilObserverSwitch switch_fn);

  /* Gives `_core` the question whether gradients are on in the calling thread; NULL takes it back.
   */
  void (*set_grad_mode)(GpuutilGradMode is_enabled);
} GpuutilRecorderTable;

#ifdef __cplusplus
}
#endif
