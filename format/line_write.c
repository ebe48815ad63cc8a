/*
 * Each object of lines.def becomes a function of straight code here: constant texts and the primitives of
 * json_text.h, always forwards. Room is asked for once at the start of a line, for the worst case, so that
 * nothing inside needs to look at a bound; the worst case of an object is added up from its keys (name_MAX).
 */
#include "line_write.h"

#include <errno.h>
#include <stdlib.h>

#include "json_text.h"

#define LIT NI_JSON_LIT
#define CUT_MAX(bytes) (6 * (bytes) + 8) /* worst case of put_cut */
#define WORD_BYTES 256                   /* of a word that is taken over */
#define NAME_BYTES 48                    /* of the names of causes and variables, which are ours */
#define METRIC_BYTES 64                  /* of a metric's name, kind and unit */

/* What IF() of lines.def asks: which form a line of its kind has. */
enum { NI_FORM_OP, NI_FORM_STEP };                                          /* proxy_trace */
enum { NI_FORM_coll = 1, NI_FORM_p2p = 2, NI_FORM_sn = 4, NI_FORM_us = 8 }; /* traces */

static unsigned ni_proxy_form(const struct ni_proxy_line *in) {
  return strcmp(in->record_type, NI_PROXY_STEP) == 0 ? NI_FORM_STEP : NI_FORM_OP;
}

/* ---- values ---- */

/* A text of at most bytes - 1; what is longer is cut. */
static char *put_cut(char *p, const char *s, size_t bytes) {
  char cut[WORD_BYTES];
  if (!s)
    return LIT(p, "null");
  size_t n = strnlen(s, bytes - 1);
  memcpy(cut, s, n);
  cut[n] = 0;
  return ni_json_string(p, cut);
}

static char *put_hash(char *p, uint64_t v) {
  *p++ = '"';
  p = ni_json_hex(p, v);
  *p++ = '"';
  return p;
}

/* Exactly the ns that the us were made of (below 2^52), with three decimals. */
static char *put_us(char *p, double us) {
  if (!(us >= 0 && us < 4e12))
    return ni_json_fixed(p, us, 3);
  uint64_t ns = (uint64_t)(us * 1000 + 0.5);
  p = ni_json_put_u64(p, ns / 1000);
  unsigned r = (unsigned)(ns % 1000);
  *p++ = '.';
  *p++ = (char)('0' + r / 100);
  *p++ = (char)('0' + r / 10 % 10);
  *p++ = (char)('0' + r % 10);
  return p;
}

/* {"cause":n,...} */
static char *put_by(char *p, const struct ni_by *by) {
  *p++ = '{';
  for (uint32_t i = 0; i < by->n && i < NI_BY_MAX; i++) {
    if (i)
      *p++ = ',';
    p = put_cut(p, by->item[i].name, NAME_BYTES);
    *p++ = ':';
    p = ni_json_put_u64(p, by->item[i].count);
  }
  *p++ = '}';
  return p;
}

static char *put_hist(char *p, const uint64_t *hist) {
  bool first = true;
  *p++ = '{';
  for (uint32_t i = 0; i < NI_HIST_BUCKETS; i++) {
    if (!hist[i])
      continue;
    if (!first)
      *p++ = ',';
    first = false;
    *p++ = '"';
    p = ni_json_put_u64(p, ni_hist_edge(i));
    p = LIT(p, "\":");
    p = ni_json_put_u64(p, hist[i]);
  }
  *p++ = '}';
  return p;
}

static char *put_numbers(char *p, const struct ni_numbers *in) {
  *p++ = '[';
  for (uint64_t i = 0; i < in->n && i < NI_NUMBERS_A_LINE; i++) {
    if (i)
      *p++ = ',';
    p = in->list[i] == NI_NO_NUMBER ? LIT(p, "null") : ni_json_put_i64(p, in->list[i]);
  }
  *p++ = ']';
  return p;
}

static char *put_pairs(char *p, const struct ni_pairs *in) {
  size_t n = in->text ? strnlen(in->text, NI_PAIRS_TEXT_BYTES) : 0;
  if (n && n < NI_PAIRS_TEXT_BYTES) {
    memcpy(p, in->text, n);
    return p + n;
  }
  *p++ = '{';
  for (uint32_t i = 0; i < in->n && i < NI_PAIRS_WRITTEN; i++) {
    if (i)
      *p++ = ',';
    p = put_cut(p, in->item[i].key, NAME_BYTES);
    *p++ = ':';
    p = put_cut(p, in->item[i].value, NI_PAIR_VALUE_BYTES);
  }
  *p++ = '}';
  return p;
}

/*
 * Numbers that NCCL's side hands over may be anything: what the format has no room for is its largest
 * (docs/format.md).
 */
static inline uint64_t in_range(uint64_t v) { return v > INT64_MAX ? INT64_MAX : v; }
static inline int32_t rank_in_range(int32_t v) { return v < -1 ? -1 : v; }
static inline char *i64_or_null(char *p, int64_t v, bool known) {
  return known ? ni_json_put_i64(p, v) : LIT(p, "null");
}

/* ---- the worst case of each object ---- */

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
enum {
  U64_MAX = 20,
  SN_MAX = 20,
  U32_MAX = 20,
  I64_MAX = 20,
  NS_MAX = 20,
  OFFSET_MAX = 20,
  RANK_MAX = 20,
  RANKN_MAX = 20,
  I32_MAX = 20,
  I32N_MAX = 20,
  BOOL_MAX = 5,
  HASH_MAX = 20,
  US_MAX = 32,
  F64_MAX = 32,
  BW_MAX = 32,
  STR_MAX = NI_JSON_STRING_MAX_BYTES,
  WORD_MAX = CUT_MAX(WORD_BYTES),
  NAMED_MAX = CUT_MAX(METRIC_BYTES),
  TIMING_MAX = 24,
  SRC_MAX = 24,
  OBSERVED_MAX = 24,
  BY_MAX = NI_BY_MAX * (CUT_MAX(NAME_BYTES) + 24),
  HIST_MAX = NI_HIST_BUCKETS * 46,
  NUMBERS_MAX = (int)NI_NUMBERS_A_LINE * 21 + 2,
  PAIRS_MAX =
      LARGER(NI_PAIRS_TEXT_BYTES, NI_PAIRS_WRITTEN *(CUT_MAX(NAME_BYTES) + CUT_MAX(NI_PAIR_VALUE_BYTES) + 2)),
};
/*
 * A list of a trace has one half of the keys that the trace and its channels have in both, and the channel.
 */
#define OBJECT_WORST(name) name##_WORST
#define EVENTS_WORST(name) (NI_TRACE_MAX * name##_WORST)
#define STEPS_WORST(name) 0 /* never written */
#define METRICS_WORST(name) ((int)NI_METRICS_A_LINE * name##_WORST)
#define TRACE_SN_WORST(name) (name##_WORST * 5 / 8)
#define TRACE_TS_WORST(name) (name##_WORST * 5 / 8)

#define OBJECT(name, ...) enum { name##_WORST = 2
#define PART(name, tag) enum { name##_WORST = 2
#define KEY(key, type, ...) +(int)sizeof(key) + 3 + type##_MAX
#define AGAIN(key, type, ...) +(int)sizeof(key) + 3 + type##_MAX
#define OBJ(key, how, name, ...) +(int)sizeof(key) + 3 + how##_WORST(name)
#define STAMP(key, ...) +(int)sizeof(key) + 3
#define END(name) \
  } \
  ;
#include "lines.def"

#define PREFIX_WORST (header_WORST + metadata_WORST + 32)
#define FITS(key, object) \
  _Static_assert(PREFIX_WORST + 20 + object##_WORST + (int)sizeof(key) + 8 <= NI_LINE_MAX_BYTES, key " fits");
#define OPERATION(key, name, flags) FITS(key, name)
#define KIND(key, name, tag, member, object, form, kind) FITS(key, object)
#include "lines.def"

/* ---- the objects ---- */

#define AT(key) LIT(p, ",\"" key "\":")
#define PUT_U64(key, v) ni_json_put_u64(AT(key), in_range(v))
#define PUT_U32(key, v) ni_json_put_u64(AT(key), (v))
#define PUT_I64(key, v) ni_json_put_i64(AT(key), (v))
#define PUT_I32(key, v) ni_json_put_i64(AT(key), (v))
#define PUT_RANK(key, v) ni_json_put_i64(AT(key), rank_in_range(v))
#define PUT_SN(key, v) ((v) > INT64_MAX ? LIT(AT(key), "null") : ni_json_put_u64(AT(key), (v)))
#define PUT_NS(key, v) i64_or_null(AT(key), (v), (v) >= 0)
#define PUT_I32N(key, v) i64_or_null(AT(key), (v), (v) >= 0)
#define PUT_RANKN(key, v) i64_or_null(AT(key), (v), (v) >= 0)
#define PUT_OFFSET(key, v) i64_or_null(AT(key), (v), (v) != NI_NO_OFFSET)
#define PUT_BOOL(key, v) ((v) ? LIT(AT(key), "true") : LIT(AT(key), "false"))
#define PUT_HASH(key, v) put_hash(AT(key), (v))
#define PUT_STR(key, v) ni_json_string(AT(key), (v))
#define PUT_WORD(key, v) put_cut(AT(key), (v), WORD_BYTES)
#define PUT_NAMED(key, v) put_cut(AT(key), (v), METRIC_BYTES)
#define PUT_TIMING(key, v) ni_json_string(AT(key), ni_timing_names[(v) < NI_TIMING_COUNT ? (v) : 0])
#define PUT_SRC(key, v) ni_json_string(AT(key), ni_src_names[(v) < NI_SRC_COUNT ? (v) : 0])
#define PUT_OBSERVED(key, v) LIT(p, ",\"" key "\":\"" NI_OBSERVED "\"")
#define PUT_US(key, v) put_us(AT(key), (v))
#define PUT_F64(key, v) ni_json_fixed(AT(key), (v), 12)
#define PUT_BW(key, v) (known ? ni_json_fixed(AT(key), (v), 6) : LIT(AT(key), "null"))
#define PUT_BY(key, v) put_by(AT(key), &(v))
#define PUT_HIST(key, v) put_hist(AT(key), (v))
#define PUT_PAIRS(key, v) put_pairs(AT(key), &(v))
#define PUT_NUMBERS(key, v) put_numbers(AT(key), &(v))

#define PUT_LIST(key, name, list, count) \
  p = LIT(p, ",\"" key "\":["); \
  for (uint64_t i = 0; i < (count); i++) { \
    if (i) \
      *p++ = ','; \
    p = put_##name(p, &(list)[i], form); \
  } \
  *p++ = ']'
#define PUT_OBJECT(key, name, member) p = put_##name(AT(key), &in->member, form)
#define PUT_EVENTS(key, name, member) PUT_LIST(key, name, in->member, in->n)
#define PUT_STEPS(key, name, member) (void)put_##name /* never written */
#define PUT_METRICS(key, name, member) \
  PUT_LIST(key, name, in->member.list, in->member.n < NI_METRICS_A_LINE ? in->member.n : NI_METRICS_A_LINE)
#define TRACE_FORM (in->kind == NI_KIND_P2P ? NI_FORM_p2p : NI_FORM_coll)
#define PUT_TRACE_SN(key, name, member) p = put_##name(AT(key), in->member, TRACE_FORM | NI_FORM_sn)
#define PUT_TRACE_TS(key, name, member) p = put_##name(AT(key), in->member, TRACE_FORM | NI_FORM_us)

/* Keys come with a comma before them; that of the first one is in the brace's place. */
#define BEGIN(name, tag) \
  static char *put_##name(char *p, const struct tag *in, unsigned form) { \
    char *start = p; \
    const bool opens = true; \
    bool known = true; \
    (void)form; \
    (void)known; \
    (void)opens;
#define OBJECT(name, tag, ...) BEGIN(name, tag)
#define PART(name, tag) BEGIN(name, tag)
#define KEY(key, type, member, read, when, unit, present, meaning) \
  if (when) \
    p = PUT_##type(key, in->member);
#define AGAIN(key, type, member, when) \
  if (when) \
    p = PUT_##type(key, in->member);
#define OBJ(key, how, name, member, has, when, present, meaning) \
  if (when) { \
    PUT_##how(key, name, member); \
  }
#define ALWAYS true
#define NEVER false
#define IF(condition) (condition)
#define HAS(x) (in->has & NI_HAS_##x)
#define KNOWN(x) ((known = (in->has & NI_HAS_##x) != 0), true)
/* The prefix is cut in two where the time goes: the rest of the object is a function of its own. */
#define STAMP(key, name, tag, ...) \
  p = AT(key); \
  *start = '{'; \
  return p; \
  } \
  static char *put_##name##_rest(char *p, const struct tag *in) { \
    char *start = p; \
    const bool opens = false;
#define END(name) \
  if (opens) { \
    p += p == start; \
    *start = '{'; \
  } \
  *p++ = '}'; \
  return p; \
  }
#include "lines.def"

/* ---- prefix ---- */

int ni_line_prefix_init(struct ni_line_prefix *out, const struct ni_ident *id, const struct ni_meta *given) {
  memset(out, 0, sizeof *out);
  struct ni_meta meta = *given;
  meta.version = NI_FORMAT_VERSION;
  if (!meta.rec_mechanism)
    meta.rec_mechanism = NI_REC_MECHANISM;
  if (!meta.git_rev)
    meta.git_rev = "unknown";
  if (!meta.hostname)
    meta.hostname = "unknown";
  char *text = malloc(PREFIX_WORST);
  if (!text)
    return -ENOMEM;
  char *p = text;
#define PREFIX_header(key) put_header(LIT(p, "{\"" key "\":"), id, 0)
#define PREFIX_metadata(key) put_metadata(LIT(p, ",\"" key "\":"), &meta, 0)
#define HEAD(key, name, member, meaning) p = PREFIX_##name(key);
#include "lines.def"
  out->head_len = (uint32_t)(p - text);
  p = LIT(put_metadata_rest(p, &meta), ",");
  out->tail_len = (uint32_t)(p - text) - out->head_len;
  char *exact = realloc(text, (size_t)(p - text)); /* thousands of communicators: give the slack back */
  out->text = exact ? exact : text;
  return 0;
}

void ni_line_prefix_free(struct ni_line_prefix *p) {
  free(p->text);
  memset(p, 0, sizeof *p);
}

/* ---- lines ---- */

/* The prefix with its timestamp; NULL when cap cannot hold the worst case of this line. */
static inline char *begin_line(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                               size_t body) {
  if (cap < (size_t)px->head_len + px->tail_len + 20 + body)
    return NULL;
  memcpy(buf, px->text, px->head_len);
  char *p = ni_json_put_u64(buf + px->head_len, ts_us);
  memcpy(p, px->text + px->head_len, px->tail_len);
  return p + px->tail_len;
}

#define LINE(key, name, tag, object, form) \
  NI_FORMAT_FUNCTION(name, tag) { \
    char *at = begin_line(buf, cap, p, ts_us, sizeof(key) + 8 + object##_WORST); \
    if (!at) \
      return 0; \
    return (size_t)(LIT(put_##object(LIT(at, "\"" key "\":"), in, form), "}\n") - buf); \
  }
#define OPERATION(key, name, flags) LINE(key, name, ni_record, name, 0)
#define KIND(key, name, tag, member, object, form, kind) LINE(key, name, tag, object, form)
#include "lines.def"

size_t ni_format_recovered(char *buf, size_t cap, const struct ni_process_line *in) {
  if (cap < recovered_WORST)
    return 0;
  char *p = put_recovered(buf, in, 0);
  *buf = ',';
  return (size_t)(p - buf) - 1; /* without the brace */
}

/* ---- accounts ---- */

static void set_by(struct ni_by *by, const char *const *names, const uint64_t *counts, int n) {
  for (int i = 0; i < n; i++)
    ni_by_add(by, names[i], counts[i]);
}

void ni_stats_set_kind(struct ni_stats_line *s, enum ni_kind kind, const struct ni_kind_counts *c) {
  struct ni_kind_stats *k = &s->kind[kind];
  set_by(&k->filtered_by, ni_filter_names, c->filtered, NI_FILTER_COUNT);
  set_by(&k->dropped_by, ni_drop_names, c->dropped, NI_DROP_COUNT);
  set_by(&k->timing_fallback_by, ni_fallback_names, c->fallback, NI_FALLBACK_COUNT);
  k->started = c->started;
  k->written = c->written;
  k->incomplete = c->incomplete;
  k->late = c->late;
  k->in_flight = c->in_flight;
  s->records[kind] = c->records;
  s->dropped_total[kind] = k->dropped_by.total;
  s->dropped_since[kind] = c->dropped_since_last;
}

void ni_stats_set_strays(struct ni_stats_line *s, const uint64_t stray[NI_STRAY_COUNT]) {
  set_by(&s->strays, ni_stray_names, stray, NI_STRAY_COUNT);
}
