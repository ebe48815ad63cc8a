#include "log_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../discover.h"
#include "../line_reader.h"

/* While one file is read: the life that a hash and rank stand for now. */
struct reading {
  struct ni_log_state *s;
  size_t current; /* index of the last one met */
};

/* init_ns 0: the newest with that hash and rank. Made when it is new. */
static struct ni_log_life *life_of(struct reading *r, const struct ni_ident *id, uint64_t init_ns) {
  struct ni_log_state *s = r->s;
  struct ni_log_life *l = r->current < s->n ? &s->life[r->current] : NULL;
  if (l && init_ns == 0 && l->hash == id->comm_hash && l->rank == id->rank) return l;
  for (size_t i = s->n; i-- > 0;) {
    l = &s->life[i];
    if (l->hash != id->comm_hash || l->rank != id->rank || (init_ns && l->init_ns && l->init_ns != init_ns)) continue;
    r->current = i;
    if (init_ns) l->init_ns = init_ns;
    return l;
  }
  if (s->n == s->cap) {
    size_t cap = s->cap ? 2 * s->cap : 8;
    l = realloc(s->life, cap * sizeof *l);
    if (!l) return NULL;
    s->life = l;
    s->cap = cap;
  }
  r->current = s->n;
  l = &s->life[s->n++];
  *l = (struct ni_log_life){.hash = id->comm_hash, .init_ns = init_ns, .rank = id->rank};
  return l;
}

static int kind_of(const char *name) { return strcmp(name, ni_kind_names[NI_KIND_P2P]) == 0 ? NI_KIND_P2P : NI_KIND_COLL; }

static void take_gap(struct ni_log_life *life, const struct ni_gap_line *g) {
  int k = kind_of(g->kind);
  for (int i = 0; i < NI_DROP_COUNT; i++)
    if (strcmp(g->cause, ni_drop_names[i]) == 0) {
      life->kind[k].gap[i] += g->count;
      return;
    }
  life->kind[k].gap_other += g->count;
}

static int take_line(struct reading *r, const struct ni_line *l) {
  if (!l->has_header) return 0; /* not a line of ours */
  if (l->meta.dump_timestamp_us > r->s->newest_us) r->s->newest_us = l->meta.dump_timestamp_us;
  if (l->ident.comm_hash == 0 && l->kind != NI_LINE_OP) {
    if (l->kind == NI_LINE_DUMP_STATS && l->stats.final) r->s->process_final = true;
    if (l->kind != NI_LINE_COMM) return 0;
  }
  struct ni_log_life *life = life_of(r, &l->ident, l->kind == NI_LINE_COMM ? l->comm.init_ns : 0);
  if (!life) return -ENOMEM;
  switch (l->kind) {
    case NI_LINE_OP: return l->op.has & NI_HAS_REC_SN ? ni_seq_set_add(&life->kind[l->op.kind].records, l->op.rec_sn) : 0;
    case NI_LINE_INCOMPLETE:
      return ni_seq_set_add(&life->kind[kind_of(l->unfinished.kind)].incomplete, l->unfinished.rec_sn);
    case NI_LINE_IN_FLIGHT:
      return ni_seq_set_add(&life->kind[kind_of(l->unfinished.kind)].in_flight, l->unfinished.rec_sn);
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

static int read_lines(struct ni_log_state *s, struct ni_reader *reader, struct ni_parser *parser, struct ni_line *line,
                      uint64_t start_ns) {
  struct reading r = {s, SIZE_MAX};
  struct ni_text t;
  bool ours = start_ns == 0;
  int got;
  while ((got = ni_reader_next(reader, &t)) == 1) {
    if (t.too_long) continue;
    enum ni_reject why = ni_parse_line(parser, t.text, t.len, t.room, line);
    if (why == NI_REJ_NO_MEMORY) return -ENOMEM;
    if (why != NI_OK) continue; /* `check` complains about it */
    if (line->kind == NI_LINE_PROCESS && start_ns) ours = line->process.start_ns == start_ns;
    int e = ours ? take_line(&r, line) : 0;
    if (e < 0) return e;
  }
  return got;
}

int ni_log_state_read(struct ni_log_state *s, const char *path, uint64_t start_ns) {
  struct ni_reader *reader = NULL;
  struct ni_parser *parser = NULL;
  struct ni_line *line = malloc(sizeof *line);
  uint64_t number = 0;
  (void)ni_log_stem(path, &number);
  if (number >= s->next) s->next = number + 1;
  int e = line ? ni_parser_new(&parser) : -ENOMEM;
  if (e == 0) e = ni_reader_open(&reader, path, NULL);
  if (e == 0) {
    s->files++;
    e = read_lines(s, reader, parser, line, start_ns);
    ni_reader_close(reader);
  }
  if (e < 0 && e != -ENOMEM) {
    if (!s->bad && asprintf(&s->bad, "%s: %s", path, strerror(-e)) < 0) s->bad = NULL;
    e = 0;
  }
  ni_parser_free(parser);
  free(line);
  return e;
}

const struct ni_log_life *ni_log_state_find(const struct ni_log_state *s, uint64_t hash, int32_t rank, uint64_t init_ns) {
  for (size_t i = s->n; i-- > 0;) {
    const struct ni_log_life *l = &s->life[i];
    if (l->hash == hash && l->rank == rank && (l->init_ns == init_ns || l->init_ns == 0)) return l;
  }
  return NULL;
}

void ni_log_state_free(struct ni_log_state *s) {
  for (size_t i = 0; i < s->n; i++)
    for (int k = 0; k < NI_KIND_COUNT; k++) {
      ni_seq_set_free(&s->life[i].kind[k].records);
      ni_seq_set_free(&s->life[i].kind[k].incomplete);
      ni_seq_set_free(&s->life[i].kind[k].in_flight);
    }
  free(s->life);
  free(s->bad);
  *s = (struct ni_log_state){0};
}
