#include "beside.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"

enum { FIRST_SHIFT = 24 }; /* 17 ms */

static uint64_t *bin_at(const struct ni_cover *c, uint64_t b) { return &c->busy[b % NI_COVER_BINS]; }

static uint64_t bin_width(const struct ni_cover *c) { return UINT64_C(1) << c->shift; }

/* Bins twice as wide. */
static void widen_bins(struct ni_cover *c) {
  uint64_t wide[NI_COVER_BINS] = {0};
  for (uint64_t b = c->first; b <= c->last; b++)
    wide[b / 2 % NI_COVER_BINS] += *bin_at(c, b);
  memcpy(c->busy, wide, sizeof wide);
  c->first /= 2;
  c->last /= 2;
  c->shift++;
}

/* Makes bins for the time between these two, both included. */
static int cover_span(struct ni_cover *c, uint64_t from_ns, uint64_t to_ns) {
  if (!c->busy) {
    if (!(c->busy = calloc(NI_COVER_BINS, sizeof *c->busy)))
      return -ENOMEM;
    if (c->shift < FIRST_SHIFT)
      c->shift = FIRST_SHIFT;
    c->first = c->last = from_ns >> c->shift;
  }
  for (;; widen_bins(c)) {
    uint64_t first = from_ns >> c->shift, last = to_ns >> c->shift;
    if (first > c->first)
      first = c->first;
    if (last < c->last)
      last = c->last;
    if (last - first >= NI_COVER_BINS)
      continue;
    c->first = first;
    c->last = last;
    return 0;
  }
}

int ni_cover_add(struct ni_cover *c, int64_t start_ns, int64_t end_ns) {
  if (!ni_time_of_a_job(start_ns) || !ni_time_of_a_job(end_ns) || end_ns <= start_ns)
    return 0;
  uint64_t at = (uint64_t)start_ns, end = (uint64_t)end_ns;
  if (cover_span(c, at, end) < 0)
    return -ENOMEM;
  while (at < end) {
    uint64_t next = ((at >> c->shift) + 1) << c->shift;
    if (next > end)
      next = end;
    *bin_at(c, at >> c->shift) += next - at;
    at = next;
  }
  return 0;
}

int ni_cover_merge(struct ni_cover *c, const struct ni_cover *other, bool most) {
  if (!other->busy)
    return 0;
  struct ni_cover o = *other;
  uint64_t copy[NI_COVER_BINS];
  memcpy(copy, other->busy, sizeof copy);
  o.busy = copy;
  while (c->busy && c->shift < o.shift)
    widen_bins(c);
  if (c->shift < o.shift)
    c->shift = o.shift;
  if (cover_span(c, o.first << o.shift, ((o.last + 1) << o.shift) - 1) < 0)
    return -ENOMEM;
  while (o.shift < c->shift)
    widen_bins(&o);
  for (uint64_t b = o.first; b <= o.last; b++) {
    uint64_t theirs = *bin_at(&o, b), *ours = bin_at(c, b);
    if (!most)
      *ours += theirs;
    else if (theirs > *ours)
      *ours = theirs;
  }
  return 0;
}

void ni_cover_free(struct ni_cover *c) {
  free(c->busy);
  *c = (struct ni_cover){0};
}

struct ni_cover_share ni_cover_between(const struct ni_cover *c, int64_t from_ns, int64_t to_ns) {
  struct ni_cover_share s = {0};
  const bool are_times = ni_time_of_a_job(from_ns) && ni_time_of_a_job(to_ns) && to_ns > from_ns;
  if (!are_times || !c->busy)
    return s;
  uint64_t at = (uint64_t)from_ns, end = (uint64_t)to_ns;
  double busy = 0;
  s.all = true;
  for (uint64_t next; at < end; at = next) {
    uint64_t b = at >> c->shift, in_it = b < c->first || b > c->last ? 0 : *bin_at(c, b);
    next = (b + 1) << c->shift;
    if (next > end)
      next = end;
    if (in_it > bin_width(c))
      in_it = bin_width(c);
    busy += (double)(next - at) * ((double)in_it / (double)bin_width(c));
    s.some |= in_it > 0;
    s.all &= in_it == bin_width(c);
    if (b < c->first && c->first << c->shift < end) {
      next = next < c->first << c->shift ? c->first << c->shift : next;
      s.all = false;
    } else if (b > c->last)
      next = end;
  }
  s.share = busy / (double)(to_ns - from_ns);
  return s;
}

const char *const ni_beside_hows[] = {"its GPU", "nearest", "of the host"};

void ni_beside_begin(struct ni_beside *b, const struct ni_beside_process *process, size_t n, int64_t from_ns,
                     int64_t to_ns, unsigned n_bins) {
  *b = (struct ni_beside){.process = process,
                          .n_processes = n,
                          .from_ns = from_ns,
                          .to_ns = to_ns,
                          .n_bins = to_ns > from_ns ? n_bins : 0};
}

const char *ni_beside_line(size_t i) {
  static const char *const lines[] = {"tx_bytes", "rx_bytes", "tx_held", "clock_sm", NULL};
  return lines[i];
}

static void free_bins(const struct ni_beside_row *r, size_t n) {
  for (size_t i = 0; r && i < n; i++)
    free(r[i].bin);
}

void ni_beside_free(struct ni_beside *b) {
  free_bins(b->row, b->n_rows);
  for (size_t i = 0; i < b->n_entities; i++) {
    struct ni_beside_entity *e = &b->entity[i];
    free_bins(e->row, e->n);
    free(e->row);
    free(e->process);
    ni_cover_free(&e->cover);
  }
  free(b->entity);
  free(b->row);
  ni_index_free(&b->entity_at);
  ni_index_free(&b->row_at);
  free(b->row_of);
  free(b->entity_of);
  ni_set_free(&b->texts);
  *b = (struct ni_beside){0};
}

/* ---- whose it is ---- */

/*
 * Is pci, as NCCL or NVML spell it, the address of which `list` has some? The domain may have 4 or 8 digits,
 * any case.
 */
static bool is_same_pci(const char *pci, const char *list) {
  if (!pci || !list)
    return false;
  const char *short_pci = strlen(pci) > 12 ? pci + strlen(pci) - 12 : pci;
  for (size_t n; *list; list += n + (list[n] == ',')) {
    n = strcspn(list, ",");
    const char *one = n > 12 ? list + n - 12 : list;
    if (strlen(short_pci) == (size_t)(list + n - one) &&
        strncasecmp(short_pci, one, (size_t)(list + n - one)) == 0)
      return true;
  }
  return false;
}

static bool is_entity_of_process(const struct ni_beside_process *p, const struct ni_entity *e,
                                 enum ni_beside_how how) {
  if (how == NI_BESIDE_HOST)
    return true;
  if (how == NI_BESIDE_NEAREST)
    return is_same_pci(p->gpu_pci, e->nearest);
  if (p->gpu_pci)
    return is_same_pci(p->gpu_pci, e->pci);
  return p->gpu >= 0 && strncmp(e->name, "gpu", 3) == 0 && strtol(e->name + 3, NULL, 10) == p->gpu;
}

static int find_processes(struct ni_beside *b, struct ni_beside_entity *to, const struct ni_entity *e,
                          enum ni_beside_how how) {
  size_t cap = 0;
  to->how = (uint8_t)how;
  for (size_t i = 0; i < b->n_processes; i++) {
    const struct ni_beside_process *p = &b->process[i];
    if (!p->host || strcmp(p->host, to->host) != 0 || !is_entity_of_process(p, e, how))
      continue;
    if (!ni_array_room(to->process, to->n_processes, cap))
      return -ENOMEM;
    to->process[to->n_processes++] = (uint32_t)i;
  }
  return 0;
}

static int add_entity(struct ni_beside *b, const char *host, const struct ni_entity *e) {
  if (!ni_array_room(b->entity, b->n_entities, b->cap_entities))
    return -ENOMEM;
  struct ni_beside_entity *to = &b->entity[b->n_entities++];
  *to = (struct ni_beside_entity){.host = ni_set_text(&b->texts, host),
                                  .name = ni_set_text(&b->texts, e->name),
                                  .about = ni_set_text(&b->texts, e->about ? e->about : e->pci),
                                  .source = e->source,
                                  .link_bytes_s = e->link_bytes_s};
  bool gpu = e->source == NI_METRIC_GPU;
  int n = find_processes(b, to, e, gpu ? NI_BESIDE_OWN : NI_BESIDE_NEAREST);
  if (n == 0 && !gpu && !to->n_processes)
    n = find_processes(b, to, e, NI_BESIDE_HOST);
  return b->texts.failed ? -ENOMEM : n;
}

static int find_or_add_entity(struct ni_beside *b, const char *host, const struct ni_entity *e,
                              uint32_t *at) {
  uint64_t hash = ni_hash_text(ni_hash_text(ni_hash(0, e->source), host), e->name);
  for (size_t next = 0; (*at = ni_index_next(&b->entity_at, hash, &next)) != NI_INDEX_NONE;) {
    const struct ni_beside_entity *x = &b->entity[*at];
    if (x->source == e->source && strcmp(x->name, e->name) == 0 && strcmp(x->host, host) == 0)
      return 0;
  }
  *at = (uint32_t)b->n_entities;
  int error = add_entity(b, host, e);
  return error < 0 ? error : ni_index_add(&b->entity_at, hash, *at);
}

/* Makes covers for the entities of one set; covers of all hosts at a time would be too much. */
static int cover_entities(struct ni_beside *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    struct ni_beside_entity *e = &b->entity[b->entity_of[i]];
    ni_cover_free(&e->cover);
    for (uint32_t k = 0; k < e->n_processes; k++) {
      const struct ni_cover *c = b->process[e->process[k]].cover;
      if (c && ni_cover_merge(&e->cover, c, true) < 0)
        return -ENOMEM;
    }
  }
  b->n_covered = n;
  return 0;
}

static void free_covers(struct ni_beside *b) {
  for (size_t i = 0; i < b->n_covered; i++)
    ni_cover_free(&b->entity[b->entity_of[i]].cover);
  b->n_covered = 0;
}

/* ---- samples ---- */

static int add_row(struct ni_beside *b, struct ni_beside_entity *e, const struct ni_counter *c) {
  if (!ni_array_room(e->row, e->n, e->cap_rows))
    return -ENOMEM;
  struct ni_beside_row *r = &e->row[e->n++];
  *r = (struct ni_beside_row){
      .name = ni_set_text(&b->texts, c->name), .what = c->what, .lowest = NAN, .highest = NAN};
  r->what.unit = ni_set_text(&b->texts, c->what.unit); /* the set may be gone before the row */
  bool line = b->all_lines;
  const char *unified = ni_metric_unified((enum ni_metric_source)e->source, r->name);
  for (size_t i = 0; unified && ni_beside_line(i); i++)
    line |= strcmp(unified, ni_beside_line(i)) == 0;
  if (line && b->n_bins && b->binned < (b->all_lines ? NI_BESIDE_BINNED_OF_ALL : NI_BESIDE_BINNED)) {
    if (!(r->bin = calloc(b->n_bins, sizeof *r->bin)))
      return -ENOMEM;
    b->binned++;
  }
  return b->texts.failed ? -ENOMEM : 0;
}

/* The row of a counter that earlier sets had, or a new one. hint: where it lies if the sets are alike. */
static int find_or_add_row(struct ni_beside *b, struct ni_beside_entity *e, uint32_t known, uint32_t hint,
                           const struct ni_counter *c, uint32_t *at) {
  *at = hint;
  if (hint < known && strcmp(e->row[hint].name, c->name) == 0)
    return 0;
  uint64_t hash = ni_hash_text(ni_hash(0, (uint64_t)(e - b->entity)), c->name);
  for (size_t next = 0; (*at = ni_index_next(&b->row_at, hash, &next)) != NI_INDEX_NONE;)
    if (*at < known && strcmp(e->row[*at].name, c->name) == 0)
      return 0;
  *at = e->n;
  int error = add_row(b, e, c);
  return error < 0 ? error : ni_index_add(&b->row_at, hash, *at);
}

int ni_beside_set(struct ni_beside *b, const char *host, const struct ni_set *set) {
  int e = 0;
  b->set = NULL;
  free_covers(b);
  if (!ni_array_room(b->row_of, set->n_counters, b->cap_row_of))
    return -ENOMEM;
  if (!ni_array_room(b->entity_of, set->n_entities, b->cap_entity_of))
    return -ENOMEM;
  for (size_t i = 0; i < set->n_entities; i++) {
    const struct ni_entity *x = &set->entity[i];
    if ((e = find_or_add_entity(b, host, x, &b->entity_of[i])) < 0)
      return e;
    struct ni_beside_entity *to = &b->entity[b->entity_of[i]];
    uint32_t known = to->n, hint = 0;
    for (uint32_t k = x->first; k < x->first + x->n; k++) {
      if ((e = find_or_add_row(b, to, known, hint, &set->counter[k], &b->row_of[k])) < 0)
        return e;
      hint = b->row_of[k] + 1;
    }
  }
  if ((e = cover_entities(b, set->n_entities)) < 0)
    return e;
  b->set = set;
  return 0;
}

/* Spreads an amount that came between two times over the parts of the run. */
static void spread_amount(const struct ni_beside *b, struct ni_beside_row *r, int64_t from, int64_t to,
                          double amount) {
  double width = (double)(b->to_ns - b->from_ns) / b->n_bins, span = (double)(to - from);
  for (unsigned i = 0; i < b->n_bins; i++) {
    double lo = (double)(from - b->from_ns), hi = (double)(to - b->from_ns);
    if (lo < i * width)
      lo = i * width;
    if (hi > (i + 1) * width)
      hi = (i + 1) * width;
    if (hi <= lo)
      continue;
    r->bin[i].sum += amount * (hi - lo) / span;
    r->bin[i].seconds += (hi - lo) / 1e9;
  }
}

static void add_level(struct ni_beside_row *r, const struct ni_reading *after, double seconds,
                      const struct ni_cover_share *s) {
  double v = (double)(int64_t)after->value * r->what.scale;
  r->level_with += v * seconds * s->share;
  r->level_without += v * seconds * (1 - s->share);
  r->with += seconds * s->share;
  r->without += seconds * (1 - s->share);
  if (!s->some)
    return;
  if (!(v >= r->lowest))
    r->lowest = v;
  if (!(v <= r->highest))
    r->highest = v;
  r->bits |= after->value;
}

static void add_reading(const struct ni_beside *b, struct ni_beside_row *r, const struct ni_beside_entity *e,
                        const struct ni_reading *before, const struct ni_reading *after,
                        const struct ni_cover_share *s) {
  struct ni_change c = ni_change_of(&r->what, before, after, e->link_bytes_s);
  bool known = c.state == NI_CHANGE_NONE || c.state == NI_CHANGE_CHANGED || c.state == NI_CHANGE_LEVEL;
  if (!known || !(c.seconds > 0)) {
    r->unknown += c.state != NI_CHANGE_STALE;
    return;
  }
  r->samples++;
  bool gauge = r->what.kind == NI_METRIC_GAUGE;
  double d = (double)(gauge ? (int64_t)after->value : c.delta) * r->what.scale;
  if (r->bin && after->real_ns > before->real_ns)
    spread_amount(b, r, before->real_ns, after->real_ns, gauge ? d * c.seconds : d);
  if (gauge) {
    add_level(r, after, c.seconds, s);
    return;
  }
  r->with += d * s->share;
  r->without += d * (1 - s->share);
  if (s->all)
    r->least += d;
  if (s->some)
    r->most += d;
}

void ni_beside_sample(struct ni_beside *b, const struct ni_reading *before, const struct ni_reading *after) {
  for (size_t i = 0; b->set && i < b->set->n_entities; i++) {
    const struct ni_entity *x = &b->set->entity[i];
    struct ni_beside_entity *e = &b->entity[b->entity_of[i]];
    int64_t from = 0, to = 0; /* of its first counter that both have: an entity is read at once */
    for (uint32_t k = x->first; k < x->first + x->n && !to; k++)
      if (before[k].state == NI_READ_OK && after[k].state == NI_READ_OK) {
        from = before[k].real_ns;
        to = after[k].real_ns;
      }
    struct ni_cover_share s = ni_cover_between(&e->cover, from, to);
    if (to > from) {
      e->with_s += (double)(to - from) / 1e9 * s.share;
      e->without_s += (double)(to - from) / 1e9 * (1 - s.share);
    }
    for (uint32_t k = x->first; k < x->first + x->n; k++)
      add_reading(b, &e->row[b->row_of[k]], e, &before[k], &after[k], &s);
  }
}

/* ---- the end ---- */

static int by_entity(const void *x, const void *y) {
  const struct ni_beside_entity *p = x, *q = y;
  int d = strverscmp(p->host, q->host);
  if (d == 0)
    d = (int)p->source - (int)q->source;
  return d ? d : strverscmp(p->name, q->name);
}

int ni_beside_end(struct ni_beside *b) {
  size_t n = 0;
  free_covers(b);
  for (size_t i = 0; i < b->n_entities; i++)
    n += b->entity[i].n;
  if (!(b->row = calloc(n + 1, sizeof *b->row)))
    return -ENOMEM;
  if (b->n_entities)
    qsort(b->entity, b->n_entities, sizeof *b->entity, by_entity);
  for (uint32_t i = 0; i < b->n_entities; i++) {
    struct ni_beside_entity *e = &b->entity[i];
    e->first = (uint32_t)b->n_rows;
    for (uint32_t k = 0; k < e->n; k++) {
      struct ni_beside_row *r = &b->row[b->n_rows++];
      *r = e->row[k];
      r->entity = i;
      if (r->what.kind != NI_METRIC_GAUGE)
        continue;
      r->level_with = r->with > 0 ? r->level_with / r->with : NAN;
      r->level_without = r->without > 0 ? r->level_without / r->without : NAN;
    }
    free(e->row);
    e->row = NULL;
  }
  b->set = NULL;
  return 0;
}

const struct ni_beside_row *ni_beside_unified(const struct ni_beside *b, const struct ni_beside_entity *e,
                                              const char *name) {
  const struct ni_beside_row *best = NULL;
  for (uint32_t i = e->first; i < e->first + e->n; i++) {
    const char *unified = ni_metric_unified((enum ni_metric_source)e->source, b->row[i].name);
    const bool is_longer = !best || b->row[i].with > best->with;
    if (unified && strcmp(unified, name) == 0 && is_longer)
      best = &b->row[i];
  }
  return best;
}

static double rate_per_second(const struct ni_beside_entity *e, const struct ni_beside_row *r) {
  return r && r->samples && e->with_s > 0 ? r->with / e->with_s : NAN;
}

/* Cycles are of a clock of 1 GHz (Cassini's). */
static double share_of_time(const struct ni_beside_entity *e, const struct ni_beside_row *r) {
  return rate_per_second(e, r) / (r && strcmp(r->what.unit, "us") == 0 ? 1e6 : 1e9);
}

static double highest_level(const struct ni_beside_row *r) { return r && r->samples ? r->most : NAN; }
static double level_in_flight(const struct ni_beside_row *r) { return r ? r->level_with : NAN; }
static bool is_unsure(const struct ni_beside_row *r) { return r && r->most - r->least > 0.1 * r->with; }

struct ni_beside_figures ni_beside_figures(const struct ni_beside *b, const struct ni_beside_entity *e) {
#define ROW(name) ni_beside_unified(b, e, name)
  const struct ni_beside_row *tx = ROW("tx_bytes"), *rx = ROW("rx_bytes"), *clock = ROW("clock_sm"),
                             *reasons = ROW("throttle_reasons");
  struct ni_beside_figures f = {.tx_bytes_s = rate_per_second(e, tx),
                                .rx_bytes_s = rate_per_second(e, rx),
                                .held = share_of_time(e, ROW("tx_held")),
                                .holds = share_of_time(e, ROW("rx_held")),
                                .retries = highest_level(ROW("retries")),
                                .timeouts = highest_level(ROW("timeouts")),
                                .clock_mhz = level_in_flight(clock),
                                .lowest_mhz = clock ? clock->lowest : NAN,
                                .busy = level_in_flight(ROW("utilization_gpu")) / 100,
                                .power_w = level_in_flight(ROW("power")) / 1000,
                                .reasons = reasons ? reasons->bits : 0,
                                .unsure = is_unsure(tx) || is_unsure(rx)};
#undef ROW
  f.of_link = e->link_bytes_s > 0 ? fmax(f.tx_bytes_s, f.rx_bytes_s) / e->link_bytes_s : NAN;
  return f;
}
