#include "tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/reading/long_waits.h"
#include "exporter/model/sums/reading/read.h"
#include "exporter/model/sums/reading/tables.h"
#include "exporter/model/sums/rollups.h"

/* ---- the order of storing ------------------------------------------------------------------------------ */

static int by_process(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const struct ni_who_process *x = &r->who.process[*(const uint32_t *)a],
                              *y = &r->who.process[*(const uint32_t *)b];
  int k = strcmp(x->host, y->host);
  if (k == 0)
    k = NI_BY(x, y, pid);
  /* those that say when they began come first: who does not is taken for one of them */
  if (k == 0)
    k = NI_BY(y, x, start_ns);
  return k ? k : strcmp(x->origin, y->origin);
}

struct storing {
  const struct ni_run *r;
  const struct ni_partial_numbers *x;
};

static int by_member(const void *a, const void *b, void *arg) {
  const struct storing *s = arg;
  const struct ni_who_member *x = &s->r->who.member[*(const uint32_t *)a],
                             *y = &s->r->who.member[*(const uint32_t *)b];
  int k = ni_by_u32(&s->x->process.place[x->process], &s->x->process.place[y->process]);
  if (k == 0)
    k = NI_BY(&s->r->who.comm[x->comm], &s->r->who.comm[y->comm], run);
  return k ? k : NI_BY(x, y, hash, n_ranks, rank);
}

static int by_cell(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const struct ni_sum_cell *x = &r->cell[*(const uint32_t *)a], *y = &r->cell[*(const uint32_t *)b];
  int k = NI_BY(x, y, type, kind, msg_bytes);
  return k ? k : strcmp(ni_name_text(&r->names, x->func), ni_name_text(&r->names, y->func));
}

static int by_mix(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const uint32_t x = *(const uint32_t *)a + 1, y = *(const uint32_t *)b + 1;
  int k = strcmp(ni_name_text(&r->names, r->mix[x].algo), ni_name_text(&r->names, r->mix[y].algo));
  return k ? k : strcmp(ni_name_text(&r->names, r->mix[x].proto), ni_name_text(&r->names, r->mix[y].proto));
}

static int number(struct ni_numbering *x, size_t n, int (*compare)(const void *, const void *, void *),
                  void *arg) {
  x->n = n;
  x->number = ni_order((uint32_t)n, compare, arg);
  x->place = malloc((n + 1) * sizeof *x->place);
  if (!x->number || !x->place)
    return -ENOMEM;
  for (uint32_t i = 0; i < n; i++)
    x->place[x->number[i]] = i;
  return 0;
}

int ni_partial_order(struct ni_run *r, struct ni_partial_numbers *x) {
  *x = (struct ni_partial_numbers){.n_mix = r->n_mix};
  int e = number(&x->process, r->who.n_processes, by_process, r);
  if (e == 0)
    e = number(&x->member, r->who.n_members, by_member, &(struct storing){r, x});
  if (e == 0)
    e = number(&x->cell, r->n_cells, by_cell, r);
  uint32_t *mix = ni_order(r->n_mix - 1, by_mix, r);
  for (uint32_t i = 0; mix && i + 1 < r->n_mix; i++)
    x->mix[mix[i] + 1] = (uint8_t)(i + 1);
  if (!mix)
    e = -ENOMEM;
  free(mix);
  return e;
}

void ni_partial_numbers_free(struct ni_partial_numbers *x) {
  struct ni_numbering *all[] = {&x->process, &x->member, &x->cell};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    free(all[i]->number);
    free(all[i]->place);
  }
}

/* ---- both directions ----------------------------------------------------------------------------------- */

/*
 * What two partials say of one process; the same, but where lines of a hostile log differ: then the larger
 * one.
 */
static void larger(int32_t *mine, int32_t theirs) {
  if (theirs > *mine)
    *mine = theirs;
}
static void smaller_name(const struct ni_run *r, uint32_t *mine, uint32_t theirs) {
  if (theirs && (!*mine || strcmp(ni_name_text(&r->names, theirs), ni_name_text(&r->names, *mine)) < 0))
    *mine = theirs;
}

static void wire_cover(struct ni_wire *w, struct ni_cover *to) {
  struct ni_cover c = w->load ? (struct ni_cover){0} : *to;
  uint64_t bins = w->load || !c.busy ? 0 : c.last - c.first + 1, busy[NI_COVER_BINS] = {0};
  ni_wire_u64(w, &bins);
  if (!bins)
    return;
  NI_WIRE(w, &c.first, &c.shift);
  if (w->load) {
    c.busy = busy;
    c.last = c.first + bins - 1;
    if (bins > NI_COVER_BINS || c.shift > 50 || c.last > UINT64_MAX >> 14 ||
        !ni_time_of_a_job((int64_t)(c.first << c.shift)) || !ni_time_of_a_job((int64_t)(c.last << c.shift)))
      w->bad = true;
  }
  for (uint64_t b = c.first; b <= c.last && !w->bad; b++)
    ni_wire_u64(w, &c.busy[b % NI_COVER_BINS]);
  if (w->load && !w->bad && ni_cover_merge(to, &c, false) < 0)
    w->bad = true;
}

static uint32_t load_process(struct ni_wire *w, struct ni_run *r, struct ni_who_process *name,
                             uint32_t file) {
  size_t n = r->who.n_processes;
  uint32_t host = 0;
  int64_t k = -ENOMEM;
  if (!name->host || !name->origin)
    w->bad = true;
  if (!w->bad && ni_name(&r->names, NULL, name->host, &host) == 0 &&
      ni_array_room(r->process, n, r->cap_processes))
    k = ni_who_process(&r->who, name->host, name->pid, name->start_ns, name->origin);
  if (r->who.n_processes > n)
    r->process[n] = (struct ni_sum_process){
        .host = host, .rank = -1, .world_size = -1, .nccl_version = -1, .gpu = -1, .file = file};
  free(name->host);
  free(name->origin);
  if (k < 0)
    w->bad = true;
  return k < 0 ? 0 : (uint32_t)k;
}

static void wire_process(struct ni_wire *w, struct ni_run *r, uint32_t *k) {
  struct ni_who_process name = w->load ? (struct ni_who_process){0} : r->who.process[*k];
  struct ni_sum_process p = w->load ? (struct ni_sum_process){0} : r->process[*k];
  int32_t *const numbers[] = {&p.rank, &p.world_size, &p.nccl_version, &p.gpu};
  uint32_t *const names[] = {&p.job, &p.exe, &p.producer, &p.gpu_pci};
  NI_WIRE(w, &name.host, &name.origin, &name.pid, &name.start_ns);
  ni_wire_below(w, &p.file, r->files.n);
  for (int i = 0; i < 4; i++)
    ni_wire_i32(w, numbers[i]);
  for (int i = 0; i < 4; i++)
    ni_wire_name(w, &r->names, names[i]);
  ni_wire_u64s(w, p.sent_bytes, 2);
  if (!w->load) {
    wire_cover(w, &p.cover);
    return;
  }
  *k = load_process(w, r, &name, p.file);
  if (w->bad)
    return;
  struct ni_sum_process *to = &r->process[*k];
  if (p.file < to->file)
    to->file = p.file;
  int32_t *const to_numbers[] = {&to->rank, &to->world_size, &to->nccl_version, &to->gpu};
  uint32_t *const to_names[] = {&to->job, &to->exe, &to->producer, &to->gpu_pci};
  for (int i = 0; i < 4; i++)
    larger(to_numbers[i], *numbers[i]);
  for (int i = 0; i < 4; i++)
    smaller_name(r, to_names[i], *names[i]);
  for (int i = 0; i < 2; i++)
    to->sent_bytes[i] += p.sent_bytes[i];
  wire_cover(w, &to->cover);
}

static void wire_member(struct ni_wire *w, struct ni_run *r, const struct ni_partial_numbers *x,
                        uint32_t *k) {
  struct ni_who_member m = w->load ? (struct ni_who_member){0} : r->who.member[*k];
  struct ni_who_comm c = w->load ? (struct ni_who_comm){0} : r->who.comm[m.comm];
  bool sampled = w->load ? false : r->comm[m.comm].p2p_sampled;
  if (!w->load)
    m.process = x->process.place[m.process];
  ni_wire_below(w, &m.process, x->process.n);
  NI_WIRE(w, &c.run, &m.hash, &m.n_ranks, &m.rank, &m.nnodes, &c.nnodes, &sampled, &m.name);
  if (!w->load)
    return;
  const struct ni_ident id = ni_who_ident(&m);
  if (!w->bad && ni_find_or_add_member(r, x->process.number[m.process], c.run, &id, k) < 0)
    w->bad = true;
  free(m.name);
  if (w->bad)
    return;
  const uint32_t comm = r->who.member[*k].comm;
  r->comm[comm].p2p_sampled |= sampled;
  larger(&r->who.comm[comm].nnodes, c.nnodes);
}

static void wire_cell(struct ni_wire *w, struct ni_run *r, uint32_t *k) {
  struct ni_sum_cell c = w->load ? (struct ni_sum_cell){0} : r->cell[*k];
  uint32_t type = c.type, kind = c.kind;
  ni_wire_below(w, &type, NI_TYPE_COUNT);
  ni_wire_below(w, &kind, NI_KIND_COUNT);
  ni_wire_name(w, &r->names, &c.func);
  ni_wire_u64(w, &c.msg_bytes);
  const struct ni_sum_cell key = {
      .type = (uint8_t)type, .kind = (uint8_t)kind, .func = c.func, .msg_bytes = c.msg_bytes};
  if (w->load && !w->bad && ni_find_or_add_cell(r, &key, k) < 0)
    w->bad = true;
}

/* How many there are. Loading: with room for their numbers. */
static void wire_many(struct ni_wire *w, struct ni_numbering *x, size_t least) {
  ni_wire_count(w, &x->n, least);
  if (w->load && !(x->number = calloc(x->n + 1, sizeof *x->number))) {
    w->bad = true;
    x->n = 0;
  }
}

static void wire_mixes(struct ni_wire *w, struct ni_run *r, struct ni_partial_numbers *x) {
  uint8_t of[NI_MIX_MAX + 1] = {0};
  for (unsigned i = 1; !w->load && i < x->n_mix; i++)
    of[x->mix[i]] = (uint8_t)i;
  ni_wire_below(w, &x->n_mix, NI_MIX_MAX + 1);
  for (unsigned i = 1; i < x->n_mix && !w->bad; i++) {
    uint32_t algo = w->load ? 0 : r->mix[of[i]].algo, proto = w->load ? 0 : r->mix[of[i]].proto;
    ni_wire_name(w, &r->names, &algo);
    ni_wire_name(w, &r->names, &proto);
    if (w->load && !w->bad && ni_find_or_add_mix(r, algo, proto, &x->mix[i]) < 0)
      w->bad = true;
  }
}

static void wire_tally(struct ni_wire *w, struct ni_run *r) {
  struct ni_tally_sum t = w->load ? (struct ni_tally_sum){0} : r->tally;
  ni_wire_u64s(w, t.added, sizeof t.added / sizeof *t.added);
  NI_WIRE(w, &t.first_us, &t.last_us, &t.origin_ns, &t.any, &t.no_start, &t.versions);
  if (w->load && !w->bad)
    ni_tally_sum_add(r, &t);
}

static int by_mark(const void *a, const void *b, void *arg) {
  const struct storing *s = arg;
  const struct ni_step_mark_line *x = &s->r->marks.line[*(const uint32_t *)a],
                                 *y = &s->r->marks.line[*(const uint32_t *)b];
  int k = ni_by_u32(&s->x->process.place[x->key >> 32], &s->x->process.place[y->key >> 32]);
  if (k == 0)
    k = NI_BY(x, y, ns);
  return k ? k : strcmp(ni_name_text(&s->r->names, x->text), ni_name_text(&s->r->names, y->text));
}

static void wire_marks(struct ni_wire *w, struct ni_run *r, const struct ni_partial_numbers *x) {
  size_t n = r->marks.n_lines;
  uint32_t *order = w->load ? NULL : ni_order((uint32_t)n, by_mark, &(struct storing){r, x});
  if (!w->load && !order)
    w->bad = true;
  ni_wire_count(w, &n, 3);
  for (size_t i = 0; i < n && !w->bad; i++) {
    const struct ni_step_mark_line *m = w->load ? NULL : &r->marks.line[order[i]];
    uint32_t process = m ? x->process.place[m->key >> 32] : 0, text = m ? m->text : 0;
    int64_t ns = m ? m->ns : 0;
    ni_wire_below(w, &process, x->process.n);
    ni_wire_i64(w, &ns);
    ni_wire_name(w, &r->names, &text);
    if (w->load && !w->bad && ni_step_marks_add(r, x->process.number[process], ns, text) < 0)
      w->bad = true;
  }
  free(order);
}

static int by_tag(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  return NI_BY(&r->tag_names.item[*(const uint32_t *)a], &r->tag_names.item[*(const uint32_t *)b], tag);
}

static void wire_tag_names(struct ni_wire *w, struct ni_run *r) {
  size_t n = r->tag_names.n;
  uint32_t *order = w->load ? NULL : ni_order((uint32_t)n, by_tag, r);
  if (!w->load && !order)
    w->bad = true;
  ni_wire_count(w, &n, 3);
  for (size_t i = 0; i < n && !w->bad; i++) {
    struct ni_tag_name x = {0};
    if (order)
      x = r->tag_names.item[order[i]];
    char *name = w->load ? NULL : x.name;
    NI_WIRE(w, &x.tag, &x.ns, &name);
    if (!w->load)
      continue;
    const size_t len = name ? strlen(name) : 0;
    if (x.tag < 1 || x.tag > NI_TAG_MAX || len < 1 || len > NI_TAG_NAME_MAX)
      w->bad = true;
    if (!w->bad)
      memcpy(x.name, name, len);
    free(name);
    if (!w->bad && ni_tag_names_add(&r->tag_names, &x) < 0)
      w->bad = true;
  }
  free(order);
}

void ni_partial_wire_tables(struct ni_wire *w, struct ni_run *r, struct ni_partial_numbers *x) {
  wire_tally(w, r);
  ni_filters_wire_met(w, &r->opt.filter);
  wire_mixes(w, r, x);
  wire_many(w, &x->process, 16);
  for (size_t i = 0; i < x->process.n && !w->bad; i++)
    wire_process(w, r, &x->process.number[i]);
  wire_many(w, &x->member, 8);
  for (size_t i = 0; i < x->member.n && !w->bad; i++)
    wire_member(w, r, x, &x->member.number[i]);
  wire_many(w, &x->cell, 4);
  for (size_t i = 0; i < x->cell.n && !w->bad; i++)
    wire_cell(w, r, &x->cell.number[i]);
  wire_marks(w, r, x);
  wire_tag_names(w, r);
  ni_rollups_wire(w, r);
  ni_long_waits_wire(w, r, x);
  ni_stamps_wire(w, r, x);
}
