#include "weather.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "test/jobs/draw.h"
#include "test/jobs/plan/fault.h"
#include "test/jobs/plan/layout.h"
#include "test/jobs/plan/program.h"

static double draw(const struct nj_job *job, int what) {
  return nj_unit(nj_draw(job->kept, NJ_DRAW_WEATHER, (uint64_t)what, 0, 0));
}
static bool chance(const struct nj_job *job, int what, double share) { return draw(job, what) < share; }
static double between(const struct nj_job *job, int what, double low, double high) {
  return low + (high - low) * draw(job, what);
}
/* Evenly by the logarithm. */
static double scaled(const struct nj_job *job, int what, double low, double high) {
  return low * pow(high / low, draw(job, what));
}

static bool has_pipeline(const struct nj_job *job) { return strchr("BCPL", job->layout) != NULL; }
static bool has_tensor(const struct nj_job *job) { return strchr("ABCPL", job->layout) != NULL; }

bool nj_weather_set(struct nj_job *job, const char *text) {
  struct nj_weather *w = &job->weather;
  const char *value = strchr(text, '=');
  size_t n = value ? (size_t)(value - text) : strlen(text);
  bool role = n >= 5 && memcmp(text, "alone", 5) == 0; /* its value is a letter */
  double x = value && !role ? strtod(value + 1, NULL) : 1;
#define IS(name) (n == strlen(name) && memcmp(text, name, n) == 0)
  if (IS("missing"))
    w->missing = (int)x;
  else if (IS("host-missing")) {
    w->whole_host = true;
    w->missing = NJ_HOST_GPUS;
  } else if (IS("sample"))
    w->sample = (int)x;
  else if (IS("min-bytes"))
    w->min_bytes = x;
  else if (IS("no-p2p"))
    w->no_p2p = true;
  else if (IS("alone") && value)
    w->alone = value[1];
  else if (IS("alone-one") && value) {
    w->alone = value[1];
    w->alone_one = true;
  } else if (IS("symmetric"))
    w->symmetric = true;
  else if (IS("tokens"))
    w->tokens = x;
  else if (IS("experts"))
    w->experts = x;
  else if (IS("stages"))
    w->stages = true;
  else if (IS("other-job"))
    w->beside = NJ_OTHER_JOB;
  else if (IS("earlier-attempt"))
    w->beside = NJ_EARLIER_ATTEMPT;
  else
    return false;
#undef IS
  return x > 0;
}

/* Clocks and stamps: all jobs have some of it. */
static void draw_clocks(const struct nj_job *job, struct nj_weather *w) {
  static const int timers[] = {32, 32, 32, 64, 128, 256, 512, 1000, 1024, 1024};
  double far = draw(job, 13);
  if (w->overlap_ns <= 0 && chance(job, 10, 0.8))
    w->overlap_ns = scaled(job, 11, 100, 100e3);
  if (w->timer_ns == 0)
    w->timer_ns = timers[(int)(draw(job, 12) * 10)];
  if (w->drift_ppm == NJ_DRIFT_PPM)
    w->drift_ppm = scaled(job, 14, 1, 100);
  if (w->offset_s == NJ_OFFSET_S && far >= 0.5)
    w->offset_s = far < 0.75 ? scaled(job, 15, 0.01, 5) : scaled(job, 15, 5, 400);
  if (w->step_s == 0 && chance(job, 16, 0.15))
    w->step_s = scaled(job, 17, 0.01, 10) * (chance(job, 18, 0.5) ? 1 : -1);
}

/* What is not in the logs: of most jobs nothing, of the others one thing. */
static void draw_absent(const struct nj_job *job, struct nj_weather *w) {
  static const char with_pipeline[] = "tdp", with_tensor[] = "td", experts[] = "ew";
  bool asked = w->missing || w->sample > 1 || w->min_bytes > 0 || w->no_p2p || w->alone;
  double what = draw(job, 20);
  if (asked || what >= 0.4)
    return;
  if (what < 0.12) {
    w->whole_host = chance(job, 21, 0.25);
    w->missing = w->whole_host ? NJ_HOST_GPUS : 1 + (int)(4 * draw(job, 22));
  } else if (what < 0.2)
    w->sample = (int)scaled(job, 24, 2, 17);
  else if (what < 0.28)
    w->min_bytes = chance(job, 26, 0.5) ? 65536 : 1 << 20;
  else if (what < 0.34)
    w->no_p2p = has_pipeline(job);
  else {
    w->alone_one = chance(job, 29, 0.33);
    w->alone = has_pipeline(job) ? with_pipeline[(int)(3 * draw(job, 30))]
        : has_tensor(job)        ? with_tensor[(int)(2 * draw(job, 30))]
        : job->layout == 'M'     ? experts[(int)(2 * draw(job, 30))]
                                 : 'w';
  }
}

void nj_weather_draw(struct nj_job *job) {
  struct nj_weather *w = &job->weather;
  draw_clocks(job, w);
  draw_absent(job, w);
  if (has_tensor(job) && chance(job, 40, 0.15))
    w->symmetric = true;
  if (w->tokens <= 0 && chance(job, 41, 0.3))
    w->tokens = scaled(job, 42, 0.005, 0.06);
  if (w->experts <= 0 && job->layout == 'M' && chance(job, 43, 0.5))
    w->experts = scaled(job, 44, 0.03, 0.25);
  if (has_pipeline(job) && chance(job, 45, 0.35))
    w->stages = true;
  if (job->steps <= 0 && job->layout != 'L' && chance(job, 46, 0.12))
    job->steps = (int)scaled(job, 47, 20, 61);
  if (w->beside == NJ_ALONE && chance(job, 48, 0.12))
    w->beside = chance(job, 49, 0.5) ? NJ_OTHER_JOB : NJ_EARLIER_ATTEMPT;
}

/* Any of them, or those of one host. */
static void place_missing(struct nj_job *job) {
  const struct nj_weather *w = &job->weather;
  int first = w->whole_host ? NJ_HOST_GPUS * (int)(draw(job, 2) * job->hosts) : 0,
      of = w->whole_host ? NJ_HOST_GPUS : job->world;
  for (int i = 0, gone = 0; gone < w->missing && i < 1000; i++) {
    int r = first + (w->whole_host ? i % of : (int)(draw(job, 100 + i) * of));
    gone += !job->missing[r];
    job->missing[r] = true;
  }
}

static void place_alone(struct nj_job *job) {
  const struct nj_weather *w = &job->weather;
  int n = 0, chosen = -1;
  for (int k = 0; k < job->n_comms; k++)
    n += job->comm[k].role == w->alone;
  if (n == 0)
    return; /* the layout has none */
  int which = (int)(draw(job, 3) * n);
  for (int k = 0; k < job->n_comms; k++) {
    bool its = job->comm[k].role == w->alone;
    if (its && which-- == 0)
      chosen = k;
    job->unrecorded[k] = !its || (w->alone_one && chosen != k);
  }
  for (int r = 0; r < job->world; r++) { /* a process without a communicator writes nothing */
    bool any = false;
    for (int i = 0; i < job->rank[r].n_comms; i++)
      any = any || !job->unrecorded[job->rank[r].comm[i]];
    if (!any)
      job->missing[r] = true;
  }
}

void nj_weather_place(struct nj_job *job) {
  struct nj_weather *w = &job->weather;
  job->missing = nj_more(NULL, (unsigned)job->world * sizeof *job->missing);
  job->unrecorded = nj_more(NULL, (unsigned)job->n_comms * sizeof *job->unrecorded);
  memset(job->missing, 0, (unsigned)job->world * sizeof *job->missing);
  memset(job->unrecorded, 0, (unsigned)job->n_comms * sizeof *job->unrecorded);
  w->step_host = (int)(draw(job, 0) * job->hosts);
  w->step_at = 0.25 + 0.5 * draw(job, 1);
  if (w->missing >= job->world)
    w->missing = job->world - 1;
  if (w->missing)
    place_missing(job);
  if (w->alone)
    place_alone(job);
}

static double write_alone(struct nj_job *job, const char *dir) {
  struct nj_lines *lines = nj_lines_open(job, dir);
  struct nj_watch watch = {.context = lines, .done = nj_lines_done};
  double ns = nj_run(job, 0, NULL, &watch);
  nj_lines_close(lines, ns);
  return ns;
}

/* The same job before it was begun again: without its cause, shorter, half of the time killed. */
static void earlier_attempt(struct nj_job *job, struct nj_job *other) {
  *other = (struct nj_job){
      .layout = job->layout, .kind = job->kind, .size = job->size, .seed = job->seed, .slower = job->slower};
  other->noise = other->kept = ni_mix(job->noise ^ 0x5eed);
  other->steps = (int)fmax(10, job->steps * between(job, 4, 0.3, 0.7));
  other->place = (struct nj_place){.pid = 3000, .attempt = 0, .cut = chance(job, 5, 0.5)};
  job->place.attempt = 1;
}

/* Another job: on the same hosts or not, at the same time or after it. */
static void other_job(struct nj_job *job, struct nj_job *other, double without_ns) {
  static const char layouts[] = "ABFD";
  bool same = chance(job, 6, 0.5), after = chance(job, 7, 0.3);
  *other = (struct nj_job){.layout = layouts[(int)(4 * draw(job, 8))], .seed = job->seed + 7919, .slower = 1};
  other->noise = other->kept = other->seed;
  other->steps = (int)between(job, 9, 40, 150);
  other->place = (struct nj_place){.pid = 6000, .host = same ? 0 : job->hosts, .attempt = -1};
  other->place.begin_ns = after ? without_ns * 2 + 30e9 : without_ns * between(job, 60, 0, 0.6);
  other->place.no_job_id = job->place.no_job_id = chance(job, 61, 0.5);
}

void nj_weather_beside(struct nj_job *job, double without_ns, const char *dir) {
  static struct nj_job *other; /* what it holds lives to the end, as the job's own */
  if (job->weather.beside == NJ_ALONE)
    return;
  other = nj_more(NULL, sizeof *other);
  if (job->weather.beside == NJ_OTHER_JOB)
    other_job(job, other, without_ns);
  else
    earlier_attempt(job, other);
  other->weather = job->weather;
  other->weather.step_s = 0; /* told of one job alone */
  other->weather.missing = 0;
  other->weather.alone = 0;
  other->clocks = job->clocks;
  other->epoch = job->epoch;
  nj_layout(other);
  nj_program(other);
  nj_weather_place(other);
  double ns = write_alone(other, dir);
  if (job->weather.beside == NJ_EARLIER_ATTEMPT)
    job->place.begin_ns = ns + 60e9;
}
