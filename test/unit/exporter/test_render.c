/*
 * Plots and page of a made-up summary: names, sizes, bounds, hostile texts, failures of gnuplot.
 *
 * test_render --page DIR NODES SIZES leaves report.html in DIR, for the browser test; --write the figures too, for
 * looking.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/output/plot/plot.h"
#include "exporter/output/report/report.h"
#include "synthetic_summary.h"

struct said {
  int lines;
  char last[800];
};
static void hear(void *context, const char *line) {
  struct said *s = context;
  s->lines++;
  snprintf(s->last, sizeof s->last, "%s", line);
}

static char *read_all(const char *path, size_t *n) {
  FILE *f = fopen(path, "re");
  assert_non_null(f);
  assert_int_equal(fseek(f, 0, SEEK_END), 0);
  *n = (size_t)ftell(f);
  rewind(f);
  char *text = zeroed(*n + 1, 1);
  assert_int_equal(fread(text, 1, *n, f), *n);
  fclose(f);
  return text;
}

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st, (void)type, (void)ftw;
  return remove(path);
}
static char dir[64];
static int setup(void **state) {
  (void)state;
  snprintf(dir, sizeof dir, "/tmp/test_render.XXXXXX");
  return mkdtemp(dir) ? 0 : -1;
}
static int teardown(void **state) {
  (void)state;
  synthetic_free();
  return nftw(dir, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}
static const char *in_dir(const char *name) {
  static char path[2][600];
  static int at;
  at = !at;
  snprintf(path[at], sizeof path[at], "%s/%s", dir, name);
  return path[at];
}

static bool have_gnuplot(void) {
  return access("/usr/bin/gnuplot", X_OK) == 0 || access("/usr/local/bin/gnuplot", X_OK) == 0;
}
static void need_gnuplot(void) {
  if (have_gnuplot()) return;
  print_message("no gnuplot here\n");
  skip();
}
static void need_page(void) {
  if (ni_report_available()) return;
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

/* Every figure takes gnuplot some 60 ms; the first cells have every kind of figure too. */
static struct ni_summary *few(struct ni_summary *s, size_t cells) {
  s->n_cells = s->n_groups = cells;
  return s;
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
  /* What is cut is counted: 10,000 processes of which 3,072 are kept. */
  assert_non_null(strstr(data, "\"left_out\":6928"));
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
  if (access("/dev/full", W_OK) != 0) skip();
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
  for (uint32_t b = 0; b < s->heat.bins; b++) assert_int_equal(source[b], b);
  s->time_from = NI_TIME_DUMP;
  for (uint32_t i = 0; i < s->heat.rows * s->heat.bins; i++) s->heat.count[i] = 0;
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

static void png_size(const char *name, unsigned width, unsigned height) {
  size_t n;
  unsigned char *b = (unsigned char *)read_all(in_dir(name), &n);
  assert_true(n > 3000); /* an empty canvas of this size has less */
  assert_memory_equal(b, "\x89PNG\r\n\x1a\n", 8);
  assert_int_equal(b[16] << 24 | b[17] << 16 | b[18] << 8 | b[19], width);
  assert_int_equal(b[20] << 24 | b[21] << 16 | b[22] << 8 | b[23], height);
}

static void plot_names(void **state) {
  (void)state;
  need_gnuplot();
  struct said said = {0};
  struct ni_render_options o = {.jobs = 2, .say = hear, .say_context = &said};
  struct ni_summary *s = synthetic_summary(2, 4);
  assert_int_equal(ni_plots_render(s, &o, dir), 0);
  assert_int_equal(said.lines, 0);
  png_size("scatter_plot_nvlink-only_AllReduce.png", 1000, 600);
  png_size("scatter_plot_mixed_Send.png", 1000, 600);
  png_size("combined_scatter_plot_mixed_AllReduce.png", 1500, 1040);
  png_size("msg_size_1024_1.02KB/histograms/histogram_mixed_AllReduce_1024.png", 1000, 600);
  png_size("msg_size_1073741824_1.07GB/boxplots/boxplot_nvlink-only_AllReduce_1073741824.png", 1000, 600);
  png_size("bandwidth_by_size_AllReduce.png", 1000, 600);
  png_size("time_percentiles_mixed_AllReduce.png", 1000, 650);
  png_size("heat_map.png", 1100, 482);
  assert_int_equal(access(in_dir("gnuplot"), F_OK), -1);
}

static void plot_compat(void **state) {
  (void)state;
  need_gnuplot();
  struct ni_render_options o = {.compat = true};
  assert_int_equal(ni_plots_render(synthetic_summary(2, 2), &o, dir), 0);
  assert_int_equal(access(in_dir("scatter_plot_mixed_AllReduce.png"), F_OK), 0);
  assert_int_equal(access(in_dir("scatter_plot_mixed_Send.png"), F_OK), -1);
  assert_int_equal(access(in_dir("heat_map.png"), F_OK), -1);
}

/* Every format twice, byte for byte; PDFs would carry the second they were made in. */
static void plot_same(void **state) {
  (void)state;
  need_gnuplot();
  static const char *const format[] = {"png", "svg", "pdf"};
  for (int i = 0; i < 3; i++) {
    struct ni_render_options o = {.plot_format = (unsigned)i};
    char name[80];
    size_t n, m;
    snprintf(name, sizeof name, "heat_map.%s", format[i]);
    assert_int_equal(ni_plots_render(few(synthetic_summary(2, 1), 1), &o, dir), 0);
    char *a = read_all(in_dir(name), &n);
    if (i == 2) sleep(1);
    assert_int_equal(ni_plots_render(few(synthetic_summary(2, 1), 1), &o, dir), 0);
    char *b = read_all(in_dir(name), &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
  }
}

/* Whichever gnuplot of however many draws a figure: all the same bytes, all figures. */
static void plot_jobs(void **state) {
  (void)state;
  need_gnuplot();
  static const char *const name[] = {"scatter_plot_mixed_AllReduce.png", "combined_scatter_plot_mixed_AllReduce.png",
                                     "heat_map.png", "time_percentiles_mixed_AllReduce.png",
                                     "bandwidth_by_size_AllReduce.png",
                                     "msg_size_1024_1.02KB/boxplots/boxplot_mixed_AllReduce_1024.png",
                                     "msg_size_1024_1.02KB/histograms/histogram_mixed_AllReduce_1024.png"};
  enum { N = sizeof name / sizeof *name };
  char *first[N];
  size_t length[N];
  for (unsigned jobs = 1; jobs <= 7; jobs += 3) {
    struct ni_render_options o = {.jobs = jobs};
    assert_int_equal(ni_plots_render(few(synthetic_summary(2, 4), 6), &o, dir), 0);
    for (int i = 0; i < N; i++) {
      size_t n;
      char *bytes = read_all(in_dir(name[i]), &n);
      if (jobs == 1) first[i] = bytes, length[i] = n;
      assert_int_equal(n, length[i]);
      assert_memory_equal(bytes, first[i], n);
      assert_int_equal(unlink(in_dir(name[i])), 0);
    }
  }
}

/* A name that is a gnuplot or shell command must do nothing but stand there. */
static void plot_hostile(void **state) {
  (void)state;
  need_gnuplot();
  struct said said = {0};
  struct ni_render_options o = {.keep_scripts = true, .say = hear, .say_context = &said};
  struct ni_summary *s = few(synthetic_summary(2, 2), 2);
  char evil[300];
  snprintf(evil, sizeof evil, "x'\nsystem 'touch %s/owned'\n!touch %s/owned\n`touch %s/owned` %%s%%n \xff", dir, dir, dir);
  s->host[0].name = evil;
  for (size_t i = 0; i < s->n_comms; i++) s->comm[i].name = evil;
  for (size_t i = 0; i < s->n_cells; i++) s->cell[i].func = evil;
  for (size_t i = 0; i < s->n_groups; i++) s->group[i].func = evil;
  int rc = ni_plots_render(s, &o, dir);
  if (said.lines) print_message("%s\n", said.last);
  assert_int_equal(rc, 0);
  assert_int_equal(access(in_dir("owned"), F_OK), -1);
  assert_int_equal(access(in_dir("gnuplot/heat_map.png.gp"), F_OK), 0);
}

/* Nothing, one value, zeros, NaN: no figure may upset gnuplot. */
static void plot_degenerate(void **state) {
  (void)state;
  need_gnuplot();
  struct said said = {0};
  struct ni_render_options o = {.say = hear, .say_context = &said};
  struct ni_summary empty = {.complete = true};
  assert_int_equal(ni_plots_render(&empty, &o, dir), 0);
  struct ni_summary *s = few(synthetic_summary(1, 2), 3);
  s->n_by_comm = 0;
  struct ni_cell *c = &s->cell[0];
  c->n_points = 1;
  c->hist = (struct ni_hist){.n = 1, .lo = 5, .hi = 5, .count = {1}};
  c->box = (struct ni_whisker){.min = 5, .whisker_lo = 5, .q1 = 5, .median = 5, .q3 = 5, .whisker_hi = 5, .max = 5, .n = 1};
  c = &s->cell[1]; /* no record of it has a bandwidth */
  c->n_points = 0;
  c->hist.n = 0;
  c->busbw_gbs = s->group[1].busbw_gbs = stats_of(NULL, 0);
  c = &s->cell[2];
  c->hist = (struct ni_hist){.n = 10, .lo = 0, .hi = 0, .count = {7}};
  c->box = (struct ni_whisker){.n = 7};
  for (uint32_t i = 0; i < c->n_points; i++) c->point[i].busbw_gbs = 0;
  for (uint32_t i = 0; i < s->n_bins; i++) s->group[2].bin[i] = (struct ni_time_bin){.n = 0, .us_p50 = NAN};
  for (uint32_t i = 0; i < s->heat.rows * s->heat.bins; i++) s->heat.count[i] = 0;
  s->first_us = s->last_us;
  int rc = ni_plots_render(s, &o, dir);
  if (said.lines) print_message("%s\n", said.last);
  assert_int_equal(rc, 0);
}

/* Bins without the operation between bins with it: the line goes on. */
static void rare_operations(void **state) {
  (void)state;
  need_gnuplot();
  struct ni_render_options o = {.keep_scripts = true};
  struct ni_summary *s = few(synthetic_summary(1, 1), 2);
  size_t full, sparse;
  assert_int_equal(ni_plots_render(s, &o, dir), 0);
  read_all(in_dir("time_percentiles_mixed_AllReduce.png"), &full);
  for (uint32_t b = 0; b < s->n_bins; b++)
    if (b % 3) s->group[1].bin[b].n = 0; /* an operation in every third bin only */
  assert_int_equal(ni_plots_render(s, &o, dir), 0);
  read_all(in_dir("time_percentiles_mixed_AllReduce.png"), &sparse);
  /* Broken at every empty bin, the picture would hold no line and be half as large. */
  print_message("all bins: %zu bytes, every third: %zu\n", full, sparse);
  assert_true(sparse > full * 6 / 10);
  /* And no blank line breaks the data. */
  size_t n;
  char *script = read_all(in_dir("gnuplot/time_percentiles_mixed_AllReduce.png.gp"), &n);
  char *data = strstr(script, "$p << EOD\n"), *end = data ? strstr(data, "\nEOD") : NULL;
  assert_non_null(end);
  *end = 0;
  assert_null(strstr(data, "\n\n"));
}

static void write_script(const char *name, const char *text) {
  FILE *f = fopen(in_dir(name), "we");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
  assert_int_equal(chmod(in_dir(name), 0755), 0);
}

/* One line each, never a signal, never a hang. */
static void plot_failing(void **state) {
  (void)state;
  struct said said = {0};
  struct ni_summary *s = synthetic_summary(1, 2);
  struct ni_render_options o = {.gnuplot = "no-such-gnuplot", .say = hear, .say_context = &said};
  assert_int_equal(ni_plots_render(s, &o, dir), -ENOENT);
  assert_int_equal(said.lines, 1);
  assert_non_null(strstr(said.last, "no program 'no-such-gnuplot'"));

  said.lines = 0;
  o.gnuplot = "/bin/false"; /* ends at once: the socket breaks */
  assert_int_equal(ni_plots_render(s, &o, dir), -EIO);
  assert_int_equal(said.lines, 1);
  assert_non_null(strstr(said.last, "0 of "));

  said.lines = 0;
  write_script("lib", "#!/bin/sh\necho 'gnuplot: error while loading shared libraries: libgd.so.3' >&2\nexit 127\n");
  o.gnuplot = in_dir("lib");
  assert_int_equal(ni_plots_render(s, &o, dir), -EIO);
  assert_int_equal(said.lines, 1);
  assert_non_null(strstr(said.last, "libgd.so.3"));

  said.lines = 0;
  write_script("killed", "#!/bin/sh\nread line\nkill -9 $$\n");
  o.gnuplot = in_dir("killed");
  assert_int_equal(ni_plots_render(s, &o, dir), -EIO);
  assert_int_equal(said.lines, 1);
  assert_non_null(strstr(said.last, "signal 9"));

}

/* A figure that gnuplot cannot draw costs that figure: here its file cannot be made. */
static void plot_one_fault(void **state) {
  (void)state;
  need_gnuplot();
  struct said said = {0};
  struct ni_render_options o = {.say = hear, .say_context = &said};
  assert_int_equal(mkdir(in_dir("scatter_plot_mixed_Send.png"), 0755), 0);
  assert_int_equal(ni_plots_render(synthetic_summary(1, 2), &o, dir), -EIO);
  assert_int_equal(said.lines, 1);
  assert_non_null(strstr(said.last, "could not draw 1 of "));
  assert_non_null(strstr(said.last, "scatter_plot_mixed_Send.png"));
  png_size("combined_scatter_plot_mixed_Send.png", 500, 540);
  png_size("heat_map.png", 1100, 306);
}

/* The second panel fails after the first was drawn: half a picture must not be left for a whole one. */
static void plot_half(void **state) {
  (void)state;
  need_gnuplot();
  struct said said = {0};
  write_script("wrapped",
               "#!/bin/sh\nwhile read -r word script; do\n"
               "[ $word = load ] && sed -i 's/^set title .Message Size: 1.07GB.*/broken command/' \"$(echo $script | tr -d \\')\"\n"
               "printf '%s %s\\n' \"$word\" \"$script\"\ndone | gnuplot \"$@\"\n");
  struct ni_render_options o = {.jobs = 2, .gnuplot = in_dir("wrapped"), .say = hear, .say_context = &said};
  assert_int_equal(ni_plots_render(synthetic_summary(2, 2), &o, dir), -EIO);
  assert_int_equal(said.lines, 1);
  assert_non_null(strstr(said.last, "could not draw 2 of "));
  assert_int_equal(access(in_dir("combined_scatter_plot_mixed_AllReduce.png"), F_OK), -1);
  assert_int_equal(access(in_dir("scatter_plot_mixed_AllReduce.png"), F_OK), 0);
  png_size("combined_scatter_plot_mixed_Send.png", 500, 540);
}

static int write_for_looking(char **argv) {
  unsigned nodes = (unsigned)atoi(argv[3]);
  static struct ni_summary nothing; /* 0 nodes: logs without a record */
  struct ni_summary *s = nodes ? synthetic_summary(nodes, (unsigned)atoi(argv[4])) : &nothing;
  struct ni_render_options o = {.input = "logs", .version = "test"};
  char path[4200];
  snprintf(path, sizeof path, "%s/report.html", argv[2]);
  mkdir(argv[2], 0777);
  if (ni_report_render(s, &o, path) != 0) return 1;
  return strcmp(argv[1], "--write") == 0 && ni_plots_render(s, &o, argv[2]) != 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(page_bounded, setup, teardown),
      cmocka_unit_test_setup_teardown(page_hostile, setup, teardown),
      cmocka_unit_test_setup_teardown(page_empty, setup, teardown),
      cmocka_unit_test_setup_teardown(page_full_disk, setup, teardown),
      cmocka_unit_test_setup_teardown(heat_of_dumps, setup, teardown),
      cmocka_unit_test_setup_teardown(page_same, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_names, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_compat, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_jobs, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_same, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_hostile, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_degenerate, setup, teardown),
      cmocka_unit_test_setup_teardown(rare_operations, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_failing, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_half, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_one_fault, setup, teardown),
  };
  if (argc == 5 && (strcmp(argv[1], "--write") == 0 || strcmp(argv[1], "--page") == 0)) return write_for_looking(argv);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
