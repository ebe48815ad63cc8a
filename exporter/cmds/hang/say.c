#include "say.h"

#include <inttypes.h>

#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "say_fate.h"
#include "say_knot.h"
#include "words.h"

#define NAMED 4                      /* so many waits and knots are told one by one */
#define OLD_NS UINT64_C(60000000000) /* when everything that was read is older, the answer says of when it is */
#define NOW_NS UINT64_C(2000000000)  /* what was so at that time before the answer is so now: boxes are read one after the other */

static void say_subject(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  if (k->kind == NI_KIND_P2P) fputs("Send/Recv", f);
  else ni_hang_say_op(f, v, &k->op);
  fputs(" of communicator ", f);
  ni_hang_say_comm(f, k->any);
}

static void say_about(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  say_subject(f, v, k);
  fputs(": ", f);
  ni_hang_say_knot(f, v, k);
}

/* A ring of communicators that wait for each other. */
static void say_ring(FILE *f, const struct ni_hang_verdict *v, uint32_t ring) {
  size_t n = 0;
  for (size_t i = 0; i < v->n_hangs; i++) n += v->knot[i].ring == ring;
  ni_say(f, "deadlock of %zu communicators: ", n);
  for (size_t i = 0, told = 0; i < v->n_hangs && told < NAMED; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    if (k->ring != ring) continue;
    if (told++) fputs("; ", f);
    say_about(f, v, k);
  }
}

/* Of this run's knots the one that waits longest, of those that hardly wait the first; NULL: none. *n: how many there are. */
static const struct ni_hang_knot *longest_wait(const struct ni_hang_verdict *v, size_t *n) {
  const struct ni_hang_knot *longest = NULL;
  *n = 0;
  for (size_t i = 0; i < v->n; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    if (k->past) continue;
    ++*n;
    if (!longest || k->pending_ns / 1000000000u > longest->pending_ns / 1000000000u) longest = k;
  }
  return longest;
}

/* Copies and logs may be of yesterday. */
static void say_as_of(FILE *f, const struct ni_hang_verdict *v) {
  if (v->wall_ns < v->now_ns + OLD_NS) return;
  fputs("; as of ", f);
  ni_hang_say_when(f, v, v->now_ns);
}

/* Is that how it stands now? A log says how it stood when its last line was written. */
static bool is_now(const struct ni_hang_verdict *v, uint64_t ns) { return v->wall_ns && v->wall_ns < ns + NOW_NS; }

void ni_hang_say_still(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  bool over = v->fate.over || k->past;
  ni_say(f, "nothing %s moved for ", over ? "had" : "has");
  ni_hang_say_span(f, k->pending_ns);
  if (over || is_now(v, k->until_ns)) return;
  fputs(" as of ", f);
  ni_hang_say_when(f, v, k->until_ns);
}

static void say_waiting(FILE *f, const struct ni_hang_verdict *v) {
  size_t n;
  const struct ni_hang_knot *longest = longest_wait(v, &n);
  if (v->cannot_tell) {
    fputs("CANNOT TELL: ", f);
    ni_hang_say_cannot_tell(f, v);
    fputs("; in what was seen nothing hangs: ", f);
  } else {
    fputs("no hang: ", f);
  }
  ni_hang_say_job(f, v);
  if (!longest || longest->pending_ns < 1000000000u) say_as_of(f, v);
  if (!longest) {
    uint64_t idle = v->fate.moved_ns && v->now_ns > v->fate.moved_ns ? v->now_ns - v->fate.moved_ns : 0;
    if (idle >= NI_HANG_GRACE_NS) {
      fputs("; nothing is in flight, the last operation that was seen is ", f);
      ni_hang_say_span(f, idle);
      fputs(" old", f);
    }
    return;
  }
  if (longest->pending_ns < 1000000000u) return;
  fputs("; waited for longest", f);
  if (!is_now(v, longest->until_ns)) ni_hang_say_when((fputs(" as of ", f), f), v, longest->until_ns);
  ni_say(f, ", %" PRIu64 " s (a hang from %" PRIu64 " s on): ", longest->pending_ns / 1000000000u,
         v->after_ns / 1000000000u);
  say_about(f, v, longest);
}

/* A job that is over, and that did not hang before: how its processes ended, and what was in flight then. */
static void say_over(FILE *f, const struct ni_hang_verdict *v) {
  size_t n = 0;
  const struct ni_hang_knot *k = longest_wait(v, &n);
  ni_say(f, "%s (", v->fate.in[NI_HANG_DEAD] ? "DEAD" : "ENDED");
  ni_hang_say_job(f, v);
  fputs("): ", f);
  ni_hang_say_end(f, v);
  if (!k) {
    fputs("; nothing was in flight", f);
    return;
  }
  fputs("; in flight then: ", f);
  say_about(f, v, k);
  if (n > 1) ni_say(f, "; and operations of %zu more communicator%s", n - 1, ni_plural(n - 1, "", "s"));
}

void ni_hang_say(FILE *f, const struct ni_hang_verdict *v) {
  if (v->model->n_processes == 0) {
    fputs("no data: no log and no black box says anything", f);
    return;
  }
  if (v->answer == NI_HANG_NO_HANG) {
    if (v->fate.over) say_over(f, v);
    else say_waiting(f, v);
    return;
  }
  const struct ni_hang_knot *k = &v->knot[0];
  ni_say(f, "HANG (%s): ", v->answer == NI_HANG_CERTAIN ? "certain" : "likely");
  if (k->ring) say_ring(f, v, k->ring);
  else say_about(f, v, k);
  fputs("; ", f);
  ni_hang_say_still(f, v, k);
  if (!v->fate.over) return;
  fputs("; by now ", f);
  ni_hang_say_end(f, v);
}

bool ni_hang_say_missing(FILE *f, const struct ni_hang_verdict *v, size_t i) {
  const struct ni_hang_knot *k = v->n_hangs ? &v->knot[0] : NULL;
  size_t at = 0;
  if (!k) return false;
  if (!v->second_look && at++ == i)
    return fputs(v->fate.over ? "two looks 10 s or more apart, from before the end (`snapshot`)"
                              : "a second look, 10 s or more after this one, that agrees",
                 f),
           true;
  if (k->count[NI_HANG_NO_DATA] && at++ == i) {
    fputs("data of ", f);
    ni_hang_say_ranks(f, v, k, NI_HANG_NO_DATA);
    return true;
  }
  if (v->model->unreadable && at++ == i) {
    ni_say(f, "%" PRIu64 " file%s that could not be read, the first: %s", v->model->unreadable,
           ni_plural(v->model->unreadable, "", "s"), v->model->first_bad ? v->model->first_bad : "");
    return true;
  }
  if (k->blind && at++ == i) {
    ni_say(f, "sight: %zu of the ranks that are missing also run operations whose kernels NCCL does not show", k->blind);
    return true;
  }
  if (k->unsure && at++ == i) return fputs("common numbers: the ranks' operations could not be matched one to one", f), true;
  return false;
}
