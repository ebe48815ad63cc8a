#include "say.h"

#include <inttypes.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "say_fate.h"
#include "say_knot.h"
#include "words.h"

#define NAMED 4 /* so many waits and knots are told one by one */
#define SECOND_NS UINT64_C(1000000000)
/* when everything that was read is older, the answer says of when it is */
#define OLD_NS UINT64_C(60000000000)
/* what was so at that time before the answer is so now: boxes are read one after the other */
#define NOW_NS UINT64_C(2000000000)

static void say_subject(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  if (k->kind == NI_KIND_P2P)
    fputs("Send/Recv", f);
  else
    ni_hang_say_op(f, v, &k->op);
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
  for (size_t i = 0; i < v->n; i++)
    n += v->knot[i].ring == ring;
  ni_say(f, "deadlock of %zu communicators: ", n);
  for (size_t i = 0, told = 0; i < v->n && told < NAMED; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    if (k->ring != ring)
      continue;
    if (told++)
      fputs("; ", f);
    say_about(f, v, k);
  }
}

/* Copies and logs may be of yesterday. */
static void say_as_of(FILE *f, const struct ni_hang_verdict *v) {
  if (v->wall_ns < v->now_ns + OLD_NS)
    return;
  fputs("; as of ", f);
  ni_hang_say_when(f, v, v->now_ns);
}

/* Is that how it stands now? A log says how it stood when its last line was written. */
static bool is_now(const struct ni_hang_verdict *v, uint64_t ns) {
  return v->wall_ns && v->wall_ns < ns + NOW_NS;
}

void ni_hang_say_still(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  bool over = v->fate.over || k->past;
  ni_say(f, "nothing %s moved for ", over ? "had" : "has");
  ni_hang_say_span(f, k->pending_ns);
  if (over || is_now(v, k->until_ns))
    return;
  fputs(" as of ", f);
  ni_hang_say_when(f, v, k->until_ns);
}

/* A replay hangs, or nobody asks for the next: cause and idleness look alike. */
static void say_quiet(FILE *f, const struct ni_hang_verdict *v, uint64_t ns) {
  const struct ni_hang_quiet *q = &v->quiet;
  char every[32];
  fputs("; quiet for ", f);
  ni_hang_say_span(f, ns);
  fputs(" since ", f);
  ni_hang_say_op(f, v, &q->op);
  fputs(" of communicator ", f);
  ni_hang_say_comm(f, q->any);
  ni_say(f, ", which all of its ranks (%zu) have replayed from a CUDA graph", q->ranks);
  if (q->every_ns)
    ni_say(f, " (every %s before)", ni_duration_text((double)q->every_ns / 1e3, every));
  fputs(": NCCL does not show its kernel, so whether it hangs there or is idle cannot be told", f);
}

/* Nobody waits, or hardly: since when nothing was called, if that is long. */
static void say_idle(FILE *f, const struct ni_hang_verdict *v) {
  uint64_t idle = v->fate.moved_ns && v->now_ns > v->fate.moved_ns ? v->now_ns - v->fate.moved_ns : 0;
  say_as_of(f, v);
  if (idle < NI_HANG_GRACE_NS || ni_hang_first(v))
    return;
  if (ni_hang_is_quiet(v)) {
    say_quiet(f, v, idle);
    return;
  }
  fputs("; nothing is in flight, the last operation that was seen is ", f);
  ni_hang_say_span(f, idle);
  fputs(" old", f);
}

/* A wait that is no hang, behind what the job is like. */
static void say_waiting(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_knot *first = ni_hang_first(v);
  ni_hang_say_job(f, v);
  if (!first || first->pending_ns < SECOND_NS) {
    say_idle(f, v);
    return;
  }
  fputs("; waited for longest", f);
  if (!is_now(v, first->until_ns))
    ni_hang_say_when((fputs(" as of ", f), f), v, first->until_ns);
  ni_say(f, ", %" PRIu64 " s (a hang from %" PRIu64 " s on): ", first->pending_ns / SECOND_NS,
         first->limit_ns / SECOND_NS);
  say_about(f, v, first);
}

static void say_not_yet(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_knot *first = ni_hang_first(v);
  ni_say(f, " (a hang from %" PRIu64 " s on): ", first->limit_ns / SECOND_NS);
  if (first->kind == NI_KIND_P2P)
    fputs("Send/Recv", f);
  else
    ni_hang_say_op(f, v, &first->op);
  fputs(" of ", f);
  ni_hang_say_comm(f, first->any);
  fputs(", ", f);
  ni_hang_say_knot(f, v, first);
  if (!first->count[NI_HANG_NEVER] || !is_now(v, first->until_ns))
    ni_hang_say_still((fputs("; ", f), f), v, first);
  fputs("; ", f);
  ni_hang_say_job(f, v);
}

/* A job that is over, and that did not hang before: how its processes ended, and what was in flight then. */
static void say_over(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_knot *k = ni_hang_first(v);
  size_t n = 0;
  for (size_t i = 0; i < v->n; i++)
    n += !v->knot[i].past;
  fputs(" (", f);
  ni_hang_say_job(f, v);
  fputs("): ", f);
  ni_hang_say_end(f, v);
  if (!k) {
    fputs(
        v->quiet.any
            ? "; nothing is known to have been in flight: the last operations were replays of a CUDA graph, "
              "of which NCCL does not show the kernels"
            : "; nothing was in flight",
        f);
    return;
  }
  fputs("; in flight then: ", f);
  if (k->ring)
    say_ring(f, v, k->ring);
  else
    say_about(f, v, k);
  if (n > 1)
    ni_say(f, "; and operations of %zu more communicator%s", n - 1, ni_plural(n - 1, "", "s"));
}

static void say_hang(FILE *f, const struct ni_hang_verdict *v) {
  ni_hang_say_cause((fputs(": ", f), f), v);
  if (!v->fate.over)
    return;
  fputs("; by now ", f);
  ni_hang_say_end(f, v);
}

static void say_cannot_tell(FILE *f, const struct ni_hang_verdict *v) {
  fputs(": ", f);
  ni_hang_say_cannot_tell(f, v);
  if (v->fate.over) {
    fputs("; of what was seen ", f);
    ni_hang_say_end(f, v);
    return;
  }
  fputs("; in what was seen nothing hangs: ", f);
  say_waiting(f, v);
}

void ni_hang_say_cause(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_knot *k = ni_hang_first(v);
  if (!k)
    return;
  if (k->ring)
    say_ring(f, v, k->ring);
  else
    say_about(f, v, k);
  fputs("; ", f);
  ni_hang_say_still(f, v, k);
}

void ni_hang_say(FILE *f, const struct ni_hang_verdict *v) {
  ni_put_text(f, ni_hang_words_of(v->answer)->head);
  switch (v->answer) {
    case NI_HANG_CERTAIN:
    case NI_HANG_LIKELY:
      say_hang(f, v);
      return;
    case NI_HANG_NOT_YET:
      say_not_yet(f, v);
      return;
    case NI_HANG_NO_HANG:
      say_waiting((fputs(": ", f), f), v);
      return;
    case NI_HANG_CANNOT_TELL:
      say_cannot_tell(f, v);
      return;
    case NI_HANG_ALL_DEAD:
    case NI_HANG_ALL_ENDED:
      say_over(f, v);
      return;
    default:
      fputs(": no log and no black box says anything", f);
  }
}

bool ni_hang_say_missing(FILE *f, const struct ni_hang_verdict *v, size_t i) {
  const struct ni_hang_knot *k = v->answer == NI_HANG_LIKELY ? &v->knot[0] : NULL;
  size_t at = 0;
  if (!k)
    return false;
  if (!v->second_look && !ni_hang_is_final(v) && at++ == i) {
    fputs(v->fate.over ? "two looks 10 s or more apart, from before the end (`snapshot`)"
                       : "a second look, 10 s or more after this one, that agrees",
          f);
    return true;
  }
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
    ni_say(f, "sight: %zu of the ranks that are missing also run operations whose kernels NCCL does not show",
           k->blind);
    return true;
  }
  if (k->unsure && at++ == i) {
    fputs("common numbers: the ranks' operations could not be matched one to one", f);
    return true;
  }
  return false;
}
