#include "read_logs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clocks.h"
#include "format/line.h"
#include "replays.h"
#include "standing.h"

#define HOUR_NS INT64_C(3600000000000)
#define STEP_NS \
  UINT64_C(1000000000) /* a line that much older than the one before it: the clock was set back */

static struct ni_hang_process *current_process(struct ni_hang_reading *r) {
  return &r->m->process[r->process];
}

static int read_process_line(struct ni_hang_reading *r, const struct ni_line *l) {
  const struct ni_process_line *in = &l->process;
  r->process = ni_hang_process_of(r->m, l->meta.hostname, l->meta.pid, in->start_ns);
  r->member = -1;
  if (r->process < 0)
    return (int)r->process;
  struct ni_hang_process *p = current_process(r);
  p->rank = in->rank;
  p->world = in->world_size;
  p->nccl_version = in->nccl_version > 0 ? in->nccl_version : 0;
  p->boxless = in->blackbox_why && *in->blackbox_why;
  strncpy(p->boot_id, in->boot_id, sizeof p->boot_id - 1);
  if (!p->exe && !(p->exe = strdup(in->exe)))
    return -ENOMEM;
  r->recovered = in->recovered_ns != 0;
  if (r->recovered) {
    p->look_ns = in->recovered_ns;
    p->life = in->recovered_live ? NI_HANG_ALIVE : NI_HANG_DEAD;
  }
  return 0;
}

/* Moves a member by as much as its process was moved since the last time. */
static void catch_up_member(struct ni_hang_reading *r, size_t member) {
  struct ni_hang_member *x = r->m->member[member];
  const int64_t moved_ns = r->m->process[r->m->who.member[member].process].moved_ns;
  if (x->moved_ns != moved_ns)
    ni_hang_move_member(x, moved_ns - x->moved_ns);
  x->moved_ns = moved_ns;
}

static void catch_up_all_members(struct ni_hang_reading *r) {
  for (size_t i = 0; i < r->m->n_members; i++)
    catch_up_member(r, i);
}

/*
 * Moves everything that was read of the process. Members move when they are next looked at, since a clock may
 * be set back very often.
 */
static void move_process_times(struct ni_hang_reading *r, int64_t by_ns) {
  struct ni_hang_process *p = current_process(r);
  ni_hang_move_process(p, by_ns);
  p->moved_ns += by_ns;
  if (r->member >= 0)
    catch_up_member(r, (size_t)r->member);
}

/* Nobody has so many communicators. A file that claims them must not fill the memory. */
static int leave_out_member(struct ni_hang_reading *r) {
  r->m->left_out++;
  r->member = -1;
  return 0;
}

/* The process and the member a line with a header belongs to. */
static int find_or_add_member_of_line(struct ni_hang_reading *r, const struct ni_line *l) {
  const struct ni_who_process *w = r->process < 0 ? NULL : &r->m->who.process[r->process];
  if (!w || w->pid != l->meta.pid || strcmp(w->host, l->meta.hostname) != 0) {
    r->process = ni_hang_process_of(r->m, l->meta.hostname, l->meta.pid, 0);
    if (r->process < 0)
      return (int)r->process;
    r->member = -1;
  }
  struct ni_hang_process *p = current_process(r);
  p->has_log = true;
  if (!p->ours)
    p->ours = l->meta.producer && !ni_is_imported(l->meta.rec_mechanism);
  /* Lines of a recovered part carry the time of the last sign of life. */
  ni_hang_raise(&p->alive_ns, l->meta.dump_timestamp_us * 1000);
  bool about_comm = l->ident.comm_hash != 0 || l->kind == NI_LINE_OP;
  if (!about_comm) {
    r->member = -1;
    return 0;
  }
  uint64_t init_ns = l->kind == NI_LINE_COMM ? l->comm.init_ns : 0;
  const size_t before = r->m->n_members;
  if (before >= NI_HANG_COMMS)
    return leave_out_member(r);
  if (r->member < 0 || init_ns || !ni_who_is(&r->m->who.member[r->member], &l->ident))
    r->member = ni_hang_member_of(r->m, (uint32_t)r->process, &l->ident, init_ns);
  if (r->member < 0)
    return (int)r->member;
  r->x = r->m->member[r->member];
  if (r->m->n_members > before)
    r->x->moved_ns = p->moved_ns;
  else
    catch_up_member(r, (size_t)r->member);
  ni_hang_raise(&r->x->log_ns, l->meta.dump_timestamp_us * 1000);
  return 0;
}

/* From the call until the kernel began. */
static uint64_t waited_ns(const struct ni_record *in) {
  bool stated =
      (in->has & NI_HAS_GPU_DELTA) && in->gpu_start_delta_ns > 0 && in->gpu_start_delta_ns < HOUR_NS;
  return stated ? (uint64_t)in->gpu_start_delta_ns : 0;
}

/*
 * Records of several communicators are written one write at a time. So a pause in one that the others fill is
 * too long by one write at most.
 */
static void learn_pauses(struct ni_hang_process *p, const struct ni_hang_op *op) {
  if (!op->enqueue_ns || op->seen_ns < op->enqueue_ns)
    return;
  ni_hang_raise(&p->longest_operation_ns, op->seen_ns - op->enqueue_ns);
  if (p->ended_ns && op->enqueue_ns > p->ended_ns)
    ni_hang_raise(&p->longest_gap_ns, op->enqueue_ns - p->ended_ns);
  ni_hang_raise(&p->ended_ns, op->seen_ns);
}

static int read_record(struct ni_hang_reading *r, const struct ni_record *in) {
  if (in->src != NI_SRC_EVENT) { /* its number is the plugin's own, and when it ended nobody knows */
    r->x->invisible++;
    ni_hang_raise(&r->x->active_ns, in->enqueue_ns);
    return in->has & NI_HAS_REC_SN ? ni_seq_set_add(&r->x->recorded[in->kind], in->rec_sn) : 0;
  }
  int func = ni_hang_name(r->m, in->func), datatype = ni_hang_name(r->m, in->datatype);
  if (func < 0 || datatype < 0)
    return -ENOMEM;
  struct ni_hang_op op = {.kind = (uint8_t)in->kind,
                          .func = (uint16_t)func,
                          .datatype = (uint16_t)datatype,
                          .sn = in->sn,
                          .rec_sn = in->has & NI_HAS_REC_SN ? in->rec_sn : NI_HANG_NONE,
                          .bytes = in->msg_bytes,
                          .enqueue_ns = in->has & NI_HAS_ENQUEUE ? in->enqueue_ns : 0,
                          .root = in->kind == NI_KIND_P2P || (in->has & NI_HAS_ROOT) ? in->root : -1,
                          .want = in->timing == NI_TIMING_COLLECTIVE_CPU ? 0 : -1,
                          .started = -1,
                          .stopped = -1,
                          .net_peer = -1,
                          .net_channel = -1,
                          .replay = in->symmetric && in->graph && in->kind == NI_KIND_COLL,
                          .every_ns = in->has & NI_HAS_PREV_REPLAY ? in->prev_replay_ns : 0};
  if (op.enqueue_ns && in->exec_ns < INT64_MAX - op.enqueue_ns)
    op.seen_ns = op.enqueue_ns + in->exec_ns + waited_ns(in);
  learn_pauses(current_process(r), &op);
  return ni_hang_finished(r->x, &op);
}

static int read_anchor(struct ni_hang_member *x, const struct ni_line *l) {
  const bool may_span =
      !l->is_p2p && l->ident.n_ranks > 1 && l->ident.nnodes != 1 && l->op.src == NI_SRC_EVENT;
  return may_span && ni_anchors_want(&x->anchors, l->op.sn, l->op.msg_bytes)
      ? ni_anchors_add_line(&x->anchors, l)
      : 0;
}

static enum ni_hang_state state_of(const struct ni_unfinished_line *in) {
  static const char *const names[] = {"called", "launched", "kernel", "network", "finishing"};
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
    if (strcmp(in->state, names[i]) == 0)
      return (enum ni_hang_state)i;
  if (in->channels_started == 0)
    return NI_HANG_LAUNCHED;
  return in->channels_started > in->channels_stopped ? NI_HANG_KERNEL : NI_HANG_UNSTATED;
}

/*
 * It is not known how long nothing was written before the clock was set back. What has finished was called
 * before what has not.
 */
static void keep_calls_in_order(struct ni_hang_reading *r, const struct ni_hang_op *op) {
  const struct ni_seq_set *recorded = &r->x->recorded[op->kind];
  uint64_t passed = r->x->passed_ns[op->kind];
  bool later = recorded->distinct && op->rec_sn > recorded->highest;
  if (later && op->enqueue_ns && passed > op->enqueue_ns + STEP_NS)
    move_process_times(r, (int64_t)(op->enqueue_ns - passed));
}

static int read_unfinished(struct ni_hang_reading *r, const struct ni_line *l) {
  const struct ni_unfinished_line *in = &l->unfinished;
  int func = ni_hang_name(r->m, in->func), datatype = ni_hang_name(r->m, in->datatype),
      net = ni_hang_name(r->m, in->net_state);
  if (func < 0 || datatype < 0 || net < 0)
    return -ENOMEM;
  bool p2p = strcmp(in->kind, "p2p") == 0, ended = l->kind == NI_LINE_INCOMPLETE;
  /*
   * Later ones ran, so this one was given up and nobody waits for it. NCCL 2.31 drops what it has queued at
   * destroy.
   */
  bool thrown_away =
      current_process(r)->nccl_version >= NI_HANG_DROPS_QUEUED && strcmp(in->why, "finalize") == 0;
  if (ended && (thrown_away || strcmp(in->why, "overtaken") == 0))
    return ni_seq_set_add(&r->x->recorded[p2p ? NI_KIND_P2P : NI_KIND_COLL], in->rec_sn);
  struct ni_hang_op op = {.kind = p2p ? NI_KIND_P2P : NI_KIND_COLL,
                          .state = (uint8_t)state_of(in),
                          .given_up = ended,
                          .func = (uint16_t)func,
                          .datatype = (uint16_t)datatype,
                          .net_state = (uint16_t)net,
                          .sn = in->sn,
                          .rec_sn = in->rec_sn,
                          .bytes = in->msg_bytes,
                          .enqueue_ns = in->enqueue_ns,
                          .seen_ns = l->meta.dump_timestamp_us * 1000,
                          .channels_open = in->channels_open,
                          .channels_above = in->channels_open_above > 0 ? in->channels_open_above : 0,
                          .root = p2p ? in->peer : in->root,
                          .want = in->channels_expected,
                          .started = in->channels_started,
                          .stopped = in->channels_stopped,
                          .net_peer = in->net_peer,
                          .net_channel = in->net_channel};
  keep_calls_in_order(r, &op);
  return ni_hang_in_flight(r->x, &op);
}

static void read_stats(struct ni_hang_reading *r, const struct ni_line *l) {
  const struct ni_stats_line *s = &l->stats;
  struct ni_hang_member *x = r->x;
  uint64_t at = l->meta.dump_timestamp_us * 1000;
  if (!s->has_accounting)
    return;
  if (x->started[0] == NI_HANG_NONE || at >= x->started_ns) {
    for (int k = 0; k < NI_KIND_COUNT; k++)
      x->started[k] = s->kind[k].started;
    x->started_ns = at;
  }
  if (r->recovered || (s->kind[0].in_flight == 0 && s->kind[1].in_flight == 0))
    ni_hang_raise(&x->open_ns, at);
}

/* What `recover` writes of a process that ended by exit or return, or with all its communicators closed. */
static bool ended_by_itself(const char *end) {
  return strcmp(end, "exited") == 0 || strcmp(end, "finalized") == 0;
}

/*
 * The place of a line in its file is its age. If a line states an older time than the line before it, the
 * clock was set back, and what was read before moves back with it. Lines of one write state the same time.
 */
static void keep_order(struct ni_hang_reading *r, const struct ni_line *l) {
  uint64_t at = l->meta.dump_timestamp_us * 1000;
  bool set_back = r->process >= 0 && at + STEP_NS < r->newest_ns && r->newest_ns <= INT64_MAX;
  int64_t by_ns = (int64_t)(at - r->newest_ns);
  r->newest_ns = at;
  if (!set_back || l->kind == NI_LINE_PROCESS)
    return; /* another process's lines may follow in one file */
  move_process_times(r, by_ns);
}

static int read_log_line(struct ni_hang_reading *r, const struct ni_line *l) {
  if (l->kind == NI_LINE_PROCESS) {
    int e = read_process_line(r, l);
    if (e < 0)
      return e;
  }
  keep_order(r, l);
  int e = find_or_add_member_of_line(r, l);
  if (e < 0)
    return e;
  if (r->member < 0) {
    bool over = l->kind == NI_LINE_DUMP_STATS && l->stats.final;
    if (over && (!r->recovered || ended_by_itself(l->stats.end)))
      current_process(r)->life = NI_HANG_LEFT;
    return 0;
  }
  switch (l->kind) {
    case NI_LINE_OP:
      return (e = read_record(r, &l->op)) < 0 ? e : read_anchor(r->x, l);
    case NI_LINE_INCOMPLETE:
    case NI_LINE_STUCK:
    case NI_LINE_IN_FLIGHT:
      return read_unfinished(r, l);
    case NI_LINE_DUMP_STATS:
      read_stats(r, l);
      return 0;
    case NI_LINE_COMM_END:
      /*
       * By its process's end (exit, or killed as recover has it) it is not over for the rank: how it stood
       * counts.
       */
      r->x->destroyed = strcmp(l->comm_end.why, "destroy") == 0 || strcmp(l->comm_end.why, "abort") == 0;
      r->x->end_ns = l->comm_end.ns;
      return 0;
    default:
      return 0;
  }
}

static int read_scanned_line(void *arg, struct ni_line *l, uint64_t line_no) { return read_log_line(arg, l); }

static int count_fault(void *arg, const struct ni_fault *f) {
  ((struct ni_hang_reading *)arg)->m->bad_lines += f->kind == NI_FAULT_BAD_LINE || f->kind == NI_FAULT_ORPHAN;
  return 0;
}

struct log_looking {
  struct ni_hang_model *m; /* all */
  struct ni_atlas *atlas;
};

/* Loads what the index has of the log, if it is complete. The part that is left to read begins at *from. */
static enum ni_atlas_state load_standing(struct ni_hang_reading *r, const struct ni_atlas *a, size_t file_no,
                                         uint64_t *from) {
  const struct ni_atlas_known k = ni_atlas_known(a, file_no);
  struct ni_wire w = ni_wire_load(k.bytes, k.n);
  if (k.state == NI_ATLAS_STALE)
    return k.state;
  ni_hang_standing_wire(&w, r);
  *from = k.end;
  if (ni_wire_over(&w))
    return k.state;
  ni_hang_model_free(r->m);
  *r = (struct ni_hang_reading){.m = r->m, .process = -1, .member = -1};
  *from = 0;
  return NI_ATLAS_STALE;
}

static void store_standing(struct ni_hang_reading *r, struct ni_atlas *a, size_t file_no,
                           struct ni_granules *map) {
  struct ni_wire bytes = ni_hang_standing_bytes(r);
  if (bytes.bad)
    ni_wire_free(&bytes);
  else
    ni_atlas_learn(a, file_no, map, &bytes);
}

/* Reads the log from `from` on. *mtime_ns: when the log was written last; 0: it cannot be read. */
static int read_rest_from(struct ni_hang_reading *r, struct log_looking *x, struct ni_scan *scan,
                          struct ni_scan_to *to, const struct ni_scan_part *p, uint64_t from,
                          int64_t *mtime_ns) {
  const struct ni_range rest = {.from = from, .to = p->at.to};
  const char *path = p->file->path;
  struct ni_scan_end end;
  struct stat st;
  to->arg = r;
  to->take = read_scanned_line;
  to->fault = count_fault;
  to->granules = ni_atlas_brief(x->atlas, p->file_no, from == 0);
  int e = ni_scan_file(scan, path, &rest, to, &end);
  bool fine = e == 0 && !end.error && stat(path, &st) == 0;
  catch_up_all_members(r);
  r->m->lines += end.stats.lines;
  if (end.error)
    ni_hang_bad_file(r->m, path, strerror(-end.error));
  if (fine && to->granules)
    store_standing(r, x->atlas, p->file_no, to->granules);
  *mtime_ns = fine ? (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec : 0;
  ni_granules_free(to->granules);
  return e;
}

static int read_log_part(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p,
                         void **result) {
  struct log_looking *x = arg;
  struct ni_hang_model *m = *result = calloc(1, sizeof *m);
  struct ni_hang_reading r = {.m = m, .process = -1, .member = -1};
  int64_t mtime_ns = p->file->mtime_ns;
  uint64_t from = 0;
  if (!m)
    return -ENOMEM;
  bool fresh = load_standing(&r, x->atlas, p->file_no, &from) == NI_ATLAS_FRESH;
  int e = fresh ? 0 : read_rest_from(&r, x, scan, to, p, from, &mtime_ns);
  m->files++;
  for (size_t i = 0; i < m->n_processes; i++)
    m->process[i].run = p->file->run;
  for (size_t i = 0; e == 0 && mtime_ns && i < m->n_processes; i++) {
    m->process[i].file_ns = (uint64_t)mtime_ns;
    if (!(m->process[i].file = strdup(p->file->path)))
      return -ENOMEM;
  }
  return e;
}

static void drop_log_part(void *all, void *part) {
  ni_hang_model_free(part);
  free(part);
}

static int merge_log_part(void *all, const struct ni_scan_part *p, void *part) {
  int e = ni_hang_model_merge(((struct log_looking *)all)->m, part);
  drop_log_part(all, part);
  return e;
}

int ni_hang_read_logs(struct ni_hang_model *m, const struct ni_files *files,
                      const struct ni_atlas_options *index, const char *who, struct ni_progress *progress) {
  struct ni_scan_plan plan = {0};
  struct log_looking x = {.m = m};
  struct ni_atlas_options opt = *index;
  unsigned jobs = ni_scan_jobs();
  opt.name = "hang";
  int e = ni_atlas_open(&x.atlas, who, files, &opt, false);
  /* Files are read as a whole: who a line belongs to follows from the lines before it. */
  if (e == 0)
    e = ni_scan_plan(&plan, files, false, jobs);
  for (size_t i = 0; e == 0 && i < files->n; i++)
    plan.bytes -= ni_atlas_known(x.atlas, i).end;
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan,
                                             .jobs = jobs,
                                             .progress = progress,
                                             .arg = &x,
                                             .part = read_log_part,
                                             .merge = merge_log_part,
                                             .drop = drop_log_part});
  ni_scan_plan_free(&plan);
  ni_atlas_close(x.atlas, e == 0, NULL);
  return e;
}
