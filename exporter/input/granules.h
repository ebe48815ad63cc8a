/*
 * The map of a log: what lies in which part of it, so that whoever asks for little reads little.
 *
 * A granule is a part of a file that can be read on its own (struct ni_border, line_reader.h). It says which operations lie in
 * it, by time, number, size, and by who wrote them; granules follow each other without holes from the first byte to the last.
 * Who wrote is told once a file: a context is the header and metadata of a line but for its time, a sort is a context and a
 * function. Lines that say what a process or a communicator is are few, and kept as they are. So a command that passes over a
 * granule still knows who is there.
 *
 * A file is mapped while it is read for another reason: one map for each range, in the thread that reads it; maps of ranges
 * are joined in the order of the file. The map of a file depends on its bytes alone, not on ranges or threads. A file that
 * cannot be entered in its middle (damaged, cut, records whose marker lies elsewhere, process lines within) is `odd`: then what
 * its granules say is not used.
 *
 *   struct ni_granules *g = ni_granules_new(from);      to->granules of ni_scan_file(), which calls _border, _take, _end
 *   ni_granules_join(file, g);                          frees g
 *
 * Threads: one for each map. Ownership: ni_granules_free(). Failure: -ENOMEM.
 */
#ifndef NI_GRANULES_H
#define NI_GRANULES_H

#include "exporter/base/index.h"
#include "format/line.h"
#include "line_reader.h"
#include "line_split.h"

#define NI_NO_START INT64_MIN
/* Unix ns of the start on the GPU, or of the first channel in verbose logs; NI_NO_START when the line does not tell. Any thread. */
int64_t ni_start_ns(const struct ni_line *l);
/* When an operation began, or was written where the line does not tell; Unix us. By this --since and --until choose. */
int64_t ni_op_time_us(const struct ni_line *l);

/* When a record was, in Unix ns: its start, or the dump where no start is known. */
static inline int64_t ni_time_ns(int64_t start_ns, uint64_t dump_us) {
  if (start_ns != NI_NO_START) return start_ns;
  return (int64_t)(dump_us < INT64_MAX / 1000 ? dump_us : INT64_MAX / 1000) * 1000;
}

enum { NI_SORTS_MAX = 4096, NI_KEPT_MAX = 256 << 10 }; /* a file with more is odd */

struct ni_granule {
  uint64_t at, bytes;            /* in the file */
  uint64_t records;
  int64_t first_us, last_us;     /* of its operations; with records > 0, like all below */
  uint64_t min_bytes, max_bytes, min_sn, max_sn;
  uint64_t text;                 /* from its first line to that of the next; only where some granule begins in a member */
  uint32_t crc;                  /* of the bytes in the file */
  struct ni_member_entry entry;         /* n 0: none. own: the window is the map's, else that of the bytes that it was read from */
  bool own;
  uint32_t first_sort, n_sorts;  /* in list: numbers of sorts, ascending */
};

struct ni_granule_context {
  struct ni_ident ident;
  struct ni_meta meta;           /* texts are of the map */
  bool p2p_sampled;              /* a line of it says that sampling left out messages */
};

enum ni_sort_kind { NI_SORT_OP, NI_SORT_ROLLUP, NI_SORT_OTHER }; /* other: of lines about the communicator, without a function */
struct ni_granule_sort {
  uint32_t context;
  enum ni_sort_kind kind;
  const char *func;
  uint64_t records, min_sn, max_sn;
};

struct ni_granules {
  struct ni_granule *item;
  struct ni_granule_context *context;
  struct ni_granule_sort *sort;
  uint32_t *list;
  char *kept;                    /* lines, each with its line feed */
  size_t n, cap, n_contexts, cap_contexts, n_sorts, cap_sorts, n_list, cap_list, n_kept, cap_kept;
  bool odd;                      /* its granules cannot be used, but all of it can be read */
  bool closed;                   /* it ends behind a whole line and a whole member: what comes behind may be read alone */
  bool gzip;
  bool proxy, series;            /* has lines of the proxy; of counters */
  bool entries;                  /* some granule begins in a member */
  uint64_t records, end;         /* end: byte of the file behind the last granule */
  int64_t origin_ns;             /* the earliest time of a record, as ni_time_ns() has it; with records */
  /* While it is made. */
  struct ni_index sort_at, context_at;
  uint32_t *seen;                /* of each sort: 1 + the granule that has it last */
  size_t cap_seen;
  struct { uint32_t head_no, func_no, sort; } met[256]; /* by head and function: the sort that a record of them had */
  uint32_t last_sort;
  uint64_t text_at;              /* place of the first line of the granule */
  uint64_t lines;
  bool marker;                   /* the granule has had one */
};

/* from: the byte of the file where the range begins. NULL: no memory. */
struct ni_granules *ni_granules_new(uint64_t from);
void ni_granules_free(struct ni_granules *g);
/* A border, before its line is taken. 0 or -ENOMEM. */
int ni_granules_border(struct ni_granules *g, const struct ni_border *b);
/* A sound line, whose text it is. 0 or -ENOMEM. */
int ni_granules_take(struct ni_granules *g, const struct ni_line *l, const char *text, size_t len);
/* The reader is at its end. */
void ni_granules_end(struct ni_granules *g, struct ni_reader *r);
/* b lies right behind *a in the file, or *a is NULL. b is freed. 0 or -ENOMEM: then *a is odd. */
int ni_granules_join(struct ni_granules **a, struct ni_granules *b);
/* The numbers of a context and of a sort, added where they are new; texts are copied. For those who read maps from files. 0 or -ENOMEM. */
int ni_granules_context(struct ni_granules *g, const struct ni_ident *ident, const struct ni_meta *meta, uint32_t *out);
int ni_granules_sort(struct ni_granules *g, uint32_t context, enum ni_sort_kind kind, const char *func, uint32_t *out);

#endif
