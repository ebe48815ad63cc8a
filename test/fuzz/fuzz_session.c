/*
 * libFuzzer: any bytes as a session's file for `session stat`: it must not crash or leak, names are safe to
 * print, and figures lie between their extremes.
 *
 *   test/fuzz/run.sh 60 session
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/session/stat/stat.h"

static void need(int truth) {
  if (!truth)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct ni_stat_files all = {0};
  char why[200] = "", safe[2048];
  FILE *f = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL, *nowhere = fopen("/dev/null", "w");
  need(nowhere != NULL);
  if (f && ni_stat_add_stream(&all, f, "folder/x.json", why, sizeof why) < 0)
    need(*why && !all.n);
  for (size_t kind = 0; all.n && kind < NI_STAT_KINDS; kind++) {
    const struct ni_stat_list *l = &all.file->kind[kind];
    need(l->n <= NI_STAT_ENTITIES_MAX &&
         strcmp(ni_safe_text(all.file->name, safe, sizeof safe), all.file->name) == 0);
    for (size_t i = 0; i < l->n; i++)
      need(strcmp(ni_safe_text(l->item[i].name, safe, sizeof safe), l->item[i].name) == 0);
    for (size_t k = 0; k < NI_STAT_FIELDS; k++) {
      struct ni_stat_figures v = ni_stat_over_all(l, k);
      if (isnan(v.mean) || ni_stat_fields[k].kind != kind)
        continue;
      double slack = 1e-6 * fmax(fabs(v.min), fabs(v.max)) + 1e-9; /* sums are doubles, samples floats */
      need(v.min <= v.max && v.mean >= v.min - slack && v.mean <= v.max + slack && v.p50 <= v.p95 &&
           v.p95 <= v.max + slack && v.p50 >= v.min - slack);
    }
  }
  if (all.n)
    ni_stat_print(&all, true, nowhere), ni_stat_json(&all, nowhere);
  if (f)
    fclose(f);
  fclose(nowhere);
  ni_stat_free(&all);
  return 0;
}
