/*
 * A Chrome trace as torch.profiler (Kineto) writes it, plain or gzip, event by event: {.., "traceEvents": [{..}, ..], ..}.
 *
 * Memory: 1 MiB for the event at hand, whatever the file's length. Threads: any, a call is by itself. Sources: Kineto's
 * output_json.cpp, the Trace Event Format.
 */
#ifndef NI_KINETO_H
#define NI_KINETO_H

#include <stdint.h>

struct ni_kineto_event {
  char phase;                    /* X slice, i instant, M name, s and f arrow, ...; 0: about the file: base_ns, rank */
  uint64_t process, place;       /* hashes: of its pid; of pid and tid */
  int64_t ts_ns, dur_ns;         /* since base_ns; of Unix us in the file a double holds 1/4. INT64_MIN: no number */
  char name[128], label[128];    /* label: what an M says. Both cut where they are longer */
  int64_t base_ns;               /* INT64_MIN: not stated */
  int32_t rank;                  /* -1: not stated */
};

/*
 * *bad: what is no JSON, or too long. 0; what take() returned, unless 0; -errno; -EBADMSG: not such a file, or its end is
 * missing (all before it was taken).
 */
int ni_kineto_read(const char *path, int (*take)(void *arg, const struct ni_kineto_event *e), void *arg, uint64_t *bad);

#endif
