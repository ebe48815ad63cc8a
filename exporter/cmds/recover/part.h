/*
 * Lines of a log part: what `recover` says, in the form that the plugin writes (docs/format.md).
 *
 * Every function writes one line to f; write errors stay in the FILE. Numbers come from a black box, so a value beyond
 * what a log may hold (2^63 - 1) is cut to it. One thread.
 */
#ifndef NI_PART_H
#define NI_PART_H

#include <stdio.h>

#include "exporter/input/box/box_net.h"

/* Whose lines these are: of the log's own process line where it has one, so that both name the same process. */
struct ni_part_origin {
  const char *hostname, *git_rev, *producer;
  int64_t pid;
  uint64_t ts_us; /* dump_timestamp_us of every line */
};

struct ni_part {
  FILE *f;
  struct ni_part_origin origin;
};

/* The process line, from the box's header: for a box without a log. start_ns: of the session, or when the box was made. */
void ni_part_process(const struct ni_part *p, const struct ni_ident *process, const struct ni_box_header *h,
                     uint64_t start_ns, uint64_t recovered_ns, bool live);
void ni_part_comm(const struct ni_part *p, const struct ni_box_comm *c);
void ni_part_record(const struct ni_part *p, const struct ni_ident *id, const struct ni_record *r);

/* An incomplete or in_flight line. */
struct ni_part_unfinished {
  const char *key; /* "incomplete", "in_flight" */
  const char *why;
  const struct ni_box_op *op;
  uint64_t enqueue_ns, age_ms;
  const char *state;       /* NULL: not said, with all that follows */
  uint64_t channels_open;
  const struct ni_box_net *net; /* NULL: nothing under way that is known of */
};
void ni_part_unfinished(const struct ni_part *p, const struct ni_ident *id, const struct ni_part_unfinished *u);

void ni_part_gap(const struct ni_part *p, const struct ni_ident *id, enum ni_kind kind, enum ni_drop cause, uint64_t count,
                 uint64_t from, uint64_t to);

struct ni_part_stats {
  bool final;
  struct {
    uint64_t records, started, written, incomplete, late, in_flight;
    uint64_t filtered[NI_FILTER_COUNT], dropped[NI_DROP_COUNT], dropped_since, fallback[NI_FALLBACK_COUNT];
  } kind[NI_KIND_COUNT];
  uint64_t stray[NI_STRAY_COUNT];
  uint64_t refused;
};
void ni_part_stats(const struct ni_part *p, const struct ni_ident *id, const struct ni_part_stats *s);

void ni_part_comm_end(const struct ni_part *p, const struct ni_ident *id, const char *why, uint64_t ns);
void ni_part_note(const struct ni_part *p, const struct ni_ident *process, const char *text);

#endif
