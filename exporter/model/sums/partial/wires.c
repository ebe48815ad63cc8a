/* The plan of a partial as bytes: options that shape what is read or made of it, and the list of logs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "partial.h"

/* A text that lives as long as the run. */
static void wire_kept(struct ni_wire *w, struct ni_run *r, const char **text) {
  char *t = (char *)(uintptr_t)*text;
  uint32_t code = 0;
  ni_wire_text(w, &t);
  if (!w->load) return;
  *text = NULL;
  if (!t) return;
  if (ni_name(&r->names, NULL, t, &code) < 0) w->bad = true;
  else *text = ni_name_text(&r->names, code);
  free(t);
}

static void wire_words(struct ni_wire *w, struct ni_words *x) {
  size_t n = x->n;
  ni_wire_count(w, &n, 2);
  for (size_t i = 0; i < n && !w->bad; i++) {
    char *text = w->load ? NULL : x->word[i].text;
    ni_wire_text(w, &text);
    if (!w->load) continue;
    if (!text || ni_words_add(x, text) < 0 || x->n != i + 1) w->bad = true;
    free(text);
  }
}

/* add: ni_ranks_add() or ni_sizes_add(). */
static void wire_spans(struct ni_wire *w, struct ni_ranks *x, int (*add)(struct ni_ranks *r, const char *list)) {
  size_t n = x->n;
  ni_wire_count(w, &n, 2);
  for (size_t i = 0; i < n && !w->bad; i++) {
    int64_t from = w->load ? 0 : x->span[i].from, to = w->load ? 0 : x->span[i].to;
    char text[48];
    ni_wire_i64(w, &from);
    ni_wire_i64(w, &to);
    snprintf(text, sizeof text, "%" PRId64 "-%" PRId64, from, to);
    if (w->load && (w->bad || add(x, text) < 0)) w->bad = true;
  }
}

void ni_partial_wire_options(struct ni_wire *w, struct ni_run *r) {
  struct ni_sum_options *o = &r->opt;
  size_t n = o->inputs.n;
  ni_wire_bool(w, &o->compat);
  ni_wire_bool(w, &o->no_parquet);
  ni_wire_i64(w, &r->since_us);
  ni_wire_i64(w, &r->until_us);
  wire_words(w, &o->filter.coll);
  wire_words(w, &o->filter.comm);
  wire_words(w, &o->filter.host);
  wire_spans(w, &o->filter.rank, ni_ranks_add);
  wire_spans(w, &o->filter.sn, ni_ranks_add);
  wire_spans(w, &o->filter.size, ni_sizes_add);
  ni_wire_u64(w, &o->skip_first);
  ni_wire_u64(w, &o->bucket_ns);
  if (w->load && o->bucket_ns && (o->bucket_ns < NI_BUCKET_MIN_NS || o->bucket_ns > NI_BUCKET_MAX_NS)) w->bad = true;
  wire_kept(w, r, &o->step_by);
  wire_kept(w, r, &o->comm_map);
  wire_kept(w, r, &o->groups);
  wire_kept(w, r, &o->inputs.run);
  ni_wire_count(w, &n, 1);
  for (size_t i = 0; i < n && !w->bad; i++) {
    char *path = w->load ? NULL : o->inputs.path[i];
    ni_wire_text(w, &path);
    if (!w->load) continue;
    if (!path || ni_inputs_add(&o->inputs, path) < 0) w->bad = true;
    free(path);
  }
  if (w->load && !n) w->bad = true;
}

static void wire_file(struct ni_wire *w, struct ni_file *f) {
  bool *const is[] = {&f->head.has_record, &f->head.has_name, &f->head.has_timing, &f->head.has_algo, &f->head.has_trace};
  ni_wire_text(w, &f->path);
  ni_wire_u64(w, &f->bytes);
  ni_wire_i64(w, &f->mtime_ns);
  ni_wire_u32(w, &f->run);
  ni_wire_u64(w, &f->head.start_ns);
  for (size_t i = 0; i < sizeof is / sizeof *is; i++) ni_wire_bool(w, is[i]);
  if (!f->path) w->bad = true;
}

void ni_partial_wire_logs(struct ni_wire *w, struct ni_run *r) {
  struct ni_files *f = &r->files;
  size_t n = f->n, bad = f->n_bad, runs = r->runs.n;
  uint64_t doubles = f->doubles;
  ni_wire_count(w, &n, 8);
  for (size_t i = 0; i < n && !w->bad; i++) {
    if (w->load && !ni_array_room(f->file, i, f->cap)) w->bad = true;
    if (w->load && !w->bad) f->file[i] = (struct ni_file){0}, f->n = i + 1;
    if (!w->bad) wire_file(w, &f->file[i]);
  }
  ni_wire_count(w, &bad, 3);
  for (size_t i = 0; i < bad && !w->bad; i++) {
    if (w->load && !ni_array_room(f->bad, i, f->cap_bad)) w->bad = true;
    if (w->load && !w->bad) f->bad[i] = (struct ni_unreadable){0}, f->n_bad = i + 1;
    if (w->bad) return;
    ni_wire_text(w, &f->bad[i].path);
    ni_wire_i32(w, &f->bad[i].error);
    ni_wire_bool(w, &f->bad[i].named);
    if (!f->bad[i].path) w->bad = true;
  }
  ni_wire_u32(w, &f->kinds);
  ni_wire_u64(w, &doubles);
  f->doubles = (size_t)doubles;
  ni_wire_count(w, &runs, 3);
  for (size_t i = 0; i < runs && !w->bad; i++) {
    if (w->load && !ni_array_room(r->runs.run, i, r->runs.cap)) w->bad = true;
    if (w->load && !w->bad) r->runs.run[i] = (struct ni_job_run){0}, r->runs.n = i + 1;
    if (w->bad) return;
    ni_wire_text(w, &r->runs.run[i].job);
    ni_wire_i64(w, &r->runs.run[i].start_ns);
    ni_wire_u32(w, &r->runs.run[i].processes);
  }
}
