/*
 * counters.html as it is written: one file, its data between head and tail, no text of which can end their
 * element.
 *   test_counters_page --page FILE    a page of 24 NICs, GPUs and a host with hostile names, for the
 *                                     browser's test
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/output/counters/page.h"
#include "exporter/output/report/page_file.h"

enum { NICS = 24, SAMPLES = 60, MOST = 1000 };
#define HOSTILE "</script><img src=x onerror=alert(1)>"
#define NS INT64_C(1000000000)

static void counter(struct ni_counters_view *v, const char *name, uint64_t was, uint64_t is) {
  for (int i = 0; i < 2; i++) {
    struct ni_sweep *s = &v->sweep[i];
    if (!ni_set_counter(&s->set, name))
      abort();
    s->reading[s->set.n_counters - 1] = (struct ni_reading){
        .value = i ? is : was, .real_ns = (1 + 10 * i) * NS, .mono_ns = (1 + 10 * i) * NS};
  }
}

static void entity(struct ni_counters_view *v, enum ni_metric_source source, const char *name, double link) {
  for (int i = 0; i < 2; i++) {
    struct ni_entity *e = ni_set_entity(&v->sweep[i].set, source, name);
    e->link_bytes_s = link;
    if (link > 0)
      e->link = "up, 200 Gb/s";
  }
}

static void fill(struct ni_counters_view *v) {
  char name[16];
  *v = (struct ni_counters_view){0};
  for (int i = 0; i < 2; i++) {
    v->sweep[i].reading = calloc(MOST, sizeof *v->sweep[i].reading);
    v->sweep[i].path = i ? "after.json" : HOSTILE;
    v->sweep[i].started = i ? "2026-01-01T00:00:11+00:00" : "2026-01-01T00:00:00+00:00";
    v->sweep[i].finished = i ? "2026-01-01T00:00:12+00:00" : "2026-01-01T00:00:01+00:00";
    v->sweep[i].duration_s = 1;
  }
  for (int i = 0; i < NICS; i++) {
    snprintf(name, sizeof name, "cxi%d", i);
    entity(v, NI_METRIC_CXI, name, 25e9);
    counter(v, "hni_sts_tx_ok_octets", 1000, 1000 + 100000000000u + (uint64_t)i * 1000000000u);
    counter(v, "hni_tx_paused_1", 5, i == 3 ? 3000000005 : 1000000 + (uint64_t)i);
    counter(v, "hni_rx_paused_std", 7, 7);
    counter(v, "hni_pcs_good_cw", 9, 9 + 390625000);
    counter(v, "pct_spt_timeouts", 4, i == 5 ? 11 : 4);
  }
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "gpu%d", i);
    entity(v, NI_METRIC_GPU, name, 0);
    counter(v, "throttled_thermal_hardware", 1, i == 2 ? 2000000001 : 1);
    counter(v, "nvlink_tx_bytes", 1, 5000000001 + (uint64_t)i);
  }
  entity(v, NI_METRIC_HOST, HOSTILE, 0);
  counter(v, "=cmd|' /C calc'!A0", 1, 3);
  counter(v, HOSTILE, 1, 40000);
  counter(v, "pressure_memory_full", 0, 500000);
  ni_set_unread(&v->sweep[1].set, "/sys/" HOSTILE, "Input/output error");
  if (!ni_counters_view_make(v))
    abort();
}

static int write_page(const char *path) {
  static double seconds[SAMPLES], rate[NICS][SAMPLES];
  static struct ni_counters_line line[NICS];
  static char name[NICS][16];
  struct ni_counters_view v;
  fill(&v);
  for (int i = 0; i < NICS; i++) {
    snprintf(name[i], sizeof name[i], "cxi%d", i);
    line[i] = (struct ni_counters_line){name[i], i % 2 ? HOSTILE : "hni_sts_tx_ok_octets",
                                        i % 2 ? "" : "bytes", rate[i]};
    for (int t = 0; t < SAMPLES; t++) {
      seconds[t] = t;
      rate[i][t] = t == 20 ? NAN : 1e9 * (i + 1) * (1 + sin(t / 9.0));
    }
  }
  struct ni_counters_series s = {seconds, line, SAMPLES, NICS};
  int rc = ni_counters_page(&v, &s, path);
  ni_counters_view_free(&v);
  return rc;
}

static void one_file(void **state) {
  (void)state;
  char path[] = "/tmp/ni-counters-page-XXXXXX";
  if (!ni_report_available()) {
    assert_int_equal(write_page(path), -ENOTSUP);
    skip();
  }
  assert_int_equal(write_page("/nowhere/counters.html"), -ENOENT);
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(write_page(path), 0);
  FILE *f = fopen(path, "re");
  assert_non_null(f);
  char *text = NULL;
  size_t cap = 0;
  ssize_t n = getdelim(&text, &cap, 0, f);
  fclose(f);
  unlink(path);
  assert_true(n > 100000);
  /* Two scripts end in it, and neither "<" nor a name of a host stands in the data as it is. */
  size_t ends = 0;
  for (const char *at = text; (at = strstr(at, "</script>")); at++)
    ends++;
  assert_int_equal(ends, 2);
  char *data = strstr(text, "id=\"data\">") + 10;
  assert_true(strstr(data, "</script>") > strstr(data, "\"series\""));
  assert_non_null(strstr(data, "\"figures\":[{\"name\":\"cxi"));
  assert_null(strstr(text, "<img"));
  assert_non_null(strstr(data, "\\u003c/script>\\u003cimg src=x onerror=alert(1)>"));
  assert_non_null(strstr(text, "<body id=\"counters\">"));
  free(text);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--page") == 0)
    return write_page(argv[2]) < 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_file)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
