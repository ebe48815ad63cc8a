#include "log_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/input/discover.h"
#include "exporter/input/scan.h"

static uint64_t name_of(uint64_t hash, int32_t rank) { return ni_hash(ni_hash(0, hash), (uint32_t)rank); }

int ni_log_state_life(struct ni_log_state *s, uint64_t hash, int32_t rank, uint64_t init_ns, struct ni_log_life **out) {
  if (!ni_array_room(s->life, s->n, s->cap)) return -ENOMEM;
  int64_t k = ni_map_find(&s->names, name_of(hash, rank), init_ns, (uint32_t)s->n);
  if (k < 0) return (int)k;
  if ((size_t)k == s->n) {
    if (s->n == NI_LOG_LIVES_MAX) return -EFBIG;
    s->life[s->n++] = (struct ni_log_life){0};
  }
  *out = &s->life[k];
  return 0;
}

static void take_gap(struct ni_log_life *life, const struct ni_gap_line *g) {
  int k = ni_kind_from_name(g->kind), i = 0;
  while (i < NI_DROP_COUNT && strcmp(g->cause, ni_drop_names[i]) != 0) i++;
  *(i < NI_DROP_COUNT ? &life->kind[k].gap[i] : &life->kind[k].gap_other) += g->count;
}

static int take_line(struct ni_log_state *s, const struct ni_line *l) {
  struct ni_log_life *life = NULL;
  if (!l->has_header) return 0; /* not a line of ours */
  if (l->meta.dump_timestamp_us > s->newest_us) s->newest_us = l->meta.dump_timestamp_us;
  if (l->ident.comm_hash == 0 && l->kind != NI_LINE_OP) {
    if (l->kind == NI_LINE_DUMP_STATS && l->stats.final) s->process_final = true;
    if (l->kind != NI_LINE_COMM) return 0;
  }
  int e = ni_log_state_life(s, l->ident.comm_hash, l->ident.rank, l->kind == NI_LINE_COMM ? l->comm.init_ns : 0, &life);
  if (e < 0) return e;
  switch (l->kind) {
    case NI_LINE_OP: return l->op.has & NI_HAS_REC_SN ? ni_seq_set_add(&life->kind[l->op.kind].records, l->op.rec_sn) : 0;
    case NI_LINE_INCOMPLETE:
      return ni_seq_set_add(&life->kind[ni_kind_from_name(l->unfinished.kind)].incomplete, l->unfinished.rec_sn);
    case NI_LINE_IN_FLIGHT:
      return ni_seq_set_add(&life->kind[ni_kind_from_name(l->unfinished.kind)].in_flight, l->unfinished.rec_sn);
    case NI_LINE_GAP: take_gap(life, &l->gap); return 0;
    case NI_LINE_DUMP_STATS:
      for (int k = 0; k < NI_KIND_COUNT; k++) {
        life->kind[k].flushed += l->stats.records[k];
        if (l->stats.final) life->kind[k].written = l->stats.kind[k].written;
      }
      life->final |= l->stats.final;
      return 0;
    default: return 0;
  }
}

struct reading {
  struct ni_log_state *s;
  uint64_t start_ns;
  bool ours;
};

static int take(void *arg, struct ni_line *l, uint64_t line_no) {
  struct reading *r = arg;
  (void)line_no;
  if (l->kind == NI_LINE_PROCESS && r->start_ns) r->ours = l->process.start_ns == r->start_ns;
  return r->ours ? take_line(r->s, l) : 0;
}

int ni_log_state_read(struct ni_log_state *s, const char *path, uint64_t start_ns) {
  struct reading r = {s, start_ns, start_ns == 0};
  struct ni_scan *scan = NULL;
  struct ni_scan_end end = {0};
  uint64_t number = 0;
  (void)ni_log_stem(path, &number);
  if (number >= s->next) s->next = number + 1;
  int e = ni_scan_new(&scan);
  if (e == 0) e = ni_scan_file(scan, path, NULL, &(struct ni_scan_to){.arg = &r, .take = take}, &end);
  s->files += end.error == 0;
  if (e == 0) e = end.error;
  if (e < 0 && e != -ENOMEM) {
    if (!s->bad && asprintf(&s->bad, "%s: %s", path, e == -EFBIG ? "more communicators than a process can have" : strerror(-e)) < 0) s->bad = NULL;
    e = 0;
  }
  ni_scan_free(scan);
  return e;
}

const struct ni_log_life *ni_log_state_find(const struct ni_log_state *s, uint64_t hash, int32_t rank, uint64_t init_ns) {
  int64_t k = ni_map_get(&s->names, name_of(hash, rank), init_ns);
  return k < 0 || (size_t)k == s->n ? NULL : &s->life[k];
}

void ni_log_state_free(struct ni_log_state *s) {
  for (size_t i = 0; i < s->n; i++)
    for (int k = 0; k < NI_KIND_COUNT; k++) {
      ni_seq_set_free(&s->life[i].kind[k].records);
      ni_seq_set_free(&s->life[i].kind[k].incomplete);
      ni_seq_set_free(&s->life[i].kind[k].in_flight);
    }
  ni_map_free(&s->names);
  free(s->life);
  free(s->bad);
  *s = (struct ni_log_state){0};
}
