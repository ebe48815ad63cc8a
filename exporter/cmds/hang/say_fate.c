/*
 * The part of the sentence that is about processes: who runs, who is gone since when, who has ended.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/model/hang/judge/fate.h"
#include "say_fate.h"
#include "words.h"

/* twice the heartbeat: nearer together nobody can tell who was first */
#define APART_NS UINT64_C(2000000000)

/*
 * Says which processes have that life and a last sign of life not after `until`: by rank if all have one,
 * else by pid.
 */
static void say_processes(FILE *f, const struct ni_hang_verdict *v, enum ni_hang_life life, uint64_t until) {
  const struct ni_hang_model *m = v->model;
  bool ranks = true;
  for (int pass = 0; pass < 2; pass++) {
    struct ni_hang_crowd c = ni_hang_crowd_new(pass ? m->n_processes : 0, ranks ? "rank" : "pid",
                                               ranks ? "ranks" : "processes, pids");
    for (size_t i = 0; i < m->n_processes; i++) {
      const struct ni_hang_process *p = &m->process[i];
      if (v->earlier[i] || p->life != life || ni_hang_last_sign(p) > until)
        continue;
      if (pass == 0)
        ranks &= p->rank >= 0 && !p->several;
      else if (c.who)
        c.who[c.n++] = (struct ni_hang_who){ranks ? p->rank : p->who->pid, ni_hang_host(p)};
    }
    if (pass && c.who)
      ni_hang_say_crowd(f, &c);
    free(c.who);
  }
}

static void say_all(FILE *f, size_t n) {
  if (n == 1)
    fputs("the only process", f);
  else if (n == 2)
    fputs("both processes", f);
  else
    ni_say(f, "all %s processes", NI_COUNT(n));
}

/* Says what those that ended by themselves could not write. */
static void say_unwritten(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  uint64_t n = 0, uncounted = 0;
  int error = 0;
  for (size_t i = 0; i < m->n_processes; i++) {
    if (v->earlier[i])
      continue;
    uncounted += m->process[i].uncounted;
    if (!m->process[i].unwritten)
      continue;
    n += m->process[i].unwritten;
    if (m->process[i].unwritten_error)
      error = m->process[i].unwritten_error;
  }
  if (uncounted)
    ni_say(f, "; %s %s could not count what is not in the log: `recover` looks", NI_COUNT(uncounted),
           ni_plural(uncounted, "process", "processes"));
  if (!n)
    return;
  ni_say(f, "; %s finished %s could not be written", NI_COUNT(n), ni_plural(n, "operation", "operations"));
  if (error)
    ni_say(f, " (%s)", strerror(error));
  fputs(": `recover` has them", f);
}

void ni_hang_say_end(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_fate *t = &v->fate;
  size_t dead = t->in[NI_HANG_DEAD], n = t->processes;
  if (dead == 0) {
    say_all(f, n);
    ni_say(f, " %s ended by %s", ni_plural(n, "has", "have"), ni_plural(n, "itself", "themselves"));
  } else if (dead == n) {
    say_all(f, n);
    ni_say(f, " %s gone (killed or crashed)", ni_plural(n, "is", "are"));
  } else {
    ni_say(f, "%s of %s processes %s gone (killed or crashed): ", NI_COUNT(dead), NI_COUNT(n),
           ni_plural(dead, "is", "are"));
    say_processes(f, v, NI_HANG_DEAD, UINT64_MAX);
    fputs("; the others have ended by themselves", f);
  }
  fputs(", last sign of life ", f);
  ni_hang_say_when(f, v, t->last_ns);
  say_unwritten(f, v);
  if (dead && n > 1 && t->last_ns > t->first_ns + APART_NS) {
    fputs("; the first to go was ", f);
    say_processes(f, v, NI_HANG_DEAD, t->first_ns + APART_NS);
    fputs(", ", f);
    ni_hang_say_span(f, t->last_ns - t->first_ns);
    fputs(" before that", f);
  }
}

static void say_unseen(FILE *f, const struct ni_hang_fate *t) {
  ni_say(f, "no data of %s of the %s ranks of ", NI_COUNT(t->unseen), NI_COUNT(t->unseen_in->who->n_ranks));
  ni_hang_say_comm(f, t->unseen_in);
}

/* Why there is no box of processes that may run, and what to do. */
static void say_dark(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_fate *t = &v->fate;
  const struct ni_hang_model *m = v->model;
  if (t->dark == t->dark_foreign) {
    fputs(
        "NVIDIA's and imported logs say what has finished, never what is in flight: `py-spy dump` on the "
        "ranks, and this plugin next time",
        f);
    return;
  }
  fputs("no black box of ", f);
  if (t->dark < t->processes)
    ni_say(f, "%s of ", NI_COUNT(t->dark));
  if (t->processes == 1)
    fputs("the only process", f);
  else
    ni_say(f, "the %s processes", NI_COUNT(t->processes));
  if (m->foreign)
    ni_say(f, " could be read (%zu in %s belong%s to uid %" PRIu32 "%s): run as that user, or on the nodes",
           m->foreign, m->box_dir, ni_plural(m->foreign, "s", ""), m->foreign_uid,
           m->foreign > t->dark ? " and others" : "");
  else if (m->box_dir)
    ni_say(f, " is in %s: run on the nodes, or take copies there with `nccl-inspector snapshot`", m->box_dir);
  else if (m->unreadable)
    fputs(" could be read", f);
  else
    fputs(" is among those that were given: take copies on all nodes with `nccl-inspector snapshot`", f);
}

void ni_hang_say_cannot_tell(FILE *f, const struct ni_hang_verdict *v) {
  const char *sep = "";
  if (v->fate.dark) {
    say_dark(f, v);
    sep = "; ";
  }
  if (v->fate.unseen) {
    ni_put_text(f, sep);
    say_unseen(f, &v->fate);
    sep = "; ";
  }
  if (v->model->unreadable) {
    ni_say(f, "%s%" PRIu64 " file%s could not be read", sep, v->model->unreadable,
           ni_plural(v->model->unreadable, "", "s"));
    sep = "; ";
  }
  if (v->model->left_out)
    ni_say(f, "%smore than %d communicators are in one file, or %d members in all: the others were left out",
           sep, NI_HANG_COMMS, NI_HANG_MEMBERS);
}

void ni_hang_say_job(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_fate *t = &v->fate;
  ni_say(f, "%s %s", NI_COUNT(t->ranks),
         t->more_ranks ? "or more ranks" : ni_plural(t->ranks, "rank", "ranks"));
  if (t->processes != t->ranks)
    ni_say(f, " in %s process%s", NI_COUNT(t->processes), ni_plural(t->processes, "", "es"));
  ni_say(f, ", %s communicator%s", NI_COUNT(v->n_communicators), ni_plural(v->n_communicators, "", "s"));
  if (t->unseen && v->answer != NI_HANG_CANNOT_TELL) {
    fputs("; ", f);
    say_unseen(f, t);
  }
  if (t->over)
    return;
  static const char *const texts[] = {[NI_HANG_DEAD] = "gone",
                                      [NI_HANG_LEFT] = "ended by themselves",
                                      [NI_HANG_LIFE_UNKNOWN] = "cannot see whether these processes live"};
  static const enum ni_hang_life order[] = {NI_HANG_DEAD, NI_HANG_LEFT, NI_HANG_LIFE_UNKNOWN};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    if (!t->in[order[i]])
      continue;
    ni_say(f, "; %s: ", texts[order[i]]);
    say_processes(f, v, order[i], UINT64_MAX);
  }
}

void ni_hang_say_earlier(FILE *f, const struct ni_hang_verdict *v) {
  const struct ni_hang_fate *t = &v->fate;
  ni_say(f, "not counted: %zu process%s of an earlier run, last sign of life ", t->earlier,
         ni_plural(t->earlier, "", "es"));
  ni_hang_say_when(f, v, t->earlier_ns);
}
