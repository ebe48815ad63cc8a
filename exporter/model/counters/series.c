#include "series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/input/discover.h"

const char *const ni_series_kinds[3] = {"counter", "sticky", "gauge"};

struct held {
  uint64_t set_sn, last_sn, interval_ns, n; /* n: counters, as its names say */
  struct ni_set set;
  struct ni_reading *reading;
  bool used, whole, exact; /* all names are there; reading is what sample last_sn said */
  uint64_t used_at, made;  /* times of reader.clock */
};

struct series_reader {
  const struct ni_series_to *to;
  struct ni_series_end *end;
  struct held held[NI_SERIES_SETS];
  uint64_t clock, line_no, next_sn;
  struct ni_series_sample now; /* the sample whose lines come */
  struct held *of;             /* its set; NULL: none, or it is of no use */
  uint64_t got;                /* of its values */
};

static int report_fault(struct series_reader *x, const char *what) {
  x->end->faults++;
  return x->to->fault ? x->to->fault(x->to->arg, x->line_no, what) : 0;
}

static void drop_set(struct held *h) {
  ni_set_free(&h->set);
  free(h->reading);
  *h = (struct held){0};
}

static struct held *find_set(struct series_reader *x, uint64_t set_sn) {
  for (int i = 0; i < NI_SERIES_SETS; i++)
    if (x->held[i].used && x->held[i].set_sn == set_sn)
      return &x->held[i];
  return NULL;
}

/* A slot for a set: a free one, or that of the set that was not used for longest. */
static struct held *claim_set_slot(struct series_reader *x) {
  struct held *h = &x->held[0];
  for (int i = 1; i < NI_SERIES_SETS; i++)
    if (x->held[i].used_at < h->used_at)
      h = &x->held[i];
  drop_set(h);
  return h;
}

static int parse_source(const char *name) {
  for (int i = 0; i < NI_METRIC_SOURCES; i++)
    if (strcmp(ni_source_name((unsigned)i), name) == 0)
      return i;
  return -1;
}

/* What follows belongs to no sample that was begun. Its set may be dropped. */
static int end_sample(struct series_reader *x) {
  bool cut = x->of != NULL;
  x->of = NULL;
  return cut ? report_fault(x, "a sample whose end is not there") : 0;
}

/* Are these the names that the set has already? */
static bool has_same_names(const struct held *h, const struct ni_counter_names_line *l) {
  if (l->entity >= h->set.n_entities || l->n_counters != h->n)
    return false;
  const struct ni_entity *e = &h->set.entity[l->entity];
  if (strcmp(e->name, l->name) != 0 || l->first < e->first || l->first + l->metrics.n > e->first + e->n)
    return false;
  for (uint64_t i = 0; i < l->metrics.n; i++)
    if (strcmp(h->set.counter[l->first + i].name, l->metrics.list[i].name) != 0)
      return false;
  return true;
}

static bool add_metrics(struct ni_set *s, const struct ni_counter_names_line *l) {
  for (uint64_t i = 0; i < l->metrics.n; i++) {
    const struct ni_metric_name *m = &l->metrics.list[i];
    if (!ni_set_counter(s, m->name))
      return false;
    /* As the recorder knew it: a reader's table may be older. */
    s->counter[s->n_counters - 1].what =
        (struct ni_metric){.kind = strcmp(m->kind, "gauge") == 0 ? NI_METRIC_GAUGE
                               : strcmp(m->kind, "sticky") == 0  ? NI_METRIC_STICKY
                                                                 : NI_METRIC_COUNTER,
                           .width = (uint8_t)(m->width > 64 ? 64 : m->width),
                           .scale = (uint8_t)(m->scale > 255 || !m->scale ? 1 : m->scale),
                           .unit = ni_set_text(s, m->unit)};
  }
  return true;
}

static int read_names(struct series_reader *x, const struct ni_counter_names_line *l) {
  struct held *h = find_set(x, l->set_sn);
  int source = parse_source(l->source), e = end_sample(x);
  const bool is_repetition = h && h->whole && has_same_names(h, l);
  if (e < 0 || is_repetition)
    return e;
  const bool begins_anew = !l->entity && !l->first;
  if (h && (h->whole || begins_anew)) { /* another file's behind it, or its first half */
    drop_set(h);
    h = NULL;
  }
  const bool is_too_large =
      l->n_counters > NI_SERIES_COUNTERS_MAX || l->n_entities > NI_SERIES_ENTITIES_MAX || l->metrics.more;
  if (source < 0 || !*l->name || is_too_large)
    return report_fault(x, "names that cannot be");
  if (!h) {
    if (l->entity || l->first)
      return 0; /* the beginning of them is not there */
    h = claim_set_slot(x);
    *h = (struct held){.used = true,
                       .set_sn = l->set_sn,
                       .interval_ns = l->interval_ns,
                       .n = l->n_counters,
                       .made = ++x->clock};
  }
  h->used_at = ++x->clock;
  const bool is_next_counter =
      l->n_counters == h->n && l->first == h->set.n_counters && l->first + l->metrics.n <= h->n;
  const bool is_next_entity =
      l->entity <= h->set.n_entities && l->entity + 1 >= h->set.n_entities && l->entity < l->n_entities;
  if (!is_next_counter || !is_next_entity) {
    drop_set(h);
    return report_fault(x, "names out of their order");
  }
  if (l->entity == h->set.n_entities) {
    struct ni_entity *new = ni_set_entity(&h->set, (enum ni_metric_source)source, l->name);
    if (!new)
      return -ENOMEM;
    new->pci = ni_set_text(&h->set, l->pci);
    new->nearest = ni_set_text(&h->set, l->nearest);
    new->link = ni_set_text(&h->set, l->link);
    new->about = ni_set_text(&h->set, l->about);
    new->link_bytes_s = l->link_bytes_s;
    new->numa = l->numa;
  }
  if (!add_metrics(&h->set, l))
    return -ENOMEM;
  h->whole = l->entity + 1 == l->n_entities && h->set.n_counters == h->n;
  if (h->whole && !(h->reading = calloc(h->n + 1, sizeof *h->reading)))
    return -ENOMEM;
  return h->set.failed ? -ENOMEM : 0;
}

/* ---- values ---- */

/* The first line of a sample: finds its set, and whether its values can be used. */
static int begin_sample(struct series_reader *x, const struct ni_line *line) {
  const struct ni_sample_line *l = &line->counters;
  struct held *h = find_set(x, l->set_sn);
  int e = end_sample(x);
  if (e == 0 && l->sample_sn != x->next_sn)
    e = report_fault(x, "samples before it are not there, or their order is another one");
  x->next_sn = l->sample_sn + 1;
  if (e < 0)
    return e;
  if (!h || !h->whole)
    return report_fault(x, "a sample of a set whose names are not there");
  h->used_at = ++x->clock;
  if (l->since_sn != NI_NO_SN && (!h->exact || l->since_sn != h->last_sn)) {
    h->exact = false;
    return report_fault(x, "a sample that says what changed since one that is not there");
  }
  if (l->since_sn == NI_NO_SN)
    memset(h->reading, 0, h->n * sizeof *h->reading);
  h->exact = false;
  x->of = h;
  x->got = 0;
  x->now = (struct ni_series_sample){.pid = line->meta.pid,
                                     .set_sn = l->set_sn,
                                     .sample_sn = l->sample_sn,
                                     .interval_ns = h->interval_ns,
                                     .real_ns = (int64_t)l->realtime_ns,
                                     .mono_ns = (int64_t)l->monotonic_ns,
                                     .sweep_ns = l->sweep_ns,
                                     .missed = l->missed,
                                     .set = &h->set,
                                     .made = h->made,
                                     .reading = h->reading};
  for (size_t i = 0; i < h->set.n_entities; i++) {
    const struct ni_entity *e_ = &h->set.entity[i];
    int64_t at =
        i < l->at_us.n && l->at_us.list[i] > 0 && l->at_us.list[i] < INT32_MAX ? l->at_us.list[i] * 1000 : 0;
    for (uint32_t k = e_->first; k < e_->first + e_->n; k++) {
      h->reading[k].real_ns = x->now.real_ns + at;
      h->reading[k].mono_ns = x->now.mono_ns + at;
    }
  }
  return 0;
}

static int read_values(struct series_reader *x, const struct ni_line *line) {
  const struct ni_sample_line *l = &line->counters;
  int e = l->first ? 0 : begin_sample(x, line);
  struct held *h = x->of;
  if (e < 0 || !h)
    return e;
  const bool is_of_sample = l->sample_sn == x->now.sample_sn && l->set_sn == h->set_sn;
  if (!is_of_sample || l->first != x->got || l->values.n > h->n - x->got) {
    x->of = NULL;
    return report_fault(x, "a sample with values out of their order");
  }
  for (uint64_t i = 0; i < l->values.n; i++) {
    struct ni_reading *r = &h->reading[x->got + i];
    r->state = l->values.list[i] == NI_NO_NUMBER ? NI_READ_UNREADABLE : NI_READ_OK;
    if (r->state == NI_READ_OK)
      r->value += (uint64_t)l->values.list[i];
  }
  x->got += l->values.n;
  if (x->got < h->n)
    return 0;
  h->exact = true;
  h->last_sn = l->sample_sn;
  x->of = NULL;
  x->end->samples++;
  x->now.host = line->meta.hostname;
  return x->to->sample(x->to->arg, &x->now);
}

static int read_series_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct series_reader *x = arg;
  x->line_no = line_no;
  if (!l->has_header)
    return 0;
  return l->kind == NI_LINE_COUNTER_NAMES ? read_names(x, &l->counter_names)
      : l->kind == NI_LINE_COUNTERS       ? read_values(x, l)
                                          : 0;
}

static int forward_fault(void *arg, const struct ni_fault *f) {
  struct series_reader *x = arg;
  x->line_no = f->line_no;
  return report_fault(x,
                      f->kind == NI_FAULT_CUT_LINE ? "a line that is cut" : "a line that is none of a log");
}

int ni_series_read(const char *path, const struct ni_series_to *to, struct ni_series_end *end) {
  struct series_reader x = {.to = to, .end = end};
  struct ni_scan *scan;
  *end = (struct ni_series_end){0};
  int e = ni_scan_new(&scan);
  if (e == 0)
    e = ni_scan_file(
        scan, path, NULL,
        &(struct ni_scan_to){.arg = &x, .take = read_series_line, .fault = forward_fault, .counters = true},
        &end->scan);
  if (e == 0)
    e = end_sample(&x);
  ni_scan_free(scan);
  for (int i = 0; i < NI_SERIES_SETS; i++)
    drop_set(&x.held[i]);
  return e;
}

/* ---- pairs ---- */

bool ni_is_series(const char *path) { return strstr(ni_path_name(path), "-counters-") != NULL; }

struct memory {
  const struct ni_series_pairs *to;
  struct ni_reading *before;
  size_t cap;
  uint64_t made; /* of the set that `before` is of; 0: none yet */
};

static int emit_sample(void *arg, const struct ni_series_sample *s) {
  struct memory *m = arg;
  int e = 0;
  if (s->interval_ns == 0)
    return 0;
  if (m->made != s->made) {
    if (m->to->set && (e = m->to->set(m->to->arg, s->host, s->set)) < 0)
      return e;
    if (s->set->n_counters > m->cap &&
        !ni_array_exact(&m->before, &m->cap, s->set->n_counters, sizeof *m->before))
      return -ENOMEM;
  } else {
    e = m->to->pair(m->to->arg, s, m->before);
  }
  m->made = s->made;
  if (s->set->n_counters)
    memcpy(m->before, s->reading, s->set->n_counters * sizeof *m->before);
  return e;
}

int ni_series_pairs(const char *path, const struct ni_series_pairs *to, struct ni_series_end *end) {
  struct memory m = {.to = to};
  int e = ni_series_read(path, &(struct ni_series_to){.arg = &m, .sample = emit_sample}, end);
  free(m.before);
  return e;
}
