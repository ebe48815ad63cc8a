/*
 * The map of a log: what lies in which part of it, so that whoever asks for little reads little.
 *
 * A granule is a part of a file that can be read on its own (struct ni_border, line_reader.h). It says which
 * operations lie in it, by time, number, size, and by who wrote them; granules follow each other without
 * holes from the first byte to the last. Who wrote is told once a file: a context is the header and metadata
 * of a line but for its time, a sort is a context and a function. Lines that say more than operations and
 * events are few, and kept as they are, each with the number of its granule (granule_lines.c). So a command
 * that passes over a granule still knows who is there, what was lost and what never ended.
 *
 * A file is mapped while it is read for another reason: one map for each range, in the thread that reads it;
 * maps of ranges are joined in the order of the file. The map of a file depends on its bytes alone, not on
 * ranges or threads. A file that cannot be entered in its middle (damaged, cut, records whose marker lies
 * elsewhere, process lines within) is `odd`: then what its granules say is not used.
 *
 * A brief map is of those who want to know a file again, and where it goes on, and nothing else: its granules
 * are the first one, all that lies between, the last one. It has no contexts, sorts and kept lines, and is
 * odd only where the file cannot go on.
 *
 *   struct ni_granules *g = ni_granules_new(from);      to->granules of ni_scan_file(), which calls _border,
 *                                                       _take, _end
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

/* longer runs nothing: exporter/model/ledger/implausible.h */
#define NI_MAX_EXEC_NS 3600000000000ULL
/* Execution time in ns, as exactly as the record has it. UINT64_MAX: more than that holds. */
static inline uint64_t ni_exec_ns(const struct ni_record *o) {
  return o->has & NI_HAS_EXEC_NS       ? o->exec_ns
      : o->exec_us > UINT64_MAX / 1000 ? UINT64_MAX
                                       : o->exec_us * 1000;
}

#define NI_NO_START INT64_MIN
/*
 * Unix ns of the start on the GPU, or of the first channel in verbose logs; NI_NO_START when the line does
 * not tell. Any thread.
 */
int64_t ni_start_ns(const struct ni_line *l);
/*
 * When an operation began, or was written where the line does not tell; Unix us. By this --since and --until
 * choose.
 */
int64_t ni_op_time_us(const struct ni_line *l);

/* When a record ran, in its host's clock: start and duration in ns. NI_NOWHERE: nothing tells. Any thread. */
enum ni_placed { NI_BY_GPU, NI_BY_CPU, NI_BY_ENQUEUE, NI_NOWHERE };
enum ni_placed ni_place(const struct ni_line *l, int64_t *start_ns, int64_t *dur_ns);

/* When a record was, in Unix ns: its start, or the dump where no start is known. */
static inline int64_t ni_time_ns(int64_t start_ns, uint64_t dump_us) {
  if (start_ns != NI_NO_START)
    return start_ns;
  return (int64_t)(dump_us < INT64_MAX / 1000 ? dump_us : INT64_MAX / 1000) * 1000;
}

/* A file with more is odd. Kept: bytes of text, and for each clock line NI_KEPT_CLOCK. */
enum { NI_SORTS_MAX = 4096, NI_KEPT_MAX = 16 << 20, NI_KEPT_CLOCK = 24 };

struct ni_granule {
  uint64_t at, bytes; /* in the file */
  uint64_t records;
  int64_t first_us, last_us; /* of its operations; with records > 0, like all below */
  uint64_t min_bytes, max_bytes, min_sn, max_sn;
  /* from its first line to that of the next; only where some granule begins in a member */
  uint64_t text;
  uint32_t crc; /* of the bytes in the file */
  /* n 0: none. own: the window is the map's, else that of the bytes that it was read from */
  struct ni_member_entry entry;
  bool own;
  uint32_t first_sort, n_sorts; /* in list: numbers of sorts, ascending */
  /* of all that a timeline draws of its operations and events, in the host's clock; begin > end: of none */
  int64_t begin_ns, end_ns;
  bool process_lines; /* has events that name no communicator */
};

struct ni_granule_context {
  struct ni_ident ident;
  struct ni_meta meta;                  /* texts are of the map */
  bool p2p_sampled;                     /* a line of it says that sampling left out messages */
  bool told;                            /* has sorts other than those of events */
  int64_t clock_at_ns, clock_offset_ns; /* of the last clock line that is kept; NI_NO_OFFSET: none */
};

/* Addresses of its texts. */
#define NI_CONTEXT_TEXTS(c) \
  &(c)->ident.comm_name, &(c)->meta.version, &(c)->meta.git_rev, &(c)->meta.rec_mechanism, \
      &(c)->meta.hostname, &(c)->meta.producer
enum { NI_N_CONTEXT_TEXTS = 6 };

/*
 * Other: of lines about the communicator, without a function. Event: of the proxy, the API and so on, which
 * only a timeline asks for.
 */
enum ni_sort_kind { NI_SORT_OP, NI_SORT_ROLLUP, NI_SORT_OTHER, NI_SORT_EVENT };
struct ni_granule_sort {
  uint32_t context;
  enum ni_sort_kind kind;
  const char *func;
  uint64_t records, min_sn, max_sn;
  uint64_t untimed; /* of the records: ni_place() tells no time */
};

/* A line that is kept: its text, or of a clock line what a GPU's offset was. */
struct ni_kept {
  uint32_t granule, context; /* context: of a clock line */
  size_t at, len;            /* in kept_text, without a line feed; len 0: a clock line */
  int64_t at_ns, offset_ns;
};

struct ni_granules {
  struct ni_granule *item;
  struct ni_granule_context *context;
  struct ni_granule_sort *sort;
  uint32_t *list;
  /* in the order of the file; not there before ni_map_unpack() (index/map_wire.h) */
  struct ni_kept *kept;
  char *kept_text;
  const uint8_t *packed;
  size_t n, cap, n_contexts, cap_contexts, n_sorts, cap_sorts, n_list, cap_list, n_kept, cap_kept, n_text,
      cap_text, n_packed, n_unpacked;
  bool odd; /* its granules cannot be used, but all of it can be read */
  /* it ends behind a whole line and a whole member: what comes behind may be read alone */
  bool closed;
  bool gzip;
  bool proxy, series;      /* has lines of the proxy; of counters */
  bool api, launches, net; /* of these events: worth an arrow */
  bool entries;            /* some granule begins in a member */
  bool brief;
  uint64_t records, end;     /* end: byte of the file behind the last granule */
  int64_t origin_ns;         /* the earliest time of a record, as ni_time_ns() has it; with records */
  int64_t first_ns, last_ns; /* of the starts that ni_place() tells; first > last: none */
  uint64_t last_dump_us;     /* the latest time of a dump */
  /* While it is made. */
  struct ni_index sort_at, context_at;
  uint32_t *seen; /* of each sort: 1 + the granule that has it last */
  size_t cap_seen;
  /* by head and function: the sort that a record of them had */
  struct {
    uint32_t head_no, func_no, sort;
  } met[256];
  uint32_t last_sort;
  uint64_t text_at; /* place of the first line of the granule */
  uint64_t lines;
  bool marker; /* the granule has had one */
};

/* from: the byte of the file where the range begins. NULL: no memory. */
struct ni_granules *ni_granules_new(uint64_t from);
void ni_granules_free(struct ni_granules *g);
/*
 * A brief map, of which there is all up to its end: what is read next lies behind that. Also of an empty one.
 * 0 or -ENOMEM.
 */
int ni_granules_brief(struct ni_granules *g);
/* A border, before its line is taken. 0 or -ENOMEM. */
int ni_granules_border(struct ni_granules *g, const struct ni_border *b);
/* A sound line, whose text it is. 0 or -ENOMEM. */
int ni_granules_map_line(struct ni_granules *g, const struct ni_line *l, const char *text, size_t len);
/* What to read for granules from..to-1, and nothing else. */
struct ni_range ni_granules_range(const struct ni_granules *g, size_t from, size_t to);
/* The reader is at its end. */
void ni_granules_end(struct ni_granules *g, struct ni_reader *r);
/* b lies right behind *a in the file, or *a is NULL. b is freed. 0 or -ENOMEM: then *a is odd. */
int ni_granules_join(struct ni_granules **a, struct ni_granules *b);
/*
 * The numbers of a context and of a sort, added where they are new; texts are copied. For those who read maps
 * from files. 0 or -ENOMEM.
 */
int ni_granules_context(struct ni_granules *g, const struct ni_ident *ident, const struct ni_meta *meta,
                        uint32_t *out);
int ni_granules_sort(struct ni_granules *g, uint32_t context, enum ni_sort_kind kind, const char *func,
                     uint32_t *out);
/* Is a line with that header of the context? */
bool ni_same_context(const struct ni_granule_context *c, const struct ni_ident *ident,
                     const struct ni_meta *meta);
/*
 * Lines that are kept, of the granule with that number; a clock line that says what the one before it of its
 * context said is not.
 */
int ni_kept_text(struct ni_granules *g, uint32_t granule, const char *text, size_t len);
int ni_kept_clock(struct ni_granules *g, uint32_t granule, uint32_t context, int64_t at_ns,
                  int64_t offset_ns);
/*
 * What a timeline draws of the line is in the granule that is open. sort and start_ns: of an operation.
 * Called by granules.c.
 */
void ni_reach_operation(struct ni_granules *g, uint32_t sort, const struct ni_line *l, int64_t start_ns);
void ni_reach_event(struct ni_granules *g, const struct ni_line *l);

#endif
