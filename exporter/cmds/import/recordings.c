#include "recordings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/out_file.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/cli/words.h"

static int find_files(struct ni_recordings *x, char *const *path, size_t n) {
  x->files.wanted = x->format->is_one;
  int e = ni_discover(&x->files, path, n);
  if (e == 0)
    ni_inputs_unreadable(x->who, &x->files);
  x->left_out += x->files.n_bad;
  if (e == 0 && x->files.n == 0) {
    ni_say(stderr, "%s: no %s among what was given\n", x->who, x->format->files);
    e = -ENOENT;
  }
  return e;
}

/* ---- operations put aside ------------------------------------------------------------------------------ */

/* The folder is made when there is something for it. */
static int make_folder(struct ni_recordings *x) {
  char why[512];
  if (x->dir >= 0)
    return 0;
  x->dir = ni_out_dir(x->out, true, why, sizeof why);
  if (x->dir < 0)
    ni_say(stderr, "%s: --out %s: %s\n", x->who, x->out, why);
  return x->dir < 0 ? x->dir : 0;
}

void ni_recordings_unload(struct ni_recordings *x, size_t i) {
  free(x->item[i].m.op);
  x->item[i].m.op = NULL;
}

static int put_aside(struct ni_recordings *x, size_t i) {
  struct ni_recording *r = &x->item[i];
  const size_t bytes = r->m.n * sizeof *r->m.op;
  int e = ni_spill_reserve(&x->aside, bytes, &r->operations_at);
  if (e == 0)
    e = ni_spill_write(&x->aside, r->m.op, bytes, r->operations_at);
  ni_recordings_unload(x, i);
  r->m.cap = 0;
  return e;
}

int ni_recordings_load(struct ni_recordings *x, size_t i) {
  struct ni_recording *r = &x->item[i];
  if (!(r->m.op = malloc((r->m.n + 1) * sizeof *r->m.op)))
    return -ENOMEM;
  return ni_spill_read(&x->aside, r->m.op, r->m.n * sizeof *r->m.op, r->operations_at);
}

/* ---- one after the other ------------------------------------------------------------------------------- */

static bool is_same_rank(const struct ni_imported *m, const struct ni_imported *of) {
  return m->rank >= 0 && of->rank == m->rank && of->world == m->world;
}

/* The recording of the same rank at the same time. */
static const struct ni_recording *find_same_recording(const struct ni_recordings *x,
                                                      const struct ni_imported *m) {
  for (size_t i = 0; i < x->n; i++) {
    const struct ni_imported *of = &x->item[i].m;
    if (is_same_rank(m, of) && m->first_ns <= of->last_ns && of->first_ns <= m->last_ns)
      return &x->item[i];
  }
  return NULL;
}

/* The same recording once more, of a process whose rank it does not state. */
static const struct ni_recording *find_same_process(const struct ni_recordings *x,
                                                    const struct ni_imported *m) {
  for (size_t i = 0; m->rank < 0 && m->pid > 0 && i < x->n; i++) {
    const struct ni_imported *of = &x->item[i].m;
    if (of->pid == m->pid && of->first_ns == m->first_ns && strcmp(of->host, m->host) == 0)
      return &x->item[i];
  }
  return NULL;
}

static void report_left_out(struct ni_recordings *x, const char *path, const char *why) {
  ni_say(stderr, "%s: %s: left out: %s\n", x->who, path, why);
  x->left_out++;
}

static void report_unread(struct ni_recordings *x, const struct ni_imported *m) {
  char why[1024];
  snprintf(why, sizeof why, "%s; the others of its process were read", x->format->broken);
  if (m->n_unread)
    report_left_out(x, m->unread, why);
  if (m->n_unread > 1)
    ni_say(stderr, "%s: and %zu more of that process\n", x->who, m->n_unread - 1);
}

/* Is it there already? Says so. */
static bool is_known(struct ni_recordings *x, const struct ni_imported *m) {
  const struct ni_recording *before = find_same_recording(x, m);
  const struct ni_recording *again = before ? NULL : find_same_process(x, m);
  char why[1024];
  if (before)
    snprintf(why, sizeof why, "it is of rank %d, as %.700s is, and of the same time", m->rank,
             before->m.path);
  else if (again)
    snprintf(why, sizeof why, "it is of process %" PRId64 " on %.200s, as %.700s is", m->pid, m->host,
             again->m.path);
  else
    return false;
  report_left_out(x, m->path, why);
  return true;
}

/* Takes a process of a file. */
static int take_process(void *arg, struct ni_imported *m) {
  struct ni_recordings *x = arg;
  report_unread(x, m);
  if (is_known(x, m)) {
    ni_imported_free(m);
    return 0;
  }
  if (!ni_array_room(x->item, x->n, x->cap)) {
    ni_imported_free(m);
    return -ENOMEM;
  }
  x->item[x->n++] = (struct ni_recording){.m = *m};
  int e = make_folder(x);
  if (e == 0)
    e = put_aside(x, x->n - 1);
  x->failed = e < 0;
  return e;
}

static const char *explain_failure(const struct ni_recordings *x, int e) {
  if (e == -EBADMSG)
    return x->format->broken;
  if (e == -EFBIG)
    return "more operations or communicators than a rank can have here; trace fewer steps";
  if (e == -EBUSY)
    return "it is being written, or its export was broken off (a -journal or -wal lies beside it): export it "
           "again";
  if (e == -ENOTSUP)
    return "this nccl-inspector was built without SQLite (libsqlite3-dev)";
  return e == -ENODATA ? x->format->none : strerror(-e);
}

/* n files of one process. Not 0: no other file can be read either. */
static int read_process(struct ni_recordings *x, const char *const *path, size_t n) {
  const int e = x->format->read(path, n, take_process, x, x->progress);
  if (e == 0 || e == -ENOMEM || x->failed)
    return e;
  report_left_out(x, path[0], explain_failure(x, e));
  return 0;
}

static const struct ni_import_format *sorting; /* qsort has no argument for it; one thread */
static int by_process(const void *a, const void *b) {
  const char *const *x = a, *const *y = b;
  return sorting->by_process(*x, *y);
}

static int read_all(struct ni_recordings *x) {
  uint64_t bytes = 0;
  const size_t n = x->files.n;
  const char **path = malloc((n + 1) * sizeof *path);
  int e = path ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < n; i++) {
    bytes += x->files.file[i].bytes;
    path[i] = x->files.file[i].path;
  }
  sorting = x->format;
  if (e == 0 && x->format->by_process)
    qsort(path, n, sizeof *path, by_process);
  ni_progress_begin(x->progress, "read", bytes, true, n);
  for (size_t from = 0, to; e == 0 && from < n; from = to) {
    for (to = from + 1; to < n && x->format->same_process && x->format->same_process(path[from], path[to]);)
      to++;
    e = read_process(x, path + from, to - from);
    ni_progress_add(x->progress, 0, to - from);
  }
  ni_progress_end(x->progress);
  free(path);
  return e;
}

/* ---- cycles -------------------------------------------------------------------------------------------- */

static NI_ORDER_BY(by_time, struct ni_recording, m.first_ns, m.rank);

/*
 * In order of time: a cycle ends where a rank comes again. What lies behind all of the cycle begins the next
 * one, too, where ranks come again at all; so a rank without a file in one cycle is not put into the wrong
 * one.
 */
static void find_cycles(struct ni_recordings *x) {
  bool again = false;
  for (size_t i = 0; i < x->n; i++)
    for (size_t k = 0; k < i; k++)
      again |= is_same_rank(&x->item[i].m, &x->item[k].m);
  x->cycles = 1;
  if (!again)
    return;
  qsort(x->item, x->n, sizeof *x->item, by_time);
  int64_t last_ns = INT64_MIN;
  size_t first = 0;
  for (size_t i = 0; i < x->n; i++) {
    const struct ni_imported *m = &x->item[i].m;
    bool ends = i > first && m->first_ns > last_ns;
    for (size_t k = first; k < i; k++)
      ends |= is_same_rank(m, &x->item[k].m);
    if (ends) {
      first = i;
      x->cycles++;
    }
    x->item[i].cycle = x->cycles - 1;
    if (i == first || m->last_ns > last_ns)
      last_ns = m->last_ns;
  }
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

void ni_recordings_init(struct ni_recordings *x) {
  *x = (struct ni_recordings){.dir = -1};
  ni_spill_init(&x->aside, NULL, 0);
}

int ni_recordings_read(struct ni_recordings *x, char *const *path, size_t n) {
  ni_spill_init(&x->aside, x->out, 0);
  int e = find_files(x, path, n);
  if (e == 0)
    e = read_all(x);
  if (e == 0 && x->n == 0)
    return -ENODATA;
  if (e == 0)
    find_cycles(x);
  const bool is_unsaid = e < 0 && e != -ENOENT && x->dir >= 0 && x->n;
  if (e == -ENOMEM)
    ni_say(stderr, "%s: %s\n", x->who, strerror(-e));
  else if (is_unsaid) /* of the temporary file there */
    ni_say(stderr, "%s: %s: %s\n", x->who, x->out, strerror(-e));
  return e;
}

void ni_recordings_free(struct ni_recordings *x) {
  for (size_t i = 0; i < x->n; i++)
    ni_imported_free(&x->item[i].m);
  free(x->item);
  ni_files_free(&x->files);
  ni_spill_close(&x->aside);
  if (x->dir >= 0)
    close(x->dir);
}
