/* On the terminal: the verdict, what changed, and what did not in a line. */
#include <math.h>

#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "print.h"

enum { MOST = 20 };

static void time_cell(struct ni_table *t, double us) {
  if (us >= 1e4) ni_table_cell(t, "%.4g ms", us / 1e3);
  else ni_table_cell(t, "%.4g us", us);
}

static void rows(const struct ni_diff *d, bool all, FILE *f) {
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
  for (size_t i = 0; i < d->n; i++) {
    const struct ni_diff_row *r = &d->row[i];
    const struct ni_diff_item *a = r->item[0], *b = r->item[1];
    bool step = a->kind == NI_DIFF_STEP && a->key <= NI_DIFF_COMPUTE;
    if (!all && ((r->verdict < NI_DIFF_SLOWER && !step) || (!step && ++kinds[a->kind] > MOST / 4) || shown == MOST))
      continue;
    shown++;
    ni_table_cell(&t, "%s", ni_diff_kind_names[a->kind]);
    ni_table_cell(&t, "%s", b->name);
    time_cell(&t, a->value);
    time_cell(&t, b->value);
    ni_table_cell(&t, "%+.1f %%", 100 * r->change);
    ni_table_cell(&t, "%+.1f..%+.1f", 100 * r->low, 100 * r->high);
    if (isnan(r->step_us)) ni_table_cell(&t, "-");
    else ni_table_cell(&t, "%+.3g ms", r->step_us / 1e3);
    ni_table_cell(&t, "%s", ni_diff_verdict_names[r->verdict]);
  }
  if (shown) ni_say(f, "\n");
  ni_table_print(&t, f);
}

void ni_diff_print(const struct ni_diff *d, bool all, double gate, const struct ni_diff_row *over, FILE *f) {
  size_t unclear = 0;
  ni_say(f, "%s\n", d->verdict);
  for (int k = 0; k < 2; k++) {
    const struct ni_diff_run *r = &d->run[k];
    ni_say(f, "%s: %s (%s, %u %s, %u steps)\n", k ? "B" : "A", r->path, r->from, r->ranks,
           ni_plural(r->ranks, "rank", "ranks"), r->steps);
  }
  for (size_t i = 0; i < d->n_notes; i++) ni_say(f, "note: %s\n", d->note[i]);
  rows(d, all, f);
  for (size_t i = 0; i < d->n; i++) unclear += d->row[i].verdict == NI_DIFF_UNCLEAR;
  ni_say(f, "\n%zu of %zu rows changed; %zu did not", d->changed, d->n, d->n - d->changed - unclear);
  if (unclear) ni_say(f, "; of %zu the noise is too large to tell", unclear);
  if (d->only[0] + d->only[1]) ni_say(f, "; only in A %zu, only in B %zu", d->only[0], d->only[1]);
  ni_say(f, all ? "\n" : ". --all shows all\n");
  if (over)
    ni_say(f, "gate: %s is %.1f %% slower (%.1f to %.1f %%), more than %.3g %%\n", over->item[1]->name,
           100 * over->change, 100 * over->low, 100 * over->high, 100 * gate);
  else if (gate >= 0) ni_say(f, "gate: passed, nothing is slower by more than %.3g %% for certain\n", 100 * gate);
}
