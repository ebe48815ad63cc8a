#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/safe_text.h"
#include "now.h"

#define QUIET_NS UINT64_C(2000000000)
#define BETWEEN_NS UINT64_C(200000000)

static double estimate_seconds_left(const struct ni_progress *p, uint64_t now) {
  double share = p->all ? (double)p->done / (double)p->all : 0;
  return share > 0 ? (double)(now - p->began_ns) / 1e9 * (1 - share) / share : -1;
}

static void show_line(struct ni_progress *p, uint64_t now) {
  char done[32], all[32], left[48] = "";
  double s = estimate_seconds_left(p, now);
  if (p->bytes) {
    ni_bytes_text(p->done, done);
    ni_bytes_text(p->all, all);
  } else {
    ni_count_text((int64_t)p->done, done);
    ni_count_text((int64_t)p->all, all);
  }
  if (s >= 0)
    snprintf(left, sizeof left, ", about %.0f s left", s < 1 ? 1 : s);
  ni_say(stderr, "\r\x1b[K%s: %.0f %% (%s of %s)%s", p->phase,
         p->all ? 100.0 * (double)p->done / (double)p->all : 0.0, done, all, left);
  fflush(stderr);
  p->shown = true;
}

static void show_json(const struct ni_progress *p, uint64_t now) {
  double s = estimate_seconds_left(p, now);
  ni_say(
      stderr,
      "{\"phase\":\"%s\",\"ranges_done\":%llu,\"ranges\":%llu,\"%s_done\":%llu,\"%s\":%llu,\"seconds_left\":",
      p->phase, (unsigned long long)p->parts_done, (unsigned long long)p->parts, p->bytes ? "bytes" : "items",
      (unsigned long long)p->done, p->bytes ? "bytes" : "items", (unsigned long long)p->all);
  if (s >= 0)
    ni_say(stderr, "%.1f}\n", s);
  else
    ni_say(stderr, "null}\n");
}

void ni_progress_begin(struct ni_progress *p, const char *phase, uint64_t all, bool bytes, uint64_t parts) {
  if (!p)
    return;
  p->phase = phase;
  p->bytes = bytes;
  p->done = p->parts_done = 0;
  p->all = all;
  p->parts = parts;
  p->began_ns = p->told_ns = ni_now_ns(CLOCK_MONOTONIC);
  if (!p->first_ns)
    p->first_ns = p->began_ns;
  if (p->mode == NI_PROGRESS_AUTO && !isatty(2))
    p->mode = NI_PROGRESS_NONE;
}

void ni_progress_add(struct ni_progress *p, uint64_t done, uint64_t parts) {
  if (!p || p->mode == NI_PROGRESS_NONE || !p->phase)
    return;
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  pthread_mutex_lock(&p->lock);
  p->done = p->done + done < p->all ? p->done + done : p->all;
  p->parts_done += parts;
  bool due = now - p->told_ns >= BETWEEN_NS;
  if (p->mode == NI_PROGRESS_JSON ? parts || due : due && now - p->first_ns >= QUIET_NS) {
    p->told_ns = now;
    if (p->mode == NI_PROGRESS_JSON)
      show_json(p, now);
    else
      show_line(p, now);
  }
  pthread_mutex_unlock(&p->lock);
}

void ni_progress_end(struct ni_progress *p) {
  if (!p)
    return;
  if (p->shown)
    ni_say(stderr, "\r\x1b[K");
  p->shown = false;
  p->phase = NULL;
}
