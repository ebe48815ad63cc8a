#include "show.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/array.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/output/report/page_file.h"

enum { MOST = 20, PROGRAM_MOST = 6 };

static void add_time_cell(struct ni_table *t, double us) {
  char text[32];
  ni_table_cell(t, "%s", ni_duration_text(us, text));
}

static void print_rows(const struct ni_diff *d, bool all, FILE *f) {
  static const struct ni_column columns[] = {{.head = "", .left = true, .width = 8, .drop = 2},
                                             {.head = "what", .left = true, .width = 22},
                                             {.head = "A", .width = 8},
                                             {.head = "B", .width = 8},
                                             {.head = "change"},
                                             {.head = "interval", .unit = "95 %"},
                                             {.head = "in a step", .drop = 1},
                                             {.head = "", .left = true}};
  struct ni_table t;
  size_t shown = 0, kinds[NI_DIFF_KINDS] = {0};
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  NI_EACH(const struct ni_diff_row, r, d->row, d->n) {
    const struct ni_diff_item *a = r->item[0], *b = r->item[1];
    bool step = a->kind == NI_DIFF_STEP && a->key <= NI_DIFF_COMPUTE;
    if (!all && !step && (r->verdict < NI_DIFF_SLOWER || ++kinds[a->kind] > MOST / 4))
      continue;
    if (!all && shown == MOST)
      continue;
    if (!shown++)
      ni_say(f, "\n");
    ni_table_cell(&t, "%s", ni_diff_kind_names[a->kind]);
    ni_table_cell(&t, "%s", b->name);
    add_time_cell(&t, a->value);
    add_time_cell(&t, b->value);
    ni_table_cell(&t, "%+.1f %%", 100 * r->change);
    ni_table_cell(&t, "%+.1f..%+.1f", 100 * r->low, 100 * r->high);
    ni_table_cell(&t, isnan(r->step_us) ? "-" : "%+.3g ms", r->step_us / 1e3);
    ni_table_cell(&t, "%s", ni_diff_verdict_names[r->verdict]);
  }
  ni_table_print(&t, f);
}

void ni_diff_print_program(const struct ni_diff *d, FILE *f) {
  const struct ni_step_changes *c = &d->changes;
  char text[400];
  for (size_t i = 0; i < c->n && i < PROGRAM_MOST; i++)
    ni_say(f, "step of B: %s\n", ni_step_change_text(c, &c->change[i], text));
  if (c->n + c->left_out > PROGRAM_MOST)
    ni_say(f, "step of B: %s more (--json has them)\n", NI_COUNT(c->n + c->left_out - PROGRAM_MOST));
}

void ni_diff_print(const struct ni_diff *d, bool all, double gate, const struct ni_diff_row *over, FILE *f) {
  size_t unclear = 0;
  ni_say(f, "%s\n", d->verdict);
  for (const struct ni_diff_run *r = d->run; r < d->run + 2; r++)
    ni_say(f, "%c: %s (%s, %s %s, %s steps)\n", "AB"[r - d->run], r -> path, r -> from, NI_COUNT(r->ranks),
           ni_plural(r->ranks, "rank", "ranks"), NI_COUNT(r->steps));
  for (const struct ni_diff_run *r = d->run; r < d->run + 2; r++)
    if (*r->clocks)
      ni_say(f, "CLOCKS of %c: %s\n", "AB"[r - d->run], r -> clocks);
  for (size_t i = 0; i < d->n_notes; i++)
    ni_say(f, "note: %s\n", d->note[i]);
  ni_diff_print_program(d, f);
  print_rows(d, all, f);
  for (size_t i = 0; i < d->n; i++)
    unclear += d->row[i].verdict == NI_DIFF_UNCLEAR;
  ni_say(f, "\n%s of %s rows changed; %s did not", NI_COUNT(d->changed), NI_COUNT(d->n),
         NI_COUNT(d->n - d->changed - unclear));
  if (unclear)
    ni_say(f, "; of %s the noise is too large to tell", NI_COUNT(unclear));
  if (d->only[0] + d->only[1])
    ni_say(f, "; only in A %s, only in B %s", NI_COUNT(d->only[0]), NI_COUNT(d->only[1]));
  ni_say(f, all ? "\n" : ". --all shows all\n");
  if (over)
    ni_say(f, "gate: %s is %.1f %% slower (%.1f to %.1f %%), more than %.3g %%\n", over->item[1]->name,
           100 * over->change, 100 * over->low, 100 * over->high, 100 * gate);
  else if (gate >= 0)
    ni_say(f, "gate: passed, nothing is slower by more than %.3g %% for certain\n", 100 * gate);
}

static void put_run(struct ni_json *j, const char *key, const struct ni_diff_run *r) {
  static const struct ni_json_field fields[] = {NI_JSON(ni_diff_run, world_size), NI_JSON(ni_diff_run, ranks),
                                                NI_JSON(ni_diff_run, steps), NI_JSON(ni_diff_run, bin_steps)};
  ni_json_object(j, key);
  ni_json_text(j, "path", r->path);
  ni_json_text(j, "from", r->from);
  ni_json_bool(j, "complete", !*r->trouble);
  if (*r->clocks)
    ni_json_text(j, "clocks", r->clocks);
  NI_JSON_ALL(j, fields, r, NULL);
  NI_JSON_ARRAY (j, "step_us")
    for (uint32_t k = 0; k < r->bins; k++)
      ni_json_rounded(j, NULL, r->item[NI_DIFF_TYPICAL].x[k], 6);
  ni_json_end_object(j);
}

static void put_row(struct ni_json *j, const char *key, const struct ni_diff_row *r) {
  const struct {
    const char *key;
    double value;
    int digits;
  } figure[] = {{"a_us", r->item[0]->value, 7}, {"b_us", r->item[1]->value, 7},
                {"change", r->change, 5},       {"low", r->low, 5},
                {"high", r->high, 5},           {"p", r->p, 3},
                {"in_step_us", r->step_us, 5}};
  ni_json_object(j, key);
  ni_json_text(j, "kind", ni_diff_kind_names[r->item[0]->kind]);
  ni_json_text(j, "name", r->item[1]->name);
  if (r->item[0]->kind == NI_DIFF_RANK)
    ni_json_u64(j, "rank", r->item[0]->key);
  for (size_t i = 0; i < sizeof figure / sizeof *figure; i++)
    ni_json_rounded(j, figure[i].key, figure[i].value, figure[i].digits);
  ni_json_text(j, "verdict", ni_diff_verdict_names[r->verdict]);
  ni_json_end_object(j);
}

static void put_size(struct ni_json *j, const char *key, uint64_t bytes) {
  if (bytes == UINT64_MAX)
    ni_json_text(j, key, NULL);
  else
    ni_json_u64(j, key, bytes);
}

static void put_changes(struct ni_json *j, const struct ni_step_changes *all) {
  char text[400];
  NI_JSON_ARRAY (j, "changes")
    for (size_t i = 0; i < all->n; i++) {
      const struct ni_step_change *c = &all->change[i];
      const bool moved = c->kind == NI_CHANGE_COMMUNICATOR;
      ni_json_object(j, NULL);
      ni_json_text(j, "kind", ni_step_change_names[c->kind]);
      ni_json_text(j, "text", ni_step_change_text(all, c, text));
      if (*c->func)
        ni_json_text(j, "operation", c->func);
      ni_json_text(j, "communicator", c->comm);
      if (moved)
        ni_json_text(j, "communicator_b", c->comm_b);
      if (c->times_a)
        put_size(j, "bytes_a", c->bytes_a);
      if (c->times_b)
        put_size(j, "bytes_b", c->bytes_b);
      ni_json_u64(j, "times_a", c->times_a);
      ni_json_u64(j, "times_b", c->times_b);
      if (*c->was)
        ni_json_text(j, "a", c->was);
      if (*c->is)
        ni_json_text(j, "b", c->is);
      ni_json_u64(j, "ranks", c->ranks);
      ni_json_end_object(j);
    }
}

/* What changed in the step; null: not known of one of them. */
static void put_program(struct ni_json *j, const struct ni_step_changes *c) {
  if (!c->known) {
    ni_json_text(j, "program", NULL);
    return;
  }
  NI_JSON_OBJECT (j, "program") {
    ni_json_u64(j, "ranks", c->ranks);
    ni_json_u64(j, "changed", c->n + c->left_out);
    put_changes(j, c);
  }
}

void ni_diff_json(const struct ni_diff *d, double gate, const struct ni_diff_row *over, FILE *f) {
  struct ni_json j;
  ni_json_open(&j, f, "nccl-inspector-diff-1");
  ni_json_text(&j, "verdict", d->verdict);
  ni_json_u64(&j, "changed", d->changed);
  put_run(&j, "a", &d->run[0]);
  put_run(&j, "b", &d->run[1]);
  NI_JSON_ARRAY (&j, "notes")
    for (size_t i = 0; i < d->n_notes; i++)
      ni_json_text(&j, NULL, d->note[i]);
  put_program(&j, &d->changes);
  if (gate >= 0)
    ni_json_f64(&j, "gate", gate);
  if (over)
    put_row(&j, "gate_row", over);
  NI_JSON_ARRAY (&j, "rows")
    for (size_t i = 0; i < d->n; i++)
      put_row(&j, NULL, &d->row[i]);
  ni_json_close(&j);
}

int ni_diff_page(const struct ni_diff *d, const char *path) {
  char *json = NULL;
  size_t n = 0;
  if (!ni_report_available())
    return -ENOTSUP;
  FILE *memory = open_memstream(&json, &n);
  if (!memory)
    return -ENOMEM;
  ni_diff_json(d, -1, NULL, memory);
  int rc = ferror(memory) ? -ENOMEM : 0;
  if (fclose(memory) != 0)
    rc = -ENOMEM;
  if (!rc)
    rc = ni_report_put(NI_PAGE_DIFF, json, n, path);
  free(json);
  return rc;
}
