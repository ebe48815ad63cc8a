/*
 * Two sweeps on the terminal: verdict, rates and shares of links, findings, what could not be compared, then
 * what net_prof's dump() shows, under its names.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/input/netprof/names.h"
#include "view.h"

enum { NAMED = 8 }; /* of what could not be compared; the rest is a number, and in the JSON */

/* ---- what is no number ---- */

static void print_unread(const struct ni_counters_view *v) {
  for (int k = 0; k < 2; k++) {
    const struct ni_set *s = &v->sweep[k].set;
    const char *of = k ? "after" : "before";
    for (int skipped = 0; skipped < 2; skipped++) {
      const char *word = skipped ? "left out" : "not read";
      size_t n = 0;
      NI_EACH(const struct ni_unread, u, s->unread, s->n_unread)
      if (u->skipped == skipped && n++ < NAMED)
        ni_say(stdout, "%-10s %s, %s: %s\n", word, of, u->path, u->why);
      if (n > NAMED)
        ni_say(stdout, "%-10s %s, and %s more\n", word, of, NI_COUNT(n - NAMED));
    }
  }
  NI_EACH(const struct ni_pair_entity, e, v->pair.entity, v->pair.n_entities)
  if (!e->in_before || !e->in_after)
    ni_say(stdout, "%-10s %s (%s): not in %s: its %s %s are no numbers\n", e->in_after ? "new" : "gone",
           e->of->name, ni_source_name(e->of->source), v->sweep[e->in_before].path, NI_COUNT(e->n),
           ni_plural(e->n, "counter", "counters"));
}

/*
 * "reset cxi0 hni_pkts_sent_by_tc_1, ...": counters of a state, those of entities that are gone or new apart.
 */
static void print_named(const struct ni_counters_view *v) {
  static const struct {
    uint8_t state;
    bool wrapped;
    const char *word, *meaning;
  } states[] = {{NI_CHANGE_CHANGED, true, "wrapped", "beyond its end; the difference counts on"},
                {NI_CHANGE_RESET, false, "reset", "lower than before, and no wrap is possible: no number"},
                {NI_CHANGE_GONE, false, "gone", "only before"},
                {NI_CHANGE_NEW, false, "new", "only after"},
                {NI_CHANGE_STUCK, false, "saturated", "at its maximum, it counts no further"},
                {NI_CHANGE_STALE, false, "stale", "the second reading is no newer than the first"},
                {NI_CHANGE_UNREADABLE, false, "unreadable", "in one sweep or both"}};
  for (size_t s = 0; s < sizeof states / sizeof *states; s++) {
    size_t n = 0;
    NI_EACH(const struct ni_pair_row, r, v->pair.row, v->pair.n_rows) {
      const struct ni_pair_entity *e = &v->pair.entity[r->entity];
      if (r->change.state != states[s].state || r->change.wrapped != states[s].wrapped)
        continue;
      if (!e->in_before || !e->in_after)
        continue;
      if (n++ == 0)
        ni_say(stdout, "%-11s%s %s", states[s].word, e->of->name, r->name);
      else if (n <= NAMED)
        ni_say(stdout, ", %s %s", e->of->name, r->name);
    }
    if (n > NAMED)
      ni_say(stdout, " and %s more", NI_COUNT(n - NAMED));
    if (n)
      ni_say(stdout, ": %s\n", states[s].meaning);
  }
}

/* ---- tables ---- */

/* "12.5 GB" of bytes, "12.2 k" of all else. */
static const char *format_rate(const char *unit, double rate, char out[32]) {
  if (isnan(rate))
    return "-";
  const bool bytes = strcmp(unit, "bytes") == 0 && rate < 1e18;
  return bytes ? ni_bytes_text((uint64_t)rate, out) : ni_number_text(rate, out);
}

static const char *format_id(uint32_t id, char out[16]) {
  snprintf(out, 16, id ? "%u" : "-", id);
  return out;
}

static const char *format_change(const struct ni_change *c, char out[32]) {
  return c->state <= NI_CHANGE_LEVEL ? ni_count_text(c->delta, out) : ni_change_name(c->state);
}

static void print_entities(const struct ni_counters_view *v) {
  static const struct ni_column columns[] = {{.head = "Interface", .width = 9},
                                             {.head = "name", .left = true, .width = 8},
                                             {.head = "source", .left = true, .drop = 3},
                                             {.head = "non-zero"},
                                             {.head = "counters"},
                                             {.head = "seconds", .drop = 1},
                                             {.head = "resets", .drop = 2},
                                             {.head = "link", .left = true, .drop = 4},
                                             {.head = "", .below = true}};
  struct ni_table t;
  char id[16];
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < v->pair.n_entities; i++) {
    const struct ni_pair_entity *e = &v->pair.entity[v->in_use[i]];
    ni_table_cell(&t, "%s", format_id(ni_netprof_interface(e->of), id));
    ni_table_cell(&t, "%s", e->of->name);
    ni_table_cell(&t, "%s", ni_source_name(e->of->source));
    ni_table_cell(&t, "%s", NI_COUNT(e->changed));
    ni_table_cell(&t, "%s", NI_COUNT(e->n));
    ni_table_cell(&t, "%.6g", e->seconds);
    ni_table_cell(&t, "%s", NI_COUNT(e->resets));
    ni_table_cell(&t, "%s", e->of->link ? e->of->link : "");
    ni_table_cell(&t, "%s", e->of->warning ? e->of->warning : "");
  }
  ni_say(stdout, "\nTotal non-zero diffs: %s\n\nNon-zero diffs by interface:\n", NI_COUNT(v->changed));
  ni_table_print(&t, stdout);
}

static void print_top(const struct ni_counters_view *v, const struct ni_pair_entity *e, unsigned top) {
  static const struct ni_column columns[] = {{.head = "Rank", .drop = 5},
                                             {.head = "Metric ID", .drop = 4},
                                             {.head = "Metric Name", .left = true, .width = 40},
                                             {.head = "Difference", .width = 15},
                                             {.head = "a second", .width = 10},
                                             {.head = "share", .width = 7, .drop = 2},
                                             {.head = "median of others", .drop = 3},
                                             {.head = "", .left = true, .width = 7, .drop = 1},
                                             {.head = "what it counts", .left = true, .drop = 6}};
  struct ni_table t;
  char text[32], id[16], meaning[NI_METRIC_MEANING];
  uint32_t shown = 0, number = ni_netprof_interface(e->of);
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  for (uint32_t i = e->first; i < e->first + e->n && shown < top; i++) {
    const struct ni_pair_row *r = &v->pair.row[v->ranked[i].row];
    double share = ni_pair_share(&v->pair, r);
    if (r->change.state != NI_CHANGE_CHANGED && r->change.state != NI_CHANGE_LEVEL)
      break;
    ni_table_cell(&t, "%u", ++shown);
    ni_table_cell(&t, "%s", format_id(number ? ni_netprof_id(r->name) : 0, id));
    ni_table_cell(&t, "%s", r->name);
    ni_table_cell(&t, "%s", format_change(&r->change, text));
    ni_table_cell(
        &t, "%s",
        format_rate(r->what.unit, r->change.state == NI_CHANGE_LEVEL ? NAN : ni_pair_rate(r), text));
    ni_table_cell(&t, "%s", isnan(share) ? "" : ni_share_text(share, text)); /* few have one */
    ni_table_cell(&t, "%s", format_rate(r->what.unit, v->ranked[i].usual, text));
    ni_table_cell(&t, "%s",
                  r->change.wrapped                        ? "wrapped"
                      : r->change.state == NI_CHANGE_LEVEL ? "level"
                                                           : "");
    ni_table_cell(&t, "%s", ni_counter_meaning(e->of->source, r->name, meaning));
  }
  if (!shown)
    return;
  ni_say(stdout,
         number ? "\nTop %u diffs for Interface %u (%s), the most unusual first:\n"
                : "\nTop %u diffs for %.0u%s:\n",
         shown, number, e->of->name);
  ni_table_print(&t, stdout);
  ni_say(stdout, "Total non-zero diffs not shown: %s\n", NI_COUNT(e->changed - shown));
}

/* Cassini's NICs side by side, a row a counter. The first of them names what there is. */
struct wide {
  struct ni_table t;
  struct ni_column *column; /* n and 4 */
  struct nic {
    uint32_t entity;
    char head[16];
  } *nic;
  const struct ni_pair *p;
  uint32_t n;
};

static bool begin_wide_table(struct wide *w, const struct ni_pair *p) {
  *w = (struct wide){.p = p,
                     .column = calloc(p->n_entities + 4, sizeof *w->column),
                     .nic = calloc(p->n_entities + 1, sizeof *w->nic)};
  if (!w->column || !w->nic)
    return false;
  for (uint32_t i = 0, interface; i < p->n_entities; i++) {
    if (!(interface = ni_netprof_interface(p->entity[i].of)))
      continue;
    struct nic *nic = &w->nic[w->n++];
    nic->entity = i;
    snprintf(nic->head, sizeof nic->head, "Iface%u", interface);
    w->column[1 + w->n] = (struct ni_column){.head = nic->head, .width = 12, .drop = (int)w->n};
  }
  w->column[0] = (struct ni_column){.head = "Metric ID", .width = 9, .drop = (int)w->n + 2};
  w->column[3 + w->n] = (struct ni_column){.head = "what it counts", .left = true, .drop = (int)w->n + 3};
  w->column[1] = (struct ni_column){.head = "Metric Name", .left = true, .width = 36};
  w->column[2 + w->n] = (struct ni_column){.head = "unit", .left = true, .drop = (int)w->n + 1};
  return true;
}

/* Adds a row, unless all of it is as before and nobody asked for that. */
static bool add_wide_row(struct wide *w, const char *name, uint32_t id, const char *unit, bool always) {
  const struct ni_pair_row *r;
  char text[32], number[16], meaning[NI_METRIC_MEANING];
  for (uint32_t i = 0; i < w->n && !always; i++)
    always = (r = ni_pair_row(w->p, w->nic[i].entity, name)) && r->change.state != NI_CHANGE_NONE;
  if (!always)
    return false;
  ni_table_cell(&w->t, "%s", format_id(id, number));
  ni_table_cell(&w->t, "%s", name);
  for (uint32_t i = 0; i < w->n; i++)
    ni_table_cell(&w->t, "%s",
                  (r = ni_pair_row(w->p, w->nic[i].entity, name)) ? format_change(&r->change, text) : "-");
  ni_table_cell(&w->t, "%s", unit);
  ni_table_cell(&w->t, "%s", ni_counter_meaning(NI_METRIC_CXI, name, meaning));
  return true;
}

static void print_important(struct wide *w) {
  const char *name;
  uint32_t id;
  ni_table_begin(&w->t, w->column, w->n + 4);
  for (size_t i = 0; (name = ni_metric_important(i, &id)); i++)
    add_wide_row(w, name, id, ni_metric_of(NI_METRIC_CXI, name).unit, true);
  ni_say(stdout, "\nImportant Metrics (diffs by interface):\n");
  ni_table_print(&w->t, stdout);
}

static void print_group(struct wide *w, const char *group) {
  const struct ni_pair_entity *e = &w->p->entity[w->nic[0].entity];
  struct ni_metric_member m;
  uint32_t members = 0, shown = 0;
  ni_table_begin(&w->t, w->column, w->n + 4);
  NI_EACH(const struct ni_pair_row, r, w->p->row + e->first, e->n)
  for (size_t at = 0; ni_metric_next_group(r->name, &at, &m);) {
    if (strcmp(m.group, group) != 0)
      continue;
    members++;
    shown += add_wide_row(w, r->name, ni_netprof_id(r->name), m.unit, false);
  }
  ni_say(stdout, "\n%s: %s of %s counters changed\n", group, NI_COUNT(shown), NI_COUNT(members));
  ni_table_print(&w->t, stdout);
}

/* Bytes a second and shares of links, or that nobody counts them. */
static void print_carried(const struct ni_counters_view *v) {
  bool has_any = false;
  for (size_t i = 0; i < v->n_figures; i++)
    has_any |= !isnan(v->figures[i].at[NI_FIG_RX]) || !isnan(v->figures[i].at[NI_FIG_TX]);
  ni_say(stdout, "\n");
  if (has_any)
    ni_figures_print(v->figures, v->n_figures, 0, stdout);
  else
    ni_say(stdout, "no NIC and no GPU counts bytes here\n");
}

void ni_counters_print(const struct ni_counters_view *v, unsigned top, bool groups) {
  char line[1024];
  const char *name;
  ni_say(stdout, "%s\n", ni_counters_verdict(v, line, sizeof line));
  print_carried(v);
  if (v->findings.n)
    ni_say(stdout, "\n");
  for (size_t i = 0; i < v->findings.n; i++) {
    const struct ni_counter_finding *f = &v->findings.finding[i];
    ni_say(stdout, "%-10s %s %s\n", f->level == NI_LEVEL_INFO ? "note" : ni_level_name(f->level), f->text,
           f->advice);
  }
  print_unread(v);
  print_named(v);
  print_entities(v);
  for (size_t i = 0; i < v->pair.n_entities && top; i++)
    print_top(v, &v->pair.entity[v->in_use[i]], top);
  struct wide w;
  if (!begin_wide_table(&w, &v->pair))
    ni_say(stdout, "no memory for a table\n");
  else if (w.n) {
    print_important(&w);
    for (size_t i = 0; groups && (name = ni_metric_group(i)); i++)
      print_group(&w, name);
  }
  free(w.column);
  free(w.nic);
}
