#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/out_file.h"
#include "exporter/base/progress.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/threads.h"
#include "figure.h"
#include "figure_cells.h"
#include "figure_scatter.h"
#include "gnuplot_process.h"
#include "whole.h"

struct ni_plots {
  const struct ni_summary *s;
  const struct ni_render_options *o;
  const char *dir;
  enum ni_plot_format format;
  struct ni_figure *figure;
  size_t n, room;
};

/*
 * So many histograms and box plots are drawn at most, beyond that those of the cells with the most time. The
 * reference draws one of each per size whatever their number; a point-to-point job has thousands of sizes.
 */
enum { CELLS_MAX = 300 };

static const char *const ending[NI_PLOT_FORMAT_COUNT] = {"png", "svg", "pdf"};

/* The four that the reference knows. */
static bool is_in_reference(const struct ni_cell *c) {
  static const char *const known[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast"};
  for (size_t i = 0; c->kind == NI_KIND_COLL && i < sizeof known / sizeof *known; i++)
    if (strcmp(c->func, known[i]) == 0)
      return true;
  return false;
}

typedef void figure_writer(FILE *f, const struct ni_figure *fig);

/* One more figure; its path without the ending by a printf format. 0 or -ENOMEM. */
static int add_figure(struct ni_plots *p, figure_writer *write, uint32_t first, uint32_t n, const char *path,
                      ...) __attribute__((format(printf, 5, 6)));
static int add_figure(struct ni_plots *p, figure_writer *write, uint32_t first, uint32_t n, const char *path,
                      ...) {
  if (!ni_array_room(p->figure, p->n, p->room))
    return -ENOMEM;
  struct ni_figure *fig = &p->figure[p->n++];
  *fig = (struct ni_figure){.write = write, .s = p->s, .format = p->format, .first = first, .n = n};
  va_list ap;
  va_start(ap, path);
  size_t len = (size_t)vsnprintf(fig->path, sizeof fig->path - 5, path, ap);
  va_end(ap);
  snprintf(fig->path + len, sizeof fig->path - len, ".%s", ending[p->format]);
  return 0;
}

static bool is_same_kind(const struct ni_cell *a, const struct ni_cell *b) {
  return a->type == b->type && a->kind == b->kind && strcmp(a->func, b->func) == 0;
}

/* One picture per type and function, over its cells, which are neighbours. */
static int list_scatter_figures(struct ni_plots *p) {
  const struct ni_cell *c = p->s->cell;
  for (uint32_t i = 0, n; i < p->s->n_cells; i += n) {
    for (n = 1; i + n < p->s->n_cells && is_same_kind(&c[i], &c[i + n]);)
      n++;
    if (p->o->compat && !is_in_reference(&c[i]))
      continue;
    char word[160];
    ni_file_word(c[i].func, word, sizeof word);
    const char *type = ni_comm_type_names[c[i].type];
    if (add_figure(p, ni_fig_scatter, i, n, "scatter_plot_%s_%s", type, word) < 0 ||
        add_figure(p, ni_fig_combined, i, n, "combined_scatter_plot_%s_%s", type, word) < 0)
      return -ENOMEM;
  }
  return 0;
}

struct share {
  uint32_t cell;
  double share;
};
static int compare_by_share(const void *a, const void *b) {
  const struct share *x = a, *y = b;
  if (x->share != y->share)
    return x->share > y->share ? -1 : 1;
  return (x->cell > y->cell) - (x->cell < y->cell);
}
static int compare_by_cell(const void *a, const void *b) {
  const struct share *x = a, *y = b;
  return (x->cell > y->cell) - (x->cell < y->cell);
}

static int list_cell_figures(struct ni_plots *p) {
  const struct ni_summary *s = p->s;
  struct share *list = calloc(s->n_cells + 1, sizeof *list);
  size_t n = 0;
  if (!list)
    return -ENOMEM;
  for (uint32_t c = 0; c < s->n_cells; c++)
    list[c].cell = c;
  for (size_t g = 0; g < s->n_groups; g++)
    list[s->group[g].cell].share += s->group[g].time_share;
  for (uint32_t c = 0; c < s->n_cells; c++)
    if (s->cell[c].hist.n > 0 && !(p->o->compat && !is_in_reference(&s->cell[c])))
      list[n++] = list[c];
  if (n > CELLS_MAX && !p->o->compat) {
    char line[160];
    qsort(list, n, sizeof *list, compare_by_share);
    snprintf(
        line, sizeof line,
        "plots: histograms and box plots of the %d sizes with the most time; %zu more %s in the tables only",
        (int)CELLS_MAX, n - CELLS_MAX, ni_plural(n - CELLS_MAX, "is", "are"));
    if (!p->o->quiet)
      ni_render_say(p->o, line);
    n = CELLS_MAX;
    qsort(list, n, sizeof *list, compare_by_cell);
  }
  int rc = 0;
  for (size_t i = 0; i < n && !rc; i++) {
    const struct ni_cell *c = &s->cell[list[i].cell];
    char word[160], dir[80];
    ni_file_word(c->func, word, sizeof word);
    ni_size_dir(c->msg_bytes, dir);
    const char *type = ni_comm_type_names[c->type];
    unsigned long long bytes = c->msg_bytes;
    rc = add_figure(p, ni_fig_histogram, list[i].cell, 1, "%s/histograms/histogram_%s_%s_%llu", dir, type,
                    word, bytes);
    if (!rc)
      rc = add_figure(p, ni_fig_boxplot, list[i].cell, 1, "%s/boxplots/boxplot_%s_%s_%llu", dir, type, word,
                      bytes);
  }
  free(list);
  return rc;
}

/* Which figures a summary gets, and under which names. -ENOMEM: the list as far as it is. */
static int list_figures(struct ni_plots *p) {
  int rc = list_scatter_figures(p);
  return rc ? rc : list_cell_figures(p);
}

/* Makes the folders of a path below dir. */
static int make_folders(const char *dir, const char *path) {
  char full[4400];
  int base = snprintf(full, sizeof full, "%s/", dir);
  if (base < 0 || (size_t)base + strlen(path) >= sizeof full)
    return -ENAMETOOLONG;
  memcpy(full + base, path, strlen(path) + 1);
  for (char *slash = strchr(full + base, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(full, 0777) != 0 && errno != EEXIST)
      return -errno;
    *slash = '/';
  }
  return 0;
}

/* Where the script of a figure lies, from the summary's folder. */
static void name_script(const struct ni_figure *fig, char out[440]) {
  snprintf(out, 440, "gnuplot/%s.gp", fig->path);
  for (char *c = out + strlen("gnuplot/"); *c; c++)
    if (*c == '/')
      *c = '-';
}

static int make_path(const struct ni_plots *p, const char *name, char full[4400]) {
  return (size_t)snprintf(full, 4400, "%s/%s", p->dir, name) < 4400 ? 0 : -ENAMETOOLONG;
}

static int write_script(const struct ni_plots *p, const struct ni_figure *fig, const char *name) {
  char full[4400];
  int rc = make_folders(p->dir, fig->path);
  if (!rc)
    rc = make_folders(p->dir, name);
  if (!rc)
    rc = make_path(p, name, full);
  if (rc)
    return rc;
  FILE *f = fopen(full, "we");
  if (!f)
    return -errno;
  errno = 0;
  fprintf(f, "# From the folder above this one: gnuplot %s\n", name);
  fig->write(f, fig);
  fprintf(f, "unset output\n");
  return ni_out_end(f);
}

/* Without --keep-scripts nothing of them stays. */
static void remove_scripts(const struct ni_plots *p) {
  char name[440], full[4400];
  for (size_t i = 0; i < p->n; i++) {
    name_script(&p->figure[i], name);
    if (!make_path(p, name, full))
      unlink(full);
  }
  if (!make_path(p, "gnuplot", full))
    rmdir(full);
}

/*
 * A gnuplot and the thread that feeds it. They take figures from one list, so a slow figure holds up its own
 * only.
 */
struct painter {
  struct ni_plots *p;
  _Atomic size_t *next; /* in p->figure; relaxed: it hands out numbers, nothing else passes through it */
  struct ni_gnuplot g;
  size_t finished, faults; /* figures it came past, and those of them that gnuplot complained about */
  size_t worst;            /* the first of these in the list; p->n: none */
  size_t cut;              /* of the faults: pictures that end in the middle */
  int rc;                  /* why it did not go on; 0: the list was at its end */
  char message[160];       /* the complaint about `worst` */
  char last[200];          /* last words */
};

/*
 * Waits for figure `at`, which is loaded. What gnuplot leaves of a picture that it cannot draw may be half a
 * picture. Of one for which there was no room it says nothing.
 */
static int finish_figure(struct painter *w, size_t at) {
  char message[200], full[4400];
  int rc = ni_gnuplot_wait(&w->g, message, sizeof message);
  const bool has_path = make_path(w->p, w->p->figure[at].path, full) == 0;
  ni_progress_add(w->p->o->progress, 1, 1);
  if (rc == 0 && !*message && has_path && !ni_picture_is_whole(full, w->p->format)) {
    snprintf(message, sizeof message, "it ends in the middle, as on a full disk");
    w->cut++;
  }
  if (rc == 0 && !*message) {
    w->finished++;
    return 0;
  }
  if (has_path)
    unlink(full);
  if (rc) {
    memcpy(w->last, message, sizeof message);
    return rc;
  }
  w->finished++;
  if (w->faults++ == 0) { /* a painter takes figures in order of the list */
    w->worst = at;
    snprintf(w->message, sizeof w->message, "%.150s", message);
  }
  return 0;
}

/* Takes figures until none is left. While gnuplot draws one, the script of the next is written. */
static void *paint_figures(void *painter) {
  struct painter *w = painter;
  char name[440];
  size_t i, drawing = w->p->n;
  while (!w->rc && (i = atomic_fetch_add_explicit(w->next, 1, memory_order_relaxed)) < w->p->n) {
    name_script(&w->p->figure[i], name);
    int rc = write_script(w->p, &w->p->figure[i], name);
    if (drawing < w->p->n)
      w->rc = finish_figure(w, drawing);
    drawing = w->p->n;
    if (!w->rc)
      w->rc = rc;
    if (!w->rc) {
      ni_gnuplot_load(&w->g, name); /* if it has ended, waiting for it says so, and why */
      drawing = i;
    }
  }
  if (drawing < w->p->n)
    w->rc = finish_figure(w, drawing);
  int signal = ni_gnuplot_end(&w->g, w->rc == -ETIMEDOUT);
  if (w->rc == -EPIPE && signal)
    snprintf(w->last, sizeof w->last, "killed by signal %d", signal);
  return NULL;
}

static void overwrite_dates(char *text, size_t n, const char *key) {
  static const char none[] = "19700101000000";
  size_t len = strlen(key);
  for (char *at = text; (at = memmem(at, n - (size_t)(at - text), key, len));) {
    at += len;
    if (n - (size_t)(at - text) < sizeof none - 1)
      return;
    memcpy(at, none, sizeof none - 1);
  }
}

/*
 * Takes the time of making out of a PDF, so that the same data make the same bytes: cairo 1.16 writes it
 * whatever the environment says. The digits are replaced in place by 1970-01-01, so no offset in the file
 * changes.
 */
static void remove_date(const char *path) {
  struct stat st;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return;
  if (fstat(fd, &st) == 0 && st.st_size > 0) {
    size_t n = (size_t)st.st_size;
    char *text = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (text != MAP_FAILED) {
      overwrite_dates(text, n, "/CreationDate (D:");
      overwrite_dates(text, n, "/ModDate (D:");
      munmap(text, n);
    }
  }
  close(fd);
}

static void remove_dates(const struct ni_plots *p) {
  char full[4400];
  for (size_t i = 0; i < p->n; i++)
    if (!make_path(p, p->figure[i].path, full))
      remove_date(full);
}

/* So many at most: each wants 20 MB and a core, and the reader of a hundred pictures is not in that hurry. */
enum { PAINTERS_MAX = 16, FIGURES_EACH = 4 };

static size_t count_painters(const struct ni_plots *p) {
  size_t n = p->o->jobs ? p->o->jobs : 1, most = (p->n + FIGURES_EACH - 1) / FIGURES_EACH;
  if (n > most)
    n = most;
  return n < PAINTERS_MAX ? n : PAINTERS_MAX;
}

/* Starts gnuplot for up to n painters; for how many, or why not even for one. */
static int start_painters(struct painter *w, size_t n, struct ni_plots *p, _Atomic size_t *next,
                          const char *program) {
  for (size_t i = 0; i < n; i++) {
    w[i] = (struct painter){.p = p, .next = next, .worst = p->n};
    int rc = ni_gnuplot_start(&w[i].g, program, p->dir);
    if (rc)
      return i ? (int)i : rc;
  }
  return (int)n;
}

/* One line on what went wrong with the pictures, and its code; 0: nothing. */
static int summarize_failures(const struct ni_plots *p, const struct painter *w, int n, char *line,
                              size_t size) {
  size_t finished = 0, faults = 0, cut = 0;
  const struct painter *failed = NULL, *worst = NULL;
  for (int i = 0; i < n; i++) {
    finished += w[i].finished;
    faults += w[i].faults;
    cut += w[i].cut;
    if (!failed && w[i].rc)
      failed = &w[i];
    if (w[i].faults && (!worst || w[i].worst < worst->worst))
      worst = &w[i];
  }
  if (finished < p->n && failed) {
    int at = snprintf(line, size, "plots: %zu of %zu drawn, then ", finished, p->n);
    if (failed->rc == -ETIMEDOUT)
      snprintf(line + at, size - (size_t)at, "gnuplot did nothing for %d s and was ended",
               (int)NI_GNUPLOT_LIMIT_S);
    else if (failed->rc == -EPIPE)
      snprintf(line + at, size - (size_t)at, "gnuplot ended%s%s", *failed->last ? ": " : "", failed->last);
    else
      snprintf(line + at, size - (size_t)at, "no script could be written: %s", strerror(-failed->rc));
    return failed->rc == -EPIPE ? -EIO : failed->rc;
  }
  if (faults) {
    snprintf(line, size, "plots: gnuplot could not draw %zu of %zu; first %.120s: %s", faults, p->n,
             p->figure[worst->worst].path, worst->message);
    return cut ? -ENOSPC : -EIO;
  }
  return 0;
}

int ni_plots_render(const struct ni_summary *summary, const struct ni_render_options *options,
                    const char *summary_dir) {
  struct ni_plots p = {
      .s = summary, .o = options, .dir = summary_dir, .format = (enum ni_plot_format)options->plot_format};
  const char *program = options->gnuplot ? options->gnuplot : "gnuplot";
  struct painter w[PAINTERS_MAX];
  _Atomic size_t next = 0;
  char line[700];
  int rc = list_figures(&p);
  if (rc || p.n == 0)
    goto free_list;
  ni_progress_begin(options->progress, "pictures", p.n, false, p.n);
  int n = start_painters(w, count_painters(&p), &p, &next, program);
  if (n < 0) {
    rc = n;
    if (rc == -ENOENT)
      snprintf(line, sizeof line,
               "plots: not drawn, no program '%.200s' found (Debian: gnuplot-nox; --only without plots "
               "silences this)",
               program);
    else
      snprintf(line, sizeof line, "plots: not drawn, '%.200s' did not start: %s", program, strerror(-rc));
    ni_render_say(options, line);
    goto free_list;
  }
  int ran = (int)ni_threads((size_t)n, paint_figures, w, sizeof *w);
  for (; n > ran; n--)
    ni_gnuplot_end(&w[n - 1].g, 1);
  if (p.format == NI_PLOT_PDF)
    remove_dates(&p);
  if (!options->keep_scripts)
    remove_scripts(&p);
  if ((rc = summarize_failures(&p, w, n, line, sizeof line)))
    ni_render_say(options, line);
free_list:
  ni_progress_end(options->progress);
  free(p.figure);
  return rc;
}
