/*
 * Operations from what `nsys export --type sqlite` makes of a report of Nsight Systems: its NCCL kernels,
 * with what NVTX says of the calls that launched them.
 *
 *   kernel (process, correlationId) ─▶ the runtime's call of that number, on a thread
 *   ─▶ the NVTX range of NCCL around that call ─▶ function, size, communicator       (groups.h)
 *   a range "iteration 17" of the framework ─▶ a step
 *
 * A file has the processes of a rank or of a host: each one with NCCL kernels is given by itself, in order
 * of their pids. The day is that of the session's start; files before 2021 have none, and their times count
 * from NI_IMPORTED_DAY. The tables are the exporter's of 2020 to 2026 (SQLite Schema Reference of the user
 * guide); what one of them lacks is not known.
 *
 * Memory: 150 bytes a kernel, 100 a range of NCCL, both at most NI_NSYS_KERNELS; texts that begin with "nccl"
 * or could be a step.
 *
 * Failure: -ENODATA (no NCCL kernel), -EFBIG, and those of database.h; what take() returned.
 */
#ifndef NI_NSYS_H
#define NI_NSYS_H

#include "exporter/base/progress.h"
#include "exporter/input/imported/imported.h"

enum { NI_NSYS_KERNELS = 1 << 22 };

/* Does the name of a file end as those of exports do (.sqlite, .sqlite3, .db)? */
bool ni_nsys_is_export(const char *name);
int ni_nsys_read(const char *path, ni_imported_take *take, void *arg, struct ni_progress *progress);

#endif
