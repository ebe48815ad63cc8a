#include "live_tick.h"

#include "tables.h"

#define SECOND UINT64_C(1000000000)
enum { WINDOW_S = 5, NVIDIA_S = 30, QUIET_S = 60, FILES_S = 1200 };

static bool over(uint64_t since, uint64_t now, uint64_t ns) { return (int64_t)(now - since) >= (int64_t)ns; }

/* A function that was not there when the window began has no rate yet: it may be a log that is read from its beginning. */
static void turn_windows(struct ni_live *l, uint64_t mono_ns) {
  uint64_t took = mono_ns - l->window_ns;
  for (struct ni_live_func *f = l->func; f < l->func + l->n_funcs; f++) {
    bool known = f->before.n > 0;
    for (size_t i = 0; i < sizeof f->sum / sizeof *f->sum; i++) f->window.all[i] = known ? f->sum[i] - f->before.all[i] : 0;
    f->window_ns = known ? took : 0;
    memcpy(&f->before, f->sum, sizeof f->before);
  }
  l->window_ns = mono_ns;
}

void ni_live_nvidia_turn(struct ni_live *l, uint64_t mono_ns) {
  struct ni_live_nvidia *next = l->nvidia_shown;
  l->nvidia_shown = l->nvidia, l->n_nvidia_shown = l->n_nvidia;
  l->nvidia = next, l->n_nvidia = 0;
  l->nvidia_ns = mono_ns;
  ni_live_reindex(l, NI_LIVE_NVIDIAS);
}

bool ni_live_tick(struct ni_live *l, uint64_t mono_ns, uint64_t keep_ns) {
  size_t kept = 0, files = l->n_files;
  bool goes[NI_LIVE_JOBS_MAX];
  if (!ni_live_ready(l)) return false;
  if (!l->window_ns) l->window_ns = l->nvidia_ns = mono_ns;
  if (over(l->window_ns, mono_ns, WINDOW_S * SECOND)) turn_windows(l, mono_ns);
  if (over(l->nvidia_ns, mono_ns, NVIDIA_S * SECOND)) ni_live_nvidia_turn(l, mono_ns);
  for (struct ni_live_job *j = l->job; j < l->job + l->n_jobs; j++) {
    if (!j->last_ns) j->last_ns = mono_ns; /* of a checkpoint: its processes are still to be looked at */
    if (!j->alive && !j->ended_ns && over(j->last_ns, mono_ns, QUIET_S * SECOND)) j->ended_ns = j->last_ns;
  }
  for (size_t i = 0; i < l->n_jobs; i++) goes[i] = l->job[i].ended_ns && over(l->job[i].ended_ns, mono_ns, keep_ns);
  bool went = ni_live_drop(l, goes);
  if (keep_ns < FILES_S * SECOND) keep_ns = FILES_S * SECOND;
  for (const struct ni_live_file *f = l->file; f < l->file + files; f++)
    if (!over(f->from, mono_ns, keep_ns) || ni_live_job_of(l, f->job, f->attempt, f->uid)) l->file[kept++] = *f;
  l->n_files = kept;
  if (kept < files) ni_live_reindex(l, NI_LIVE_FILES);
  return went || kept < files;
}
