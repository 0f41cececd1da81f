// The casebook of feature fixtures: windows as they were measured, or as public cases describe
// them, that rules are tried on. Each builds on a plain healthy loop, so that a case shows only
// what is special about it.
#pragma once

#include <algorithm>
#include <string>

#include "diagnose/engine.h"
#include "profile/features.h"

namespace gpuutil {

// Training on two quiet CPUs, a loader with two workers that keeps up.
inline Features healthy_loop() {
  Features f;
  f.steps = 80;
  f.sampled_steps = 20;
  f.coverage_ratio = 0.25;
  f.step_seconds_p50 = 0.100;
  f.step_seconds_p95 = 0.108;
  f.samples_per_step = 16;
  f.input_wait_seconds_p50 = 0.0004;
  f.input_wait_seconds_p95 = 0.0009;
  f.input_wait_ratio = 0.004;
  f.fetch_cpu_ratio = 0.6;
  f.user_python_seconds = 0.001;
  f.has_optimizer = true;
  f.device_is_host = true;
  f.main_threads = 1;
  f.loader.emplace();
  f.loader->id = 1;
  f.loader->name = "train_loader";
  f.loader->dataset = DatasetKind::map_style;
  f.loader->workers = 2;
  f.loader->user_workers = 2;
  f.loader->prefetch = 2;
  f.loader->batch_size = 16;
  f.loader->workers_changeable = true;
  f.workers = {{101, 0.2, 0.8}, {102, 0.2, 0.8}};
  f.host.cpu_budget_cores = 2.0;
  f.host.cpu_budget_source = "affinity: 2 CPUs";
  f.host.own_cores = 1.0;
  f.host.worker_cores = 0.4;
  f.host.foreign_cores = 0.02;
  f.host.crowding_cores = 0.0;
  f.host.throttled_ratio = 0.0;
  f.host.run_queue_wait_ratio = 0.01;
  f.turn.emplace();
  f.turn->turns = 4;
  f.turn->epoch_seconds = 60;
  f.turn->end_seconds = 0.02;
  f.turn->iter_seconds = 0.05;
  f.turn->first_fetch_seconds = 0.12;
  f.turn->usual_fetch_seconds = 0.0004;
  f.host.mask_cores = f.host.allowed_cores = f.host.inherited_cores = 2.0;
  f.host.quotas_known = true;
  f.worker_mask_cores = 2.0;
  f.loader->batch_bytes = 10'000'000;
  f.host.shm_size_bytes = 8e9;
  f.host.shm_free_bytes = 7.9e9;
  f.host.open_descriptors = 60;
  f.host.descriptor_limit = 1024;
  f.host.descriptor_hard_limit = 4096;
  return f;
}

// Share of the step that waits; the step stays as long as it is.
inline void set_wait(Features& f, double ratio) {
  f.input_wait_ratio = ratio;
  f.input_wait_seconds_p50 = ratio * f.step_seconds_p50;
  f.input_wait_seconds_p95 = std::min(1.2 * ratio, 1.0) * f.step_seconds_p50;
}

// Photographs decoded in the training process, two CPUs, two main threads (measured: 123 ms a step,
// 98 of them decoding; with two workers and one main thread 58-65 ms, the CPU ceiling being 64 ms).
inline Features photographs_without_workers() {
  Features f = healthy_loop();
  f.step_seconds_p50 = 0.123;
  set_wait(f, 0.80);
  f.fetch_cpu_ratio = 0.97;
  f.main_threads = 2;
  f.loader->workers = f.loader->user_workers = 0;
  f.loader->prefetch = 0;
  f.workers.clear();
  f.host.own_cores = 1.04;
  f.host.worker_cores.reset();
  return f;
}

// The same after the change: two busy workers, the CPUs are used up and some wait is left.
inline Features photographs_with_workers() {
  Features f = photographs_without_workers();
  f.step_seconds_p50 = 0.064;
  set_wait(f, 0.45);
  f.main_threads = 1;
  f.loader->workers = 2;
  f.loader->prefetch = 2;
  f.workers = {{101, 0.73, 0.06}, {102, 0.73, 0.08}};
  f.host.own_cores = 0.48;
  f.host.worker_cores = 1.46;
  f.host.run_queue_wait_ratio = 0.04;
  return f;
}

// Items come over a network, 20 ms each, eight a batch; the step computes for 20 ms (measured: 180
// ms a step without workers, 35 ms with eight).
inline Features object_store_without_workers() {
  Features f = healthy_loop();
  f.step_seconds_p50 = 0.180;
  set_wait(f, 160.0 / 180);
  f.fetch_cpu_ratio = 0.06;
  f.loader->workers = f.loader->user_workers = 0;
  f.loader->prefetch = 0;
  f.workers.clear();
  f.host.own_cores = 0.17;
  f.host.worker_cores.reset();
  return f;
}

inline Features object_store_with_two_workers() {
  Features f = object_store_without_workers();
  f.step_seconds_p50 = 0.080;
  set_wait(f, 0.75);
  f.loader->workers = 2;
  f.loader->prefetch = 2;
  f.workers = {{101, 0.06, 0.94}, {102, 0.06, 0.93}};
  f.host.own_cores = 0.3;
  f.host.worker_cores = 0.12;
  return f;
}

// 20,000 rows of 32 numbers in tensors, 256 a batch, read one by one (measured: 78 batches in 0.195 s, and in 0.015 s
// by one indexing each); the step itself computes for 1 ms.
inline Features rows_one_by_one() {
  Features f = photographs_without_workers();
  f.step_seconds_p50 = 0.0035;
  set_wait(f, 2.5 / 3.5);
  f.main_threads = 1;
  f.loader->batch_size = 256;
  f.loader->fetch = {0.0022, 0.0002, 0.0002, {}};
  return f;
}

// Samples are small arrays that a default_collate makes 256 tensors of first.
inline Features arrays_put_together() {
  Features f = rows_one_by_one();
  f.loader->fetch = {0.0010, 0.0014, {}, 0.0003};
  return f;
}

// Eight workers started for each epoch of 40 steps, 10 ms each: the step waits for 4 %, the epoch loses 40 %.
inline Features short_epochs() {
  Features f = healthy_loop();
  f.step_seconds_p50 = 0.010;
  set_wait(f, 0.04);
  f.loader->workers = f.loader->user_workers = 8;
  f.turn->turns = 3;
  f.turn->epoch_seconds = 0.800;
  f.turn->end_seconds = 0.040;
  f.turn->iter_seconds = 0.200;
  f.turn->first_fetch_seconds = 0.160;
  f.turn->usual_fetch_seconds = 0.0004;
  return f;
}

// Two workers that an import pinned to one of the two CPUs (measured: 1.70 s an epoch, 0.91 s once
// their masks were reset).
inline Features workers_on_one_cpu() {
  Features f = photographs_with_workers();
  set_wait(f, 0.85);
  f.workers = {{101, 0.49, 0.02}, {102, 0.49, 0.02}};
  f.host.own_cores = 0.1;
  f.host.worker_cores = 0.98;
  f.worker_mask_cores = 1.0;
  return f;
}

// A container with a quota of 2 on a machine of 12, in which torch made a thread for each CPU.
inline Features throttled_container() {
  Features f = healthy_loop();
  f.main_threads = 12;
  f.host.mask_cores = f.host.allowed_cores = f.host.inherited_cores = 12.0;
  f.host.quota_cores = f.host.cpu_budget_cores = 2.0;
  f.host.cpu_budget_source = "cgroup v2 quota at /sys/fs/cgroup";
  f.host.own_cores = 1.5;
  f.host.throttled_ratio = 0.6;
  f.host.run_queue_wait_ratio = 0.2;
  f.worker_mask_cores = 12.0;
  return f;
}

// Somebody else computes on one of the two CPUs.
inline Features crowded_machine() {
  Features f = healthy_loop();
  f.host.crowding_cores = f.host.foreign_cores = 0.9;
  f.host.run_queue_wait_ratio = 0.4;
  return f;
}

// Arithmetic on the CPU with one thread, three more CPUs idle.
inline Features one_thread_on_four_cpus() {
  Features f = healthy_loop();
  f.host.cpu_budget_cores = f.host.mask_cores = f.host.allowed_cores = 4.0;
  f.host.inherited_cores = f.worker_mask_cores = 4.0;
  f.operator_seconds = 0.08;
  return f;
}

// Two workers whose library computes with two threads each, on two CPUs.
inline Features nested_threads() {
  Features f = photographs_with_workers();
  f.workers = {{101, 0.75, 0.05, 0.6, 4}, {102, 0.75, 0.05, 0.6, 4}};
  return f;
}

// What a container has unless somebody says otherwise.
inline Features container_shared_memory() {
  Features f = healthy_loop();
  f.host.shm_size_bytes = 64 << 20;
  f.host.shm_free_bytes = 30e6;
  return f;
}

inline const Finding* finding_of(const Diagnosis& diagnosis, std::string_view id) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

inline bool says(const Finding& finding, std::string_view text) {
  if (finding.title.find(text) != std::string::npos) return true;
  if (finding.advice.find(text) != std::string::npos) return true;
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const Evidence& item) {
    return item.text.find(text) != std::string::npos;
  });
}

inline const Evidence* evidence_of(const Finding& finding, std::string_view name) {
  for (const Evidence& item : finding.evidence) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

}  // namespace gpuutil
