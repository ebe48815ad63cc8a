#include "ring.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/collect/source.h"

enum { PARTS = 16, FILES_MAX = 1000 };
#define AGAIN_NS UINT64_C(10000000000)
#define HOUR_NS UINT64_C(3600000000000)

struct ni_ring {
  char *dir;
  uint64_t most;                   /* bytes */
  struct ni_series_writer *writer; /* NULL: no file could be made */
  struct ni_series_set set;
  uint64_t began_ns, again_ns; /* the file; when a disk that did not take something is asked again */
  /* bytes of the other files; samples, of writers before and while there was none */
  uint64_t older, lost;
  struct ni_ring_totals totals;
};

static void report_ring_failure(struct ni_ring *r, const char *what, const char *why, uint64_t now) {
  r->totals.errors++;
  r->totals.degraded = true;
  r->again_ns = now + AGAIN_NS;
  snprintf(r->totals.why, sizeof r->totals.why, "%.150s: %.100s", what, why);
}

/* Is it a file of the host that began `mine`? */
static bool is_of_our_host(const char *name, const char *mine) {
  size_t n = strlen(mine);
  while (strncmp(mine + n, "-counters-", 10) != 0)
    n--; /* the last one: a host may be called so */
  return strncmp(name, mine, n += 10) == 0 && strspn(name + n, "0123456789.") > 1 &&
      strcmp(name + n + strspn(name + n, "0123456789."), "jsonl.gz") == 0;
}

/* Keeps the newest of the older files that have room in addition to `bytes`. */
static void prune_files(struct ni_ring *r, uint64_t bytes, uint64_t now) {
  const char *path = ni_series_path(r->writer), *mine = strrchr(path, '/') + 1;
  struct dirent **names;
  size_t kept = 0;
  bool full = false;
  int n = ni_root_names(&names, r->dir);
  r->older = 0;
  for (int i = n; i-- > 0;) {
    char old[4096];
    struct stat st;
    bool fits = snprintf(old, sizeof old, "%s/%s", r->dir, names[i]->d_name) < (int)sizeof old;
    if (!fits || !is_of_our_host(names[i]->d_name, mine) || strcmp(names[i]->d_name, mine) == 0)
      continue;
    if (lstat(old, &st) < 0 || !S_ISREG(st.st_mode))
      continue;
    uint64_t size = (uint64_t)st.st_size;
    full |= bytes + r->older + size > r->most || kept >= FILES_MAX;
    const bool must_go = full || !size;
    if (must_go && (unlink(old) == 0 || errno == ENOENT))
      continue;
    if (must_go)
      report_ring_failure(r, names[i]->d_name, strerror(errno), now);
    r->older += size;
    kept++;
  }
  ni_root_names_free(names, n);
  r->totals.bytes = r->older + bytes;
}

static void begin_file(struct ni_ring *r, uint64_t now) {
  char why[200];
  if (ni_series_create(&r->writer, r->dir, why, sizeof why) < 0) {
    report_ring_failure(r, r->dir, why, now);
    return;
  }
  r->totals.degraded = false;
  r->began_ns = now;
  ni_series_set_free(&r->set);
  r->set = (struct ni_series_set){.interval_ns = r->set.interval_ns};
  prune_files(r, 0, now);
}

/* Ends the file. What cannot be written any more is lost. */
static void end_file(struct ni_ring *r) {
  if (!r->writer)
    return;
  struct ni_series_totals t = ni_series_totals(r->writer);
  r->lost += t.lost + (ni_series_close(r->writer) < 0 ? t.held : 0);
  r->writer = NULL;
}

int ni_ring_open(struct ni_ring **out, const char *dir, uint64_t bytes, uint64_t every_ns, uint64_t now_ns) {
  struct ni_ring *r = *out = calloc(1, sizeof *r);
  if (!r || !(r->dir = strdup(dir))) {
    free(r);
    return -ENOMEM;
  }
  r->most = bytes;
  r->set.interval_ns = every_ns;
  begin_file(r, now_ns);
  return 0;
}

void ni_ring_put(struct ni_ring *r, const struct ni_set *set, const struct ni_reading *at,
                 const struct ni_series_sweep *when) {
  if (!r->writer || ni_series_put(r->writer, &r->set, set, at, when) < 0)
    r->totals.lost = ++r->lost;
}

void ni_ring_turn(struct ni_ring *r, uint64_t now_ns) {
  if (now_ns < r->again_ns)
    return;
  if (!r->writer)
    begin_file(r, now_ns);
  if (!r->writer || !ni_series_due(r->writer))
    return;
  int e = ni_series_flush(r->writer);
  struct ni_series_totals t = ni_series_totals(r->writer);
  r->totals.degraded = false;
  if (e < 0)
    report_ring_failure(r, ni_series_path(r->writer),
                        e == -ESTALE ? "the file is gone, or its folder" : strerror(-e), now_ns);
  const bool is_full = t.bytes > r->most / PARTS || now_ns - r->began_ns >= HOUR_NS;
  if (e == -ESTALE || (e == 0 && is_full)) {
    r->older += e == 0 ? t.bytes : 0;
    end_file(r);
    begin_file(r, now_ns);
    t = (struct ni_series_totals){0};
  } else if (r->older + t.bytes > r->most) {
    prune_files(r, t.bytes, now_ns);
  }
  r->totals.bytes = r->older + t.bytes;
  r->totals.lost = r->lost + t.lost;
}

const struct ni_ring_totals *ni_ring_totals(const struct ni_ring *r) { return &r->totals; }

void ni_ring_close(struct ni_ring *r) {
  if (!r)
    return;
  end_file(r);
  ni_series_set_free(&r->set);
  free(r->dir);
  free(r);
}
