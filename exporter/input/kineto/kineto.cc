/* A small machine cuts the text into members of the file and elements of traceEvents; simdjson verifies and reads each. */
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>
#include <zlib.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

extern "C" {
#include "exporter/base/index.h"
#include "exporter/base/text/json_numbers.h"
#include "kineto.h"
}

namespace dom = simdjson::dom;
using std::string_view;

namespace {

constexpr size_t item_max = 1 << 20, depth_max = 32;
constexpr string_view list_key = "{\"traceEvents\":";

struct reading {
  int (*take)(void *, const ni_kineto_event *);
  void *arg;
  dom::parser parser;
  ni_kineto_event event;
  uint64_t *bad;
  size_t n = 0, depth = 0;
  bool listing = false, was_list = false, quoted = false, escaped = false;
  char in[64 << 10], text[item_max + simdjson::SIMDJSON_PADDING];
  char again[NI_JSON_QUOTED_MAX(item_max) + simdjson::SIMDJSON_PADDING]; /* text, with what cannot be held in quotes */
};

void copy(char (&to)[128], string_view from) {
  size_t n = from.copy(to, sizeof to - 1);
  while (n < from.size() && n && (from[n] & 0xc0) == 0x80) n--; /* no half character */
  to[n] = 0;
}

/* Numbers and texts: pids are both. */
uint64_t hash_of(uint64_t hash, const dom::object &o, const char *key) {
  dom::element x;
  return o[key].get(x) ? hash : ni_hash_text(hash, simdjson::minify(x).c_str());
}

int64_t ns_of(const dom::object &o, const char *key) {
  double us;
  if (o[key].get(us) || std::fabs(us) > 9e15) return INT64_MIN;
  return (int64_t)std::floor(us) * 1000 + llround((us - std::floor(us)) * 1000);
}

/* The object that was cut out. Numbers of it that nobody can hold are texts: they do not cost the rest. false: it is none. */
bool parse(reading &r, dom::object &o) {
  if (r.n > item_max) return false;
  if (!r.parser.parse(r.text, r.n, false).get(o)) return true;
  r.text[r.n] = 0; /* where its last number ends */
  size_t n = ni_json_quote_numbers(r.text, r.n, r.again);
  return n != r.n && !r.parser.parse(r.again, n, false).get(o);
}

/* What was cut out: an event, or a member of the file with braces around it. */
int item(reading &r) {
  dom::object o;
  string_view text;
  int64_t number;
  if (!parse(r, o)) return ++*r.bad, 0;
  ni_kineto_event &e = r.event = {};
  e.base_ns = e.ts_ns = INT64_MIN;
  e.rank = -1;
  if (!r.listing) {
    if (!o["baseTimeNanoseconds"].get(number)) e.base_ns = number;
    if (!o["distributedInfo"]["rank"].get(number) && number >= 0 && number <= INT32_MAX) e.rank = (int32_t)number;
    return r.take(r.arg, &e);
  }
  e.phase = !o["ph"].get(text) && text.size() == 1 && text[0] ? text[0] : '?';
  if (!o["name"].get(text)) copy(e.name, text);
  e.process = hash_of(0, o, "pid");
  e.place = hash_of(e.process, o, "tid");
  e.ts_ns = ns_of(o, "ts");
  e.dur_ns = ns_of(o, "dur");
  if (!o["args"][strcmp(e.name, "process_labels") == 0 ? "labels" : "name"].get(text)) copy(e.label, text);
  return r.take(r.arg, &e);
}

int end_item(reading &r) {
  bool any = r.n > 1;
  if (!r.listing && r.n < item_max) r.text[r.n++] = '}';
  int e = any ? item(r) : 0;
  r.n = r.listing ? 0 : 1;
  r.text[0] = '{';
  return e;
}

int take_char(reading &r, char c) {
  size_t level = r.listing ? 2 : 1; /* where a comma ends an item */
  if (r.quoted) {
    r.quoted = r.escaped || c != '"';
    r.escaped = !r.escaped && c == '\\';
  } else if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
    return 0;
  } else if (c == '"') {
    r.quoted = true;
  } else if (c == '{' || c == '[') {
    if (++r.depth == 1) return r.n = 1, r.text[0] = '{', c == '{' && !r.was_list ? 0 : -EBADMSG;
    if (r.depth == 2 && c == '[' && !r.was_list && string_view(r.text, r.n < 32 ? r.n : 32) == list_key)
      return r.n = 0, r.listing = r.was_list = true, 0;
  } else if ((c == '}' || c == ']' || c == ',') && r.depth == level) {
    int e = end_item(r);
    if (c == ',' || e) return e;
    r.depth--;
    if (r.listing) r.n = 1;
    return r.listing = false, 0;
  } else if ((c == '}' || c == ']') && r.depth) {
    r.depth--;
  }
  if (r.depth == 0) return -EBADMSG;
  if (r.n < item_max) r.text[r.n] = c;
  r.n++;
  return 0;
}

}  // namespace

int ni_kineto_read(const char *path, int (*take)(void *arg, const ni_kineto_event *e), void *arg, uint64_t *bad) {
  std::unique_ptr<reading> r(new (std::nothrow) reading);
  if (!r || r->parser.allocate(item_max, depth_max)) return -ENOMEM;
  gzFile file = gzopen(path, "rb");
  int n = 0, e = file ? 0 : errno ? -errno : -ENOMEM;
  r->take = take;
  r->arg = arg;
  r->bad = bad;
  while (e == 0 && (n = gzread(file, r->in, sizeof r->in)) > 0)
    for (int i = 0; e == 0 && i < n; i++) e = take_char(*r, r->in[i]);
  if (file) gzclose(file);
  return e ? e : n < 0 || r->depth || !r->was_list ? -EBADMSG : 0;
}
