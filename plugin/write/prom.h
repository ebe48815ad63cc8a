/*
 * NVIDIA's Prometheus mode (NCCL_INSPECTOR_PROM_DUMP=1), for whoever has dashboards of it: beside the log a
 * text file for each GPU, DIR/nccl_inspector_metrics_<GPU's UUID>.prom, that node_exporter's textfile
 * collector reads. Names, labels and means are those of NVIDIA's inspector in NCCL 2.30: of what finished in
 * the last window the mean duration in microseconds and the geometric mean of the bus bandwidth in GB/s, by
 * communicator, function, size class and algorithm. With NCCL_INSPECTOR_PROM_DUMP_STATS=1 also NVIDIA's
 * counters since a communicator was first open: operations, and those that were lost.
 *
 *   add ─▶ series of this window
 *       ─▶ every NI_PROM_WINDOW_MS, or dump interval if that is longer: file anew, sums empty
 *       ─▶ end: file gone
 *
 * What is better than there: a file appears whole or not at all (temporary name, rename), it has HELP and
 * TYPE, labels are escaped, and a series without operations in the window is not there instead of keeping its
 * old value.
 *
 * Threads: the dump role alone; it may block in the file system. Memory: NI_PROM_SERIES entries, mapped as
 * they are used, from the first operation to the end of the process's last communicator. Failure: a file that
 * cannot be written is said in NCCL's log and tried again after the next window; the log and the job go on as
 * without it.
 */
#ifndef NI_PROM_H
#define NI_PROM_H

#include "writer.h"

#define NI_PROM_WINDOW_MS 30000u /* NVIDIA's least: what scrapes the files comes no more often */
/* in a window; what finds no room is left out, and that is said once */
#define NI_PROM_SERIES 2048u

/* An operation has finished. Nothing happens where the mode is off. */
void ni_prom_add(struct ni_writer *w, const struct ni_comm_writer *s, const struct ni_record *r);
/*
 * A communicator goes: what was lost of it stays counted. Nothing happens without
 * NCCL_INSPECTOR_PROM_DUMP_STATS.
 */
void ni_prom_take_dropped(struct ni_writer *w, struct ni_comm_writer *s);
/* Once a tick. dir: of the log; it is there. */
void ni_prom_tick(struct ni_writer *w, const char *dir);
/* Removes the files and forgets everything: nobody is left who would bring them up to date. */
void ni_prom_end(struct ni_writer *w, const char *dir);

#endif
