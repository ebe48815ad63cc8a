#include "exporter/base/array.h"
#include "exporter/base/text/plural.h"
#include "plot_list.h"
#include "figure_cells.h"
#include "figure_run.h"
#include "figure_scatter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/*
 * So many histograms and box plots are drawn at most, beyond that those of the cells with the most time. The reference
 * draws one of each per size whatever their number; a point-to-point job has thousands of sizes.
 */
enum { CELLS_MAX = 300 };

static const char *const ending[NI_PLOT_FORMAT_COUNT] = {"png", "svg", "pdf"};

/* The four that the reference knows. */
static bool in_reference(const struct ni_cell *c) {
  static const char *const known[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast"};
  for (size_t i = 0; c->kind == NI_KIND_COLL && i < sizeof known / sizeof *known; i++)
    if (strcmp(c->func, known[i]) == 0) return true;
  return false;
}

typedef void figure_writer(FILE *f, const struct ni_figure *fig);

/* One more figure; its path without the ending by a printf format. 0 or -ENOMEM. */
static int add(struct ni_plots *p, figure_writer *write, uint32_t first, uint32_t n, const char *path, ...)
    __attribute__((format(printf, 5, 6)));
static int add(struct ni_plots *p, figure_writer *write, uint32_t first, uint32_t n, const char *path, ...) {
  if (!ni_array_room(p->figure, p->n, p->room)) return -ENOMEM;
  struct ni_figure *fig = &p->figure[p->n++];
  *fig = (struct ni_figure){.write = write, .s = p->s, .format = p->format, .first = first, .n = n};
  va_list ap;
  va_start(ap, path);
  size_t len = (size_t)vsnprintf(fig->path, sizeof fig->path - 5, path, ap);
  va_end(ap);
  snprintf(fig->path + len, sizeof fig->path - len, ".%s", ending[p->format]);
  return 0;
}

static bool same_kind(const struct ni_cell *a, const struct ni_cell *b) {
  return a->type == b->type && a->kind == b->kind && strcmp(a->func, b->func) == 0;
}

/* One picture per type and function, over its cells, which are neighbours. */
static int list_scatter(struct ni_plots *p) {
  const struct ni_cell *c = p->s->cell;
  for (uint32_t i = 0, n; i < p->s->n_cells; i += n) {
    for (n = 1; i + n < p->s->n_cells && same_kind(&c[i], &c[i + n]);) n++;
    if (p->o->compat && !in_reference(&c[i])) continue;
    char word[160];
    ni_file_word(c[i].func, word, sizeof word);
    const char *type = ni_comm_type_names[c[i].type];
    if (add(p, ni_fig_scatter, i, n, "scatter_plot_%s_%s", type, word) < 0 ||
        add(p, ni_fig_combined, i, n, "combined_scatter_plot_%s_%s", type, word) < 0)
      return -ENOMEM;
  }
  return 0;
}

struct share {
  uint32_t cell;
  double share;
};
static int larger_first(const void *a, const void *b) {
  const struct share *x = a, *y = b;
  return x->share > y->share ? -1 : x->share < y->share ? 1 : x->cell < y->cell ? -1 : x->cell > y->cell;
}
static int cell_order(const void *a, const void *b) {
  const struct share *x = a, *y = b;
  return (x->cell > y->cell) - (x->cell < y->cell);
}

static int list_cells(struct ni_plots *p) {
  const struct ni_summary *s = p->s;
  struct share *list = calloc(s->n_cells + 1, sizeof *list);
  size_t n = 0;
  if (!list) return -ENOMEM;
  for (uint32_t c = 0; c < s->n_cells; c++) list[c].cell = c;
  for (size_t g = 0; g < s->n_groups; g++) list[s->group[g].cell].share += s->group[g].time_share;
  for (uint32_t c = 0; c < s->n_cells; c++)
    if (s->cell[c].hist.n > 0 && !(p->o->compat && !in_reference(&s->cell[c]))) list[n++] = list[c];
  if (n > CELLS_MAX && !p->o->compat) {
    char line[160];
    qsort(list, n, sizeof *list, larger_first);
    snprintf(line, sizeof line,
             "plots: histograms and box plots of the %d sizes with the most time; %zu more %s in the tables only",
             (int)CELLS_MAX, n - CELLS_MAX, ni_plural(n - CELLS_MAX, "is", "are"));
    if (!p->o->quiet) ni_render_say(p->o, line);
    n = CELLS_MAX;
    qsort(list, n, sizeof *list, cell_order);
  }
  int rc = 0;
  for (size_t i = 0; i < n && !rc; i++) {
    const struct ni_cell *c = &s->cell[list[i].cell];
    char word[160], dir[80];
    ni_file_word(c->func, word, sizeof word);
    ni_size_dir(c->msg_bytes, dir);
    const char *type = ni_comm_type_names[c->type];
    unsigned long long bytes = c->msg_bytes;
    rc = add(p, ni_fig_histogram, list[i].cell, 1, "%s/histograms/histogram_%s_%s_%llu", dir, type, word, bytes);
    if (!rc) rc = add(p, ni_fig_boxplot, list[i].cell, 1, "%s/boxplots/boxplot_%s_%s_%llu", dir, type, word, bytes);
  }
  free(list);
  return rc;
}

/* Is group i the first of its kind, function and timing (and type, if that counts)? */
static bool first_alike(const struct ni_summary *s, size_t i, bool type_counts) {
  const struct ni_group *g = &s->group[i];
  for (size_t k = 0; k < i; k++) {
    const struct ni_group *x = &s->group[k];
    if (x->kind == g->kind && x->timing == g->timing && (!type_counts || x->type == g->type) &&
        strcmp(x->func, g->func) == 0)
      return false;
  }
  return true;
}

/* A timing source is part of a name only where a function has more than one: most runs have one. */
static void timing_part(const struct ni_summary *s, const struct ni_group *g, char *out, size_t size) {
  *out = 0;
  for (size_t k = 0; k < s->n_groups; k++)
    if (s->group[k].timing != g->timing && s->group[k].kind == g->kind && strcmp(s->group[k].func, g->func) == 0) {
      snprintf(out, size, "_%s", g->timing ? ni_timing_names[g->timing] : "unstated");
      return;
    }
}

static int list_own(struct ni_plots *p) {
  const struct ni_summary *s = p->s;
  char word[160], timing[40];
  int rc = 0;
  for (uint32_t i = 0; !rc && i < s->n_groups; i++) {
    const struct ni_group *g = &s->group[i];
    ni_file_word(g->func, word, sizeof word);
    timing_part(s, g, timing, sizeof timing);
    if (first_alike(s, i, false)) rc = add(p, ni_fig_by_size, i, 1, "bandwidth_by_size_%s%s", word, timing);
    if (!rc && first_alike(s, i, true))
      rc = add(p, ni_fig_percentiles, i, 1, "time_percentiles_%s_%s%s", ni_comm_type_names[g->type], word, timing);
  }
  return rc || s->heat.rows == 0 ? rc : add(p, ni_fig_heat, 0, 1, "heat_map");
}

int ni_plots_list(struct ni_plots *p) {
  int rc = list_scatter(p);
  if (!rc) rc = list_cells(p);
  if (!rc && !p->o->compat) rc = list_own(p);
  return rc;
}
