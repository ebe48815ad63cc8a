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
    fprintf(f, "set terminal pdfcairo noenhanced color size %.2fin,%.2fin font '%s' linewidth 1\n", width / 100.0,
            height / 100.0, font);
  else if (fig->format == NI_PLOT_SVG)
    fprintf(f, "set terminal svg noenhanced size %d,%d fixed font 'DejaVu Sans,12' background '#ffffff'\n", width,
            height);
  else
    fprintf(f, "set terminal pngcairo noenhanced size %d,%d font '%s' background '#ffffff'\n", width, height, font);
  fprintf(f,
          "set output '%s'\nset encoding utf8\nset samples 2\nset border 3 lc rgb '#566173'\n"
          "set tics nomirror textcolor rgb '#1b2330'\n"
          "set grid lc rgb '#d5dae2' lt 1 lw 0.7\nset datafile missing 'NaN'\n",
          fig->path);
}

static void quoted(FILE *f, const char *text, const char *twice) {
  char safe[201];
  putc('\'', f);
  for (const char *p = ni_safe_text(text, safe, sizeof safe); *p; p++) {
    if (strchr(twice, *p)) putc(*p, f);
    putc(*p, f);
  }
  putc('\'', f);
}

void ni_fig_quoted(FILE *f, const char *text) { quoted(f, text, "'"); }
void ni_fig_label(FILE *f, const char *text) { quoted(f, text, "'%"); }

void ni_fig_sort(uint32_t *number, uint32_t n) {
  for (uint32_t i = 1; i < n; i++) {
    uint32_t v = number[i], k = i;
    for (; k > 0 && number[k - 1] > v; k--) number[k] = number[k - 1];
    number[k] = v;
  }
}

void ni_fig_number(double v, char *out, size_t size) {
  double a = fabs(v);
  snprintf(out, size, a >= 1e6 || (a > 0 && a < 1e-3) ? "%.3g" : a >= 100 ? "%.0f" : a >= 10 ? "%.1f" : "%.3g", v);
}

/* The largest 1, 2 or 5 times a power of ten that is not above v (up: the smallest not below). */
static double nice(double v, bool up) {
  static const double step[] = {1, 2, 5, 10};
  double e = pow(10, floor(log10(v) + 1e-9));
  if (up) {
    for (int i = 0; i < 4; i++)
      if (step[i] * e >= v * 0.9999) return step[i] * e;
  } else {
    for (int i = 3; i >= 0; i--)
      if (step[i] * e <= v * 1.0001) return step[i] * e;
  }
  return v;
}

/* Puts a tic at 1, 2, 5, 10, ... up to two decades and a half, for decades beyond. */
static void log_tics(FILE *f, char axis, double lo, double hi, void (*text)(double, char *, size_t)) {
  bool fine = hi / lo <= 300;
  const char *comma = "";
  fprintf(f, "set logscale %c\nset %crange [%.6g:%.6g]\nset %ctics (", axis, axis, lo, hi, axis);
  for (double e = pow(10, floor(log10(lo) + 1e-9)); e <= hi * 1.0001; e *= 10)
    for (int m = 1; m < 10; m++) {
      double v = m * e;
      if (v < lo * 0.9999 || v > hi * 1.0001) continue;
      char label[40];
      text(v, label, sizeof label);
      if (m == 1 || (fine && (m == 2 || m == 5))) {
        fprintf(f, "%s", comma);
        ni_fig_label(f, label);
        fprintf(f, " %.6g", v);
      } else fprintf(f, "%s'' %.6g 1", comma, v);
      comma = ", ";
    }
  fprintf(f, ")\n");
}

/* Linear axis from zero, with about five steps. */
static void linear_tics(FILE *f, char axis, double hi, void (*text)(double, char *, size_t)) {
  if (!(hi > 0)) hi = 1;
  double step = nice(hi / 5, true), top = ceil(hi * 1.02 / step) * step;
  fprintf(f, "unset logscale %c\nset %crange [0:%.6g]\nset %ctics (", axis, axis, top, axis);
  for (int i = 0; i * step <= top * 1.0001; i++) {
    char label[40];
    text(i * step, label, sizeof label);
    fprintf(f, "%s", i ? ", " : "");
    ni_fig_label(f, label);
    fprintf(f, " %.6g", i * step);
  }
  fprintf(f, ")\n");
}

static void number_text(double v, char *out, size_t size) {
  if (v == 0) snprintf(out, size, "0");
  else snprintf(out, size, fabs(v) >= 1e7 || fabs(v) < 1e-5 ? "%.3g" : "%.10g", v);
}

static void time_text(double us, char *out, size_t size) {
  if (us == 0) snprintf(out, size, "0");
  else if (us < 1000) snprintf(out, size, "%.4g µs", us);
  else if (us < 1e6) snprintf(out, size, "%.4g ms", us / 1e3);
  else if (us < 120e6) snprintf(out, size, "%.4g s", us / 1e6);
  else if (us < 7200e6) snprintf(out, size, "%.4g min", us / 60e6);
  else snprintf(out, size, "%.4g h", us / 3600e6);
}

static bool any_axis(FILE *f, char axis, double lo, double hi, void (*text)(double, char *, size_t)) {
  bool log_scale = lo > 0 && hi / lo > 10;
  if (log_scale) log_tics(f, axis, nice(lo, false), nice(hi, true), text);
  else linear_tics(f, axis, hi, text);
  return log_scale;
}

bool ni_fig_axis(FILE *f, char axis, double lo, double hi) { return any_axis(f, axis, lo, hi, number_text); }
void ni_fig_time_axis(FILE *f, char axis, double lo_us, double hi_us) { any_axis(f, axis, lo_us, hi_us, time_text); }

void ni_fig_bytes_axis(FILE *f, char axis, uint64_t lo, uint64_t hi) {
  const char *comma = "";
  double from = (double)(lo ? lo : 1) / 1.5, to = (double)(hi ? hi : 1) * 1.5;
  fprintf(f, "set logscale %c\nset %crange [%.6g:%.6g]\nset %ctics (", axis, axis, from, to, axis);
  bool fine = hi > lo && to / from <= 300; /* a decade alone would leave most of such an axis without a figure */
  for (uint64_t v = 1; hi > lo && (double)v <= to; v *= 10) {
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    static const uint64_t step[] = {1, 2, 5};
    unsigned e = (unsigned)(log10((double)v) + 0.5);
    for (int i = 0; i < (fine ? 3 : 1); i++)
      if ((double)v * (double)step[i] >= from && (double)v * (double)step[i] <= to) {
        fprintf(f, "%s'%.0f %s' %" PRIu64, comma, (double)(v * step[i]) / pow(1000, e / 3), unit[e / 3], v * step[i]);
        comma = ", ";
      }
    if (v > UINT64_MAX / 50) break;
  }
  /* One size, or few between two figures: the smallest is the tic. */
  if (!*comma) {
    char human[32];
    ni_size_text(lo, human);
    fprintf(f, "'%s' %" PRIu64, human, lo ? lo : 1);
  }
  fprintf(f, ")\n");
}

void ni_fig_span_axis(FILE *f, double span, double n, const char *label) {
  static const double unit[] = {1, 1e3, 1e6, 60e6, 3600e6};
  double step = nice(span / 8, true);
  /* Steps of minutes and hours look better in 1, 2, 5, 10, 20, 30 of the unit than of a second. */
  for (int u = 4; u >= 3; u--)
    if (span > 2 * unit[u]) {
      step = nice(span / 6 / unit[u], true) * unit[u];
      break;
    }
  fprintf(f, "set xrange [0:%.6g]\nset xtics (", n);
  for (int i = 0; span > 0 && i * step <= span * 1.0001; i++) {
    char tic[40];
    time_text(i * step, tic, sizeof tic);
    fprintf(f, "%s'%s%s' %.6g", i ? ", " : "", i ? "+" : "", tic, i * step / span * n);
  }
  fprintf(f, span > 0 ? ")\n" : "'0' 0)\n");
  fprintf(f, "set xlabel '%s'\n", label);
}

void ni_fig_run_axis(FILE *f, const struct ni_summary *s) {
  ni_fig_span_axis(f, (double)(s->last_us - s->first_us), s->n_bins ? s->n_bins : 1,
                   s->time_from == NI_TIME_START ? "time since the first operation" : "time of the dump since the first one");
}
