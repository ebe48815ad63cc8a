/*
 * Sweeps as JSON: net_prof's and ours (sweep.h). Numbers are read from their text, so that a time keeps its nanoseconds.
 * What nobody asks for is passed over.
 */
#if !__has_include(<simdjson.h>)
#error "simdjson.h not found: install libsimdjson-dev (the exporter's JSON parser)"
#endif
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "draft.h"
#include "exporter/input/parse/parse.h"
#include "exporter/input/parse/parse_text.h"

namespace od = simdjson::ondemand;
using simdjson::error_code;

static_assert(NI_PARSE_PADDING >= simdjson::SIMDJSON_PADDING, "texts need simdjson's padding");

namespace {

struct walk {
  ni_draft *d;
  const char *list; /* of which element is spoken: "counters" */
  size_t at;
};

bool fail(const walk &w, const char *what) { return ni_draft_fail(w.d, "%s[%zu]: %s", w.list, w.at, what); }
bool broken(const walk &w, error_code e) {
  return ni_draft_fail(w.d, "no JSON, near %s[%zu]: %s", w.list, w.at, simdjson::error_message(e));
}

const char *token(od::value &v) { return v.raw_json_token().data(); }

/* Calls each(key, value) for the members of an object; false: why is said. */
template <class F> bool members(const walk &w, od::object o, F each) {
  for (auto item : o) {
    od::field f;
    if (error_code e = simdjson::simdjson_result<od::field>(item).get(f)) return broken(w, e);
    od::value v = f.value();
    if (!each(f.key(), v)) return false;
  }
  return true;
}
template <class F> bool members(const walk &w, od::value &v, F each) {
  od::object o;
  if (v.get_object().get(o)) return fail(w, "want an object");
  return members(w, o, each);
}
/* The same for the elements of an array, which w counts. */
template <class F> bool elements(walk &w, od::array a, F each) {
  w.at = 0;
  for (auto item : a) {
    od::value v;
    if (error_code e = simdjson::simdjson_result<od::value>(item).get(v)) return broken(w, e);
    if (!each(v)) return false;
    w.at++;
  }
  return true;
}
template <class F> bool elements(walk &w, od::value &v, F each) {
  od::array a;
  if (v.get_array().get(a)) return ni_draft_fail(w.d, "%s: want a list", w.list);
  return elements(w, a, each);
}

/* A text without NUL and of a length that names have. null is "". */
bool text(const walk &w, od::value &v, char out[NI_SWEEP_NAME + 1]) {
  std::string_view s;
  *out = 0;
  if (ni_text_is_null(token(v))) return true;
  if (v.get_string().get(s)) return fail(w, "want a text");
  if (s.size() > NI_SWEEP_NAME || memchr(s.data(), 0, s.size())) return fail(w, "a text longer than 255 bytes, or with a byte 0");
  memcpy(out, s.data(), s.size());
  out[s.size()] = 0;
  return true;
}
bool keep(const walk &w, od::value &v, const char **out) {
  char s[NI_SWEEP_NAME + 1];
  if (!text(w, v, s)) return false;
  *out = *s ? ni_set_text(&w.d->heads, s) : nullptr;
  return true;
}
bool real(const walk &w, od::value &v, double *out) {
  if (ni_text_is_null(token(v))) return true;
  return !v.get_double().get(*out) || fail(w, "want a number");
}
bool whole(const walk &w, od::value &v, uint64_t *out) {
  const char *end = ni_draft_number(token(v), out);
  return (end && ni_text_ends(*end)) || fail(w, "want a whole number of 64 bits");
}
bool stamp(const walk &w, od::value &v, int64_t *ns) {
  if (ni_text_is_null(token(v))) return true; /* net_prof's where it was none */
  const char *end = ni_draft_stamp(token(v), ns);
  return (end && ni_text_ends(*end)) || fail(w, "want a time in seconds since 1970");
}
/* null: the sweep has it not; "unreadable". */
bool value(const walk &w, od::value &v, ni_reading *r) {
  const char *t = token(v);
  if (ni_text_is_null(t)) return true;
  r->state = *t == '"' ? NI_READ_UNREADABLE : NI_READ_OK;
  return *t == '"' || whole(w, v, &r->value);
}

/* An element of net_prof's list. */
bool counter(const walk &w, od::value &v, uint64_t &last, int64_t &nic) {
  char name[NI_SWEEP_NAME + 1] = "";
  uint64_t interface = 0;
  ni_reading at[2] = {};
  at[0].state = NI_READ_MISSING;
  if (!members(w, v, [&](od::raw_json_string key, od::value &x) {
        if (key.unsafe_is_equal("interface")) return whole(w, x, &interface);
        if (key.unsafe_is_equal("counter_name")) return text(w, x, name);
        if (key.unsafe_is_equal("value")) return value(w, x, &at[0]);
        if (key.unsafe_is_equal("timestamp")) return stamp(w, x, &at[0].real_ns);
        return true;
      }))
    return false;
  if (!*name || at[0].state == NI_READ_MISSING) return fail(w, "without counter_name or value");
  if (interface == 0 || interface > 65536) return fail(w, "interface: want 1 to 65536");
  if (interface != last) {
    char of[32];
    snprintf(of, sizeof of, "cxi%u", (unsigned)interface - 1);
    if ((nic = ni_draft_entity(w.d, NI_METRIC_CXI, of)) < 0) return false;
    last = interface;
  }
  return ni_draft_add(w.d, (uint32_t)nic, name, at);
}

template <class A> bool counters(ni_draft *d, A &list) {
  walk w = {d, "counters", 0};
  uint64_t last = 0;
  int64_t nic = -1;
  return elements(w, list, [&](od::value &v) { return counter(w, v, last, nic); });
}

bool meta(ni_draft *d, const char *name, od::value &v, ni_sweep *m) {
  walk w = {d, name, 0};
  return members(w, v, [&](od::raw_json_string key, od::value &x) {
    if (key.unsafe_is_equal("input_path")) return keep(w, x, &m->input_path);
    if (key.unsafe_is_equal("path")) return keep(w, x, &m->path);
    if (key.unsafe_is_equal("started_at")) return keep(w, x, &m->started);
    if (key.unsafe_is_equal("finished_at")) return keep(w, x, &m->finished);
    if (key.unsafe_is_equal("duration_s")) return real(w, x, &m->duration_s);
    return true;
  });
}

/* ---- what net_prof does not know ---- */

struct entity {
  char source[NI_SWEEP_NAME + 1], name[NI_SWEEP_NAME + 1];
  int64_t number;
  double seconds; /* a summary's */
};

/* Its number, once source and name are known; false: they are not. */
bool begun(const walk &w, entity &e) {
  const char *name;
  for (unsigned i = 0; e.number < 0 && *e.name && (name = ni_source_name(i)); i++)
    if (strcmp(name, e.source) == 0 && (e.number = ni_draft_entity(w.d, i, e.name)) < 0) return false;
  return e.number >= 0 || fail(w, "source and name have to come first, and the source to be one that is known");
}

/* A counter of a sweep has value and timestamp, one of a summary before, after and the seconds between. */
bool own_counter(const walk &w, entity &e, od::value &v) {
  char name[NI_SWEEP_NAME + 1] = "";
  double seconds = e.seconds;
  ni_reading at[2] = {};
  at[0].state = at[1].state = NI_READ_MISSING;
  if (!members(w, v, [&](od::raw_json_string key, od::value &x) {
        if (key.unsafe_is_equal("name")) return text(w, x, name);
        if (key.unsafe_is_equal("value") || key.unsafe_is_equal("before")) return value(w, x, &at[0]);
        if (key.unsafe_is_equal("after")) return value(w, x, &at[1]);
        if (key.unsafe_is_equal("seconds")) return real(w, x, &seconds);
        if (key.unsafe_is_equal("timestamp")) return stamp(w, x, &at[0].real_ns);
        return true;
      }))
    return false;
  if (!*name) return fail(w, "without a name");
  if (w.d->sweeps == 2) at[1].real_ns = seconds > 0 && seconds < 9e9 ? llround(seconds * 1e9) : 0;
  return ni_draft_add(w.d, (uint32_t)e.number, name, at);
}

/* A summary's counters that stand where they stood: {"name": value, ...}. */
bool unchanged(const walk &w, entity &e, od::value &v) {
  return members(w, v, [&](od::raw_json_string key, od::value &x) {
    const char *raw = key.raw(), *end = strchr(raw, '"');
    char name[NI_SWEEP_NAME + 1];
    ni_reading at[2] = {};
    if (!end || end - raw > NI_SWEEP_NAME || memchr(raw, '\\', (size_t)(end - raw))) return fail(w, "a name that no counter has");
    memcpy(name, raw, (size_t)(end - raw));
    name[end - raw] = 0;
    if (!value(w, x, &at[0])) return false;
    at[1] = at[0];
    at[1].real_ns = e.seconds > 0 && e.seconds < 9e9 ? llround(e.seconds * 1e9) : 0;
    return ni_draft_add(w.d, (uint32_t)e.number, name, at);
  });
}

bool own_entity(const walk &w, od::value &v) {
  entity e = {{0}, {0}, -1, 0};
  double ahead = NAN, numa = -1;
  if (!members(w, v, [&](od::raw_json_string key, od::value &x) {
        if (key.unsafe_is_equal("source")) return text(w, x, e.source);
        if (key.unsafe_is_equal("name")) return text(w, x, e.name);
        if (!begun(w, e)) return false;
        ni_entity *to = &w.d->heads.entity[e.number];
        walk in = {w.d, to->name, 0};
        if (key.unsafe_is_equal("pci")) return keep(w, x, &to->pci);
        if (key.unsafe_is_equal("link")) return keep(w, x, &to->link);
        if (key.unsafe_is_equal("about")) return keep(w, x, &to->about);
        if (key.unsafe_is_equal("warning")) return keep(w, x, &to->warning);
        if (key.unsafe_is_equal("link_bytes_per_s")) return real(w, x, &to->link_bytes_s);
        if (key.unsafe_is_equal("numa")) return real(w, x, &numa);
        if (key.unsafe_is_equal("seconds")) return real(w, x, &e.seconds);
        if (key.unsafe_is_equal("monotonic_ahead_s")) return real(w, x, &ahead);
        if (key.unsafe_is_equal("counters")) return elements(in, x, [&](od::value &c) { return own_counter(in, e, c); });
        if (key.unsafe_is_equal("unchanged")) return unchanged(in, e, x);
        return true;
      }))
    return false;
  if (!begun(w, e)) return false;
  w.d->heads.entity[e.number].numa = numa >= 0 && numa < 65536 ? (int)numa : -1;
  if (std::fabs(ahead) < 9e9) w.d->ahead_ns[e.number] = llround(ahead * 1e9);
  return true;
}

bool entities(ni_draft *d, od::value &v) {
  walk w = {d, "entities", 0};
  return elements(w, v, [&](od::value &x) { return own_entity(w, x); });
}

bool unread(ni_draft *d, od::value &v) {
  walk w = {d, "unread", 0};
  return elements(w, v, [&](od::value &x) {
    const char *path = nullptr, *why = nullptr, *of = nullptr;
    if (!members(w, x, [&](od::raw_json_string key, od::value &y) {
          if (key.unsafe_is_equal("path")) return keep(w, y, &path);
          if (key.unsafe_is_equal("sweep")) return keep(w, y, &of);
          return key.unsafe_is_equal("why") ? keep(w, y, &why) : true;
        }))
      return false;
    ni_set_unread(&d->meta[of && strcmp(of, "after") == 0].set, path ? path : "", why ? why : "");
    return w.at < NI_SWEEP_COUNTERS;
  });
}

bool document(ni_draft *d, od::object o) {
  walk w = {d, "keys", 0};
  return members(w, o, [&](od::raw_json_string key, od::value &v) {
    w.at++;
    if (key.unsafe_is_equal("schema_version")) {
      char schema[NI_SWEEP_NAME + 1];
      if (!text(w, v, schema)) return false;
      if (strcmp(schema, "nccl-inspector-counters-1") != 0) return ni_draft_fail(d, "of another schema: want nccl-inspector-counters-1");
      d->sweeps = 2;
      return true;
    }
    if (key.unsafe_is_equal("meta") || key.unsafe_is_equal("before")) return meta(d, "meta", v, &d->meta[0]);
    if (key.unsafe_is_equal("after")) return meta(d, "after", v, &d->meta[1]);
    if (key.unsafe_is_equal("counters")) return counters(d, v);
    if (key.unsafe_is_equal("entities")) return entities(d, v);
    if (key.unsafe_is_equal("unread")) return unread(d, v);
    if (!key.unsafe_is_equal("nccl_inspector")) return true;
    return members(w, v, [&](od::raw_json_string own, od::value &x) {
      if (own.unsafe_is_equal("entities")) return entities(d, x);
      return own.unsafe_is_equal("unread") ? unread(d, x) : true;
    });
  });
}

}  // namespace

bool ni_draft_json(ni_draft *d, char *text, size_t len) {
  od::parser json;
  od::document doc;
  walk w = {d, "keys", 0};
  if (error_code e = json.iterate(text, len, len + NI_PARSE_PADDING).get(doc)) return broken(w, e);
  bool fine;
  if (text[strspn(text, " \t\r\n")] == '[') {
    od::array a;
    if (error_code e = doc.get_array().get(a)) return broken(w, e);
    fine = counters(d, a);
  } else {
    od::object o;
    if (error_code e = doc.get_object().get(o)) return broken(w, e);
    fine = document(d, o);
  }
  return fine && (doc.current_location().error() == simdjson::OUT_OF_BOUNDS || ni_draft_fail(d, "something stands behind the JSON"));
}
