/*
 * The lines below the sentence: what it rests on, and what somebody at the terminal does now, with pids and
 * hosts.
 */
#include "say_next.h"

#include <inttypes.h>
#include <stdio.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/model/hang/judge/knot.h"
#include "say.h"
#include "words.h"

#define NAMED 4 /* so many processes are told one by one */

/* ---- why ---- */

static void say_limit(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  fputs("; a hang from ", f);
  ni_hang_say_span(f, k->limit_ns);
  fputs(" on", f);
  if (k->limit_ns < v->limit_ns && k->op.timeout_ns)
    fputs(": half of its own time-out", f);
  else if (k->limit_ns < v->limit_ns)
    fputs(": patience does not help", f);
  else if (v->limit_ns == v->after_ns)
    fputs(" (--stuck-after)", f);
  else
    ni_say(f, ": %d times the longest pause or operation that the job has had", NI_HANG_TIMES);
}

static void say_why(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_knot *k = ni_hang_first(v);
  size_t boxes = 0, dumps = 0, logs = 0;
  if (!k || (!ni_hang_is_hang(v) && v->answer != NI_HANG_NOT_YET))
    return;
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    const struct ni_hang_process *p = ni_hang_process_at(v, w);
    if (w->where == NI_HANG_NO_DATA)
      continue;
    if (w->member->dump)
      dumps++;
    else if (p->has_box)
      boxes++;
    else
      logs++;
  }
  const struct {
    size_t n;
    const char *by;
  } seen[] = {{boxes, "black box"}, {logs, "log"}, {dumps, "Flight Recorder dump"}};
  ni_say(f, "%s of its %s ranks were seen:", NI_COUNT(boxes + logs + dumps), NI_COUNT(k->any->who->n_ranks));
  const char *sep = " ";
  for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
    if (!seen[i].n)
      continue;
    ni_say(f, "%s%s by %s", sep, NI_COUNT(seen[i].n), seen[i].by);
    sep = ", ";
  }
  if (k->count[NI_HANG_GONE])
    ni_say(f, "; %s %s dead, and others lived on", NI_COUNT(k->count[NI_HANG_GONE]),
           ni_plural(k->count[NI_HANG_GONE], "process is", "processes are"));
  say_limit(f, v, k);
}

char *ni_hang_said_why(const struct ni_hang_verdict *v) {
  char *text;
  NI_HANG_SAID(text, say_why(f, v));
  return text;
}

/* ---- next ---- */

/* Says who the causes are, a few of them: "pid 4242 on node-a (rank 3)". */
static void say_causes(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  size_t told = 0, n = 0;
  for (size_t i = 0; i < k->n; i++)
    n += ni_hang_is_cause(k, &k->view[i]);
  for (size_t i = 0; i < k->n && told < NAMED; i++) {
    const struct ni_hang_view *w = &k->view[i];
    const struct ni_hang_process *p = ni_hang_process_at(v, w);
    if (!ni_hang_is_cause(k, w))
      continue;
    int32_t g = ni_hang_global(v, w);
    if (told++)
      fputs(told == n ? " and " : ", ", f);
    if (ni_hang_host(p))
      ni_say(f, "pid %" PRId64 " on %s (rank %d)", p->who->pid, p->who->host, g >= 0 ? g : w->rank);
    else
      ni_say(f, "rank %d", g >= 0 ? g : w->rank);
  }
  if (n > told)
    ni_say(f, " and %zu more", n - told);
}

/* Chooses what helps against the causes. */
static const char *choose_advice(const struct ni_hang_verdict *v, const struct ni_hang_knot *k) {
  bool over = v->fate.over; /* then no stack can be taken */
  if (k->odd)
    return "compare the shapes, types and roots there with the others': ";
  if (k->count[NI_HANG_OTHER_CALL])
    return "compare the code path there with the others': ";
  if (k->count[NI_HANG_GONE])
    return "dmesg (OOM, Xid) and standard error there, `nccl-inspector recover` for its last operations: ";
  if (k->count[NI_HANG_HAS_LEFT])
    return "its own log says why it ended or left earlier: ";
  if (over)
    return "its own log and standard error, dmesg (Xid) on its host: ";
  if (k->count[NI_HANG_NEVER])
    return "its stack (`py-spy dump --pid PID`) and its own log: ";
  if (k->count[NI_HANG_API_ONLY])
    return "its stack (gdb, py-spy): it is inside the call: ";
  if (k->count[NI_HANG_QUEUED] && k->count[NI_HANG_INSIDE])
    return "what else its GPU and its streams do: ";
  if (k->count[NI_HANG_NO_DATA])
    return "its black box or its log, and is its machine there? ";
  return "its GPU (Xid), its NIC, and its stack: ";
}

static void say_next(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_knot *k = ni_hang_first(v);
  size_t causes = 0;
  if (!k || (!ni_hang_is_hang(v) && v->answer != NI_HANG_NOT_YET))
    return;
  for (size_t i = 0; i < k->n; i++)
    causes += ni_hang_is_cause(k, &k->view[i]);
  if (causes) {
    ni_put_text(f, choose_advice(v, k));
    say_causes(f, v, k);
  } else if (k->count[NI_HANG_NO_DATA]) {
    fputs("black boxes or logs of the ranks that left nothing here: is their machine there?", f);
  } else {
    fputs(
        "GPUs (Xid), NVLink, NICs and what is between them; with NCCL_INSPECTOR_EVENTS=deep the network "
        "shows next time",
        f);
  }
}

char *ni_hang_said_next(const struct ni_hang_verdict *v) {
  char *text;
  NI_HANG_SAID(text, say_next(f, v));
  return text;
}
