#include "writer.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <stdexcept>

namespace {

constexpr double kDumpInterval = 1.0;  // s
constexpr double kMinute = 60;
constexpr double kStatsInterval = 10;

std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));
std::string text(const char *format, ...) {
  char buffer[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  return buffer;
}

// A log: gzip members one after another, or plain text.
class LogFile {
 public:
  LogFile(const std::string &path, bool plain) : path_(path), plain_(plain) {}
  std::string lines;
  void flush() {
    if (lines.empty())
      return;
    if (plain_)
      bytes_ += lines;
    else
      bytes_ += gzip(lines);
    lines.clear();
  }
  void save(double share) {
    flush();
    FILE *f = fopen(path_.c_str(), "wb");
    if (!f)
      throw std::runtime_error("cannot write " + path_);
    size_t n = share >= 1 ? bytes_.size() : size_t(double(bytes_.size()) * share);
    if (fwrite(bytes_.data(), 1, n, f) != n)
      throw std::runtime_error("cannot write " + path_);
    fclose(f);
  }

 private:
  static std::string gzip(const std::string &in) {
    z_stream z;
    memset(&z, 0, sizeof z);
    if (deflateInit2(&z, 2, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::runtime_error("zlib");
    std::string out(deflateBound(&z, in.size()) + 64, 0);
    z.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(in.data()));
    z.avail_in = uInt(in.size());
    z.next_out = reinterpret_cast<Bytef *>(&out[0]);
    z.avail_out = uInt(out.size());
    deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
  }
  std::string path_, bytes_;
  bool plain_;
};

struct Kind {  // accounts of one kind of operation on one communicator
  int64_t started = 0, written = 0, min_size = 0, no_p2p = 0, sampled = 0, dropped = 0;
  int64_t written_before = 0, dropped_before = 0;  // until the last dump_stats
};

struct Sum {
  int64_t count = 0, bytes = 0, ns = 0, min = INT64_MAX, max = 0;
  std::map<int64_t, int64_t> hist;
};

int64_t bucket_of(int64_t ns) {
  if (ns < 1024)
    return 0;
  int p = 63 - __builtin_clzll(uint64_t(ns));
  if (p >= 36)
    return int64_t(1) << 36;
  return (int64_t(1) << p) + ((ns >> (p - 2)) & 3) * (int64_t(1) << (p - 2));
}

class ProcessLog {
 public:
  ProcessLog(const std::string &folder, const Job &job, const Weather &weather, const Outcome &o,
             const std::vector<Fate> &fate, const Attempt &attempt, int rank)
      : job_(job),
        w_(job.world),
        weather_(weather),
        records_(o.records[rank]),
        fate_(fate),
        at_(attempt),
        rank_(rank),
        host_(w_.ranks[rank].host),
        end_s_(o.run_s),
        luck_(key_of(job.seed, 401, rank, attempt.salt)),
        step_at_(weather.step_at * o.run_s),
        kinds_(w_.comms.size()),
        sums_(w_.comms.size()),
        last_clock_(w_.comms.size(), -1e9),
        last_stats_(w_.comms.size(), 0),
        rollup_from_(w_.comms.size()) {
    // A launcher starts the processes of a host one after another.
    pid_ = 1500 + int(key_of(attempt.salt, 407, host_) % 400000) + 37 * w_.ranks[rank].local +
        luck_.whole(0, 30);
    start_ns_ = unix_ns(-luck_.between(1.5, 2.5));
    std::string start = std::to_string(start_ns_ / 1000000000);
    std::string name = w_.hosts[host_] + "-pid" + std::to_string(pid_) + "-" + start;
    file_ = std::make_unique<LogFile>(folder + "/" + name + (weather.plain_files ? ".jsonl" : ".jsonl.gz"),
                                      weather.plain_files);
    bias_ns_ = luck_.between(2500, 9000);
    gpu_phase_ns_ = luck_.between(0, 1e9);
    gpu_zero_ns_ =
        int64_t(luck_.between(-3e9, 3e9)) + (luck_.chance(0.5) ? int64_t(1700000000) * 1000000000 : 0);
    bool coarse = weather.coarse_host == -2 || weather.coarse_host == host_;
    tick_ns_ = coarse ? 1048576 : weather.tick_ns;
    rollups_ = attempt.rollups && !weather.no_control_lines;
  }

  void write() {
    std::vector<size_t> order(records_.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return records_[a].end < records_[b].end; });
    begin();
    bool killed = at_.killed || weather_.killed.count(rank_);
    double next_dump = kDumpInterval, last_flush = 0;
    for (size_t i : order) {
      const Record &r = records_[i];
      if (killed && r.end > end_s_ - 0.7)
        break;  // what the last dump had not written yet
      while (r.end >= next_dump) {
        dump_end(next_dump);
        if (next_dump - last_flush > 4 || file_->lines.size() > 400000) {
          file_->flush();
          last_flush = next_dump;
        }
        next_dump += kDumpInterval;
      }
      block_us_ = unix_ns(next_dump) / 1000;
      record(i);
    }
    block_us_ = unix_ns(end_s_ + 0.05) / 1000;
    if (!killed)
      finish();
    Dice cut(key_of(job_.seed, 402, rank_));
    file_->save(weather_.truncated.count(rank_) && at_.restart == last_restart() ? cut.between(0.5, 0.97)
                                                                                 : 1);
  }

 private:
  const Job &job_;
  const World &w_;
  const Weather &weather_;
  const std::vector<Record> &records_;
  const std::vector<Fate> &fate_;
  const Attempt &at_;
  int rank_, host_, pid_ = 0;
  double end_s_;
  Dice luck_;
  double step_at_;
  std::unique_ptr<LogFile> file_;
  int64_t start_ns_ = 0, block_us_ = 0, gpu_zero_ns_ = 0;
  double bias_ns_ = 0, gpu_phase_ns_ = 0;
  int64_t tick_ns_ = 32;
  bool rollups_ = true;
  std::vector<std::array<Kind, 2>> kinds_;
  std::vector<std::map<std::tuple<bool, std::string, int64_t>, Sum>> sums_;
  std::vector<double> last_clock_, last_stats_;
  std::vector<double> rollup_from_;
  std::map<std::pair<int, bool>, std::array<int64_t, 3>> gaps_;  // count, first, last

  int last_restart() const { return weather_.other_attempt ? 1 : 0; }

  // --- clocks ---

  int64_t unix_ns(double t) const {
    double own = weather_.offset_s[host_] + weather_.drift[host_] * t;
    if (host_ == weather_.step_host && t >= step_at_)
      own += weather_.step_s;
    return at_.start_unix_ns + int64_t((t + own) * 1e9);
  }
  int64_t unix_ns_of(int64_t run_ns) const {
    double t = double(run_ns) * 1e-9;
    double own = weather_.offset_s[host_] + weather_.drift[host_] * t;
    if (host_ == weather_.step_host && t >= step_at_)
      own += weather_.step_s;
    return at_.start_unix_ns + run_ns + int64_t(own * 1e9);
  }
  // A stamp of the GPU, as a time of the run in ns.
  int64_t gpu_stamp(double t) const {
    int64_t ns = int64_t(t * 1e9 + gpu_phase_ns_);
    return ns / tick_ns_ * tick_ns_ - int64_t(gpu_phase_ns_);
  }

  // --- parts of lines ---

  const char *source() const { return weather_.cpu_timing ? "kernel_cpu" : "kernel_gpu"; }

  void open_line(int comm) {
    std::string &out = file_->lines;
    if (comm < 0) {
      bool known = !weather_.no_launcher;
      out += text("{\"header\":{\"id\":\"0x0\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":0}", known ? rank_ : -1,
                  known ? w_.n_ranks() : 0);
    } else {
      const Comm &c = w_.comms[comm];
      out += text("{\"header\":{\"id\":\"0x%" PRIx64 "\",", c.hash);
      if (!c.name.empty())
        out += text("\"comm_name\":\"%s\",", c.name.c_str());
      out += text("\"rank\":%d,\"n_ranks\":%zu,\"nnodes\":%zu}", c.index_of(rank_), c.members.size(),
                  c.hosts.size());
    }
    out += text(
        ",\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"7c1f0e2a9\","
        "\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":%" PRId64
        ",\"hostname\":\"%s\",\"pid\":%d,\"producer\":\"nccl-inspector-c 0.1.0\"},",
        block_us_, w_.hosts[host_].c_str(), pid_);
  }
  void close_line() { file_->lines += "}\n"; }
  bool control() const { return !weather_.no_control_lines; }

  // --- the life of a process ---

  void begin() {
    block_us_ = start_ns_ / 1000;
    if (!control())
      return;
    const Place &p = w_.ranks[rank_];
    std::string env;
    bool slurm = key_of(job_.seed, 403) % 2 == 0;
    if (!weather_.no_launcher) {
      env = text("\"RANK\":\"%d\",\"LOCAL_RANK\":\"%d\",\"WORLD_SIZE\":\"%d\"", rank_, p.local, w_.n_ranks());
      if (slurm)
        env += text(",\"SLURM_PROCID\":\"%d\",\"SLURM_JOB_ID\":\"%s\"", rank_, at_.job_id.c_str());
      if (slurm && at_.restart)
        env += text(",\"SLURM_RESTART_COUNT\":\"%d\"", at_.restart);
      env += text(",\"TORCHELASTIC_RESTART_COUNT\":\"%d\"", at_.restart);
    }
    // Broadcasts of 2.31 confuse its count of kernels, so jobs that have them run an earlier one.
    static const int versions[] = {22907, 23007, 23101};
    int version = versions[key_of(job_.seed, 408) % (job_.shape->name == "ddp_vision" ? 2 : 3)];
    std::string settings;
    auto set = [&](const char *name, int64_t value) {
      settings += text("%s\"%s\":\"%" PRId64 "\"", settings.empty() ? "" : ",", name, value);
    };
    if (weather_.sample > 1)
      set("NCCL_INSPECTOR_SAMPLE", weather_.sample);
    if (weather_.min_size)
      set("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", weather_.min_size);
    if (!rollups_)
      set("NCCL_INSPECTOR_ROLLUP_SECONDS", 0);
    open_line(-1);
    uint64_t boot = key_of(at_.salt >> 20, 404, host_, job_.seed), boot2 = mix64(boot);
    file_->lines += text("\"process\":{\"start_ns\":%" PRId64
                         ",\"boot_id\":\"%08x-%04x-4%03x-a%03x-%012" PRIx64 "\",\"exe\":\"python3.11\",",
                         start_ns_, unsigned(boot), unsigned(boot >> 48), unsigned(boot >> 36) & 0xfff,
                         unsigned(boot2) & 0xfff, boot2 >> 16);
    if (weather_.no_launcher)
      file_->lines += "\"rank\":null,\"local_rank\":null,\"world_size\":null,";
    else
      file_->lines += text("\"rank\":%d,\"local_rank\":%d,\"world_size\":%d,", rank_, p.local, w_.n_ranks());
    file_->lines += text(
        "\"env\":{%s},\"nccl_version\":%d,\"interface\":\"%s\",\"settings\":{%s},"
        "\"blackbox\":\"/dev/shm/nccl-inspector-%d-%" PRId64 ".box\"}",
        env.c_str(), version, version < 23000 ? "v5" : "v6", settings.c_str(), pid_, start_ns_ / 1000000000);
    close_line();
    double init = -1.4;
    for (size_t c = 0; c < w_.comms.size(); c++) {
      if (w_.comms[c].index_of(rank_) < 0)
        continue;
      init += luck_.between(0.02, 0.08);
      comm_line(int(c), init);
      rollup_from_[c] = init;
    }
  }

  void comm_line(int c, double init) {
    const Comm &comm = w_.comms[c];
    const Place &p = w_.ranks[rank_];
    block_us_ = unix_ns(init) / 1000;
    open_line(c);
    std::string name = comm.name.empty() ? "null" : "\"" + comm.name + "\"";
    uint64_t gpu = key_of(at_.salt >> 20, 405, host_ * 64 + p.local, job_.seed), gpu2 = mix64(gpu);
    static const char *buses[] = {"18", "2a", "3a", "5d", "9a", "ab", "ba", "db"};
    file_->lines +=
        text("\"comm\":{\"name\":%s,\"hash\":\"0x%" PRIx64
             "\",\"rank\":%d,\"n_ranks\":%zu,\"nnodes\":%zu,"
             "\"gpu_index\":%d,\"gpu_uuid\":\"GPU-%08x-%04x-%04x-%04x-%012" PRIx64
             "\",\"gpu_pci\":\"0000:%s:00.0\",\"init_ns\":%" PRId64 "}",
             name.c_str(), comm.hash, comm.index_of(rank_), comm.members.size(), comm.hosts.size(), p.local,
             unsigned(gpu), unsigned(gpu >> 48), unsigned(gpu >> 32) & 0xffff, unsigned(gpu2) & 0xffff,
             gpu2 >> 16, buses[p.local % 8], unix_ns(init));
    close_line();
  }

  void clock_line(int c, double t) {
    last_clock_[c] = t;
    if (!control())
      return;
    open_line(c);
    int64_t monotonic = int64_t((t + 86000 + double(key_of(job_.seed, 406, host_) % 4000000)) * 1e9);
    int64_t offset = unix_ns(t) - int64_t(t * 1e9) + int64_t(bias_ns_) - gpu_zero_ns_;
    int64_t samples = kinds_[c][0].started + kinds_[c][1].started;
    std::string gpu =
        text("\"gpu_offset_ns\":%" PRId64 ",\"gpu_offset_at_ns\":%" PRId64, offset, unix_ns(t - 0.01));
    if (weather_.cpu_timing) {
      gpu = "\"gpu_offset_ns\":null,\"gpu_offset_at_ns\":null";
      samples = 0;
    }
    file_->lines +=
        text("\"clock\":{\"source\":\"tsc\",\"ticks\":%" PRId64 ",\"monotonic_ns\":%" PRId64
             ",\"realtime_ns\":%" PRId64 ",\"ns_per_tick\":0.400000000000,%s,\"gpu_samples\":%" PRId64 "}",
             int64_t(double(monotonic) * 2.5), monotonic, unix_ns(t), gpu.c_str(), samples * 2);
    close_line();
  }

  // At the end of each dump: accounts, clocks and roll-ups that are due.
  void dump_end(double t) {
    block_us_ = unix_ns(t) / 1000;
    for (size_t c = 0; c < w_.comms.size(); c++) {
      if (w_.comms[c].index_of(rank_) < 0)
        continue;
      bool moved = kinds_[c][0].written > kinds_[c][0].written_before ||
          kinds_[c][1].written > kinds_[c][1].written_before;
      write_gaps(int(c));
      if (t - last_clock_[c] >= kMinute && last_clock_[c] > -1e8)
        clock_line(int(c), t);
      if (rollups_ && t - rollup_from_[c] >= kMinute)
        rollup(int(c), t);
      if (moved && t - last_stats_[c] >= kStatsInterval)
        stats(int(c), t, false);
    }
  }

  void finish() {
    double t = end_s_ + 0.05;
    for (size_t c = 0; c < w_.comms.size(); c++) {
      if (w_.comms[c].index_of(rank_) < 0)
        continue;
      write_gaps(int(c));
      clock_line(int(c), t);
      if (rollups_)
        rollup(int(c), t);
      if (!control())
        continue;
      open_line(int(c));
      file_->lines += text("\"comm_end\":{\"why\":\"destroy\",\"ns\":%" PRId64 "}", unix_ns(t));
      close_line();
      pool_line(int(c), "coll");
      if (kinds_[c][1].started)
        pool_line(int(c), "p2p");
      stats(int(c), t, true);
    }
    if (!control())
      return;
    open_line(-1);
    file_->lines +=
        "\"pool_stats\":{\"kind\":\"arena\",\"capacity_bytes\":1048576,\"used_bytes\":0,"
        "\"high_water_bytes\":524288,\"cap_bytes\":268435456}";
    close_line();
    open_line(-1);
    file_->lines +=
        "\"dump_stats\":{\"coll_records\":0,\"coll_dropped_total\":0,\"coll_dropped_since_last_dump\":0,"
        "\"p2p_records\":0,\"p2p_dropped_total\":0,\"p2p_dropped_since_last_dump\":0,"
        "\"proxy_records\":0,\"proxy_dropped_total\":0,\"proxy_dropped_since_last_dump\":0,"
        "\"final\":true,\"coll\":" +
        account({}) + ",\"p2p\":" + account({}) + ",\"strays\":{},\"end\":\"finalized\"}";
    close_line();
  }

  void pool_line(int c, const char *kind) {
    bool p2p = !strcmp(kind, "p2p");
    open_line(c);
    file_->lines += text(
        "\"pool_stats\":{\"kind\":\"%s\",\"capacity\":256,\"high_water\":%d,\"growths\":0,"
        "\"bytes\":32768,\"slot_bytes\":128,\"dropped\":%" PRId64 "}",
        kind, luck_.whole(12, 200), kinds_[c][p2p].dropped);
    close_line();
  }

  std::string account(const Kind &k) const {
    std::string filtered, dropped, fallback;
    auto add = [](std::string &to, const char *name, int64_t n) {
      if (n)
        to += text("%s\"%s\":%" PRId64, to.empty() ? "" : ",", name, n);
    };
    add(filtered, "min_size", k.min_size);
    add(filtered, "p2p_disabled", k.no_p2p);
    add(filtered, "sampled", k.sampled);
    add(dropped, "pool_full", k.dropped);
    return text("{\"started\":%" PRId64 ",\"written\":%" PRId64
                ",\"filtered_by\":{%s},\"dropped_by\":{%s},"
                "\"incomplete\":0,\"late\":0,\"in_flight\":0,\"timing_fallback_by\":{%s}}",
                k.started, k.written, filtered.c_str(), dropped.c_str(), fallback.c_str());
  }

  void stats(int c, double t, bool final) {
    last_stats_[c] = t;
    if (!control())
      return;
    Kind &coll = kinds_[c][0], &p2p = kinds_[c][1];
    open_line(c);
    file_->lines += text(
        "\"dump_stats\":{\"coll_records\":%" PRId64 ",\"coll_dropped_total\":%" PRId64
        ",\"coll_dropped_since_last_dump\":%" PRId64 ",\"p2p_records\":%" PRId64
        ",\"p2p_dropped_total\":%" PRId64 ",\"p2p_dropped_since_last_dump\":%" PRId64
        ",\"proxy_records\":0,\"proxy_dropped_total\":0,\"proxy_dropped_since_last_dump\":0,\"final\":%s,",
        coll.written - coll.written_before, coll.dropped, coll.dropped - coll.dropped_before,
        p2p.written - p2p.written_before, p2p.dropped, p2p.dropped - p2p.dropped_before,
        final ? "true" : "false");
    file_->lines += "\"coll\":" + account(coll) + ",\"p2p\":" + account(p2p) + ",\"strays\":{}}";
    close_line();
    for (Kind *k : {&coll, &p2p}) {
      k->written_before = k->written;
      k->dropped_before = k->dropped;
    }
  }

  void write_gaps(int c) {
    for (bool p2p : {false, true}) {
      auto g = gaps_.find({c, p2p});
      if (g == gaps_.end())
        continue;
      if (control()) {
        open_line(c);
        file_->lines +=
            text("\"gap\":{\"kind\":\"%s\",\"count\":%" PRId64
                 ",\"cause\":\"pool_full\",\"rec_sn_from\":%" PRId64 ",\"rec_sn_to\":%" PRId64 "}",
                 p2p ? "p2p" : "coll", g->second[0], g->second[1], g->second[2]);
        close_line();
      }
      gaps_.erase(g);
    }
  }

  void rollup(int c, double t) {
    for (auto &s : sums_[c]) {
      const Sum &sum = s.second;
      open_line(c);
      std::string hist;
      for (auto &h : sum.hist)
        hist += text("%s\"%" PRId64 "\":%" PRId64, hist.empty() ? "" : ",", h.first, h.second);
      file_->lines += text("\"rollup\":{\"kind\":\"%s\",\"func\":\"%s\",\"msg_size_bytes\":%" PRId64
                           ",\"timing_source\":\"%s\",\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64
                           ",\"count\":%" PRId64 ",\"sum_bytes\":%" PRId64 ",\"sum_ns\":%" PRId64
                           ",\"min_ns\":%" PRId64 ",\"max_ns\":%" PRId64 ",\"hist\":{",
                           std::get<0>(s.first) ? "p2p" : "coll", std::get<1>(s.first).c_str(),
                           std::get<2>(s.first), source(), unix_ns(rollup_from_[c]), unix_ns(t), sum.count,
                           sum.bytes, sum.ns, sum.min, sum.max);
      file_->lines += hist + "}}";
      close_line();
    }
    sums_[c].clear();
    rollup_from_[c] = t;
  }

  // --- records ---

  struct Times {
    int64_t enqueue, delta, exec;
  };

  Times times(const Record &r) {
    Times t;
    t.enqueue = unix_ns(r.enqueue);
    int64_t start = gpu_stamp(r.start), end = gpu_stamp(r.end);
    t.exec = end - start;
    int64_t gpu_start = unix_ns_of(start) + int64_t(bias_ns_);
    uint64_t luck =
        key_of(job_.seed, 411, uint64_t(rank_) << 40 | uint64_t(r.comm) << 32 | uint64_t(r.call_sn),
               uint64_t(r.peer + 2) * 4 + uint64_t(r.func == Func::Send));
    if (weather_.start_noise_ns > 0) {
      gpu_start += int64_t(weather_.start_noise_ns * gauss(luck));
      t.exec = std::max<int64_t>(1000, t.exec + int64_t(weather_.time_noise_ns * gauss(luck ^ 1)));
    }
    if (weather_.cpu_timing) {
      // The proxy thread sees starts and stops when it looks.
      double first = r.start * 1e9 + 2000 + 28000 * unit(luck ^ 2),
             last = r.end * 1e9 + 2000 + 40000 * unit(luck ^ 3);
      t.exec = std::max<int64_t>(900, int64_t(last - first));
    }
    t.delta = gpu_start - t.enqueue;
    return t;
  }

  void record(size_t i) {
    const Record &r = records_[i];
    bool p2p = r.peer >= 0;
    Kind &k = kinds_[r.comm][p2p];
    k.started++;
    Fate f = fate_[i];
    if (f == Fate::NoP2p)
      k.no_p2p++;
    if (f == Fate::TooSmall)
      k.min_size++;
    if (f == Fate::Dropped) {
      k.dropped++;
      auto &g = gaps_.insert({{r.comm, p2p}, {0, r.call_sn, r.call_sn}}).first->second;
      g[0]++;
      g[1] = std::min<int64_t>(g[1], r.call_sn);
      g[2] = std::max<int64_t>(g[2], r.call_sn);
    }
    if (f != Fate::Written && f != Fate::Sampled)
      return;
    Times t = times(r);
    if (rollups_) {
      Sum &s = sums_[r.comm][{p2p, func_name(r.func), r.bytes}];
      s.count++;
      s.bytes += r.bytes;
      s.ns += t.exec;
      s.min = std::min(s.min, t.exec);
      s.max = std::max(s.max, t.exec);
      s.hist[bucket_of(t.exec)]++;
    }
    if (f == Fate::Sampled) {
      k.sampled++;
      return;
    }
    if (last_clock_[r.comm] < -1e8)
      clock_line(r.comm, r.end);
    k.written++;
    write_record(r, t, p2p);
  }

  void write_record(const Record &r, const Times &t, bool p2p) {
    const Comm &c = w_.comms[r.comm];
    const char *p = p2p ? "p2p" : "coll";
    double n = double(c.members.size());
    bool gathers = r.func == Func::AllGather || r.func == Func::ReduceScatter;
    int64_t tests = r.bytes * (gathers ? int64_t(n) : 1);
    double factor = r.func == Func::AllReduce ? 2 * (n - 1) / n : gathers ? (n - 1) / n : 1;
    int64_t us = t.exec <= 0 ? 0 : std::max<int64_t>(1, (t.exec + 500) / 1000);
    std::string bandwidth = text("\"%s_algobw_gbs\":null,\"%s_busbw_gbs\":null", p, p);
    if (t.exec > 0) {
      double gbs = double(tests) / double(t.exec);
      bandwidth = text("\"%s_algobw_gbs\":%.6f,\"%s_busbw_gbs\":%.6f", p, gbs, p, gbs * factor);
    }
    open_line(r.comm);
    std::string &out = file_->lines;
    if (p2p)
      out += text("\"p2p_perf\":{\"p2p\":\"%s\",\"p2p_sn\":%d,\"p2p_peer\":%d,", func_name(r.func), r.sn,
                  r.peer);
    else
      out += text("\"coll_perf\":{\"coll\":\"%s\",\"coll_sn\":%d,", func_name(r.func), r.sn);
    out += text("\"%s_msg_size_bytes\":%" PRId64 ",\"%s_exec_time_us\":%" PRId64
                ",\"%s_timing_source\":\"%s\",%s,",
                p, r.bytes, p, us, p, source(), bandwidth.c_str());
    if (p2p) {
      int channels = int(std::clamp<int64_t>(r.bytes >> 18, 1, c.hosts.size() > 1 ? 2 : 8));
      out += text("\"p2p_datatype\":\"%s\",\"p2p_nchannels\":%d,", r.type, channels);
    } else {
      out += how(c, r, tests);
    }
    out += text("\"%s_exec_time_ns\":%" PRId64 ",\"%s_enqueue_ns\":%" PRId64 ",", p, t.exec, p, t.enqueue);
    if (!weather_.cpu_timing)
      out += text("\"%s_gpu_start_delta_ns\":%" PRId64 ",", p, t.delta);
    out += text("\"rec_sn\":%d,\"nccl_tests_size_bytes\":%" PRId64 ",\"call_sn\":%d}", r.call_sn, tests,
                r.call_sn);
    close_line();
  }

  // Algorithm, protocol and channels as NCCL's tuner would choose them.
  std::string how(const Comm &c, const Record &r, int64_t total) const {
    const char *algo = "RING", *proto = "SIMPLE";
    bool small = total < 65536, middle = total < (1 << 20);
    if (r.func == Func::AllReduce && middle && (c.hosts.size() > 1 || c.members.size() > 4))
      algo = "TREE";
    if (small)
      proto = "LL";
    else if (middle)
      proto = w_.kind.nvlink ? "LL128" : "LL";
    if (w_.kind.nvls && c.hosts.size() == 1 && c.members.size() >= 4 && r.func == Func::AllReduce && !middle)
      algo = "NVLS";
    int channels = int(std::clamp<int64_t>(total >> 16, 1, w_.kind.channels));
    const char *type = r.func == Func::AllGather || r.func == Func::Broadcast ? "ncclInt8" : r.type;
    return text(
        "\"coll_algo\":\"%s\",\"coll_proto\":\"%s\",\"coll_datatype\":\"%s\",\"coll_root\":%d,"
        "\"coll_nchannels\":%d,",
        algo, proto, type, r.root, channels);
  }
};

}  // namespace

void write_logs(const std::string &folder, const Job &job, const Weather &weather, const Outcome &outcome,
                const std::vector<std::vector<Fate>> &fate, const Attempt &attempt) {
  for (int r = 0; r < job.world.n_ranks(); r++) {
    if (weather.missing.count(r))
      continue;
    ProcessLog(folder, job, weather, outcome, fate[r], attempt, r).write();
  }
}
