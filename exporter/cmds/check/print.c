/* What check says of an account: text, or JSON. */
#include "print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/model/ledger/judge.h"
#include "format/apart.h"
#include "format/line_tables.h"
#include "format/names.h"

enum { ROWS_MAX = 40 };

/* Columns of the table: who, and counts. A count that is 0 in all rows is named below it instead. */
enum {
  COL_COLL,
  COL_P2P,
  COL_FILTERED,
  COL_DROPPED,
  COL_INCOMPLETE,
  COL_IN_FLIGHT,
  COL_LATE,
  COL_MISSING,
  COL_DOUBLE,
  COLS
};
static const char *const keys[COLS] = {"coll_records", "p2p_records", "filtered", "dropped", "incomplete",
                                       "in_flight",    "late",        "missing",  "doubles"};
enum { WHO = 3 };
static const struct ni_column columns[WHO + COLS + 1] = {{"communicator", .width = 19, .left = true},
                                                         {"name", .width = 16, .left = true, .drop = 1},
                                                         {"ranks", .width = 9},
                                                         {"coll", .width = 10, .drop = 5},
                                                         {"p2p", .width = 9, .drop = 9},
                                                         {"filtered", .width = 8, .drop = 8},
                                                         {"dropped", .width = 8, .drop = 1},
                                                         {"incmpl", .width = 6, .drop = 3},
                                                         {"flight", .width = 6, .drop = 7},
                                                         {"late", .width = 5, .drop = 6},
                                                         {"missing", .width = 8, .drop = 2},
                                                         {"double", .width = 7, .drop = 4},
                                                         {"", .left = true, .drop = 10}};

/* Sums over the ranks of one communicator. */
struct comm_row {
  const struct ni_ledger_member *first;
  const char *name;
  uint64_t ranks, not_final, sum[COLS];
};

static struct comm_row sum_row(const struct ni_ledger *c, size_t from, size_t to) {
  struct comm_row r = {.first = c->member[from]};
  for (size_t i = from; i < to; i++) {
    const struct ni_ledger_member *x = c->member[i];
    if (x->who->rank >= 0 && (i == from || c->member[i - 1]->who->rank != x->who->rank))
      r.ranks++;
    if (!r.name)
      r.name = x->who->name;
    if (x->ours && !x->final && x->who->hash)
      r.not_final++; /* of processes: NI_PROBLEM_NO_END */
    for (int k = 0; k < NI_KIND_COUNT; k++) {
      const struct ni_ledger_kind *n = &x->kind[k];
      r.sum[k == NI_KIND_P2P ? COL_P2P : COL_COLL] += n->records;
      r.sum[COL_FILTERED] += n->filtered;
      r.sum[COL_DROPPED] += n->dropped + n->nvidia_dropped;
      r.sum[COL_INCOMPLETE] += n->incomplete;
      r.sum[COL_IN_FLIGHT] += n->in_flight;
      r.sum[COL_LATE] += n->late > n->late_lines ? n->late : n->late_lines;
      r.sum[COL_DOUBLE] += n->rec_sn.doubles;
      r.sum[COL_MISSING] += n->missing;
    }
    for (const struct ni_ledger_func *f = x->funcs; f; f = f->next) {
      r.sum[COL_DOUBLE] += f->sn.doubles;
      r.sum[COL_MISSING] += ni_seq_set_missing(&f->sn, f->sn.lowest <= 1 ? f->sn.lowest : 0);
    }
  }
  return r;
}

static bool is_row_fine(const struct comm_row *r, bool partial) {
  for (int i = COL_DROPPED; i < COLS; i++)
    if (r->sum[i])
      return false;
  return !r->not_final &&
      (partial || r->first->who->n_ranks <= 0 || r->ranks == (uint64_t)r->first->who->n_ranks);
}

/*
 * Has the row nothing to show? The last line of the process has the hash 0 and is no communicator; it is
 * shown when it has something to say.
 */
static bool is_row_empty(const struct comm_row *r) {
  return r->first->who->hash == 0 && !r->sum[COL_COLL] && !r->sum[COL_P2P] && !r->sum[COL_FILTERED] &&
      is_row_fine(r, true);
}

static void fill_row(struct ni_table *t, const struct comm_row *r, const bool *shown) {
  char name[17];
  if (r->first->who->hash)
    ni_table_cell(t, "0x%" PRIx64, r->first->who->hash);
  else
    ni_table_cell(t, "the job");
  ni_table_cell(t, "%s", ni_safe_text(r->name ? r->name : "-", name, sizeof name));
  const int of = r->first->who->n_ranks; /* 0: the log does not say */
  ni_table_cell(t, "%s/%s", NI_COUNT(r->ranks), of > 0 ? NI_COUNT(of) : "?");
  for (int i = 0; i < COLS; i++)
    if (shown[i])
      ni_table_cell(t, "%s", NI_COUNT(r->sum[i]));
  ni_table_cell(t, "%s", r->not_final ? " no final line" : "");
}

/* Rows with something to see come first where not all fit. */
static void print_comm_table(const struct ni_ledger *c, bool every) {
  size_t groups = 0, shown = 0;
  bool used[COLS] = {true};
  for (size_t i = 0, end; i < c->n_members; i = end) {
    struct comm_row r = sum_row(c, i, end = ni_ledger_group_end(c, i));
    if (is_row_empty(&r))
      continue;
    groups++;
    for (int k = 0; k < COLS; k++)
      used[k] |= r.sum[k] > 0;
  }
  if (!groups)
    return;
  bool all = every || groups <= ROWS_MAX;
  struct ni_column shown_columns[WHO + COLS + 1];
  struct ni_table t;
  size_t n = 0;
  for (int k = 0; k < WHO + COLS + 1; k++)
    if (k < WHO || k == WHO + COLS || used[k - WHO])
      shown_columns[n++] = columns[k];
  ni_table_begin(&t, shown_columns, n);
  for (int pass = all ? 1 : 0; pass < 2; pass++)
    for (size_t i = 0, end; i < c->n_members && (all || shown < ROWS_MAX); i = end) {
      struct comm_row r = sum_row(c, i, end = ni_ledger_group_end(c, i));
      if (is_row_empty(&r) || (!all && is_row_fine(&r, c->partial) != (pass == 1)))
        continue;
      fill_row(&t, &r, used);
      shown++;
    }
  ni_say(stdout, "\n");
  ni_table_print(&t, stdout);
  if (shown < groups)
    ni_say(stdout, "... and %s more %s (--all shows them)\n", NI_COUNT(groups - shown),
           ni_plural(groups - shown, "communicator", "communicators"));
  const char *before = "all zero, not shown: ";
  for (int k = 0; k < COLS; k++)
    if (!used[k]) {
      ni_say(stdout, "%s%s", before, columns[WHO + k].head);
      before = ", ";
    }
  if (*before == ',')
    ni_say(stdout, "\n");
}

static void print_tally(const char *title, const struct ni_tally *t) {
  if (!t->n && !t->other)
    return;
  ni_say(stdout, "%-12s", title);
  for (size_t i = 0; i < t->n; i++)
    ni_say(stdout, "%s%s %s", i ? ", " : "", t->item[i].name, NI_COUNT(t->item[i].count));
  if (t->other)
    ni_say(stdout, "%sothers %s", t->n ? ", " : "", NI_COUNT(t->other));
  ni_say(stdout, "\n");
}

void ni_check_reasons(const struct ni_ledger *c) {
  const char *between = "";
  for (int i = 0; i < NI_PROBLEM_FIRST_NOTE; i++) {
    const struct ni_problem *p = &c->problem[i];
    if (!p->places)
      continue;
    ni_say(stdout, "%s%s %s", between, NI_COUNT(p->count),
           ni_problem_text((enum ni_problem_code)i, p->count));
    if (p->where[0].text)
      ni_say(stdout, " (%s%s)", p->where[0].text, p->places > 1 ? ", ..." : "");
    between = "; ";
  }
}

void ni_check_verdict(const struct ni_ledger *c) {
  bool complete = ni_ledger_complete(c);
  ni_say(stdout, "%s", complete ? "COMPLETE" : "INCOMPLETE: ");
  if (!complete)
    ni_check_reasons(c);
  ni_say(stdout, "\n");
}

static void print_events(const struct ni_ledger *c) {
  const char *before = "events      ";
  for (int i = 0; i < NI_EVENT_COUNT; i++)
    if (c->events[i]) {
      ni_say(stdout, "%s%s %s", before, ni_event_names[i], NI_COUNT(c->events[i]));
      before = ", ";
    }
  if (*before == ',')
    ni_say(stdout, "\n");
}

static void print_series(const struct ni_ledger *c) {
  struct ni_ledger_series all = {0};
  const char **host = calloc(c->n_series + 1, sizeof *host);
  size_t hosts = 0;
  bool alike = true;
  for (size_t i = 0; i < c->n_series; i++) {
    const struct ni_ledger_series *s = &c->series[i];
    size_t k = 0;
    ni_add_counts(all.added, s->added);
    alike &= !i || s->interval_ns == all.interval_ns;
    all.interval_ns = s->interval_ns;
    if (s->counters > all.counters)
      all.counters = s->counters;
    while (host && k < hosts && strcmp(host[k], s->host) != 0)
      k++;
    if (host && k == hosts)
      host[hosts++] = s->host;
  }
  free(host);
  if (!c->n_series)
    return;
  ni_say(stdout, "counters    %s %s of %s %s from %s %s", NI_COUNT(all.samples),
         ni_plural(all.samples, "sample", "samples"), NI_COUNT(all.counters),
         ni_plural(all.counters, "counter", "counters"), NI_COUNT(hosts), ni_plural(hosts, "host", "hosts"));
  if (alike && all.interval_ns)
    ni_say(stdout, ", every %.1f s", (double)all.interval_ns / 1e9);
  if (all.sweeps)
    ni_say(stdout, ", and %s %s of all", NI_COUNT(all.sweeps), ni_plural(all.sweeps, "sweep", "sweeps"));
  ni_say(stdout, "\n");
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t count_hosts(const struct ni_ledger *c) {
  const char **name = calloc(c->n_processes + 1, sizeof *name);
  size_t n = 0, hosts = 0;
  if (!name)
    return 0;
  for (; n < c->n_processes; n++)
    name[n] = c->who.process[n].host;
  qsort(name, n, sizeof *name, by_text);
  for (size_t i = 0; i < n; i++)
    hosts += i == 0 || strcmp(name[i - 1], name[i]) != 0;
  free(name);
  return hosts;
}

/* Prints why device times were refused, and what helps. */
static void print_refused_times(const struct ni_ledger *c) {
  bool apart = false;
  for (size_t i = 0; i < c->fallback_by.n; i++)
    apart |= strcmp(c->fallback_by.item[i].name, ni_fallback_names[NI_APART_REASON]) == 0;
  if (apart && c->since_231)
    ni_say(stdout,
           "            counters_apart: kernels count works that this NCCL does not, so it hands out "
           "stamps of earlier work; such times are\n            not used. If the job calls ncclBroadcast, "
           "set NCCL_ALLGATHERV_ENABLE=0; and leave NCCL's event mask as it is\n            (RAS: CONTROL "
           "PROFILER_MASK) (docs/format.md).\n");
  else if (apart)
    ni_say(
        stdout,
        "            counters_apart: this NCCL does not count what a rank sends to itself, its kernels do, "
        "so it hands out stamps\n            of earlier work; such times are not used. "
        "NCCL 2.31 counts these alike (docs/format.md).\n");
}

static void print_clock_line(void *unused, const char *text) { ni_say(stdout, "CLOCKS      %s\n", text); }

void ni_check_print(const struct ni_ledger *c, const struct ni_clocks *clocks, bool all) {
  char file_bytes[32], text_bytes[32];
  size_t hosts = count_hosts(c);
  ni_say(stdout, "files       %s (%s, %s of text), %s process%s on %s host%s\n", NI_COUNT(c->files),
         ni_bytes_text(c->file_bytes, file_bytes), ni_bytes_text(c->text_bytes, text_bytes),
         NI_COUNT(c->n_processes), ni_plural(c->n_processes, "", "es"), NI_COUNT(hosts),
         ni_plural(hosts, "", "s"));
  ni_say(stdout, "lines       %s: %s %s, %s about the run, %s of the proxy, %s bad\n", NI_COUNT(c->lines),
         NI_COUNT(c->operations), ni_plural(c->operations, "operation", "operations"),
         NI_COUNT(c->control_lines), NI_COUNT(c->proxy_lines), NI_COUNT(c->bad_lines));
  ni_clocks_say(clocks, false, print_clock_line, NULL);
  print_tally("operations", &c->funcs);
  print_events(c);
  print_series(c);
  print_tally("dropped", &c->dropped_by);
  print_tally("filtered", &c->filtered_by);
  print_tally("CPU-timed", &c->fallback_by);
  print_refused_times(c);
  print_tally("strays", &c->strays);
  print_comm_table(c, all);
  if (c->bad_lines) {
    ni_say(stdout, "\nbad lines  ");
    for (int i = NI_REJ_BLANK + 1; i < NI_REJ_COUNT; i++)
      if (c->reasons[i])
        ni_say(stdout, " %s %s", ni_reject_name((enum ni_reject)i), NI_COUNT(c->reasons[i]));
    ni_say(stdout, "\n");
    for (size_t i = 0; i < c->n_samples; i++)
      ni_say(stdout, "  %s\n", c->sample[i].text);
  }
  ni_say(stdout, "\n");
  for (int i = 0; i < NI_PROBLEM_COUNT; i++) {
    const struct ni_problem *p = &c->problem[i];
    if (!p->places)
      continue;
    ni_say(stdout, "%s %s %s\n", i < NI_PROBLEM_FIRST_NOTE ? "problem    " : "note       ",
           NI_COUNT(p->count), ni_problem_text((enum ni_problem_code)i, p->count));
    for (uint64_t k = 0; k < p->places && k < NI_LEDGER_WHERES; k++)
      if (p->where[k].text)
        ni_say(stdout, "              %s\n", p->where[k].text);
    if (p->places > NI_LEDGER_WHERES)
      ni_say(stdout, "              and %s more %s\n", NI_COUNT(p->places - NI_LEDGER_WHERES),
             ni_plural(p->places - NI_LEDGER_WHERES, "place", "places"));
  }
  ni_check_verdict(c);
}

static void write_json_tally(struct ni_json *j, const char *key, const struct ni_tally *t) {
  ni_json_object(j, key);
  for (size_t i = 0; i < t->n; i++)
    ni_json_u64(j, t->item[i].name, t->item[i].count);
  if (t->other)
    ni_json_u64(j, "(others)", t->other);
  ni_json_end_object(j);
}

static void write_json_comms(struct ni_json *j, const struct ni_ledger *c) {
  ni_json_array(j, "communicators");
  for (size_t i = 0, end; i < c->n_members; i = end) {
    struct comm_row r = sum_row(c, i, end = ni_ledger_group_end(c, i));
    if (is_row_empty(&r))
      continue;
    ni_json_object(j, NULL);
    ni_json_hex_text(j, "hash", r.first->who->hash);
    ni_json_text(j, "name", r.name);
    ni_json_i64(j, "n_ranks", r.first->who->n_ranks);
    ni_json_u64(j, "ranks_seen", r.ranks);
    for (int k = 0; k < COLS; k++)
      ni_json_u64(j, keys[k], r.sum[k]);
    ni_json_u64(j, "ranks_without_final_line", r.not_final);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

static void write_json_problems(struct ni_json *j, const char *key, const struct ni_ledger *c, int from,
                                int to) {
  ni_json_array(j, key);
  for (int i = from; i < to; i++) {
    const struct ni_problem *p = &c->problem[i];
    if (!p->places)
      continue;
    ni_json_object(j, NULL);
    ni_json_text(j, "code", ni_problem_name((enum ni_problem_code)i));
    ni_json_text(j, "text", ni_problem_text((enum ni_problem_code)i, p->count));
    ni_json_u64(j, "count", p->count);
    ni_json_u64(j, "places", p->places);
    NI_JSON_ARRAY (j, "where")
      for (uint64_t k = 0; k < p->places && k < NI_LEDGER_WHERES; k++)
        if (p->where[k].text)
          ni_json_text(j, NULL, p->where[k].text);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

void ni_check_json(const struct ni_ledger *c, const struct ni_clocks *clocks) {
  static const struct ni_json_field fields[] = {NI_JSON(ni_ledger, files),
                                                NI_JSON(ni_ledger, file_bytes),
                                                NI_JSON(ni_ledger, text_bytes),
                                                NI_JSON_AS(ni_ledger, n_processes, "processes"),
                                                NI_JSON(ni_ledger, lines),
                                                NI_JSON(ni_ledger, operations),
                                                NI_JSON(ni_ledger, control_lines),
                                                NI_JSON(ni_ledger, proxy_lines),
                                                NI_JSON(ni_ledger, bad_lines),
                                                NI_JSON(ni_ledger, unknown_keys),
                                                NI_JSON_AS(ni_ledger, notes, "notes_in_logs")};
  static const struct ni_json_field series[] = {
      NI_JSON_AS(ni_ledger_series, path, "file"), NI_JSON(ni_ledger_series, host),
      NI_JSON(ni_ledger_series, samples),         NI_JSON(ni_ledger_series, sweeps),
      NI_JSON(ni_ledger_series, missed),          NI_JSON(ni_ledger_series, counters),
      NI_JSON(ni_ledger_series, interval_ns)};
  struct ni_json json, *j = &json;
  ni_json_open(j, stdout, "nccl-inspector-check-1");
  ni_json_text(j, "verdict", ni_ledger_complete(c) ? "COMPLETE" : "INCOMPLETE");
  NI_JSON_ALL(j, fields, c, NULL);
  NI_JSON_OBJECT (j, "bad_lines_by")
    for (int i = NI_REJ_BLANK; i < NI_REJ_COUNT; i++)
      if (c->reasons[i])
        ni_json_u64(j, ni_reject_name((enum ni_reject)i), c->reasons[i]);
  NI_JSON_ARRAY (j, "bad_line_samples")
    for (size_t i = 0; i < c->n_samples; i++)
      ni_json_text(j, NULL, c->sample[i].text);
  write_json_tally(j, "operations_by", &c->funcs);
  NI_JSON_OBJECT (j, "events_by")
    for (int i = 0; i < NI_EVENT_COUNT; i++)
      if (c->events[i])
        ni_json_u64(j, ni_event_names[i], c->events[i]);
  write_json_tally(j, "dropped_by", &c->dropped_by);
  write_json_tally(j, "filtered_by", &c->filtered_by);
  write_json_tally(j, "timing_fallback_by", &c->fallback_by);
  write_json_tally(j, "strays", &c->strays);
  write_json_tally(j, "unknown_kinds", &c->unknown_kinds);
  if (c->n_series)
    NI_JSON_OBJECTS(j, "counters", series, c->series, c->n_series, NULL);
  write_json_problems(j, "problems", c, 0, NI_PROBLEM_FIRST_NOTE);
  write_json_problems(j, "notes", c, NI_PROBLEM_FIRST_NOTE, NI_PROBLEM_COUNT);
  write_json_comms(j, c);
  ni_clocks_json(j, clocks);
  ni_json_close(j);
}
