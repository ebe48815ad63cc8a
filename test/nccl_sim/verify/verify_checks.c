/*
 * What was joined, against the truth: values of operations, calls, events, and the totals that the logs
 * state.
 */
#include <math.h>
#include <string.h>

#include "format/timing.h"
#include "test/nccl_sim/core/core.h"
#include "verify.h"

/* the plugin's clock against ours; its look lies between two of ours */
static const int64_t clock_tolerance_ns = 2000000;

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 + 1e-5 * fabs(b); }

/*
 * On a busy machine the simulator's progress thread may be late for everything until now, and for this one in
 * time. The plugin then takes the stamps for impossible (format/timing.h), until as many agree as
 * ni_gpu_fit_observe asks for. An operation without a count of channels is judged when it has been quiet for
 * a second: by then those that ended after it have taught the fit.
 */
static bool caught_up(const struct ni_verify *v, const struct ni_true_op *o) {
  enum { AGREE = 16 };
  uint64_t judged_ns = o->last_ns + (ni_true_want_unknown(&v->truth, o) ? UINT64_C(1100000000) : 0);
  size_t later = 0, as_soon = 0;
  for (const struct ni_true_op *x = v->truth.ops; x < v->truth.ops + v->truth.n_ops; x++) {
    if (x->pid != o->pid || x->hash != o->hash || x->rank != o->rank || !x->last_ns)
      continue;
    if (x == o || x->last_ns >= judged_ns)
      continue;
    if (ni_sub_sat(x->offset_ns, o->offset_ns) > NI_GPU_TOLERANCE_NS / 2)
      later++;
    else
      as_soon++;
  }
  return later >= NI_GPU_WARMUP && as_soon < AGREE;
}

/* A tag of NCCL's own has the top bit, which the log leaves out. */
static bool tagged(uint64_t user, uint64_t nccl, uint64_t tag) {
  const uint64_t top = UINT64_C(1) << 63;
  return user == (tag & top ? 0 : tag) && nccl == (tag & top ? tag & ~top : 0);
}

#define EQ_U(what, got, want) \
  if ((uint64_t)(got) != (uint64_t)(want)) \
  ni_wrong(v, "%s: %s is %llu, truth %llu", ni_verify_name(o), what, (unsigned long long)(got), \
           (unsigned long long)(want))
#define EQ_S(what, got, want) \
  if (strcmp(got, want) != 0) \
  ni_wrong(v, "%s: %s is \"%s\", truth \"%s\"", ni_verify_name(o), what, got, want)

/* Replays of a call follow each other: the log says after how long, by the plugin's looks at the clock. */
static void check_replay(struct ni_verify *v, const struct ni_true_op *o, const struct ni_said_op *r) {
  bool has = (r->r.has & NI_HAS_PREV_REPLAY) != 0, wants = ni_true_untimed(&v->truth, o) && o->replayed_from;
  EQ_U("has a replay before", has, wants);
  if (!has || !wants)
    return;
  int64_t least = (int64_t)(o->enq_from - o->replayed_to), most = (int64_t)(o->enq_to - o->replayed_from);
  int64_t got = (int64_t)r->r.prev_replay_ns;
  if (got < least - clock_tolerance_ns || got > most + clock_tolerance_ns)
    ni_wrong(v, "%s: prev_replay_ns %lld, truth %lld to %lld", ni_verify_name(o), (long long)got,
             (long long)least, (long long)most);
}

/* What is said of symmetric kernels, of their phases, and of tags. */
static void check_new_keys(struct ni_verify *v, const struct ni_true_op *o, const struct ni_said_op *r,
                           bool stamps) {
  bool tail = o->shared && o->desc_nch == 0;
  EQ_U("symmetric", r->r.symmetric, o->symmetric);
  EQ_S("kernel", r->kernel, o->symmetric ? o->kernel : "");
  if (o->symmetric)
    EQ_U("graph", r->r.graph, ni_true_untimed(&v->truth, o));
  EQ_U("shared_span", r->r.shared_span, o->shared);
  if (!tagged(r->r.user_tag, r->r.nccl_tag, o->tag))
    ni_wrong(v, "%s: tags %llu and %llu, truth %llu", ni_verify_name(o), (unsigned long long)r->r.user_tag,
             (unsigned long long)r->r.nccl_tag, (unsigned long long)o->tag);
  check_replay(v, o, r);
  bool has = (r->r.has & NI_HAS_PHASES) != 0,
       wants = o->phases && stamps && r->r.timing == NI_TIMING_KERNEL_GPU;
  if (has != wants && !(tail && wants))
    ni_wrong(v, "%s: has %s phases", ni_verify_name(o), has ? "unknown" : "no");
  if (!has || !wants)
    return;
  EQ_U("initial_sync_ns", r->r.initial_sync_ns, o->initial_ns);
  EQ_U("compute_ns", r->r.compute_ns, o->compute_ns);
  EQ_U("final_sync_ns", r->r.final_sync_ns, o->final_ns);
  EQ_U("the phases' sum", r->r.initial_sync_ns + r->r.compute_ns + r->r.final_sync_ns, r->r.exec_ns);
}

/*
 * Are the counters apart, or may they be because somebody changed the mask? Times of such works need not be
 * believed.
 */
static bool may_be_apart(const struct ni_verify *v, const struct ni_true_op *o) {
  const struct ni_true_proc *p = &v->truth.procs[o->proc];
  return o->shifted || (ni_core_new(p->nccl) && p->mask_steps && !o->symmetric);
}

void ni_verify_values(struct ni_verify *v, struct ni_true_op *o, const struct ni_said_op *r) {
  const struct ni_true_comm *c = ni_true_comm(&v->truth, o->pid, o->hash, o->rank);
  uint64_t before = v->errors;
  EQ_S("function", r->func, o->func);
  if (!o->p2p)
    EQ_U("coll_sn", r->r.sn, o->sn);
  EQ_U("has a call number", (r->r.has & NI_HAS_CALL_SN) != 0, o->call >= 0);
  if (o->call >= 0)
    EQ_U("call_sn", r->r.call_sn, o->call);
  EQ_U("message size", r->r.msg_bytes, o->bytes);
  EQ_S("datatype", r->dtype, o->dtype);
  if (!o->p2p) {
    EQ_S("algorithm", r->algo, o->algo);
    EQ_S("protocol", r->proto, o->proto);
  }
  /*
   * Stamps of other works and true ones alternate then: only that what is called GPU time is what was handed
   * over.
   */
  bool overrun = r->r.timing != NI_TIMING_KERNEL_GPU &&
      (strcmp(o->stamps, "overrun") == 0 || may_be_apart(v, o) || caught_up(v, o));
  EQ_U(o->p2p ? "peer" : "root", r->r.root, o->p2p ? o->peer : o->root);
  if (c) {
    /* v1 to v3 never say how large a communicator is. */
    bool sized = c->interface > 3;
    EQ_U("n_ranks", r->n_ranks, sized ? c->n_ranks : 0);
    EQ_U("nnodes", r->nnodes, sized ? c->nnodes : 0);
    EQ_U("has a communicator name", r->named, c->named);
    EQ_S("communicator name", r->name, c->name);
    enum ni_func f = ni_func_from_name(o->func);
    uint64_t tests =
        sized || !ni_func_table[f].times_ranks ? ni_nccl_tests_bytes(f, o->bytes, c->n_ranks) : 0;
    EQ_U("nccl-tests size", r->r.tests_bytes, tests);
    double factor = sized || ni_func_table[f].factor == 1 ? ni_bus_factor(f, c->n_ranks) : 0;
    bool cpu = r->r.timing == NI_TIMING_COLLECTIVE_CPU; /* that it is rightly so is looked at below */
    if (!cpu && !o->shared && r->r.exec_ns > 0 && factor > 0) {
      double alg = (double)r->r.tests_bytes / (double)r->r.exec_ns;
      if (!(r->r.has & NI_HAS_BUSBW) || !near(r->r.algobw_gbs, alg) || !near(r->r.busbw_gbs, alg * factor))
        ni_wrong(v, "%s: bandwidths %f %f, truth %f %f", ni_verify_name(o), r->r.algobw_gbs, r->r.busbw_gbs,
                 alg, alg * factor);
    }
    if ((cpu || o->shared) && (r->r.has & NI_HAS_BUSBW))
      ni_wrong(v, "%s: a bandwidth from %s", ni_verify_name(o),
               cpu ? "the enqueue bracket" : "a time that several calls share");
  }
  bool unknown = ni_true_want_unknown(&v->truth, o);
  /*
   * Without a count an operation is judged finished when quiet for 1 s: a channel later than that has a late
   * line.
   */
  int late = unknown && o->late_ms >= 900 ? ni_said_parts_of(&v->said, o, NI_SAID_LATE) : 0;
  if (!overrun)
    EQ_S("timing source", ni_timing_names[r->r.timing], o->timing);
  if (strcmp(o->timing, "kernel_gpu") == 0 && !late && !overrun)
    EQ_U("coll_exec_time_ns", r->r.exec_ns, o->exec_ns);
  if (strcmp(o->timing, "kernel_cpu") == 0) {
    int64_t least = (int64_t)(o->last_ns - o->first_to), most = (int64_t)(o->last_to - o->first_ns),
            got = (int64_t)r->r.exec_ns;
    if (got < least - clock_tolerance_ns || got > most + clock_tolerance_ns)
      ni_wrong(v, "%s: CPU-timed %lld ns, truth %lld to %lld", ni_verify_name(o), (long long)got,
               (long long)least, (long long)most);
  }
  EQ_U("execution time in us", r->r.exec_us, ni_exec_us(r->r.exec_ns));
  bool none = strcmp(o->timing, "collective_cpu") == 0;
  bool self = o->p2p && o->peer == o->rank && ni_core_self_silent(v->truth.procs[o->proc].nccl);
  int channels = self ? 0 : unknown ? o->done_ch - late : o->desc_nch;
  bool tail = o->shared && o->desc_nch == 0,
       guessed = o->symmetric && unknown; /* by its head's count, should they come */
  if ((!none || self) && !tail && !guessed)
    EQ_U("channels", r->r.nchannels, channels);
  if (!none && !tail && !guessed && !v->truth.procs[o->proc].mask_steps)
    EQ_U("nchannels observed", r->r.nchannels_observed, unknown);
  if (!(r->r.has & NI_HAS_ENQUEUE) || (int64_t)(r->r.enqueue_ns - o->enq_from) < -clock_tolerance_ns ||
      (int64_t)(o->enq_to - r->r.enqueue_ns) < -clock_tolerance_ns)
    ni_wrong(v, "%s: enqueued at %llu, truth %llu to %llu", ni_verify_name(o),
             (unsigned long long)r->r.enqueue_ns, (unsigned long long)o->enq_from,
             (unsigned long long)o->enq_to);
  if (late && o->done_ch - late < 1)
    ni_wrong(v, "%s: %d late lines for %d channels", ni_verify_name(o), late, o->done_ch);
  check_new_keys(v, o, r, strcmp(o->stamps, "good") == 0 && !o->shifted);
  if (v->errors == before)
    v->agreed++;
}

void ni_verify_calls(struct ni_verify *v) {
  for (size_t i = 0; i < v->said.n_calls; i++) {
    struct ni_said_op *r = &v->said.calls[i];
    struct ni_true_call *t = NULL;
    for (size_t k = 0; k < v->truth.n_calls && !t; k++) {
      struct ni_true_call *x = &v->truth.calls[k];
      if (x->pid == r->pid && x->hash == r->hash && x->rank == r->rank && x->call == (int64_t)r->r.call_sn)
        t = x;
    }
    if (!t || t->found) {
      ni_wrong(v, "pid %d comm 0x%llx rank %d call %llu (%s): %s", r->pid, (unsigned long long)r->hash,
               r->rank, (unsigned long long)r->r.call_sn, r->func, t ? "written twice" : "not in the truth");
      continue;
    }
    t->found = true;
    if (strcmp(t->func, r->func) || strcmp(t->src, ni_src_names[r->r.src]) || strcmp(t->dtype, r->dtype) ||
        t->bytes != r->r.msg_bytes || t->root != r->r.root || r->r.timing != NI_TIMING_COLLECTIVE_CPU ||
        !tagged(r->r.user_tag, r->r.nccl_tag, t->tag) || (r->r.has & (NI_HAS_BUSBW | NI_HAS_NCHANNELS)) ||
        (int64_t)(r->r.enqueue_ns - t->enq_from) < -clock_tolerance_ns ||
        (int64_t)(t->enq_to - r->r.enqueue_ns) < -clock_tolerance_ns)
      ni_wrong(v, "pid %d comm 0x%llx rank %d call %llu: %s %s %s %llu bytes, truth %s %s %s %llu", r->pid,
               (unsigned long long)r->hash, r->rank, (unsigned long long)r->r.call_sn, r->func,
               ni_src_names[r->r.src], r->dtype, (unsigned long long)r->r.msg_bytes, t->func, t->src,
               t->dtype, (unsigned long long)t->bytes);
    else
      v->agreed++;
  }
  for (size_t k = 0; k < v->truth.n_calls; k++) {
    const struct ni_true_call *t = &v->truth.calls[k];
    const struct ni_true_proc *p = &v->truth.procs[t->proc];
    struct ni_said_stats *s = ni_said_stats_of(&v->said, t->pid, t->hash, t->rank);
    bool filtered = t->bytes < (uint64_t)p->min_bytes || p->need_gpu,
         ended = !p->ended || p->how != NI_END_FINALIZE;
    if (!t->found && !filtered && !ended)
      ni_wrong(v, "pid %d comm 0x%llx rank %d call %lld: %s has no record", t->pid,
               (unsigned long long)t->hash, t->rank, (long long)t->call, t->func);
    if (s) {
      s->called[0]++;
      s->filtered_true[0] += filtered;
      s->found[0] += t->found;
    }
  }
}

void ni_verify_events(struct ni_verify *v) {
  static const char *const names[] = {"group",     "",       "",    "proxyop",  "",
                                      "proxyctrl", "",       "net", "groupapi", "collapi",
                                      "p2papi",    "launch", "ce",  "sync",     "batch"};
  for (size_t i = 0; i < v->truth.n_procs; i++) {
    const struct ni_true_proc *p = &v->truth.procs[i];
    if (!p->every_event || !p->has_events || p->mask_steps)
      continue;
    const struct ni_said_events *t = ni_said_events_of(&v->said, p->pid);
    for (int k = 0; k < 15; k++)
      if (*names[k] && t->started[k] != p->event[k])
        ni_wrong(v, "pid %d: final lines state %llu %s events, the truth has %llu", p->pid,
                 (unsigned long long)t->started[k], names[k], (unsigned long long)p->event[k]);
    bool sized = p->interface > 3 || p->nccl < 22700; /* the translations to v1, v2 and v3 hand no sizes on */
    if (t->dropped[NI_EVENT_PROXY_OP])
      continue;
    if (t->steps != p->steps || (sized && t->bytes != p->step_bytes))
      ni_wrong(v, "pid %d: proxy operations hold %llu transfers of %llu bytes, the truth has %llu of %llu",
               p->pid, (unsigned long long)t->steps, (unsigned long long)t->bytes,
               (unsigned long long)p->steps, (unsigned long long)p->step_bytes);
    if (p->every_step && t->step_lines + t->dropped[NI_EVENT_STEPS] != p->steps)
      ni_wrong(v, "pid %d: the logs have %llu steps, the truth %llu", p->pid,
               (unsigned long long)t->step_lines, (unsigned long long)p->steps);
    v->agreed++;
  }
}

void ni_verify_stats(struct ni_verify *v) {
  for (size_t i = 0; i < v->said.n_ops; i++) {
    struct ni_said_stats *s =
        ni_said_stats_of(&v->said, v->said.ops[i].pid, v->said.ops[i].hash, v->said.ops[i].rank);
    if (s)
      s->found[v->said.ops[i].r.kind]++;
  }
  for (size_t i = 0; i < v->truth.n_ops; i++) {
    const struct ni_true_op *o = &v->truth.ops[i];
    struct ni_said_stats *s = o->called ? ni_said_stats_of(&v->said, o->pid, o->hash, o->rank) : NULL;
    if (!s)
      continue;
    s->called[o->p2p]++;
    const char *why = ni_true_unwritten(&v->truth, o);
    if (o->in_gap)
      s->dropped_true[o->p2p]++;
    else if (why && strncmp(why, "filtered", 8) == 0)
      s->filtered_true[o->p2p]++;
    else if (why && strcmp(why, "dropped") == 0)
      s->dropped_true[o->p2p]++;
    else if (why)
      s->unfinished_true[o->p2p]++;
    s->vague |= strcmp(o->out, "done") != 0 || v->truth.procs[o->proc].how != NI_END_FINALIZE;
  }
  for (size_t i = 0; i < v->said.n_stats; i++) {
    const struct ni_said_stats *s = &v->said.stats[i];
    for (int k = 0; k < 2; k++) {
      const char *kind = k ? "p2p" : "coll";
      uint64_t sum =
          s->k[k].written + s->k[k].filtered + s->k[k].dropped + s->k[k].incomplete + s->k[k].in_flight;
      if (sum != s->k[k].started)
        ni_wrong(v,
                 "pid %d comm 0x%llx rank %d: final line states started %llu of %s, but its parts are %llu",
                 s->pid, (unsigned long long)s->hash, s->rank, (unsigned long long)s->k[k].started, kind,
                 (unsigned long long)sum);
      if (s->k[k].written != s->found[k])
        ni_wrong(v, "pid %d comm 0x%llx rank %d: final line states written %llu of %s, the files hold %llu",
                 s->pid, (unsigned long long)s->hash, s->rank, (unsigned long long)s->k[k].written, kind,
                 (unsigned long long)s->found[k]);
      const uint64_t stated[3] = {s->k[k].filtered, s->k[k].dropped, s->k[k].incomplete + s->k[k].in_flight};
      const uint64_t truth[3] = {s->filtered_true[k], s->dropped_true[k], s->unfinished_true[k]};
      static const char *const what[3] = {"filtered", "dropped", "incomplete and in flight"};
      for (int i3 = 0; i3 < 3 && !s->vague; i3++)
        if (stated[i3] != truth[i3])
          ni_wrong(v, "pid %d comm 0x%llx rank %d: final line states %s %llu of %s, the truth has %llu",
                   s->pid, (unsigned long long)s->hash, s->rank, what[i3], (unsigned long long)stated[i3],
                   kind, (unsigned long long)truth[i3]);
      if (s->k[k].started != s->called[k])
        ni_wrong(v, "pid %d comm 0x%llx rank %d: final line states started %llu of %s, the truth has %llu",
                 s->pid, (unsigned long long)s->hash, s->rank, (unsigned long long)s->k[k].started, kind,
                 (unsigned long long)s->called[k]);
    }
  }
  for (size_t i = 0; i < v->truth.n_comms; i++) {
    const struct ni_true_comm *c = &v->truth.comms[i];
    const struct ni_true_proc *p = NULL;
    for (size_t k = 0; k < v->truth.n_procs; k++)
      if (v->truth.procs[k].pid == c->pid)
        p = &v->truth.procs[k];
    bool silent = !p || p->how == NI_END_SIGKILL || p->how == NI_END_UNDERSCORE_EXIT || !p->ended;
    if (c->interface && !silent && !ni_said_stats_of(&v->said, c->pid, c->hash, c->rank))
      ni_wrong(v, "pid %d comm 0x%llx rank %d: no final dump_stats line", c->pid, (unsigned long long)c->hash,
               c->rank);
  }
}
