/* Plots of a made-up summary: names, sizes, hostile texts, failures of gnuplot. */
#include "exporter/output/plot/figure.h"
#include "render_dir.h"

static bool have_gnuplot(void) {
  return access("/usr/bin/gnuplot", X_OK) == 0 || access("/usr/local/bin/gnuplot", X_OK) == 0;
}
static void need_gnuplot(void) {
  if (have_gnuplot())
    return;
  print_message("no gnuplot here\n");
  skip();
}

/* Every figure takes gnuplot some 60 ms; the first cells have every kind of figure too. */
static struct ni_summary *few(struct ni_summary *s, size_t cells) {
  s->n_cells = s->n_groups = cells;
  return s;
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
  assert_int_equal(access(in_dir("gnuplot"), F_OK), -1);
}

static void plot_compat(void **state) {
  (void)state;
  need_gnuplot();
  struct ni_render_options o = {.compat = true};
  assert_int_equal(ni_plots_render(synthetic_summary(2, 2), &o, dir), 0);
  assert_int_equal(access(in_dir("scatter_plot_mixed_AllReduce.png"), F_OK), 0);
  assert_int_equal(access(in_dir("scatter_plot_mixed_Send.png"), F_OK), -1);
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
    snprintf(name, sizeof name, "scatter_plot_nvlink-only_AllReduce.%s", format[i]);
    assert_int_equal(ni_plots_render(few(synthetic_summary(2, 1), 1), &o, dir), 0);
    char *a = read_all(in_dir(name), &n);
    if (i == 2)
      sleep(1);
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
  static const char *const name[] = {"scatter_plot_mixed_AllReduce.png",
                                     "combined_scatter_plot_mixed_AllReduce.png",
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
      if (jobs == 1) {
        first[i] = bytes;
        length[i] = n;
      }
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
  snprintf(evil, sizeof evil, "x'\nsystem 'touch %s/owned'\n!touch %s/owned\n`touch %s/owned` %%s%%n \xff",
           dir, dir, dir);
  s->host[0].name = evil;
  for (size_t i = 0; i < s->n_comms; i++)
    s->comm[i].name = evil;
  for (size_t i = 0; i < s->n_cells; i++)
    s->cell[i].func = evil;
  for (size_t i = 0; i < s->n_groups; i++)
    s->group[i].func = evil;
  int rc = ni_plots_render(s, &o, dir);
  if (said.lines)
    print_message("%s\n", said.last);
  assert_int_equal(rc, 0);
  assert_int_equal(access(in_dir("owned"), F_OK), -1);
  assert_int_equal(access(in_dir("gnuplot"), F_OK), 0);
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
  c->box = (struct ni_whisker){
      .min = 5, .whisker_lo = 5, .q1 = 5, .median = 5, .q3 = 5, .whisker_hi = 5, .max = 5, .n = 1};
  c = &s->cell[1]; /* no record of it has a bandwidth */
  c->n_points = 0;
  c->hist.n = 0;
  c->busbw_gbs = s->group[1].busbw_gbs = stats_of(NULL, 0);
  c = &s->cell[2];
  c->hist = (struct ni_hist){.n = 10, .lo = 0, .hi = 0, .count = {7}};
  c->box = (struct ni_whisker){.n = 7};
  for (uint32_t i = 0; i < c->n_points; i++)
    c->point[i].busbw_gbs = 0;
  s->first_us = s->last_us;
  int rc = ni_plots_render(s, &o, dir);
  if (said.lines)
    print_message("%s\n", said.last);
  assert_int_equal(rc, 0);
}

/*
 * All tics of an axis are in one unit, which the data choose; none has an exponent, minutes have round
 * numbers.
 */
static void one_unit_an_axis(void **state) {
  (void)state;
  static const struct {
    enum ni_fig_of of;
    double lo, hi;
    const char *unit, *tics;
  } of[] = {{NI_FIG_GBS, 0, 5e-5, "kB/s", "('0' 0, '10' 1e-05, '20' 2e-05,"},
            {NI_FIG_GBS, 150, 250, "GB/s",
             "('0' 0, '50' 50, '100' 100, '150' 150, '200' 200, '250' 250, '300' 300)"},
            {NI_FIG_GBS, 1e-5, 10, "MB/s", "('0.01' 1e-05, '' 2e-05 1,"},
            {NI_FIG_US, 0, 1.6e6, "s", "('0' 0, '0.5 s' 500000, '1 s' 1e+06, '1.5 s' 1.5e+06, '2 s' 2e+06)"},
            {NI_FIG_US, 0, 500e6, "min", "('0' 0, '2 min' 1.2e+08, '4 min' 2.4e+08,"},
            {NI_FIG_US, 10, 9e8, "ms", "('0.01 ms' 10, '' 20 1,"},
            {NI_FIG_NUMBERS, 0, 45000, "", "('0' 0, '10,000' 10000, '20,000' 20000,"}};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    const struct ni_fig_scale scale = ni_fig_axis(f, 'y', of[i].of, of[i].lo, of[i].hi);
    fclose(f);
    assert_string_equal(scale.unit, of[i].unit);
    assert_int_equal(scale.log, of[i].lo > 0 && of[i].hi / of[i].lo > 10);
    if (!strstr(text, of[i].tics))
      fail_msg("no %s in %s", of[i].tics, text);
    for (const char *tic = strchr(text, '('); (tic = strchr(tic, '\'')); tic = strchr(tic + 1, '\'') + 1)
      if (memchr(tic + 1, 'e', strcspn(tic + 1, "'")))
        fail_msg("an exponent: %s", tic);
    free(text);
  }
  char rate[40];
  assert_string_equal(ni_fig_rate(5e-5, rate), "50.0 kB/s");
  assert_string_equal(ni_fig_rate(0, rate), "0 B/s");
  assert_string_equal(ni_fig_rate(1234, rate), "1.23 TB/s");
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
  write_script("lib",
               "#!/bin/sh\necho 'gnuplot: error while loading shared libraries: libgd.so.3' >&2\nexit 127\n");
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
  png_size("scatter_plot_mixed_AllReduce.png", 1000, 600);
}

/* The second panel fails after the first was drawn: half a picture must not be left for a whole one. */
static void plot_half(void **state) {
  (void)state;
  need_gnuplot();
  struct said said = {0};
  write_script("wrapped",
               "#!/bin/sh\nwhile read -r word script; do\n"
               "[ $word = load ] && sed -i 's/^set title .Message Size: 1.07GB.*/broken command/' "
               "\"${0%/*}/$(echo $script | tr -d \\')\"\n"
               "printf '%s %s\\n' \"$word\" \"$script\"\ndone | gnuplot \"$@\"\n");
  struct ni_render_options o = {.jobs = 2, .gnuplot = in_dir("wrapped"), .say = hear, .say_context = &said};
  assert_int_equal(ni_plots_render(synthetic_summary(2, 2), &o, dir), -EIO);
  assert_int_equal(said.lines, 1);
  assert_non_null(strstr(said.last, "could not draw 2 of "));
  assert_int_equal(access(in_dir("combined_scatter_plot_mixed_AllReduce.png"), F_OK), -1);
  assert_int_equal(access(in_dir("scatter_plot_mixed_AllReduce.png"), F_OK), 0);
  png_size("combined_scatter_plot_mixed_Send.png", 500, 540);
}

/* gnuplot says nothing of a picture for which the disk had no room: that one must not be left, either. */
static void plot_cut(void **state) {
  (void)state;
  need_gnuplot();
  static const char *const ending[NI_PLOT_FORMAT_COUNT] = {"png", "svg", "pdf"};
  for (int format = 0; format < NI_PLOT_FORMAT_COUNT; format++) {
    struct said said = {0};
    char name[64];
    write_script("cutting",
                 "#!/bin/sh\nwhile read -r word script; do\n"
                 "[ $word = load ] && sed -i \"s/^unset output$/unset output; "
                 "system('truncate -c -s -9 scatter_plot_mixed_Send.*')/\" "
                 "\"${0%/*}/$(echo $script | tr -d \\')\"\n"
                 "printf '%s %s\\n' \"$word\" \"$script\"\ndone | gnuplot \"$@\"\n");
    struct ni_render_options o = {
        .plot_format = format, .jobs = 1, .gnuplot = in_dir("cutting"), .say = hear, .say_context = &said};
    assert_int_equal(ni_plots_render(synthetic_summary(1, 2), &o, dir), -ENOSPC);
    assert_int_equal(said.lines, 1);
    assert_non_null(strstr(said.last, "it ends in the middle"));
    snprintf(name, sizeof name, "scatter_plot_mixed_Send.%s", ending[format]);
    assert_int_equal(access(in_dir(name), F_OK), -1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(plot_names, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_compat, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_jobs, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_same, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_hostile, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_degenerate, setup, teardown),
      cmocka_unit_test(one_unit_an_axis),
      cmocka_unit_test_setup_teardown(plot_failing, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_half, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_one_fault, setup, teardown),
      cmocka_unit_test_setup_teardown(plot_cut, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
