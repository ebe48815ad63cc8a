#include "verdict.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"

enum kind {
  T_ALWAYS,
  T_RISE,
  T_FALL,
  T_PER_S,
  T_TIME,
  T_RATIO,
  T_LEVEL,
  T_BITS,
  T_LOW,
  T_ODD,
  T_LINK,
  T_QUIET,
  T_LONE,
  T_STUCK,
  T_WHOLE, /* from here on: of the entity, not of a counter */
  T_GONE = T_WHOLE,
  T_NEW,
  T_RELOADED,
  T_RESETS,
  T_WARNED,
  T_SLOW_LINK,
  T_DOWN,
  T_OFF
};

struct test {
  uint8_t kind;
  uint8_t source; /* QUIET */
  double limit;
  double per;     /* TIME: counts of a second; LOW: counts of a byte of link */
  const char *of; /* patterns: RATIO, QUIET, LONE */
};

#define NI_METRIC_ANY NI_METRIC_SOURCES
#define RISE(n) {T_RISE, 0, n, 0, NULL}
#define FALL(n) {T_FALL, 0, n, 0, NULL}
#define PER_S(x) {T_PER_S, 0, x, 0, NULL}
#define TIME_NS(x) {T_TIME, 0, x, 1e9, NULL}
#define TIME_US(x) {T_TIME, 0, x, 1e6, NULL}
#define RATIO(x, of) {T_RATIO, 0, x, 0, of}
#define LEVEL(x) {T_LEVEL, 0, x, 0, NULL}
#define BITS(x) {T_BITS, 0, x, 0, NULL}
#define LOW(x, y) {T_LOW, 0, x, y, NULL}
#define ODD(x) {T_ODD, 0, x, 0, NULL}
#define LINK(x) {T_LINK, 0, x, 0, NULL}
#define QUIET(source, of) {T_QUIET, NI_METRIC_##source, 0, 0, of}
#define LONE(of) {T_LONE, 0, 0.5, 0, of}
#define STUCK {T_STUCK, 0, 0, 0, NULL}
#define ALWAYS {T_ALWAYS, 0, 0, 0, NULL}
#define GONE {T_GONE, 0, 0, 0, NULL}
#define NEW {T_NEW, 0, 0, 0, NULL}
#define RELOADED {T_RELOADED, 0, 0, 0, NULL}
#define RESETS {T_RESETS, 0, 0, 0, NULL}
#define WARNED {T_WARNED, 0, 0, 0, NULL}
#define SLOW_LINK {T_SLOW_LINK, 0, 0, 0, NULL}
#define DOWN {T_DOWN, 0, 0, 0, NULL}
#define OFF {T_OFF, 0, 0, 0, NULL}

static const struct rule {
  uint8_t level, source;
  const char *id, *counters;
  struct test first, second;
  const char *says, *advice;
} rules[] = {
#define RULE(level, id, source, counters, first, second, says, advice) \
  {NI_LEVEL_##level, NI_METRIC_##source, id, counters, first, second, says, advice},
#include "rules.def"
};

const char *ni_level_name(unsigned level) {
  static const char *const names[] = {"info", "warning", "critical"};
  return level < sizeof names / sizeof *names ? names[level] : "";
}

/*
 * Does the name match one of the patterns, which blanks separate? A '#' in them stands for `index`, if there
 * is one.
 */
static bool matches_patterns(const char *patterns, const char *index, const char *name) {
  char one[128];
  for (const char *p = patterns; *p; p += *p == ' ') {
    size_t n = 0;
    for (; *p && *p != ' '; p++) {
      size_t more = *p == '#' && index ? strspn(index, "0123456789") : 1;
      if (n + more >= sizeof one)
        return false; /* no name is as long as that */
      memcpy(one + n, *p == '#' && index ? index : p, more);
      n += more;
    }
    one[n] = 0;
    if (ni_metric_fits(one, name))
      return true;
  }
  return false;
}

/* By how much it rose. A counter that reached its maximum rose at least to there. */
static double rise_of(const struct ni_pair_row *r) {
  if (r->change.state == NI_CHANGE_STUCK)
    return (double)r->after.value - (double)r->before.value;
  return (double)r->change.delta;
}

/* The last number in a name, which '#' stands for. NULL: it has none. */
static const char *find_index_in(const char *name) {
  const char *at = name + strlen(name);
  while (at > name && !isdigit((unsigned char)at[-1]))
    at--;
  if (at == name)
    return NULL;
  while (at > name && isdigit((unsigned char)at[-1]))
    at--;
  return at;
}

static double ratio_to_counter(const struct ni_pair *p, const struct ni_pair_entity *e,
                               const struct ni_pair_row *r, const char *of) {
  const char *index = find_index_in(r->name);
  double sum = 0;
  for (uint32_t i = e->first; i < e->first + e->n; i++)
    if (rise_of(&p->row[i]) != 0 && matches_patterns(of, index, p->row[i].name))
      sum += rise_of(&p->row[i]);
  return sum > 0 ? rise_of(r) / sum : 0;
}

/*
 * The fastest rate of that counter on other entities of the same source. same_speed: of the same link speed
 * only.
 */
static double find_fastest_peer(const struct ni_pair *p, uint32_t self, const struct ni_pair_row *own,
                                bool same_speed, unsigned *others) {
  double best = 0, speed = p->entity[self].of->link_bytes_s;
  *others = 0;
  for (uint32_t i = 0; i < p->n_entities; i++) {
    const struct ni_entity *e = p->entity[i].of;
    const struct ni_pair_row *r;
    const bool has_other_speed = same_speed && fabs(e->link_bytes_s - speed) > 0;
    if (i == self || e->source != p->entity[self].of->source || has_other_speed)
      continue;
    if (!(r = ni_pair_row(p, i, own->name)))
      continue;
    ++*others;
    best = fmax(best, ni_change_rate(&r->change));
  }
  return best;
}

static double find_expected_value(const struct ni_pair *p, uint32_t self, const struct ni_pair_row *r,
                                  const struct test *t) {
  unsigned others;
  return fmax(find_fastest_peer(p, self, r, true, &others), p->entity[self].of->link_bytes_s * t->per);
}

/* Are these functions of one device? If an address is not known, they count as such. */
static bool is_same_device(const struct ni_entity *a, const struct ni_entity *b) {
  if (!a->pci || !b->pci)
    return true;
  size_t n = strcspn(a->pci, ".");
  return n == strcspn(b->pci, ".") && memcmp(a->pci, b->pci, n) == 0;
}

static bool is_device_quiet(const struct ni_pair *p, uint32_t self, const struct test *t) {
  bool there = false;
  NI_EACH(const struct ni_pair_row, r, p->row, p->n_rows) {
    const struct ni_entity *e = p->entity[r->entity].of;
    if (e->source != t->source || !is_same_device(e, p->entity[self].of) ||
        !matches_patterns(t->of, NULL, r->name))
      continue;
    if (r->change.state != NI_CHANGE_NONE)
      return false;
    there = true;
  }
  return there;
}

static bool is_lone_entity(const struct ni_pair *p, uint32_t self, const struct ni_pair_row *r,
                           const struct test *t) {
  double all = 0;
  bool elsewhere = false;
  NI_EACH(const struct ni_pair_row, o, p->row, p->n_rows) {
    if (p->entity[o->entity].of->source != p->entity[self].of->source)
      continue;
    if (strcmp(o->name, r->name) == 0)
      all += rise_of(o);
    if (o->entity != self && rise_of(o) > 0 && matches_patterns(t->of, NULL, o->name))
      elsewhere = true;
  }
  return elsewhere && rise_of(r) > t->limit * all;
}

/*
 * How far a counter is beyond the limit of the test, as a multiple of it. It passes from 1 on for RISE, FALL
 * and LEVEL, above 1 for the others. Less than 1: it does not.
 */
static double measure_against_limit(const struct ni_pair *p, uint32_t self, const struct ni_pair_row *r,
                                    const struct test *t) {
  const struct ni_pair_entity *e = &p->entity[self];
  const double seconds = r->change.seconds, per_s = seconds > 0 ? rise_of(r) / seconds : 0;
  double v, limit = t->limit;
  unsigned others;
  switch (t->kind) {
    case T_ALWAYS:
      return 1;
    case T_RISE:
      return rise_of(r) / limit;
    case T_FALL:
      return -rise_of(r) / limit;
    case T_LEVEL:
      return r->after.state == NI_READ_OK ? (double)(int64_t)r->after.value / limit : 0;
    case T_BITS:
      return r->after.state == NI_READ_OK && r->after.value & (uint64_t)limit ? 1 : 0;
    case T_STUCK:
      return r->change.state == NI_CHANGE_STUCK ? 1 : 0;
    case T_QUIET:
      return is_device_quiet(p, self, t) ? 1 : 0;
    case T_LONE:
      return is_lone_entity(p, self, r, t) ? 1 : 0;
    case T_PER_S:
      v = per_s;
      break;
    case T_TIME:
      v = per_s / t->per;
      break;
    case T_RATIO:
      v = ratio_to_counter(p, e, r, t->of);
      break;
    case T_LINK:
      v = ni_pair_share(p, r);
      break;
    case T_ODD:
      v = per_s;
      limit *= find_fastest_peer(p, self, r, false, &others);
      if (others < 2)
        return 0;
      break;
    case T_LOW:
      if (seconds <= 0 || (r->change.state != NI_CHANGE_CHANGED && r->change.state != NI_CHANGE_NONE))
        return 0;
      v = find_expected_value(p, self, r, t) * limit;
      limit = per_s;
      break;
    default:
      return 0;
  }
  return v > limit ? fmin(limit > 0 ? v / limit : HUGE_VAL, 1e300) : 0;
}

/* A device has several entities, each with its warning. Only the first one says it. */
static bool is_told_of_device(const struct ni_pair *p, const struct ni_pair_entity *e) {
  for (const struct ni_pair_entity *o = p->entity; o < e; o++) {
    const bool is_same_device = o->of->pci && e->of->pci && strcmp(o->of->pci, e->of->pci) == 0;
    if (is_same_device && o->in_after && o->of->warning)
      return true;
  }
  return false;
}

/* The end of "ACTIVE, 400 Gb/sec (4X NDR), InfiniBand", which is all that sweeps of older versions have. */
static const char *link_layer(const struct ni_entity *e) {
  const char *comma = e->link ? strrchr(e->link, ',') : NULL;
  return comma ? comma : "";
}

/* Should the two behave alike? */
static bool is_same_kind(const struct ni_entity *a, const struct ni_entity *b) {
  if (a->source != b->source || !a->kind != !b->kind)
    return false;
  if (a->kind)
    return strcmp(a->kind, b->kind) == 0;
  return a->source != NI_METRIC_IB || strcmp(link_layer(a), link_layer(b)) == 0;
}

/*
 * How many of n entities of a kind may be odd. If there are more, they are a kind of their own, and we do not
 * know what sets it apart.
 */
static size_t max_odd_ones(size_t n) { return n < 16 ? 1 : n / 8; }

/* Do most of its kind have the same speed, and it has less? */
static bool is_slower_than_its_kind(const struct ni_pair *p, const struct ni_pair_entity *e) {
  const double speed = e->of->link_bytes_s;
  double common = 0;
  size_t n = 0, n_common = 0, slower = 0;
  if (speed <= 0)
    return false;
  NI_EACH(const struct ni_pair_entity, o, p->entity, p->n_entities) {
    if (!o->in_after || o->of->link_bytes_s <= 0 || !is_same_kind(o->of, e->of))
      continue;
    /* The speed of more than half of them is left over, whatever the order. */
    if (!n_common)
      common = o->of->link_bytes_s;
    if (o->of->link_bytes_s < common || o->of->link_bytes_s > common)
      n_common--;
    else
      n_common++;
    n++;
  }
  n_common = 0;
  NI_EACH(const struct ni_pair_entity, o, p->entity, p->n_entities) {
    if (!o->in_after || o->of->link_bytes_s <= 0 || !is_same_kind(o->of, e->of))
      continue;
    slower += o->of->link_bytes_s < common;
    n_common += o->of->link_bytes_s <= common && o->of->link_bytes_s >= common;
  }
  return n >= 3 && 2 * n_common > n && speed < common && slower <= max_odd_ones(n);
}

/* Is its link down, while the links of nearly all of its kind are up? */
static bool is_down_alone(const struct ni_pair *p, const struct ni_pair_entity *e) {
  size_t up = 0, down = 0;
  NI_EACH(const struct ni_pair_entity, o, p->entity, p->n_entities) {
    if (!o->in_after || o->of->state == NI_LINK_UNKNOWN || !is_same_kind(o->of, e->of))
      continue;
    if (o->of->state == NI_LINK_UP)
      up++;
    else
      down++;
  }
  return up + down >= 3 && up > down && down <= max_odd_ones(up + down);
}

static bool judge_whole_entity(const struct ni_pair *p, const struct ni_pair_entity *e, unsigned kind) {
  switch (kind) {
    case T_GONE:
      return e->in_before && !e->in_after;
    case T_NEW:
      return e->in_after && !e->in_before;
    case T_RELOADED:
      return e->reloaded;
    case T_RESETS:
      return e->resets && !e->reloaded;
    case T_WARNED:
      return e->in_after && e->of->warning && !is_told_of_device(p, e);
    case T_SLOW_LINK:
      return e->in_after && is_slower_than_its_kind(p, e);
    case T_DOWN:
      return e->in_after && e->of->state == NI_LINK_DOWN && is_down_alone(p, e);
    case T_OFF:
      return e->in_after && e->of->state == NI_LINK_OFF && is_down_alone(p, e);
    default:
      return false;
  }
}

static const char *format_per_second(double rate, char out[32]) {
  if (rate >= 1000)
    ni_count_text((int64_t)fmin(rate, 9e18), out);
  else
    snprintf(out, 32, "%.3g", rate);
  return out;
}

/* Patterns as a sum: "pct_req_ordered + pct_req_unordered". */
static void print_names(FILE *out, const char *patterns, const char *index) {
  for (const char *p = patterns; *p; p++)
    if (*p == ' ')
      ni_say(out, " + ");
    else if (*p == '#' && index)
      ni_say(out, "%.*s", (int)strspn(index, "0123456789"), index);
    else
      ni_say(out, "%c", *p);
}

/* ": hni_tx_paused_1 rose by 3,000,000,000 in 10.0 s (300,000,000 a second, 30.0 % of the time)" */
static void print_figures(FILE *out, const struct ni_pair *p, uint32_t self, const struct ni_pair_row *r,
                          const struct rule *rule) {
  const struct test *t = &rule->first;
  char a[32], b[32], c[32];
  ni_count_text((int64_t)r->after.value, a);
  if (t->kind == T_BITS)
    ni_say(out, ": %s stands at 0x%llx", r->name, (unsigned long long)r->after.value);
  else if (r->change.state == NI_CHANGE_STUCK)
    ni_say(out, ": %s stands at %s, as far as it counts", r->name, a);
  else if (t->kind == T_LEVEL || r->change.state == NI_CHANGE_NONE)
    ni_say(out, ": %s stands at %s", r->name, a);
  else if (r->what.kind == NI_METRIC_GAUGE)
    ni_say(out, ": %s stands at %s, and was %s", r->name, a, ni_count_text((int64_t)r->before.value, b));
  const bool is_of_a_moment = t->kind == T_LEVEL || t->kind == T_BITS;
  if (t->kind != T_LOW && (is_of_a_moment || r->change.state != NI_CHANGE_CHANGED))
    return;
  double seconds = r->change.seconds, per_s = seconds > 0 ? rise_of(r) / seconds : 0;
  if (r->change.state == NI_CHANGE_CHANGED)
    ni_say(out, ": %s rose by %s%s%s in %s", r->name, ni_count_text(r->change.delta, a),
           *r->what.unit ? " " : "", r->what.unit, ni_duration_text(seconds * 1e6, b));
  ni_say(out, " (%s a second", format_per_second(per_s, c));
  if (t->kind == T_LOW)
    ni_say(out, ", of %s that its link makes", format_per_second(find_expected_value(p, self, r, t), c));
  const struct test *time = t->kind == T_TIME ? t : rule->second.kind == T_TIME ? &rule->second : NULL;
  if (time)
    ni_say(out, ", %.1f %% of the time", 100 * per_s / time->per);
  if (t->kind == T_LINK)
    ni_say(out, ", %.0f %% of its link", 100 * ni_pair_share(p, r));
  if (t->kind == T_RATIO) {
    double v = ratio_to_counter(p, &p->entity[self], r, t->of);
    if (t->limit >= 1)
      ni_say(out, ", %.3g for each of ", v);
    else
      ni_say(out, ", %.3g %% of ", 100 * v);
    print_names(out, t->of, find_index_in(r->name));
  }
  ni_say(out, ")");
}

static char *make_sentence(const struct ni_pair *p, uint32_t self, const struct ni_pair_row *r,
                           const struct rule *rule) {
  const struct ni_pair_entity *e = &p->entity[self];
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  if (!out)
    return NULL;
  ni_say(out, "%s %s", e->of->name, rule->says);
  if (r)
    print_figures(out, p, self, r, rule);
  else if (rule->first.kind == T_WARNED || (rule->first.kind >= T_SLOW_LINK && e->of->link))
    ni_say(out, ": %s", rule->first.kind == T_WARNED ? e->of->warning : e->of->link);
  else if (rule->first.kind == T_RESETS)
    ni_say(out, ": %u of its %u", (unsigned)e->resets, (unsigned)e->n);
  ni_say(out, ".");
  if (fclose(out) == 0)
    return text;
  free(text);
  return NULL;
}

static bool add_finding(struct ni_counter_findings *f, const struct ni_pair *p, uint32_t self,
                        const struct ni_pair_row *r, const struct rule *rule, double badness) {
  if (!ni_array_room(f->finding, f->n, f->cap))
    return false;
  struct ni_counter_finding *x = &f->finding[f->n];
  *x = (struct ni_counter_finding){.level = rule->level,
                                   .rule = (uint16_t)(rule - rules),
                                   .of = self,
                                   .id = rule->id,
                                   .entity = p->entity[self].of->name,
                                   .row = r,
                                   .share = NAN,
                                   .badness = badness,
                                   .text = make_sentence(p, self, r, rule),
                                   .advice = rule->advice};
  if (!x->text)
    return false;
  if (r) {
    x->delta = r->change.delta;
    x->rate = ni_pair_rate(r);
    x->share =
        rule->first.kind == T_TIME ? ni_change_rate(&r->change) / rule->first.per : ni_pair_share(p, r);
  }
  f->n++;
  f->n_faults += rule->level > NI_LEVEL_INFO;
  return true;
}

/* Most rules concern only what changed. */
static bool is_worth_testing(const struct ni_pair_row *r, const struct rule *rule) {
  switch (rule->first.kind) {
    case T_LEVEL:
    case T_BITS:
    case T_LOW:
      return true;
    case T_STUCK:
      return r->change.state == NI_CHANGE_STUCK;
    default:
      return rise_of(r) < 0 || rise_of(r) > 0;
  }
}

static bool judge_row(struct ni_counter_findings *f, const struct ni_pair *p, uint32_t self, bool *told) {
  const struct ni_pair_entity *e = &p->entity[self];
  unsigned said = 0; /* of the whole, a bit a kind */
  for (const struct rule *rule = rules; rule < rules + sizeof rules / sizeof *rules; rule++) {
    if (rule->source != NI_METRIC_ANY && rule->source != e->of->source)
      continue;
    if (rule->first.kind >= T_WHOLE) {
      unsigned bit = 1u << rule->first.kind;
      if (said & bit || !judge_whole_entity(p, e, rule->first.kind))
        continue;
      said |= bit;
      if (!add_finding(f, p, self, NULL, rule, 1))
        return false;
      continue;
    }
    if (e->reloaded)
      continue; /* what its counters show is not this interval's */
    const struct ni_pair_row *worst = NULL;
    double most = 0;
    for (uint32_t i = e->first; i < e->first + e->n; i++) {
      const struct ni_pair_row *r = &p->row[i];
      if (told[i] || !is_worth_testing(r, rule) || !matches_patterns(rule->counters, NULL, r->name))
        continue;
      double v = measure_against_limit(p, self, r, &rule->first);
      if (v >= 1 && v > most && measure_against_limit(p, self, r, &rule->second) >= 1) {
        worst = r;
        most = v;
      }
    }
    if (!worst)
      continue;
    for (uint32_t i = e->first; i < e->first + e->n; i++)
      if (matches_patterns(rule->counters, NULL, p->row[i].name))
        told[i] = true;
    if (!add_finding(f, p, self, worst, rule, most))
      return false;
  }
  return true;
}

static int by_badness(const void *a, const void *b) {
  const struct ni_counter_finding *x = a, *y = b;
  if (x->level != y->level)
    return x->level > y->level ? -1 : 1;
  if (x->rule != y->rule)
    return x->rule < y->rule ? -1 : 1;
  if (x->badness > y->badness || x->badness < y->badness)
    return x->badness > y->badness ? -1 : 1;
  return x->of < y->of ? -1 : x->of > y->of;
}

/*
 * A note that is no fault is made once, for the entity where there is most of it. Without memory, it is made
 * for that entity alone.
 */
static void fold_notes(struct ni_counter_findings *f) {
  size_t kept = f->n_faults;
  for (size_t i = kept, same; i < f->n; i += same) {
    struct ni_counter_finding *x = &f->finding[kept++];
    *x = f->finding[i];
    for (same = 1; i + same < f->n && f->finding[i + same].rule == x->rule; same++)
      free(f->finding[i + same].text);
    char *text = NULL;
    if (same > 1 &&
        asprintf(&text, "%s The same of %zu %s.", x->text, same - 1,
                 ni_plural(same - 1, "other", "others")) >= 0) {
      free(x->text);
      x->text = text;
    }
  }
  f->n = kept;
}

int ni_counter_findings_make(struct ni_counter_findings *out, const struct ni_pair *p) {
  *out = (struct ni_counter_findings){0};
  bool *told = calloc(p->n_rows + 1, sizeof *told), ok = told != NULL;
  for (uint32_t i = 0; ok && i < p->n_entities; i++)
    ok = judge_row(out, p, i, told);
  free(told);
  if (!ok) {
    ni_counter_findings_free(out);
    return -ENOMEM;
  }
  if (out->n)
    qsort(out->finding, out->n, sizeof *out->finding, by_badness);
  fold_notes(out);
  return 0;
}

void ni_counter_findings_free(struct ni_counter_findings *f) {
  for (size_t i = 0; i < f->n; i++)
    free(f->finding[i].text);
  free(f->finding);
  *f = (struct ni_counter_findings){0};
}
