/* The plan of a partial as bytes: options that shape what is read or made of it, and the list of logs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "partial.h"

static void wire_words(struct ni_wire *w, struct ni_words *x) {
  size_t n = x->n;
  ni_wire_count(w, &n, 2);
  for (size_t i = 0; i < n && !w->bad; i++) {
    char *text = w->load ? NULL : x->word[i].text;
    ni_wire_text(w, &text);
    if (!w->load)
      continue;
    if (!text || ni_words_add(x, text) < 0 || x->n != i + 1)
      w->bad = true;
    free(text);
  }
}

/* add: ni_ranks_add() or ni_sizes_add(). */
static void wire_spans(struct ni_wire *w, struct ni_ranks *x,
                       int (*add)(struct ni_ranks *r, const char *list)) {
  size_t n = x->n;
  ni_wire_count(w, &n, 2);
  for (size_t i = 0; i < n && !w->bad; i++) {
    int64_t from = w->load ? 0 : x->span[i].from, to = w->load ? 0 : x->span[i].to;
    char text[48];
    NI_WIRE(w, &from, &to);
    snprintf(text, sizeof text, "%" PRId64 "-%" PRId64, from, to);
    if (w->load && (w->bad || add(x, text) < 0))
      w->bad = true;
  }
}

/* As they were given: what names stand for is each reader's own. */
static void wire_tags(struct ni_wire *w, struct ni_tag_filter *x) {
  uint64_t n = x->n;
  wire_words(w, &x->name);
  wire_spans(w, &x->number, ni_tags_add_span);
  NI_WIRE(w, &n, &x->none);
  if (w->load)
    x->n = n;
  if (w->load && (x->n != 0) != (x->none || x->number.n || x->name.n))
    w->bad = true;
}

void ni_partial_wire_options(struct ni_wire *w, struct ni_run *r) {
  struct ni_sum_options *o = &r->opt;
  size_t n = o->inputs.n;
  NI_WIRE(w, &o->compat, &o->no_parquet, &r->since_us, &r->until_us);
  wire_words(w, &o->filter.coll);
  wire_words(w, &o->filter.comm);
  wire_words(w, &o->filter.host);
  wire_spans(w, &o->filter.rank, ni_ranks_add);
  wire_spans(w, &o->filter.job_rank, ni_ranks_add);
  wire_spans(w, &o->filter.sn, ni_ranks_add);
  wire_spans(w, &o->filter.size, ni_sizes_add);
  wire_tags(w, &o->filter.tag);
  NI_WIRE(w, &o->skip_first, &o->bucket_ns);
  if (w->load && o->bucket_ns && (o->bucket_ns < NI_BUCKET_MIN_NS || o->bucket_ns > NI_BUCKET_MAX_NS))
    w->bad = true;
  ni_wire_kept(w, &r->names, &o->step_by);
  ni_wire_kept(w, &r->names, &o->comm_map);
  ni_wire_kept(w, &r->names, &o->groups);
  ni_wire_kept(w, &r->names, &o->inputs.run);
  ni_wire_count(w, &n, 1);
  for (size_t i = 0; i < n && !w->bad; i++) {
    char *path = w->load ? NULL : o->inputs.path[i];
    ni_wire_text(w, &path);
    if (!w->load)
      continue;
    if (!path || ni_inputs_add(&o->inputs, path) < 0)
      w->bad = true;
    free(path);
  }
  if (w->load && !n)
    w->bad = true;
}

static void wire_file(struct ni_wire *w, struct ni_file *f) {
  NI_WIRE(w, &f->path, &f->bytes, &f->mtime_ns, &f->run, &f->head.start_ns, &f->head.has_record,
          &f->head.has_name);
  NI_WIRE(w, &f->head.has_timing, &f->head.has_algo, &f->head.has_trace, &f->head.job_rank,
          &f->head.job_size);
  if (!f->path)
    w->bad = true;
}

void ni_partial_wire_logs(struct ni_wire *w, struct ni_run *r) {
  struct ni_files *f = &r->files;
  size_t n = f->n, bad = f->n_bad, runs = r->runs.n;
  uint64_t doubles = f->doubles;
  ni_wire_count(w, &n, 8);
  for (size_t i = 0; i < n && !w->bad; i++) {
    if (w->load && !ni_array_room(f->file, i, f->cap))
      w->bad = true;
    if (w->load && !w->bad) {
      f->file[i] = (struct ni_file){0};
      f->n = i + 1;
    }
    if (!w->bad)
      wire_file(w, &f->file[i]);
  }
  ni_wire_count(w, &bad, 3);
  for (size_t i = 0; i < bad && !w->bad; i++) {
    if (w->load && !ni_array_room(f->bad, i, f->cap_bad))
      w->bad = true;
    if (w->load && !w->bad) {
      f->bad[i] = (struct ni_unreadable){0};
      f->n_bad = i + 1;
    }
    if (w->bad)
      return;
    NI_WIRE(w, &f->bad[i].path, &f->bad[i].error, &f->bad[i].named);
    if (!f->bad[i].path)
      w->bad = true;
  }
  NI_WIRE(w, &f->kinds, &doubles);
  f->doubles = (size_t)doubles;
  ni_wire_count(w, &runs, 3);
  for (size_t i = 0; i < runs && !w->bad; i++) {
    if (w->load && !ni_array_room(r->runs.run, i, r->runs.cap))
      w->bad = true;
    if (w->load && !w->bad) {
      r->runs.run[i] = (struct ni_job_run){0};
      r->runs.n = i + 1;
    }
    if (w->bad)
      return;
    NI_WIRE(w, &r->runs.run[i].job, &r->runs.run[i].start_ns, &r->runs.run[i].processes);
  }
}
