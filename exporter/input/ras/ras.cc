/*
 * The parser. simdjson verifies all of the text first; what is read afterwards is read by type, and each
 * communicator by itself.
 */
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "exporter/input/parse/parse.h"
#include "exporter/input/parse/parse_text.h"
#include "exporter/input/parse/parse_value.h"
extern "C" {
#include "exporter/base/array.h"
#include "exporter/base/text/json_numbers.h"
#include "ras.h"
}

using std::string_view;

namespace {

struct refusal {
  char why[300];
};

[[noreturn, gnu::format(printf, 1, 2)]] void refuse(const char *format, ...) {
  refusal r;
  va_list args;
  va_start(args, format);
  vsnprintf(r.why, sizeof r.why, format, args);
  va_end(args);
  throw r;
}

constexpr size_t mend_most = 16 << 20; /* it takes six times that */

template <size_t N>
void copy_text(char (&to)[N], string_view from) {
  to[from.copy(to, N - 1)] = 0;
}

/* A member that is there and is not null. */
bool find_member(od::object &o, const char *key, od::value &v) {
  return !o[key].get(v) && !ni_text_is_null(ni_json_token(v));
}

template <size_t N>
void read_text(od::object &o, const char *key, char (&to)[N]) {
  od::value v;
  string_view s;
  if (find_member(o, key, v) && !v.get_string().get(s))
    copy_text(to, s);
}

/* One communicator, as long as nothing in it is odd. */
struct sense {
  const char *odd = nullptr;
  void note_odd(const char *what) {
    if (!odd)
      odd = what;
  }
  int64_t read_number(od::object &o, const char *key, int64_t least, int64_t most, const char *what) {
    od::value v;
    int64_t n;
    if (!find_member(o, key, v))
      return NI_RAS_NONE;
    if (!v.get_int64().get(n) && n >= least && n <= most)
      return n;
    note_odd(what);
    return NI_RAS_NONE;
  }
  bool read_flag(od::object &o, const char *key) {
    od::value v;
    bool b = false;
    if (find_member(o, key, v) && v.get_bool().get(b))
      note_odd("a flag that is neither true nor false");
    return b;
  }
};

/* The place of a function's counts, NI_RAS_FUNCS: there is none left. */
size_t find_or_add_place(ni_ras *r, string_view name) {
  char key[sizeof r->func[0]];
  copy_text(key, name);
  for (size_t i = 0; i < r->n_funcs; i++)
    if (strcmp(r->func[i], key) == 0)
      return i;
  if (r->n_funcs == NI_RAS_FUNCS)
    return r->funcs_left_out++, NI_RAS_FUNCS;
  memcpy(r->func[r->n_funcs], key, sizeof key);
  return r->n_funcs++;
}

void read_counts(ni_ras *r, sense &s, ni_ras_rank &x, od::object &o) {
  od::value v;
  od::object all;
  if (!find_member(o, "collective_counts", v))
    return;
  if (v.get_object().get(all))
    return s.note_odd("counts that are no object");
  x.counted = true;
  for (auto member : all) {
    od::field f;
    string_view name;
    uint64_t n;
    if (simdjson::simdjson_result<od::field>(member).get(f) || f.unescaped_key().get(name))
      refuse("no JSON");
    if (f.value().get_uint64().get(n) || n > (uint64_t)INT64_MAX)
      return s.note_odd("a count that is no number of operations");
    size_t at = find_or_add_place(r, name);
    if (at < NI_RAS_FUNCS)
      x.count[at] = n;
  }
}

void read_status(sense &s, ni_ras_rank &x, od::object &o, bool missing) {
  od::value v;
  od::object st;
  if (missing)
    x.here = NI_RAS_ABSENT;
  if (!find_member(o, "status", v))
    return;
  if (v.get_object().get(st))
    return s.note_odd("a status that is no object");
  if (missing) {
    if (s.read_flag(st, "unresponsive"))
      x.here = NI_RAS_UNRESPONSIVE;
    if (s.read_flag(st, "considered_dead"))
      x.here = NI_RAS_DEAD;
    return;
  }
  x.init_state = (int32_t)s.read_number(st, "init_state", 0, 1000, "an init_state that NCCL does not have");
  x.async_error =
      (int32_t)s.read_number(st, "async_error", 0, 1000, "an async_error that NCCL does not have");
  x.finalize = s.read_flag(st, "finalize_called");
  x.destroy = s.read_flag(st, "destroy_flag");
  x.abort = s.read_flag(st, "abort_flag");
}

void add_rank(ni_ras *r, sense &s, od::object &o, bool missing) {
  if (r->n_ranks == NI_RAS_RANKS)
    refuse("more than %d ranks", NI_RAS_RANKS);
  if (!ni_array_room(r->rank, r->n_ranks, r->cap_ranks))
    throw std::bad_alloc();
  ni_ras_rank &x = r->rank[r->n_ranks++];
  x = {};
  x.init_state = x.async_error = NI_RAS_NONE;
  x.rank = (int32_t)s.read_number(o, "rank", 0, NI_RAS_SIZE, "a rank that is no number of one");
  if (x.rank < 0)
    s.note_odd("a rank without a number");
  read_text(o, "host", x.host);
  if (strcmp(x.host, "unknown") == 0)
    *x.host = 0;
  x.pid = s.read_number(o, "pid", -1, INT32_MAX, "a pid that is none");
  x.cuda_dev = (int32_t)s.read_number(o, "cuda_dev", -1, 65535, "a cuda_dev that is none");
  x.nvml_dev = (int32_t)s.read_number(o, "nvml_dev", -1, 65535, "an nvml_dev that is none");
  read_status(s, x, o, missing);
  if (!missing)
    read_counts(r, s, x, o);
}

void add_ranks(ni_ras *r, sense &s, od::object &o, const char *key, bool missing) {
  od::value v;
  od::array list;
  if (!find_member(o, key, v))
    return missing ? void() : s.note_odd("no list of ranks");
  if (v.get_array().get(list))
    return s.note_odd("ranks that are no list");
  for (auto x : list) {
    od::object rank;
    if (x.get_object().get(rank))
      s.note_odd("a rank that is no object");
    else
      add_rank(r, s, rank, missing);
  }
}

void read_hash(sense &s, od::object &o, uint64_t *hash) {
  char said[32] = "", *end;
  read_text(o, "hash", said);
  errno = 0;
  *hash = strtoull(said, &end, 16);
  bool hex = said[0] == '0' && (said[1] == 'x' || said[1] == 'X') && end > said + 2;
  if (!hex || *end || errno)
    s.note_odd("a hash that is no 0x...");
}

void add_communicator(ni_ras *r, od::object &o) {
  if (r->n_comms == NI_RAS_COMMS)
    refuse("more than %d communicators", NI_RAS_COMMS);
  if (!ni_array_room(r->comm, r->n_comms, r->cap_comms))
    throw std::bad_alloc();
  ni_ras_comm *c = &r->comm[r->n_comms++];
  sense s;
  *c = {};
  c->first = r->n_ranks;
  read_hash(s, o, &c->hash);
  read_text(o, "secondary_hash", c->secondary);
  c->size = (int32_t)s.read_number(o, "size", 1, NI_RAS_SIZE, "a size that no communicator has");
  int64_t here = s.read_number(o, "ranks_count", 0, NI_RAS_SIZE, "a ranks_count that is none");
  int64_t missing =
      s.read_number(o, "missing_ranks_count", 0, NI_RAS_SIZE, "a missing_ranks_count that is none");
  add_ranks(r, s, o, "ranks", false);
  size_t there = r->n_ranks - c->first;
  add_ranks(r, s, o, "missing_ranks", true);
  c->n = r->n_ranks - c->first;
  if (here >= 0 && (size_t)here != there)
    s.note_odd("another number of ranks than it says");
  if (missing >= 0 && (size_t)missing != c->n - there)
    s.note_odd("another number of missing ranks than it says");
  if (c->size < 0)
    s.note_odd("no size");
  if (c->n == 0)
    s.note_odd("no ranks");
  std::sort(r->rank + c->first, r->rank + c->first + c->n,
            [](const ni_ras_rank &a, const ni_ras_rank &b) { return a.rank < b.rank; });
  for (size_t i = 0; i < c->n; i++) {
    const ni_ras_rank *x = &r->rank[c->first + i];
    if (x->rank >= c->size)
      s.note_odd("a rank beyond its size");
    if (i && x[-1].rank == x->rank)
      s.note_odd("the same rank twice");
  }
  c->odd = s.odd;
}

void read_ras_state(ni_ras *r, od::object &o) {
  od::value v;
  od::object ras;
  double seconds;
  int64_t n;
  if (!find_member(o, "ras", v) || v.get_object().get(ras))
    return;
  const bool has_time = find_member(ras, "collection_time_sec", v) && !v.get_double().get(seconds);
  if (has_time && seconds >= 0 && seconds < 1e6)
    r->collection_s = seconds;
  if (find_member(ras, "timeouts_count", v) && !v.get_int64().get(n) && n >= 0)
    r->timeouts = n;
}

void read_document(ni_ras *r, od::object &o) {
  od::value v;
  od::array list;
  read_text(o, "nccl_version", r->nccl_version);
  read_text(o, "timestamp", r->timestamp);
  if (!find_member(o, "communicators", v))
    refuse("JSON, and no answer of RAS: it has no \"communicators\"");
  if (v.get_array().get(list))
    refuse("\"communicators\" is no list");
  for (auto x : list) {
    od::object comm;
    if (x.get_object().get(comm))
      refuse("communicators[%zu] is no object", r->n_comms);
    add_communicator(r, comm);
  }
  read_ras_state(r, o);
}

/* false: no JSON, or deeper than a log may be. Only what has been verified is read. */
bool read_answer(ni_ras *r, char *text, size_t len, size_t room) {
  od::parser json;
  od::document doc;
  od::value all;
  od::object o;
  const char *rest;
  if (json.iterate(text, len, room).get(doc) || doc.get_value().get(all))
    return false;
  ni_reject verified = ni_json_verify(all, 1);
  if (verified == NI_REJ_TOO_DEEP)
    refuse("JSON nested too deep to be an answer of RAS");
  if (verified || doc.current_location().get(rest) != simdjson::OUT_OF_BOUNDS)
    return false;
  doc.rewind();
  if (doc.get_object().get(o))
    refuse("JSON, and no answer of RAS: want an object");
  read_document(r, o);
  return true;
}

/* Does a quote in a text end it? Behind the end of one stands what JSON has there. */
bool is_end_of_text(const char *t, const char *end) {
  while (t < end && (*t == ' ' || *t == '\n' || *t == '\r' || *t == '\t'))
    t++;
  return t == end || strchr(",:}]", *t);
}

/* NCCL 2.28.7 and 2.28.9 write no comma between a missing rank's last number and its "status". */
bool is_comma_owed(const std::string &out) {
  size_t last = out.find_last_not_of(" \n\r\t");
  return last != out.npos && out[last] >= '0' && out[last] <= '9';
}

/*
 * RAS escapes nothing: what a text may not hold is escaped, or becomes '?'. Numbers that nobody can hold
 * become texts.
 */
std::string mend_text(const char *t, size_t len) {
  std::string out;
  bool quoted = false;
  for (const char *end = t + len; t < end; t++) {
    unsigned char c = (unsigned char)*t;
    if (!quoted) {
      quoted = c == '"';
      if (quoted && is_comma_owed(out))
        out += ',';
      out += *t;
    } else if (c == '"') {
      quoted = !is_end_of_text(t + 1, end);
      out += quoted ? "\\\"" : "\"";
    } else if (c == '\\') {
      out += "\\\\";
    } else {
      out += c < 0x20 || c >= 0x7f ? '?' : *t;
    }
  }
  std::string numbers(NI_JSON_QUOTED_MAX(out.size()) + NI_PARSE_PADDING, '\0');
  numbers.resize(ni_json_quote_numbers(out.c_str(), out.size(), numbers.data()));
  return numbers;
}

void clear_answer(ni_ras *r) {
  ni_ras_free(r);
  r->collection_s = -1;
  r->timeouts = NI_RAS_NONE;
}

void parse_answer(ni_ras *r, char *text, size_t len) {
  if (len > NI_RAS_BYTES)
    refuse("more than %d MiB: no answer of RAS is as long", NI_RAS_BYTES >> 20);
  if (memchr(text, 0, len))
    refuse("a byte 0 at %zu: no answer of RAS", strlen(text));
  size_t blank = strspn(text, " \t\r\n");
  if (text[blank] != '{')
    refuse(blank == len ? "it is empty" : "no JSON: want what `ncclras -f json` prints, not its plain text");
  if (read_answer(r, text, len, len + NI_PARSE_PADDING))
    return;
  clear_answer(r);
  if (len > mend_most)
    refuse("no JSON: it is cut, or something else answers there");
  std::string mended = mend_text(text, len);
  size_t n = mended.size();
  mended.resize(n + NI_PARSE_PADDING);
  r->mended = true;
  if (!read_answer(r, mended.data(), n, mended.size()))
    refuse("no JSON: it is cut, or something else answers there");
}

}  // namespace

int ni_ras_parse(struct ni_ras *out, char *text, size_t len, char *why, size_t cap) {
  *out = {};
  clear_answer(out);
  int e = -EBADMSG;
  try {
    parse_answer(out, text, len);
    return 0;
  } catch (const refusal &r) {
    snprintf(why, cap, "%s", r.why);
  } catch (const std::bad_alloc &) {
    snprintf(why, cap, "no memory");
    e = -ENOMEM;
  }
  ni_ras_free(out);
  return e;
}

void ni_ras_free(struct ni_ras *r) {
  free(r->comm);
  free(r->rank);
  *r = {};
}
