/* May two runs be compared, and what the comparison says. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

#include "diff.h"
#include "judge.h"

const char *const ni_diff_kind_names[NI_DIFF_KINDS] = {"step", "host", "rank", "role", "link", "function"};
const char *const ni_diff_verdict_names[] = {"same", "unclear", "slower", "faster"};

static void __attribute__((format(printf, 2, 3))) add_note(struct ni_diff *d, const char *format, ...) {
  va_list args;
  if (d->n_notes == sizeof d->note / sizeof *d->note)
    return;
  va_start(args, format);
  (void)vsnprintf(d->note[d->n_notes++], sizeof *d->note, format, args);
  va_end(args);
}

/* Did one run take a period of another length for a step? */
static bool has_other_steps(const struct ni_diff *d) {
  double a = d->run[0].per_step, b = d->run[1].per_step;
  return a > 0 && b > 0 && fabs(a - b) > 0.05 * fmax(a, b);
}

static const char *name_timer(const struct ni_diff_run *r) {
  return r->timings & 1u << NI_TIMING_KERNEL_GPU ? "GPU" : "CPU";
}

/* false: they cannot be compared. */
static bool is_comparable(const struct ni_diff *d, char *why, size_t cap) {
  const struct ni_diff_run *a = &d->run[0], *b = &d->run[1];
  bool stated = a->world_size > 0 && b->world_size > 0;
  int64_t n_a = stated ? a->world_size : (int64_t)a->ranks, n_b = stated ? b->world_size : (int64_t)b->ranks;
  for (const struct ni_diff_run *r = a; r <= b; r++) {
    if (strcmp(r->from, "counters") == 0)
      snprintf(why, cap,
               "%s: counters over time, which are not compared: give two sweeps of each run, BEFORE,AFTER, "
               "or what `counters summarize --json` wrote of them",
               r->path);
    else if (!r->n)
      snprintf(why, cap, "%s: nothing in it can be compared%s%s: want 20 operations of one function and size",
               r->path, *r->trouble ? ": " : "", r->trouble);
    else if ((int64_t)r->ranks * 2 < r->world_size)
      snprintf(why, cap,
               "%s: %u of %d ranks are there: too much is missing. `nccl-inspector check` says what", r->path,
               r->ranks, r->world_size);
    else if (r->steps && r->bins < NI_DIFF_STEPS)
      snprintf(why, cap, "%s: %u steps: want %d or more, or a summary.json made with fewer options", r->path,
               r->steps, NI_DIFF_STEPS + 2);
    else
      continue;
    return false;
  }
  if (n_a != n_b)
    snprintf(why, cap, "A has %" PRId64 " ranks and B %" PRId64 ": compare runs of the same size", n_a, n_b);
  else if (*a->layout && *b->layout && strcmp(a->layout, b->layout) != 0)
    snprintf(why, cap,
             "another layout: A has communicators %s ranks, B %s; compare runs with the same parallel sizes",
             a->layout, b->layout);
  else if (!(a->timings & b->timings))
    snprintf(why, cap, "A is timed by the %s and B by the %s: record both alike (NCCL_PROFILE_EVENT_MASK)",
             name_timer(a), name_timer(b));
  else
    return true;
  return false;
}

static void add_notes(struct ni_diff *d) {
  static const char *const names[NI_DIFF_FACTS] = {
      "NCCL", "steps:", "other hosts:", "other algorithms or protocols:"};
  const struct ni_diff_run *a = &d->run[0], *b = &d->run[1];
  for (const struct ni_diff_run *r = a; r <= b; r++) {
    char which = "AB"[r - a];
    if (*r->trouble)
      add_note(d, "%c is incomplete: %s", which, r->trouble);
    if (!r->bins)
      add_note(d, "%c has no steps (%s): %s are compared, and only what changed by 5 %% or more counts",
               which, *r->why_no_steps ? r->why_no_steps : r->from,
               strcmp(r->from, "roll-ups") == 0 ? "means" : "medians");
  }
  if (has_other_steps(d))
    add_note(d,
             "a step has %.0f operations of a rank in A, %.0f in B: steps are not compared, and only what "
             "changed by 5 %% or more counts",
             a->per_step, b->per_step);
  for (int i = 0; i < NI_DIFF_FACTS; i++)
    if (*a->fact[i] && *b->fact[i] && strcmp(a->fact[i], b->fact[i]) != 0)
      add_note(d, "%s %s in A, %s in B", names[i], a->fact[i], b->fact[i]);
}

/*
 * The change that makes up most of a step. A host is named instead of its ranks, and all ranks instead of
 * hosts.
 */
static const struct ni_diff_row *find_cause(const struct ni_diff *d) {
  const struct ni_diff_row *cause = NULL, *end = d->row + d->changed;
  for (const struct ni_diff_row *r = d->row; r < end; r++)
    if (r->item[0]->kind != NI_DIFF_STEP && (!cause || fabs(r->step_us) > fabs(cause->step_us)))
      cause = r;
  for (const struct ni_diff_row *r = d->row; cause && r < end; r++) {
    const struct ni_diff_item *of = r->item[0], *now = cause->item[0];
    const bool is_wider = of->kind == NI_DIFF_HOST && now->kind <= NI_DIFF_RANK && !ni_diff_is_all(now);
    const bool has_it = ni_diff_is_all(of) || now->like == of->like;
    if (is_wider && has_it && r->change / cause->change > 0.6)
      cause = r;
  }
  return cause;
}

static void say_verdict(struct ni_diff *d) {
  const struct ni_diff_row *s = ni_diff_step(d, NI_DIFF_MEAN), *t = ni_diff_step(d, NI_DIFF_TYPICAL),
                           *cause = find_cause(d);
  char *out = d->verdict;
  size_t cap = sizeof d->verdict;
  const bool is_unsaid = !s || s->verdict < NI_DIFF_SLOWER;
  const bool is_larger = t && s && t->verdict >= NI_DIFF_SLOWER && fabs(t->change) > fabs(s->change);
  if (t && (is_unsaid || is_larger))
    s = t;
  double a = s ? s->item[0]->value / 1e3 : 0, b = s ? s->item[1]->value / 1e3 : 0;
  if (s && s->verdict >= NI_DIFF_SLOWER)
    snprintf(out, cap, "B is %.1f %% %s than A (%.1f to %.1f %%): %.4g ms instead of %.4g ms a step",
             100 * fabs(s->change), ni_diff_verdict_names[s->verdict],
             100 * (s->change > 0 ? s->low : -s->high), 100 * (s->change > 0 ? s->high : -s->low), b, a);
  else if (s)
    snprintf(out, cap, "%s: %.4g ms and %.4g ms a step (%+.1f %%, %+.1f to %+.1f %%)",
             s->verdict == NI_DIFF_SAME ? "B takes as long as A" : "Whether B differs from A is not certain",
             b, a, 100 * s->change, 100 * s->low, 100 * s->high);
  else
    snprintf(out, cap, "%zu of %zu functions and sizes changed by 5 %% or more", d->changed, d->n);
  if (!cause)
    return;
  size_t n = strlen(out);
  const bool is_of_ranks = cause->item[0]->kind == NI_DIFF_RANK || cause->item[0]->kind == NI_DIFF_HOST;
  const char *verb = cause->item[0]->kind == NI_DIFF_FUNC ? "takes" : "take";
  if (is_of_ranks)
    verb = ni_diff_is_all(cause->item[0]) ? "compute" : "computes";
  snprintf(out + n, cap - n, "; %s %s %.1f %% %s", cause->item[1]->name, verb, 100 * fabs(cause->change),
           cause->change > 0 ? "longer" : "less long");
}

int ni_diff_pair(struct ni_diff *d, char *why, size_t cap) {
  if (!is_comparable(d, why, cap))
    return -EINVAL;
  d->blind = !d->run[0].bins || !d->run[1].bins || has_other_steps(d);
  int e = ni_diff_judge(d);
  if (e == 0 && d->n == 0) {
    snprintf(why, cap, "no function and size is in both runs 20 times or more, timed alike (A: %s, B: %s)",
             d->run[0].from, d->run[1].from);
    return -EINVAL;
  }
  if (e < 0)
    return e;
  add_notes(d);
  say_verdict(d);
  return 0;
}

void ni_diff_free(struct ni_diff *d) {
  for (struct ni_diff_run *r = d->run; r < d->run + 2; r++) {
    NI_EACH(struct ni_diff_item, i, r->item, r->n) {
      free(i->x);
      free(i->place);
    }
    free(r->item);
  }
  for (int i = 0; i < 2; i++)
    ni_digest_free(&d->steps[i]);
  free(d->row);
  free(d->group);
}
