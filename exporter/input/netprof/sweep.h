/*
 * Sweeps in files: net_prof's JSON in both forms (0.1.6 a list, 0.1.11 an object), its text (one
 * `value@sec.nsec` a line, NIC by NIC, in the order of names.h), ours (net_prof's 0.1.11 with a key
 * "nccl_inspector" that it passes over: other fabrics, links, what could not be read), and the JSON of
 * `counters summarize`, which holds two sweeps. Plain or gzip, told by what is in them and not by their
 * names.
 *
 * Hostile: at most NI_SWEEP_BYTES of text, NI_SWEEP_COUNTERS counters and NI_SWEEP_ENTITIES entities; a value
 * that is no whole number, a counter that stands twice, JSON that is none: refused, with the place. Threads:
 * one a call.
 */
#ifndef NI_SWEEP_H
#define NI_SWEEP_H

#include "exporter/collect/set.h"

enum {
  NI_SWEEP_BYTES = 256 << 20,
  NI_SWEEP_COUNTERS = 1 << 20,
  NI_SWEEP_ENTITIES = 4096,
  NI_SWEEP_NAME = 255,
  NI_SWEEP_TEXT = 4095
};

struct ni_sweep {
  struct ni_set set;
  struct ni_reading *reading; /* one a counter; of a summary real_ns counts from before's */
  /* What the file says of itself; NULL and NAN: nothing. path: where it was read from. */
  const char *path, *input_path, *started, *finished;
  double duration_s;
};

/*
 * Reads a file. Returns how many sweeps it holds: 1, in out[0], or 2, before and after, whose texts are
 * before's: they are freed together. Else -errno, and why says what is wrong and where, without the path:
 * nothing is to be freed then.
 */
int ni_sweep_read(struct ni_sweep out[2], const char *path, char *why, size_t cap);
void ni_sweep_free(struct ni_sweep *s);

#endif
