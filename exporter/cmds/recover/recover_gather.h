/*
 * Which operations of a box are not in the log, by communicator: what `recover` writes lines of
 * (recover_box.c).
 *
 * And lines of a log part: what a black box says, in the structs of format/line.h, and written by
 * format/line_write.h. So a line of `recover` is the one that the plugin would have written. Numbers come
 * from a black box; the writer cuts what is beyond what a log may hold (2^63 - 1).
 *
 * One thread. Ownership: ni_recover_gather_free(). Failure: -ENOMEM; what cannot be is counted in
 * out->damaged.
 */
#ifndef NI_RECOVER_GATHER_H
#define NI_RECOVER_GATHER_H

#include "exporter/input/box/box_decode.h"
#include "format/line_write.h"
#include "recover_box.h"

struct ni_log_part {
  FILE *f; /* write errors stay in it */
  /* of the log's own process line where it has one, so that both name the same process. Time: of all lines */
  struct ni_meta meta;
  struct ni_line_prefix prefix; /* of whom the lines are about now; ni_line_prefix_free */
  char line[NI_LINE_MAX_BYTES];
};

/* Whom the next lines are about. 0 or -ENOMEM: then no line can be put. */
int ni_part_about(struct ni_log_part *p, const struct ni_ident *id);
/* The first n bytes of p->line. */
void ni_part_put(struct ni_log_part *p, size_t n);
/* One line; name as in ni_format_name, in: its struct. */
#define NI_PART_PUT(p, name, in) \
  ni_part_put((p), \
              ni_format_##name((p)->line, sizeof(p)->line, &(p)->prefix, (p)->meta.dump_timestamp_us, (in)))
void ni_part_note(struct ni_log_part *p, const char *text);

/*
 * Which operation, and its place in the order: the box has the rest, so a large box does not make large
 * lists.
 */
struct ni_recover_ref {
  uint64_t rec_sn;
  uint64_t sn; /* of those that are numbered here; of called ones ticks_start until then */
  uint32_t slot;
  uint8_t kind;
  bool numbered;
};

struct ni_recover_list {
  struct ni_recover_ref *op;
  size_t n, cap;
};

/* One communicator whose accounts are not closed yet. */
struct ni_recover_life {
  struct ni_box_comm c;
  size_t index;
  const struct ni_log_life *log; /* NULL: the log does not know it */
  struct ni_recover_list finished, in_flight, given_up;
  struct ni_recover_list called; /* collectives known by their call alone, without a number yet */
  /* of communicators that have some: calls whose operation is, or was, in the box */
  struct ni_seq_set had_one;
};

struct ni_recover_job {
  const struct ni_box *b;
  const struct ni_log_state *log;
  struct ni_recover_life *life; /* by index of the box's communicators; c.phase 0: nothing to do there */
  size_t n;
  bool live, gpu_only;
  bool expires;          /* the process removed old files of its log */
  uint64_t gone;         /* records of communicators that are open in them */
  uint64_t room_outside; /* operations that the pages outside the box could hold, less those told as lost */
  bool news;             /* the log does not have it all */
  struct ni_log_part part;
  struct ni_ident process;
  struct ni_recovered *out;
};

int ni_recover_gather(struct ni_recover_job *j);
/* In order of numbers; a number that comes twice in a box is damage, and comes once into the log. */
void ni_recover_sort(struct ni_recover_job *j, struct ni_recover_list *l);
void ni_recover_gather_free(struct ni_recover_job *j);

/* The process line of a box without a log. start_ns: of the session, or when the box was made. */
void ni_part_process(struct ni_log_part *p, const struct ni_box_header *h, uint64_t start_ns,
                     uint64_t recovered_ns, bool live);
void ni_part_comm(struct ni_log_part *p, const struct ni_box_comm *c);

/* What the box has of an operation that never finished; state and net are the caller's. */
void ni_part_unfinished(const struct ni_box_op *op, struct ni_unfinished_line *in);
/* net: NULL: nothing under way that is known of. */
void ni_part_state(struct ni_unfinished_line *in, const char *state, uint64_t channels_open,
                   const struct ni_box_net *net);

/*
 * A finished slot as a record, as the plugin's own fill_record has it (docs/internals/blackbox.md, "Values of
 * a record").
 */
void ni_recover_record(const struct ni_box *b, const struct ni_box_comm *c, const struct ni_box_op *op,
                       /* *fallback: index of ni_fallback_names, -1 none */
                       struct ni_record *r, int *fallback);

#endif
