/* As JSON, and as a page that shows the same JSON. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/text/json_fields.h"
#include "exporter/output/report/page_file.h"
#include "json.h"

static void put_run(struct ni_json *j, const char *key, const struct ni_diff_run *r) {
  ni_json_object(j, key);
  ni_json_text(j, "path", r->path);
  ni_json_text(j, "from", r->from);
  ni_json_bool(j, "complete", !*r->trouble);
  ni_json_i64(j, "world_size", r->world);
  ni_json_u64(j, "ranks", r->ranks);
  ni_json_u64(j, "steps", r->steps);
  ni_json_u64(j, "bin_steps", r->bin_steps);
  ni_json_array(j, "step_us");
  for (uint32_t k = 0; r->bins && k < r->bins; k++) ni_json_rounded(j, NULL, r->item[NI_DIFF_TYPICAL].x[k], 6);
  ni_json_end_array(j);
  ni_json_end_object(j);
}

static void put_row(struct ni_json *j, const char *key, const struct ni_diff_row *r) {
  ni_json_object(j, key);
  ni_json_text(j, "kind", ni_diff_kind_names[r->item[0]->kind]);
  ni_json_text(j, "name", r->item[1]->name);
  if (r->item[0]->kind == NI_DIFF_RANK) ni_json_u64(j, "rank", r->item[0]->key);
  ni_json_rounded(j, "a_us", r->item[0]->value, 7);
  ni_json_rounded(j, "b_us", r->item[1]->value, 7);
  ni_json_rounded(j, "change", r->change, 5);
  ni_json_rounded(j, "low", r->low, 5);
  ni_json_rounded(j, "high", r->high, 5);
  ni_json_rounded(j, "p", r->p, 3);
  ni_json_rounded(j, "in_step_us", r->step_us, 5);
  ni_json_text(j, "verdict", ni_diff_verdict_names[r->verdict]);
  ni_json_end_object(j);
}

void ni_diff_json(const struct ni_diff *d, double gate, const struct ni_diff_row *over, FILE *f) {
  struct ni_json j;
  ni_json_open(&j, f, "nccl-inspector-diff-1");
  ni_json_text(&j, "verdict", d->verdict);
  ni_json_u64(&j, "changed", d->changed);
  put_run(&j, "a", &d->run[0]);
  put_run(&j, "b", &d->run[1]);
  ni_json_array(&j, "notes");
  for (size_t i = 0; i < d->n_notes; i++) ni_json_text(&j, NULL, d->note[i]);
  ni_json_end_array(&j);
  if (gate >= 0) ni_json_f64(&j, "gate", gate);
  if (over) put_row(&j, "gate_row", over);
  ni_json_array(&j, "rows");
  for (size_t i = 0; i < d->n; i++) put_row(&j, NULL, &d->row[i]);
  ni_json_end_array(&j);
  ni_json_close(&j);
}

int ni_diff_page(const struct ni_diff *d, const char *path) {
  char *json = NULL;
  size_t n = 0;
  if (!ni_report_available()) return -ENOTSUP;
  FILE *memory = open_memstream(&json, &n);
  if (!memory) return -ENOMEM;
  ni_diff_json(d, -1, NULL, memory);
  int rc = ferror(memory) ? -ENOMEM : 0;
  if (fclose(memory) != 0) rc = -ENOMEM;
  if (!rc) rc = ni_report_put(NI_PAGE_DIFF, json, n, path);
  free(json);
  return rc;
}
