#include "print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/plural.h"
#include "exporter/model/hang/judge/knot.h"
#include "exporter/model/hang/judge/fate.h"
#include "say.h"
#include "say_fate.h"
#include "say_knot.h"
#include "say_next.h"
#include "say_ras.h"
#include "words.h"

#define SHOWN 4 /* hangs shown without --all */
#define RUNS_SHOWN 8
#define WAITS 2000 /* and with it, and in JSON: files can state any number */

static const char *const lives[] = {"unknown", "alive", "dead", "left"};

static uint64_t since_ns(uint64_t then, uint64_t now) { return then && now > then ? now - then : 0; }

/*
 * For JSON: how old something is, by the newest thing known at all. If no process runs any more, by the
 * clock.
 */
static uint64_t age_s(const struct ni_hang_verdict *v, uint64_t ns) {
  return since_ns(ns, v->fate.over ? v->wall_ns : v->now_ns) / 1000000000u;
}

/* Until when something is known of a rank; if nothing is known of it, of its process. */
static uint64_t known_ns(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  return w->where == NI_HANG_NO_DATA ? ni_hang_last_sign(ni_hang_process_at(v, w))
                                     : ni_hang_known_until(v, w);
}

/* The i-th thing that keeps the verdict from being certain; malloc'ed. NULL: there are no more. */
static char *make_missing_text(const struct ni_hang_verdict *v, size_t i) {
  char *text;
  bool more = false;
  NI_HANG_SAID(text, more = ni_hang_say_missing(f, v, i));
  if (more)
    return text;
  free(text);
  return NULL;
}

/* ---- terminal ---- */

static void print_channels(uint64_t open, int32_t above) {
  const char *sep = " on channels ";
  for (int i = 0, end; i < 64; i = end + 1) {
    for (end = i; end < 64 && (open >> end & 1); end++) {}
    if (end == i)
      continue;
    if (end - i > 1)
      ni_say(stdout, "%s%d-%d", sep, i, end - 1);
    else
      ni_say(stdout, "%s%d", sep, i);
    sep = ", ";
  }
  if (above > 0)
    ni_say(stdout, "%s%d from 64 on", open ? " and " : sep, above);
}

/* How long it had been in the operation when it was last seen. */
static uint64_t duration_inside(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  return since_ns(w->op->enqueue_ns, known_ns(v, w));
}

/*
 * Prints the operation of a rank. For OTHER_CALL it is not that of the knot. Each send or receive is its own.
 */
static void print_held_op(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  const struct ni_hang_op *op = w->op;
  ni_say(stdout, " ");
  if (w->where == NI_HANG_OTHER_CALL || op->kind == NI_KIND_P2P) {
    ni_hang_say_op(stdout, v, op);
    if (op->kind == NI_KIND_P2P)
      ni_say(stdout, ", %s %s", NI_COUNT(op->bytes), ni_plural(op->bytes, "byte", "bytes"));
    ni_say(stdout, ", ");
  }
  ni_say(stdout, "%s", ni_hang_state_name(op->state));
  if (op->channels_open || op->channels_above)
    print_channels(op->channels_open, op->channels_above);
  if (op->net_peer >= 0)
    ni_say(stdout, ", network peer %d", op->net_peer);
  if (op->net_channel >= 0)
    ni_say(stdout, " on channel %d", op->net_channel);
  ni_say(stdout, ", for ");
  ni_hang_say_span(stdout, duration_inside(v, w));
}

static bool has_op(const struct ni_hang_view *w) {
  return w->op && (ni_hang_waits(w) || w->where == NI_HANG_OTHER_CALL || w->where == NI_HANG_GONE);
}

/* files: name the file; of ranks without data always, since that is where to look. */
static void print_rank(const struct ni_hang_verdict *v, const struct ni_hang_view *w, bool files) {
  const struct ni_hang_process *p = ni_hang_process_at(v, w);
  int32_t g = ni_hang_global(v, w);
  if (g >= 0)
    ni_say(stdout, "    rank %-6d", g);
  else
    ni_say(stdout, "    of it %-5d", w->rank);
  int gap = 16 - (int)strnlen(p->who->host, 16);
  if (ni_hang_host(p))
    ni_say(stdout, " %s%*s pid %-8" PRId64, p->who->host, gap, "", p->who->pid);
  if (has_op(w)) {
    print_held_op(v, w);
    ni_say(stdout, ";");
  }
  ni_say(stdout, " process %s, seen ", lives[p->life]);
  ni_hang_say_span(stdout, since_ns(known_ns(v, w), v->wall_ns));
  ni_say(stdout, " ago (%s)", w->member->dump ? "Flight Recorder" : p->has_box ? "black box" : "log");
  if (p->file && (files || w->where == NI_HANG_NO_DATA)) {
    ni_say(stdout, ": %s", p->file);
    if (!p->has_box) {
      ni_say(stdout, ", changed ");
      ni_hang_say_span(stdout, since_ns(p->file_ns, v->wall_ns));
      ni_say(stdout, " ago");
    }
  }
  ni_say(stdout, "\n");
}

static void print_group(const struct ni_hang_verdict *v, const struct ni_hang_knot *k,
                        enum ni_hang_where where, bool all) {
  size_t n = k->count[where];
  if (!n)
    return;
  char name[16];
  snprintf(name, sizeof name, "%s", ni_hang_where_name(where));
  for (char *c = name; (c = strchr(c, '_'));)
    *c = ' ';
  ni_say(stdout, "  %-13s %zu: ", name, n);
  ni_hang_say_ranks(stdout, v, k, where);
  ni_say(stdout, "\n");
  size_t few = where == NI_HANG_FINISHED || where == NI_HANG_NOT_INVOLVED ? 0 : SHOWN;
  for (size_t i = 0, shown = 0; i < k->n && (all || shown < few); i++)
    if (k->view[i].where == where) {
      print_rank(v, &k->view[i], all);
      shown++;
    }
}

static void print_knot(const struct ni_hang_verdict *v, const struct ni_hang_knot *k, bool all) {
  ni_say(stdout, "\ncommunicator ");
  ni_hang_say_comm(stdout, k->any);
  ni_say(stdout, " (0x%" PRIx64 ", %d %s): ", k->any->who->hash, k->any->who->n_ranks,
         ni_plural((uint64_t)k->any->who->n_ranks, "rank", "ranks"));
  if (k->kind == NI_KIND_COLL) {
    ni_hang_say_op(stdout, v, &k->op);
    ni_say(stdout, ", %s %s", NI_COUNT(k->op.bytes), ni_plural(k->op.bytes, "byte", "bytes"));
  } else {
    ni_say(stdout, "Send/Recv");
  }
  bool over = v->fate.over || k->past;
  ni_say(stdout, ", ");
  ni_hang_say_still(stdout, v, k);
  const char *so_far = over ? " when it ended" : " (no hang yet)";
  if (k->hangs)
    so_far = k->root ? "" : " (a consequence)";
  ni_say(stdout, "%s%s\n", so_far, k->past ? " (an earlier run)" : "");
  if (k->has_last) {
    ni_say(stdout, "  all %s finished ", over ? "had" : "have");
    ni_hang_say_op(stdout, v, &k->last);
    ni_say(stdout, "\n");
  }
  for (int w = NI_HANG_WHERE_COUNT - 1; w >= 0; w--)
    print_group(v, k, (enum ni_hang_where)w, all);
}

static void print_said(const char *before, char *text) {
  if (text && *text)
    ni_say(stdout, "%s%s\n", before, text);
  free(text);
}

/*
 * Finds the runs that are judged together, to be freed: of two jobs in one folder neither is the past of the
 * other. *n: how many. NULL: there is nothing to say of them, or no memory.
 */
static bool *find_judged_runs(const struct ni_hang_verdict *v, const struct ni_runs *runs, size_t *n) {
  const struct ni_hang_model *m = v->model;
  bool *judged = calloc(runs->n + 1, sizeof *judged);
  *n = 0;
  for (size_t i = 0; judged && i < m->n_processes; i++) {
    uint32_t run = m->process[i].run;
    const bool is_run = run && run <= runs->n;
    if (!is_run || v->earlier[i] || judged[run - 1])
      continue;
    judged[run - 1] = true;
    ++*n;
  }
  if (*n > 1 || (*n && ni_runs_are_doubtful(runs)))
    return judged;
  free(judged);
  return NULL;
}

static void print_runs(const struct ni_hang_verdict *v, const struct ni_runs *runs) {
  size_t n, said = 0;
  bool *judged = find_judged_runs(v, runs, &n);
  char text[256];
  if (!judged)
    return;
  ni_say(stdout, "%s run%s in these logs%s:\n", NI_COUNT(n), ni_plural(n, "", "s"),
         ni_plural(n, "", ", judged together: --run chooses one"));
  for (size_t i = 0; i < runs->n && said < RUNS_SHOWN; i++) {
    if (!judged[i])
      continue;
    ni_say(stdout, "  %s\n", ni_run_text(runs, i, text));
    said++;
  }
  if (n > said)
    ni_say(stdout, "  and %s more\n", NI_COUNT(n - said));
  free(judged);
}

static void write_json_runs(struct ni_json *j, const struct ni_hang_verdict *v, const struct ni_runs *runs) {
  size_t n;
  bool *judged = find_judged_runs(v, runs, &n);
  char text[256];
  if (!judged)
    return;
  ni_json_array(j, "runs");
  for (size_t i = 0; i < runs->n; i++)
    if (judged[i])
      ni_json_text(j, NULL, ni_run_text(runs, i, text));
  ni_json_end_array(j);
  free(judged);
}

static void print_clock_line(void *unused, const char *text) { ni_say(stdout, "CLOCKS: %s\n", text); }

/* Does the verdict come from RAS alone? It does if there is neither a log nor a box. */
static bool is_alone(const struct ni_hang_verdict *v, const struct ni_hang_ras *ras) {
  return ras && ras->answered && v->answer == NI_HANG_NO_DATA_AT_ALL;
}

enum ni_hang_answer ni_hang_answer_of(const struct ni_hang_verdict *v, const struct ni_hang_ras *ras) {
  if (!is_alone(v, ras))
    return v->answer;
  return ras->v.answer == NI_HANG_NO_DATA_AT_ALL ? NI_HANG_CANNOT_TELL : ras->v.answer;
}

void ni_hang_print(const struct ni_hang_verdict *v, const struct ni_runs *runs, const struct ni_hang_ras *ras,
                   bool all) {
  const struct ni_hang_model *m = v->model;
  if (is_alone(v, ras)) {
    ni_hang_ras_print(ras, true, all);
    return;
  }
  ni_hang_say(stdout, v);
  ni_say(stdout, "\n");
  if (v->answer == NI_HANG_LIKELY) {
    for (size_t i = 0;; i++) {
      char *text = make_missing_text(v, i);
      if (!text)
        break;
      ni_say(stdout, "%s%s", i ? "; " : "missing to be certain: ", text);
      free(text);
    }
    ni_say(stdout, "\n");
  }
  if (!ni_hang_is_hang(v) && v->fate.over && ni_hang_first(v)) {
    ni_say(stdout, "cause: ");
    ni_hang_say_cause(stdout, v);
    ni_say(stdout, "\n");
  }
  ni_clocks_say(&m->clocks, true, print_clock_line, NULL);
  print_said("because: ", ni_hang_said_why(v));
  print_said("next: ", ni_hang_said_next(v));
  size_t more = v->n_hangs - v->n_roots;
  if (more)
    ni_say(stdout, "%s more communicator%s because of it\n", NI_COUNT(more),
           ni_plural(more, " waits", "s wait"));
  if (v->fate.earlier) {
    ni_hang_say_earlier(stdout, v);
    ni_say(stdout, "\n");
  }
  print_runs(v, runs);
  for (size_t i = 0; i < v->n && i < WAITS; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    bool left = !ni_hang_is_hang(v) && v->fate.over && !k->past;
    const bool matters = left || (k->hangs && k->root);
    if (all || (matters && i < SHOWN))
      print_knot(v, k, all);
  }
  if (all && v->n > WAITS)
    ni_say(stdout, "\n... and %s more communicators\n", NI_COUNT(v->n - WAITS));
  if (v->blind)
    ni_say(stdout,
           "\n%zu communicator%s operations whose kernels NCCL does not show (symmetric memory, copy "
           "engine, Broadcast since 2.29): a hang inside one of those is not seen here\n",
           v->blind, ni_plural(v->blind, " runs", "s run"));
  if (v->fate.boxes_alone && !ni_hang_is_hang(v))
    ni_say(stdout,
           "of %zu process%s the black box alone was read: whether %s operations whose kernels NCCL does "
           "not show only the logs tell\n",
           v->fate.boxes_alone, ni_plural(v->fate.boxes_alone, "", "es"),
           ni_plural(v->fate.boxes_alone, "it runs", "they run"));
  if (v->fate.dead_boxes)
    ni_say(stdout, "what %s had not written is in %s: `nccl-inspector recover` puts it into the logs\n",
           ni_plural(v->fate.dead_boxes, "the process that is gone", "processes that are gone"),
           ni_plural(v->fate.dead_boxes, "its black box", "their black boxes"));
  if (m->dumps)
    ni_say(stdout, "%s Flight Recorder dump%s read\n", NI_COUNT(m->dumps),
           ni_plural(m->dumps, " of PyTorch was", "s of PyTorch were"));
  if (m->unreadable && !ni_hang_is_hang(v))
    ni_say(stdout, "%s file%s could not be read, the first: %s\n", NI_COUNT(m->unreadable),
           ni_plural(m->unreadable, "", "s"), m->first_bad ? m->first_bad : "");
  if (ras)
    ni_hang_ras_print(ras, false, all);
}

/* ---- JSON ---- */

static void write_json_said(struct ni_json *j, const char *key, char *text) {
  ni_json_text(j, key, text);
  free(text);
}

static void write_json_missing(struct ni_json *j, const struct ni_hang_verdict *v) {
  ni_json_array(j, "missing");
  for (size_t i = 0;; i++) {
    char *text = make_missing_text(v, i);
    if (!text)
      break;
    write_json_said(j, NULL, text);
  }
  ni_json_end_array(j);
}

static void write_json_op(struct ni_json *j, const char *key, const struct ni_hang_verdict *v,
                          const struct ni_hang_op *op) {
  ni_json_object(j, key);
  ni_json_text(j, "func", ni_hang_text(v->model, op->func));
  ni_json_u64(j, "sn", op->sn);
  if (op->rec_sn != NI_HANG_NONE)
    ni_json_u64(j, "rec_sn", op->rec_sn);
  ni_json_u64(j, "bytes", op->bytes);
  if (op->datatype)
    ni_json_text(j, "datatype", ni_hang_text(v->model, op->datatype));
  if (op->root >= 0)
    ni_json_i64(j, op->kind == NI_KIND_P2P ? "peer" : "root", op->root);
  ni_json_end_object(j);
}

/* Who a rank is, and where. whole: an object of its own. */
static void write_json_who(struct ni_json *j, const struct ni_hang_verdict *v, const struct ni_hang_view *w,
                           bool whole) {
  const struct ni_hang_process *p = ni_hang_process_at(v, w);
  int32_t g = ni_hang_global(v, w);
  if (whole)
    ni_json_object(j, NULL);
  ni_json_i64(j, "rank", w->rank);
  if (g >= 0)
    ni_json_i64(j, "global_rank", g);
  else
    ni_json_text(j, "global_rank", NULL);
  ni_json_text(j, "hostname", ni_hang_host(p));
  if (ni_hang_host(p))
    ni_json_i64(j, "pid", p->who->pid);
  else
    ni_json_text(j, "pid", NULL);
  ni_json_text(j, "where", ni_hang_where_name(w->where));
  if (whole)
    ni_json_end_object(j);
}

static void write_json_view(struct ni_json *j, const struct ni_hang_verdict *v,
                            const struct ni_hang_view *w) {
  const struct ni_hang_process *p = ni_hang_process_at(v, w);
  ni_json_object(j, NULL);
  write_json_who(j, v, w, false);
  bool there = w->op && ni_hang_waits(w);
  if (there) {
    ni_json_text(j, "state", ni_hang_state_name(w->op->state));
    ni_json_u64(j, "since_s", duration_inside(v, w) / 1000000000u);
    ni_json_hex_text(j, "channels_open", w->op->channels_open);
    if (w->op->channels_above)
      ni_json_i64(j, "channels_open_above", w->op->channels_above);
    if (w->op->net_peer >= 0)
      ni_json_i64(j, "net_peer", w->op->net_peer);
    if (w->op->net_channel >= 0)
      ni_json_i64(j, "net_channel", w->op->net_channel);
  }
  if (w->waits_for >= 0)
    ni_json_i64(j, "waits_for", w->waits_for);
  if (w->op)
    write_json_op(j, "operation", v, w->op);
  ni_json_text(j, "process", lives[p->life]);
  ni_json_u64(j, "seen_s_ago", age_s(v, known_ns(v, w)));
  ni_json_bool(j, "black_box", p->has_box);
  ni_json_bool(j, "flight_recorder", w->member->dump);
  ni_json_text(j, "file", p->file);
  ni_json_u64(j, "file_age_s", age_s(v, p->file_ns));
  ni_json_end_object(j);
}

static void write_json_knot(struct ni_json *j, const struct ni_hang_verdict *v,
                            const struct ni_hang_knot *k) {
  static const struct {
    const char *name;
    size_t at;
  } flags[] = {{"function", offsetof(struct ni_hang_knot, call_mismatch)},
               {"size", offsetof(struct ni_hang_knot, size_mismatch)},
               {"datatype", offsetof(struct ni_hang_knot, type_mismatch)},
               {"root", offsetof(struct ni_hang_knot, root_mismatch)}};
  char *text;
  ni_json_object(j, NULL);
  ni_json_text(j, "comm_name", k->any->who->name);
  ni_json_hex_text(j, "hash", k->any->who->hash);
  ni_json_i64(j, "n_ranks", k->any->who->n_ranks);
  ni_json_text(j, "kind", k->kind == NI_KIND_P2P ? "p2p" : "coll");
  write_json_op(j, "operation", v, &k->op);
  if (k->has_last)
    write_json_op(j, "last_finished", v, &k->last);
  if (k->behind_replay)
    write_json_op(j, "behind_replay", v, k->behind_replay);
  NI_HANG_SAID(text, ni_hang_say_knot(f, v, k));
  write_json_said(j, "text", text);
  ni_json_bool(j, "hangs", k->hangs);
  ni_json_bool(j, "root", k->root);
  ni_json_bool(j, "earlier_run", k->past);
  ni_json_u64(j, "ring", k->ring);
  if (k->leads_to >= 0)
    ni_json_hex_text(j, "because_of", v->knot[k->leads_to].any->who->hash);
  ni_json_u64(j, "still_for_s", k->pending_ns / 1000000000u);
  NI_JSON_ARRAY (j, "mismatch")
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
      if (*((const bool *)((const char *)k + flags[i].at)))
        ni_json_text(j, NULL, flags[i].name);
  NI_JSON_OBJECT (j, "count")
    for (int w = 0; w < NI_HANG_WHERE_COUNT; w++)
      if (k->count[w])
        ni_json_u64(j, ni_hang_where_name((enum ni_hang_where)w), k->count[w]);
  NI_JSON_ARRAY (j, "ranks")
    for (size_t i = 0; i < k->n; i++)
      write_json_view(j, v, &k->view[i]);
  ni_json_end_object(j);
}

static void write_json_job(struct ni_json *j, const struct ni_hang_verdict *v) {
  const struct ni_hang_fate *t = &v->fate;
  const char *state = t->in[NI_HANG_ALIVE] ? "running" : "unknown";
  if (!t->processes)
    state = "no_data";
  else if (t->over)
    state = t->in[NI_HANG_DEAD] ? "dead" : "ended";
  ni_json_object(j, "job");
  ni_json_text(j, "state", state);
  for (int i = NI_HANG_ALIVE; i < NI_HANG_LIFE_COUNT; i++)
    ni_json_u64(j, lives[i], t->in[i]);
  ni_json_u64(j, lives[NI_HANG_LIFE_UNKNOWN], t->in[NI_HANG_LIFE_UNKNOWN]);
  ni_json_u64(j, "earlier", t->earlier);
  if (t->in[NI_HANG_DEAD])
    ni_json_u64(j, "first_death_ns", t->first_ns);
  ni_json_u64(j, "last_sign_ns", t->last_ns);
  ni_json_u64(j, "last_operation_ns", t->moved_ns);
  ni_json_end_object(j);
}

/* Writes what is waited for, and who is the cause. */
static void write_json_cause(struct ni_json *j, const struct ni_hang_verdict *v) {
  const struct ni_hang_knot *k = ni_hang_first(v);
  char *text;
  if (!k) {
    ni_json_text(j, "cause", NULL);
    return;
  }
  ni_json_object(j, "cause");
  ni_json_text(j, "comm_name", k->any->who->name);
  ni_json_hex_text(j, "hash", k->any->who->hash);
  ni_json_text(j, "kind", k->kind == NI_KIND_P2P ? "p2p" : "coll");
  write_json_op(j, "operation", v, &k->op);
  NI_HANG_SAID(text, ni_hang_say_cause(f, v));
  write_json_said(j, "text", text);
  ni_json_u64(j, "waited_s", k->waited_ns / 1000000000u);
  ni_json_array(j, "ranks");
  for (size_t i = 0; i < k->n; i++)
    if (ni_hang_is_cause(k, &k->view[i]))
      write_json_who(j, v, &k->view[i], true);
  ni_json_end_array(j);
  ni_json_end_object(j);
}

/* Where nobody can tell whether a replay hangs or the job is idle; left out elsewhere. */
static void write_json_quiet(struct ni_json *j, const struct ni_hang_verdict *v) {
  const struct ni_hang_quiet *q = &v->quiet;
  if (!ni_hang_is_quiet(v))
    return;
  ni_json_object(j, "quiet");
  ni_json_text(j, "comm_name", q->any->who->name);
  ni_json_hex_text(j, "hash", q->any->who->hash);
  write_json_op(j, "operation", v, &q->op);
  ni_json_u64(j, "ranks", q->ranks);
  ni_json_u64(j, "since_ns", q->since_ns);
  if (q->every_ns)
    ni_json_u64(j, "every_ns", q->every_ns);
  ni_json_end_object(j);
}

/* What the limit was learnt from; left out where nothing was. */
static void write_json_learnt(struct ni_json *j, const struct ni_hang_verdict *v) {
  if (v->fate.learnt_ns)
    ni_json_u64(j, "learnt_s", v->fate.learnt_ns / 1000000000u);
}

void ni_hang_print_json(const struct ni_hang_verdict *v, const struct ni_runs *runs,
                        const struct ni_hang_ras *ras) {
  static const struct ni_json_field seen[] = {NI_JSON_AS(ni_hang_verdict, n_communicators, "communicators"),
                                              NI_JSON_AS(ni_hang_verdict, fate.ranks, "ranks"),
                                              NI_JSON_AS(ni_hang_verdict, fate.more_ranks, "more_ranks"),
                                              NI_JSON_AS(ni_hang_verdict, fate.processes, "processes"),
                                              NI_JSON_AS(ni_hang_verdict, fate.unseen, "unseen_ranks")};
  static const struct ni_json_field blind[] = {
      NI_JSON_AS(ni_hang_verdict, blind, "blind_communicators"),
      NI_JSON_AS(ni_hang_verdict, fate.boxes_alone, "black_boxes_alone")};
  static const struct ni_json_field sources[] = {NI_JSON_AS(ni_hang_model, files, "logs"),
                                                 NI_JSON_AS(ni_hang_model, boxes, "black_boxes"),
                                                 NI_JSON_AS(ni_hang_model, dumps, "flight_recorder_dumps"),
                                                 NI_JSON(ni_hang_model, bad_lines),
                                                 NI_JSON(ni_hang_model, unreadable),
                                                 NI_JSON_AS(ni_hang_model, first_bad, "first_unreadable")};
  const struct ni_hang_model *m = v->model;
  struct ni_json j;
  ni_json_open(&j, stdout, "nccl-inspector-hang-1");
  const struct ni_hang_answer_words *words = ni_hang_words_of(ni_hang_answer_of(v, ras));
  ni_json_text(&j, "answer", words->answer);
  ni_json_text(&j, "verdict", words->verdict);
  char *text = NULL;
  if (is_alone(v, ras))
    NI_HANG_SAID(text, ni_hang_ras_say(f, ras));
  else
    NI_HANG_SAID(text, ni_hang_say(f, v));
  write_json_said(&j, "sentence", text);
  text = NULL;
  if (v->answer == NI_HANG_CANNOT_TELL)
    NI_HANG_SAID(text, ni_hang_say_cannot_tell(f, v));
  write_json_said(&j, "cannot_tell", text);
  write_json_missing(&j, v);
  write_json_said(&j, "why", ni_hang_said_why(v));
  write_json_said(&j, "next", ni_hang_said_next(v));
  write_json_cause(&j, v);
  write_json_quiet(&j, v);
  ni_json_u64(&j, "hang_after_s", v->limit_ns / 1000000000u);
  write_json_learnt(&j, v);
  NI_JSON_ALL(&j, seen, v, NULL);
  write_json_job(&j, v);
  write_json_runs(&j, v, runs);
  NI_JSON_ALL(&j, blind, v, NULL);
  NI_JSON_ALL(&j, sources, m, NULL);
  ni_clocks_json(&j, &m->clocks);
  NI_JSON_ARRAY (&j, "waits")
    for (size_t i = 0; i < v->n && i < WAITS; i++)
      write_json_knot(&j, v, &v->knot[i]);
  ni_json_u64(&j, "more_waits", v->n > WAITS ? v->n - WAITS : 0);
  if (ras)
    ni_hang_ras_json(&j, ras);
  ni_json_close(&j);
}
