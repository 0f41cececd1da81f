"""The public ids of findings and remedies: those that exist and those that are planned."""

FINDINGS = frozenset(
    """
    launch_bound small_batch optimizer_overhead recompiles host_created_tensors device_augmentation debug_tracer
    eval_batch_small
    input_latency_bound input_cpu_bound input_single_process input_variance worker_restart collate_bound per_row_fetch
    transport_bound pageable_copy repeated_decode storage_read_amplification small_file_reads
    fp32_matmul unaligned_shapes padding_waste conv_layout autotune_off autotune_churn deterministic_mode
    needless_recompute float64_input denormals low_arithmetic_intensity
    cache_flush gc_pressure alloc_retries fragmentation graph_retained outputs_retained eval_grad worker_memory_growth
    memory_unused out_of_memory
    accumulation_sync exposed_communication slow_transport unused_parameter_scan rank_straggler data_parallel
    uneven_ranks metric_sync sync_batchnorm gradient_copies
    worker_threads cpu_quota affinity_mask too_few_cpus main_threads shm_small numa_mismatch gpu_shared mig_slice
    foreign_cpu_load clocks_throttled pcie_degraded fd_limit idle_device
    host_sync host_python logging_overhead gradient_histograms anomaly_mode blocking_launches clip_sync mask_sync
    checkpoint_stall evaluation_stall utilization_misread step_time_drift regression
    """.split()
)

REMEDIES = frozenset(
    """
    loader_workers loader_prefetch loader_pin loader_persistent loader_batch_fetch loader_cache loader_materialise
    device_prefetch worker_threads worker_affinity fd_limit main_threads flush_limit gc_limit autotune
    expandable_segments micro_batch recompute no_sync logger_async histogram_interval checkpoint_async bf16_autocast
    tf32 comm_bf16 flush_denormals accumulate length_grouping local_sgd eval_no_grad
    """.split()
)
