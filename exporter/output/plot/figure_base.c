#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/safe_text.h"
#include "figure.h"

const char *const ni_fig_color[NI_FIG_COLORS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#b58900", "#56b4e9", "#5d5d5d"};

void ni_fig_begin(FILE *f, const struct ni_figure *fig, int width, int height) {
  static const char font[] = "DejaVu Sans,10";
  fprintf(f, "unset multiplot\nreset session\n");
  if (fig->format == NI_PLOT_PDF)
    fprintf(f, "set terminal pdfcairo noenhanced color size %.2fin,%.2fin font '%s' linewidth 1\n",
            width / 100.0, height / 100.0, font);
  else if (fig->format == NI_PLOT_SVG)
    fprintf(f, "set terminal svg noenhanced size %d,%d fixed font 'DejaVu Sans,12' background '#ffffff'\n",
            width, height);
  else
    fprintf(f, "set terminal pngcairo noenhanced size %d,%d font '%s' background '#ffffff'\n", width, height,
            font);
  fprintf(f,
          "set output '%s'\nset encoding utf8\nset samples 2\nset border 3 lc rgb '#566173'\n"
          "set tics nomirror textcolor rgb '#1b2330'\n"
          "set grid lc rgb '#d5dae2' lt 1 lw 0.7\nset datafile missing 'NaN'\n",
          fig->path);
}

static void write_quoted(FILE *f, const char *text, const char *twice) {
  char safe[201];
  putc('\'', f);
  for (const char *p = ni_safe_text(text, safe, sizeof safe); *p; p++) {
    if (strchr(twice, *p))
      putc(*p, f);
    putc(*p, f);
  }
  putc('\'', f);
}

void ni_fig_quoted(FILE *f, const char *text) { write_quoted(f, text, "'"); }
void ni_fig_label(FILE *f, const char *text) { write_quoted(f, text, "'%"); }

void ni_fig_sort(uint32_t *number, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) {
    uint32_t v = number[i], k = i;
    for (; k > 0 && number[k - 1] > v; k--)
      number[k] = number[k - 1];
    number[k] = v;
  }
}

const char *ni_fig_rate(double gbs, char out[40]) {
  double v = gbs * 1e9;
  const char *unit = ni_decimal_unit(&v, 999.5);
  snprintf(out, 40, "%.*f %s/s", v == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v, unit);
  return out;
}

/* The largest 1, 2 or 5 times a power of ten that is not above v (up: the smallest not below). */
static double round_to_nice(double v, bool up) {
  static const double step[] = {1, 2, 5, 10};
  double e = pow(10, floor(log10(v) + 1e-9));
  if (up) {
    for (int i = 0; i < 4; i++)
      if (step[i] * e >= v * 0.9999)
        return step[i] * e;
  } else {
    for (int i = 3; i >= 0; i--)
      if (step[i] * e <= v * 1.0001)
        return step[i] * e;
  }
  return v;
}

struct axis_unit {
  const char *name;
  double size; /* in what the data are in */
};

/* The units of an axis, the smallest first; *n: how many. Decades of minutes would have no round numbers. */
static const struct axis_unit *list_units(enum ni_fig_of of, bool log_scale, size_t *n) {
  static const struct axis_unit numbers[] = {{"", 1}};
  static const struct axis_unit rates[] = {{"B/s", 1e-9}, {"kB/s", 1e-6}, {"MB/s", 1e-3},
                                           {"GB/s", 1},   {"TB/s", 1e3},  {"PB/s", 1e6}};
  static const struct axis_unit times[] = {{"µs", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}};
  if (of == NI_FIG_GBS) {
    *n = sizeof rates / sizeof *rates;
    return rates;
  }
  if (of == NI_FIG_US) {
    *n = log_scale ? 3 : sizeof times / sizeof *times;
    return times;
  }
  *n = 1;
  return numbers;
}

/* Chooses the unit for tics from least to most. Minutes and hours begin at two of them. */
static struct axis_unit choose_unit(enum ni_fig_of of, bool log_scale, double least, double most) {
  size_t n, at;
  const struct axis_unit *unit = list_units(of, log_scale, &n);
  for (at = n - 1; at > 0 && most < unit[at].size * (of == NI_FIG_US && at > 2 ? 2 : 1) * 0.9999;)
    at--;
  while (at > 0 && least > 0 && least < unit[at].size * 0.00099)
    at--;
  return unit[at];
}

/* A tic at v: "0", "0.05", "20", "1,000"; of times "50 ms". */
static void write_tic(FILE *f, enum ni_fig_of of, struct axis_unit unit, double v) {
  const double shown = v / unit.size, rounded = round(shown);
  const char *space = of == NI_FIG_US && v != 0 ? " " : "",
             *name = of == NI_FIG_US && v != 0 ? unit.name : "";
  char label[80];
  if (fabs(shown) >= 1000 && fabs(shown) < 1e15 && fabs(shown - rounded) < 1e-6 * fabs(shown))
    snprintf(label, sizeof label, "%s%s%s", NI_COUNT(rounded), space, name);
  else if (fabs(shown) >= 1e-9 && fabs(shown) < 1e-3) /* tics have one digit, or two as 0.00025 */
    snprintf(label, sizeof label, "%.*f%s%s", (int)ceil(1 - log10(fabs(shown))), shown, space, name);
  else
    snprintf(label, sizeof label, "%.6g%s%s", shown, space, name);
  ni_fig_label(f, label);
  fprintf(f, " %.6g", v);
}

/* Puts a tic at 1, 2, 5, 10, ... up to two decades and a half, for decades beyond. */
static void write_log_tics(FILE *f, char axis, enum ni_fig_of of, struct axis_unit unit, double lo,
                           double hi) {
  bool has_room = hi / lo <= 300;
  const char *comma = "";
  fprintf(f, "set logscale %c\nset %crange [%.6g:%.6g]\nset %ctics (", axis, axis, lo, hi, axis);
  for (double e = pow(10, floor(log10(lo) + 1e-9)); e <= hi * 1.0001; e *= 10)
    for (int m = 1; m < 10; m++) {
      double v = m * e;
      if (v < lo * 0.9999 || v > hi * 1.0001)
        continue;
      fputs(comma, f);
      if (m == 1 || (has_room && (m == 2 || m == 5)))
        write_tic(f, of, unit, v);
      else
        fprintf(f, "'' %.6g 1", v);
      comma = ", ";
    }
  fprintf(f, ")\n");
}

struct ni_fig_scale ni_fig_axis(FILE *f, char axis, enum ni_fig_of of, double lo, double hi) {
  const bool log_scale = lo > 0 && hi / lo > 10;
  if (log_scale) {
    lo = round_to_nice(lo, false);
    hi = round_to_nice(hi, true);
    const struct axis_unit unit = choose_unit(of, true, lo, hi);
    write_log_tics(f, axis, of, unit, lo, hi);
    return (struct ni_fig_scale){true, unit.name};
  }
  if (!(hi > 0))
    hi = 1;
  const struct axis_unit unit = choose_unit(of, false, 0, hi * 1.02);
  const double step = round_to_nice(hi / unit.size / 5, true) * unit.size,
               top = ceil(hi * 1.02 / step) * step;
  fprintf(f, "unset logscale %c\nset %crange [0:%.6g]\nset %ctics (", axis, axis, top, axis);
  for (int i = 0; i * step <= top * 1.0001; i++) {
    if (i)
      fprintf(f, ", ");
    write_tic(f, of, unit, i * step);
  }
  fprintf(f, ")\n");
  return (struct ni_fig_scale){false, unit.name};
}

const char *ni_fig_axis_between(FILE *f, char axis, enum ni_fig_of of, double from, double to) {
  const struct axis_unit unit = choose_unit(of, false, 0, fmax(fabs(from), fabs(to)));
  const double step = round_to_nice((to - from) / unit.size / 5, true) * unit.size;
  const char *comma = "";
  fprintf(f, "unset logscale %c\nset %crange [%.9g:%.9g]\nset %ctics (", axis, axis, from, to, axis);
  for (double k = ceil(from / step); k * step <= to * (1 + 1e-9); k++) {
    fputs(comma, f);
    write_tic(f, of, unit, k * step);
    comma = ", ";
  }
  fprintf(f, ")\n");
  return unit.name;
}

void ni_fig_axis_name(FILE *f, char axis, const char *what, const char *unit) {
  char text[120];
  snprintf(text, sizeof text, "%s (%s)", what, unit);
  fprintf(f, "set %clabel ", axis);
  ni_fig_quoted(f, text);
  fputc('\n', f);
}
