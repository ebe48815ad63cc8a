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
bool word(const dom::object &o, const char *key, char (&to)[N], bool large) {
  string_view text;
  to[0] = 0;
  if (o[key].get(text) || text.empty() || text.size() >= N || text == "unknown" || text == "Unknown")
    return false;
  for (size_t i = 0; i < text.size(); i++)
    to[i] = large && text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
  to[text.size()] = 0;
  return std::strlen(to) == text.size();
}

uint64_t count_of(const dom::object &o, const char *key) {
  uint64_t n;
  return o[key].get(n) ? 0 : n;
}

/* Over all of a communicator's life: sums must not run over. */
uint64_t loss_of(const dom::object &o, const char *key) {
  uint64_t n = count_of(o, key);
  return n < (uint64_t)1 << 48 ? n : 0;
}

int32_t small_of(const dom::object &o, const char *key, int64_t most) {
  int64_t n;
  return o[key].get(n) || n < 0 || n > most ? -1 : (int32_t)n;
}

void take_summary(reading &r, const dom::object &o) {
  r.summary->ended = true;
  r.summary->dropped += loss_of(o, "dropped_collectives");
  r.summary->leaked += loss_of(o, "leaked_collectives");
  r.summary->proxy +=
      loss_of(o, "dropped_proxy_ops") + loss_of(o, "dropped_proxy_steps") + loss_of(o, "overflow_proxy_ops");
}

int32_t kernels_of(const dom::object &perf) {
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
    op.rank = small_of(header, "rank", INT32_MAX), op.n_ranks = small_of(header, "n_ranks", INT32_MAX);
  bool whole =
      word(perf, "coll", op.func, false) && !perf["coll_sn"].get(op.sn) && !perf["coll_exec_time_us"].get(us);
  if (!whole || !(us >= 0 && us < 1e12) || op.sn >= (uint64_t)1 << 48)
    return false;
  op.dur_ns = (uint64_t)std::llround(us * 1000);
  op.sized = !perf["coll_msg_size_bytes"].get(bytes) && bytes <= INT64_MAX;
  op.bytes = op.sized ? bytes : 0;
  word(perf, "coll_algo", op.algo, true);
  word(perf, "coll_proto", op.proto, true);
  op.by_gpu = !perf["coll_timing_source"].get(source) && source == "gpu_globaltimer";
  op.kernels = kernels_of(perf);
  int32_t channels = small_of(perf, "coll_n_channels", 1024),
          reported = small_of(perf, "coll_n_channels_reported", 1024);
  op.channels = reported == 0 ? 0
      : channels > 0          ? channels
                              : 0; /* 256 do not fit into what RCCL reports, and ACCL takes 0 for that */
  return true;
}

int line(reading &r) {
  dom::object o, part;
  ni_accl_op op;
  size_t n = r.n;
  r.n = 0;
  if (n == 0)
    return 0;
  if (n > line_max || r.parser.parse(r.text, n, false).get(o))
    return ++*r.bad, 0;
  if (!o["summary"].get(part))
    return take_summary(r, part), 0;
  if (o["coll_perf"].get(part) || !read_op(o, part, op))
    return ++*r.bad, 0;
  r.any = true;
  return r.take(r.arg, &op);
}

int take_char(reading &r, char c) {
  if (c == '\n')
    return line(r);
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
      e = take_char(*r, r->in[i]);
    z_off_t at = gzoffset(file);
    if (at > told)
      ni_progress_add(progress, (uint64_t)(at - told), 0), told = at;
  }
  if (file)
    gzclose(file);
  if (e == 0)
    e = line(*r); /* the last one has no end where the process died in it */
  return e ? e : r->any || r->empty || summary->ended ? 0 : -EBADMSG;
}
