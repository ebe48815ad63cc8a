#include "live_tick.h"

#include "tables.h"

#include "exporter/base/array.h"

#define SECOND UINT64_C(1000000000)
enum { WINDOW_S = 5, NVIDIA_S = 30, QUIET_S = 60, FILES_S = 1200 };

static bool is_older_than(uint64_t since, uint64_t now, uint64_t ns) {
  return (int64_t)(now - since) >= (int64_t)ns;
}

/*
 * A function that was not there when the window began has no rate yet: its log may be one that is read from
 * its beginning.
 */
static void turn_windows(struct ni_live *l, uint64_t mono_ns) {
  uint64_t took = mono_ns - l->window_ns;
  NI_EACH(struct ni_live_func, f, l->func, l->n_funcs) {
    bool known = f->before.n > 0;
    for (size_t i = 0; i < sizeof f->sum / sizeof *f->sum; i++)
      f->window.all[i] = known ? f->sum[i] - f->before.all[i] : 0;
    f->window_ns = known ? took : 0;
    memcpy(&f->before, f->sum, sizeof f->before);
  }
  l->window_ns = mono_ns;
}

void ni_live_nvidia_turn(struct ni_live *l, uint64_t mono_ns) {
  struct ni_live_nvidia *next = l->nvidia_shown;
  l->nvidia_shown = l->nvidia;
  l->n_nvidia_shown = l->n_nvidia;
  l->nvidia = next;
  l->n_nvidia = 0;
  l->nvidia_ns = mono_ns;
  ni_live_reindex(l, NI_LIVE_NVIDIAS);
}

/*
 * Is the log over? Its process wrote its last line, and no box tells of a living process of that number,
 * which might continue it.
 */
static bool is_file_gone(const struct ni_live *l, const struct ni_live_file *f) {
  bool looked = false;
  for (size_t i = 0; i < l->n_looks; i++) {
    const struct ni_live_looked *k = &l->look[i];
    if (k->uid != f->uid)
      continue;
    looked = true;
    for (size_t p = 0; p < k->n_processes; p++)
      if (k->process[p].pid == f->pid && !ni_life_gone(k->process[p].life))
        return false;
  }
  return looked && f->ended && f->pid;
}

/*
 * Drops what ended processes left, the oldest first, as a job may live for weeks. Keeps files of killed
 * processes: `recover` may say more of them.
 */
static bool drop_gone_files(struct ni_live *l, uint64_t mono_ns, uint64_t keep_ns) {
  size_t kept = 0, lives, files = l->n_files, before = l->n_lives;
  for (size_t i = 0; i < files; i++) {
    const struct ni_live_file f = l->file[i];
    bool stays = !is_older_than(f.from, mono_ns, keep_ns),
         of_job = !stays && ni_live_job_of(l, f.job, f.attempt, f.uid);
    if (of_job)
      stays = !is_file_gone(l, &f);
    if (stays)
      l->file[kept++] = f;
    if (stays || !of_job)
      continue;
    for (size_t k = 0; k < files; k++) /* parts of its log, of which the last one alone says that it ended */
      if (l->file[k].pid == f.pid && l->file[k].start_ns == f.start_ns)
        l->file[k].ended = true;
    lives = l->n_lives;
    l->n_lives = 0;
    NI_EACH(const struct ni_live_life, x, l->life, lives)
    if (x->pid != f.pid || x->start_ns != f.start_ns)
      l->life[l->n_lives++] = *x;
  }
  l->n_files = kept;
  if (kept < files)
    ni_live_reindex(l, NI_LIVE_FILES);
  if (l->n_lives < before)
    ni_live_reindex(l, NI_LIVE_LIVES);
  return kept < files;
}

bool ni_live_tick(struct ni_live *l, uint64_t mono_ns, uint64_t keep_ns) {
  bool goes[NI_LIVE_JOBS_MAX];
  if (!ni_live_ready(l))
    return false;
  if (!l->window_ns)
    l->window_ns = l->nvidia_ns = mono_ns;
  if (is_older_than(l->window_ns, mono_ns, WINDOW_S * SECOND))
    turn_windows(l, mono_ns);
  if (is_older_than(l->nvidia_ns, mono_ns, NVIDIA_S * SECOND))
    ni_live_nvidia_turn(l, mono_ns);
  NI_EACH(struct ni_live_job, j, l->job, l->n_jobs) {
    if (!j->last_ns)
      j->last_ns = mono_ns; /* of a checkpoint: its processes are still to be looked at */
    if (!j->alive && !j->ended_ns && is_older_than(j->last_ns, mono_ns, QUIET_S * SECOND))
      j->ended_ns = j->last_ns;
  }
  for (size_t i = 0; i < l->n_jobs; i++)
    goes[i] = l->job[i].ended_ns && is_older_than(l->job[i].ended_ns, mono_ns, keep_ns);
  bool went = ni_live_drop(l, goes);
  return drop_gone_files(l, mono_ns, keep_ns < FILES_S * SECOND ? FILES_S * SECOND : keep_ns) || went;
}
