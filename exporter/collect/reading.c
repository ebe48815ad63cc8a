#include "reading.h"

#include <string.h>

#define MOST_PER_S 1.02e9 /* cycles of Cassini's clock, and a little; no NIC counts anything else as fast but bytes */
#define MOST_OF_LINK 1.05 /* octets of a link, with those that are not data */
#define LINK_BYTES_S 100e9 /* of a link nobody knows: 800 Gb/s */

/* The most that a counter can rise in a second. */
static double most_per_s(const struct ni_metric *m, double link_bytes_s) {
  if (strcmp(m->unit, "bytes") != 0) return MOST_PER_S;
  return MOST_OF_LINK * (link_bytes_s > 0 ? link_bytes_s : LINK_BYTES_S) / (m->scale ? m->scale : 1);
}

static double seconds_between(const struct ni_reading *a, const struct ni_reading *b) {
  if (a->real_ns && a->real_ns == b->real_ns) return 0; /* the same stamp, though the clock was set meanwhile */
  int64_t ns = a->mono_ns && b->mono_ns ? b->mono_ns - a->mono_ns : b->real_ns - a->real_ns;
  return (double)ns / 1e9;
}

/* By how much it rose over its end, or -1: it did not. */
static int64_t over_the_end(const struct ni_metric *m, uint64_t before, uint64_t after, double seconds, double most) {
  if (m->width == 0 || m->width > 63) return -1;
  uint64_t range = UINT64_C(1) << m->width, rise = after - before + range;
  if (before >= range || after >= range || rise > range / 2 || (double)rise > most * seconds) return -1;
  return (int64_t)rise;
}

struct ni_change ni_change_of(const struct ni_metric *m, const struct ni_reading *before, const struct ni_reading *after,
                              double link_bytes_s) {
  struct ni_change c = {0};
  if (before->state == NI_READ_UNREADABLE || after->state == NI_READ_UNREADABLE) c.state = NI_CHANGE_UNREADABLE;
  else if (before->state == NI_READ_MISSING) c.state = NI_CHANGE_NEW;
  else if (after->state == NI_READ_MISSING) c.state = NI_CHANGE_GONE;
  if (c.state) return c;
  c.seconds = seconds_between(before, after);
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
    int64_t rise = over_the_end(m, before->value, after->value, c.seconds, most_per_s(m, link_bytes_s));
    c.state = rise < 0 ? NI_CHANGE_RESET : NI_CHANGE_CHANGED;
    c.wrapped = rise >= 0;
    c.delta = rise < 0 ? 0 : rise;
  }
  return c;
}
