/* Sessions over time, drawn by gnuplot: a panel a field. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/output/plot/figure.h"
#include "exporter/output/plot/gnuplot_process.h"
#include "stat.h"

enum { PANEL = 210, TITLE = 40, KEY = 265 };

/* What x counts: frames where a file has no times (seconds 0). */
struct unit {
  double seconds;
  const char *name;
};
static struct unit unit_for(double seconds) {
  static const struct unit units[] = {{1, "seconds since the first frame"},
                                      {60, "minutes since the first frame"},
                                      {3600, "hours since the first frame"}};
  return units[seconds <= 180 ? 0 : seconds <= 10800 ? 1 : 2];
}
static double x_of(const struct ni_stat_file *s, size_t slot, struct unit x) {
  double frame = (double)slot * (double)s->step;
  return x.seconds > 0 ? frame * s->seconds / (double)(s->frames - 1) / x.seconds : frame + 1;
}

static size_t slots_of(const struct ni_stat_list *l, size_t k) {
  size_t n = 0;
  for (size_t i = 0; i < l->n; i++)
    if (l->item[i].series[k].slots > n)
      n = l->item[i].series[k].slots;
  return n;
}

/* What numbers of a field are drawn as, and how many of them its unit is. */
static enum ni_fig_of drawn_as(const struct ni_stat_field *field, double *size) {
  const bool seconds = strcmp(field->unit, "s") == 0;
  *size = seconds ? 1e6 : 1;
  return seconds ? NI_FIG_US : strcmp(field->unit, "GB/s") == 0 ? NI_FIG_GBS : NI_FIG_NUMBERS;
}

/*
 * Data "$dN": x, mean, min, max of entities from to to-1; an empty line where there is nothing breaks the
 * line.
 */
static void data(FILE *f, const struct ni_stat_file *s, size_t k, size_t from, size_t to, struct unit x,
                 unsigned number) {
  double size;
  (void)drawn_as(&ni_stat_fields[k], &size);
  const struct ni_stat_list *l = &s->kind[ni_stat_fields[k].kind];
  bool broken = true;
  fprintf(f, "$d%u << EOD\n", number);
  for (size_t i = 0, n = slots_of(l, k); i < n; i++) {
    double sum = 0, min = INFINITY, max = -INFINITY, count = 0;
    for (size_t e = from; e < to; e++) {
      const struct ni_stat_series *one = l->item[e].series + k;
      if (i >= one->slots || !one->slot[i].n)
        continue;
      double v = (double)one->slot[i].mean * size;
      sum += v;
      count++;
      min = fmin(min, v);
      max = fmax(max, v);
    }
    if (count > 0)
      fprintf(f, "%.6g %.6g %.6g %.6g\n", x_of(s, i, x), sum / count, min, max);
    else if (!broken)
      fprintf(f, "\n");
    broken = count == 0;
  }
  fprintf(f, "EOD\n");
}

static void line(FILE *f, unsigned number, const char *name) {
  fprintf(f, "%s$d%u using 1:2 with linespoints pt 7 ps 0.15 lw 1.2 lc rgb '%s' title ", number ? ", " : "",
          number, ni_fig_color[number % NI_FIG_COLORS]);
  ni_fig_quoted(f, name);
}

/*
 * One file: its entities, or where they are more than there are colours their mean and what they lie between.
 * Several: the mean of each.
 */
static void panel(FILE *f, const struct ni_stat_files *all, size_t k, double top, struct unit x) {
  const struct ni_stat_list *l = &all->file->kind[ni_stat_fields[k].kind];
  bool each = all->n == 1 && l->n <= NI_FIG_COLORS;
  size_t n = each ? l->n : all->n;
  char name[64];
  for (size_t i = 0; i < n; i++) {
    const struct ni_stat_file *s = each ? all->file : all->file + i;
    data(f, s, k, each ? i : 0, each ? i + 1 : s->kind[ni_stat_fields[k].kind].n, x, (unsigned)i);
  }
  double size;
  const enum ni_fig_of of = drawn_as(&ni_stat_fields[k], &size);
  const char *unit = ni_fig_axis(f, 'y', of, 0, top * size).unit;
  if (of == NI_FIG_NUMBERS)
    unit = ni_stat_fields[k].unit;
  if (of == NI_FIG_US)
    unit = ""; /* the tics say it */
  snprintf(name, sizeof name, "%s%s%s", ni_stat_fields[k].head, *unit ? ", " : "", unit);
  fprintf(f, "set ylabel ");
  ni_fig_quoted(f, name);
  fprintf(f, "\nplot ");
  if (all->n == 1 && !each) {
    snprintf(name, sizeof name, "mean of %s", NI_COUNT(l->n));
    fprintf(f, "$d0 using 1:3:4 with filledcurves fc rgb '#cfe0ee' title 'from least to most', ");
    fprintf(f, "$d0 using 1:2 with lines lw 1.4 lc rgb '%s' title '%s'", ni_fig_color[0], name);
  } else {
    for (size_t i = 0; i < n; i++) {
      snprintf(name, sizeof name, "%.50s", each ? l->item[i].name : all->file[i].label);
      line(f, (unsigned)i, name);
    }
  }
  fprintf(f, "\n");
}

static bool script(FILE *f, const struct ni_stat_files *all, const struct ni_figure *fig) {
  size_t panels[NI_STAT_FIELDS], n = 0, most = all->n < 24 ? all->n : 24;
  double top[NI_STAT_FIELDS], end = 0;
  bool times = true;
  struct unit x = {0, "frame"};
  struct ni_stat_files shown = {all->file, most, most};
  for (size_t i = 0; i < most; i++)
    times &= all->file[i].seconds > 0;
  for (size_t i = 0; i < most; i++)
    end = fmax(end, times ? all->file[i].seconds : (double)all->file[i].frames);
  for (size_t k = 0; k < NI_STAT_FIELDS; k++) {
    double max = NAN;
    for (size_t i = 0; i < most; i++)
      max = fmax(max, ni_stat_over_all(&all->file[i].kind[ni_stat_fields[k].kind], k).max);
    if (ni_stat_fields[k].plot && !isnan(max)) {
      top[n] = strcmp(ni_stat_fields[k].unit, "%") == 0 && max <= 100 ? 98 : max;
      panels[n++] = k;
    }
  }
  if (!n)
    return false;
  int height = (int)n * PANEL + TITLE;
  char title[200];
  snprintf(title, sizeof title, "%.100s: %s frames%s%s", all->n > 1 ? "sessions" : all->file->name,
           NI_COUNT(all->file->frames), *all->file->first ? " from " : "", all->file->first);
  if (all->n > 1)
    snprintf(title, sizeof title, "means of %zu sessions", most);
  ni_fig_begin(f, fig, NI_FIG_W, height);
  fprintf(f, "set multiplot layout %zu,1 margins screen %.4f,%.4f,%.4f,%.4f spacing screen 0,%.4f title ", n,
          80.0 / NI_FIG_W, 1 - (double)KEY / NI_FIG_W, 50.0 / height, 1 - (TITLE + 10.0) / height,
          45.0 / height);
  ni_fig_quoted(f, title);
  fprintf(f, " font ',13'\nset key at screen %.4f, graph 1 left top Left reverse samplen 1.5 font ',9'\n",
          1 - (KEY - 12.0) / NI_FIG_W);
  if (times)
    x = unit_for(end);
  ni_fig_axis(f, 'x', NI_FIG_NUMBERS, 0, times ? end / x.seconds : end);
  fprintf(f, "set xrange [0:%.6g]\n", times ? end / x.seconds : end);
  for (size_t i = 0; i < n; i++) {
    if (i + 1 == n) {
      fprintf(f, "set xlabel ");
      ni_fig_quoted(f, x.name);
      fprintf(f, "\n");
    }
    panel(f, &shown, panels[i], top[i], x);
  }
  fprintf(f, "unset multiplot\n");
  return true;
}

/* gnuplot writes into a hidden file beside the path, told by a script that is another one. */
static int draw(int dir, const char *text, char *why, size_t cap) {
  char folder[64], message[200] = "";
  struct ni_gnuplot g;
  snprintf(folder, sizeof folder, "/proc/self/fd/%d", dir);
  int e = ni_gnuplot_start(&g, "gnuplot", folder);
  if (e == -ENOENT)
    snprintf(why, cap, "--plot: no program 'gnuplot' was found (Debian: gnuplot-nox)");
  else if (e)
    snprintf(why, cap, "--plot: gnuplot did not start: %s", strerror(-e));
  if (e)
    return e;
  if ((e = ni_gnuplot_load(&g, text)) == 0)
    e = ni_gnuplot_wait(&g, message, sizeof message);
  int signal = ni_gnuplot_end(&g, e == -ETIMEDOUT);
  if (e || signal || *message)
    snprintf(why, cap, "--plot: gnuplot could not draw it%s%s", *message ? ": " : "", message);
  return e ? e : signal || *message ? -EIO : 0;
}

int ni_stat_plot(const struct ni_stat_files *all, const char *path, char *why, size_t cap) {
  struct ni_out_file picture = {.dir = -1}, text = {.dir = -1};
  struct ni_figure fig = {0};
  const char *name, *end = strrchr(path, '.');
  fig.format = strcmp(end, ".pdf") == 0 ? NI_PLOT_PDF : strcmp(end, ".svg") == 0 ? NI_PLOT_SVG : NI_PLOT_PNG;
  int e = ni_out_begin_at(&picture, path, &name, why, cap);
  if (e)
    return e;
  snprintf(fig.path, sizeof fig.path, "%s", picture.tmp);
  FILE *f = (e = ni_out_begin(&text, picture.dir, 0600)) == 0 ? fdopen(text.fd, "w") : NULL;
  if (f)
    text.fd = -1;
  if (!f)
    snprintf(why, cap, "--plot: %s", strerror(e ? -e : errno));
  else if (!script(f, all, &fig)) {
    e = -EINVAL;
    snprintf(why, cap, "--plot: there is nothing to draw");
  }
  if (f && ni_out_end(f) < 0 && !e) {
    e = -EIO;
    snprintf(why, cap, "--plot: %s", strerror(errno));
  }
  if (f && !e)
    e = draw(picture.dir, text.tmp, why, cap);
  ni_out_drop(&text);
  if (!f || e)
    ni_out_drop(&picture);
  else if ((e = ni_out_commit(&picture, name, true)) < 0)
    snprintf(why, cap, "%s: %s", path, strerror(-e));
  close(picture.dir);
  return f ? e : -EIO;
}
