/*
 * All lines of all files, in order: the files of a process as they were written (discover.h), so that what a line means can
 * depend on the lines before it. Bare records (v4.3) belong to the marker before them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

int ni_tr_plan(struct ni_tr *r) {
  r->file = calloc(r->files.n + 1, sizeof *r->file);
  if (!r->file) return -ENOMEM;
  for (size_t i = 0; i < r->files.n; i++) {
    r->file[i] = (struct ni_tr_file){.file = &r->files.file[i], .process = NI_TR_NONE};
    int e = ni_name_of_log(&r->names, r->files.file[i].path, &r->file[i].origin);
    if (e < 0) return e;
  }
  return 0;
}

static void reject(struct ni_tr *r, const struct ni_tr_file *f, enum ni_reject why, uint64_t line_no) {
  r->count.reason[why]++;
  if (why == NI_REJ_BLANK) return;
  r->count.bad_lines++;
  if (!r->count.first_bad && asprintf(&r->count.first_bad, "%s:%llu: %s", f->file->path, (unsigned long long)line_no,
                                      ni_reject_name(why)) < 0)
    r->count.first_bad = NULL;
}

struct reading {
  struct ni_tr *r;
  bool first;
  int (*take)(struct ni_tr *, const struct ni_tr_where *, const struct ni_line *);
  struct ni_parser *parser;
  struct ni_line line;
  uint32_t marker;             /* member; NI_TR_NONE: none in this file yet */
  int64_t marker_us;
};

static int take_line(struct reading *x, struct ni_tr_file *f, uint64_t line_no) {
  struct ni_tr *r = x->r;
  const struct ni_line *l = &x->line;
  struct ni_tr_where w = {.file = f, .member = NI_TR_NONE, .line_no = line_no};
  if (!l->has_header) {
    if (x->marker == NI_TR_NONE) {
      r->count.orphans += x->first;
      return 0;
    }
    w.member = x->marker;
    w.process = r->member[w.member].process;
    w.dump_us = x->marker_us;
    return x->take(r, &w, l);
  }
  int e = ni_tr_find_process(r, f, l, &w.process);
  w.dump_us = (int64_t)l->meta.dump_timestamp_us;
  /* Lines about the whole process carry the hash 0; an operation belongs to a communicator whatever its hash. */
  if (e == 0 && (l->ident.comm_hash != 0 || l->kind == NI_LINE_OP)) e = ni_tr_find_member(r, w.process, l, &w.member);
  if (e < 0) return e;
  if (l->kind == NI_LINE_DUMP_STATS && !l->stats.has_accounting && w.member != NI_TR_NONE) {
    x->marker = w.member;
    x->marker_us = w.dump_us;
  }
  return x->take(r, &w, l);
}

static int read_file(struct reading *x, struct ni_tr_file *f) {
  struct ni_tr *r = x->r;
  struct ni_reader *reader;
  struct ni_text t;
  int e = ni_reader_open(&reader, f->file->path, NULL), got;
  if (e < 0) {
    r->count.unreadable += x->first;
    if (x->first) ni_say(stderr, "nccl-inspector trace: %s: %s\n", f->file->path, strerror(-e));
    return e == -ENOMEM ? e : 0;
  }
  x->marker = f->process = NI_TR_NONE;
  while ((got = ni_reader_next(reader, &t)) == 1) {
    enum ni_reject why = t.too_long ? NI_REJ_TOO_LONG : ni_parse_line(x->parser, t.text, t.len, t.room, &x->line);
    if (why == NI_REJ_NO_MEMORY) e = -ENOMEM;
    else if (why == NI_OK) e = take_line(x, f, t.line_no);
    else if (x->first && t.unterminated && !ni_reader_stats(reader)->cut && why != NI_REJ_BLANK) r->count.cut++;
    else if (x->first && (!t.unterminated || why == NI_REJ_BLANK)) reject(r, f, why, t.line_no);
    if (e < 0) break;
  }
  const struct ni_reader_stats *s = ni_reader_stats(reader);
  if (x->first) {
    r->count.lines += s->lines;
    r->count.file_bytes += s->file_bytes;
    r->count.text_bytes += s->text_bytes;
    r->count.cut += s->cut;
    r->count.damaged += s->damages > s->cut;
    r->count.unreadable += got < 0;
  }
  ni_reader_close(reader);
  return got == -ENOMEM ? got : e;
}

int ni_tr_pass(struct ni_tr *r, bool first,
               int (*take)(struct ni_tr *, const struct ni_tr_where *, const struct ni_line *)) {
  struct reading *x = calloc(1, sizeof *x);
  if (!x) return -ENOMEM;
  x->r = r;
  x->first = first;
  x->take = take;
  int e = ni_parser_new(&x->parser);
  for (size_t i = 0; e == 0 && i < r->files.n; i++) e = read_file(x, &r->file[i]);
  ni_parser_free(x->parser);
  free(x);
  return e < 0 ? ni_tr_fail(r, e, "%s", strerror(-e)) : 0;
}
