#include "plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "figure.h"
#include "gnuplot_process.h"
#include "pdf_date.h"
#include "plot_list.h"

/* Makes the folders of a path below dir. */
static int make_folders(const char *dir, const char *path) {
  char full[4400];
  int base = snprintf(full, sizeof full, "%s/", dir);
  if (base < 0 || (size_t)base + strlen(path) >= sizeof full) return -ENAMETOOLONG;
  memcpy(full + base, path, strlen(path) + 1);
  for (char *slash = strchr(full + base, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(full, 0777) != 0 && errno != EEXIST) return -errno;
    *slash = '/';
  }
  return 0;
}

static int keep(const struct ni_plots *p, const struct ni_figure *fig, const char *text, size_t n) {
  char name[440], full[4400];
  snprintf(name, sizeof name, "gnuplot/%s.gp", fig->path);
  for (char *c = name + strlen("gnuplot/"); *c; c++)
    if (*c == '/') *c = '-';
  int rc = make_folders(p->dir, name);
  if (rc) return rc;
  if ((size_t)snprintf(full, sizeof full, "%s/%s", p->dir, name) >= sizeof full) return -ENAMETOOLONG;
  FILE *f = fopen(full, "we");
  if (!f) return -errno;
  fprintf(f, "# From the folder above this one: gnuplot %s\n", name);
  fwrite(text, 1, n, f);
  bool failed = ferror(f);
  return fclose(f) != 0 || failed ? -EIO : 0;
}

static void on_fault(void *context, size_t figure, const char *message) {
  struct ni_plots *p = context;
  char full[4400];
  const char *path = figure < p->n ? p->figure[figure].path : "end";
  if (p->faults++ == 0) snprintf(p->first, sizeof p->first, "%.120s: %.160s", path, message);
  /* What it left of this picture may be half a picture. */
  if (figure < p->n && (size_t)snprintf(full, sizeof full, "%s/%s", p->dir, path) < sizeof full) unlink(full);
}

/* Feeds every figure; a gnuplot that ends early is found out at the end. */
static int feed(struct ni_plots *p, struct ni_gnuplot *g) {
  int rc = 0;
  for (size_t i = 0; i < p->n && !rc; i++) {
    char *text = NULL;
    size_t n = 0;
    if ((rc = make_folders(p->dir, p->figure[i].path))) break;
    FILE *f = open_memstream(&text, &n);
    if (!f) return -ENOMEM;
    p->figure[i].write(f, &p->figure[i]);
    fprintf(f, "unset output\n");
    if (fclose(f) != 0) rc = -ENOMEM;
    if (!rc && p->o->keep_scripts) rc = keep(p, &p->figure[i], text, n);
    if (!rc) rc = ni_gnuplot_send(g, text, n);
    free(text);
  }
  return rc;
}

static void take_dates(const struct ni_plots *p) {
  char full[4400];
  for (size_t i = 0; i < p->n; i++)
    if ((size_t)snprintf(full, sizeof full, "%s/%s", p->dir, p->figure[i].path) < sizeof full) ni_pdf_take_date(full);
}

int ni_plots_render(const struct ni_summary *summary, const struct ni_render_options *options,
                    const char *summary_dir) {
  struct ni_plots p = {.s = summary, .o = options, .dir = summary_dir};
  const char *program = options->gnuplot ? options->gnuplot : "gnuplot";
  struct ni_gnuplot g;
  char line[700], last[200] = "";
  size_t finished = 0;
  int rc = ni_plot_format_parse(options->plot_format, &p.format);
  if (rc) {
    snprintf(line, sizeof line, "plots: no format '%.20s'; png, svg and pdf there are", options->plot_format);
    ni_plots_say(options, line);
    return rc;
  }
  if ((rc = ni_plots_list(&p)) || p.n == 0) goto free_list;
  if ((rc = ni_gnuplot_start(&g, program, summary_dir))) {
    if (rc == -ENOENT)
      snprintf(line, sizeof line,
               "plots: not drawn, no program '%.200s' found (Debian: gnuplot-nox; --no-plots silences this)", program);
    else snprintf(line, sizeof line, "plots: not drawn, '%.200s' did not start: %s", program, strerror(-rc));
    ni_plots_say(options, line);
    goto free_list;
  }
  int fed = feed(&p, &g);
  int ended = ni_gnuplot_end(&g, &finished, on_fault, &p, last, sizeof last);
  if (p.format == NI_PLOT_PDF) take_dates(&p);
  if (fed && fed != -EPIPE) {
    snprintf(line, sizeof line, "plots: %zu of %zu drawn, then: %s", finished, p.n, strerror(-fed));
    rc = fed;
  } else if (ended == -ETIMEDOUT) {
    snprintf(line, sizeof line, "plots: %zu of %zu drawn, then gnuplot did nothing for %d s and was ended", finished,
             p.n, (int)NI_GNUPLOT_LIMIT_S);
    rc = ended;
  } else if (finished < p.n) {
    snprintf(line, sizeof line, "plots: %zu of %zu drawn, then gnuplot ended%s%s", finished, p.n, *last ? ": " : "",
             last);
    rc = -EIO;
  } else if (p.faults) {
    snprintf(line, sizeof line, "plots: gnuplot could not draw %zu of %zu; first %s", p.faults, p.n, p.first);
    rc = -EIO;
  }
  if (rc) ni_plots_say(options, line);
free_list:
  free(p.figure);
  return rc;
}
