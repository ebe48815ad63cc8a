/*
 * Is everything there? What the logs state as lost, what their numbers show as missing, and what could not be read, as
 * counts and as sentences that name the place.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/plural.h"
#include "exporter/input/sampling.h"
#include "losses.h"

static int by_count(const void *a, const void *b) {
  const struct ni_count *x = a, *y = b;
  return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->name, y->name);
}

static int add_text(char ***list, size_t *n, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int add_text(char ***list, size_t *n, const char *format, ...) {
  char **p = realloc(*list, (*n + 1) * sizeof(char *));
  if (!p) return -ENOMEM;
  *list = p;
  va_list ap;
  va_start(ap, format);
  int k = vasprintf(&p[*n], format, ap);
  va_end(ap);
  if (k < 0) return -ENOMEM;
  ++*n;
  return 0;
}
#define TROUBLE(...) \
  do { if (e == 0) e = add_text(&s->input.trouble, &s->input.n_trouble, __VA_ARGS__); } while (0)

/* "3 files are cut: at" */
struct trouble {
  uint64_t count;              /* 0: none */
  const char *one, *many, *at; /* NULL: nowhere */
};
static int add_troubles(struct ni_summary *s, const struct trouble *t, size_t n) {
  int e = 0;
  for (size_t i = 0; i < n; i++)
    if (t[i].count)
      TROUBLE("%" PRIu64 " %s%s%s", t[i].count, ni_plural(t[i].count, t[i].one, t[i].many), t[i].at ? ": " : "",
              t[i].at ? t[i].at : "");
  return e;
}

/* The line's number in the file: ranges count from 1 each. */
static int collect_bad_lines(struct ni_run *r, struct ni_summary *s) {
  uint32_t per_reason[NI_REJ_COUNT] = {0};
  int e = 0;
  for (size_t i = 0; i < r->files.n; i++) {
    uint64_t base = 0;
    for (int k = 0; k < r->file[i].n_ranges; k++) {
      const struct ni_sum_range *g = &r->file[i].range[k];
      for (uint32_t b = 0; b < g->n_bad && e == 0; b++)
        if (per_reason[g->bad[b].reason]++ < NI_SUM_WHERES)
          e = add_text(&s->input.where, &s->input.n_where, "%s:%" PRIu64 ": %s%s%s%s", r->file[i].file->path,
                       base + g->bad[b].line, ni_reject_name((enum ni_reject)g->bad[b].reason),
                       g->bad[b].key ? " (" : "", g->bad[b].key ? g->bad[b].key : "", g->bad[b].key ? ")" : "");
      base += g->lines;
    }
  }
  return e;
}

static int judge_files(struct ni_run *r, struct ni_summary *s) {
  struct ni_input *in = &s->input;
  const char *first_cut = NULL, *first_bad = NULL, *first_fail = r->files.n_bad ? r->files.bad[0].path : NULL;
  const char *fail_why = r->files.n_bad ? ni_unreadable_why(&r->files.bad[0]) : "";
  int e = 0;
  in->files = r->files.n;
  in->files_failed = r->files.n_bad;
  for (size_t i = 0; i < r->files.n; i++) {
    const struct ni_sum_file *f = &r->file[i];
    bool cut = false, damaged = false, failed = false;
    uint64_t lines = 0;
    in->bytes += f->file->bytes;
    for (int k = 0; k < f->n_ranges; k++) {
      const struct ni_reader_stats *st = &f->range[k].stats;
      in->text_bytes += st->text_bytes;
      lines += st->lines;
      cut = cut || st->cut || f->range[k].cut_line;
      damaged = damaged || st->damages > (st->cut ? 1u : 0u) || st->garbage_bytes || st->gave_up;
      if (f->range[k].error && !failed) {
        failed = true;
        if (!first_fail) {
          first_fail = f->file->path;
          fail_why = strerror(-f->range[k].error);
        }
      }
    }
    if (failed) in->files_failed++;
    else if (lines == 0) in->files_empty++;
    if (cut && !in->cut_files++) first_cut = f->file->path;
    if (damaged && !in->damaged_files++) first_bad = f->file->path;
  }
  if (in->files_failed)
    TROUBLE("%" PRIu64 " %s could not be read: %s: %s",
            in->files_failed, ni_plural(in->files_failed, "file or folder", "files or folders"), first_fail, fail_why);
  const struct trouble damage[] = {
      {in->cut_files, "file is cut at the end", "files are cut at the end", first_cut},
      {in->damaged_files, "file holds damaged gzip data", "files hold damaged gzip data", first_bad}};
  if (e == 0) e = add_troubles(s, damage, 2);
  return e;
}

int ni_judge_input(struct ni_run *r, struct ni_summary *s) {
  struct ni_input *in = &s->input;
  const struct ni_tally_sum *t = &r->tally;
  struct ni_losses loss = {0};
  int e = judge_files(r, s);
  in->lines = t->lines;
  in->records = t->records;
  in->filtered_out += t->filtered; /* besides those of --skip-first */
  in->control_lines = t->control;
  in->proxy_lines = t->proxy;
  in->bad_lines = t->bad;
  in->orphans = t->orphans;
  in->unknown_lines = t->unknown;
  in->no_bandwidth = t->no_bandwidth;
  for (int i = 1; e == 0 && i < NI_REJ_COUNT; i++)
    if (t->reason[i]) e = ni_count_add(&in->bad_by_reason, ni_reject_name((enum ni_reject)i), t->reason[i]);
  if (e == 0) e = collect_bad_lines(r, s);
  if (in->bad_lines)
    TROUBLE("%" PRIu64 " bad %s, first %s",
            in->bad_lines, ni_plural(in->bad_lines, "line", "lines"), in->n_where ? in->where[0] : "?");
  const struct trouble bare[] = {
      {in->orphans, "record without a header and without a marker before it",
       "records without a header and without a marker before them", NULL},
      {r->marker_surplus, "record more or less than the markers announce", "records more or less than the markers announce",
       NULL}};
  if (e == 0) e = add_troubles(s, bare, 2);

  if (e == 0) e = ni_judge_losses(r, &loss, &in->losses_by_cause);
  in->gaps = loss.gaps;
  in->untold = loss.untold;
  in->rolled = loss.rolled;
  if (loss.rolled) {
    in->without_record = loss.no_record;
    in->unrolled = loss.unrolled;
  }
  in->stated_losses = loss.dropped + loss.unfinished + loss.expired;
  char unended[1024] = "";
  if (loss.unended.n) ni_unended_text(&loss.unended, unended, sizeof unended);
  const struct trouble lost[] = {
      {loss.expired, "record expired with its file", "records expired with their files", loss.expired_at},
      {loss.dropped, "operation is stated as lost by the logs", "operations are stated as lost by the logs", loss.dropped_at},
      {loss.unfinished, "operation had not finished when the log ended, or never did",
       "operations had not finished when the log ended, or never did", loss.unfinished_at},
      {loss.refused, "communicator was not recorded at all", "communicators were not recorded at all", loss.refused_at},
      {loss.gaps, "operation is missing by its number", "operations are missing by their numbers", loss.gap_at},
      {loss.untold, NI_SAMPLING_ONE, NI_SAMPLING_MANY, loss.untold_at},
      {loss.no_final, "rank of a communicator ends without a final line (process killed, or still running)",
       "ranks of communicators end without a final line (process killed, or still running)", loss.no_final_at},
      {loss.unended.n, NI_UNENDED_ONE, NI_UNENDED_MANY, unended}};
  if (e == 0) e = add_troubles(s, lost, sizeof lost / sizeof *lost);
  ni_unended_free(&loss.unended);
  if (in->missing_ranks) {
    uint32_t c = 0;
    while (c < s->n_comms && s->comm[c].ranks_seen >= (uint32_t)s->comm[c].n_ranks) c++;
    if (c < s->n_comms)
      TROUBLE("%" PRIu64 " %s missing: communicator %s has %u of %d",
              in->missing_ranks, ni_plural(in->missing_ranks, "rank is", "ranks are"), s->comm[c].id,
              s->comm[c].ranks_seen, s->comm[c].n_ranks);
  }
  const struct trouble others[] = {
      {in->missing_hosts, "host is missing, by the number of nodes in the headers",
       "hosts are missing, by the number of nodes in the headers", NULL},
      {in->duplicates, "record came twice and was counted once", "records came twice and were counted once", NULL}};
  if (e == 0) e = add_troubles(s, others, 2);
  struct { const char *name; uint64_t n; } limits[] = {
      {"time_zero", t->zero_time}, {"time_over_one_hour", t->long_time}, {"bandwidth_over_10000_gbs", t->no_link},
      {"bandwidth_negative", t->negative}};
  for (int i = 0; i < 4; i++) {
    in->out_of_range += limits[i].n;
    if (e == 0 && limits[i].n) e = ni_count_add(&in->out_of_range_by, limits[i].name, limits[i].n);
  }
  if (in->out_of_range)
    TROUBLE("%" PRIu64 " %s that cannot be (%s) and %s left out of the statistics", in->out_of_range,
            ni_plural(in->out_of_range, "record holds a value", "records hold values"),
            in->out_of_range_by.n ? in->out_of_range_by.item[0].name : "?", ni_plural(in->out_of_range, "is", "are"));
  struct ni_counts *sorted[] = {&in->bad_by_reason, &in->losses_by_cause, &in->out_of_range_by};
  for (int i = 0; i < 3; i++)
    if (sorted[i]->n) qsort(sorted[i]->item, sorted[i]->n, sizeof *sorted[i]->item, by_count);
  s->complete = in->n_trouble == 0;
  return e;
}
