/*
 * The ledger, judged, as the result of a summary has it: counts by name, and a sentence for each problem.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/array.h"
#include "accounts.h"
#include "exporter/model/ledger/judge.h"
#include "format/line_tables.h"

static int compare_counts(const void *a, const void *b) {
  const struct ni_count *x = a, *y = b;
  return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->name, y->name);
}

static int add_count(struct ni_counts *c, const char *name, uint64_t count) {
  if (!count)
    return 0;
  if (!ni_array_room(c->item, c->n, c->cap))
    return -ENOMEM;
  c->item[c->n] = (struct ni_count){strdup(name), count};
  return c->item[c->n++].name ? 0 : -ENOMEM;
}

/* "3 files cut at their end: logs/a.jsonl.gz ..." */
static int add_sentences(const struct ni_ledger *l, int from, int to, char ***list, size_t *n) {
  if (!(*list = calloc((size_t)(to - from), sizeof **list)))
    return -ENOMEM;
  for (int i = from; i < to; i++) {
    const struct ni_problem *p = &l->problem[i];
    const char *at = p->places && p->where[0].text ? p->where[0].text : "";
    if (!p->places || i == NI_PROBLEM_FILTERED)
      continue; /* left_out_by_settings says that */
    if (asprintf(&(*list)[*n], "%s %s%s%s%s", NI_COUNT(p->count),
                 ni_problem_text((enum ni_problem_code)i, p->count), *at ? ": " : "", at,
                 p->places > 1 ? ", ..." : "") < 0)
      return -ENOMEM;
    ++*n;
  }
  return 0;
}

static int add_places(const struct ni_ledger *l, struct ni_input *in) {
  if (!(in->where = calloc(NI_LEDGER_SAMPLES, sizeof *in->where)))
    return -ENOMEM;
  for (size_t i = 0; i < l->n_samples; i++)
    if (!(in->where[in->n_where++] = strdup(l->sample[i].text)))
      return -ENOMEM;
  return 0;
}

static int add_losses(const struct ni_ledger *l, struct ni_counts *c) {
  const struct {
    const char *name;
    uint64_t count;
  } more[] = {{"nvidia_ring_overwritten", l->nvidia_dropped},
              {"other", l->dropped_by.other},
              {"incomplete", l->problem[NI_PROBLEM_INCOMPLETE].count},
              {"in_flight", l->problem[NI_PROBLEM_IN_FLIGHT].count},
              {"refused_communicators", l->problem[NI_PROBLEM_REFUSED].count}};
  int e = 0;
  for (size_t i = 0; e == 0 && i < l->dropped_by.n; i++)
    e = add_count(c, l->dropped_by.item[i].name, l->dropped_by.item[i].count);
  for (size_t i = 0; e == 0 && i < sizeof more / sizeof *more; i++)
    e = add_count(c, more[i].name, more[i].count);
  return e;
}

int ni_judge_input(struct ni_run *r, struct ni_summary *s) {
  struct ni_ledger *l = &r->ledger;
  struct ni_input *in = &s->input;
  int e = ni_ledger_judge(l);
  in->files = r->files.n;
  in->files_failed = l->problem[NI_PROBLEM_UNREADABLE].places;
  in->files_empty = l->problem[NI_PROBLEM_EMPTY].count;
  in->cut_files = l->problem[NI_PROBLEM_CUT].count;
  in->damaged_files = l->problem[NI_PROBLEM_DAMAGED].places;
  in->bytes = r->plan.bytes;
  in->text_bytes = l->text_bytes;
  in->lines = l->lines;
  in->records = l->operations;
  in->filtered_out += r->tally.filtered; /* besides those of --skip-first */
  in->control_lines = l->control_lines;
  in->proxy_lines = l->proxy_lines;
  in->bad_lines = l->bad_lines;
  in->orphans = l->orphans;
  in->unknown_lines = l->problem[NI_PROBLEM_UNKNOWN_KIND].count;
  in->no_bandwidth = r->tally.no_bandwidth;
  in->gaps = l->missing;
  in->untold = l->problem[NI_PROBLEM_UNTOLD].count;
  in->missing_ranks = l->problem[NI_PROBLEM_RANKS].count;
  in->out_of_range = l->problem[NI_PROBLEM_IMPLAUSIBLE].count;
  in->left_out_by_settings = l->problem[NI_PROBLEM_FILTERED].count - (l->rolled ? l->sampled : 0);
  in->stated_losses = l->problem[NI_PROBLEM_DROPPED].count + l->problem[NI_PROBLEM_EXPIRED].count +
      l->problem[NI_PROBLEM_INCOMPLETE].count + l->problem[NI_PROBLEM_IN_FLIGHT].count;
  if (l->rolled) {
    in->rolled = l->rolled;
    in->without_record = l->without_record;
    in->unrolled = l->unrolled;
  }
  for (int i = 1; e == 0 && i < NI_REJ_COUNT; i++)
    if (i != NI_REJ_BLANK)
      e = add_count(&in->bad_by_reason, ni_reject_name((enum ni_reject)i), l->reasons[i]);
  for (int i = 0; e == 0 && i < NI_IMPLAUSIBLE_COUNT; i++)
    e = add_count(&in->out_of_range_by, ni_implausible_names[i], l->implausible[i]);
  if (e == 0)
    e = add_losses(l, &in->losses_by_cause);
  for (int i = 0; e == 0 && i < NI_PROBLEM_FIRST_NOTE; i++)
    e = add_count(&in->problems_by, ni_problem_name((enum ni_problem_code)i), l->problem[i].count);
  struct ni_counts *sorted[] = {&in->bad_by_reason, &in->losses_by_cause, &in->out_of_range_by};
  for (int i = 0; i < 3; i++)
    if (sorted[i]->n)
      qsort(sorted[i]->item, sorted[i]->n, sizeof *sorted[i]->item, compare_counts);
  if (e == 0)
    e = add_sentences(l, 0, NI_PROBLEM_FIRST_NOTE, &in->trouble, &in->n_trouble);
  if (e == 0)
    e = add_sentences(l, NI_PROBLEM_FIRST_NOTE, NI_PROBLEM_COUNT, &in->note, &in->n_notes);
  if (e == 0)
    e = add_places(l, in);
  s->complete = ni_ledger_complete(l);
  return e;
}
