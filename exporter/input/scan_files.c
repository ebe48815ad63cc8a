#include "scan_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "exporter/base/threads.h"

/* What one thread reads in one go; a quarter of it where a file is small. */
#define GZIP_BYTES (2u << 20)
#define PLAIN_BYTES (32u << 20)
enum { RANGES_MIN = 64, RANGES_MAX = 65536 };

unsigned ni_scan_jobs(void) {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return n < 1 ? 1 : (unsigned)n;
}

/* ---- plan ---------------------------------------------------------------------------------------------- */

static bool is_gzip(const char *path) {
  unsigned char magic[2] = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  bool is_gzip_file = fd >= 0 && read(fd, magic, 2) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (fd >= 0)
    close(fd);
  return is_gzip_file;
}

static int plan_file(const struct ni_file *f, bool cut, struct ni_scan_parts *out) {
  if (f->elsewhere)
    return 0;
  cut &= f->bytes >= GZIP_BYTES / 4; /* what has one range anyhow is not opened */
  uint64_t most = cut && is_gzip(f->path) ? GZIP_BYTES : PLAIN_BYTES, each = f->bytes / RANGES_MIN;
  if (each < most / 4)
    each = most / 4;
  if (each > most)
    each = most;
  uint64_t want = cut ? f->bytes / each + 1 : 1;
  if (want > RANGES_MAX)
    want = RANGES_MAX;
  out->at = calloc(want, sizeof *out->at);
  if (!out->at)
    return -ENOMEM;
  out->n = want > 1 ? ni_reader_split(f->path, (int)want, 0, out->at) : 0;
  if (out->n < 1) { /* what is wrong with it is told when it is read */
    out->at[0] = (struct ni_range){.to = UINT64_MAX >> 1};
    out->n = 1;
  }
  return 0;
}

struct scan_planning {
  struct ni_scan_plan *p;
  bool cut;
  int (*known)(void *arg, size_t file_no, struct ni_scan_parts *out);
  void *arg;
  atomic_size_t next; /* relaxed: a ticket */
  atomic_int error;   /* relaxed: read after the join */
};

static void *plan_files(void *arg) {
  struct scan_planning *x = arg;
  size_t i;
  while ((i = atomic_fetch_add_explicit(&x->next, 1, memory_order_relaxed)) < x->p->files->n) {
    int e = x->known ? x->known(x->arg, i, &x->p->of_file[i]) : 0;
    if (e == 0)
      e = plan_file(&x->p->files->file[i], x->cut, &x->p->of_file[i]);
    if (e < 0)
      atomic_store_explicit(&x->error, e, memory_order_relaxed);
  }
  return NULL;
}

int ni_scan_plan(struct ni_scan_plan *p, const struct ni_files *files, bool cut, unsigned jobs) {
  return ni_scan_plan_known(p, files, cut, jobs, NULL, NULL);
}

int ni_scan_plan_known(struct ni_scan_plan *p, const struct ni_files *files, bool cut, unsigned jobs,
                       int (*known)(void *arg, size_t file_no, struct ni_scan_parts *out), void *arg) {
  struct scan_planning x = {.p = p, .cut = cut, .known = known, .arg = arg};
  *p = (struct ni_scan_plan){.files = files, .of_file = calloc(files->n + 1, sizeof *p->of_file)};
  if (!p->of_file)
    return -ENOMEM;
  (void)ni_threads(jobs, plan_files, &x, 0);
  for (size_t i = 0; i < files->n; i++) {
    if (!files->file[i].elsewhere)
      p->bytes += files->file[i].bytes;
    p->parts += (uint64_t)p->of_file[i].n;
  }
  return atomic_load_explicit(&x.error, memory_order_relaxed);
}

void ni_scan_plan_free(struct ni_scan_plan *p) {
  for (size_t i = 0; p->of_file && i < p->files->n; i++)
    free(p->of_file[i].at);
  free(p->of_file);
  *p = (struct ni_scan_plan){0};
}

/* ---- read ---------------------------------------------------------------------------------------------- */

struct file_state {
  int begun, merged; /* parts */
  bool *done;        /* of each part: it waits for its turn */
  void **result;
};

struct scan_reading {
  const struct ni_scan_team *t;
  pthread_mutex_t lock; /* all below */
  struct file_state *of_file;
  size_t next_file, files_done;
  /* the first one. relaxed: whoever sees it late reads a little more; exact after the join */
  atomic_int error;
};

static bool is_stopped(struct scan_reading *r) {
  return atomic_load_explicit(&r->error, memory_order_relaxed) != 0 || (r->t->stop && r->t->stop(r->t->arg));
}

static void note_error(struct scan_reading *r, int e) {
  int none = 0;
  atomic_compare_exchange_strong_explicit(&r->error, &none, e, memory_order_relaxed, memory_order_relaxed);
}

/*
 * The next part: of its own file; else of one that nobody began; else of the one with most left. false: none
 * is left.
 */
static bool take_next_part(struct scan_reading *r, struct ni_scan_part *p, bool again) {
  const struct ni_scan_plan *plan = r->t->plan;
  size_t n = plan->files->n, at = n;
  pthread_mutex_lock(&r->lock);
  if (again && r->of_file[p->file_no].begun < plan->of_file[p->file_no].n)
    at = p->file_no;
  for (; at == n && r->next_file < n; r->next_file++)
    if (r->of_file[r->next_file].begun == 0 && plan->of_file[r->next_file].n > 0)
      at = r->next_file;
  int most = 0;
  for (size_t i = 0, none = at == n; none && i < n; i++) {
    int left = plan->of_file[i].n - r->of_file[i].begun;
    if (left > most) {
      most = left;
      at = i;
    }
  }
  if (at < n) {
    int part = r->of_file[at].begun++;
    *p = (struct ni_scan_part){&plan->files->file[at], at, part, plan->of_file[at].at[part]};
  }
  pthread_mutex_unlock(&r->lock);
  return at < n;
}

/* Hands on what has its turn now. Under the lock. */
static int merge_ready(struct scan_reading *r) {
  const struct ni_scan_team *t = r->t;
  const struct ni_scan_plan *plan = t->plan;
  int e = 0;
  while (e == 0 && r->files_done < plan->files->n &&
         r->of_file[r->files_done].merged == plan->of_file[r->files_done].n) {
    if (t->file_done)
      e = t->file_done(t->arg, r->files_done);
    r->files_done++;
  }
  return e;
}

static int hand_in_result(struct scan_reading *r, const struct ni_scan_part *p, void *result) {
  const struct ni_scan_team *t = r->t;
  struct file_state *f = &r->of_file[p->file_no];
  int e = 0, n = t->plan->of_file[p->file_no].n;
  pthread_mutex_lock(&r->lock);
  f->done[p->part] = true;
  f->result[p->part] = result;
  while (e == 0 && f->merged < n && f->done[f->merged]) {
    const struct ni_scan_part q = {p->file, p->file_no, f->merged,
                                   t->plan->of_file[p->file_no].at[f->merged]};
    void *x = f->result[f->merged];
    f->result[f->merged++] = NULL;
    if (t->merge)
      e = t->merge(t->arg, &q, x);
  }
  if (e == 0)
    e = merge_ready(r);
  pthread_mutex_unlock(&r->lock);
  return e;
}

static bool ask_stop(void *arg) { return is_stopped(arg); }
static void add_progress(void *arg, uint64_t bytes) {
  const struct scan_reading *r = arg;
  ni_progress_add(r->t->progress, bytes, 0);
}

static void *read_parts(void *arg) {
  struct scan_reading *r = arg;
  const struct ni_scan_team *t = r->t;
  struct ni_scan *scan = NULL;
  struct ni_scan_part p = {0};
  void *worker = t->arg;
  int e = ni_scan_new(&scan);
  if (e == 0 && t->open)
    e = t->open(t->arg, &worker);
  for (bool again = false; e == 0 && !is_stopped(r) && take_next_part(r, &p, again); again = true) {
    struct ni_scan_to to = {.stop = ask_stop, .read = add_progress, .team = r};
    void *result = NULL;
    e = t->part(worker, scan, &to, &p, &result);
    if (e < 0 && result && t->drop)
      t->drop(t->arg, result);
    else if (e == 0)
      e = hand_in_result(r, &p, result);
    ni_progress_add(t->progress, 0, 1);
  }
  if (t->close && (worker != t->arg || !t->open)) {
    int closed = t->close(t->arg, worker);
    if (e == 0)
      e = closed;
  }
  if (e < 0)
    note_error(r, e);
  ni_scan_free(scan);
  return NULL;
}

int ni_scan_files(const struct ni_scan_team *t) {
  struct scan_reading r = {.t = t, .lock = PTHREAD_MUTEX_INITIALIZER};
  size_t n = t->plan->files->n;
  int e = (r.of_file = calloc(n + 1, sizeof *r.of_file)) ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < n; i++) {
    size_t parts = (size_t)t->plan->of_file[i].n;
    r.of_file[i].done = calloc(parts + 1, sizeof(bool));
    r.of_file[i].result = calloc(parts + 1, sizeof(void *));
    if (!r.of_file[i].done || !r.of_file[i].result)
      e = -ENOMEM;
  }
  if (e == 0) {
    ni_progress_begin(t->progress, t->phase ? t->phase : "read", t->plan->bytes, true, t->plan->parts);
    (void)ni_threads(t->jobs ? t->jobs : 1, read_parts, &r, 0);
    ni_progress_end(t->progress);
    e = atomic_load_explicit(&r.error, memory_order_relaxed);
  }
  for (size_t i = 0; r.of_file && i < n; i++) {
    for (int k = 0; r.of_file[i].result && k < t->plan->of_file[i].n; k++)
      if (r.of_file[i].result[k] && t->drop)
        t->drop(t->arg, r.of_file[i].result[k]);
    free(r.of_file[i].done);
    free(r.of_file[i].result);
  }
  free(r.of_file);
  return e;
}
