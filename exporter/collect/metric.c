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

static const struct {
  uint8_t source, scale;
  const char *pattern;
} scaled[] = {
#define SCALE(source, pattern, scale) {NI_METRIC_##source, scale, pattern},
#include "exporter/collect/metrics.def"
};

static const struct {
  uint8_t source;
  const char *const *pattern; /* NULL-terminated */
} few[] = {
#define SHORT(source, ...) {NI_METRIC_##source, (const char *const[]){__VA_ARGS__, NULL}},
#include "exporter/collect/metrics.def"
};

static const struct {
  uint8_t source;
  const char *pattern, *name;
} unified[] = {
#define UNIFIED(source, pattern, name) {NI_METRIC_##source, pattern, name},
#include "exporter/collect/metrics.def"
};

bool ni_metric_fits_any(const char *const *pattern, const char *name) {
  while (*pattern && !ni_metric_fits(*pattern, name)) pattern++;
  return *pattern != NULL;
}

bool ni_metric_short(enum ni_metric_source source, const char *name) {
  for (size_t i = 0; i < sizeof few / sizeof *few; i++)
    if (few[i].source == source && ni_metric_fits_any(few[i].pattern, name)) return true;
  return false;
}

const char *ni_metric_unified(enum ni_metric_source source, const char *name) {
  for (size_t i = 0; i < sizeof unified / sizeof *unified; i++)
    if (unified[i].source == source && ni_metric_fits(unified[i].pattern, name)) return unified[i].name;
  return NULL;
}

struct ni_metric ni_metric_of(enum ni_metric_source source, const char *name) {
  uint8_t scale = 1;
  for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++)
    if (scaled[i].source == source && ni_metric_fits(scaled[i].pattern, name)) scale = scaled[i].scale;
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

const char *ni_metric_group(size_t i) { return i < sizeof groups / sizeof *groups ? groups[i] : NULL; }

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
