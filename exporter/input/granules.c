#include "granules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"

int64_t ni_start_ns(const struct ni_line *l) {
  const struct ni_record *o = &l->op;
  if ((o->has & NI_HAS_ENQUEUE) && (o->has & NI_HAS_GPU_DELTA)) {
    int64_t t;
    if (!__builtin_add_overflow((int64_t)o->enqueue_ns, o->gpu_start_delta_ns, &t))
      return t;
  }
  if (o->has & NI_HAS_ENQUEUE)
    return o->timing == NI_TIMING_KERNEL_GPU ? NI_NO_START : (int64_t)o->enqueue_ns;
  int64_t first = ni_first_channel_ns(l);
  return first ? first : NI_NO_START;
}

static inline int64_t find_time_us(const struct ni_line *l, int64_t start) {
  return start != NI_NO_START ? start / 1000 : (int64_t)l->meta.dump_timestamp_us;
}

int64_t ni_op_time_us(const struct ni_line *l) { return find_time_us(l, ni_start_ns(l)); }

static int add_granule(struct ni_granules *g, uint64_t at) {
  if (!ni_array_room(g->item, g->n, g->cap))
    return -ENOMEM;
  g->item[g->n++] = (struct ni_granule){.at = at,
                                        .first_us = INT64_MAX,
                                        .last_us = INT64_MIN,
                                        .min_bytes = UINT64_MAX,
                                        .min_sn = UINT64_MAX,
                                        .first_sort = (uint32_t)g->n_list,
                                        .begin_ns = INT64_MAX,
                                        .end_ns = INT64_MIN};
  g->marker = false;
  return 0;
}

struct ni_granules *ni_granules_new(uint64_t from) {
  struct ni_granules *g = calloc(1, sizeof *g);
  if (g && add_granule(g, from) < 0) {
    ni_granules_free(g);
    g = NULL;
  }
  if (!g)
    return NULL;
  g->last_sort = UINT32_MAX;
  g->origin_ns = g->first_ns = INT64_MAX;
  g->last_ns = INT64_MIN;
  return g;
}

void ni_granules_free(struct ni_granules *g) {
  if (!g)
    return;
  for (size_t i = 0; i < g->n_contexts; i++) {
    const char **const text[] = {NI_CONTEXT_TEXTS(&g->context[i])};
    for (int k = 0; k < NI_N_CONTEXT_TEXTS; k++)
      free((char *)(uintptr_t)*text[k]);
  }
  for (size_t i = 0; i < g->n_sorts; i++)
    free((char *)(uintptr_t)g->sort[i].func);
  ni_index_free(&g->sort_at);
  ni_index_free(&g->context_at);
  for (size_t i = 0; i < g->n; i++)
    if (g->item[i].own)
      free((uint8_t *)(uintptr_t)g->item[i].entry.window);
  free(g->item);
  free(g->context);
  free(g->sort);
  free(g->list);
  free(g->kept);
  free(g->kept_text);
  free(g->seen);
  free(g);
}

static struct ni_granule *find_last(struct ni_granules *g) { return &g->item[g->n - 1]; }

static int add_sort(struct ni_granules *g, uint32_t sort) {
  if (!ni_array_room(g->list, g->n_list, g->cap_list))
    return -ENOMEM;
  g->seen[sort] = (uint32_t)g->n;
  g->list[g->n_list++] = sort;
  find_last(g)->n_sorts++;
  return 0;
}

/* The granule that is open has the sort. */
static inline int add_sort_once(struct ni_granules *g, uint32_t sort) {
  return g->seen[sort] == g->n ? 0 : add_sort(g, sort);
}

static int find_or_add_context(struct ni_granules *g, const struct ni_line *l, uint32_t *out) {
  *out = g->last_sort < g->n_sorts ? g->sort[g->last_sort].context : 0;
  bool before = g->last_sort < g->n_sorts && ni_same_context(&g->context[*out], &l->ident, &l->meta);
  return before ? 0 : ni_granules_context(g, &l->ident, &l->meta, out);
}

static int find_or_add_sort(struct ni_granules *g, const struct ni_line *l, enum ni_sort_kind kind,
                            const char *func, uint32_t *out) {
  uint32_t context;
  int e = find_or_add_context(g, l, &context);
  if (e == 0)
    e = ni_granules_sort(g, context, kind, func, out);
  if (e < 0)
    return e;
  g->last_sort = *out;
  g->odd |= g->n_sorts > NI_SORTS_MAX;
  return 0;
}

/* Operations of the same head and function follow each other in the same few turns. */
static int find_op_sort(struct ni_granules *g, const struct ni_line *l, uint32_t *out) {
  unsigned slot = (l->head_no * NI_FUNCS_NUMBERED + l->func_no) % (sizeof g->met / sizeof *g->met);
  bool numbered = l->head_no && l->func_no;
  *out = g->met[slot].sort;
  if (numbered && g->met[slot].head_no == l->head_no && g->met[slot].func_no == l->func_no)
    return 0;
  int e = find_or_add_sort(g, l, NI_SORT_OP, l->op.func, out);
  if (e < 0 || !numbered)
    return e;
  g->met[slot].head_no = l->head_no;
  g->met[slot].func_no = l->func_no;
  g->met[slot].sort = *out;
  return 0;
}

/* The granule that is open begins with it. */
static int copy_entry(struct ni_granule *x, const struct ni_member_entry *from) {
  uint8_t *window = from->n ? malloc(from->n) : NULL;
  if (!from->n)
    return 0;
  if (!window)
    return -ENOMEM;
  x->entry = *from;
  x->entry.window = memcpy(window, from->window, from->n);
  x->own = true;
  return 0;
}

static uint64_t number_stretch(bool gzip, uint64_t at) {
  return at / (gzip ? NI_BORDER_GZIP : NI_BORDER_PLAIN);
}

/* The granule that is open goes on to there; what a brief map had of it before stays. */
static void extend_granule(struct ni_granules *g, const struct ni_border *to) {
  struct ni_granule *x = find_last(g);
  const uint64_t had = x->bytes, bytes = to->at > x->at ? to->at - x->at : 0;
  x->crc = had ? ni_crc32_join(x->crc, to->crc, bytes - had) : to->crc;
  x->bytes = bytes;
  x->text = to->text - g->text_at;
}

/* The next granule. Of a brief map those between the first and the last one are one. */
static int begin_next_granule(struct ni_granules *g, uint64_t at) {
  struct ni_granule *x = g->item;
  if (g->brief && g->n == 3) {
    x[1].crc = ni_crc32_join(x[1].crc, x[2].crc, x[2].bytes);
    x[1].bytes += x[2].bytes;
    g->n = 2;
  }
  return add_granule(g, at);
}

int ni_granules_brief(struct ni_granules *g) {
  g->brief = true;
  return number_stretch(g->gzip, find_last(g)->at) == number_stretch(g->gzip, g->end) || !g->end
      ? 0
      : begin_next_granule(g, g->end);
}

int ni_granules_border(struct ni_granules *g, const struct ni_border *b) {
  extend_granule(g, b);
  g->text_at = b->text;
  g->entries |= b->entry.n != 0;
  int e = begin_next_granule(g, b->at);
  return e < 0 ? e : copy_entry(find_last(g), &b->entry);
}

#define WIDEN(low, high, value) \
  do { \
    if ((value) < (low)) \
      (low) = (value); \
    if ((value) > (high)) \
      (high) = (value); \
  } while (0)

static int map_operation(struct ni_granules *g, const struct ni_line *l) {
  struct ni_granule *x = find_last(g);
  uint32_t sort;
  const int64_t start = ni_start_ns(l), us = find_time_us(l, start),
                ns = ni_time_ns(start, l->meta.dump_timestamp_us);
  int e = find_op_sort(g, l, &sort);
  if (e < 0)
    return e;
  struct ni_granule_sort *s = &g->sort[sort];
  g->odd |= !l->has_header && !g->marker;
  g->records++;
  x->records++;
  s->records++;
  if (ns < g->origin_ns)
    g->origin_ns = ns;
  WIDEN(x->first_us, x->last_us, us);
  WIDEN(x->min_bytes, x->max_bytes, l->op.msg_bytes);
  WIDEN(x->min_sn, x->max_sn, l->op.sn);
  WIDEN(s->min_sn, s->max_sn, l->op.sn);
  ni_reach_operation(g, sort, l, start);
  return add_sort_once(g, sort);
}

static int keep_text(struct ni_granules *g, const char *text, size_t len) {
  return ni_kept_text(g, (uint32_t)g->n - 1, text, len);
}

/* A line about a communicator that is no operation: its rank is there, whatever else it says. */
static int map_communicator_line(struct ni_granules *g, const struct ni_line *l) {
  bool rollup = l->kind == NI_LINE_ROLLUP;
  uint32_t sort;
  if (!l->has_header || l->ident.rank < 0 || l->ident.comm_hash == 0)
    return 0;
  int e =
      find_or_add_sort(g, l, rollup ? NI_SORT_ROLLUP : NI_SORT_OTHER, rollup ? l->rollup.func : "", &sort);
  if (e < 0)
    return e;
  if (l->kind == NI_LINE_DUMP_STATS && ni_by_count(&l->stats.kind[NI_KIND_P2P].filtered_by, "sampled"))
    g->context[g->sort[sort].context].p2p_sampled = true;
  return add_sort_once(g, sort);
}

static int map_event(struct ni_granules *g, const struct ni_line *l) {
  uint32_t sort;
  g->proxy |= l->kind == NI_LINE_PROXY;
  g->net |= l->kind == NI_LINE_PROXY && l->proxy.start_ns;
  g->api |= l->kind == NI_LINE_API;
  g->launches |= l->kind == NI_LINE_LAUNCH;
  ni_reach_event(g, l);
  find_last(g)->process_lines |= l->ident.comm_hash == 0;
  if (l->ident.comm_hash == 0)
    return 0;
  int e = find_or_add_sort(g, l, NI_SORT_EVENT, "", &sort);
  return e < 0 ? e : add_sort_once(g, sort);
}

static int map_clock(struct ni_granules *g, const struct ni_line *l) {
  uint32_t context;
  if (l->clock.gpu_offset_ns == NI_NO_OFFSET || l->ident.comm_hash == 0)
    return 0;
  int e = find_or_add_context(g, l, &context);
  return e < 0
      ? e
      : ni_kept_clock(g, (uint32_t)g->n - 1, context, l->clock.gpu_offset_at_ns, l->clock.gpu_offset_ns);
}

/* A process's last word, or what NVIDIA's says of losses: the rest is in the account. */
static int map_stats(struct ni_granules *g, const struct ni_line *l, const char *text, size_t len) {
  const struct ni_stats_line *s = &l->stats;
  bool tells =
      s->has_accounting ? s->final && l->ident.comm_hash == 0 : s->dropped_since[0] || s->dropped_since[1];
  g->marker |= !s->has_accounting;
  int e = map_communicator_line(g, l);
  return e < 0 || !tells ? e : keep_text(g, text, len);
}

int ni_granules_map_line(struct ni_granules *g, const struct ni_line *l, const char *text, size_t len) {
  bool first = !g->lines++ && find_last(g)->at == 0;
  int e = 0;
  if (g->brief)
    return 0;
  if (l->meta.dump_timestamp_us > g->last_dump_us)
    g->last_dump_us = l->meta.dump_timestamp_us;
  switch (l->kind) {
    case NI_LINE_OP:
      return map_operation(g, l);
    case NI_LINE_PROCESS:
      g->odd |= !first; /* lines behind it would be of another process */
      return keep_text(g, text, len);
    case NI_LINE_COMM:
      return (e = map_communicator_line(g, l)) < 0 ? e : keep_text(g, text, len);
    case NI_LINE_COMM_END:
    case NI_LINE_GAP:
    case NI_LINE_INCOMPLETE:
    case NI_LINE_STUCK:
    case NI_LINE_IN_FLIGHT:
    case NI_LINE_NOTE:
    case NI_LINE_CONTROL:
      return keep_text(g, text, len);
    case NI_LINE_CLOCK:
      return map_clock(g, l);
    case NI_LINE_DUMP_STATS:
      return map_stats(g, l, text, len);
    case NI_LINE_ROLLUP:
      return map_communicator_line(g, l);
    case NI_LINE_PROXY:
    case NI_LINE_API:
    case NI_LINE_LAUNCH:
    case NI_LINE_GROUP:
    case NI_LINE_CE:
    case NI_LINE_SYNC:
    case NI_LINE_BATCH:
    case NI_LINE_PROXY_CTRL:
    case NI_LINE_NET:
      return map_event(g, l);
    case NI_LINE_COUNTER_NAMES:
    case NI_LINE_COUNTERS:
      g->series = true;
      return 0;
    default:
      return 0;
  }
}

struct ni_range ni_granules_range(const struct ni_granules *g, size_t from, size_t to) {
  const struct ni_granule *x = &g->item[to - 1],
                          *next = to < g->n && g->item[to].entry.n ? &g->item[to] : NULL;
  struct ni_range r = {.from = g->item[from].at, .to = x->at + x->bytes, .entry = g->item[from].entry};
  /*
   * Where the next one begins in a member, the last line of this one ends there: then so much text tells its
   * end.
   */
  if (!next)
    return r;
  r.to = next->at + next->bytes;
  for (size_t i = from; i < to; i++)
    r.text += g->item[i].text;
  return r;
}

void ni_granules_end(struct ni_granules *g, struct ni_reader *r) {
  struct ni_border rest;
  g->closed = ni_reader_rest(r, &rest);
  g->odd |= !g->closed;
  g->gzip = ni_reader_stats(r)->gzip;
  extend_granule(g, &rest);
  g->end = rest.at;
}

/* Adds x of b to the granule of a that is open. sort: b's numbers as a's. */
static int add_to_last(struct ni_granules *a, const struct ni_granules *b, const struct ni_granule *x,
                       const uint32_t *sort) {
  struct ni_granule *y = find_last(a);
  int e = 0;
  y->crc = y->bytes ? ni_crc32_join(y->crc, x->crc, x->bytes) : x->crc;
  y->bytes += x->bytes;
  y->text += x->text;
  y->records += x->records;
  if (x->records) {
    WIDEN(y->first_us, y->last_us, x->first_us);
    WIDEN(y->first_us, y->last_us, x->last_us);
    WIDEN(y->min_bytes, y->max_bytes, x->min_bytes);
    WIDEN(y->min_bytes, y->max_bytes, x->max_bytes);
    WIDEN(y->min_sn, y->max_sn, x->min_sn);
    WIDEN(y->min_sn, y->max_sn, x->max_sn);
  }
  if (x->begin_ns < y->begin_ns)
    y->begin_ns = x->begin_ns;
  if (x->end_ns > y->end_ns)
    y->end_ns = x->end_ns;
  y->process_lines |= x->process_lines;
  for (uint32_t i = 0; e == 0 && i < x->n_sorts; i++)
    e = add_sort_once(a, sort[b->list[x->first_sort + i]]);
  if (y->n_sorts > 1)
    qsort(a->list + y->first_sort, y->n_sorts, sizeof *a->list, ni_by_u32);
  return e;
}

/* Contexts and sorts of b in a: b's numbers as a's. */
static int join_names(struct ni_granules *a, const struct ni_granules *b, uint32_t *context, uint32_t *sort) {
  int e = context && sort ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < b->n_contexts; i++) {
    const struct ni_granule_context *c = &b->context[i];
    e = ni_granules_context(a, &c->ident, &c->meta, &context[i]);
    if (e == 0)
      a->context[context[i]].p2p_sampled |= c->p2p_sampled;
  }
  for (size_t i = 0; e == 0 && i < b->n_sorts; i++) {
    const struct ni_granule_sort *s = &b->sort[i];
    if ((e = ni_granules_sort(a, context[s->context], s->kind, s->func, &sort[i])) < 0)
      break;
    struct ni_granule_sort *to = &a->sort[sort[i]];
    to->records += s->records;
    to->untimed += s->untimed;
    if (s->records)
      WIDEN(to->min_sn, to->max_sn, s->min_sn);
    if (s->records)
      WIDEN(to->min_sn, to->max_sn, s->max_sn);
  }
  return e;
}

/* Granules and kept lines of b behind those of a. */
static int join_granules(struct ni_granules *a, const struct ni_granules *b, const uint32_t *context,
                         const uint32_t *sort) {
  int e = 0;
  size_t k = 0;
  for (size_t i = 0; e == 0 && i < b->n; i++) {
    const struct ni_granule *x = &b->item[i];
    /*
     * Only where a range ends can two be in the same stretch; in one map borders are apart as they should be.
     */
    bool continues_last = find_last(a)->bytes == 0 ||
        (i == 0 && number_stretch(b->gzip, x->at) == number_stretch(b->gzip, find_last(a)->at));
    if (!continues_last)
      e = add_granule(a, x->at);
    if (e == 0 && !continues_last)
      e = copy_entry(find_last(a), &x->entry);
    if (e == 0)
      e = add_to_last(a, b, x, sort);
    for (; e == 0 && k < b->n_kept && b->kept[k].granule == i; k++) {
      const struct ni_kept *l = &b->kept[k];
      if (l->len)
        e = keep_text(a, b->kept_text + l->at, l->len);
      else
        e = ni_kept_clock(a, (uint32_t)a->n - 1, context[l->context], l->at_ns, l->offset_ns);
    }
  }
  return e;
}

int ni_granules_join(struct ni_granules **into, struct ni_granules *b) {
  struct ni_granules *a = *into;
  if (!a && !(a = *into = ni_granules_new(b->item[0].at))) {
    ni_granules_free(b);
    return -ENOMEM;
  }
  uint32_t *sort = calloc(b->n_sorts + 1, sizeof *sort),
           *context = calloc(b->n_contexts + 1, sizeof *context);
  a->odd |= b->odd || (a->end && b->item[0].at != a->end);
  a->odd |= a->n_sorts + b->n_sorts > 2 * NI_SORTS_MAX;
  int e = a->odd ? 0 : join_names(a, b, context, sort);
  if (e == 0 && !a->odd)
    e = join_granules(a, b, context, sort);
  a->records += b->records;
  a->end = b->end;
  a->closed = b->closed;
  a->gzip = b->gzip;
  a->entries |= b->entries;
  if (b->origin_ns < a->origin_ns)
    a->origin_ns = b->origin_ns;
  if (b->first_ns < a->first_ns)
    a->first_ns = b->first_ns;
  if (b->last_ns > a->last_ns)
    a->last_ns = b->last_ns;
  if (b->last_dump_us > a->last_dump_us)
    a->last_dump_us = b->last_dump_us;
  a->proxy |= b->proxy;
  a->api |= b->api;
  a->launches |= b->launches;
  a->net |= b->net;
  a->series |= b->series;
  a->odd |= e < 0 || a->n_sorts > NI_SORTS_MAX;
  free(sort);
  free(context);
  ni_granules_free(b);
  return e;
}
