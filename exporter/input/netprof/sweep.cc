/*
 * Sweeps as JSON, net_prof's and ours, and as net_prof's text. Numbers are read from their text, so that a
 * time keeps its nanoseconds. A file is gathered in its own order and laid out by entity; what nobody asks
 * for is passed over.
 */
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "exporter/input/parse/parse.h"
#include "exporter/input/parse/parse_text.h"
#include "exporter/input/parse/parse_value.h"
extern "C" {
#include "exporter/input/whole.h"
#include "names.h"
#include "sweep.h"
}

using std::string_view;

namespace {

struct refusal {
  char why[400];
};

[[noreturn, gnu::format(printf, 1, 2)]] void refuse(const char *format, ...) {
  refusal r;
  va_list args;
  va_start(args, format);
  vsnprintf(r.why, sizeof r.why, format, args);
  va_end(args);
  throw r;
}

struct item {
  uint32_t entity;
  const char *name;
  ni_reading at[2];
};

struct owner {
  ni_entity of;
  int64_t ahead_ns; /* CLOCK_MONOTONIC less CLOCK_REALTIME in its readings; 0: not known */
  size_t n[2];      /* of its items, by sweep */
};

constexpr ni_reading missing = {0, 0, 0, NI_READ_MISSING};

struct draft {
  ni_sweep *out; /* both; all texts are in the first one's set */
  std::vector<owner> entity = {};
  std::vector<item> items = {};
  std::map<std::pair<unsigned, string_view>, uint32_t> ids = {}; /* of entities, then of items: by name */
  std::set<std::pair<uint32_t, string_view>> names = {};
  int sweeps = 1;
  const char *list = "keys"; /* of which element is spoken */
  size_t at = 0;

  [[noreturn]] void bad(const char *what) { refuse("%s[%zu]: %s", list, at, what); }

  uint32_t find_or_add_entity(unsigned source, const char *name) {
    auto found = ids.find({source, name});
    if (found != ids.end())
      return found->second;
    if (entity.size() == NI_SWEEP_ENTITIES)
      refuse("more than %d NICs and GPUs", NI_SWEEP_ENTITIES);
    owner x = {};
    x.of.source = (uint8_t)source;
    x.of.name = ni_set_text(&out->set, name);
    x.of.numa = -1;
    entity.push_back(x);
    return ids[{source, x.of.name}] = (uint32_t)entity.size() - 1;
  }
  void add_item(uint32_t of, const char *name, const ni_reading &before, const ni_reading &after) {
    if (!names.insert({of, name}).second)
      refuse("%s has %s twice", entity[of].of.name, name);
    if (items.size() == NI_SWEEP_COUNTERS)
      refuse("more than %d counters", NI_SWEEP_COUNTERS);
    items.push_back({of, name, {before, after}});
    for (int k = 0; k < 2; k++)
      entity[of].n[k] += items.back().at[k].state != NI_READ_MISSING;
  }
};

/*
 * A whole number of 64 bits, a negative one as int64_t; a time, "sec" or "sec.decimals", in ns. NULL: none;
 * else its end.
 */
const char *parse_number(const char *t, uint64_t *out) {
  bool minus = *t == '-';
  char *end;
  if (!ni_text_is_digit(t[minus]))
    return nullptr;
  errno = 0;
  *out = strtoull(t, &end, 10);
  return errno || (minus && (int64_t)*out > 0) ? nullptr : end;
}

const char *parse_stamp(const char *t, int64_t *ns) {
  uint64_t s, part = 0, unit = 1000000000;
  const char *p = *t == '-' ? nullptr : parse_number(t, &s);
  if (!p || s > (uint64_t)INT64_MAX / 1000000000 - 1)
    return nullptr;
  if (*p == '.')
    for (p++; ni_text_is_digit(*p); p++)
      part += (uint64_t)(*p - '0') * (unit /= 10);
  *ns = (int64_t)(s * 1000000000 + part);
  return p;
}

int64_t convert_seconds(double seconds) { return std::fabs(seconds) < 9e9 ? llround(seconds * 1e9) : 0; }

/* ---- JSON: what was verified ---- */

bool find_member(od::object &o, const char *key, od::value &v) {
  return !o[key].get(v) && !ni_text_is_null(ni_json_token(v));
}

/* One of the draft's; NULL: none, or "". */
const char *keep_text(draft &d, string_view s, size_t most = NI_SWEEP_NAME) {
  if (s.size() > most || memchr(s.data(), 0, s.size()))
    d.bad(most == NI_SWEEP_NAME ? "a text longer than 255 bytes, or with a byte 0"
                                : "a text longer than 4095 bytes, or with a byte 0");
  return s.empty() ? nullptr : ni_set_text(&d.out->set, std::string(s).c_str());
}
const char *keep_text(draft &d, od::object &o, const char *key, size_t most = NI_SWEEP_NAME) {
  od::value v;
  string_view s;
  if (!find_member(o, key, v))
    return nullptr;
  if (v.get_string().get(s))
    d.bad("want a text");
  return keep_text(d, s, most);
}

double read_real(draft &d, od::object &o, const char *key, double otherwise) {
  od::value v;
  if (find_member(o, key, v) && v.get_double().get(otherwise))
    d.bad("want a number");
  return otherwise;
}

uint64_t read_whole(draft &d, od::value &v) {
  uint64_t n;
  const char *end = parse_number(ni_json_token(v), &n);
  if (!end || !ni_text_ends(*end))
    d.bad("want a whole number of 64 bits");
  return n;
}

/* May also be the text "unreadable". */
ni_reading read_value(draft &d, od::value &v) {
  if (*ni_json_token(v) == '"')
    return {0, 0, 0, NI_READ_UNREADABLE};
  return {read_whole(d, v), 0, 0, NI_READ_OK};
}

template <class F>
void visit_elements(draft &d, od::object &in, const char *key, const char *called, F each) {
  od::value v;
  if (find_member(in, key, v))
    visit_elements(d, v, called, each);
}
template <class V, class F>
void visit_elements(draft &d, V &v, const char *called, F each) {
  od::array a;
  if (v.get_array().get(a))
    refuse("%s: want a list", called);
  d.list = called;
  d.at = 0;
  for (auto x : a) {
    od::object o;
    if (x.get_object().get(o))
      d.bad("want an object");
    each(o);
    d.at++;
  }
}

/* Of an entity; of: -1: of net_prof's list, where each says whose it is. One of a sweep has value and
 * timestamp, one of a summary before, after and the seconds between, which may be the entity's. */
void read_counter(draft &d, od::object &o, int64_t of, double seconds) {
  od::value v;
  ni_reading at[2] = {missing, missing};
  uint64_t nic = 0;
  const char *name = keep_text(d, o, of < 0 ? "counter_name" : "name");
  if (find_member(o, "value", v) || find_member(o, "before", v))
    at[0] = read_value(d, v);
  if (find_member(o, "after", v))
    at[1] = read_value(d, v);
  if (find_member(o, "timestamp", v)) {
    const char *end = parse_stamp(ni_json_token(v), &at[0].real_ns);
    if (!end || !ni_text_ends(*end))
      d.bad("want a time in seconds since 1970");
  }
  if (of < 0) {
    if (!name || at[0].state == NI_READ_MISSING)
      d.bad("without counter_name or value");
    if (find_member(o, "interface", v))
      nic = read_whole(d, v);
    if (nic == 0 || nic > 65536)
      d.bad("interface: want 1 to 65536");
    of = d.find_or_add_entity(NI_METRIC_CXI, ("cxi" + std::to_string(nic - 1)).c_str());
  }
  if (!name)
    d.bad("without a name");
  if (d.sweeps == 2)
    at[1].real_ns = convert_seconds(fmax(read_real(d, o, "seconds", seconds), 0));
  d.add_item((uint32_t)of, name, at[0], at[1]);
}

/* A summary's counters that stand where they stood: {"name": value, ...}. */
void read_unchanged(draft &d, od::object all, uint32_t of, double seconds) {
  for (auto x : all) {
    od::field f;
    string_view name;
    if (simdjson::simdjson_result<od::field>(x).get(f) || f.unescaped_key().get(name))
      d.bad("no JSON");
    ni_reading at = read_value(d, f.value()), after = at;
    const char *kept = keep_text(d, name);
    after.real_ns = convert_seconds(fmax(seconds, 0));
    d.add_item(of, kept ? kept : "", at, after);
  }
}

void read_entity(draft &d, od::object &o) {
  const char *name = keep_text(d, o, "name"), *source = keep_text(d, o, "source");
  unsigned i = 0;
  while (source && ni_source_name(i) && strcmp(ni_source_name(i), source) != 0)
    i++;
  if (!name || !source || !ni_source_name(i))
    d.bad("want a name, and a source that is known");
  const uint32_t of = d.find_or_add_entity(i, name);
  owner &to = d.entity[of];
  to.of.pci = keep_text(d, o, "pci");
  to.of.link = keep_text(d, o, "link", NI_SWEEP_TEXT);
  to.of.kind = keep_text(d, o, "kind", NI_SWEEP_TEXT);
  const char *state = keep_text(d, o, "link_state");
  for (unsigned k = NI_LINK_OFF; state && k > NI_LINK_UNKNOWN; k--)
    if (strcmp(state, ni_link_state_name(k)) == 0)
      to.of.state = (uint8_t)k;
  to.of.about = keep_text(d, o, "about", NI_SWEEP_TEXT); /* with what a GPU does not tell */
  to.of.warning = keep_text(d, o, "warning", NI_SWEEP_TEXT);
  to.of.link_bytes_s = read_real(d, o, "link_bytes_per_s", 0);
  double numa = read_real(d, o, "numa", -1), seconds = read_real(d, o, "seconds", 0);
  to.of.numa = numa >= 0 && numa < 65536 ? (int)numa : -1;
  to.ahead_ns = convert_seconds(read_real(d, o, "monotonic_ahead_s", 0));
  od::value v;
  od::object all;
  size_t at = d.at;
  if (find_member(o, "unchanged", v)) {
    if (v.get_object().get(all))
      d.bad("want an object");
    read_unchanged(d, all, of, seconds);
  }
  visit_elements(d, o, "counters", to.of.name, [&](od::object &c) { read_counter(d, c, of, seconds); });
  d.list = "entities";
  d.at = at;
}

/* The whole; what net_prof does not know stands in an object of its own in it. */
void read_document(draft &d, od::object &o) {
  od::value v;
  od::object in;
  const char *schema = keep_text(d, o, "schema_version"), *keys[] = {"meta", "before", "after"};
  if (schema && strcmp(schema, "nccl-inspector-counters-1") != 0)
    refuse("of another schema: want nccl-inspector-counters-1");
  if (schema)
    d.sweeps = 2;
  for (int k = 0; k < 3; k++) {
    ni_sweep *to = &d.out[k == 2];
    if (!find_member(o, keys[k], v))
      continue;
    d.list = keys[k];
    if (v.get_object().get(in))
      d.bad("want an object");
    if (const char *path = keep_text(d, in, "path", NI_SWEEP_TEXT))
      to->path = path;
    to->input_path = keep_text(d, in, "input_path", NI_SWEEP_TEXT);
    to->started = keep_text(d, in, "started_at");
    to->finished = keep_text(d, in, "finished_at");
    to->duration_s = read_real(d, in, "duration_s", NAN);
  }
  visit_elements(d, o, "counters", "counters", [&](od::object &c) { read_counter(d, c, -1, 0); });
  visit_elements(d, o, "entities", "entities", [&](od::object &e) { read_entity(d, e); });
  visit_elements(d, o, "unread", "unread", [&](od::object &u) {
    const char *sweep = keep_text(d, u, "sweep"), *path = keep_text(d, u, "path", NI_SWEEP_TEXT),
               *why = keep_text(d, u, "why", NI_SWEEP_TEXT);
    bool left_out = find_member(u, "left_out", v) && *ni_json_token(v) == 't';
    (left_out ? ni_set_skipped : ni_set_unread)(&d.out[sweep && strcmp(sweep, "after") == 0].set,
                                                path ? path : "", why ? why : "");
    if (d.at == NI_SWEEP_COUNTERS)
      refuse("unread: more than %d", NI_SWEEP_COUNTERS);
  });
  if (!find_member(o, "nccl_inspector", v))
    return;
  if (v.get_object().get(in))
    refuse("nccl_inspector: want an object");
  read_document(d, in);
}

void read_json(draft &d, char *bytes, size_t len) {
  od::parser json;
  od::document doc;
  od::value all;
  od::object o;
  const char *rest;
  if (auto e = json.iterate(bytes, len, len + NI_PARSE_PADDING).get(doc))
    refuse("no JSON: %s", simdjson::error_message(e));
  if (doc.get_value().get(all) || ni_json_verify(all, 1))
    refuse("no JSON");
  if (doc.current_location().get(rest) != simdjson::OUT_OF_BOUNDS)
    refuse("something stands behind the JSON");
  doc.rewind();
  if (bytes[strspn(bytes, " \t\r\n")] == '[')
    visit_elements(d, doc, "counters", [&](od::object &c) { read_counter(d, c, -1, 0); });
  else if (!doc.get_object().get(o))
    read_document(d, o);
}

/* ---- the text form ---- */

/* A line that is no `value@time` is a counter that could not be read; net_prof's own reader dies of it. */
void read_text(draft &d, char *line) {
  uint32_t n = 0;
  for (char *next; *line; line = next, n++) {
    ni_reading at = {0, 0, 0, NI_READ_UNREADABLE};
    next = line + strcspn(line, "\n");
    if (*next)
      *next++ = 0;
    line[strcspn(line, "\r")] = 0;
    const char *p = parse_number(line, &at.value);
    if (p && *p == '@' && (p = parse_stamp(p + 1, &at.real_ns)) && !*p)
      at.state = NI_READ_OK;
    else
      at.value = 0, at.real_ns = 0;
    d.add_item(d.find_or_add_entity(NI_METRIC_CXI, ("cxi" + std::to_string(n / NI_NETPROF_NAMES)).c_str()),
               ni_netprof_name(n % NI_NETPROF_NAMES + 1), at, missing);
  }
  if (n % NI_NETPROF_NAMES)
    refuse("%u lines: want %d a NIC, as `value@sec.nsec`, in net_prof's order", n, NI_NETPROF_NAMES);
}

/* ---- from the draft to sets ---- */

/* Sweep k: what of the draft it has. An entity of which no sweep has a counter is in both. */
void fill_sweep(draft &d, int k) {
  ni_sweep *s = &d.out[k];
  ni_set *set = &s->set;
  auto item = d.items.begin();
  if (!(s->reading = (ni_reading *)malloc((d.items.size() + 1) * sizeof *s->reading)))
    throw std::bad_alloc();
  for (uint32_t i = 0; i < d.entity.size(); i++) {
    owner &from = d.entity[i];
    auto end = std::find_if(item, d.items.end(), [&](const struct item &x) { return x.entity != i; });
    bool here = from.n[k] || !from.n[!k];
    ni_entity *e = here ? ni_set_entity(set, (ni_metric_source)from.of.source, from.of.name) : nullptr;
    if (here && !e)
      throw std::bad_alloc();
    if (here)
      from.of.first = e->first, *e = from.of;
    for (; item != end; item++) {
      if (!here || item->at[k].state == NI_READ_MISSING)
        continue;
      if (!ni_set_counter(set, item->name))
        throw std::bad_alloc();
      ni_reading *r = &s->reading[set->n_counters - 1];
      *r = item->at[k];
      int64_t mono; /* what no clock can show is no time */
      if (from.ahead_ns && !__builtin_add_overflow(r->real_ns, from.ahead_ns, &mono) && mono > 0)
        r->mono_ns = mono;
    }
  }
  if (set->failed)
    throw std::bad_alloc();
}

void read_sweeps(draft &d, const char *path) {
  char why[256];
  size_t len;
  std::unique_ptr<char, decltype(&free)> bytes(ni_read_whole(path, NI_SWEEP_BYTES + 1, &len, why, sizeof why),
                                               free);
  char *t = bytes.get(), c;
  if (!t)
    refuse("%s", why);
  if (len > NI_SWEEP_BYTES)
    refuse("more than %d MiB of text: no sweep is as large", NI_SWEEP_BYTES >> 20);
  if (memchr(t, 0, len))
    refuse("a byte 0 at %zu: neither JSON nor net_prof's text", strlen(t));
  c = t[strspn(t, " \t\r\n")];
  if (c == '{' || c == '[')
    read_json(d, t, len);
  else if (ni_text_is_digit(c) || c == '-')
    read_text(d, t);
  else
    refuse("neither JSON nor net_prof's text (`value@sec.nsec` a line)");
  if (d.entity.empty())
    refuse("no counters in it");
  std::stable_sort(d.items.begin(), d.items.end(),
                   [](const item &a, const item &b) { return a.entity < b.entity; });
  for (int k = 0; k < d.sweeps; k++)
    fill_sweep(d, k);
}

}  // namespace

int ni_sweep_read(struct ni_sweep out[2], const char *path, char *why, size_t cap) {
  out[0] = out[1] = {};
  out[0].duration_s = out[1].duration_s = NAN;
  out[0].path = out[1].path = ni_set_text(&out[0].set, path);
  draft d{out};
  try {
    read_sweeps(d, path);
    if (d.sweeps == 1)
      ni_sweep_free(&out[1]);
    return d.sweeps;
  } catch (const refusal &r) {
    snprintf(why, cap, "%s", r.why);
  } catch (const std::bad_alloc &) {
    snprintf(why, cap, "no memory");
  }
  ni_sweep_free(&out[1]);
  ni_sweep_free(&out[0]);
  return -EINVAL;
}

void ni_sweep_free(struct ni_sweep *s) {
  ni_set_free(&s->set);
  free(s->reading);
  *s = {};
}
