#include "logs.h"
#include <unistd.h>
#include <zlib.h>
#include <cstdarg>
#include <cstdlib>
#include <algorithm>

// An account without operations, as the process's last line has it.
#define EMPTY \
  "{\"started\":0,\"written\":0,\"filtered_by\":{},\"dropped_by\":{},\"incomplete\":0," \
  "\"late\":0,\"in_flight\":0,\"timing_fallback_by\":{}}"

static const char *const names[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                    "AlltoAll",  "Send",      "Recv"};

// The plugin's choice of one in n: by communicator and number, mixed, so that all ranks keep the same
// collectives, and not the same layer of each step (docs/format.md, dump_stats).
static bool is_sampled(uint64_t comm_hash, uint64_t call, uint64_t n) {
  if (n <= 1)
    return true;
  uint64_t x = comm_hash + call * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return (x ^ x >> 31) % n == 0;
}

static bool message(const Rec &r) { return r.func == SEND || r.func == RECV; }

Weather draw_weather(const Cluster &c, ns_t run, bool messages, Rng &rng) {
  Weather w;
  bool bad = rng.chance(0.5);
  int what[2] = {-1, -1};
  if (bad) {
    what[0] = rng.range(0, 10);
    if (rng.chance(0.4))
      what[1] = rng.range(0, 10);
    if (what[1] == what[0])
      what[1] = -1;
  }
  w.old_nccl = rng.chance(0.3);
  w.missing.assign(c.n_ranks(), false);
  for (int h = 0; h < c.n_hosts; h++) {
    w.offset_ns.push_back(rng.uniform(-5e5, 5e5));
    w.drift.push_back(rng.uniform(-2e-7, 2e-7));
  }
  for (int k : what) {
    if (k == 0) {
      w.noise_ns = rng.log_uniform(2e3, 3e5);
      w.names.push_back("noisy_stamps");
    } else if (k == 1) {
      w.timer_ns = 1024;
      w.names.push_back("coarse_timer");
    } else if (k == 2) {
      for (double &d : w.drift)
        d = rng.uniform(-1e-4, 1e-4);
      w.names.push_back("drift");
    } else if (k == 3) {
      for (double &o : w.offset_ns)
        o = rng.uniform(-2e11, 2e11);
      w.names.push_back("clocks_apart");
    } else if (k == 4) {
      w.step_host = rng.range(0, c.n_hosts - 1);
      w.step_at = run * rng.uniform(0.2, 0.8);
      w.step_ns = rng.uniform(-3e9, 3e9);
      w.names.push_back("clock_step");
    } else if (k == 5) {
      int n = rng.range(1, std::max(1, c.n_ranks() / 8));
      for (int i = 0; i < n; i++)
        w.missing[rng.range(0, c.n_ranks() - 1)] = true;
      w.names.push_back("missing_ranks");
    } else if (k == 6) {
      w.sample = rng.range(2, 8);
      w.names.push_back("sampled");
    } else if (k == 7) {
      w.min_size = rng.log_uniform(1024, 1 << 20);
      w.names.push_back("min_size");
    } else if (k == 8 && messages) {
      w.no_p2p = true;
      w.names.push_back("no_p2p");
    } else if (k == 9) {
      w.other = rng.chance(0.5) ? "attempt" : "job";
      w.names.push_back("other_" + w.other);
    } else if (k == 10) {
      w.truncated = true;
      w.names.push_back("truncated");
    }
  }
  return w;
}

bool kept(const Weather &w, const Rec &r) {
  if (w.no_p2p && message(r))
    return false;
  if (r.bytes < w.min_size)
    return false;
  return r.call % w.sample == 0;
}

// A log of one process.
class File {
 public:
  File(const LogJob &j, int rank) : j_(j), rank_(rank) {
    h_ = j.c->host(rank);
    pid_ = 1000 + (int)(hash4(j.seed, 81, rank, 0) % 60000);
    char name[600];
    snprintf(name, sizeof name, "%s/%s-pid%d-%lld.jsonl.gz", j.dir.c_str(), j.hosts[h_].c_str(), pid_,
             (long long)(stamp(0) / 1000000000));
    path_ = name;
    z_ = gzopen(name, "wb1");
    gzbuffer(z_, 1 << 17);
  }

  // Time on the host's own clock.
  long long stamp(ns_t t) const {
    double off = j_.w.offset_ns[h_] + j_.w.drift[h_] * t;
    if (h_ == j_.w.step_host && t > j_.w.step_at)
      off += j_.w.step_ns;
    return (long long)j_.start_unix_ns + (long long)(t + off);
  }

  // GPU stamps come in the timer's steps.
  double tick(double t) const { return std::floor(t / j_.w.timer_ns) * j_.w.timer_ns; }

  void line(const char *format, ...) __attribute__((format(printf, 2, 3))) {
    char buf[2048];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(buf, sizeof buf, format, ap);
    va_end(ap);
    gzwrite(z_, buf, (unsigned)n);
  }

  std::string head(int comm, ns_t t) const {
    char id[400];
    long long dump = stamp(t) / 500000000 * 500000;
    if (comm < 0)
      snprintf(id, sizeof id, "{\"header\":{\"id\":\"0x0\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":0}", rank_,
               j_.c->n_ranks());
    else
      snprintf(id, sizeof id,
               "{\"header\":{\"id\":\"0x%llx\",\"comm_name\":\"%s\",\"rank\":%d,"
               "\"n_ranks\":%d,\"nnodes\":%d}",
               hash(comm), (*j_.comms)[comm].name, my_rank(comm), (int)(*j_.comms)[comm].members.size(),
               nodes(comm));
    char meta[400];
    snprintf(meta, sizeof meta,
             ",\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
             "\"git_rev\":\"1a2b3c4d5\",\"rec_mechanism\":\"nccl_profiler_interface\","
             "\"dump_timestamp_us\":%lld,\"hostname\":\"%s\",\"pid\":%d,"
             "\"producer\":\"nccl-inspector-c 0.1.0\"},",
             dump, j_.hosts[h_].c_str(), pid_);
    return std::string(id) + meta;
  }

  int my_rank(int comm) const {
    const std::vector<int> &m = (*j_.comms)[comm].members;
    return (int)(std::find(m.begin(), m.end(), rank_) - m.begin());
  }

  unsigned long long hash(int comm) const { return hash4(j_.seed, 82, comm, 0) >> 8 | 1; }

  int nodes(int comm) const {
    std::vector<bool> on(j_.c->n_hosts);
    for (int r : (*j_.comms)[comm].members)
      on[j_.c->host(r)] = true;
    return (int)std::count(on.begin(), on.end(), true);
  }

  long write();

 private:
  void process();
  void begin_comm(int comm);
  void end_comm(int comm, ns_t t);
  void record(const Rec &r, int func_sn);
  void close();

  struct Account {
    long started[2] = {0, 0}, written[2] = {0, 0};
    long sampled[2] = {0, 0}, small[2] = {0, 0}, disabled = 0;
  };
  const LogJob &j_;
  int rank_, h_, pid_;
  std::string path_;
  gzFile z_;
  std::vector<Account> accounts_;
  std::vector<std::vector<int>> func_sns_;  // by communicator and call
};

void File::process() {
  int version = j_.w.old_nccl ? 22707 : 22809;
  std::string settings;
  if (j_.w.sample > 1)
    settings = "\"NCCL_INSPECTOR_SAMPLE\":\"" + std::to_string(j_.w.sample) + "\"";
  line(
      "%s\"process\":{\"start_ns\":%lld,\"boot_id\":\"boot-%s\",\"exe\":\"python3\","
      "\"rank\":%d,"
      "\"local_rank\":%d,\"world_size\":%d,\"env\":{\"RANK\":\"%d\",\"LOCAL_RANK\":\"%d\","
      "\"WORLD_SIZE\":\"%d\"},\"nccl_version\":%d,\"interface\":\"%s\",\"settings\":{%s},"
      "\"blackbox\":null}}\n",
      head(-1, 0).c_str(), stamp(0), j_.hosts[h_].c_str(), rank_, rank_ % j_.c->gpus, j_.c->n_ranks(), rank_,
      rank_ % j_.c->gpus, j_.c->n_ranks(), version, j_.w.old_nccl ? "v4" : "v5", settings.c_str());
}

void File::begin_comm(int comm) {
  const Comm &m = (*j_.comms)[comm];
  std::string h = head(comm, 0);
  line(
      "%s\"comm\":{\"name\":\"%s\",\"hash\":\"0x%llx\",\"rank\":%d,\"n_ranks\":%d,"
      "\"nnodes\":%d,"
      "\"gpu_index\":%d,\"gpu_uuid\":null,\"gpu_pci\":\"0000:%02x:00.0\",\"init_ns\":%lld}}"
      "\n",
      h.c_str(), m.name, hash(comm), my_rank(comm), (int)m.members.size(), nodes(comm), rank_ % j_.c->gpus,
      0x1b + 16 * (rank_ % j_.c->gpus), stamp(5e7));
}

void File::end_comm(int comm, ns_t t) {
  const Account &a = accounts_[comm];
  std::string filtered[2];
  auto add = [&](int kind, const char *cause, long n) {
    if (n == 0)
      return;
    filtered[kind] += filtered[kind].empty() ? "" : ",";
    filtered[kind] += "\"" + std::string(cause) + "\":" + std::to_string(n);
  };
  for (int kind = 0; kind < 2; kind++) {
    add(kind, "min_size", a.small[kind]);
    if (kind == 1)
      add(kind, "p2p_disabled", a.disabled);
    add(kind, "sampled", a.sampled[kind]);
  }
  line(
      "%s\"dump_stats\":{\"coll_records\":%ld,\"coll_dropped_total\":0,\"coll_dropped_since_"
      "last_dump\":0,"
      "\"p2p_records\":%ld,\"p2p_dropped_total\":0,\"p2p_dropped_since_last_dump\":0,"
      "\"proxy_records\":0,"
      "\"proxy_dropped_total\":0,\"proxy_dropped_since_last_dump\":0,\"final\":true,"
      "\"coll\":{\"started\":%ld,\"written\":%ld,\"filtered_by\":{%s},\"dropped_by\":{},"
      "\"incomplete\":0,"
      "\"late\":0,\"in_flight\":0,\"timing_fallback_by\":{}},"
      "\"p2p\":{\"started\":%ld,\"written\":%ld,\"filtered_by\":{%s},\"dropped_by\":{},"
      "\"incomplete\":0,"
      "\"late\":0,\"in_flight\":0,\"timing_fallback_by\":{}},\"strays\":{}}}\n",
      head(comm, t).c_str(), a.written[0], a.written[1], a.started[0], a.written[0], filtered[0].c_str(),
      a.started[1], a.written[1], filtered[1].c_str());
  line("%s\"comm_end\":{\"why\":\"destroy\",\"ns\":%lld}}\n", head(comm, t).c_str(), stamp(t));
}

void File::record(const Rec &r, int func_sn) {
  const Comm &m = (*j_.comms)[r.comm];
  int n = (int)m.members.size();
  bool msg = message(r);
  uint64_t h = hash4(j_.seed, 83 + r.comm * 8 + r.func, rank_, r.call);
  double start = tick(r.start + j_.w.noise_ns * unit(h));
  double stop = tick(r.end + j_.w.noise_ns * (unit(mix(h)) - 0.5));
  double ns = std::max(stop - start, j_.w.timer_ns);
  double bytes = std::floor(r.bytes);
  bool times_n = r.func == ALLGATHER || r.func == REDUCESCATTER || r.func == ALLTOALL;
  double total = times_n ? bytes * n : bytes;
  double factor = msg || r.func == BROADCAST ? 1 : (r.func == ALLREDUCE ? 2.0 : 1.0) * (n - 1) / n;
  const char *type = r.func == ALLGATHER || r.func == BROADCAST ? "ncclInt8"
      : m.dtype_bytes == 4                                      ? "ncclFloat32"
                                                                : "ncclBfloat16";
  bool small = bytes < 65536;
  const char *p = msg ? "p2p" : "coll";
  char peer[40] = "";
  if (msg)
    snprintf(peer, sizeof peer, "\"p2p_peer\":%d,", r.peer);
  char how[200] = "";
  if (!msg)
    snprintf(how, sizeof how, "\"coll_algo\":\"%s\",\"coll_proto\":\"%s\",",
             small && r.func == ALLREDUCE ? "TREE" : "RING", small ? "LL" : "SIMPLE");
  char root[40] = "";
  if (!msg)
    snprintf(root, sizeof root, "\"coll_root\":0,");
  char call[40] = "";
  if (!j_.w.old_nccl)
    snprintf(call, sizeof call, ",\"call_sn\":%d", r.call);
  long long us = std::max(1LL, (long long)(ns / 1000 + 0.5));
  long long enqueue = stamp(r.enqueue);
  // The GPU's time comes by a fit of the clocks, so it has the host's clock as it was.
  line(
      "%s\"%s_perf\":{\"%s\":\"%s\",\"%s_sn\":%d,%s\"%s_msg_size_bytes\":%.0f,\"%s_exec_"
      "time_us\":%lld,"
      "\"%s_timing_source\":\"kernel_gpu\",\"%s_algobw_gbs\":%.6f,\"%s_busbw_gbs\":%.6f,%s"
      "\"%s_datatype\":\"%s\",%s\"%s_nchannels\":%d,\"%s_exec_time_ns\":%.0f,\"%s_enqueue_"
      "ns\":%lld,"
      "\"%s_gpu_start_delta_ns\":%.0f,\"rec_sn\":%d,\"nccl_tests_size_bytes\":%.0f%s}}\n",
      head(r.comm, r.end).c_str(), p, p, names[r.func], p, msg ? r.call : func_sn, peer, p, bytes, p, us, p,
      p, total / ns, p, total / ns * factor, how, p, type, root, p, small ? 2 : 16, p, ns, p, enqueue, p,
      start - r.enqueue, r.call, total, call);
}

// A log whose copy was cut ends within a line.
void File::close() {
  gzclose(z_);
  if (!j_.w.truncated || hash4(j_.seed, 84, rank_, 0) % 4)
    return;
  FILE *f = fopen(path_.c_str(), "rb");
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  fclose(f);
  if (truncate(path_.c_str(), size - std::min(size / 4, 700L)))
    perror(path_.c_str());
}

long File::write() {
  std::vector<Rec> all = (*j_.records)[rank_];
  std::sort(all.begin(), all.end(), [](const Rec &a, const Rec &b) { return a.end < b.end; });
  size_t n = j_.comms->size();
  accounts_.resize(n);
  // The number of a call among those of its function needs the order of calls.
  std::vector<std::vector<std::pair<int, int>>> calls(n);
  for (const Rec &r : all)
    if (!message(r))
      calls[r.comm].push_back({r.call, r.func});
  func_sns_.resize(n);
  for (size_t i = 0; i < n; i++) {
    std::sort(calls[i].begin(), calls[i].end());
    int count[8] = {0};
    func_sns_[i].resize(calls[i].empty() ? 0 : calls[i].back().first + 1);
    for (auto &c : calls[i])
      func_sns_[i][c.first] = count[c.second]++;
  }
  process();
  for (size_t i = 0; i < n; i++)
    if (my_rank((int)i) < (int)(*j_.comms)[i].members.size())
      begin_comm((int)i);
  long lines = 0;
  for (const Rec &r : all) {
    Account &a = accounts_[r.comm];
    int kind = message(r);
    a.started[kind]++;
    if (j_.w.no_p2p && kind) {
      a.disabled++;
    } else if (r.bytes < j_.w.min_size) {
      a.small[kind]++;
    } else if (!is_sampled(hash(r.comm), r.call, j_.w.sample)) {
      a.sampled[kind]++;
    } else {
      a.written[kind]++;
      record(r, kind ? 0 : func_sns_[r.comm][r.call]);
      lines++;
    }
  }
  ns_t end = all.empty() ? 1e9 : all.back().end + 1e7;
  for (size_t i = 0; i < n && !j_.killed; i++)
    if (my_rank((int)i) < (int)(*j_.comms)[i].members.size())
      end_comm((int)i, end);
  if (!j_.killed)
    line(
        "%s\"dump_stats\":{\"coll_records\":0,\"coll_dropped_total\":0,"
        "\"coll_dropped_since_last_dump\":0,\"p2p_records\":0,\"p2p_dropped_total\":0,"
        "\"p2p_dropped_since_last_dump\":0,\"proxy_records\":0,\"proxy_dropped_"
        "total\":0,"
        "\"proxy_dropped_since_last_dump\":0,\"final\":true,\"coll\":" EMPTY
        ","
        "\"p2p\":" EMPTY ",\"strays\":{},\"end\":\"finalized\"}}\n",
        head(-1, end).c_str());
  close();
  return lines;
}

long write_logs(const LogJob &j) {
  long lines = 0;
  for (int r = 0; r < j.c->n_ranks(); r++)
    if (!j.w.missing[r])
      lines += File(j, r).write();
  return lines;
}
