/* Programs of steps for people. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/model/pattern/differ.h"
#include "exporter/model/who/who.h"
#include "pattern.h"

enum { FULL_MOST = 4, FULL_SHARE = 8, OTHERS_MOST = 8, COUNTS_MOST = 20, TROUBLE_MOST = 3 };

uint32_t ni_show_runs(const struct ni_show_pattern *x) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < x->p->n_ranks; i++)
    if (x->p->rank[i].run > last)
      last = x->p->rank[i].run;
  return last;
}

static int32_t global_rank(const struct ni_show_pattern *x, uint32_t i) {
  return x->s->process[x->p->rank[i].process].rank;
}

/* If only some operations were asked for, ranks without any of them are not listed. */
static bool is_told(const struct ni_show_pattern *x, const struct ni_pattern_rank *r, uint32_t run) {
  return r->run == run && !(r->no_operations && x->r->tally.filtered);
}

static bool is_of(const struct ni_pattern_rank *r, uint32_t run, uint32_t program, const char *why_not) {
  return r->run == run && r->program == program && (program != NI_BLAME_NONE || r->why_not == why_not);
}

static NI_ORDER_OF(by_number, int32_t);

struct numbers {
  int32_t *item;
  size_t n;
};

static void append_spans(struct ni_put_text *w, const struct numbers *x) {
  size_t shown = 0;
  for (size_t i = 0, to; i < x->n; i = to) {
    for (to = i + 1; to < x->n && x->item[to] == x->item[to - 1] + 1; to++) {}
    if (w->left < 60) {
      ni_put(w, " and %zu more", x->n - shown);
      return;
    }
    ni_put(w, "%s%d", i ? ", " : "", x->item[i]);
    if (to - i > 1)
      ni_put(w, "%s%d", to - i > 2 ? "-" : ", ", x->item[to - 1]);
    shown = to;
  }
}

const char *ni_show_ranks_text(const struct ni_show_pattern *x, uint32_t run, uint32_t program,
                               const char *why_not, char out[200]) {
  struct ni_put_text w = {out, 200};
  struct numbers n = {malloc((x->p->n_ranks + 1) * sizeof *n.item), 0};
  *out = 0;
  for (uint32_t i = 0; n.item && i < x->p->n_ranks; i++)
    if (is_of(&x->p->rank[i], run, program, why_not))
      n.item[n.n++] = global_rank(x, i);
  if (n.n)
    qsort(n.item, n.n, sizeof *n.item, by_number);
  append_spans(&w, &n);
  free(n.item);
  return out;
}

bool ni_show_form(const struct ni_show_pattern *x, const struct ni_pattern_place *p, const char **algo,
                  const char **proto) {
  *algo = p->mixes ? "" : ni_name_text(&x->r->names, x->r->mix[p->mix].algo);
  *proto = p->mixes ? "" : ni_name_text(&x->r->names, x->r->mix[p->mix].proto);
  return **algo || **proto;
}

/* ---- one program ---- */

static const char *format_size(uint64_t bytes, uint64_t most, char out[72]) {
  char a[32], b[32];
  if (bytes == most)
    return ni_size_text(bytes, out);
  snprintf(out, 72, "%s - %s", ni_size_text(bytes, a), ni_size_text(most, b));
  return out;
}

static const char *name_datatype(const char *datatype) {
  if (!datatype)
    return "";
  return strncmp(datatype, "nccl", 4) == 0 ? datatype + 4 : datatype;
}

/* "tp (8)"; "8 ranks" */
static const char *name_comm(const struct ni_pattern_lane *l, char out[96]) {
  char label[96];
  struct ni_put_text w = {out, 96};
  ni_put(&w, "%s", ni_pattern_lane_text(l, label));
  if (l->n_ranks > 0 && !ni_pattern_is_size(l->label))
    ni_put(&w, " (%d)", l->n_ranks);
  return out;
}

static void add_number_cells(struct ni_table *t, const struct ni_listing_row *row) {
  if (row->kind == NI_LISTING_CLOSE)
    ni_table_cell(t, "%s", "");
  else if (row->from == row->to)
    ni_table_cell(t, "%u", row->from + 1);
  else
    ni_table_cell(t, "%u-%u", row->from + 1, row->to + 1);
}

static void print_pattern_op(struct ni_table *t, const struct ni_show_pattern *x, const struct ni_program *p,
                             const struct ni_listing_row *row) {
  const struct ni_pattern_place *at = &p->place[row->place];
  const struct ni_pattern_lane *l = &p->lane[row->lane];
  const char *algo, *proto;
  char func[96], comm[96], size[72], text[32], times[24] = "";
  if (row->times > 1)
    snprintf(times, sizeof times, "%u x ", row->times);
  ni_table_cell(t, "%*s%s%s", (int)row->depth * 2, "", times, ni_pattern_func_text(l, at->func, func));
  ni_table_cell(t, "%s", format_size(row->bytes, row->bytes_most, size));
  ni_table_cell(t, "%s", name_datatype(at->datatype));
  ni_table_cell(t, "%s", name_comm(l, comm));
  ni_table_cell(t, "%s", at->by_call || isnan(row->us) ? "-" : ni_duration_text(row->us, text));
  if (at->by_call || isnan(row->beside))
    ni_table_cell(t, "-");
  else
    ni_table_cell(t, "%.0f %%", 100 * row->beside);
  const bool known = ni_show_form(x, at, &algo, &proto);
  ni_table_cell(t, "%s%s%s", algo, known && *algo && *proto ? "/" : "", proto);
}

static void print_row(struct ni_table *t, const struct ni_show_pattern *x, const struct ni_program *p,
                      const struct ni_listing_row *row) {
  const int indent = (int)row->depth * 2;
  char comm[96];
  add_number_cells(t, row);
  if (row->kind == NI_LISTING_OP) {
    print_pattern_op(t, x, p, row);
    return;
  }
  if (row->kind == NI_LISTING_OPEN)
    ni_table_cell(t, "%*s%u x {", indent, "", row->times);
  else if (row->kind == NI_LISTING_CLOSE)
    ni_table_cell(t, "%*s}", indent, "");
  else
    ni_table_cell(t, "meanwhile on %s:", ni_pattern_lane_text(&p->lane[row->lane], comm));
  for (int i = 0; i < 6; i++)
    ni_table_cell(t, "%s", "");
}

static void print_listing(const struct ni_show_pattern *x, const struct ni_program *p,
                          const struct ni_listing *list) {
  static const struct ni_column columns[] = {{"#", .width = 5, .left = true},
                                             {"operation", .width = 20, .left = true},
                                             {"size", .width = 8},
                                             {"type", .width = 8, .left = true, .drop = 2},
                                             {"on", .width = 10, .left = true},
                                             {"time", .width = 8},
                                             {"beside", .unit = "others", .width = 6},
                                             {"algo", .left = true, .drop = 1}};
  struct ni_table t;
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < list->n; i++)
    print_row(&t, x, p, &list->row[i]);
  ni_table_print(&t, stdout);
}

static void print_irregular(const struct ni_program *p) {
  char func[96], comm[96];
  for (uint32_t i = 0; i < p->n_lanes; i++) {
    const struct ni_pattern_lane *l = &p->lane[i];
    const char *name = l->kind == NI_BLAME_COLL ? "collectives" : l->kind == NI_BLAME_SEND ? "Send" : "Recv";
    if (!l->irregular)
      continue;
    ni_say(stdout, "not the same in each step: %s on %s, %s to %s operations\n",
           ni_pattern_func_text(l, name, func), name_comm(l, comm), NI_COUNT(l->least), NI_COUNT(l->most));
  }
}

static void print_times(const struct ni_program *p) {
  if (p->steps_least == p->steps_most)
    ni_say(stdout, "the step came %s times", NI_COUNT(p->steps_least));
  else
    ni_say(stdout, "the step came %s to %s times", NI_COUNT(p->steps_least), NI_COUNT(p->steps_most));
  if (p->exact_steps == p->steps) {
    ni_say(stdout, ", each time the same\n");
    return;
  }
  ni_say(stdout, ", %.1f %% of them exactly so", 100 * (double)p->exact_steps / (double)p->steps);
  ni_say(stdout,
         p->exact_steps * 2 < p->steps ? "; what is listed is the usual one on each communicator\n" : "\n");
}

static void print_program(const struct ni_show_pattern *x, uint32_t k, uint32_t of_ranks,
                          const struct ni_listing *list) {
  const struct ni_program *p = &x->p->program[k];
  char ranks[200];
  ni_say(stdout, "a step of %s %s; %s of %s %s it: %s\n", NI_COUNT(p->n_places),
         ni_plural(p->n_places, "operation", "operations"), NI_COUNT(p->ranks), NI_COUNT(of_ranks),
         of_ranks == 1       ? "rank has"
             : p->ranks == 1 ? "ranks has"
                             : "ranks have",
         ni_show_ranks_text(x, p->run, k, NULL, ranks));
  print_times(p);
  if (p->ordered < p->ranks)
    ni_say(stdout, "the order between communicators is that of %s of them, such as rank %d\n",
           NI_COUNT(p->ordered), global_rank(x, p->first_rank));
  print_listing(x, p, list);
  print_irregular(p);
}

/* ---- the others ---- */

static void print_place(const struct ni_pattern_lane *l, const struct ni_pattern_place *p) {
  char func[96], comm[96], size[72];
  ni_say(stdout, "%s %s on %s", ni_pattern_func_text(l, p->func, func),
         format_size(p->bytes, p->bytes_most, size), name_comm(l, comm));
}

/* Prints how it differs from the program that it is nearest to. */
static int print_other(const struct ni_show_pattern *x, uint32_t k, uint32_t first) {
  const uint32_t nearest = ni_pattern_nearest(x->p, first, k);
  const struct ni_program *p = &x->p->program[k], *q = &x->p->program[nearest];
  struct ni_pattern_difference d;
  struct ni_listing list;
  char ranks[200], comm[96];
  int e = ni_listing_make(q, &list);
  if (e == 0)
    e = ni_pattern_differ(q, &list, p, &d);
  ni_listing_free(&list);
  if (e < 0)
    return e;
  ni_say(stdout, "%s %s: another program, %s %s, ", ni_plural(p->ranks, "rank", "ranks"),
         ni_show_ranks_text(x, p->run, k, NULL, ranks), NI_COUNT(p->n_places),
         ni_plural(p->n_places, "operation", "operations"));
  ni_say(stdout, "that differs from that of rank%s %s first ", q->ranks == 1 ? "" : "s",
         ni_show_ranks_text(x, q->run, nearest, NULL, ranks));
  if (d.position != UINT32_MAX)
    ni_say(stdout, "at operation %s: ", NI_COUNT(d.position + 1));
  else
    ni_say(stdout, "on %s: ", name_comm(d.lane, comm));
  if (d.there)
    print_place(d.lane, d.there);
  else
    ni_say(stdout, "nothing");
  ni_say(stdout, d.here ? " in place of " : d.there ? ", which that has not" : " that repeats");
  if (d.here)
    print_place(d.lane, d.here);
  ni_say(stdout, "\n");
  return 0;
}

static void print_without(const struct ni_show_pattern *x, uint32_t run) {
  for (uint32_t i = 0; i < x->p->n_ranks; i++) {
    const struct ni_pattern_rank *r = &x->p->rank[i];
    uint32_t before = 0, n = 0;
    char ranks[200];
    if (!is_told(x, r, run) || r->program != NI_BLAME_NONE)
      continue;
    for (uint32_t k = 0; k < x->p->n_ranks; k++) {
      const bool same = is_of(&x->p->rank[k], run, NI_BLAME_NONE, r->why_not);
      before += same && k < i;
      n += same;
    }
    if (before)
      continue;
    ni_say(stdout, "%s %s %s no step: %s\n", ni_plural(n, "rank", "ranks"),
           ni_show_ranks_text(x, run, NI_BLAME_NONE, r->why_not, ranks), ni_plural(n, "has", "have"),
           r->why_not);
  }
}

/* Prints what there is if nothing repeats, the most frequent first. */
static void print_counts(const struct ni_show_pattern *x, uint32_t run) {
  static const struct ni_column columns[] = {{"operation", .width = 20, .left = true},
                                             {"size", .width = 8},
                                             {"type", .width = 8, .left = true, .drop = 1},
                                             {"on", .width = 10, .left = true},
                                             {"records", .width = 8},
                                             {"share", .width = 6}};
  struct ni_table t;
  uint64_t all = 0, rows = 0, left_out = 0;
  char size[72], share[32], comm[96];
  for (uint32_t i = 0; i < x->p->n_counts; i++)
    all += x->p->count[i].run == run ? x->p->count[i].records : 0;
  if (!all)
    return;
  ni_say(stdout, "what there is, by what it is:\n");
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  for (uint32_t i = 0; i < x->p->n_counts; i++) {
    const struct ni_pattern_count *c = &x->p->count[i];
    if (c->run != run)
      continue;
    if (!x->all && rows >= COUNTS_MOST) {
      left_out++;
      continue;
    }
    rows++;
    if (c->sizes > 1)
      ni_table_cell(&t, "%s, %s sizes", c->func, NI_COUNT(c->sizes));
    else
      ni_table_cell(&t, "%s", c->func);
    ni_table_cell(&t, "%s", format_size(c->bytes, c->bytes_most, size));
    ni_table_cell(&t, "%s", name_datatype(c->datatype));
    ni_table_cell(&t, "%s",
                  name_comm(&(struct ni_pattern_lane){.label = c->label, .n_ranks = c->n_ranks}, comm));
    ni_table_cell(&t, "%s", NI_COUNT(c->records));
    ni_table_cell(&t, "%s", ni_share_text((double)c->records / (double)all, share));
  }
  ni_table_print(&t, stdout);
  if (left_out + x->p->counts_left_out)
    ni_say(stdout, "and %s more%s\n", NI_COUNT(left_out + x->p->counts_left_out), left_out ? " (--all)" : "");
}

static int print_run(const struct ni_show_pattern *x, uint32_t run) {
  const struct ni_pattern *p = x->p;
  uint32_t ranks = 0, first = UINT32_MAX, full = 0, others = 0;
  struct ni_listing reference = {0}, list = {0};
  int e = 0;
  for (uint32_t i = 0; i < p->n_ranks; i++)
    ranks += is_told(x, &p->rank[i], run);
  for (uint32_t k = 0; e == 0 && k < p->n_programs; k++) {
    const struct ni_program *q = &p->program[k];
    if (q->run != run)
      continue;
    const bool is_first = first == UINT32_MAX;
    const bool many = q->ranks > 1 && q->ranks * FULL_SHARE >= ranks && full < FULL_MOST;
    if (is_first) {
      first = k;
      e = ni_listing_make(q, &reference);
      if (e == 0)
        print_program(x, k, ranks, &reference);
      continue;
    }
    if (!x->all && ++others > OTHERS_MOST)
      continue;
    ni_say(stdout, "\n");
    e = print_other(x, k, first);
    if (e < 0 || (!many && !x->all))
      continue;
    e = ni_listing_make(q, &list);
    if (e == 0)
      print_program(x, k, ranks, &list);
    ni_listing_free(&list);
    full++;
  }
  ni_listing_free(&reference);
  if (others > OTHERS_MOST)
    ni_say(stdout, "\nand %s %s more (--all)\n", NI_COUNT(others - OTHERS_MOST),
           ni_plural(others - OTHERS_MOST, "program", "programs"));
  print_without(x, run);
  if (first == UINT32_MAX)
    print_counts(x, run);
  return e;
}

static void print_missing(const struct ni_show_pattern *x) {
  const struct ni_input *in = &x->s->input;
  uint64_t left_out = 0;
  for (size_t i = 0; i < in->n_trouble && i < TROUBLE_MOST; i++)
    ni_say(stdout, "INCOMPLETE: %s\n", in->trouble[i]);
  const uint64_t sample = ni_show_sample(x);
  if (sample > 1)
    ni_say(stdout, "operations may be missing from steps: one of %s has a record (NCCL_INSPECTOR_SAMPLE)\n",
           NI_COUNT(sample));
  else if (in->left_out_by_settings)
    ni_say(stdout, "operations are missing from steps: settings left out %s\n",
           NI_COUNT(in->left_out_by_settings));
  if (x->r->tally.filtered)
    ni_say(stdout, "steps are of what was asked for: %s %s left out by the options\n",
           NI_COUNT(x->r->tally.filtered), ni_plural(x->r->tally.filtered, "record is", "records are"));
  for (uint32_t i = 0; i < x->p->n_ranks; i++)
    left_out += x->p->rank[i].left_out;
  if (left_out)
    ni_say(stdout, "%s %s on more communicators than there is room for, and left out\n", NI_COUNT(left_out),
           ni_plural(left_out, "operation is", "operations are"));
}

uint64_t ni_show_sample(const struct ni_show_pattern *x) {
  const struct ni_ledger *l = &x->r->ledger;
  uint64_t most = 1;
  for (size_t i = 0; i < l->n_processes; i++)
    if (l->process[i]->sample > most)
      most = l->process[i]->sample;
  return most;
}

int ni_show_pattern_text(const struct ni_show_pattern *x) {
  char text[256];
  const uint32_t last = ni_show_runs(x);
  int e = 0;
  for (uint32_t run = 0; e == 0 && run <= last; run++) {
    if (last && run == 0)
      continue;
    if (run > 1)
      ni_say(stdout, "\n");
    if (last && run <= x->r->runs.n)
      ni_say(stdout, "%s\n", ni_run_text(&x->r->runs, run - 1, text));
    e = print_run(x, run);
  }
  print_missing(x);
  return e;
}
