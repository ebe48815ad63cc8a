/*
 * The sorted events as JSON: tracks get lanes as they are needed, slices never cross on a lane, arrows end
 * only where they have begun.
 *
 * Lanes. A slice goes to the first lane of its track on which nothing is running, a part of a kernel to the
 * kernel's; on tracks of calls and steps also where what runs encloses it. So any viewer's rule, that slices
 * of one thread nest or do not touch, holds by construction.
 *
 * Arrows are the format's flow events s and f, written right behind their slice, bound to it by place and
 * time. An end whose beginning was not written (filtered, lost, or later by the clocks) is left out and
 * counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/safe_text.h"
#include "event.h"
#include "write.h"

static const char *const arrow_names[NI_TR_A_COUNT] = {"enqueue to kernel", "call to kernel",
                                                       "call to launch",    "launch to kernel",
                                                       "kernel to network", "enqueue to network"};

/* Arrows that have begun: two tables that take turns, so that the newest 262,144 at least are remembered. */
enum { BEGUN_SLOTS = 1 << 19, BEGUN_MAX = BEGUN_SLOTS / 2 };
struct begun {
  uint64_t *slot[2];
  uint32_t n, now;
};

/* Perfetto shows the threads of a process in order of their numbers, so every track has some in its place. */
enum { LANE_TIDS = 32 };
/* Stacks of another profiler are deep; and what a file can make the search for a lane take is bounded. */
enum { OTHERS_DEPTH = 128, OTHERS_LANES = 256 };

struct timeline_writer {
  struct ni_tr *r;
  struct ni_tr_out out;
  struct begun begun;
  uint32_t next_tid; /* of lanes beyond LANE_TIDS */
  bool *named;       /* units, then devices, whose process was named */
  bool comma;
};

static uint64_t *find_begun(uint64_t *slot, uint64_t id) {
  uint32_t k = (uint32_t)(id >> 20) & (BEGUN_SLOTS - 1);
  while (slot[k] && slot[k] != id)
    k = (k + 1) & (BEGUN_SLOTS - 1);
  return &slot[k];
}

static bool begin_arrow(struct begun *b, uint64_t id) {
  if (b->n == BEGUN_MAX) {
    b->now ^= 1;
    memset(b->slot[b->now], 0, BEGUN_SLOTS * sizeof *b->slot[0]);
    b->n = 0;
  }
  uint64_t *x = find_begun(b->slot[b->now], id);
  if (*x == id || *find_begun(b->slot[b->now ^ 1], id) == id)
    return false;
  *x = id;
  b->n++;
  return true;
}

static bool has_begun(const struct begun *b, uint64_t id) {
  return *find_begun(b->slot[0], id) == id || *find_begun(b->slot[1], id) == id;
}

static void begin_event(struct timeline_writer *w, const char *phase) {
  ni_tr_out_text(&w->out, w->comma ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
  ni_tr_out_text(&w->out, phase);
  w->comma = true;
}

static void write_number(struct timeline_writer *w, const char *key, uint64_t v) {
  ni_tr_out_text(&w->out, ",\"");
  ni_tr_out_text(&w->out, key);
  ni_tr_out_text(&w->out, "\":");
  ni_tr_out_u64(&w->out, v);
}

static void write_metadata(struct timeline_writer *w, const char *what, uint32_t pid, uint32_t tid,
                           const char *text, uint64_t value) {
  begin_event(w, "M");
  ni_tr_out_text(&w->out, "\",\"name\":\"");
  ni_tr_out_text(&w->out, what);
  ni_tr_out_text(&w->out, "\"");
  write_number(w, "pid", pid);
  if (tid)
    write_number(w, "tid", tid);
  ni_tr_out_text(&w->out, ",\"args\":{");
  if (text) {
    ni_tr_out_text(&w->out, strcmp(what, "process_labels") == 0 ? "\"labels\":" : "\"name\":");
    ni_tr_out_string(&w->out, text);
  } else {
    ni_tr_out_text(&w->out, "\"sort_index\":");
    ni_tr_out_u64(&w->out, value);
  }
  ni_tr_out_text(&w->out, "}}");
}

static void write_process_name(struct timeline_writer *w, uint32_t unit) {
  const struct ni_tr *r = w->r;
  const struct ni_tr_unit *u = &r->unit[unit];
  char text[512];
  if (w->named[unit])
    return;
  w->named[unit] = true;
  ni_tr_unit_name(r, unit, text, sizeof text);
  write_metadata(w, "process_name", u->out_pid, 0, text, 0);
  write_metadata(w, "process_sort_index", u->out_pid, 0, NULL, u->rank >= 0 ? (uint64_t)u->rank : INT32_MAX);
  ni_tr_clock_text(r, r->process[u->process].host, text, sizeof text);
  write_metadata(w, "process_labels", u->out_pid, 0, text, 0);
}

/* The order in a process: marks and calls, then the tracks of each communicator, by class and channel. */
static int compare_by_place(const void *a, const void *b, void *tracks) {
  const struct ni_tr_track *all = tracks, *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
  if (x->unit != y->unit)
    return x->unit < y->unit ? -1 : 1;
  uint32_t p = x->member == NI_TR_NONE && x->class <= NI_TR_T_CALLS ? 0 : x->member;
  uint32_t q = y->member == NI_TR_NONE && y->class <= NI_TR_T_CALLS ? 0 : y->member;
  bool first = x->class <= NI_TR_T_CALLS, second = y->class <= NI_TR_T_CALLS;
  if (first != second)
    return first ? -1 : 1;
  if (p != q)
    return p < q ? -1 : 1;
  if (x->class != y->class)
    return x->class < y->class ? -1 : 1;
  return x->sub < y->sub ? -1 : x->sub > y->sub;
}

/*
 * Numbers above those of the processes: viewers take a thread with its process's number for the main thread.
 */
static int number_tracks(struct timeline_writer *w) {
  struct ni_tr *r = w->r;
  uint32_t tid = 1, *order = ni_order(r->n_tracks, compare_by_place, r->track);
  if (!order)
    return -ENOMEM;
  for (uint32_t i = 0; i < r->n_units; i++)
    if (r->unit[i].out_pid >= tid)
      tid = r->unit[i].out_pid + 1;
  tid += r->n_devices;
  for (uint32_t i = 0; i < r->n_tracks; i++, tid += LANE_TIDS)
    r->track[order[i]].tid = tid;
  w->next_tid = tid;
  free(order);
  return 0;
}

static void write_lane_name(struct timeline_writer *w, const struct ni_tr_track *t, uint32_t lane,
                            uint32_t tid) {
  const struct ni_tr *r = w->r;
  char text[256];
  uint32_t pid = r->unit[t->unit].out_pid;
  write_process_name(w, t->unit);
  ni_tr_track_name(r, t, lane, text, sizeof text);
  write_metadata(w, "thread_name", pid, tid, text, 0);
  write_metadata(w, "thread_sort_index", pid, tid, NULL, t->tid + (lane < LANE_TIDS ? lane : LANE_TIDS - 1));
}

/* The lane on which what it is a part of runs; NULL: that was left out. */
static struct ni_tr_lane *find_lane_of_whole(struct ni_tr_track *t, const struct ni_tr_event *e) {
  for (uint32_t i = 0; i < t->n_lanes; i++) {
    struct ni_tr_lane *x = &t->lane[i];
    if (!x->depth || x->end[0] != (int64_t)e->arrow[0].id)
      continue;
    x->depth = 1; /* the part before it is over */
    return x;
  }
  return NULL;
}

/*
 * The lane for a slice; made when all are taken. NULL: no memory, or no more of them are for another
 * profiler's file.
 */
static struct ni_tr_lane *choose_lane(struct timeline_writer *w, struct ni_tr_track *t,
                                      const struct ni_tr_event *e) {
  bool others = t->class == NI_TR_T_OTHER,
       nests = others || t->class == NI_TR_T_CALLS || t->class == NI_TR_T_MARKS;
  int64_t end = e->ts + e->dur;
  for (uint32_t i = 0; i < t->n_lanes; i++) {
    struct ni_tr_lane *x = &t->lane[i];
    while (x->depth && x->end[x->depth - 1] <= e->ts)
      x->depth--;
    if (e->phase == NI_TR_INSTANT)
      return x;
    const bool can_nest = nests && x->depth < (others ? OTHERS_DEPTH : 8);
    if (x->depth && !(can_nest && end <= x->end[x->depth - 1]))
      continue;
    if (!ni_array_room(x->end, x->depth, x->cap_end))
      return NULL;
    x->end[x->depth++] = end;
    return x;
  }
  if (others && t->n_lanes == OTHERS_LANES)
    return NULL;
  if (!ni_array_room(t->lane, t->n_lanes, t->cap_lanes))
    return NULL;
  struct ni_tr_lane *x = &t->lane[t->n_lanes];
  *x = (struct ni_tr_lane){.tid = t->n_lanes < LANE_TIDS ? t->tid + t->n_lanes : w->next_tid++,
                           .depth = e->phase == NI_TR_INSTANT ? 0 : 1};
  write_lane_name(w, t, t->n_lanes++, x->tid);
  if (!ni_array_room(x->end, 0, x->cap_end))
    return NULL;
  x->end[0] = end;
  return x;
}

static void put_args(struct timeline_writer *w, const struct ni_tr_event *e) {
  struct ni_tr_out *o = &w->out;
  ni_tr_out_text(o, ",\"args\":{");
  for (unsigned i = 0; i < e->n_args; i++) {
    ni_tr_out_text(o, i ? ",\"" : "\"");
    ni_tr_out_text(o, ni_tr_key_name(e->key[i]));
    ni_tr_out_text(o, "\":");
    double d;
    switch (ni_tr_key_form(e->key[i])) {
      case NI_TR_I64:
        ni_tr_out_i64(o, (int64_t)e->value[i]);
        break;
      case NI_TR_TEXT:
        ni_tr_out_string(o, ni_name_text(&w->r->names, (uint32_t)e->value[i]));
        break;
      case NI_TR_HEX:
      case NI_TR_HASH:
        ni_tr_out_hex(o, e->value[i]);
        break;
      case NI_TR_US:
        ni_tr_out_us(o, (int64_t)e->value[i]);
        break;
      case NI_TR_BOOL:
        ni_tr_out_text(o, e->value[i] ? "true" : "false");
        break;
      case NI_TR_BW:
        memcpy(&d, &e->value[i], sizeof d);
        ni_tr_out_f64(o, d);
        break;
      default:
        ni_tr_out_u64(o, e->value[i]);
        break;
    }
  }
  ni_tr_out_text(o, "}");
}

static void write_place(struct timeline_writer *w, uint32_t pid, uint32_t tid, int64_t ts) {
  write_number(w, "pid", pid);
  write_number(w, "tid", tid);
  ni_tr_out_text(&w->out, ",\"ts\":");
  ni_tr_out_us(&w->out, ts - w->r->t0_ns);
}

/* 1: written; 0: not, what it joins is not there. */
static bool put_arrow(struct timeline_writer *w, const struct ni_tr_arrow *a, uint32_t pid, uint32_t tid,
                      int64_t ts) {
  struct ni_tr *r = w->r;
  uint64_t id = a->id | 1; /* 0 marks a free place */
  if (a->out ? !begin_arrow(&w->begun, id) : !has_begun(&w->begun, id))
    return false;
  begin_event(w, a->out ? "s" : "f\",\"bp\":\"e");
  ni_tr_out_text(&w->out, "\",\"name\":\"");
  ni_tr_out_text(&w->out, arrow_names[a->kind]);
  ni_tr_out_text(&w->out, "\",\"cat\":\"flow\",\"id\":");
  ni_tr_out_hex(&w->out, id);
  write_place(w, pid, tid, ts);
  ni_tr_out_text(&w->out, "}");
  r->count.arrows += !a->out;
  return true;
}

/*
 * A network operation comes from its kernel, or, when it was posted before the kernel began, from the
 * enqueue.
 */
static void put_arrows(struct timeline_writer *w, const struct ni_tr_event *e, uint32_t pid, uint32_t tid) {
  bool from_kernel = false;
  for (unsigned i = 0; i < e->n_arrows; i++) {
    const struct ni_tr_arrow *a = &e->arrow[i];
    if (a->kind == NI_TR_A_POST && !a->out && from_kernel)
      continue;
    bool is_written = put_arrow(w, a, pid, tid, e->ts);
    if (a->kind == NI_TR_A_NET && !a->out)
      from_kernel = is_written;
    else
      w->r->count.arrows_back += !is_written && !a->out;
  }
}

/*
 * A value that holds until the next one of its name: unit and number (emit_others.c), or a mark without
 * either.
 */
static void put_counter(struct timeline_writer *w, const struct ni_tr_event *e) {
  const struct ni_tr_device *d = &w->r->device[e->track];
  bool *named = &w->named[w->r->n_units + e->track];
  if (!*named) {
    char text[512];
    snprintf(text, sizeof text, "%.400s: NICs and GPUs", ni_name_text(&w->r->names, d->host));
    write_metadata(w, "process_name", d->out_pid, 0, text, 0);
    write_metadata(w, "process_sort_index", d->out_pid, 0, NULL, INT32_MAX);
    *named = true;
  }
  bool mark = e->n_args == 0; /* it has no number there */
  begin_event(w, mark ? "i\",\"s\":\"p" : "C");
  ni_tr_out_text(&w->out, "\",\"name\":");
  ni_tr_out_string(&w->out, ni_name_text(&w->r->names, e->name));
  write_place(w, d->out_pid, d->out_pid, e->ts);
  if (!mark) {
    double v;
    memcpy(&v, &e->value[1], sizeof v);
    ni_tr_out_text(&w->out, ",\"args\":{");
    ni_tr_out_string(&w->out, ni_name_text(&w->r->names, (uint32_t)e->value[0]));
    ni_tr_out_text(&w->out, ":");
    ni_tr_out_f64(&w->out, v);
    ni_tr_out_text(&w->out, "}");
  }
  ni_tr_out_text(&w->out, "}");
  w->r->count.samples++;
  if (e->ts > w->r->t1_ns)
    w->r->t1_ns = e->ts;
}

static int put_event(struct timeline_writer *w, const struct ni_tr_event *e) {
  struct ni_tr *r = w->r;
  if (e->phase == NI_TR_COUNTER) {
    put_counter(w, e);
    return 0;
  }
  struct ni_tr_track *t = &r->track[e->track];
  const bool part = e->category == NI_TR_C_PHASE;
  struct ni_tr_lane *lane = part ? find_lane_of_whole(t, e) : choose_lane(w, t, e);
  if (part && !lane)
    return 0;
  if (!lane && t->class == NI_TR_T_OTHER && t->n_lanes == OTHERS_LANES) {
    r->count.with_crowded++;
    return 0;
  }
  if (!lane)
    return -ENOMEM;
  uint32_t pid = r->unit[t->unit].out_pid;
  begin_event(w, e->phase == NI_TR_INSTANT ? "i\",\"s\":\"t" : "X");
  ni_tr_out_text(&w->out, "\",\"name\":");
  ni_tr_out_string(&w->out, ni_name_text(&r->names, e->name));
  ni_tr_out_text(&w->out, ",\"cat\":\"");
  ni_tr_out_text(&w->out, ni_tr_category_name(e->category));
  ni_tr_out_text(&w->out, "\"");
  write_place(w, pid, lane->tid, e->ts);
  if (e->phase != NI_TR_INSTANT) {
    ni_tr_out_text(&w->out, ",\"dur\":");
    ni_tr_out_us(&w->out, e->dur);
    r->count.slices++;
  }
  if (e->category == NI_TR_C_LOSS || e->category == NI_TR_C_OPEN)
    ni_tr_out_text(&w->out, ",\"cname\":\"terrible\"");
  if (e->n_args)
    put_args(w, e);
  ni_tr_out_text(&w->out, "}");
  if (!part)
    put_arrows(w, e, pid, lane->tid);
  if (e->ts + e->dur > r->t1_ns)
    r->t1_ns = e->ts + e->dur;
  return 0;
}

/* Said at once, since the rest may take minutes that the user can save. */
static void warn_once(struct ni_tr *r) {
  char text[32];
  r->out_large = true;
  ni_say(
      stderr,
      "nccl-inspector trace: the timeline passes %s of text, about as much as Perfetto opens: " NI_TR_SMALLER
      "\n",
      ni_bytes_text(NI_TR_VIEWER_BYTES, text));
}

enum { EVENTS_BETWEEN = 4096 }; /* words of progress */

static int put_sorted(struct timeline_writer *w) {
  struct ni_tr *r = w->r;
  const void *item;
  size_t len;
  int got, e = 0;
  struct ni_tr_event event;
  bool has_any = false;
  uint64_t n = 0;
  ni_progress_begin(&r->progress, "write", r->count.events, false, 0);
  while (e == 0 && (got = ni_sort_next(r->sort, &item, &len)) > 0) {
    ni_tr_unpack(item, &event);
    /*
     * Times in the file count from the first event, in whole ms: us of Unix time have no room for ns in a
     * double.
     */
    if (!has_any)
      r->t0_ns = r->t1_ns = event.ts - event.ts % 1000000;
    has_any = true;
    e = put_event(w, &event);
    if (++n % EVENTS_BETWEEN == 0)
      ni_progress_add(&r->progress, EVENTS_BETWEEN, 0);
    if (w->out.bytes > NI_TR_VIEWER_BYTES && !r->out_large)
      warn_once(r);
    if (e == 0 && w->out.error)
      e = w->out.error;
  }
  ni_progress_end(&r->progress);
  return e < 0 ? e : got;
}

int ni_tr_write(struct ni_tr *r, void (*about)(const struct ni_tr *r, struct ni_tr_out *o)) {
  struct timeline_writer w = {.r = r};
  char why[400];
  int e = ni_tr_out_open(&w.out, r->out_path, why, sizeof why);
  if (e < 0)
    return ni_tr_fail(r, e, "%s: %s%s", r->out_path, why, e == -EACCES || e == -EROFS ? ", by -o FILE" : "");
  w.named = calloc((size_t)r->n_units + r->n_devices + 1, sizeof *w.named);
  for (int i = 0; i < 2; i++)
    w.begun.slot[i] = calloc(BEGUN_SLOTS, sizeof *w.begun.slot[i]);
  if (!w.named || !w.begun.slot[0] || !w.begun.slot[1])
    e = -ENOMEM;
  if (e == 0)
    e = number_tracks(&w);
  ni_tr_out_text(&w.out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  if (e == 0)
    e = put_sorted(&w);
  ni_tr_out_text(&w.out, "\n],\n\"otherData\":");
  if (e == 0)
    about(r, &w.out);
  ni_tr_out_text(&w.out, "}\n");
  r->out_text_bytes = w.out.bytes + w.out.n;
  if (e == 0)
    e = ni_tr_out_commit(&w.out, &r->out_bytes);
  else
    ni_tr_out_abort(&w.out);
  free(w.begun.slot[0]);
  free(w.begun.slot[1]);
  free(w.named);
  return e < 0 ? ni_tr_fail(r, e, "%s: %s", r->out_path, strerror(-e)) : 0;
}
