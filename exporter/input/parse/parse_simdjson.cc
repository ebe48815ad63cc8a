/*
 * The JSON walk: simdjson finds the structure of a line (and verifies UTF-8), this file walks it along the
 * tables of format/line_tables.c. No key is known here but the one that changes with every flush
 * (parse_head.h).
 *
 * Scalars are read from their text directly (parse_text.h): simdjson's accessors do not tell a negative
 * number from a word, and the reason is part of our answer. What is skipped is verified too (parse_value.h).
 */
#include "parse.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "format/line_tables.h"
#include "parse_head.h"
#include "parse_key.h"
#include "parse_text.h"
#include "parse_value.h"

static_assert(NI_PARSE_PADDING >= simdjson::SIMDJSON_PADDING, "lines need simdjson's padding");

/* Where in the line the pieces of its head were found. */
struct ni_marks {
  const char *stamp, *kind_key;
  unsigned kinds;
  uint64_t seen; /* of the keys of the line itself: bit 0 header, bit 1 metadata */
};

struct ni_parser {
  od::parser json;
  char *copy = nullptr; /* of a line without padding */
  size_t copy_size = 0;
  ni_json_names names; /* strings of the current line */
  ni_line *line = nullptr;
  ni_marks at{};
  /* of parse_plain(): behind the value, where its reader knows; the record's end */
  const char *plain_at = nullptr, *plain_end = nullptr;
  ni_trace trace{};
  ni_proxy_step *steps = nullptr; /* of the current line */
  size_t steps_size = 0;
  ni_metric_name *metrics = nullptr;
  size_t metrics_size = 0;
  ni_json_numbers_room numbers;
  ni_heads heads{};
  /* names of functions that have a number, by their hash */
  struct {
    uint64_t text[2];
  } func[NI_FUNCS_NUMBERED]{};
};

namespace {

/* Names the key that spoils the line; returns why. */
ni_reject note_field(ni_parser &p, const ni_field &field, ni_reject why) {
  char *d = p.names.text + p.names.used;
  memcpy(d, field.key, field.len - 1u);
  d[field.len - 1u] = 0;
  p.names.used += field.len;
  p.line->bad_key = d;
  return why;
}

ni_reject walk_object(ni_parser &p, od::object o, const ni_key_table &t, char *base);

ni_reject enter_object(ni_parser &p, od::value &v, const ni_key_table &t, char *base) {
  od::object o;
  if (simdjson::error_code e = v.get_object().get(o)) {
    if (e != simdjson::INCORRECT_TYPE)
      return ni_json_reason(e);
    return ni_json_verify(v, 1) == NI_OK ? NI_REJ_BAD_TYPE : NI_REJ_BAD_JSON;
  }
  return walk_object(p, o, t, base);
}

/*
 * An array of objects: the first ones to where at(i) says (nullptr: no memory); beyond max they are verified
 * and counted.
 */
template <typename N, typename At>
ni_reject read_list(ni_parser &p, od::value &v, const ni_key_table &t, size_t max, N &more, At at) {
  od::array a;
  if (simdjson::error_code e = v.get_array().get(a))
    return ni_json_wrong_type(e);
  size_t i = 0;
  for (auto item : a) {
    od::value x;
    if (simdjson::error_code e = simdjson::simdjson_result<od::value>(item).get(x))
      return ni_json_reason(e);
    ni_reject r;
    if (i == max) {
      more++;
      r = ni_json_verify(x, 3);
    } else {
      auto *to = at(i++);
      r = to ? enter_object(p, x, t, reinterpret_cast<char *>(to)) : NI_REJ_NO_MEMORY;
    }
    if (r)
      return r;
  }
  return NI_OK;
}

/* event_trace_sn and event_trace_ts list the same events in the same order. */
ni_reject read_events(ni_parser &p, od::value &v, const ni_key_table &t) {
  return read_list(p, v, t, NI_TRACE_MAX, p.trace.more, [&p](size_t i) {
    if (i == p.trace.n)
      memset(&p.trace.event[p.trace.n++], 0, sizeof p.trace.event[0]);
    return &p.trace.event[i];
  });
}

/* A list whose items are the parser's: all of `out`, but for what does not fit. */
template <class List, class Item>
ni_reject read_own(ni_parser &p, od::value &v, const ni_key_table &t, size_t most, List &out, Item *&items,
                   size_t &size) {
  out = List{};
  ni_reject r = read_list(p, v, t, most, out.more, [&out, &items, &size](size_t i) {
    out.n = i + 1;
    return ni_array_room(items, i, size) ? &items[i] : nullptr;
  });
  out.list = items;
  return r;
}

ni_reject begin_kind(ni_parser &p, const ni_field &f, const char *key) {
  ni_line &l = *p.line;
  if (p.at.kinds++)
    return NI_REJ_TWO_KINDS;
  p.at.kind_key = key - 1;
  l.kind = static_cast<ni_line_kind>(f.arg);
  l.is_p2p = f.flags & NI_FLAG_P2P;
  return NI_OK;
}

/* A string; v nullptr: of a plain record, printable ASCII without escapes. */
inline ni_reject read_text(ni_parser &p, od::value *v, const char *t, const char *&out) {
  if (v)
    return ni_json_string(p.names, *v, t, out);
  constexpr uint64_t ones = 0x0101010101010101ULL;
  char *d = p.names.text + p.names.used;
  out = d;
  unsigned n = 8;
  for (t++; n == 8 && t < p.plain_end; t += n, d += n) { /* up to the first one that may end it */
    uint64_t w = ni_text_load8(t), q = w ^ '"' * ones, b = w ^ '\\' * ones;
    uint64_t hit = (((q - ones) & ~q) | ((b - ones) & ~b) | ((w - ' ' * ones) & ~w) | w) & 0x80 * ones;
    n = hit ? static_cast<unsigned>(__builtin_ctzll(hit)) / 8 : 8;
    memcpy(d, t, 8);
  }
  if (t >= p.plain_end || *t != '"')
    return NI_REJ_BAD_JSON;
  *d++ = 0;
  p.names.used = static_cast<size_t>(d - p.names.text);
  p.plain_at = t + 1;
  return NI_OK;
}

/* A text that is one of a few words. */
ni_reject store_word(ni_parser &p, od::value *v, const char *t, const ni_field &f, char *at) {
  const char *word;
  if (ni_reject r = read_text(p, v, t, word))
    return r;
  if (f.type == NI_F_OBSERVED) {
    *reinterpret_cast<bool *>(at) = strcmp(word, NI_OBSERVED) == 0;
    return NI_OK;
  }
  if (f.type == NI_F_TIMING) {
    ni_timing timing = ni_timing_from_name(word);
    *reinterpret_cast<ni_timing *>(at) = timing;
    return timing == NI_TIMING_NONE && *word ? NI_REJ_BAD_VALUE : NI_OK;
  }
  ni_src &src = *reinterpret_cast<ni_src *>(at);
  for (int i = 1; i < NI_SRC_COUNT; i++)
    if (strcmp(word, ni_src_names[i]) == 0)
      src = static_cast<ni_src>(i);
  return src == NI_SRC_EVENT ? NI_REJ_BAD_VALUE : NI_OK;
}

/* v: of text t; nullptr: of a plain record, and what needs more than its text is refused. */
[[gnu::always_inline]] inline ni_reject store(ni_parser &p, od::value *v, const char *t, const char *key,
                                              const ni_field &f, char *at, bool &has) {
  has = true;
  if (!v && f.type > NI_F_SRC)
    return NI_REJ_BAD_JSON;
  switch (f.type) {
    case NI_F_STAMP:
      p.at.stamp = t; /* fall through */
    case NI_F_U64:
      if (ni_text_u64(t, reinterpret_cast<uint64_t *>(at), &p.plain_at) == NI_OK)
        return NI_OK;
      break;
    case NI_F_I64:
      if (ni_text_i64(t, reinterpret_cast<int64_t *>(at), &p.plain_at) == NI_OK)
        return NI_OK;
      break;
    case NI_F_I32: {
      int64_t x = 0;
      if (ni_text_i64(t, &x, &p.plain_at))
        break;
      if (x < f.min || x > INT32_MAX)
        return NI_REJ_OUT_OF_RANGE;
      *reinterpret_cast<int32_t *>(at) = static_cast<int32_t>(x);
      return NI_OK;
    }
    case NI_F_U32: {
      uint64_t x = 0;
      if (ni_text_u64(t, &x, &p.plain_at))
        break;
      if (x > UINT32_MAX)
        return NI_REJ_OUT_OF_RANGE;
      *reinterpret_cast<uint32_t *>(at) = static_cast<uint32_t>(x);
      return NI_OK;
    }
    case NI_F_BOOL:
      if (!ni_text_is_true(t) && !ni_text_is_false(t))
        break;
      *reinterpret_cast<bool *>(at) = *t == 't';
      return NI_OK;
    case NI_F_STR:
      if (*t != '"')
        break;
      return read_text(p, v, t, *reinterpret_cast<const char **>(at));
    case NI_F_TIMING:
    case NI_F_SRC:
    case NI_F_OBSERVED:
      if (*t != '"')
        break;
      return store_word(p, v, t, f, at);
    case NI_F_HASH:
      if (ni_reject r = ni_text_hash(t, reinterpret_cast<uint64_t *>(at)))
        return r;
      return ni_json_step_over(*v) ? NI_OK : NI_REJ_BAD_JSON;
    case NI_F_F64:
    case NI_F_BW: {
      double d;
      if (!ni_text_decimal(t, &d, &p.plain_at)) {
        if (!v)
          return NI_REJ_BAD_JSON;
        if (ni_reject r = ni_json_f64(*v, t, d, has))
          return r;
        if (!has)
          return NI_OK;
      }
      if (f.type == NI_F_BW && !(d >= 0 && d <= NI_BW_MAX_GBS))
        return NI_REJ_OUT_OF_RANGE;
      *reinterpret_cast<double *>(at) = d;
      return NI_OK;
    }
    case NI_F_BY:
      return ni_json_by(p.names, *v, *reinterpret_cast<ni_by *>(at));
    case NI_F_HIST:
      return ni_json_hist(*v, reinterpret_cast<uint64_t *>(at));
    case NI_F_PAIRS:
      return ni_json_pairs(p.names, *v, *reinterpret_cast<ni_pairs *>(at));
    case NI_F_OBJECT:
      return enter_object(p, *v, *f.sub, at);
    case NI_F_EVENTS:
      return read_events(p, *v, *f.sub);
    case NI_F_STEPS:
      if (ni_text_is_null(t))
        break;
      return read_own(p, *v, *f.sub, NI_STEPS_MAX, *reinterpret_cast<ni_proxy_steps *>(at), p.steps,
                      p.steps_size);
    case NI_F_METRICS:
      return read_own(p, *v, *f.sub, NI_METRICS_MAX, *reinterpret_cast<ni_metric_names *>(at), p.metrics,
                      p.metrics_size);
    case NI_F_NUMBERS:
      if (*t != '[')
        break;
      return ni_json_numbers(p.numbers, *v, *reinterpret_cast<ni_numbers *>(at));
    case NI_F_TRACE:
      if (!p.line->trace)
        memset(&p.trace, 0, offsetof(ni_trace, event));
      p.line->trace = &p.trace;
      *reinterpret_cast<bool *>(reinterpret_cast<char *>(&p.trace) + f.has) = true;
      has = false; /* f.has is a place in the trace, not one of the record's NI_HAS_* */
      return enter_object(p, *v, *f.sub, reinterpret_cast<char *>(&p.trace));
    case NI_F_KIND:
      if (ni_reject r = begin_kind(p, f, key))
        return r;
      return enter_object(p, *v, *f.sub, at);
    default:
      return NI_REJ_BAD_TYPE;
  }
  /* Not what was wanted: null where the format allows it, else a reason. */
  has = false;
  if (ni_text_is_null(t))
    return f.flags & NI_FLAG_NULL ? NI_OK : NI_REJ_BAD_TYPE;
  if (f.type <= NI_F_INTEGERS)
    return ni_text_not_integer(t);
  return v && ni_json_verify(*v, 2) == NI_OK ? NI_REJ_BAD_TYPE : NI_REJ_BAD_JSON;
}

/* A key that no table has: verified, counted; at the top level it may be a record of a later version. */
ni_reject skip_unknown(ni_parser &p, od::field &f, const char *key, const ni_key_table &t) {
  ni_line &l = *p.line;
  const char *name = nullptr;
  bool record = &t == &ni_table_line && !l.kind_name && *ni_json_token(f.value()) == '{';
  if (!l.unknown_keys++ || record) {
    if (ni_reject r = ni_json_key(p.names, f, key, name))
      return r;
    if (!l.unknown_key)
      l.unknown_key = name;
    if (record)
      l.kind_name = name;
  }
  return ni_json_verify(f.value(), 1);
}

inline void note(const ni_field &f, char *base, bool has) {
  if (!has || !f.has)
    return;
  if (f.type == NI_F_OBJECT)
    *reinterpret_cast<bool *>(base + f.has) = true;
  else
    reinterpret_cast<ni_record *>(base)->has |= f.has;
}

ni_reject walk_object(ni_parser &p, od::object o, const ni_key_table &t, char *base) {
  uint64_t seen = 0;
  unsigned next = 0;
  if (t.defaults)
    memcpy(base, t.defaults, t.size);
  for (auto item : o) {
    if (simdjson::error_code e = item.error())
      return ni_json_reason(e);
    /* where it lies: a copy of what was only just written would wait for it */
    od::field &&f = std::move(item).value_unsafe();
    const char *key = f.key().raw();
    int i = ni_key_find(t, key, next);
    if (i < 0) {
      if (ni_reject r = skip_unknown(p, f, key, t))
        return r;
      continue;
    }
    const ni_field &field = t.field[i];
    bool has;
    ni_reject r = seen >> i & 1
        ? NI_REJ_DUPLICATE_KEY
        : store(p, &f.value(), ni_json_token(f.value()), key, field, base + field.offset, has);
    if (r)
      return p.line->bad_key ? r : note_field(p, field, r);
    seen |= 1ULL << i;
    note(field, base, has);
  }
  if (&t == &ni_table_line)
    p.at.seen = seen;
  uint64_t missing = t.required & ~seen;
  return missing ? note_field(p, t.field[__builtin_ctzll(missing)], NI_REJ_MISSING_KEY) : NI_OK;
}

/* The text up to its end, in a word whose first byte comes first; the rest is 0. */
inline uint64_t up_to_nul(uint64_t w, bool &ended) {
  constexpr uint64_t ones = 0x0101010101010101ULL;
  uint64_t nul = (w - ones) & ~w & 0x80 * ones;
  ended = nul != 0;
  return ended ? w & (((nul & -nul) >> 7) - 1) : w;
}

/*
 * By its number whoever counts by function need not compare names. name is of p.names, and 16 bytes can be
 * read.
 */
uint32_t number_function(ni_parser &p, const char *name) {
  constexpr unsigned most = NI_FUNCS_NUMBERED, probes = 4;
  bool ended, ended_too = false;
  uint64_t a = up_to_nul(ni_text_load8(name), ended),
           b = ended ? 0 : up_to_nul(ni_text_load8(name + 8), ended_too);
  unsigned at = static_cast<unsigned>(ni_spread(a ^ ni_spread(b)) >> 40);
  for (unsigned i = 0; a && (ended || ended_too) && i < probes; i++) {
    auto &f = p.func[(at + i) % most].text;
    if (!f[0]) {
      f[0] = a;
      f[1] = b;
    }
    if (f[0] == a && f[1] == b)
      return (at + i) % most + 1;
  }
  return 0;
}

/* What a table cannot say: values that contradict one another. */
ni_reject finish_line(ni_parser &p) {
  ni_line &l = *p.line;
  const bool is_rank = l.ident.rank >= 0 && (l.ident.n_ranks <= 0 || l.ident.rank < l.ident.n_ranks);
  if (l.kind == NI_LINE_OP && l.has_header && !is_rank) {
    l.bad_key = "rank";
    return NI_REJ_OUT_OF_RANGE;
  }
  return NI_OK;
}

ni_reject parse_object(ni_parser &p, char *text, size_t len, size_t room, const ni_key_table &t, char *base) {
  od::document doc;
  od::object o;
  if (simdjson::error_code e = p.json.iterate(text, len, room).get(doc))
    return ni_json_reason(e);
  if (simdjson::error_code e = doc.get_object().get(o))
    return e == simdjson::INCORRECT_TYPE ? NI_REJ_NOT_OBJECT : ni_json_reason(e);
  if (ni_reject r = walk_object(p, o, t, base))
    return r;
  const char *rest;
  return doc.current_location().get(rest) == simdjson::OUT_OF_BOUNDS ? NI_OK : NI_REJ_BAD_JSON;
}

ni_reject parse_whole(ni_parser &p, char *text, size_t len, size_t room) {
  ni_line &l = *p.line;
  if (ni_reject r = parse_object(p, text, len, room, ni_table_line, reinterpret_cast<char *>(&l)))
    return r;
  l.has_header = p.at.seen & 1;
  if (l.has_header != (p.at.seen >> 1 & 1)) /* the other one of the first two */
    return note_field(p, ni_table_line.field[l.has_header], NI_REJ_MISSING_KEY);
  if (!p.at.kinds) {
    if (!l.has_header || !l.kind_name)
      return NI_REJ_NO_PERF;
    l.kind = NI_LINE_UNKNOWN;
    return NI_OK;
  }
  return finish_line(p);
}

/*
 * A record as the plugin writes most of them, without objects, spaces and escapes in it, needs no map of its
 * structure. Its text goes from s to end. false: it has another form, or something is wrong.
 */
bool parse_plain(ni_parser &p, const char *s, const char *end, const ni_key_table &t, char *base) {
  uint64_t seen = 0;
  unsigned next = 0;
  if (memchr(s + 1, '{', static_cast<size_t>(end - s - 1)))
    return false;
  if (t.defaults)
    memcpy(base, t.defaults, t.size);
  p.plain_end = end;
  do {
    const char *key = s + 2;
    int i = s[1] == '"' ? ni_key_find(t, key, next) : -1;
    if (i < 0 || seen >> i & 1)
      return false;
    const ni_field &f = t.field[i];
    bool has;
    s = key + f.len;
    p.plain_at = ++s;
    if (s[-1] != ':' || store(p, nullptr, s, key, f, base + f.offset, has))
      return false;
    if (p.plain_at != s)
      s = p.plain_at;
    else
      while (*s > ',' && (*s | 0x20) != '}')
        s++; /* a word that store() saw the end of; ']' is one, too */
    seen |= 1ULL << i;
    note(f, base, has);
  } while (*s == ',' && s < end);
  return *s == '}' && s + 1 == end && !(t.required & ~seen);
}

/* The short way. false: does not apply, or something is wrong, and the whole line shall say what. */
bool parse_after_head(ni_parser &p, char *text, size_t len, size_t room) {
  uint64_t stamp = 0;
  const char *key = nullptr; /* after its quote */
  const ni_read_head *h = ni_heads_find(&p.heads, text, len, &stamp, &key);
  if (!h)
    return false;
  unsigned next = 0;
  int i = ni_key_find(ni_table_line, key, next);
  if (i < 0 || ni_table_line.field[i].type != NI_F_KIND)
    return false;
  const ni_field &f = ni_table_line.field[i];
  size_t body = static_cast<size_t>(key + f.len + 1 - text);
  if (key[f.len] != ':' || body + 2 > len)
    return false;
  if (text[body] != '{' || text[len - 1] != '}')
    return false;

  ni_line &l = *p.line;
  l.ident = h->ident;
  l.meta = h->meta;
  l.meta.dump_timestamp_us = stamp;
  l.head_no = h->no;
  l.has_header = true;
  begin_kind(p, f, key);
  if (parse_plain(p, text + body, text + len - 1, *f.sub, reinterpret_cast<char *>(&l) + f.offset))
    return finish_line(p) == NI_OK;
  p.names.used = 0;
  text[len - 1] = ' '; /* the brace of the whole line */
  ni_reject r =
      parse_object(p, text + body, len - body, room - body, *f.sub, reinterpret_cast<char *>(&l) + f.offset);
  text[len - 1] = '}';
  return r == NI_OK && finish_line(p) == NI_OK;
}

void begin_line(ni_parser &p, ni_line *out) {
  out->kind = NI_LINE_UNKNOWN;
  out->has_header = out->is_p2p = false;
  out->kind_name = out->bad_key = out->unknown_key = nullptr;
  out->unknown_keys = out->head_no = out->func_no = 0;
  out->trace = nullptr;
  p.line = out;
  p.names.used = 0;
  p.numbers.used = 0;
  p.at = ni_marks{};
}

}  // namespace

extern "C" int ni_parser_new(struct ni_parser **out) {
  ni_tables_init();
  ni_parser *p = new (std::nothrow) ni_parser;
  if (p && (p->json.allocate(65536) || !ni_json_grow(p->names.text, p->names.size, 65536))) {
    ni_parser_free(p);
    p = nullptr;
  }
  *out = p;
  return p ? 0 : -ENOMEM;
}

extern "C" void ni_parser_free(struct ni_parser *p) {
  if (!p)
    return;
  delete[] p->copy;
  delete[] p->names.text;
  free(p->steps);
  free(p->metrics);
  free(p->numbers.number);
  delete p;
}

extern "C" enum ni_reject ni_parse_line(struct ni_parser *p, char *text, size_t len, size_t room,
                                        struct ni_line *out) {
  begin_line(*p, out);
  if (len > UINT32_MAX / 2)
    return NI_REJ_TOO_LONG;
  p->numbers.most = len / 2; /* a digit and a comma each */
  /* Names need what their text has, and bad_key and the 8-byte stores a little more. */
  if (!ni_json_grow(p->names.text, p->names.size, len + 4 * NI_KEY_MAX))
    return NI_REJ_NO_MEMORY;
  if (room < len + NI_PARSE_PADDING) {
    if (!ni_json_grow(p->copy, p->copy_size, len + NI_PARSE_PADDING))
      return NI_REJ_NO_MEMORY;
    memcpy(p->copy, text, len);
    memset(p->copy + len, 0, NI_PARSE_PADDING);
    text = p->copy;
    room = len + NI_PARSE_PADDING;
  }
  if (p->json.capacity() < len && p->json.allocate(len + len / 2))
    return NI_REJ_NO_MEMORY;
  ni_reject r = NI_OK;
  if (!parse_after_head(*p, text, len, room)) {
    size_t i = 0;
    while (i < len && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r'))
      i++;
    begin_line(*p, out);
    if (i == len)
      return NI_REJ_BLANK;
    r = parse_whole(*p, text, len, room);
    if (r == NI_OK)
      ni_heads_keep(&p->heads, text, len, p->at.stamp, p->at.kind_key, out);
    /* What is no JSON is that and nothing else, wherever the walk stopped: what it found wrong before may be
     * a consequence of it. Only lines that are rejected pay for this. */
    if (r >= NI_REJ_NO_PERF && r < NI_REJ_TOO_DEEP && !ni_json_is_line(p->json, text, len, room)) {
      r = NI_REJ_BAD_JSON;
      out->bad_key = nullptr;
    }
    if (r == NI_REJ_NOT_OBJECT && !strchr("[\"-0123456789tfn", text[i]))
      r = NI_REJ_BAD_JSON;
  }
  if (r == NI_OK && out->kind == NI_LINE_OP)
    out->func_no = number_function(*p, out->op.func);
  if (r == NI_OK && out->kind != NI_LINE_UNKNOWN)
    out->kind_name = out->kind == NI_LINE_OP ? ni_op_key(out->is_p2p) : ni_line_kind_name(out->kind);
  return r;
}
