/*
 * What `top` shows: jobs, ranks, GPUs and NICs of one or more sources, and who is waited for.
 *
 *   an agent's document, a Prometheus's answer ─▶ ni_top_read() ─▶ ni_top_source ─▶ ni_top_look()
 *
 * Numbers are doubles, NAN where the source does not say; units as in docs/agent.md. Texts are safe to print
 * (safe_text.h). A source that does not answer keeps what it said last; its ranks neither wait nor are waited
 * for. One thread. Ownership: ni_top_free().
 */
#ifndef NI_TOP_ROWS_H
#define NI_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NI_TOP_ROWS_MAX = 65536 }; /* of each kind, all sources together; what is beyond is left out */
enum ni_top_kind { NI_TOP_JOBS = 0, NI_TOP_GPUS, NI_TOP_NICS, NI_TOP_RANKS, NI_TOP_KINDS };
enum ni_top_sort { NI_TOP_BY_RANK = 0, NI_TOP_BY_AGE, NI_TOP_BY_BANDWIDTH, NI_TOP_BY_LATE, NI_TOP_SORTS };
extern const char *const ni_top_sort_names[NI_TOP_SORTS]; /* as --sort has them */
/* WAITED: others wait for it; CULPRIT: for 5 s or more */
enum ni_top_tone { NI_TOP_PLAIN = 0, NI_TOP_WAITED, NI_TOP_CULPRIT, NI_TOP_ALERT, NI_TOP_GREY };

/*
 * What is known of a job, a GPU, a NIC, a rank in a communicator, in the order of the columns; T: a text, N:
 * a number. member, bytes of a text, key in the document and label `top` in what a Prometheus answers ("":
 * ni_top_look() works it out), head of its column (NULL: none), unit of a number ('n': none, 'o': operations,
 * 's', 'B': bytes a second, 'M': MHz, '%', 'W', 'C'), drop of ni_column.
 */
/* clang-format off */
#define NI_TOP_JOB(T, N) \
  T(job, node, 64, "node", 0, 0) \
  T(job, job, 64, "job_id", 0, 0) \
  N(job, uid, "uid", 0, 0, 0) \
  T(job, hang, 1024, "hang", 0, 0) \
  N(job, hangs, "hangs", 0, 0, 0)
#define NI_TOP_GPU(T, N) \
  T(gpu, node, 64, "node", "HOST", 0) \
  N(gpu, gpu, "gpu", "GPU", 'n', 0) \
  N(gpu, busy, "utilization", "UTIL", '%', 0) \
  N(gpu, clock, "sm_hz", "CLOCK", 'M', 0) \
  N(gpu, power, "power_w", "POWER", 'W', 0) \
  N(gpu, heat, "temperature_c", "TEMP", 'C', 0) \
  T(gpu, slowed, 64, "throttled", "SLOWED BY", 0)
#define NI_TOP_NIC(T, N) \
  T(nic, node, 64, "node", "HOST", 0) \
  T(nic, nic, 32, "nic", "NIC", 0) \
  N(nic, rx, "rx_bytes_s", "RECEIVED", 'B', 0) \
  N(nic, tx, "tx_bytes_s", "SENT", 'B', 0) \
  N(nic, link, "link_bytes_s", "LINK", 'B', 0) \
  N(nic, used, "", "USED", '%', 0) \
  N(nic, held, "held", "HELD", '%', 0)
#define NI_TOP_RANK(T, N) \
  T(rank, label, 96, "", "JOB", 0) \
  N(rank, rank, "rank", "RANK", 'n', 0) \
  T(rank, node, 64, "node", "HOST", 0) \
  N(rank, gpu, "gpu", "GPU", 'n', 3) \
  T(rank, comm, 64, "comm", "COMM", 1) \
  T(rank, function, 24, "function", "FUNCTION", 0) \
  T(rank, state, 12, "state", "STATE", 0) \
  N(rank, age, "age_s", "AGE", 's', 0) \
  N(rank, operations, "operations_s", "OPS/s", 'o', 2) \
  N(rank, bus, "bus_bytes_s", "BUSBW", 'B', 0) \
  N(rank, late, "late_share", "LATE", '%', 4) \
  N(rank, busy, "", "UTIL", '%', 5) \
  N(rank, clock, "", "CLOCK", 'M', 6) \
  T(rank, waits, 64, "", "WAITS FOR", 0) \
  T(rank, job, 64, "job_id", 0, 0) \
  T(rank, attempt, 16, "attempt", 0, 0) \
  N(rank, uid, "uid", 0, 0, 0) \
  T(rank, comm_id, 24, "comm_id", 0, 0) \
  N(rank, alive, "alive", 0, 0, 0) \
  N(rank, comm_rank, "comm_rank", 0, 0, 0) \
  N(rank, collectives, "collectives", 0, 0, 0) \
  N(rank, in_flight, "in_flight", 0, 0, 0) \
  N(rank, stuck, "stuck", 0, 0, 0) \
  N(rank, call, "call", 0, 0, 0)
/* clang-format on */
#define NI_TOP_CHARS(kind, member, bytes, ...) char member[bytes];
#define NI_TOP_DOUBLE(kind, member, ...) double member;
struct ni_top_job {
  NI_TOP_JOB(NI_TOP_CHARS, NI_TOP_DOUBLE)
};
struct ni_top_gpu {
  NI_TOP_GPU(NI_TOP_CHARS, NI_TOP_DOUBLE)
};
struct ni_top_nic {
  NI_TOP_NIC(NI_TOP_CHARS, NI_TOP_DOUBLE)
};
struct ni_top_rank {
  NI_TOP_RANK(NI_TOP_CHARS, NI_TOP_DOUBLE) enum ni_top_tone tone;
};

struct ni_top_field {
  const char *key;
  size_t at, text; /* text: its bytes; 0: a double */
  const char *head;
  int unit, drop;
};
struct ni_top_table {
  const char *list; /* key of the list in the document */
  const struct ni_top_field *field;
  size_t n, bytes; /* fields; of an item */
};
extern const struct ni_top_table ni_top_tables[NI_TOP_KINDS];

struct ni_top_items {
  char *item;
  size_t n, cap;
};
struct ni_top_source {
  /* the node's, before it answered as the user has it; why it does not answer, "": it does */
  char name[256], error[192];
  uint64_t answered_ns; /* CLOCK_MONOTONIC: the last time; before that when it was asked first */
  char *document;       /* as received, where somebody keeps it */
  bool known;           /* it has answered */
  struct ni_top_items list[NI_TOP_KINDS];
};
struct ni_top { /* all 0: empty, but for sources */
  struct ni_top_source *source;
  size_t n_sources, n[NI_TOP_KINDS];
  void **item[NI_TOP_KINDS]; /* of all sources; ranks by filter and sort, GPUs and NICs by name */
  struct ni_top_rank **by_comm;
  enum ni_top_sort sort;
  char filter[64];                 /* "": all */
  size_t nodes, jobs, ranks, rows; /* without the filter */
  double in_flight, stuck;
  bool users;      /* jobs of several users are there: names of jobs tell whose they are */
  char waits[512]; /* who has been waited for the longest, in a sentence; "": nobody for 5 s */
};

/* For a Prometheus's /api/v1/query: all that `top` shows in one answer. The label `top` names the member. */
extern const char ni_top_query[];
/*
 * JSON into source s of t, in place of what it said before: a document of schema nccl-inspector-now-1, or the
 * answer to ni_top_query. Any bytes may come: what is not there or no number is not known, what is too long
 * is cut, what is too much left out. false with a sentence in why, and s is as it was.
 */
bool ni_top_read(struct ni_top *t, struct ni_top_source *s, const char *json, size_t bytes, bool prometheus,
                 char *why, size_t cap);
/*
 * Orders anew what the sources hold: once one was read, nothing of `item` is valid before it. 0 or -ENOMEM:
 * nothing is shown.
 */
int ni_top_look(struct ni_top *t);
void ni_top_free(struct ni_top *t);

#endif
