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
#include "lines.h"
}

namespace dom = simdjson::dom;
using std::string_view;

namespace {

constexpr size_t line_max = 1 << 20, depth_max = 16;

struct reading {
  int (*take)(void *, const ni_accl_op *);
  void *arg;
  ni_accl_summary *summary;
  uint64_t *bad;
  dom::parser parser;
  bool any = false, empty = true;
  size_t n = 0;
  char in[64 << 10], text[line_max + simdjson::SIMDJSON_PADDING];
};

template <size_t N>
bool read_word(const dom::object &o, const char *key, char (&to)[N], bool large) {
  string_view text;
  to[0] = 0;
  if (o[key].get(text) || text.empty() || text.size() >= N)
    return false;
  if (text == "unknown" || text == "Unknown")
    return false;
  for (size_t i = 0; i < text.size(); i++)
    to[i] = large && text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
  to[text.size()] = 0;
  return std::strlen(to) == text.size();
}

uint64_t read_count(const dom::object &o, const char *key) {
  uint64_t n;
  return o[key].get(n) ? 0 : n;
}

/* Over all of a communicator's life: sums must not run over. */
uint64_t read_loss(const dom::object &o, const char *key) {
  uint64_t n = read_count(o, key);
  return n < (uint64_t)1 << 48 ? n : 0;
}

int32_t read_small(const dom::object &o, const char *key, int64_t most) {
  int64_t n;
  return o[key].get(n) || n < 0 || n > most ? -1 : (int32_t)n;
}

void add_summary(reading &r, const dom::object &o) {
  r.summary->ended = true;
  r.summary->dropped += read_loss(o, "dropped_collectives");
  r.summary->leaked += read_loss(o, "leaked_collectives");
  r.summary->proxy += read_loss(o, "dropped_proxy_ops") + read_loss(o, "dropped_proxy_steps") +
      read_loss(o, "overflow_proxy_ops");
}

int32_t count_kernels(const dom::object &perf) {
  dom::object trace;
  dom::array events;
  if (perf["event_trace_ts"].get(trace) || trace["kernel_events"].get(events))
    return 0;
  return events.size() <= 1024 ? (int32_t)events.size() : 0;
}

bool read_op(const dom::object &line, const dom::object &perf, ni_accl_op &op) {
  dom::object header;
  string_view source;
  double us;
  uint64_t bytes;
  op = {};
  op.rank = op.n_ranks = -1;
  if (!line["header"].get(header))
    op.rank = read_small(header, "rank", INT32_MAX), op.n_ranks = read_small(header, "n_ranks", INT32_MAX);
  bool is_whole = read_word(perf, "coll", op.func, false) && !perf["coll_sn"].get(op.sn) &&
      !perf["coll_exec_time_us"].get(us);
  if (!is_whole || !(us >= 0 && us < 1e12) || op.sn >= (uint64_t)1 << 48)
    return false;
  op.dur_ns = (uint64_t)std::llround(us * 1000);
  op.sized = !perf["coll_msg_size_bytes"].get(bytes) && bytes <= INT64_MAX;
  op.bytes = op.sized ? bytes : 0;
  read_word(perf, "coll_algo", op.algo, true);
  read_word(perf, "coll_proto", op.proto, true);
  op.by_gpu = !perf["coll_timing_source"].get(source) && source == "gpu_globaltimer";
  op.kernels = count_kernels(perf);
  int32_t channels = read_small(perf, "coll_n_channels", 1024),
          reported = read_small(perf, "coll_n_channels_reported", 1024);
  op.channels = reported == 0 ? 0
      : channels > 0          ? channels
                              : 0; /* 256 do not fit into what RCCL reports, and ACCL takes 0 for that */
  return true;
}

int parse_line(reading &r) {
  dom::object o, part;
  ni_accl_op op;
  size_t n = r.n;
  r.n = 0;
  if (n == 0)
    return 0;
  if (n > line_max || r.parser.parse(r.text, n, false).get(o))
    return ++*r.bad, 0;
  if (!o["summary"].get(part))
    return add_summary(r, part), 0;
  if (o["coll_perf"].get(part) || !read_op(o, part, op))
    return ++*r.bad, 0;
  r.any = true;
  return r.take(r.arg, &op);
}

int append_char(reading &r, char c) {
  if (c == '\n')
    return parse_line(r);
  if (r.n < line_max)
    r.text[r.n] = c;
  r.n++;
  return 0;
}

}  // namespace

int ni_accl_lines(const char *path, int (*take)(void *arg, const ni_accl_op *op), void *arg,
                  ni_accl_summary *summary, uint64_t *bad, ni_progress *progress) {
  std::unique_ptr<reading> r(new (std::nothrow) reading);
  if (!r || r->parser.allocate(line_max, depth_max))
    return -ENOMEM;
  errno = 0;
  gzFile file = gzopen(path, "rb");
  int n = 0, e = file ? 0 : errno ? -errno : -ENOMEM;
  z_off_t told = 0;
  r->take = take;
  r->arg = arg;
  r->summary = summary;
  r->bad = bad;
  while (e == 0 && (n = gzread(file, r->in, sizeof r->in)) > 0) {
    r->empty = false;
    for (int i = 0; e == 0 && i < n; i++)
      e = append_char(*r, r->in[i]);
    z_off_t at = gzoffset(file);
    if (at > told)
      ni_progress_add(progress, (uint64_t)(at - told), 0), told = at;
  }
  if (file)
    gzclose(file);
  if (e == 0)
    e = parse_line(*r); /* the last one has no end where the process died in it */
  return e ? e : r->any || r->empty || summary->ended ? 0 : -EBADMSG;
}
