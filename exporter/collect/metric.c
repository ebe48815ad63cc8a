#include "metric.h"

#include <ctype.h>

bool ni_metric_fits(const char *pattern, const char *name) {
  for (; *pattern; pattern++) {
    if (*pattern == '*') {
      do
        if (ni_metric_fits(pattern + 1, name)) return true;
      while (*name++);
      return false;
    }
    if (*pattern == '#') {
      if (!isdigit((unsigned char)*name)) return false;
      while (isdigit((unsigned char)*name)) name++;
    } else if (*pattern != *name++) {
      return false;
    }
  }
  return !*name;
}

static const struct kind {
  uint8_t source, kind, width;
  const char *pattern, *unit;
} kinds[] = {
#define KIND(source, pattern, kind, width, unit) {NI_METRIC_##source, NI_METRIC_##kind, width, pattern, unit},
#include "exporter/collect/metrics.def"
};

static const struct row {
  uint8_t source, scale;
  const char *pattern;
} scaled[] = {
#define SCALE(source, pattern, scale) {NI_METRIC_##source, scale, pattern},
#include "exporter/collect/metrics.def"
}, few[] = {
#define SHORT(source, pattern) {NI_METRIC_##source, 1, pattern},
#include "exporter/collect/metrics.def"
};

static const struct row *row_of(const struct row *r, size_t n, enum ni_metric_source source, const char *name) {
  for (; n; r++, n--)
    if (r->source == source && ni_metric_fits(r->pattern, name)) return r;
  return NULL;
}

bool ni_metric_short(enum ni_metric_source source, const char *name) {
  return row_of(few, sizeof few / sizeof *few, source, name) != NULL;
}

struct ni_metric ni_metric_of(enum ni_metric_source source, const char *name) {
  const struct row *s = row_of(scaled, sizeof scaled / sizeof *scaled, source, name);
  uint8_t scale = s ? s->scale : 1;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].source == source && ni_metric_fits(kinds[i].pattern, name))
      return (struct ni_metric){kinds[i].kind, kinds[i].width, scale, kinds[i].unit};
  return (struct ni_metric){NI_METRIC_COUNTER, 64, scale, ""};
}

enum {
#define GROUP(id, name) G_##id,
#include "exporter/collect/metrics.def"
};
static const char *const groups[] = {
#define GROUP(id, name) name,
#include "exporter/collect/metrics.def"
};
static const struct {
  uint8_t group;
  const char *pattern, *unit, *meaning;
} members[] = {
#define MEMBER(id, pattern, unit, meaning) {G_##id, pattern, unit, meaning},
#include "exporter/collect/metrics.def"
};

bool ni_metric_next_group(const char *name, size_t *at, struct ni_metric_member *out) {
  for (size_t i; (i = (*at)++) < sizeof members / sizeof *members;)
    if (ni_metric_fits(members[i].pattern, name)) {
      *out = (struct ni_metric_member){groups[members[i].group], members[i].unit, members[i].meaning};
      return true;
    }
  return false;
}

static const struct {
  uint32_t id;
  const char *name;
} important[] = {
#define IMPORTANT(id, name) {id, name},
#include "exporter/collect/metrics.def"
};

const char *ni_metric_important(size_t i, uint32_t *id) {
  if (i >= sizeof important / sizeof *important) return NULL;
  *id = important[i].id;
  return important[i].name;
}
