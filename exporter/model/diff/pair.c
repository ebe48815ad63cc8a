/* May two runs be compared, and what the comparison says. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "judge.h"
#include "match.h"

const char *const ni_diff_kind_names[NI_DIFF_KINDS] = {"step", "host", "rank", "role", "link", "function"};
const char *const ni_diff_verdict_names[] = {"same", "unclear", "slower", "faster"};

static void __attribute__((format(printf, 2, 3))) note(struct ni_diff *d, const char *format, ...) {
  va_list args;
  if (d->n_notes == sizeof d->note / sizeof *d->note) return;
  va_start(args, format);
  (void)vsnprintf(d->note[d->n_notes++], sizeof *d->note, format, args);
  va_end(args);
}

/* A period of another length was taken for a step. */
static bool other_steps(const struct ni_diff *d) {
  double a = d->run[0].per_step, b = d->run[1].per_step;
  return a > 0 && b > 0 && fabs(a - b) > 0.05 * fmax(a, b);
}

/* false: they cannot be compared. */
static bool comparable(struct ni_diff *d, char *why, size_t cap) {
  const struct ni_diff_run *a = &d->run[0], *b = &d->run[1];
  *why = 0;
  for (int k = 0; k < 2 && !*why; k++) {
    const struct ni_diff_run *r = &d->run[k];
    if (!r->n)
      snprintf(why, cap, "%s: nothing in it can be compared%s%s: want 20 operations of one function and size", r->path,
               *r->trouble ? ": " : "", r->trouble);
    else if ((int64_t)r->ranks * 2 < r->world)
      snprintf(why, cap, "%s: %u of %d ranks are there: too much is missing. `nccl-inspector check` says what", r->path,
               r->ranks, r->world);
    else if (r->steps && r->bins < NI_DIFF_STEPS)
      snprintf(why, cap, "%s: %u steps: want %d or more, or a summary.json made with fewer options", r->path, r->steps,
               NI_DIFF_STEPS + 2);
  }
  if (*why) return false;
  int64_t size[2];
  for (int k = 0; k < 2; k++) size[k] = a->world > 0 && b->world > 0 ? d->run[k].world : (int64_t)d->run[k].ranks;
  if (size[0] != size[1])
    snprintf(why, cap, "A has %" PRId64 " ranks and B %" PRId64 ": compare runs of the same size", size[0], size[1]);
  else if (strcmp(a->layout, b->layout) != 0)
    snprintf(why, cap, "another layout: A has communicators %s ranks, B %s; compare runs with the same parallel sizes",
             a->layout, b->layout);
  else if (!(a->timings & b->timings))
    snprintf(why, cap, "A is timed by the %s and B by the %s: record both alike (NCCL_PROFILE_EVENT_MASK)",
             a->timings & 1u << NI_TIMING_KERNEL_GPU ? "GPU" : "CPU",
             b->timings & 1u << NI_TIMING_KERNEL_GPU ? "GPU" : "CPU");
  return !*why;
}

static void notes(struct ni_diff *d) {
  const struct ni_diff_run *a = &d->run[0], *b = &d->run[1];
  for (int k = 0; k < 2; k++)
    if (*d->run[k].trouble) note(d, "%s is incomplete: %s", k ? "B" : "A", d->run[k].trouble);
  for (int k = 0; k < 2; k++)
    if (!d->run[k].bins)
      note(d, "%s has no steps (%s): medians are compared, and only what changed by 5 %% or more counts", k ? "B" : "A",
           *d->run[k].why_no_steps ? d->run[k].why_no_steps : d->run[k].from);
  if (other_steps(d))
    note(d,
         "a step has %.0f operations of a rank in A, %.0f in B: steps are not compared, and only what changed by 5 %% "
         "or more counts",
         a->per_step, b->per_step);
  if (a->version != b->version && a->version >= 0 && b->version >= 0)
    note(d, "NCCL %d in A, %d in B", a->version, b->version);
  if (a->steps != b->steps && a->steps && b->steps) note(d, "%u steps in A, %u in B", a->steps, b->steps);
  if (*a->hosts && *b->hosts && strcmp(a->hosts, b->hosts) != 0)
    note(d, "other hosts: %s in A, %s in B", a->hosts, b->hosts);
  if (*a->algos && *b->algos && strcmp(a->algos, b->algos) != 0)
    note(d, "other algorithms or protocols: %s in A, %s in B", a->algos, b->algos);
}

static void say(struct ni_diff *d) {
  const struct ni_diff_row *s = ni_diff_step(d, NI_DIFF_MEAN), *t = ni_diff_step(d, NI_DIFF_TYPICAL), *cause = NULL;
  char *out = d->verdict;
  size_t cap = sizeof d->verdict;
  if (t && (!s || s->verdict < NI_DIFF_SLOWER || (t->verdict >= NI_DIFF_SLOWER && fabs(t->change) > fabs(s->change))))
    s = t;
  for (const struct ni_diff_row *r = d->row; r < d->row + d->changed; r++)
    if (r->item[0]->kind != NI_DIFF_STEP && (!cause || fabs(r->step_us) > fabs(cause->step_us))) cause = r;
  /* A host says it in place of its ranks, and all ranks in place of hosts. */
  for (size_t i = 0; i < d->changed && cause; i++) {
    const struct ni_diff_row *r = &d->row[i];
    bool own =
        cause->item[0]->kind <= NI_DIFF_RANK && r->item[0]->kind == NI_DIFF_HOST && !ni_diff_is_all(cause->item[0]);
    bool whole = ni_diff_is_all(r->item[0]) || cause->item[0]->like == r->item[0]->like;
    if (own && whole && r->change / cause->change > 0.6) cause = r;
  }
  if (s && s->verdict >= NI_DIFF_SLOWER)
    snprintf(out, cap, "B is %.1f %% %s than A (%.1f to %.1f %%): %.4g ms instead of %.4g ms a step",
             100 * fabs(s->change), ni_diff_verdict_names[s->verdict], 100 * (s->change > 0 ? s->low : -s->high),
             100 * (s->change > 0 ? s->high : -s->low), s->item[1]->value / 1e3, s->item[0]->value / 1e3);
  else if (s)
    snprintf(out, cap, "%s: %.4g ms and %.4g ms a step (%+.1f %%, %+.1f to %+.1f %%)",
             s->verdict == NI_DIFF_SAME ? "B takes as long as A" : "Whether B differs from A is not certain",
             s->item[1]->value / 1e3, s->item[0]->value / 1e3, 100 * s->change, 100 * s->low, 100 * s->high);
  else snprintf(out, cap, "%zu of %zu functions and sizes changed by 5 %% or more", d->changed, d->n);
  if (!cause) return;
  size_t n = strlen(out);
  bool own = cause->item[0]->kind == NI_DIFF_RANK || cause->item[0]->kind == NI_DIFF_HOST;
  snprintf(out + n, cap - n, "; %s %s %.1f %% %s", cause->item[1]->name,
           ni_diff_is_all(cause->item[0]) ? "compute"
           : own                          ? "computes"
                                          : "takes",
           100 * fabs(cause->change), cause->change > 0 ? "longer" : "less long");
}

int ni_diff_pair(struct ni_diff *d, char *why, size_t cap) {
  if (!comparable(d, why, cap)) return -EINVAL;
  d->blind = !d->run[0].bins || !d->run[1].bins || other_steps(d);
  int e = ni_diff_match(d);
  if (e == 0 && d->n == 0) {
    snprintf(why, cap, "no function and size is in both runs 20 times or more, timed alike");
    return -EINVAL;
  }
  if (e == 0) e = ni_diff_judge(d);
  if (e < 0) return e;
  notes(d);
  say(d);
  return 0;
}

void ni_diff_free(struct ni_diff *d) {
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; i < d->run[k].n; i++) {
      free(d->run[k].item[i].x);
      free(d->run[k].item[i].place);
    }
    free(d->run[k].item);
  }
  free(d->row);
  free(d->group);
}
