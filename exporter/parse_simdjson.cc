/*
 * The JSON walk: simdjson finds the structure of a line (and verifies UTF-8), this file walks it along the tables of
 * parse_fields.c. No key is known here but the one that changes with every flush (see "same head").
 *
 * Scalars are read from their text directly: simdjson's accessors do not tell a negative number from a word, and the
 * reason is part of our answer. What is skipped is verified too (simdjson's on-demand walk alone would not).
 */
#if !__has_include(<simdjson.h>)
#error "simdjson.h not found: install libsimdjson-dev (the exporter's JSON parser)"
#endif
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "parse_fields.h"

namespace od = simdjson::ondemand;

static_assert(NI_PARSE_PADDING >= simdjson::SIMDJSON_PADDING, "lines need simdjson's padding");

namespace {

constexpr unsigned depth_max = 32;
constexpr size_t head_max = 1024;
constexpr unsigned head_slots = 8;
constexpr unsigned id_at = 19; /* the communicator's hash begins here in `{"header":{"id":"0x` */

/*
 * Same head: the lines of one communicator differ before their record only in the dump's time. A line whose bytes
 * before and after that number are those of a line parsed earlier has the same header and metadata by construction, and
 * half of its text need not be parsed at all.
 */
struct head {
  uint32_t before, after; /* bytes of text[] up to the number, and from it to the quote of the record's key; 0: unused */
  uint32_t used;
  char text[head_max];
  char names[head_max];
  ni_ident ident;
  ni_meta meta;
};

/* Where in the line the pieces of its head were found. */
struct marks {
  const char *stamp, *stamp_end, *kind_key;
  unsigned kinds;
  bool header, metadata, plain; /* plain: header, metadata, record and nothing else, in this order */
};

} // namespace

struct ni_parser {
  od::parser json;
  char *copy = nullptr;   /* of a line without padding */
  size_t copy_size = 0;
  char *names = nullptr;  /* strings of the current line */
  size_t names_size = 0, names_used = 0;
  ni_line *line = nullptr;
  marks at{};
  ni_trace trace{};
  ni_proxy_step *steps = nullptr; /* of the current line */
  size_t steps_size = 0;
  head heads[head_slots]{};
};

namespace {

inline uint64_t load8(const char *p) {
  uint64_t v = 0;
  memcpy(&v, p, 8);
  return v;
}

inline bool ends_scalar(char c) { return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

/* Key and field hold their closing quote; both may be read up to the next multiple of 8. */
inline bool same_key(const char *k, const ni_field &f) {
  unsigned i = 0, len = f.len;
  for (; i + 8 <= len; i += 8)
    if (load8(k + i) != load8(f.key + i)) return false;
  unsigned rest = len - i;
  if (!rest) return true;
  uint64_t d = load8(k + i) ^ load8(f.key + i);
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? !(d << (64 - 8 * rest)) : !(d >> (64 - 8 * rest));
}

/* Lines come with the keys in the order of the table, so the field after the last one found is tried first. */
inline int find_key(const ni_table &t, const char *k, unsigned &next) {
  for (unsigned i = next; i < t.n; i++)
    if (same_key(k, t.field[i])) return static_cast<int>(next = i + 1) - 1;
  for (unsigned i = 0; i < next && i < t.n; i++)
    if (same_key(k, t.field[i])) return static_cast<int>(next = i + 1) - 1;
  return -1;
}

inline const char *token(od::value &v) { return v.raw_json_token().data(); }

inline bool is_null(const char *t) { return memcmp(t, "null", 4) == 0 && ends_scalar(t[4]); }

ni_reject reason_of(simdjson::error_code e) {
  switch (e) {
    case simdjson::UTF8_ERROR: return NI_REJ_BAD_UTF8;
    case simdjson::MEMALLOC: return NI_REJ_NO_MEMORY;
    case simdjson::CAPACITY: return NI_REJ_TOO_LONG;
    case simdjson::DEPTH_ERROR: return NI_REJ_TOO_DEEP;
    default: return NI_REJ_BAD_JSON;
  }
}

bool is_number(const char *t) {
  const char *p = t + (*t == '-');
  if (!is_digit(*p) || (*p == '0' && is_digit(p[1]))) return false;
  while (is_digit(*p)) p++;
  if (*p == '.') {
    if (!is_digit(*++p)) return false;
    while (is_digit(*p)) p++;
  }
  if (*p == 'e' || *p == 'E') {
    p++;
    if (*p == '+' || *p == '-') p++;
    if (!is_digit(*p)) return false;
    while (is_digit(*p)) p++;
  }
  return ends_scalar(*p);
}

/* What a scalar that is not a plain integer of the wanted kind is: wrong in type, in range, or no JSON. */
ni_reject classify_number(const char *t) {
  if (*t == '"' || *t == '{' || *t == '[' || *t == 't' || *t == 'f' || *t == 'n') return NI_REJ_BAD_TYPE;
  if (!is_number(t)) return NI_REJ_BAD_JSON;
  const char *p = t + (*t == '-');
  while (is_digit(*p)) p++;
  return ends_scalar(*p) ? NI_REJ_OUT_OF_RANGE : NI_REJ_BAD_TYPE;
}

inline ni_reject read_u64(const char *t, uint64_t &out) {
  const char *p = t;
  uint64_t v = 0;
  while (is_digit(*p)) {
    if (p - t >= 19) return classify_number(t);
    v = v * 10 + static_cast<unsigned char>(*p++ - '0');
  }
  if (p == t || !ends_scalar(*p) || (*t == '0' && p - t > 1) || v > INT64_MAX) return classify_number(t);
  out = v;
  return NI_OK;
}

inline ni_reject read_i64(const char *t, int64_t &out) {
  uint64_t v = 0;
  if (*t != '-') {
    ni_reject r = read_u64(t, v);
    if (r == NI_OK) out = static_cast<int64_t>(v);
    return r;
  }
  ni_reject r = is_digit(t[1]) ? read_u64(t + 1, v) : NI_REJ_BAD_JSON;
  if (r == NI_OK) out = -static_cast<int64_t>(v);
  return r;
}

/*
 * Steps over a string that was read from its text. Left to the walk, simdjson 3.0 would take a string that a colon
 * follows for a key, and let `"a":"b":1` pass.
 */
inline bool step_over(od::value &v) { return v.get_raw_json_string().error() == simdjson::SUCCESS; }

/* "nan", NaN, "inf", -inf and their like: how writers say that there is no value. */
bool is_no_value(const char *t) {
  static const char *const words[] = {"nan", "NaN", "NAN", "inf", "Inf", "INF", "infinity", "Infinity"};
  bool quoted = *t == '"';
  const char *p = t + quoted;
  if (*p == '-' || *p == '+') p++;
  for (const char *w : words) {
    size_t n = strlen(w);
    if (memcmp(p, w, n) != 0) continue;
    if (quoted ? p[n] == '"' : ends_scalar(p[n])) return true;
  }
  return false;
}

/* has is false for the spellings of "no value". */
ni_reject read_f64(od::value &v, const char *t, double &out, bool &has) {
  static const double tenth[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char *p = t + (*t == '-');
  if (is_digit(*p) && !(*p == '0' && is_digit(p[1]))) {
    /* Below 2^53 and 10^22 numerator and power are exact, so the quotient is the nearest double. */
    uint64_t m = 0;
    const char *first = p, *point = nullptr;
    for (; p - first < 17; p++) {
      if (is_digit(*p)) m = m * 10 + static_cast<unsigned char>(*p - '0');
      else if (*p == '.' && !point) point = p;
      else break;
    }
    unsigned decimals = point ? static_cast<unsigned>(p - point - 1) : 0;
    if (ends_scalar(*p) && m < (1ULL << 53) && (!point || decimals > 0)) {
      double d = static_cast<double>(m) / tenth[decimals];
      out = *t == '-' ? -d : d;
      has = true;
      return NI_OK;
    }
    simdjson::error_code e = v.get_double().get(out);
    if (e == simdjson::SUCCESS) {
      has = true;
      return NI_OK;
    }
    /* 1e999 has the form of a number; simdjson calls it an error because no double holds it. */
    return is_number(t) ? NI_REJ_OUT_OF_RANGE : NI_REJ_BAD_JSON;
  }
  has = false;
  if (is_null(t)) return NI_OK;
  if (is_no_value(t)) return *t != '"' || step_over(v) ? NI_OK : NI_REJ_BAD_JSON;
  return classify_number(t) == NI_REJ_BAD_JSON ? NI_REJ_BAD_JSON : NI_REJ_BAD_TYPE;
}

/* A string of the line into the parser's names, with a NUL. There is room: no name is longer than its text. */
ni_reject read_string(ni_parser &p, od::value &v, const char *t, const char *&out) {
  if (*t != '"') return classify_number(t) == NI_REJ_BAD_JSON ? NI_REJ_BAD_JSON : NI_REJ_BAD_TYPE;
  char *d = p.names + p.names_used, *start = d;
  const char *s = t + 1;
  for (;;) {
    uint64_t w = load8(s), q = w ^ 0x2222222222222222ULL, b = w ^ 0x5c5c5c5c5c5c5c5cULL;
    constexpr uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
    uint64_t hit = (((q - ones) & ~q) | ((b - ones) & ~b)) & tops;
    memcpy(d, &w, 8);
    if (hit) break;
    s += 8;
    d += 8;
  }
  while (*s != '"' && *s != '\\') *d++ = *s++;
  if (*s == '\\') {
    std::string_view text;
    if (v.get_string().get(text)) return NI_REJ_BAD_JSON;
    if (memchr(text.data(), 0, text.size())) return NI_REJ_BAD_VALUE;
    memcpy(start, text.data(), text.size());
    d = start + text.size();
  } else if (!step_over(v)) {
    return NI_REJ_BAD_JSON;
  }
  *d = 0;
  p.names_used = static_cast<size_t>(d + 1 - p.names);
  out = start;
  return NI_OK;
}

/* A key as text. */
ni_reject read_key(ni_parser &p, od::field &f, const char *raw, const char *&out) {
  const char *s = raw;
  while (*s != '"' && *s != '\\') s++;
  std::string_view text(raw, static_cast<size_t>(s - raw));
  if (*s == '\\' && f.unescaped_key().get(text)) return NI_REJ_BAD_JSON;
  if (memchr(text.data(), 0, text.size())) return NI_REJ_BAD_VALUE;
  char *d = p.names + p.names_used;
  memcpy(d, text.data(), text.size());
  d[text.size()] = 0;
  p.names_used += text.size() + 1;
  out = d;
  return NI_OK;
}

/* Is it JSON? For what nobody reads. */
ni_reject verify(od::value v, unsigned depth) {
  const char *t = token(v);
  if (depth > depth_max) return NI_REJ_TOO_DEEP;
  if (*t == '{') {
    od::object o;
    if (simdjson::error_code e = v.get_object().get(o)) return reason_of(e);
    for (auto item : o) {
      od::field f;
      if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f)) return reason_of(e);
      if (ni_reject r = verify(f.value(), depth + 1)) return r;
    }
    return NI_OK;
  }
  if (*t == '[') {
    od::array a;
    if (simdjson::error_code e = v.get_array().get(a)) return reason_of(e);
    for (auto item : a) {
      od::value x;
      if (simdjson::error_code e = simdjson::simdjson_result<od::value>(item).get(x)) return reason_of(e);
      if (ni_reject r = verify(x, depth + 1)) return r;
    }
    return NI_OK;
  }
  if (*t == '"') {
    const char *s = t + 1;
    while (*s != '"' && *s != '\\') s++;
    bool good = *s == '\\' ? v.get_string().error() == simdjson::SUCCESS : step_over(v);
    return good ? NI_OK : NI_REJ_BAD_JSON;
  }
  bool word = (memcmp(t, "true", 4) == 0 && ends_scalar(t[4])) || (memcmp(t, "false", 5) == 0 && ends_scalar(t[5]));
  return word || is_null(t) || is_number(t) || is_no_value(t) ? NI_OK : NI_REJ_BAD_JSON;
}

ni_reject read_hash(const char *t, uint64_t &out) {
  if (*t != '"') return classify_number(t) == NI_REJ_BAD_JSON ? NI_REJ_BAD_JSON : NI_REJ_BAD_TYPE;
  if (t[1] != '0' || t[2] != 'x') return NI_REJ_BAD_VALUE;
  uint64_t v = 0;
  const char *p = t + 3;
  for (; *p != '"'; p++) {
    unsigned c = static_cast<unsigned char>(*p), x;
    if (c - '0' < 10) x = c - '0';
    else if ((c | 32) - 'a' < 6) x = (c | 32) - 'a' + 10;
    else return NI_REJ_BAD_VALUE;
    if (p - t >= 3 + 16) return NI_REJ_OUT_OF_RANGE;
    v = v << 4 | x;
  }
  out = v;
  return p == t + 3 ? NI_REJ_BAD_VALUE : NI_OK;
}

ni_reject read_by(ni_parser &p, od::value &v, ni_by &by) {
  od::object o;
  memset(&by, 0, sizeof by);
  if (simdjson::error_code e = v.get_object().get(o)) return e == simdjson::INCORRECT_TYPE ? NI_REJ_BAD_TYPE : reason_of(e);
  for (auto item : o) {
    od::field f;
    uint64_t count = 0;
    if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f)) return reason_of(e);
    if (ni_reject r = read_u64(token(f.value()), count)) return r;
    if (__builtin_add_overflow(by.total, count, &by.total) || by.total > INT64_MAX) return NI_REJ_OUT_OF_RANGE;
    if (by.n == NI_BY_MAX) {
      by.more++;
      continue;
    }
    if (ni_reject r = read_key(p, f, f.key().raw(), by.item[by.n].name)) return r;
    by.item[by.n++].count = count;
  }
  return NI_OK;
}

/* {"<lower edge in ns>":count,...}; an edge of another bucket width counts where it lies. */
ni_reject read_hist(od::value &v, uint64_t *hist) {
  od::object o;
  memset(hist, 0, NI_HIST_BUCKETS * sizeof *hist);
  if (simdjson::error_code e = v.get_object().get(o)) return e == simdjson::INCORRECT_TYPE ? NI_REJ_BAD_TYPE : reason_of(e);
  for (auto item : o) {
    od::field f;
    uint64_t edge = 0, count = 0;
    if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f)) return reason_of(e);
    const char *s = f.key().raw(), *first = s;
    for (; is_digit(*s) && s - first < 19; s++) edge = edge * 10 + static_cast<unsigned char>(*s - '0');
    if (s == first || *s != '"') return NI_REJ_BAD_VALUE;
    if (ni_reject r = read_u64(token(f.value()), count)) return r;
    uint64_t &bucket = hist[ni_hist_bucket(edge)];
    if (__builtin_add_overflow(bucket, count, &bucket) || bucket > INT64_MAX) return NI_REJ_OUT_OF_RANGE;
  }
  return NI_OK;
}

ni_reject read_pairs(ni_parser &p, od::value &v, ni_pairs &pairs) {
  od::object o;
  pairs.n = pairs.more = 0;
  if (simdjson::error_code e = v.get_object().get(o)) return e == simdjson::INCORRECT_TYPE ? NI_REJ_BAD_TYPE : reason_of(e);
  for (auto item : o) {
    od::field f;
    if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f)) return reason_of(e);
    if (pairs.n == NI_PAIRS_MAX) {
      pairs.more++;
      if (ni_reject r = verify(f.value(), 2)) return r;
      continue;
    }
    if (ni_reject r = read_key(p, f, f.key().raw(), pairs.item[pairs.n].key)) return r;
    if (ni_reject r = read_string(p, f.value(), token(f.value()), pairs.item[pairs.n].value)) return r;
    pairs.n++;
  }
  return NI_OK;
}

/* Names the key that spoils the line. */
void blame(ni_parser &p, const ni_field &field) {
  char *d = p.names + p.names_used;
  memcpy(d, field.key, field.len - 1u);
  d[field.len - 1u] = 0;
  p.names_used += field.len;
  p.line->bad_key = d;
}

ni_reject walk(ni_parser &p, od::object o, const ni_table &t, char *base);

ni_reject enter(ni_parser &p, od::value &v, const ni_table &t, char *base) {
  od::object o;
  if (simdjson::error_code e = v.get_object().get(o)) {
    if (e != simdjson::INCORRECT_TYPE) return reason_of(e);
    return verify(v, 1) == NI_OK ? NI_REJ_BAD_TYPE : NI_REJ_BAD_JSON;
  }
  return walk(p, o, t, base);
}

ni_reject read_events(ni_parser &p, od::value &v, const ni_table &t) {
  od::array a;
  if (simdjson::error_code e = v.get_array().get(a)) return e == simdjson::INCORRECT_TYPE ? NI_REJ_BAD_TYPE : reason_of(e);
  uint32_t i = 0;
  for (auto item : a) {
    od::value x;
    if (simdjson::error_code e = simdjson::simdjson_result<od::value>(item).get(x)) return reason_of(e);
    if (i == NI_TRACE_MAX) {
      p.trace.more++;
      if (ni_reject r = verify(x, 3)) return r;
      continue;
    }
    /* event_trace_sn and event_trace_ts list the same events in the same order. */
    if (i == p.trace.n) memset(&p.trace.event[p.trace.n++], 0, sizeof p.trace.event[0]);
    if (ni_reject r = enter(p, x, t, reinterpret_cast<char *>(&p.trace.event[i]))) return r;
    i++;
  }
  return NI_OK;
}

ni_reject read_steps(ni_parser &p, od::value &v, const ni_table &t, ni_proxy_steps &out) {
  od::array a;
  out = ni_proxy_steps{};
  if (simdjson::error_code e = v.get_array().get(a)) return e == simdjson::INCORRECT_TYPE ? NI_REJ_BAD_TYPE : reason_of(e);
  for (auto item : a) {
    od::value x;
    if (simdjson::error_code e = simdjson::simdjson_result<od::value>(item).get(x)) return reason_of(e);
    if (out.n == NI_STEPS_MAX) {
      out.more++;
      if (ni_reject r = verify(x, 3)) return r;
      continue;
    }
    if (out.n == p.steps_size) {
      size_t bigger = p.steps_size ? 2 * p.steps_size : 64;
      ni_proxy_step *s = new (std::nothrow) ni_proxy_step[bigger];
      if (!s) return NI_REJ_NO_MEMORY;
      if (out.n) memcpy(s, p.steps, out.n * sizeof *s);
      delete[] p.steps;
      p.steps = s;
      p.steps_size = bigger;
    }
    if (ni_reject r = enter(p, x, t, reinterpret_cast<char *>(&p.steps[out.n]))) return r;
    out.n++;
  }
  out.list = p.steps;
  return NI_OK;
}

ni_reject begin_kind(ni_parser &p, const ni_field &f, const char *key) {
  ni_line &l = *p.line;
  if (p.at.kinds++) return NI_REJ_TWO_KINDS;
  p.at.kind_key = key - 1;
  l.kind = static_cast<ni_line_kind>(f.arg);
  l.is_p2p = f.flags & NI_FLAG_P2P;
  return NI_OK;
}

inline ni_reject store(ni_parser &p, od::value &v, const char *key, const ni_field &f, char *at, bool &has) {
  const char *t = token(v);
  has = true;
  switch (f.type) {
    case NI_F_U64: {
      ni_reject r = read_u64(t, *reinterpret_cast<uint64_t *>(at));
      if (r == NI_OK && &f == ni_field_timestamp) p.at.stamp = t;
      if (r == NI_OK) return r;
      break;
    }
    case NI_F_I64:
      if (read_i64(t, *reinterpret_cast<int64_t *>(at)) == NI_OK) return NI_OK;
      break;
    case NI_F_I32: {
      int64_t x = 0;
      if (read_i64(t, x)) break;
      if (x < f.min || x > INT32_MAX) return NI_REJ_OUT_OF_RANGE;
      *reinterpret_cast<int32_t *>(at) = static_cast<int32_t>(x);
      return NI_OK;
    }
    case NI_F_U32: {
      uint64_t x = 0;
      if (read_u64(t, x)) break;
      if (x > UINT32_MAX) return NI_REJ_OUT_OF_RANGE;
      *reinterpret_cast<uint32_t *>(at) = static_cast<uint32_t>(x);
      return NI_OK;
    }
    case NI_F_BOOL:
      if (memcmp(t, "true", 4) == 0 && ends_scalar(t[4])) *reinterpret_cast<bool *>(at) = true;
      else if (memcmp(t, "false", 5) == 0 && ends_scalar(t[5])) *reinterpret_cast<bool *>(at) = false;
      else break;
      return NI_OK;
    case NI_F_STR: {
      if (*t != '"') break;
      return read_string(p, v, t, *reinterpret_cast<const char **>(at));
    }
    case NI_F_TIMING: {
      const char *name;
      if (*t != '"') break;
      if (ni_reject r = read_string(p, v, t, name)) return r;
      ni_timing timing = ni_timing_from_name(name);
      if (timing == NI_TIMING_NONE && *name) return NI_REJ_BAD_VALUE;
      *reinterpret_cast<ni_timing *>(at) = timing;
      return NI_OK;
    }
    case NI_F_SRC: {
      const char *name;
      if (*t != '"') break;
      if (ni_reject r = read_string(p, v, t, name)) return r;
      for (int i = 1; i < NI_SRC_COUNT; i++)
        if (strcmp(name, ni_src_names[i]) == 0) *reinterpret_cast<ni_src *>(at) = static_cast<ni_src>(i);
      return *reinterpret_cast<ni_src *>(at) == NI_SRC_EVENT ? NI_REJ_BAD_VALUE : NI_OK;
    }
    case NI_F_OBSERVED: {
      const char *name;
      if (*t != '"') break;
      if (ni_reject r = read_string(p, v, t, name)) return r;
      *reinterpret_cast<bool *>(at) = strcmp(name, "observed") == 0;
      return NI_OK;
    }
    case NI_F_HASH: {
      if (ni_reject r = read_hash(t, *reinterpret_cast<uint64_t *>(at))) return r;
      return step_over(v) ? NI_OK : NI_REJ_BAD_JSON;
    }
    case NI_F_F64:
    case NI_F_BW: {
      double d;
      if (ni_reject r = read_f64(v, t, d, has)) return r;
      if (!has) return NI_OK;
      if (f.type == NI_F_BW && !(d >= 0 && d <= NI_BW_MAX_GBS)) return NI_REJ_OUT_OF_RANGE;
      *reinterpret_cast<double *>(at) = d;
      return NI_OK;
    }
    case NI_F_BY: return read_by(p, v, *reinterpret_cast<ni_by *>(at));
    case NI_F_HIST: return read_hist(v, reinterpret_cast<uint64_t *>(at));
    case NI_F_PAIRS: return read_pairs(p, v, *reinterpret_cast<ni_pairs *>(at));
    case NI_F_OBJECT: return enter(p, v, *f.sub, at);
    case NI_F_EVENTS: return read_events(p, v, *f.sub);
    case NI_F_STEPS:
      if (is_null(t)) break;
      return read_steps(p, v, *f.sub, *reinterpret_cast<ni_proxy_steps *>(at));
    case NI_F_TRACE:
      if (!p.line->trace) memset(&p.trace, 0, offsetof(ni_trace, event));
      p.line->trace = &p.trace;
      *reinterpret_cast<bool *>(reinterpret_cast<char *>(&p.trace) + f.has) = true;
      has = false; /* f.has is a place in the trace, not one of the record's NI_HAS_* */
      return enter(p, v, *f.sub, reinterpret_cast<char *>(&p.trace));
    case NI_F_KIND:
      if (ni_reject r = begin_kind(p, f, key)) return r;
      return enter(p, v, *f.sub, at);
    default: return NI_REJ_BAD_TYPE;
  }
  /* Not what was wanted: null where the format allows it, else a reason. */
  has = false;
  if (is_null(t)) return f.flags & NI_FLAG_NULL ? NI_OK : NI_REJ_BAD_TYPE;
  if (f.type == NI_F_U64 || f.type == NI_F_I64 || f.type == NI_F_I32 || f.type == NI_F_U32) return classify_number(t);
  return verify(v, 2) == NI_OK ? NI_REJ_BAD_TYPE : NI_REJ_BAD_JSON;
}

/* A key that no table has: verified, counted; at the top level it may be a record of a later version. */
ni_reject unknown(ni_parser &p, od::field &f, const char *key, const ni_table &t) {
  ni_line &l = *p.line;
  const char *name = nullptr;
  bool object = *token(f.value()) == '{';
  if (!l.unknown_keys++ || (&t == &ni_table_line && object && !l.kind_name)) {
    if (ni_reject r = read_key(p, f, key, name)) return r;
    if (!l.unknown_key) l.unknown_key = name;
    if (&t == &ni_table_line && object && !l.kind_name) l.kind_name = name;
  }
  return verify(f.value(), 1);
}

ni_reject walk(ni_parser &p, od::object o, const ni_table &t, char *base) {
  uint64_t seen = 0;
  unsigned next = 0;
  if (t.defaults) memcpy(base, t.defaults, t.size);
  for (auto item : o) {
    od::field f;
    if (simdjson::error_code e = simdjson::simdjson_result<od::field>(item).get(f)) return reason_of(e);
    const char *key = f.key().raw();
    int i = find_key(t, key, next);
    if (i < 0) {
      if (ni_reject r = unknown(p, f, key, t)) return r;
      continue;
    }
    const ni_field &field = t.field[i];
    bool has;
    ni_reject r = seen >> i & 1 ? NI_REJ_DUPLICATE_KEY : store(p, f.value(), key, field, base + field.offset, has);
    if (r) {
      if (!p.line->bad_key) blame(p, field);
      return r;
    }
    seen |= 1ULL << i;
    if (!has) continue;
    if (t.has_at && field.has) *reinterpret_cast<uint32_t *>(base + t.has_at - 1) |= field.has;
    if (field.type == NI_F_OBJECT && field.has) *reinterpret_cast<bool *>(base + field.has) = true;
    if (&t == &ni_table_line) {
      if (i == 0) p.at.header = true;
      if (i == 1) p.at.metadata = true;
    }
  }
  uint64_t missing = t.required & ~seen;
  if (!missing) return NI_OK;
  blame(p, t.field[__builtin_ctzll(missing)]);
  return NI_REJ_MISSING_KEY;
}

/* What a table cannot say: values that contradict one another. */
ni_reject settle(ni_parser &p) {
  ni_line &l = *p.line;
  if (l.kind == NI_LINE_OP && l.has_header && (l.ident.rank < 0 || (l.ident.n_ranks > 0 && l.ident.rank >= l.ident.n_ranks))) {
    l.bad_key = "rank";
    return NI_REJ_OUT_OF_RANGE;
  }
  return NI_OK;
}

ni_reject parse_object(ni_parser &p, char *text, size_t len, size_t room, const ni_table &t, char *base) {
  od::document doc;
  od::object o;
  if (simdjson::error_code e = p.json.iterate(text, len, room).get(doc)) return reason_of(e);
  if (simdjson::error_code e = doc.get_object().get(o))
    return e == simdjson::INCORRECT_TYPE ? NI_REJ_NOT_OBJECT : reason_of(e);
  if (ni_reject r = walk(p, o, t, base)) return r;
  const char *rest;
  return doc.current_location().get(rest) == simdjson::OUT_OF_BOUNDS ? NI_OK : NI_REJ_BAD_JSON;
}

ni_reject parse_whole(ni_parser &p, char *text, size_t len, size_t room) {
  ni_line &l = *p.line;
  if (ni_reject r = parse_object(p, text, len, room, ni_table_line, reinterpret_cast<char *>(&l))) return r;
  if (p.at.header != p.at.metadata) {
    l.bad_key = p.at.header ? "metadata" : "header";
    return NI_REJ_MISSING_KEY;
  }
  l.has_header = p.at.header;
  if (!p.at.kinds) {
    if (!l.has_header || !l.kind_name) return NI_REJ_NO_PERF;
    l.kind = NI_LINE_UNKNOWN;
    return NI_OK;
  }
  return settle(p);
}

/*
 * A line that is no JSON is that and nothing else, wherever the walk stopped: what it found wrong before may be a
 * consequence of it. Only lines that are rejected pay for this.
 */
bool is_json(ni_parser &p, char *text, size_t len, size_t room) {
  od::document doc;
  od::object o;
  if (p.json.iterate(text, len, room).get(doc) || doc.get_object().get(o)) return false;
  for (auto item : o) {
    od::field f;
    if (simdjson::simdjson_result<od::field>(item).get(f) || verify(f.value(), 1) == NI_REJ_BAD_JSON) return false;
  }
  const char *rest;
  return doc.current_location().get(rest) == simdjson::OUT_OF_BOUNDS;
}

inline head &head_of(ni_parser &p, const char *text) {
  uint64_t w = load8(text + id_at) * 0x9e3779b97f4a7c15ULL;
  return p.heads[w >> 61];
}

bool keep_name(head &h, const char *&name) {
  if (!name || !*name) return true;
  size_t n = strlen(name) + 1;
  if (n > head_max - h.used) return false;
  memcpy(h.names + h.used, name, n);
  name = h.names + h.used;
  h.used += static_cast<uint32_t>(n);
  return true;
}

/* Remembers the head of a line that was parsed whole, when it has the shape that the short way can use. */
void remember(ni_parser &p, const char *text, size_t len) {
  const marks &m = p.at;
  ni_line &l = *p.line;
  if (!l.has_header || !m.stamp || !m.kind_key || l.unknown_keys || len < id_at + 8) return;
  if (memcmp(text, "{\"header\":{\"id\":\"0x", id_at) != 0 || m.stamp > m.kind_key) return;
  const char *end = m.stamp;
  while (is_digit(*end)) end++;
  size_t before = static_cast<size_t>(m.stamp - text), after = static_cast<size_t>(m.kind_key - end);
  /* header and metadata must both lie before the record: its key follows the end of one of them directly. */
  if (before + after > head_max || after < 2 || memcmp(m.kind_key - 2, "},", 2) != 0 || before < 8) return;
  head &h = head_of(p, text);
  h.before = h.used = 0;
  h.ident = l.ident;
  h.meta = l.meta;
  if (!keep_name(h, h.ident.comm_name) || !keep_name(h, h.meta.version) || !keep_name(h, h.meta.git_rev) ||
      !keep_name(h, h.meta.rec_mechanism) || !keep_name(h, h.meta.hostname) || !keep_name(h, h.meta.producer))
    return;
  memcpy(h.text, text, before);
  memcpy(h.text + before, end, after);
  h.after = static_cast<uint32_t>(after);
  h.before = static_cast<uint32_t>(before);
}

/* The short way. false: does not apply, or something is wrong, and the whole line shall say what. */
bool parse_after_head(ni_parser &p, char *text, size_t len, size_t room) {
  if (len < id_at + 8) return false;
  const head &h = head_of(p, text);
  if (!h.before || len < h.before + 32u + h.after || memcmp(text, h.text, h.before) != 0) return false;
  uint64_t stamp = 0;
  const char *s = text + h.before, *first = s;
  while (is_digit(*s) && s - first < 18) stamp = stamp * 10 + static_cast<unsigned char>(*s++ - '0');
  if (s == first || (*first == '0' && s - first > 1) || memcmp(s, h.text + h.before, h.after) != 0) return false;
  s += h.after;
  if (*s != '"') return false;
  const char *key = s + 1; /* the key after its quote */
  unsigned next = 0;
  int i = find_key(ni_table_line, key, next);
  if (i < 0 || ni_table_line.field[i].type != NI_F_KIND) return false;
  const ni_field &f = ni_table_line.field[i];
  size_t body = static_cast<size_t>(key + f.len + 1 - text);
  if (key[f.len] != ':' || body + 2 > len || text[body] != '{' || text[len - 1] != '}') return false;

  ni_line &l = *p.line;
  l.ident = h.ident;
  l.meta = h.meta;
  l.meta.dump_timestamp_us = stamp;
  l.has_header = true;
  begin_kind(p, f, key);
  text[len - 1] = ' '; /* the brace of the whole line */
  ni_reject r = parse_object(p, text + body, len - body, room - body, *f.sub, reinterpret_cast<char *>(&l) + f.offset);
  text[len - 1] = '}';
  return r == NI_OK && settle(p) == NI_OK;
}

void begin(ni_parser &p, ni_line *out) {
  out->kind = NI_LINE_UNKNOWN;
  out->has_header = out->is_p2p = false;
  out->kind_name = out->bad_key = out->unknown_key = nullptr;
  out->unknown_keys = 0;
  out->trace = nullptr;
  p.line = out;
  p.names_used = 0;
  p.at = marks{};
}

bool grow(char *&buffer, size_t &size, size_t need) {
  if (size >= need) return true;
  size_t bigger = need < 65536 ? 65536 : need + need / 2;
  char *b = new (std::nothrow) char[bigger];
  if (!b) return false;
  delete[] buffer;
  buffer = b;
  size = bigger;
  return true;
}

} // namespace

extern "C" int ni_parser_new(struct ni_parser **out) {
  ni_tables_init();
  ni_parser *p = new (std::nothrow) ni_parser;
  *out = p;
  if (!p) return -ENOMEM;
  if (p->json.allocate(65536) || !grow(p->names, p->names_size, 65536)) {
    ni_parser_free(p);
    *out = nullptr;
    return -ENOMEM;
  }
  return 0;
}

extern "C" void ni_parser_free(struct ni_parser *p) {
  if (!p) return;
  delete[] p->copy;
  delete[] p->names;
  delete[] p->steps;
  delete p;
}

extern "C" enum ni_reject ni_parse_line(struct ni_parser *p, char *text, size_t len, size_t room, struct ni_line *out) {
  begin(*p, out);
  if (len > UINT32_MAX / 2) return NI_REJ_TOO_LONG;
  /* Names need what their text has, and bad_key and the 8-byte stores a little more. */
  if (!grow(p->names, p->names_size, len + 4 * NI_KEY_MAX)) return NI_REJ_NO_MEMORY;
  if (room < len + NI_PARSE_PADDING) {
    if (!grow(p->copy, p->copy_size, len + NI_PARSE_PADDING)) return NI_REJ_NO_MEMORY;
    memcpy(p->copy, text, len);
    memset(p->copy + len, 0, NI_PARSE_PADDING);
    text = p->copy;
    room = len + NI_PARSE_PADDING;
  }
  if (p->json.capacity() < len && p->json.allocate(len + len / 2)) return NI_REJ_NO_MEMORY;
  ni_reject r = NI_OK;
  if (!parse_after_head(*p, text, len, room)) {
    size_t i = 0;
    while (i < len && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r')) i++;
    begin(*p, out);
    if (i == len) return NI_REJ_BLANK;
    r = parse_whole(*p, text, len, room);
    if (r == NI_OK) remember(*p, text, len);
    if (r >= NI_REJ_NO_PERF && r < NI_REJ_TOO_DEEP && !is_json(*p, text, len, room)) {
      r = NI_REJ_BAD_JSON;
      out->bad_key = nullptr;
    }
    if (r == NI_REJ_NOT_OBJECT && !strchr("[\"-0123456789tfn", text[i])) r = NI_REJ_BAD_JSON;
  }
  if (r == NI_OK && out->kind != NI_LINE_UNKNOWN)
    out->kind_name = out->kind == NI_LINE_OP ? (out->is_p2p ? "p2p_perf" : "coll_perf") : ni_line_kind_name(out->kind);
  return r;
}
