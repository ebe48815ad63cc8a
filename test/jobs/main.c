/*
 * ni-jobs: logs of a simulated training job with a planted cause, and the truth about it. docs/verdicts.md
 * tells the model.
 *   ni-jobs --layout A --kind late --size 10 --seed 7 --out DIR
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test/jobs/model/exposed.h"
#include "test/jobs/draw.h"
#include "test/jobs/out/gz_out.h"
#include "test/jobs/out/lines.h"
#include "test/jobs/out/truth.h"
#include "test/jobs/out/weather.h"
#include "test/jobs/plan/fault.h"
#include "test/jobs/plan/layout.h"
#include "test/jobs/plan/program.h"

#define TRIES 16 /* strengths tried for a cost */

static void usage(FILE *f) {
  fprintf(f,
          "Usage: ni-jobs --layout A --kind late [--size 10] [--seed 7] --out DIR\n"
          "Logs of a simulated training job with a planted cause, and DIR/truth.json. docs/verdicts.md tells "
          "the model.\n\n"
          "  --layout X    A TP 8, DP 4; B TP 8, PP 2, DP 2; C TP 4, PP 4, DP 2; P as C, stages two a host;\n"
          "                F FSDP; D DDP; M experts; L 1,024 ranks\n"
          "  --kind NAME   ");
  for (int i = 0; i < NJ_KINDS; i++)
    fprintf(f, "%s%s", nj_kind_names[i],
            i == NJ_KINDS - 1 ? "\n"
                : i % 9 == 8  ? ",\n                "
                              : ", ");
  fprintf(
      f,
      "  --size N      strength: %% of compute, times slower, or ms, as the kind has it\n"
      "  --cost A..B   instead: the strength with which the job loses A to B %% of its time (exit 3: there "
      "is none)\n"
      "  --seed N      of all that is drawn\n"
      "  --draw N      the same job once more: other noise, clocks, GPUs and names\n"
      "  --again N     the same, but weather, names and what is left out stay\n"
      "  --subject R   the (first) cause is another one's: rank R's, or its host's, stage's, replica's\n"
      "  --subject R,1 ... the second cause; --subject none: there is no cause\n"
      "  --strength X  of the first cause, as truth.json has it, instead of a search; a second one's as much "
      "stronger\n"
      "  --stored      logs are not compressed: quicker to make and to read\n"
      "  --slower X    all compute takes X times as long\n"
      "  --steps N     instead of the layout's\n"
      "Weather, which changes the logs and not the job:\n"
      "  --overlap-us X       stamps of a GPU's kernels are moved by X, so that some overlap (0.1 to 300)\n"
      "  --timer-ns N         they are whole multiples of N (32 to 1024)\n"
      "  --drift-ppm X        hosts' clocks go wrong by X at most; 20\n"
      "  --host-offset-s X    ... are off by X at most; 0.002\n"
      "  --clock-step-s X     one host's clock steps by X (or -X) in the middle half of the run\n"
      "  --with NAME[=N]      one of missing=RANKS, host-missing, sample=N, min-bytes=N, no-p2p,\n"
      "                       alone=ROLE, alone-one=ROLE, symmetric, tokens=SHARE, experts=SHARE, stages,\n"
      "                       other-job, earlier-attempt\n"
      "  --weather            all of it by chance, as real logs vary; what is asked for as well stays\n"
      "\n"
      "  --out DIR     made where it is not there; without it nothing is written, and the costs are told\n");
}

static int fail(const char *what, const char *value) {
  fprintf(stderr, "ni-jobs: %s %s (ni-jobs --help)\n", what, value);
  return 64;
}

struct request {
  double low, high; /* cost in percent; high 0: not asked */
  const char *out;
};

static double cost_of(const struct nj_job *job, double without) {
  double with = nj_run(job, ~0u, NULL, NULL);
  return 100 * (with - without) / with;
}

/* Scales the faults until the job loses what was asked for. Costs grow with strength, though not evenly. */
static bool reach(struct nj_job *job, const struct request *q, double without) {
  double aim = (q->low + q->high) / 2, scale = 1, low = 0, high = 0;
  for (int i = 0; i < TRIES; i++) {
    double cost = cost_of(job, without);
    if (cost >= q->low && cost <= q->high)
      return true;
    if (cost < aim)
      low = scale;
    else
      high = scale;
    double next = high == 0 ? scale * fmin(4, fmax(1.2, aim / fmax(cost, 0.1)))
        : low == 0          ? scale * fmax(0.1, aim / cost)
                            : (low + high) / 2;
    if (next > 1000)
      return false;
    nj_faults_scale(job, next / scale);
    scale = next;
  }
  return false;
}

struct watchers {
  struct nj_lines *lines;
  struct nj_truth *truth;
};

static void done(void *context, const struct nj_done *d) {
  struct watchers *w = context;
  if (w->lines)
    nj_lines_done(w->lines, d);
  nj_exposed_done(w->truth->exposed, d);
}
static void worked(void *context, int rank, int step, double from, double to) {
  nj_exposed_worked(((struct watchers *)context)->truth->exposed, rank, step, from, to);
}
static void incident(void *context, const struct nj_incident *i) {
  nj_truth_incident(((struct watchers *)context)->truth, i);
}

static int make(struct nj_job *job, const struct request *q) {
  double without = nj_run(job, 0, NULL, NULL);
  static struct nj_truth t; /* what it holds lives to the end */
  t = (struct nj_truth){
      .job = job, .without = without, .begin = nj_more(NULL, (unsigned)job->steps * sizeof(double))};
  struct watchers w = {.truth = &t};
  struct nj_watch watch = {.context = &w, .done = done, .worked = worked, .incident = incident};
  nj_faults_moments(job, without);
  job->weather.step_ns = job->weather.step_at * without;
  if (q->high > 0 && job->n_faults && !reach(job, q, without)) {
    fprintf(stderr, "ni-jobs: no strength of this cause costs %g to %g %%\n", q->low, q->high);
    return 3;
  }
  if (q->out && mkdir(q->out, 0777) != 0 && errno != EEXIST) {
    fprintf(stderr, "ni-jobs: %s: %s\n", q->out, strerror(errno));
    return 1;
  }
  if (q->out)
    nj_weather_beside(job, without, q->out);
  if (q->out)
    w.lines = nj_lines_open(job, q->out);
  t.exposed = nj_exposed_new(job);
  t.with = nj_run(job, ~0u, t.begin, &watch);
  if (w.lines)
    t.records = nj_lines_close(w.lines, t.with);
  for (int i = 0; i < job->n_faults; i++)
    t.cost[i] = t.with - (job->n_faults == 1 ? without : nj_run(job, ~(1u << i), NULL, NULL));
  if (q->out)
    nj_truth_write(&t, q->out);
  printf("%c %s seed %llu: %.3f s, without the cause %.3f s, cost %.2f %%, %llu records\n", job->layout,
         nj_kind_names[job->kind], (unsigned long long)job->seed, t.with / 1e9, without / 1e9,
         100 * (t.with - without) / t.with, (unsigned long long)t.records);
  return 0;
}

/* "2..5"; the dots belong to no number. */
static bool range(const char *text, struct request *q) {
  char low[16], *rest;
  const char *dots = strstr(text, "..");
  if (!dots || dots - text >= (int)sizeof low)
    return false;
  memcpy(low, text, (size_t)(dots - text));
  low[dots - text] = 0;
  q->low = strtod(low, &rest);
  if (*rest)
    return false;
  q->high = strtod(dots + 2, &rest);
  return !*rest && q->low > 0 && q->high > q->low && q->high <= 90;
}

static bool figure(const char *text, double low, double high, double *out) {
  char *rest;
  *out = strtod(text, &rest);
  return rest != text && !*rest && *out >= low && *out <= high;
}

struct subject {
  int rank, cause; /* -1: where it was drawn */
  bool nobody;     /* no cause at all */
};

/* "5", or "5,1" of the second cause, or "none". */
static bool subject_of(const char *text, struct subject *s) {
  s->nobody = strcmp(text, "none") == 0;
  if (s->nobody)
    return true;
  char *rest;
  const long rank = strtol(text, &rest, 10);
  const long cause = *rest == ',' ? strtol(rest + 1, &rest, 10) : 0;
  *s = (struct subject){.rank = (int)rank, .cause = (int)cause};
  return rest != text && !*rest && rank >= 0 && rank < 1 << 20 && (cause == 0 || cause == 1);
}

int main(int argc, char **argv) {
  enum { OVERLAP = 256, TIMER, DRIFT, OFFSET, STEP, WITH, WEATHER, AGAIN, SUBJECT, STRENGTH };
  static const struct option options[] = {
      {"overlap-us", 1, NULL, OVERLAP}, {"timer-ns", 1, NULL, TIMER},
      {"drift-ppm", 1, NULL, DRIFT},    {"host-offset-s", 1, NULL, OFFSET},
      {"clock-step-s", 1, NULL, STEP},  {"with", 1, NULL, WITH},
      {"weather", 0, NULL, WEATHER},    {"again", 1, NULL, AGAIN},
      {"subject", 1, NULL, SUBJECT},    {"strength", 1, NULL, STRENGTH},
      {"layout", 1, NULL, 'l'},         {"kind", 1, NULL, 'k'},
      {"size", 1, NULL, 's'},           {"cost", 1, NULL, 'c'},
      {"seed", 1, NULL, 'n'},           {"draw", 1, NULL, 'd'},
      {"stored", 0, NULL, 'z'},         {"slower", 1, NULL, 'x'},
      {"steps", 1, NULL, 't'},          {"out", 1, NULL, 'o'},
      {"help", 0, NULL, 'h'},           {NULL, 0, NULL, 0}};
  static struct nj_job job = {
      .layout = 'A',
      .size = -1,
      .slower = 1,
      .weather = {.drift_ppm = NJ_DRIFT_PPM, .offset_s = NJ_OFFSET_S}}; /* what it holds lives to the end */
  struct request q = {0};
  uint64_t draw = 0, again = 0;
  bool weather = false;
  struct subject subject = {.rank = -1};
  double strength = 0;
  for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
    char *rest = NULL;
    int kind = 0;
    switch (c) {
      case 'l':
        job.layout = *optarg;
        if (!*optarg || optarg[1] || !strchr(NJ_LAYOUTS, *optarg))
          return fail("there is no layout", optarg);
        break;
      case 'k':
        while (kind < NJ_KINDS && strcmp(optarg, nj_kind_names[kind]) != 0)
          kind++;
        if (kind == NJ_KINDS)
          return fail("there is no kind", optarg);
        job.kind = (enum nj_kind)kind;
        break;
      case 's':
        job.size = strtod(optarg, &rest);
        if (*rest || !(job.size > 0) || job.size > 1e6)
          return fail("no size:", optarg);
        break;
      case 'c':
        if (!range(optarg, &q))
          return fail("no range of percents such as 2..5:", optarg);
        break;
      case 'n':
        job.seed = strtoull(optarg, NULL, 10);
        break;
      case 'z':
        nj_out_level = 0;
        break;
      case 'd':
        draw = strtoull(optarg, NULL, 10);
        break;
      case 'x':
        job.slower = strtod(optarg, &rest);
        if (*rest || !(job.slower > 0.1 && job.slower < 10))
          return fail("no factor from 0.1 to 10:", optarg);
        break;
      case 't':
        job.steps = atoi(optarg);
        if (job.steps < 10 || job.steps > 100000)
          return fail("10 to 100000 steps, not", optarg);
        break;
      case OVERLAP:
        if (!figure(optarg, 0, 300, &job.weather.overlap_ns))
          return fail("no overlap of 0 to 300 us:", optarg);
        job.weather.overlap_ns *= 1e3;
        break;
      case TIMER:
        job.weather.timer_ns = atoi(optarg);
        if (job.weather.timer_ns < 1 || job.weather.timer_ns > 1024)
          return fail("no timer of 1 to 1024 ns:", optarg);
        break;
      case DRIFT:
        if (!figure(optarg, 0, 1000, &job.weather.drift_ppm))
          return fail("no drift of 0 to 1000 ppm:", optarg);
        break;
      case OFFSET:
        if (!figure(optarg, 0, 1e5, &job.weather.offset_s))
          return fail("no offset of 0 to 100000 s:", optarg);
        break;
      case STEP:
        if (!figure(optarg, -1e5, 1e5, &job.weather.step_s))
          return fail("no step of a clock:", optarg);
        break;
      case WITH:
        if (!nj_weather_set(&job, optarg))
          return fail("no weather:", optarg);
        break;
      case WEATHER:
        weather = true;
        break;
      case AGAIN:
        again = strtoull(optarg, NULL, 10);
        break;
      case SUBJECT:
        if (!subject_of(optarg, &subject))
          return fail("no rank, or rank,cause:", optarg);
        break;
      case STRENGTH:
        if (!figure(optarg, 1e-9, 1e12, &strength))
          return fail("no strength:", optarg);
        break;
      case 'o':
        q.out = optarg;
        break;
      case 'h':
        usage(stdout);
        return 0;
      default:
        usage(stderr);
        return 64;
    }
  }
  if (optind < argc)
    return fail("what is", argv[optind]);
  if (job.size < 0)
    job.size = nj_size_default(job.kind);
  if (nj_size_unit(job.kind) && *nj_size_unit(job.kind) == 'x' && job.size < 1)
    return fail("a factor below 1:", "--size");
  job.noise = job.kept = draw ? ni_mix(job.seed + 1) ^ draw : job.seed;
  if (again)
    job.noise = ni_mix(job.kept + 2) ^ again;
  job.clocks = job.noise;
  job.epoch = job.seed;
  job.place = (struct nj_place){.pid = 4000, .attempt = -1};
  if (weather)
    nj_weather_draw(&job);
  if (job.kind == NJ_TWO_JOBS)
    job.weather.beside = NJ_OTHER_JOB;
  if (job.kind == NJ_TWO_ATTEMPTS)
    job.weather.beside = NJ_EARLIER_ATTEMPT;
  nj_layout(&job);
  nj_program(&job);
  nj_weather_place(&job);
  const char *why = nj_faults(&job);
  if (why)
    return fail("not in this layout:", why);
  if (subject.nobody)
    job.n_faults = 0;
  if (subject.rank >= 0 && !nj_fault_move(&job, subject.cause, subject.rank))
    return fail("nobody can have this cause there:", "--subject");
  if (strength > 0 && job.n_faults > 0)
    nj_faults_scale(&job, strength * (nj_in_seconds(job.fault[0].kind) ? 1e9 : 1) / job.fault[0].x);
  return make(&job, &q);
}
