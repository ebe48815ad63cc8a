#include "metric.h"

#include <ctype.h>
#include <string.h>

bool ni_metric_fits(const char *pattern, const char *name) {
  for (; *pattern; pattern++) {
    if (*pattern == '*') {
      do
        if (ni_metric_fits(pattern + 1, name))
          return true;
      while (*name++);
      return false;
    }
    if (*pattern == '#') {
      if (!isdigit((unsigned char)*name))
        return false;
      while (isdigit((unsigned char)*name))
        name++;
    } else if (*pattern != *name++) {
      return false;
    }
  }
  return !*name;
}

bool ni_metric_fits_any(const char *const *pattern, const char *name) {
  while (*pattern && !ni_metric_fits(*pattern, name))
    pattern++;
  return *pattern != NULL;
}

struct metric_row {
  uint8_t source, kind, width, scale;
  const char *text, *const *pattern; /* a unit or a name; NULL-terminated */
};

/*
 * A table for each question: a row of another one cannot be the answer, and a sweep asks for tens of
 * thousands of names.
 */
#define PATTERNS(...) \
  (const char *const[]) { __VA_ARGS__, NULL }
#define KIND(...)
#define SCALE(...)
#define SHORT(...)
#define UNIFIED(...)

#undef KIND
#define KIND(source, kind, width, unit, ...) \
  {NI_METRIC_##source, NI_METRIC_##kind, width, 1, unit, PATTERNS(__VA_ARGS__)},
static const struct metric_row kinds[] = {
#include "exporter/collect/metrics.def"
};
#undef KIND
#define KIND(...)

#undef SCALE
#define SCALE(source, scale, ...) {NI_METRIC_##source, 0, 0, scale, "", PATTERNS(__VA_ARGS__)},
static const struct metric_row scales[] = {
#include "exporter/collect/metrics.def"
};
#undef SCALE
#define SCALE(...)

#undef SHORT
#define SHORT(source, ...) {NI_METRIC_##source, 0, 0, 1, "", PATTERNS(__VA_ARGS__)},
static const struct metric_row few[] = {
#include "exporter/collect/metrics.def"
};
#undef SHORT
#define SHORT(...)

#undef UNIFIED
#define UNIFIED(source, name, ...) {NI_METRIC_##source, 0, 0, 1, name, PATTERNS(__VA_ARGS__)},
static const struct metric_row alike[] = {
#include "exporter/collect/metrics.def"
};

#define ROW_OF(table, source, name) find_row(table, sizeof table / sizeof *table, source, name)

/* The first row that fits; NULL: none does. */
static const struct metric_row *find_row(const struct metric_row *r, size_t n, enum ni_metric_source source,
                                         const char *name) {
  for (const struct metric_row *end = r + n; r < end; r++)
    if (r->source == source && ni_metric_fits_any(r->pattern, name))
      return r;
  return NULL;
}

bool ni_metric_short(enum ni_metric_source source, const char *name) {
  return ROW_OF(few, source, name) != NULL;
}

const char *ni_metric_unified(enum ni_metric_source source, const char *name) {
  const struct metric_row *r = ROW_OF(alike, source, name);
  return r ? r->text : NULL;
}

struct ni_metric ni_metric_of(enum ni_metric_source source, const char *name) {
  static const struct metric_row of_none = {.kind = NI_METRIC_COUNTER, .width = 64, .scale = 1, .text = ""};
  const struct metric_row *kind = ROW_OF(kinds, source, name), *scaled = ROW_OF(scales, source, name);
  if (!kind)
    kind = &of_none;
  return (struct ni_metric){kind->kind, kind->width, scaled ? scaled->scale : 1, kind->text};
}

static const struct {
  const char *group; /* of those that follow; of a member NULL */
  struct ni_metric_member member;
  const char *pattern;
} groups[] = {
#define GROUP(name) {.group = name},
#define MEMBER(of, counts) {.pattern = of, .member = {.unit = counts}},
#include "exporter/collect/metrics_groups.def"
};
enum { GROUP_ROWS = sizeof groups / sizeof *groups };

const char *ni_metric_group(size_t i) {
  for (size_t k = 0; k < GROUP_ROWS; k++)
    if (groups[k].group && !i--)
      return groups[k].group;
  return NULL;
}

bool ni_metric_next_group(const char *name, size_t *at, struct ni_metric_member *out) {
  for (size_t i; (i = (*at)++) < GROUP_ROWS;) {
    if (groups[i].group || !ni_metric_fits(groups[i].pattern, name))
      continue;
    *out = groups[i].member;
    while (!groups[i].group)
      i--;
    out->group = groups[i].group;
    return true;
  }
  return false;
}

const char *ni_metric_important(size_t i, uint32_t *id) {
  static const struct {
    uint32_t id;
    const char *name;
  } important[] = {
      {17, "atu_cache_evictions"},
      {18, "atu_cache_hit_base_page_size_0"},
      {22, "atu_cache_hit_derivative1_page_size_0"},
      {564, "hni_rx_paused_0"},
      {565, "hni_rx_paused_1"},
      {613, "hni_tx_paused_0"},
      {614, "hni_tx_paused_1"},
      {835, "lpe_net_match_overflow_0"},
      {839, "lpe_net_match_priority_0"},
      {869, "lpe_rndzv_puts_0"},
      {873, "lpe_rndzv_puts_offloaded_0"},
      {1597, "parbs_tarb_pi_non_posted_blocked_cnt"},
      {1598, "parbs_tarb_pi_non_posted_pkts"},
      {1599, "parbs_tarb_pi_posted_blocked_cnt"},
      {1600, "parbs_tarb_pi_posted_pkts"},
      {1724, "pct_trs_rsp_nack_drops"},
  };
  if (i >= sizeof important / sizeof *important)
    return NULL;
  *id = important[i].id;
  return important[i].name;
}

/* cycles of Cassini's clock, and a little; no NIC counts anything else as fast but bytes */
#define MOST_PER_S 1.02e9
#define MOST_OF_LINK 1.05  /* octets of a link, with those that are not data */
#define LINK_BYTES_S 100e9 /* of a link nobody knows: 800 Gb/s */

/* The most that a counter can rise in a second. */
static double limit_rate(const struct ni_metric *m, double link_bytes_s) {
  if (strcmp(m->unit, "bytes") != 0)
    return MOST_PER_S;
  return MOST_OF_LINK * (link_bytes_s > 0 ? link_bytes_s : LINK_BYTES_S) / (m->scale ? m->scale : 1);
}

static double measure_seconds(const struct ni_reading *a, const struct ni_reading *b) {
  /* the same stamp, though the clock was set meanwhile */
  if (a->real_ns && a->real_ns == b->real_ns)
    return 0;
  int64_t ns = a->mono_ns && b->mono_ns ? b->mono_ns - a->mono_ns : b->real_ns - a->real_ns;
  return (double)ns / 1e9;
}

/* By how much the counter rose where it ran over its end, or -1: it did not. */
static int64_t measure_wrapped_rise(const struct ni_metric *m, uint64_t before, uint64_t after,
                                    double seconds, double most) {
  if (m->width == 0 || m->width > 63)
    return -1;
  uint64_t range = UINT64_C(1) << m->width, rise = after - before + range;
  if (before >= range || after >= range)
    return -1;
  if (rise > range / 2 || (double)rise > most * seconds)
    return -1;
  return (int64_t)rise;
}

struct ni_change ni_change_of(const struct ni_metric *m, const struct ni_reading *before,
                              const struct ni_reading *after, double link_bytes_s) {
  struct ni_change c = {0};
  if (before->state == NI_READ_UNREADABLE || after->state == NI_READ_UNREADABLE)
    c.state = NI_CHANGE_UNREADABLE;
  else if (before->state == NI_READ_MISSING)
    c.state = NI_CHANGE_NEW;
  else if (after->state == NI_READ_MISSING)
    c.state = NI_CHANGE_GONE;
  if (c.state)
    return c;
  c.seconds = measure_seconds(before, after);
  if (c.seconds <= 0) {
    c.seconds = 0;
    c.state = NI_CHANGE_STALE;
  } else if (m->kind == NI_METRIC_GAUGE) {
    c.delta = (int64_t)(after->value - before->value);
    c.state = c.delta ? NI_CHANGE_LEVEL : NI_CHANGE_NONE;
  } else if (m->kind == NI_METRIC_STICKY && after->value == (UINT64_C(1) << m->width) - 1) {
    c.state = NI_CHANGE_STUCK;
  } else if (after->value >= before->value && after->value - before->value <= INT64_MAX) {
    c.delta = (int64_t)(after->value - before->value);
    c.state = c.delta ? NI_CHANGE_CHANGED : NI_CHANGE_NONE;
  } else {
    int64_t rise =
        measure_wrapped_rise(m, before->value, after->value, c.seconds, limit_rate(m, link_bytes_s));
    c.state = rise < 0 ? NI_CHANGE_RESET : NI_CHANGE_CHANGED;
    c.wrapped = rise >= 0;
    c.delta = rise < 0 ? 0 : rise;
  }
  return c;
}
