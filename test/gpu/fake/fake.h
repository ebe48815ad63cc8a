/*
 * What the fake NCCL asks of the fake CUDA driver. Together they let gpu_drive, its checker and
 * scripts/gpu_validate.sh run without a GPU: they prove the tools, not the plugin, for which nccl-sim is
 * made.
 *
 * A stream is a point in time up to which the device is busy; work put on it moves that point. Times are
 * nanoseconds of CLOCK_MONOTONIC. Threads: a stream is used by one thread; the fake NCCL's proxy thread
 * touches none.
 */
#ifndef NI_TEST_GPU_FAKE_H
#define NI_TEST_GPU_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "test/gpu/gpu_api.h"

/* Work of dur_ns begins when the stream is free, not before now. */
typedef void (*ni_fake_run_fn)(ni_stream s, uint64_t dur_ns, uint64_t *start_ns, uint64_t *end_ns);
/* What runs on the stream is given up. */
typedef void (*ni_fake_release_fn)(ni_stream s);
typedef bool (*ni_fake_capturing_fn)(ni_stream s);
/* node(arg, stream) is called at each launch of the graph that is being captured. */
typedef void (*ni_fake_capture_fn)(ni_stream s, void (*node)(void *arg, ni_stream s), void *arg);

void fake_cuda_run(ni_stream s, uint64_t dur_ns, uint64_t *start_ns, uint64_t *end_ns);
void fake_cuda_release(ni_stream s);
bool fake_cuda_capturing(ni_stream s);
void fake_cuda_capture(ni_stream s, void (*node)(void *arg, ni_stream s), void *arg);

#endif
