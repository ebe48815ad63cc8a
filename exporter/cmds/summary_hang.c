#include "summary_hang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/cmds/hang/say.h"
#include "exporter/model/hang/limit.h"
#include "exporter/model/hang/read_boxes.h"
#include "exporter/model/hang/read_logs.h"

#define SECOND UINT64_C(1000000000)

/* A job that has ended stood still before if nothing moved for as long: a step takes less. */
#define STOOD_NS (10 * SECOND)

struct hang_asked {
  struct ni_hang_model base, now;
  struct ni_hang_looks looks;
  struct ni_files boxes;
  struct ni_hang_verdict v;
};

/*
 * What was seen while the job ran is known better than what its logs say: they lack what a process that was
 * killed had not written yet.
 */
static int keep_seen_hang(const char *sentence, struct ni_summary *s) {
  static const struct {
    const char *begin, *verdict;
  } seen[] = {{"HANG (certain)", "certain"}, {"HANG", "likely"}, {"", "not_yet"}};
  size_t i = 0;
  while (strncmp(sentence, seen[i].begin, strlen(seen[i].begin)) != 0)
    i++;
  s->hang_verdict = seen[i].verdict;
  s->stood_still = true;
  s->hang = strdup(sentence);
  return s->hang ? 0 : -ENOMEM;
}

/*
 * Whoever writes a box says where its log lies, and root may read all of them. Only an owner of logs is
 * believed.
 */
static bool is_of_no_owner(const struct ni_file *box, void *arg) {
  const struct ni_files *logs = arg;
  for (size_t i = 0; i < logs->n; i++)
    if (logs->file[i].owner == box->owner)
      return false;
  return true;
}

/* Boxes of this machine whose log lies in one of the paths, and whose owner owns one of the logs. */
static int ask_boxes(const struct ni_run *r, struct hang_asked *a) {
  char *dir = (char *)(uintptr_t)(r->opt.box_dir ? r->opt.box_dir : NI_BOX_DIR);
  a->boxes.wanted = ni_box_name;
  if (access(dir, R_OK | X_OK) != 0)
    return 0;
  const int e = ni_discover(&a->boxes, &dir, 1);
  if (e < 0)
    return e;
  ni_files_drop(&a->boxes, is_of_no_owner, (void *)(uintptr_t)&r->files);
  return ni_hang_read_boxes(&a->looks, a->boxes.file, a->boxes.n, 1, &r->opt.inputs, &a->base);
}

/* Logs alone are judged at no time: the same logs say the same tomorrow. */
static int judge_asked(struct hang_asked *a) {
  const uint64_t now_ns = a->looks.n ? ni_now_ns(CLOCK_REALTIME) : 0;
  const uint64_t after_ns = strtoull(NI_HANG_AFTER_S, NULL, 10) * SECOND;
  int e = ni_hang_model_at(&a->now, &a->base, &a->looks, UINT64_MAX);
  if (e == 0)
    e = ni_hang_judge(&a->v, &a->now, after_ns, now_ns);
  return e;
}

static void free_asked(struct hang_asked *a) {
  ni_hang_verdict_free(&a->v);
  ni_hang_model_free(&a->now);
  ni_hang_looks_free(&a->looks);
  ni_files_free(&a->boxes);
  ni_hang_model_free(&a->base);
}

static void keep_verdict(const struct ni_hang_verdict *v, struct ni_summary *s) {
  const struct ni_hang_knot *first = ni_hang_first(v);
  const bool has_stood = first && first->waited_ns >= STOOD_NS;
  if (ni_hang_is_hang(v))
    s->hang_verdict = "likely";
  else if (v->answer == NI_HANG_ALL_DEAD)
    s->hang_verdict = "dead";
  else if (v->answer == NI_HANG_NOT_YET && has_stood)
    s->hang_verdict = "not_yet";
  if (!s->hang_verdict)
    return;
  NI_HANG_SAID(s->hang, ni_hang_say(f, v));
  s->stood_still = ni_hang_is_hang(v) || has_stood;
}

int ni_summary_judge_hang(struct ni_run *r, struct ni_summary *s, bool alone) {
  struct hang_asked a = {0};
  const bool has_open_logs = r->ledger.problem[NI_PROBLEM_NO_END].places > 0;
  if (r->opt.seen_hang && !s->complete)
    return keep_seen_hang(r->opt.seen_hang, s);
  if (r->opt.compat || !(r->ledger.unfinished || has_open_logs))
    return 0;
  struct ni_atlas_options index = r->opt.index;
  index.off |= !alone;
  int e = alone && has_open_logs ? ask_boxes(r, &a) : 0;
  const bool is_told = r->ledger.unfinished || a.looks.n;
  if (e == 0 && is_told)
    e = ni_hang_read_logs(&a.base, &r->files, &index, "nccl-inspector summary", &r->progress);
  if (e == 0 && is_told)
    e = judge_asked(&a);
  if (e == 0 && is_told)
    keep_verdict(&a.v, s);
  free_asked(&a);
  return e;
}
