/*
 * Sweeps as JSON: net_prof's and ours (sweep.h). Numbers are read from their text, so that a time keeps its nanoseconds.
 * Which keys are read of which object is in tables; what nobody asks for is passed over.
 */
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

/* What an object says, of whichever kind. Texts: NULL where there is none. */
struct fields {
  const char *name, *source, *path, *why, *sweep;
  ni_entity of; /* its texts and link */
  uint64_t interface;
  double seconds, numa = -1, ahead_s;
  ni_reading at[2] = {{0, 0, 0, NI_READ_MISSING}, {0, 0, 0, NI_READ_MISSING}};
};

enum how { TEXT, REAL, WHOLE, STAMP, VALUE };
struct key {
  const char *name;
  how is;
  size_t at;
};
#define AT(member) offsetof(fields, member)
/* A counter of a sweep has value and timestamp, one of a summary before, after and the seconds between. */
const key of_counter[] = {{"interface", WHOLE, AT(interface)}, {"counter_name", TEXT, AT(name)}, {"name", TEXT, AT(name)},
                          {"value", VALUE, AT(at[0])}, {"before", VALUE, AT(at[0])}, {"after", VALUE, AT(at[1])},
                          {"timestamp", STAMP, AT(at[0].real_ns)}, {"seconds", REAL, AT(seconds)}};
const key of_entity[] = {{"source", TEXT, AT(source)}, {"name", TEXT, AT(name)}, {"pci", TEXT, AT(of.pci)},
                         {"link", TEXT, AT(of.link)}, {"about", TEXT, AT(of.about)}, {"warning", TEXT, AT(of.warning)},
                         {"link_bytes_per_s", REAL, AT(of.link_bytes_s)}, {"numa", REAL, AT(numa)}, {"seconds", REAL, AT(seconds)},
                         {"monotonic_ahead_s", REAL, AT(ahead_s)}};
const key of_unread[] = {{"path", TEXT, AT(path)}, {"sweep", TEXT, AT(sweep)}, {"why", TEXT, AT(why)}};
const key of_meta[] = {{"path", TEXT, offsetof(ni_sweep, path)}, {"input_path", TEXT, offsetof(ni_sweep, input_path)},
                       {"started_at", TEXT, offsetof(ni_sweep, started)}, {"finished_at", TEXT, offsetof(ni_sweep, finished)},
                       {"duration_s", REAL, offsetof(ni_sweep, duration_s)}};

struct walk {
  ni_draft *d;
  const char *list; /* of which element is spoken: "counters" */
  size_t at;
};

bool fail(const walk &w, const char *what) { return ni_draft_fail(w.d, "%s[%zu]: %s", w.list, w.at, what); }
bool broken(const walk &w, error_code e) {
  return ni_draft_fail(w.d, "no JSON, near %s[%zu]: %s", w.list, w.at, simdjson::error_message(e));
}

/* A text without NUL and of a length that names have, as one of the draft's; "": NULL. */
bool keep(const walk &w, std::string_view s, const char **out) {
  char copy[NI_SWEEP_NAME + 1];
  if (s.size() > NI_SWEEP_NAME || memchr(s.data(), 0, s.size())) return fail(w, "a text longer than 255 bytes, or with a byte 0");
  copy[s.copy(copy, NI_SWEEP_NAME)] = 0;
  *out = *copy ? ni_set_text(&w.d->out->set, copy) : nullptr;
  return true;
}

/* null: as it is. A value may also be the text "unreadable". */
bool take(const walk &w, od::value &v, how is, void *to) {
  const char *t = v.raw_json_token().data(), *end;
  std::string_view s;
  if (ni_text_is_null(t)) return true;
  switch (is) {
    case TEXT:
      return v.get_string().get(s) ? fail(w, "want a text") : keep(w, s, (const char **)to);
    case REAL:
      return !v.get_double().get(*(double *)to) || fail(w, "want a number");
    case STAMP:
      end = ni_draft_stamp(t, (int64_t *)to);
      return (end && ni_text_ends(*end)) || fail(w, "want a time in seconds since 1970");
    case VALUE:
      ((ni_reading *)to)->state = *t == '"' ? NI_READ_UNREADABLE : NI_READ_OK;
      if (*t == '"') return true;
      to = &((ni_reading *)to)->value;
      [[fallthrough]];
    case WHOLE:
      end = ni_draft_number(t, (uint64_t *)to);
      return (end && ni_text_ends(*end)) || fail(w, "want a whole number of 64 bits");
  }
  return false;
}

/* Calls each(field, value) for the members of an object, a value or the document; false: why is said. */
template <class V, class F> bool members(const walk &w, V &v, F each) {
  od::object o;
  if (error_code e = v.get_object().get(o)) return e == simdjson::INCORRECT_TYPE ? fail(w, "want an object") : broken(w, e);
  for (auto item : o) {
    od::field f;
    if (error_code e = simdjson::simdjson_result<od::field>(item).get(f)) return broken(w, e);
    od::value x = f.value();
    if (!each(f, x)) return false;
  }
  return true;
}
/* Reads those of a table into what `to` points at; other(key, value) gets the others. */
template <size_t N, class F> bool object(const walk &w, od::value &v, const key (&table)[N], void *to, F other) {
  return members(w, v, [&](od::field &f, od::value &x) {
    for (const key &k : table)
      if (f.key().unsafe_is_equal(k.name)) return take(w, x, k.is, (char *)to + k.at);
    return other(f.key(), x);
  });
}
bool pass_over(od::raw_json_string, od::value &) { return true; }

/* Calls each(value) for the elements of an array, which w counts. */
template <class V, class F> bool elements(walk w, V &v, F each) {
  od::array a;
  if (error_code e = v.get_array().get(a)) return e == simdjson::INCORRECT_TYPE ? ni_draft_fail(w.d, "%s: want a list", w.list) : broken(w, e);
  for (auto item : a) {
    od::value x;
    if (error_code e = simdjson::simdjson_result<od::value>(item).get(x)) return broken(w, e);
    if (!each(w, x)) return false;
    w.at++;
  }
  return true;
}

int64_t span(double seconds) { return std::fabs(seconds) < 9e9 ? llround(seconds * 1e9) : 0; }

/* entity: whose it is; -1: of net_prof's list, where each says it. seconds: the entity's. */
bool counter(const walk &w, od::value &v, int64_t entity, double seconds) {
  fields f = {};
  char nic[32];
  f.seconds = seconds;
  if (!object(w, v, of_counter, &f, pass_over)) return false;
  if (entity < 0) {
    if (!f.name || f.at[0].state == NI_READ_MISSING) return fail(w, "without counter_name or value");
    if (f.interface == 0 || f.interface > 65536) return fail(w, "interface: want 1 to 65536");
    snprintf(nic, sizeof nic, "cxi%u", (unsigned)f.interface - 1);
    if ((entity = ni_draft_entity(w.d, NI_METRIC_CXI, nic)) < 0) return false;
  }
  if (!f.name) return fail(w, "without a name");
  if (w.d->sweeps == 2) f.at[1].real_ns = span(fmax(f.seconds, 0));
  return ni_draft_add(w.d, (uint32_t)entity, f.name, f.at);
}

bool listed(const walk &w, od::value &v) { return counter(w, v, -1, 0); }

/* A summary's counters that stand where they stood: {"name": value, ...}. */
bool unchanged(const walk &w, od::value &v, int64_t entity, double seconds) {
  return members(w, v, [&](od::field &field, od::value &x) {
    fields f = {};
    std::string_view name;
    if (error_code e = field.unescaped_key().get(name)) return broken(w, e);
    if (!keep(w, name, &f.name) || !take(w, x, VALUE, &f.at[0])) return false;
    f.at[1] = f.at[0];
    f.at[1].real_ns = span(fmax(seconds, 0));
    return ni_draft_add(w.d, (uint32_t)entity, f.name ? f.name : "", f.at);
  });
}

bool entity(const walk &w, od::value &v) {
  fields f = {};
  int64_t number = -1;
  auto begun = [&] { /* counters come when it is known whose they are */
    const char *source;
    for (unsigned i = 0; number < 0 && f.name && f.source && (source = ni_source_name(i)); i++)
      if (strcmp(source, f.source) == 0 && (number = ni_draft_entity(w.d, i, f.name)) < 0) return false;
    return number >= 0 || fail(w, "source and name have to come first, and the source to be one that is known");
  };
  if (!object(w, v, of_entity, &f, [&](od::raw_json_string key, od::value &x) {
        bool list = key.unsafe_is_equal("counters");
        if (!list && !key.unsafe_is_equal("unchanged")) return true;
        if (!begun()) return false;
        walk in = {w.d, f.name, 0};
        if (!list) return unchanged(in, x, number, f.seconds);
        return elements(in, x, [&](const walk &at, od::value &c) { return counter(at, c, number, f.seconds); });
      }) ||
      !begun())
    return false;
  ni_draft_owner &to = w.d->entity[number];
  f.of.source = to.of.source;
  f.of.name = to.of.name;
  f.of.numa = f.numa >= 0 && f.numa < 65536 ? (int)f.numa : -1;
  to.of = f.of;
  to.ahead_ns = span(f.ahead_s);
  return true;
}

bool unread(const walk &w, od::value &v) {
  fields f = {};
  if (!object(w, v, of_unread, &f, pass_over)) return false;
  ni_set_unread(&w.d->out[f.sweep && strcmp(f.sweep, "after") == 0].set, f.path ? f.path : "", f.why ? f.why : "");
  return w.at < NI_SWEEP_COUNTERS;
}

/* The whole; what net_prof does not know stands in an object of its own in it. */
template <class V> bool document(ni_draft *d, V &v) {
  walk w = {d, "keys", 0};
  return members(w, v, [&](od::field &f, od::value &x) {
    od::raw_json_string key = f.key();
    const char *schema = nullptr;
    w.at++;
    if (key.unsafe_is_equal("meta") || key.unsafe_is_equal("before")) return object({d, "meta", 0}, x, of_meta, &d->out[0], pass_over);
    if (key.unsafe_is_equal("after")) return object({d, "after", 0}, x, of_meta, &d->out[1], pass_over);
    if (key.unsafe_is_equal("counters")) return elements({d, "counters", 0}, x, listed);
    if (key.unsafe_is_equal("entities")) return elements({d, "entities", 0}, x, entity);
    if (key.unsafe_is_equal("unread")) return elements({d, "unread", 0}, x, unread);
    if (key.unsafe_is_equal("nccl_inspector")) return document(d, x);
    if (!key.unsafe_is_equal("schema_version")) return true;
    d->sweeps = 2;
    if (!take(w, x, TEXT, &schema)) return false;
    return (schema && strcmp(schema, "nccl-inspector-counters-1") == 0) || ni_draft_fail(d, "of another schema: want nccl-inspector-counters-1");
  });
}

}  // namespace

bool ni_draft_json(ni_draft *d, char *text, size_t len) {
  od::parser json;
  od::document doc;
  if (error_code e = json.iterate(text, len, len + NI_PARSE_PADDING).get(doc)) return broken({d, "keys", 0}, e);
  bool list = text[strspn(text, " \t\r\n")] == '[';
  if (list ? !elements({d, "counters", 0}, doc, listed) : !document(d, doc)) return false;
  return doc.current_location().error() == simdjson::OUT_OF_BOUNDS || ni_draft_fail(d, "something stands behind the JSON");
}
