/*
 * Lines as JSON text in the caller's buffer, from the structs of line.h. No I/O, no allocation, no locale.
 *
 *   {"header":{…},"metadata":{…,"dump_timestamp_us":  T  ,"hostname":…,"producer":…},  "coll_perf":{…}}\n
 *   └───────────── prefix.head ─────────────────────┘   └────── prefix.tail ───────┘
 *
 * The prefix is rendered once per communicator, so that an operation line is two memcpy and numbers. All
 * lines of one flush should carry the same timestamp: it is when they were written, and equal bytes cost
 * nothing after gzip.
 *
 * Bounds. A line never exceeds NI_LINE_MAX_BYTES, newline included: strings are cut at NI_TEXT_MAX_BYTES.
 * Every function returns the length of a whole line, or 0 without having written beyond cap when cap is too
 * small for the worst case (NI_LINE_MAX_BYTES is always enough). The text is not terminated.
 *
 * Threads: pure functions; a prefix is constant between init and free. Called by the dump thread, and by
 * `recover`. Strings are read during the call only.
 */
#ifndef NI_LINE_WRITE_H
#define NI_LINE_WRITE_H

#include "line.h"

#define NI_LINE_MAX_BYTES 73728

struct ni_line_prefix {
  char *text; /* head, then tail; owned, freed by ni_line_prefix_free */
  uint32_t head_len, tail_len;
};

/* Renders the prefix of a communicator (or of the process: ident with hash 0). meta: hostname and git_rev may
 * be NULL: "unknown", rec_mechanism: that of the plugin; version and the time are not looked at. 0, or
 * -ENOMEM with p zeroed. Allocates: not for callbacks. */
int ni_line_prefix_init(struct ni_line_prefix *p, const struct ni_ident *ident, const struct ni_meta *meta);
/* A zeroed or freed prefix is accepted. */
void ni_line_prefix_free(struct ni_line_prefix *p);

/*
 * One function for each kind of lines.def: ni_format_coll, ni_format_p2p, ni_format_process, ni_format_comm,
 * ... ts_us: dump_timestamp_us, Unix microseconds.
 */
#define NI_FORMAT_FUNCTION(name, tag) \
  size_t ni_format_##name(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us, \
                          const struct tag *in)
#define OPERATION(key, name, flags) NI_FORMAT_FUNCTION(name, ni_record);
#define KIND(key, name, tag, member, object, form, kind) NI_FORMAT_FUNCTION(name, tag);
#include "lines.def"

static inline size_t ni_format_op(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                                  const struct ni_record *r) {
  return r->kind == NI_KIND_COLL ? ni_format_coll(buf, cap, p, ts_us, r)
                                 : ni_format_p2p(buf, cap, p, ts_us, r);
}

/* Into a line whose accounts are zeros so far. */
void ni_stats_set_kind(struct ni_stats_line *s, enum ni_kind kind, const struct ni_kind_counts *counts);
void ni_stats_set_strays(struct ni_stats_line *s, const uint64_t stray[NI_STRAY_COUNT]);

/*
 * What `recover` puts at the end of a process line that is there as text: the keys with a comma before, no
 * line.
 */
size_t ni_format_recovered(char *buf, size_t cap, const struct ni_process_line *in);

#endif
