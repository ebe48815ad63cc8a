/*
 * The page of a made-up summary: bounds, hostile texts, a full disk.
 *
 * test_render --page DIR NODES SIZES [STEPS] leaves report.html in DIR, for the browser test; --write the
 * figures too, for looking.
 */
#include "exporter/output/report/page_tables.h"
#include "render_dir.h"

static void need_page(void) {
  if (ni_report_available())
    return;
  print_message("built without npm\n");
  skip();
}

/* The JSON of a page, NUL-terminated. */
static char *data_of(char *page) {
  char *from = strstr(page, "<script type=\"application/json\" id=\"data\">");
  assert_non_null(from);
  from = strchr(from, '>') + 1;
  char *to = strstr(from, "</script>");
  assert_non_null(to);
  *to = 0;
  return from;
}

static void page_bounded(void **state) {
  (void)state;
  need_page();
  struct ni_summary *s = synthetic_summary(256, 60);
  struct ni_render_options o = {.input = "logs"};
  size_t n;
  assert_int_equal(ni_report_render(s, &o, in_dir("big.html")), 0);
  read_all(in_dir("big.html"), &n);
  print_message("2,048 ranks, %zu groups: %zu bytes\n", s->n_groups, n);
  assert_true(n <= 3000000);
  /* And far beyond what it was made for. */
  s = synthetic_summary(1250, 190);
  assert_int_equal(ni_report_render(s, &o, in_dir("big.html")), 0);
  char *page = read_all(in_dir("big.html"), &n);
  print_message("10,000 ranks, %zu groups: %zu bytes\n", s->n_groups, n);
  assert_true(n <= 3000000);
  char *data = data_of(page);
  assert_true(strlen(data) <= NI_REPORT_DATA_MAX_BYTES);
  assert_null(strstr(data, "\"steps\""));
  /* What is cut is counted: 10,000 processes of which 3,072 are kept. */
  assert_non_null(strstr(data, "\"left_out\":6928"));
}

/*
 * As many steps as a summary keeps are merged, each into one of its neighbours, and the page stays within its
 * bounds.
 */
static void page_steps(void **state) {
  (void)state;
  need_page();
  struct ni_summary *s = synthetic_summary(1250, 190);
  struct ni_render_options o = {.input = "logs"};
  size_t n, bins = 0;
  synthetic_steps(s, 4096);
  assert_int_equal(ni_report_render(s, &o, in_dir("s.html")), 0);
  char *data = data_of(read_all(in_dir("s.html"), &n));
  assert_true(strlen(data) <= NI_REPORT_DATA_MAX_BYTES);
  char *from = strstr(data, "\"bin_steps\":4,\"n_steps\":4096,");
  assert_non_null(from);
  for (char *at = strstr(from, "\"bins\":["), *end = strstr(from, "]]"); at < end; at++)
    bins += *at == '[';
  assert_int_equal(bins, 1024 + 1);
}

static void page_hostile(void **state) {
  (void)state;
  need_page();
  struct ni_summary *s = synthetic_summary(2, 3);
  struct ni_render_options o = {.input = "</script><script>alert(2)</script>"};
  size_t n;
  char long_name[2000];
  memset(long_name, 'x', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = 0;
  memcpy(long_name + 250, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 8); /* the cut must not halve one */
  s->host[0].name = long_name;
  s->comm[1].name = "bad \xff\xfe bytes \x01 and \xe2\x80\xa8 end";
  assert_int_equal(ni_report_render(s, &o, in_dir("h.html")), 0);
  char *data = data_of(read_all(in_dir("h.html"), &n));
  assert_null(strchr(data, '<'));
  assert_non_null(strstr(data, "\\u003c/script>\\u003cimg src=x onerror=alert(1)>"));
  assert_non_null(strstr(data, "\"bad \\ufffd\\ufffd bytes \\u0001 and \\u2028 end\""));
  assert_null(strstr(data, long_name));
  char *cut = strstr(data, "xxxx");
  assert_non_null(cut);
  assert_true(strchr(cut, '"') - cut <= 256);
  assert_null(strstr(data, "\\ufffdxxx"));
}

static void page_empty(void **state) {
  (void)state;
  need_page();
  struct ni_summary s = {.complete = false};
  struct ni_render_options o = {.input = NULL};
  size_t n;
  assert_int_equal(ni_report_render(&s, &o, in_dir("e.html")), 0);
  assert_non_null(strstr(data_of(read_all(in_dir("e.html"), &n)), "\"records\":0"));
  assert_int_equal(ni_report_render(&s, &o, "/nowhere/at/all.html"), -ENOENT);
}

static void page_full_disk(void **state) {
  (void)state;
  need_page();
  if (access("/dev/full", W_OK) != 0)
    skip();
  struct ni_summary s = {.complete = true};
  struct ni_render_options o = {.input = NULL};
  assert_int_equal(symlink("/dev/full", in_dir("full.html")), 0);
  assert_int_equal(ni_report_render(&s, &o, in_dir("full.html")), -ENOSPC);
  assert_int_equal(access(in_dir("full.html"), F_OK), -1); /* no half page is left */
}

/* Logs with times of dumps only: a bin takes the next dump's column, also in the page. */
static void heat_of_dumps(void **state) {
  (void)state;
  struct ni_summary *s = synthetic_summary(1, 1);
  uint32_t source[NI_SUM_TIME_BINS];
  ni_heat_sources(s, source);
  for (uint32_t b = 0; b < s->heat.bins; b++)
    assert_int_equal(source[b], b);
  s->time_from = NI_TIME_DUMP;
  for (uint32_t i = 0; i < s->heat.rows * s->heat.bins; i++)
    s->heat.count[i] = 0;
  s->heat.count[3 * s->heat.bins + 50] = s->heat.count[120] = 1;
  ni_heat_sources(s, source);
  for (uint32_t b = 0; b < s->heat.bins; b++)
    assert_int_equal(source[b], b <= 50 ? 50 : b <= 120 ? 120 : s->heat.bins);
}

/* The same bytes at every call, also with another clock. */
static void page_same(void **state) {
  (void)state;
  need_page();
  struct ni_render_options o = {.input = "logs"};
  size_t n, m;
  assert_int_equal(ni_report_render(synthetic_summary(2, 5), &o, in_dir("a.html")), 0);
  assert_int_equal(ni_report_render(synthetic_summary(2, 5), &o, in_dir("b.html")), 0);
  char *a = read_all(in_dir("a.html"), &n), *b = read_all(in_dir("b.html"), &m);
  assert_int_equal(n, m);
  assert_memory_equal(a, b, n);
}

static int write_for_looking(char **argv) {
  unsigned nodes = (unsigned)atoi(argv[3]);
  static struct ni_summary nothing; /* 0 nodes: logs without a record */
  struct ni_summary *s = nodes ? synthetic_summary(nodes, (unsigned)atoi(argv[4])) : &nothing;
  if (argv[5])
    synthetic_steps(s, (unsigned)atoi(argv[5]));
  struct ni_render_options o = {.input = "logs", .version = "test"};
  char path[4200];
  snprintf(path, sizeof path, "%s/report.html", argv[2]);
  mkdir(argv[2], 0777);
  if (ni_report_render(s, &o, path) != 0)
    return 1;
  return strcmp(argv[1], "--write") == 0 && ni_plots_render(s, &o, argv[2]) != 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(page_bounded, setup, teardown),
      cmocka_unit_test_setup_teardown(page_steps, setup, teardown),
      cmocka_unit_test_setup_teardown(page_hostile, setup, teardown),
      cmocka_unit_test_setup_teardown(page_empty, setup, teardown),
      cmocka_unit_test_setup_teardown(page_full_disk, setup, teardown),
      cmocka_unit_test_setup_teardown(heat_of_dumps, setup, teardown),
      cmocka_unit_test_setup_teardown(page_same, setup, teardown),
  };
  if ((argc == 5 || argc == 6) && (strcmp(argv[1], "--write") == 0 || strcmp(argv[1], "--page") == 0))
    return write_for_looking(argv);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
