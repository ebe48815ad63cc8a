#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/shortest.h"

struct metrics_writer {
  FILE *f;
  const struct ni_family *family;
  bool open;
};

/* "0.5", "1.0", "2.5e+10": as OpenMetrics has numbers in `le`, which other writers' series must match. */
static void put_number(FILE *f, double v, bool canonical) {
  char text[NI_SHORTEST_BYTES + 1];
  if (!isfinite(v)) {
    fputs(isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf", f);
    return;
  }
  text[ni_shortest(v, text)] = 0;
  const bool has_exponent = canonical && v >= 1e6;
  for (int digits = 0; has_exponent && digits < 17 && (digits == 0 || strtod(text, NULL) != v); digits++)
    snprintf(text, sizeof text, "%.*e", digits, v);
  fputs(text, f);
}

static void put_labels(const struct metrics_writer *w, const char *suffix, const struct ni_label *label,
                       size_t n) {
  fputs_unlocked(w->family->name, w->f);
  fputs_unlocked(suffix, w->f);
  for (size_t i = 0; i < n; i++) {
    putc_unlocked(i ? ',' : '{', w->f);
    fputs_unlocked(label[i].name, w->f);
    fputs_unlocked("=\"", w->f);
    for (const char *p = label[i].value; *p; p++) {
      if (*p == '\\' || *p == '"' || *p == '\n')
        putc_unlocked('\\', w->f);
      putc_unlocked(*p == '\n' ? 'n' : *p, w->f);
    }
    putc_unlocked('"', w->f);
  }
}

static const char *choose_suffix(const struct ni_family *f) {
  return f->type == NI_METRICS_COUNTER ? "_total" : f->type == NI_METRICS_INFO ? "_info" : "";
}

static void write_family(void *to, const struct ni_family *f) {
  static const char *const type[] = {"counter", "gauge", "histogram", "gauge", "info"};
  struct metrics_writer *w = to;
  const char *end = w->open ? "" : choose_suffix(f),
             *is = type[f->type + (w->open && f->type == NI_METRICS_INFO)];
  w->family = f;
  ni_say(w->f, "# HELP %s%s %s\n# TYPE %s%s %s\n", f->name, end, f->help, f->name, end, is);
  if (w->open && *f->unit)
    ni_say(w->f, "# UNIT %s %s\n", f->name, f->unit);
}

static void write_value(void *to, const struct ni_label *label, size_t n, double v) {
  struct metrics_writer *w = to;
  put_labels(w, choose_suffix(w->family), label, n);
  fputs_unlocked("} ", w->f);
  put_number(w->f, v, false);
  putc_unlocked('\n', w->f);
}

static void write_integer(void *to, const struct ni_label *label, size_t n, uint64_t v) {
  struct metrics_writer *w = to;
  put_labels(w, choose_suffix(w->family), label, n);
  fprintf(w->f, "} %" PRIu64 "\n", v);
}

static void write_histogram(void *to, const struct ni_label *label, size_t n,
                            const struct ni_metrics_hist *h) {
  struct metrics_writer *w = to;
  uint64_t below = 0;
  for (size_t i = 0; i <= h->n; i++) {
    put_labels(w, "_bucket", label, n);
    fputs(",le=\"", w->f);
    put_number(w->f, i < h->n ? h->edge[i] : INFINITY, true);
    fprintf(w->f, "\"} %" PRIu64 "\n", below += h->bucket[i]);
  }
  put_labels(w, "_sum", label, n);
  fputs("} ", w->f);
  put_number(w->f, h->sum, false);
  putc('\n', w->f);
  put_labels(w, "_count", label, n);
  fprintf(w->f, "} %" PRIu64 "\n", below);
}

int ni_metrics_text(FILE *f, const struct ni_metrics_in *in, bool open) {
  struct metrics_writer w = {.f = f, .open = open};
  struct ni_metrics_to to = {&w, write_family, write_value, write_integer, write_histogram};
  int e = ni_metrics_each(in, &to);
  if (e == 0 && open)
    fputs("# EOF\n", f);
  return e;
}

/* The q of a media type, 1 without one; -1: it is not there. */
static double parse_quality(const char *accept, const char *type) {
  const char *p = strcasestr(accept, type), *end = p ? p + strcspn(p, ",") : NULL,
             *q = p ? strcasestr(p, "q=") : NULL;
  if (!p || !strchr(" \t;,", p[strlen(type)]))
    return -1;
  return q && q < end ? strtod(q + 2, NULL) : 1;
}

bool ni_metrics_wants_open(const char *accept) {
  static const char ours[] = "application/openmetrics-text";
  const char *name = accept ? strcasestr(accept, ours) : NULL,
             *old = name ? strcasestr(name, "version=0") : NULL;
  /* Prometheus names the version it likes best first */
  if (!name || (old && old < name + strcspn(name, ",")))
    return false;
  double text = parse_quality(accept, "text/plain"), open = parse_quality(accept, ours);
  return open > 0 && open >= (text < 0 ? parse_quality(accept, "*/*") : text);
}
