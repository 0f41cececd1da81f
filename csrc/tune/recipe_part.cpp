#include "tune/recipe_part.h"

namespace gpuutil {

RecipePart recipe_part(std::string_view remedy, int64_t value) {
  const std::string number = std::to_string(value);
  RecipePart part;
  if (remedy == "loader_workers") {
    part.loader_argument = "num_workers=" + number;
  } else if (remedy == "loader_prefetch") {
    part.loader_argument = "prefetch_factor=" + number;
  } else if (remedy == "loader_persistent") {
    part.loader_argument = value > 0 ? "persistent_workers=True" : "persistent_workers=False";
  } else if (remedy == "loader_batch_fetch" && value == 1) {
    part.loader_argument = "batch_size=None, sampler=BatchSampler(sampler, batch_size, drop_last)";
  } else if (remedy == "loader_batch_fetch" && value == 2) {
    part.comment = "# collate_fn: one numpy.stack a field instead of one tensor a sample";
  } else if (remedy == "main_threads") {
    part.process_call = "torch.set_num_threads(" + number + ")";
  } else if (remedy == "fd_limit") {
    part.process_call = "resource.setrlimit(resource.RLIMIT_NOFILE, (" + number +
                        ", resource.getrlimit(resource.RLIMIT_NOFILE)[1]))";
  } else if (remedy == "worker_affinity") {
    part.comment =
        "# at the end of worker_init_fn: os.sched_setaffinity(0, cpus), with the trainer's own CPUs";
  }
  return part;
}

}  // namespace gpuutil
