#include "ctl_show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/time_text.h"
#include "exporter/cli/command.h"
#include "exporter/input/discover.h"
#include "exporter/input/scan.h"

static const int64_t TOGETHER_NS = 10000000000; /* what several processes say within that time is one row */

/* What processes said alike, and when the first one did. */
struct control_row {
  int64_t ns;
  char *source, *command, *result, *why; /* why "": none */
  uint64_t processes;
  size_t file; /* the newest of them */
};

struct control_rows {
  struct control_row *item;
  size_t n, cap, file;
};

static bool is_same_row(const struct control_row *r, const struct ni_control_line *c, const char *why) {
  return llabs(r->ns - (int64_t)c->ns) < TOGETHER_NS && strcmp(r->command, c->command) == 0 &&
      strcmp(r->result, c->result) == 0 && strcmp(r->source, c->source) == 0 && strcmp(r->why, why) == 0;
}

static int read_control_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct control_rows *x = arg;
  const struct ni_control_line *c = &l->control;
  const char *why = c->why ? c->why : "";
  (void)line_no;
  if (l->kind != NI_LINE_CONTROL || c->ns > INT64_MAX)
    return 0;
  size_t i = 0;
  while (i < x->n && !is_same_row(&x->item[i], c, why))
    i++;
  if (i == x->n) {
    if (!ni_array_room(x->item, x->n, x->cap))
      return -ENOMEM;
    struct control_row *r = &x->item[x->n++];
    *r = (struct control_row){
        (int64_t)c->ns, strdup(c->source), strdup(c->command), strdup(c->result), strdup(why), 1, x->file};
    const bool has_memory = r->source && r->command && r->result && r->why;
    return has_memory ? 0 : -ENOMEM;
  }
  struct control_row *r = &x->item[i];
  if ((int64_t)c->ns < r->ns)
    r->ns = (int64_t)c->ns;
  r->processes += r->file != x->file; /* a process says it again where it is told again */
  r->file = x->file;
  return 0;
}

static int by_time(const void *a, const void *b) {
  const struct control_row *x = a, *y = b;
  return (x->ns > y->ns) - (x->ns < y->ns);
}

static void print_control_table(const struct control_rows *x) {
  for (size_t i = 0; i < x->n; i++) {
    const struct control_row *r = &x->item[i];
    char when[40];
    ni_say(stdout, "%s  %-9s  %s: %s (%" PRIu64 " %s)", ni_utc_text(r->ns / 1000, ' ', 0, when), r->result,
           r->source, r->command, r->processes, ni_plural(r->processes, "process", "processes"));
    ni_say(stdout, "%s%s\n", *r->why ? ": " : "", r->why);
  }
}

int ni_ctl_show(const char *who, const char *dir) {
  char *path[] = {strdup(dir)};
  struct ni_files files = {0};
  struct ni_scan *scan = NULL;
  struct control_rows rows = {0};
  int e = path[0] ? ni_discover(&files, path, 1) : -ENOMEM;
  if (e == 0)
    e = ni_scan_new(&scan);
  for (size_t i = 0; e == 0 && i < files.n; i++) {
    struct ni_scan_end end;
    /* of a process, not of its parts */
    rows.file += i == 0 || !ni_same_stem(files.file[i - 1].path, files.file[i].path);
    e = ni_scan_file(scan, files.file[i].path, NULL,
                     &(struct ni_scan_to){.arg = &rows, .take = read_control_line}, &end);
    if (end.error)
      ni_say(stderr, "%s: %s: %s\n", who, files.file[i].path, strerror(-end.error));
  }
  if (e == 0 && files.n == 0) {
    ni_say(stderr, "%s: no log lies in %s\n", who, dir);
    e = -ENOENT;
  }
  if (rows.n)
    qsort(rows.item, rows.n, sizeof *rows.item, by_time);
  if (e == 0 && rows.n == 0)
    ni_say(stdout, "no process has been told anything\n");
  if (e == 0)
    print_control_table(&rows);
  for (size_t i = 0; i < rows.n; i++) {
    struct control_row *r = &rows.item[i];
    free(r->source);
    free(r->command);
    free(r->result);
    free(r->why);
  }
  free(rows.item);
  ni_scan_free(scan);
  ni_files_free(&files);
  free(path[0]);
  return e;
}
