#include "recover_box.h"

#include "recover_gather.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/input/box/box_decode.h"
#include "exporter/model/ledger/ledger.h"
#include "exporter/input/parse/parse.h"
#include "exporter/input/scan.h"
#include "format/line.h"
#include "exporter/base/text/plural.h"
#include "format/line_write.h"

#define REQUIRE_GPU "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING"

static void read_op(const struct ni_recover_job *j, const struct ni_recover_ref *ref, struct ni_box_op *op) {
  ni_box_op_at(j->b, ref->slot, op);
  if (!ref->numbered)
    return;
  op->rec_sn = ref->rec_sn;
  op->sn = ref->sn;
}

/* ---- lines ---- */

static void write_records(struct ni_recover_job *j, struct ni_recover_life *l,
                          struct ni_kind_counts *counts) {
  for (size_t i = 0; i < l->finished.n; i++) {
    struct ni_box_op op;
    struct ni_record r;
    int why;
    read_op(j, &l->finished.op[i], &op);
    ni_recover_record(j->b, &l->c, &op, &r, &why);
    if (why >= 0)
      counts[op.kind].fallback[why]++;
    if (j->gpu_only && r.timing != NI_TIMING_KERNEL_GPU) {
      counts[op.kind].filtered[NI_FILTER_NO_KERNEL_TIMING]++;
      j->out->filtered++;
      continue;
    }
    NI_PART_PUT(&j->part, op, &r);
    counts[op.kind].written++;
    j->out->records++;
  }
}

static const char *name_state(const struct ni_box_op *op, uint64_t open, const struct ni_box_net *net) {
  if (net && net->on_network)
    return "network";
  if (op->started == 0 && !open)
    return "launched";
  if (open || op->started > op->stopped)
    return "kernel";
  return op->want == op->stopped ? "finishing" : "kernel";
}

/* As in_flight lines, or as incomplete ones. */
static void write_unfinished(struct ni_recover_job *j, struct ni_recover_life *l,
                             const struct ni_recover_list *ops, bool in_flight, const char *why) {
  uint64_t now = ni_box_seen_ns(j->b);
  for (size_t i = 0; i < ops->n; i++) {
    struct ni_box_op op;
    read_op(j, &ops->op[i], &op);
    uint64_t at = ni_box_unix_ns(j->b, op.ticks_start);
    struct ni_unfinished_line in;
    ni_part_unfinished(&op, &in);
    in.why = why;
    in.enqueue_ns = at;
    in.age_ms = now > at ? (now - at) / 1000000 : 0;
    if (!in_flight) {
      NI_PART_PUT(&j->part, incomplete, &in);
      continue;
    }
    struct ni_box_net net;
    const struct ni_box_net *moves = ni_box_net_of(j->b, &op, &net) ? &net : NULL;
    uint64_t open = ni_box_open_channels(j->b, l->index, &op);
    ni_part_state(&in, name_state(&op, open, moves), open, moves);
    in.channels_open_above = ni_box_open_above(j->b, &op, open);
    NI_PART_PUT(&j->part, in_flight, &in);
  }
}

/* Writes losses that no gap line of the log names. */
static void write_gaps(struct ni_recover_job *j, struct ni_recover_life *l,
                       const struct ni_kind_counts *counts) {
  for (int k = 0; k < NI_KIND_COUNT; k++)
    for (int w = 0; w < NI_DROP_COUNT; w++) {
      uint64_t told = l->log ? l->log->kind[k].gap[w] : 0, all = counts[k].dropped[w],
               n = l->c.kind[k].started;
      struct ni_gap_line in = {ni_kind_names[k], ni_drop_names[w], all - told, 0, n ? n - 1 : 0};
      if (all > told)
        NI_PART_PUT(&j->part, gap, &in);
    }
}

static uint64_t sum_counts(const uint64_t *n, int count) {
  uint64_t total = 0;
  for (int i = 0; i < count; i++)
    total += n[i];
  return total;
}

static uint64_t count_settled(const struct ni_kind_counts *c) {
  return c->written + sum_counts(c->filtered, NI_FILTER_COUNT) + sum_counts(c->dropped, NI_DROP_COUNT) +
      c->incomplete;
}

/*
 * docs/internals/blackbox.md, "Accounts". Before the records are put: they add to written, filtered and
 * fallback.
 */
static void open_accounts(struct ni_recover_job *j, const struct ni_recover_life *l,
                          struct ni_kind_counts *counts) {
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    memcpy(counts[k].filtered, l->c.kind[k].filtered, sizeof counts[k].filtered);
    memcpy(counts[k].dropped, l->c.kind[k].dropped, sizeof counts[k].dropped);
    memcpy(counts[k].fallback, l->c.kind[k].fallback, sizeof counts[k].fallback);
    counts[k].filtered[NI_FILTER_NO_KERNEL_TIMING] += l->c.kind[k].judged_out;
    counts[k].dropped[NI_DROP_WRITE_ERROR] += l->c.kind[k].lost_write;
    counts[k].started = l->c.kind[k].started;
    counts[k].late = l->c.kind[k].late;
    uint64_t there = l->log ? l->log->kind[k].records.distinct : 0, said = l->c.kind[k].written;
    uint64_t gone = j->expires && j->log->files && said > there ? said - there : 0;
    /* as in a log that ended: what expired was written, the process's line takes it off */
    counts[k].written = there + gone;
    j->gone += gone;
  }
}

/* When the records are put. What lay in memory outside the box is lost with the process, finished or not:
 * it is in no slot. */
static void close_accounts(struct ni_recover_job *j, const struct ni_recover_life *l,
                           struct ni_kind_counts *counts) {
  uint64_t listed[NI_KIND_COUNT] = {0}, given_up[NI_KIND_COUNT] = {0};
  for (size_t i = 0; i < l->in_flight.n; i++)
    listed[l->in_flight.op[i].kind]++;
  for (size_t i = 0; i < l->given_up.n; i++)
    given_up[l->given_up.op[i].kind]++;
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    uint64_t lines = (l->log ? l->log->kind[k].incomplete.distinct : 0) + given_up[k];
    counts[k].incomplete = lines > l->c.kind[k].incomplete ? lines : l->c.kind[k].incomplete;
    uint64_t over = count_settled(&counts[k]), open = counts[k].started > over ? counts[k].started - over : 0;
    uint64_t lost = open > listed[k] ? open - listed[k] : 0;
    if (lost > j->room_outside)
      lost = j->room_outside;
    j->room_outside -= lost;
    j->out->lost += lost;
    counts[k].dropped[NI_DROP_BOX_FULL] = lost;
    counts[k].in_flight = open - lost;
    if (counts[k].in_flight > listed[k])
      j->out->unlisted += counts[k].in_flight - listed[k];
    uint64_t flushed = l->log ? l->log->kind[k].flushed : 0;
    counts[k].records = counts[k].written > flushed ? counts[k].written - flushed : 0;
  }
}

static bool has_ended(const struct ni_recover_job *j) { return ni_box_life(j->b) == NI_LIFE_ENDED; }

static int write_life(struct ni_recover_job *j, struct ni_recover_life *l) {
  struct ni_stats_line s = {.final = !j->live};
  struct ni_kind_counts counts[NI_KIND_COUNT] = {{0}};
  if (ni_part_about(&j->part, &l->c.id))
    return -ENOMEM;
  ni_recover_sort(j, &l->finished);
  ni_recover_sort(j, &l->in_flight);
  ni_recover_sort(j, &l->given_up);
  ni_part_comm(&j->part, &l->c);
  open_accounts(j, l, counts);
  write_records(j, l, counts);
  write_unfinished(j, l, &l->given_up, false, "overtaken");
  write_unfinished(j, l, &l->in_flight, true, j->live ? "alive" : has_ended(j) ? "exit" : "killed");
  close_accounts(j, l, counts);
  write_gaps(j, l, counts);
  for (int k = 0; k < NI_KIND_COUNT; k++)
    ni_stats_set_kind(&s, (enum ni_kind)k, &counts[k]);
  ni_stats_set_strays(&s, l->c.stray);
  NI_PART_PUT(&j->part, dump_stats, &s);
  const char *by_itself = l->c.phase == 2 ? "destroy" : "exit";
  struct ni_comm_end_line end = {has_ended(j) ? by_itself : "killed", ni_box_seen_ns(j->b)};
  if (!j->live)
    NI_PART_PUT(&j->part, comm_end, &end);
  for (size_t i = 0; i < l->in_flight.n; i++) {
    const struct ni_recover_ref *op = &l->in_flight.op[i];
    j->news |= !l->log || !ni_seq_set_has(&l->log->kind[op->kind].in_flight, op->rec_sn);
  }
  j->news |= l->finished.n || l->given_up.n;
  j->out->in_flight += l->in_flight.n;
  j->out->incomplete += l->given_up.n;
  return 0;
}

/* ---- head and foot ---- */

/*
 * The process line: the log's own, with the marker put in at its end. It comes from the box, so it counts
 * only if our parser takes it; it also says whose lines these are. 1: done, the origin's texts are ours; 0:
 * it is of no use.
 */
static int write_own_head(struct ni_recover_job *j, const char *text, struct ni_scan *scan) {
  size_t len = strlen(text);
  if (len < 3 || memchr(text, '\n', len) || strcmp(text + len - 2, "}}") != 0)
    return 0;
  char *copy = malloc(len + NI_PARSE_PADDING);
  if (!copy)
    return -ENOMEM;
  memcpy(copy, text, len);
  memset(copy + len, 0, NI_PARSE_PADDING);
  int e;
  const struct ni_line *line = ni_scan_text(scan, copy, len, &e);
  const bool is_process = line && line->kind == NI_LINE_PROCESS && line->process.recovered_ns == 0;
  if (is_process && line->meta.producer) {
    struct ni_process_line marker = {.recovered_ns = ni_box_taken_ns(j->b), .recovered_live = j->live};
    fwrite(text, 1, len - 2, j->part.f);
    ni_part_put(&j->part, ni_format_recovered(j->part.line, sizeof j->part.line, &marker));
    fputs("}}\n", j->part.f);
    struct ni_meta *o = &j->part.meta;
    o->hostname = strdup(line->meta.hostname);
    o->git_rev = strdup(line->meta.git_rev);
    o->producer = strdup(line->meta.producer);
    o->pid = line->meta.pid;
    j->process = (struct ni_ident){.rank = line->ident.rank, .n_ranks = line->ident.n_ranks};
    const char *gpu_only = ni_pairs_value(&line->process.settings, REQUIRE_GPU);
    j->gpu_only = gpu_only && strcmp(gpu_only, "1") == 0;
    j->expires = ni_expiry_limits(&line->process) != 0;
    e = o->hostname && o->git_rev && o->producer ? 1 : -ENOMEM;
  }
  free(copy);
  return e;
}

static int write_head(struct ni_recover_job *j, struct ni_scan *scan) {
  const struct ni_box_header *h = ni_box_header(j->b);
  struct ni_box_log session = {0};
  int e = ni_box_session(j->b, &session) ? write_own_head(j, session.line, scan) : 0;
  if (e)
    return e;
  int64_t rank = h->rank >= 0 && h->rank < INT32_MAX ? h->rank : -1, size = h->world_size;
  j->process = (struct ni_ident){.rank = (int32_t)rank,
                                 .n_ranks = (int32_t)(size > rank && size <= INT32_MAX ? size : rank + 1)};
  j->part.meta.hostname = h->hostname;
  j->part.meta.git_rev = h->git_rev;
  j->part.meta.producer = h->producer;
  j->part.meta.pid = h->pid;
  e = ni_part_about(&j->part, &j->process);
  if (e == 0)
    ni_part_process(&j->part, h, session.start_ns ? session.start_ns : h->made_ns, ni_box_taken_ns(j->b),
                    j->live);
  return e;
}

static void free_origin(struct ni_recover_job *j) {
  free((char *)(uintptr_t)j->part.meta.hostname);
  free((char *)(uintptr_t)j->part.meta.git_rev);
  free((char *)(uintptr_t)j->part.meta.producer);
}

static uint64_t count_expired_in_box(const struct ni_box *b) {
  const struct ni_box_header *h = ni_box_header(b);
  return h->session_now < 2 ? h->expired_records[h->session_now] : 0;
}

/*
 * Records that expired, of all communicators of the session. The box counts them once their file is gone, the
 * accounts tell them by what is not there: each knows something that the other does not. The box has those of
 * communicators whose every line has expired; the accounts have the file whose removal was not counted before
 * the kill, and are all there is in a box of a writer that did not count.
 */
static uint64_t count_expired(const struct ni_recover_job *j) {
  uint64_t counted = count_expired_in_box(j->b), told = j->gone;
  for (size_t i = 0; j->expires && i < j->log->n; i++)
    for (int k = 0; j->log->life[i].final && k < NI_KIND_COUNT; k++) {
      uint64_t there = j->log->life[i].kind[k].records.distinct, said = j->log->life[i].kind[k].written;
      if (said > there)
        told += said - there;
    }
  return counted > told ? counted : told;
}

/* NULL: not known. */
static const char *name_end(const struct ni_recover_job *j) {
  const struct ni_life_fact *f = ni_box_life_fact(j->b);
  if (f->life == NI_LIFE_ENDED)
    return f->end == NI_BOX_END_EXITED ? "exited" : "finalized";
  return f->life == NI_LIFE_DEAD && f->end == NI_BOX_END_NOT_YET ? "killed" : NULL;
}

/* Notes what a process that left by itself could not write, and why. */
static void note_unwritten(struct ni_recover_job *j, const struct ni_box_header *h) {
  char text[256], number[64] = "an unknown number of operations";
  if (h->end != NI_BOX_END_EXITED)
    return;
  if (h->unwritten != NI_BOX_NOT_COUNTED)
    snprintf(number, sizeof number, "%" PRIu64 " finished %s", h->unwritten,
             ni_plural(h->unwritten, "operation", "operations"));
  snprintf(text, sizeof text, "the process left by exit or return and could not write %s%s%s", number,
           h->unwritten_error ? ": " : "", h->unwritten_error ? strerror(h->unwritten_error) : "");
  ni_part_note(&j->part, text);
}

static int write_foot(struct ni_recover_job *j) {
  const struct ni_box_header *h = ni_box_header(j->b);
  char text[256];
  if (ni_part_about(&j->part, &j->process))
    return -ENOMEM;
  if (has_ended(j))
    note_unwritten(j, h);
  if (ni_box_outside(j->b))
    snprintf(text, sizeof text,
             "recovered from the black box; it had no room for %u %s of the process's memory: %" PRIu64
             " %s lost with them",
             ni_box_outside(j->b), ni_plural(ni_box_outside(j->b), "page", "pages"), j->out->lost,
             ni_plural(j->out->lost, "operation is", "operations are"));
  else
    snprintf(
        text, sizeof text, "recovered from the black box: %" PRIu64 " %s not written", j->out->records,
        ni_plural(j->out->records, "record that had finished and was", "records that had finished and were"));
  ni_part_note(&j->part, text);
  if (j->out->damaged) {
    snprintf(text, sizeof text, "the black box is damaged: %" PRIu64 " %s left out", j->out->damaged,
             ni_plural(j->out->damaged, "communicator or operation in it cannot be true and was",
                       "communicators or operations in it cannot be true and were"));
    ni_part_note(&j->part, text);
  }
  if (j->live || j->log->process_final)
    return 0;
  struct ni_stats_line s = {
      .final = true, .end = name_end(j), .refused_communicators = h->refused_communicators};
  struct ni_kind_counts gone = {.dropped[NI_DROP_EXPIRED] = count_expired(j)};
  _Static_assert(NI_STRAY_COUNT <= sizeof h->process_stray / sizeof *h->process_stray,
                 "the box has a place for each");
  ni_stats_set_kind(&s, NI_KIND_COLL, &gone);
  ni_stats_set_strays(&s, h->process_stray);
  NI_PART_PUT(&j->part, dump_stats, &s);
  return 0;
}

static int compose_lines(struct ni_recover_job *j) {
  struct ni_scan *scan = NULL;
  uint64_t ts = ni_box_seen_ns(j->b) / 1000;
  j->part.meta.dump_timestamp_us = ts > j->log->newest_us ? ts : j->log->newest_us + 1;
  int e = ni_scan_new(&scan);
  int owned = e == 0 ? write_head(j, scan) : e;
  e = owned < 0 ? owned : 0;
  for (size_t i = 0; e == 0 && i < j->n; i++)
    if (j->life[i].c.phase)
      e = write_life(j, &j->life[i]);
  if (e == 0)
    e = write_foot(j);
  if (owned > 0)
    free_origin(j);
  ni_line_prefix_free(&j->part.prefix);
  ni_scan_free(scan);
  return e;
}

int ni_recover_box(const struct ni_box *b, const struct ni_log_state *log, FILE *f, bool live,
                   struct ni_recovered *out) {
  struct ni_recover_job j = {.b = b, .log = log, .live = live, .out = out, .part.f = f};
  const struct ni_box_header *h = ni_box_header(b);
  if (!live)
    j.room_outside = (uint64_t)ni_box_outside(b) * (h->page_bytes / h->slot_bytes);
  *out = (struct ni_recovered){0};
  uint32_t state = ni_box_header(b)->state;
  if (state != NI_BOX_LIVE)
    return 0; /* nothing recorded yet, or everything in the log */
  int e = ni_recover_gather(&j);
  /*
   * Killed between the last words of its last communicator and its own, without which its log is not
   * complete.
   */
  bool owed = !live && !log->process_final && (log->files || count_expired_in_box(b));
  if (e == 0 && (out->communicators || owed)) {
    e = compose_lines(&j);
    out->part = j.news || !live;
  }
  ni_recover_gather_free(&j);
  return e;
}
