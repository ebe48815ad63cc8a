/*
 * Operations from a trace of torch.profiler: its NCCL kernels, with what PyTorch says of each, and when they
 * were launched.
 *
 * A kernel carries most of it itself (since PyTorch 2.3). What it lacks is with its launch, found by
 * "correlation", and with PyTorch's call (record_param_comms), found by "External id". These stand anywhere
 * in the file, before or behind it, so kernels, calls and launches are kept until its end: about 100, 100 and
 * 24 bytes each, and 500 MB in all.
 *
 * State: one pass over the file fills three lists; then each kernel becomes an operation. What PyTorch does
 * not say:
 * - The number of an operation, but for "Seq" in new versions: align.h counts.
 * - Algorithm and protocol. A kernel's name has some (".._RING_LL"), but one kernel runs others too, so that
 *   is no statement.
 * - Who is in a group of which the list is cut ("[0, 1, 2, ..., 63]"): known where the own rank is among
 *   those listed, or by first rank and stride of the call, or by the list in the file's head, or where the
 *   group is the whole job.
 *
 * Failure: -EFBIG (more than imported.h takes; NI_KINETO_LAUNCHES and calls beyond are left out, and their
 * kernels have no launch), -ENODATA (no NCCL kernel), -EBADMSG, -errno.
 */
#ifndef NI_KINETO_GATHER_H
#define NI_KINETO_GATHER_H

#include "exporter/base/progress.h"
#include "exporter/input/imported/imported.h"

#define NI_KINETO_LAUNCHES (1u << 22)
#define NI_KINETO_CALLS (1u << 20)

/*
 * into: ni_imported_init() with the path. Either way the caller's to free. -EBADMSG: what was read before is
 * in it, in order.
 */
int ni_kineto_gather(struct ni_imported *into, struct ni_progress *progress);

#endif
