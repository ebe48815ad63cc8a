/*
 * A small machine cuts the text into members of the file and elements of traceEvents; simdjson verifies and
 * reads each.
 */
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>
#include <zlib.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

extern "C" {
#include "exporter/base/index.h"
#include "exporter/base/text/json_numbers.h"
#include "exporter/input/imported/kernel.h"
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
  /* text, with what cannot be held in quotes */
  char again[NI_JSON_QUOTED_MAX(item_max) + simdjson::SIMDJSON_PADDING];
};

void copy_text(char (&to)[128], string_view from) {
  size_t n = from.copy(to, sizeof to - 1);
  while (n < from.size() && n && (from[n] & 0xc0) == 0x80)
    n--; /* no half character */
  to[n] = 0;
}

/* Numbers and texts: pids are both. */
uint64_t hash_member(uint64_t hash, const dom::object &o, const char *key) {
  dom::element x;
  return o[key].get(x) ? hash : ni_hash_text(hash, simdjson::minify(x).c_str());
}

int64_t read_ns(const dom::object &o, const char *key) {
  double us;
  if (o[key].get(us) || std::fabs(us) > 9e15)
    return INT64_MIN;
  return (int64_t)std::floor(us) * 1000 + llround((us - std::floor(us)) * 1000);
}

/*
 * The object that was cut out. Numbers of it that nobody can hold are texts: they do not cost the rest.
 * false: it is none.
 */
bool parse_object(reading &r, dom::object &o) {
  if (r.n > item_max)
    return false;
  if (!r.parser.parse(r.text, r.n, false).get(o))
    return true;
  r.text[r.n] = 0; /* where its last number ends */
  size_t n = ni_json_quote_numbers(r.text, r.n, r.again);
  return n != r.n && !r.parser.parse(r.again, n, false).get(o);
}

int64_t read_number(const dom::object &o, const char *key) {
  int64_t n;
  return o[key].get(n) ? NI_KINETO_NONE : n;
}

/* In simdjson's memory, which is the reader's until the next event, and terminated there. */
const char *read_text(const dom::object &o, const char *key) {
  const char *text;
  return o[key].get(text) ? "" : text;
}

ni_kineto_args make_empty_args() {
  ni_kineto_args a = {};
  int64_t *const numbers[] = {&a.correlation, &a.external,     &a.device, &a.stream, &a.blocks,     &a.graph,
                              &a.in_elements, &a.out_elements, &a.size,   &a.seq,    &a.rank,       &a.source,
                              &a.target,      &a.first_rank,   &a.stride, &a.number, &a.world_size, &a.pid};
  for (int64_t *n : numbers)
    *n = NI_KINETO_NONE;
  a.collective = a.datatype = a.group = a.description = a.ranks = a.nccl_version = "";
  return a;
}

bool has_prefix(string_view text, string_view with) { return text.substr(0, with.size()) == with; }

/* "ProfilerStep#17" */
int64_t parse_step_number(string_view name) {
  int64_t n = 0;
  for (char c : name.substr(name.find('#') + 1)) {
    if (c < '0' || c > '9' || n > INT32_MAX)
      return NI_KINETO_NONE;
    n = n * 10 + (c - '0');
  }
  return n;
}

bool is_launch(string_view name) {
  for (string_view call : {"cudaLaunch", "cuLaunchKernel", "cudaGraphLaunch", "hipLaunch", "hipExtLaunch",
                           "hipModuleLaunch", "hipExtModuleLaunch", "hipGraphLaunch"})
    if (has_prefix(name, call))
      return true;
  return false;
}

enum ni_kineto_what find_kind(string_view category, string_view name, ni_kineto_event &e) {
  constexpr string_view step = "ProfilerStep#";
  bool on_gpu = category.empty() || category == "kernel" || category == "Kernel";
  if (e.phase != 'X' || e.ts_ns == INT64_MIN)
    return NI_KINETO_OTHER;
  if (on_gpu && !name.empty() && ni_imported_kernel(name.data(), e.func))
    return NI_KINETO_KERNEL;
  if (name == "record_param_comms")
    return NI_KINETO_CALL;
  if (is_launch(name))
    return NI_KINETO_LAUNCH;
  return has_prefix(name, step) && !has_prefix(category, "gpu") ? NI_KINETO_STEP : NI_KINETO_OTHER;
}

/* What PyTorch says of a collective, the same of its call and of its kernel; and of any kernel and launch. */
void read_args(ni_kineto_args &a, const dom::object &o) {
  a.correlation = read_number(o, "correlation");
  a.external = read_number(o, "External id");
  a.device = read_number(o, "device");
  a.stream = read_number(o, "stream");
  a.graph = read_number(o, "graph id");
  a.in_elements = read_number(o, "In msg nelems");
  a.out_elements = read_number(o, "Out msg nelems");
  a.size = read_number(o, "Group size");
  a.seq = read_number(o, "Seq");
  a.rank = read_number(o, "Rank");
  a.source = read_number(o, "Src Rank");
  a.target = read_number(o, "Dst Rank");
  a.first_rank = read_number(o, "Global rank start");
  a.stride = read_number(o, "Global rank stride");
  a.collective = read_text(o, "Collective name");
  a.datatype = read_text(o, "dtype");
  a.group = read_text(o, "Process Group Name");
  a.description = read_text(o, "Process Group Description");
  a.ranks = read_text(o, "Process Group Ranks");
  dom::array grid;
  int64_t blocks[3] = {0, 1, 1};
  size_t i = 0;
  if (o["grid"].get(grid))
    return;
  for (dom::element x : grid)
    if (i < 3 && !x.get(blocks[i]))
      i++;
  bool flat = i == 3 && blocks[1] == 1 && blocks[2] == 1; /* NCCL's are: a block for each channel */
  if (flat && blocks[0] > 0)
    a.blocks = blocks[0];
}

/*
 * The groups as a list of its own each: {"pg_name": "0", "pg_desc": "..", "pg_size": 2, "ranks": [0, 1]}, or
 * "ranks": "[0, 1]".
 */
int read_groups(reading &r, const dom::object &info) {
  dom::array groups;
  if (info["pg_config"].get(groups))
    return 0;
  for (dom::element x : groups) {
    dom::object g;
    dom::array list;
    if (x.get(g))
      continue;
    ni_kineto_event &e = r.event = {};
    e.what = NI_KINETO_GROUP;
    e.base_ns = e.ts_ns = e.dur_ns = INT64_MIN;
    e.rank = -1;
    e.args = make_empty_args();
    e.args.group = read_text(g, "pg_name");
    e.args.description = read_text(g, "pg_desc");
    e.args.size = read_number(g, "pg_size");
    e.args.ranks = read_text(g, "ranks");
    std::string text;
    if (!g["ranks"].get(list))
      text = simdjson::minify(list), e.args.ranks = text.c_str();
    int stop = r.take(r.arg, &e);
    if (stop)
      return stop;
  }
  return 0;
}

int read_file_head(reading &r, const dom::object &o) {
  ni_kineto_event &e = r.event;
  dom::object info;
  e.what = NI_KINETO_FILE;
  e.args = make_empty_args();
  e.base_ns = read_number(o, "baseTimeNanoseconds");
  bool told = !o["distributedInfo"].get(info);
  if (told) {
    int64_t rank = read_number(info, "rank");
    if (rank >= 0 && rank <= INT32_MAX)
      e.rank = (int32_t)rank;
    e.args.world_size = read_number(info, "world_size");
    e.args.nccl_version = read_text(info, "nccl_version");
  }
  int stop = r.take(r.arg, &e);
  return stop || !told ? stop : read_groups(r, info);
}

/* What was cut out: an event, or a member of the file with braces around it. */
int parse_item(reading &r) {
  dom::object o, args;
  string_view text, category, name;
  if (!parse_object(r, o))
    return ++*r.bad, 0;
  ni_kineto_event &e = r.event = {};
  e.base_ns = e.ts_ns = INT64_MIN;
  e.rank = -1;
  if (!r.listing)
    return read_file_head(r, o);
  e.phase = !o["ph"].get(text) && text.size() == 1 && text[0] ? text[0] : '?';
  if (!o["name"].get(name))
    copy_text(e.name, name);
  e.process = hash_member(0, o, "pid");
  e.place = hash_member(e.process, o, "tid");
  e.ts_ns = read_ns(o, "ts");
  e.dur_ns = read_ns(o, "dur");
  if (o["cat"].get(category))
    category = {};
  bool has_args = !o["args"].get(args);
  if (has_args && e.phase == 'M' && !args[name == "process_labels" ? "labels" : "name"].get(text))
    copy_text(e.label, text);
  if ((e.what = find_kind(category, name, e)) == NI_KINETO_OTHER)
    return r.take(r.arg, &e);
  e.args = make_empty_args();
  e.args.pid = read_number(o, "pid");
  if (has_args)
    read_args(e.args, args);
  if (e.what == NI_KINETO_STEP)
    e.args.number = parse_step_number(name);
  return r.take(r.arg, &e);
}

int finish_item(reading &r) {
  bool has_text = r.n > 1;
  if (!r.listing && r.n < item_max)
    r.text[r.n++] = '}';
  int e = has_text ? parse_item(r) : 0;
  r.n = r.listing ? 0 : 1;
  r.text[0] = '{';
  return e;
}

int append_char(reading &r, char c) {
  size_t level = r.listing ? 2 : 1; /* where a comma ends an item */
  if (r.quoted) {
    r.quoted = r.escaped || c != '"';
    r.escaped = !r.escaped && c == '\\';
  } else if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
    return 0;
  } else if (c == '"') {
    r.quoted = true;
  } else if (c == '{' || c == '[') {
    if (++r.depth == 1)
      return r.n = 1, r.text[0] = '{', c == '{' && !r.was_list ? 0 : -EBADMSG;
    const bool may_list = r.depth == 2 && c == '[' && !r.was_list;
    if (may_list && string_view(r.text, r.n < 32 ? r.n : 32) == list_key)
      return r.n = 0, r.listing = r.was_list = true, 0;
  } else if ((c == '}' || c == ']' || c == ',') && r.depth == level) {
    int e = finish_item(r);
    if (c == ',' || e)
      return e;
    r.depth--;
    if (r.listing)
      r.n = 1;
    return r.listing = false, 0;
  } else if ((c == '}' || c == ']') && r.depth) {
    r.depth--;
  }
  if (r.depth == 0)
    return -EBADMSG;
  if (r.n < item_max)
    r.text[r.n] = c;
  r.n++;
  return 0;
}

}  // namespace

bool ni_kineto_is_trace(const char *path) {
  string_view name = path;
  auto ends = [&](string_view with) {
    return name.size() > with.size() && name.substr(name.size() - with.size()) == with;
  };
  return ends(".json") || ends(".json.gz");
}

int ni_kineto_read(const char *path, int (*take)(void *arg, const ni_kineto_event *e), void *arg,
                   uint64_t *bad, ni_progress *progress) {
  std::unique_ptr<reading> r(new (std::nothrow) reading);
  if (!r || r->parser.allocate(item_max, depth_max))
    return -ENOMEM;
  gzFile file = gzopen(path, "rb");
  int n = 0, e = file ? 0 : errno ? -errno : -ENOMEM;
  z_off_t told = 0;
  r->take = take;
  r->arg = arg;
  r->bad = bad;
  while (e == 0 && (n = gzread(file, r->in, sizeof r->in)) > 0) {
    for (int i = 0; e == 0 && i < n; i++)
      e = append_char(*r, r->in[i]);
    z_off_t at = gzoffset(file);
    if (at > told)
      ni_progress_add(progress, (uint64_t)(at - told), 0), told = at;
  }
  if (file)
    gzclose(file);
  return e ? e : n < 0 || r->depth || !r->was_list ? -EBADMSG : 0;
}
