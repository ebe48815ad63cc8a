/* The truth file. States, threads and failure: truth.h; keys: docs/simulator.md. */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "test/nccl_sim/core/settings.h"

enum { KEEP = 64 * 1024, LINE = 20480, CALL_LINE = 1024 };

struct ni_truth_buf {
  pthread_mutex_t lock;
  bool closed;
  size_t n;
  char text[KEEP + LINE];
};

static int fd = -1;
static const char *const out_names[NI_OUT_COUNT] = {"done", "open", "abort", "thrown"};

extern char **environ;

static void put(const char *text, size_t n) {
  while (n > 0) {
    ssize_t k = write(fd, text, n);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      ni_die(NI_SIM_FAILED, "truth file: %s", strerror(errno));
    text += k;
    n -= (size_t)k;
  }
}

/* JSON string without the quotes; what is not printable ASCII becomes \u00xx byte by byte. */
static int escape(char *out, size_t cap, const char *s) {
  size_t n = 0;
  for (; s && *s && n + 7 < cap; s++) {
    unsigned char ch = (unsigned char)*s;
    if (ch == '"' || ch == '\\')
      out[n++] = '\\';
    if (ch < 32 || ch > 126)
      n += (size_t)snprintf(out + n, cap - n, "\\u%04x", ch);
    else
      out[n++] = (char)ch;
  }
  out[n] = 0;
  return (int)n;
}

void ni_truth_open(const char *path) {
  if (!path)
    return;
  fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0)
    ni_die(NI_SIM_FAILED, "%s: %s", path, strerror(errno));
}

void ni_truth_process(const char *host, uint64_t seed, int mask_steps) {
  if (fd < 0)
    return;
  char line[LINE], esc[512];
  int n = snprintf(
      line, sizeof line,
      "{\"t\":\"proc\",\"pid\":%d,\"host\":\"%s\",\"scenario\":\"%s\",\"seed\":%llu,\"nccl\":%d,\"rccl\":%d,"
      "\"mask_steps\":%d,\"start_ns\":%llu,\"env\":{",
      getpid(), host, ni_run.scenario, (unsigned long long)seed, ni_core.release, ni_core.rccl, mask_steps,
      (unsigned long long)ni_unix_now());
  const char *comma = "";
  for (char **e = environ; *e && n < LINE - 600; e++)
    if (strncmp(*e, "NCCL_INSPECTOR_", 15) == 0 || strncmp(*e, "NCCL_PROFILE", 12) == 0) {
      escape(esc, sizeof esc, *e);
      char *eq = strchr(esc, '=');
      if (!eq)
        continue;
      *eq = 0;
      n += snprintf(line + n, sizeof line - (size_t)n, "%s\"%s\":\"%s\"", comma, esc, eq + 1);
      comma = ",";
    }
  n += snprintf(line + n, sizeof line - (size_t)n, "}}\n");
  put(line, (size_t)n);
}

void ni_truth_comm_line(const struct ni_comm_ident *id) {
  if (fd < 0)
    return;
  char line[LINE], esc[1024];
  bool named = id->name && !(ni_core.rccl && strcmp(id->name, "unknown") == 0);
  escape(esc, sizeof esc, named ? id->name : NULL);
  int n = snprintf(line, sizeof line,
                   "{\"t\":\"comm\",\"pid\":%d,\"hash\":\"0x%llx\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":%d,"
                   "\"interface\":%d,\"named\":%d,\"name\":\"%s\"}\n",
                   getpid(), (unsigned long long)id->hash, id->rank, id->n_ranks, id->n_nodes,
                   ni_core.interface, named, esc);
  put(line, (size_t)n);
}

void ni_truth_comm(struct ni_crank *c) {
  if (fd < 0)
    return;
  if (!c->truth) {
    c->truth = ni_xalloc(sizeof *c->truth);
    pthread_mutex_init(&c->truth->lock, NULL);
  }
  c->truth->closed = false;
  ni_truth_comm_line(&c->id);
}

static void flush(struct ni_truth_buf *b) {
  put(b->text, b->n);
  b->n = 0;
}

/* Returns the length; `o` has LINE bytes. */
static size_t format(char *to, const struct ni_truth_op *o) {
  size_t cap = LINE;
  int n = snprintf(
      to, cap,
      "{\"t\":\"op\",\"pid\":%d,\"hash\":\"0x%llx\",\"rank\":%d,\"kind\":\"%s\",\"func\":\"%s\","
      "\"sn\":%llu,\"rec\":%llu,\"call\":%lld,\"called\":%d,\"null\":%d,\"unordered\":%d,\"out\":\"%s\","
      "\"bytes\":%llu,\"dtype\":\"%s\",\"root\":%d,\"peer\":%d,\"algo\":\"%s\",\"proto\":\"%s\","
      "\"nch\":%d,\"desc_nch\":%d,\"missing\":%d,\"done_ch\":%d,\"mask\":%d,\"timing\":\"%s\","
      "\"stamps\":\"%s\",\"exec_ns\":%llu,\"enq_from\":%llu,\"enq_to\":%llu,\"first_ns\":%llu,\"first_to\":%"
      "llu,"
      "\"last_ns\":%llu,\"last_to\":%llu,\"end_ns\":%llu,\"late_ms\":%u,\"sym\":%d,\"cap\":%d,\"parent\":%d,"
      "\"shared\":%d,"
      "\"shifted\":%d,\"kernel\":\"%s\",\"tag\":%llu,\"phased\":%d,\"phases\":%d,\"initial_ns\":%llu,"
      "\"compute_ns\":%llu,\"final_ns\":%llu,\"replayed_from\":%llu,\"replayed_to\":%llu,\"ch\":[",
      getpid(), (unsigned long long)o->hash, o->rank, o->coll ? "coll" : "p2p", o->func,
      (unsigned long long)o->sn, (unsigned long long)o->rec, (long long)o->call, o->called, o->null_handle,
      o->unordered, out_names[o->out], (unsigned long long)o->bytes, o->dtype, o->root, o->peer, o->algo,
      o->proto, o->nch, o->desc_nch, o->missing, o->done_ch, o->mask, o->timing, o->stamps,
      (unsigned long long)o->exec_ns, (unsigned long long)o->enq_from, (unsigned long long)o->enq_to,
      (unsigned long long)o->first_ns, (unsigned long long)o->first_to, (unsigned long long)o->last_ns,
      (unsigned long long)o->last_to, (unsigned long long)ni_unix_now(), o->late_ms, o->symmetric,
      o->captured, o->parent, o->shared, o->shifted, o->kernel ? o->kernel : "", (unsigned long long)o->tag,
      o->phased, o->phases_known, (unsigned long long)o->initial_ns, (unsigned long long)o->compute_ns,
      (unsigned long long)o->final_ns, (unsigned long long)o->replayed_from,
      (unsigned long long)o->replayed_to);
  for (int i = 0; i < o->n_channels; i++)
    n += snprintf(to + n, cap - (size_t)n, "%s[%d,%llu,%llu]", i ? "," : "", o->channels[i].ch,
                  (unsigned long long)o->channels[i].start, (unsigned long long)o->channels[i].stop);
  n += snprintf(to + n, cap - (size_t)n, "]}\n");
  return (size_t)n;
}

void ni_truth_line(const struct ni_truth_op *o) {
  char line[LINE];
  if (fd >= 0)
    put(line, format(line, o));
}

/* Where a symmetric kernel synchronises and where it computes, from all channels: the parts of a record. */
static void sum_phases(struct ni_truth_op *o, const struct ni_work *w, uint64_t first, uint64_t last) {
  uint64_t open = 0, close = 0;
  o->phases_known = w->n_nodes > 0 && w->task->symmetric && ni_core.interface >= 7;
  for (int i = 0; i < w->n_nodes; i++) {
    const struct ni_node *n = &w->nodes[i];
    uint64_t open_ns = ni_core_stamp_ns(n->open_stamp), close_ns = ni_core_stamp_ns(n->close_stamp);
    o->phased |= n->phases != 0;
    o->phases_known &= n->phases == 1 && n->start_stamp && n->stop_stamp > n->start_stamp;
    if (open_ns > open)
      open = open_ns;
    if (close_ns > close)
      close = close_ns;
  }
  if (!o->phases_known)
    return;
  o->initial_ns = open - first;
  o->compute_ns = close - open;
  o->final_ns = last - close;
}

static void emit(struct ni_truth_buf *b, const struct ni_work *w, enum ni_outcome out) {
  const struct ni_task *t = w->task;
  const struct ni_work *in = w->head ? w->head : w; /* whose KernelCh tells its time */
  bool coll = t->kind == NI_TASK_COLL;
  bool bytes = coll && (t->func == NI_FUNC_ALLGATHER || t->func == NI_FUNC_BROADCAST);
  bool symmetric = t->symmetric && (ni_core.interface >= 7 || ni_run.scn->set.empty_proto);
  struct ni_truth_op o = {.hash = w->c->id.hash,
                          .sn = w->sn,
                          .rec = w->rec,
                          .bytes = ni_task_bytes(t),
                          .enq_from = w->before_ns,
                          .enq_to = w->after_ns,
                          .first_ns = in->first_ns,
                          .first_to = in->first_to_ns,
                          .last_ns = in->last_ns,
                          .last_to = in->last_to_ns,
                          .rank = w->c->id.rank,
                          .root = t->root,
                          .peer = w->peer,
                          .nch = t->n_ch,
                          .desc_nch = ni_said_channels(w),
                          .done_ch = in->n_done,
                          .mask = w->mask,
                          .call = w->call,
                          .coll = coll,
                          .called = w->called,
                          .null_handle = w->handle == NULL,
                          .unordered = w->unordered,
                          .missing = t->missing_ch >= t->ch0 && t->missing_ch < t->ch0 + t->n_ch,
                          .symmetric = symmetric,
                          .captured = w->captured,
                          .parent = w->parent,
                          .shared = w->head || w->tails,
                          .tag = ni_core.interface >= 7 ? w->tag : 0,
                          .replayed_from = w->replayed_from,
                          .replayed_to = w->replayed_to,
                          .kernel = ni_core.interface >= 7 ? t->variant : NULL,
                          .func = t->func_name,
                          .dtype = bytes ? "ncclInt8" : t->dtype,
                          .algo = coll && t->algo ? t->algo : "",
                          .proto = coll && t->proto ? t->proto : "",
                          .stamps = ni_run.scn->set.overrun || ni_run.scn->set.behind ? "overrun"
                              : in->nothing                                           ? "zero"
                                            : ni_stamps_names[in->task->stamps],
                          .out = out,
                          .late_ms = t->late_ch >= 0 ? t->late_ms : 0};
  uint64_t first = 0, last = 0;
  bool new = ni_core_new(ni_core.release);
  int sound = 0; /* channels whose stamps are this work's */
  if (t->symmetric && !symmetric)
    o.proto = "SIMPLE";
  for (int i = 0; i < in->n_nodes; i++) {
    const struct ni_node *n = &in->nodes[i];
    if (n->ghost)
      continue;
    uint64_t start_ns = ni_core_stamp_ns(n->start_stamp), stop_ns = ni_core_stamp_ns(n->stop_stamp);
    o.channels[o.n_channels++] = (struct ni_truth_channel){n->ch, start_ns, stop_ns};
    o.shifted |= new && n->anothers;
    if (n->anothers && !new)
      continue;
    sound++;
    if (n->state == NI_NODE_POSTED)
      continue;
    if (first == 0 || start_ns < first)
      first = start_ns;
    if (n->state == NI_NODE_DONE && stop_ns > last)
      last = stop_ns;
  }
  o.exec_ns = last > first ? last - first : 0;
  sum_phases(&o, in, first, last);
  bool trusted = in->task->stamps == NI_STAMPS_GOOD && !in->nothing && ni_core.interface >= 4;
  o.timing = !sound ? "collective_cpu" : trusted ? "kernel_gpu" : "kernel_cpu";
  b->n += format(b->text + b->n, &o);
  if (b->n >= KEEP)
    flush(b);
}

/* Returns the length; `to` has CALL_LINE bytes. */
static size_t format_called(char *to, const struct ni_truth_called *o) {
  return (size_t)snprintf(
      to, CALL_LINE,
      "{\"t\":\"call\",\"pid\":%d,\"hash\":\"0x%llx\",\"rank\":%d,\"func\":\"%s\",\"call\":%lld,\"src\":\"%"
      "s\","
      "\"bytes\":%llu,\"dtype\":\"%s\",\"root\":%d,\"tag\":%llu,\"enq_from\":%llu,\"enq_to\":%llu}\n",
      getpid(), (unsigned long long)o->hash, o->rank, o->func, (long long)o->call, o->src,
      (unsigned long long)o->bytes, o->dtype, o->root, (unsigned long long)o->tag,
      (unsigned long long)o->enq_from, (unsigned long long)o->enq_to);
}

void ni_truth_called_line(const struct ni_truth_called *o) {
  char line[CALL_LINE];
  if (fd >= 0)
    put(line, format_called(line, o));
}

void ni_truth_call(struct ni_crank *c, const struct ni_task *t, int64_t call, const char *src,
                   uint64_t from_ns, uint64_t to_ns) {
  struct ni_truth_buf *b = c->truth;
  if (fd < 0 || !b)
    return;
  char line[CALL_LINE];
  size_t n = format_called(line,
                           &(struct ni_truth_called){.tag = ni_core.interface >= 7 ? t->tag : 0,
                                                     .hash = c->id.hash,
                                                     .bytes = ni_task_bytes(t),
                                                     .enq_from = from_ns,
                                                     .enq_to = to_ns,
                                                     .call = call,
                                                     .rank = c->id.rank,
                                                     .root = t->root,
                                                     .func = t->func_name,
                                                     .dtype = t->dtype,
                                                     .src = src});
  pthread_mutex_lock(&b->lock);
  if (!b->closed) {
    memcpy(b->text + b->n, line, n);
    b->n += n;
    if (b->n >= KEEP)
      flush(b);
  }
  pthread_mutex_unlock(&b->lock);
}

void ni_truth_lock(struct ni_crank *c) {
  if (c->truth)
    pthread_mutex_lock(&c->truth->lock);
}
void ni_truth_unlock(struct ni_crank *c) {
  if (c->truth)
    pthread_mutex_unlock(&c->truth->lock);
}

void ni_truth_work(struct ni_work *w, enum ni_outcome out) {
  struct ni_truth_buf *b = w->c->truth;
  if (fd < 0 || !b) {
    atomic_store_explicit(&w->busy, 0, memory_order_release);
    return;
  }
  pthread_mutex_lock(&b->lock);
  if (!b->closed)
    emit(b, w, out);
  atomic_store_explicit(&w->busy, 0, memory_order_release);
  pthread_mutex_unlock(&b->lock);
}

void ni_truth_close_comm(struct ni_crank *c, enum ni_outcome out) {
  struct ni_truth_buf *b = c->truth;
  if (fd < 0 || !b)
    return;
  pthread_mutex_lock(&c->lock);
  pthread_mutex_lock(&b->lock);
  for (int i = 0; i < c->n_works && !b->closed; i++)
    if (atomic_load_explicit(&c->works[i]->busy, memory_order_acquire))
      emit(b, c->works[i], out);
  b->closed = true;
  flush(b);
  pthread_mutex_unlock(&b->lock);
  pthread_mutex_unlock(&c->lock);
}

void ni_truth_events(void) {
  if (fd < 0)
    return;
  char line[1024];
  int n = snprintf(
      line, sizeof line,
      "{\"t\":\"events\",\"pid\":%d,\"interface\":%d,\"steps\":%llu,\"step_bytes\":%llu,\"late_net\":%llu",
      getpid(), ni_run.interface, (unsigned long long)ni_core.steps, (unsigned long long)ni_core.step_bytes,
      (unsigned long long)ni_core.late_net);
  for (int i = 0; i < 16; i++)
    n += snprintf(line + n, sizeof line - (size_t)n, ",\"e%d\":%llu", i,
                  (unsigned long long)ni_core.starts[i]);
  n += snprintf(line + n, sizeof line - (size_t)n, "}\n");
  put(line, (size_t)n);
}

void ni_truth_end(enum ni_end how) {
  if (fd < 0)
    return;
  char line[256];
  int n = snprintf(line, sizeof line, "{\"t\":\"end\",\"pid\":%d,\"how\":\"%s\",\"ns\":%llu}\n", getpid(),
                   ni_end_names[how], (unsigned long long)ni_unix_now());
  put(line, (size_t)n);
}
