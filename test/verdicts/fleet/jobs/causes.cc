#include "causes.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

namespace {

constexpr double kForever = 1e7;

struct Context {
  const Job &job;
  Cause &c;
  int number;
  double span;
  int steps;
  Effects &e;
  Dice dice;
  double step_s() const { return span / steps; }
  // From the mildest to the worst, by the cause's strength.
  double scale(double mild, double worst) const { return mild * std::pow(worst / mild, c.strength); }
  void say(double severity, const char *what) {
    c.severity = severity;
    c.what = what;
  }
};

// --- when ---

void always(Context &x) {
  x.c.always = true;
  x.c.windows = {{0, kForever, 1}};
}

void from_onset(Context &x) { x.c.windows = {{x.span * x.dice.between(0.15, 0.6), kForever, 1}}; }

void one_episode(Context &x) {
  double length = x.span * x.dice.between(0.3, 0.6);
  double begin = (x.span - length) * x.dice.between(0.1, 0.9);
  x.c.windows = {{begin, begin + length, 1}};
}

// Alarms come and go: heat builds up, the clock drops, the chip cools down.
void bursts(Context &x, double duty_low, double duty_high, int count_low, int count_high) {
  int n = x.dice.whole(count_low, count_high);
  double duty = x.dice.between(duty_low, duty_high), period = x.span * 1.3 / n;
  for (int k = 0; k < n; k++) {
    double begin = period * (k + x.dice.between(0.02, 0.6));
    double length = period * duty * x.dice.between(0.6, 1.4);
    if (!x.c.windows.empty() && begin < x.c.windows.back().end)
      begin = x.c.windows.back().end + 0.05 * period;
    x.c.windows.push_back({begin, begin + length, 1});
  }
}

void lasting(Context &x) {
  double p = x.dice.real();
  if (p < 0.4)
    always(x);
  else if (p < 0.75)
    from_onset(x);
  else
    one_episode(x);
}

// --- on what ---

void slow_gpu(Context &x, int rank, double factor) {
  for (const Window &w : x.c.windows)
    x.e.gpu[rank].add({w.begin, w.end, 1 / factor});
}

void slow_cpu(Context &x, int rank, double factor) {
  for (const Window &w : x.c.windows)
    x.e.cpu[rank].add({w.begin, w.end, 1 / factor});
}

void slow_copy(Context &x, int rank, double factor) {
  for (const Window &w : x.c.windows)
    x.e.copy[rank].add({w.begin, w.end, 1 / factor});
}

void narrow_link(Context &x, int link, double factor) {
  for (const Window &w : x.c.windows)
    x.e.link[link].add({w.begin, w.end, 1 / factor});
}

void pause(Context &x, int rank, int step, double seconds, bool late_data) {
  if (seconds > 0)
    x.e.pauses[rank].push_back({step, x.dice.real(), seconds, x.number, late_data});
}

// --- the causes ---

void low_clock(Context &x) {
  lasting(x);
  x.say(x.scale(1.04, 2.0), "times the GPU's time for the same work: a clock that stays low (power brake)");
  slow_gpu(x, x.c.ranks[0], x.c.severity);
}

void thermal_bursts(Context &x) {
  bursts(x, 0.2, 0.6, 4, 14);
  x.say(x.scale(1.1, 3.0), "times the GPU's time while it is too hot");
  slow_gpu(x, x.c.ranks[0], x.c.severity);
}

void memory_errors(Context &x) {
  double length = x.dice.geometric(0.02, 0.12), mean_gap = std::max(2 * length, x.scale(60, 1.2) * length);
  x.say(1 / mean_gap, "stalls of the GPU per second: rows of its memory are repaired");
  x.c.paused = true;
  double t = 0;
  while (true) {
    t += mean_gap * -std::log(x.dice.real()) + length;
    if (t > x.span * 2 || x.c.windows.size() > 4000)
      break;
    x.c.windows.push_back({t, t + length, 1});
  }
  slow_gpu(x, x.c.ranks[0], 50);
}

void shared_gpu(Context &x) {
  bursts(x, 0.3, 0.6, 15, 60);
  x.say(x.scale(1.2, 4.0), "times the GPU's time while a forgotten process uses it too");
  slow_gpu(x, x.c.ranks[0], x.c.severity);
}

void gc_pause(Context &x) {
  x.c.paused = true;
  x.c.every_steps = std::max(2, std::min(x.steps / 8, x.dice.whole(5, 40)));
  x.say(x.scale(0.05, 2.5), "seconds of a full garbage collection");
  for (int s = x.dice.whole(1, x.c.every_steps); s < x.steps; s += x.c.every_steps)
    pause(x, x.c.ranks[0], s, x.c.severity * x.dice.between(0.85, 1.15), false);
}

// A leak: each collection has more objects to look at than the one before.
void gc_leak(Context &x) {
  x.c.paused = true;
  x.c.every_steps = std::max(2, std::min(x.steps / 12, x.dice.whole(4, 25)));
  x.say(x.scale(0.08, 4.0), "seconds of the last garbage collection; the first ones are short");
  for (int s = x.c.every_steps; s < x.steps; s += x.c.every_steps)
    pause(x, x.c.ranks[0], s, x.c.severity * s / x.steps * x.dice.between(0.9, 1.1), false);
}

void slow_loader(Context &x) {
  x.c.paused = true;
  lasting(x);
  double share = x.dice.between(0.25, 1.0), mean = x.step_s() * x.scale(0.02, 1.2);
  x.say(mean, "seconds that a batch comes late, on the average of those that do");
  int first = x.c.always ? 0 : int(x.c.windows[0].begin / x.step_s());
  int last = x.c.windows[0].end > x.span ? x.steps : int(x.c.windows[0].end / x.step_s());
  for (int s = std::max(1, first); s < last; s++)
    if (x.dice.chance(share))
      pause(x, x.c.ranks[0], s, mean * std::exp(0.6 * x.dice.normal() - 0.18), true);
}

void loader_rhythm(Context &x) {
  x.c.paused = true;
  x.c.every_steps = std::min(x.dice.pick(std::vector<int>{4, 6, 8, 12, 16}), x.steps / 6);
  double mean = x.step_s() * x.c.every_steps * x.scale(0.01, 0.7);
  x.say(mean, "seconds of waiting for the host's loaders, each time all of them have run dry");
  for (int s = x.c.every_steps; s < x.steps; s += x.c.every_steps) {
    double all = mean * x.dice.between(0.8, 1.2);
    for (int r : x.c.ranks)
      pause(x, r, s, all * x.dice.between(0.85, 1.1), true);
  }
}

void cpu_governor(Context &x) {
  lasting(x);
  x.say(x.scale(1.25, 6.0), "times the CPU's time: the host's governor saves power");
  for (int r : x.c.ranks)
    slow_cpu(x, r, x.c.severity * x.dice.between(0.95, 1.05));
}

void numa_misbind(Context &x) {
  always(x);
  x.say(x.scale(1.15, 4.0), "times the CPU's time: the process runs on the far socket");
  slow_cpu(x, x.c.ranks[0], x.c.severity);
  slow_copy(x, x.c.ranks[0], std::pow(x.c.severity, 1.5));
}

void noisy_neighbour(Context &x) {
  bursts(x, 0.25, 0.6, 3, 10);
  x.say(x.scale(1.3, 9.0), "times the CPU's time while another tenant of the host is busy");
  const World &w = x.job.world;
  for (int r : x.c.ranks) {
    slow_cpu(x, r, x.c.severity);
    slow_copy(x, r, std::sqrt(x.c.severity));
  }
  for (int k = 0; k < w.kind.nics; k++) {
    narrow_link(x, w.nic_out(x.c.hosts[0], k), std::pow(x.c.severity, 0.6));
    narrow_link(x, w.nic_in(x.c.hosts[0], k), std::pow(x.c.severity, 0.6));
  }
}

void narrow_nic(Context &x, double factor) {
  const World &w = x.job.world;
  narrow_link(x, w.nic_out(x.c.hosts[0], x.c.nic), factor);
  narrow_link(x, w.nic_in(x.c.hosts[0], x.c.nic), factor);
}

void nic_downgrade(Context &x) {
  lasting(x);
  x.say(x.scale(1.3, 16.0), "times less bandwidth: the NIC's PCIe link was trained down");
  narrow_nic(x, x.c.severity);
}

void nic_flaps(Context &x) {
  x.c.paused = true;
  int n = int(x.scale(2, 24) + 0.5);
  double share = x.scale(0.004, 0.015);
  for (int k = 0; k < n; k++) {
    double length = std::max(0.1, x.span * share * x.dice.between(0.5, 1.5));
    double begin = x.span * 1.1 * (k + x.dice.between(0.05, 0.85)) / n;
    if (!x.c.windows.empty() && begin < x.c.windows.back().end + 0.02)
      continue;
    x.c.windows.push_back({begin, begin + length, 1});
  }
  x.say(n, "times the link went down and came back");
  narrow_nic(x, 3000);
}

void lossy_nic(Context &x) {
  lasting(x);
  Window all = x.c.windows[0];
  double end = std::min(all.end, x.span * 3);
  double piece = std::max(0.05, (end - all.begin) / 3000), worst = x.scale(1.5, 40);
  x.say(worst, "times less bandwidth in the worst moments: lost packets are sent again");
  const World &w = x.job.world;
  for (double t = all.begin; t < end; t += piece) {
    double factor = std::pow(worst, std::pow(x.dice.real(), 1.5));
    x.e.link[w.nic_out(x.c.hosts[0], x.c.nic)].add({t, t + piece, 1 / factor});
    x.e.link[w.nic_in(x.c.hosts[0], x.c.nic)].add({t, t + piece, 1 / std::sqrt(factor)});
  }
}

void nvlink_lanes(Context &x) {
  lasting(x);
  x.say(x.scale(1.5, 18.0), "times less bandwidth of a GPU's NVLinks: lanes are down");
  narrow_link(x, x.job.world.gpu_out(x.c.ranks[0]), x.c.severity);
  narrow_link(x, x.job.world.gpu_in(x.c.ranks[0]), x.c.severity);
}

void slow_path(Context &x) {
  lasting(x);
  x.say(x.scale(1.3, 20.0), "times less bandwidth between two hosts: flows collide on one uplink");
  const World &w = x.job.world;
  narrow_link(x, w.path(x.c.hosts[0], x.c.hosts[1]), x.c.severity);
  narrow_link(x, w.path(x.c.hosts[1], x.c.hosts[0]), x.c.severity);
}

void fabric_congestion(Context &x) {
  bursts(x, 0.25, 0.55, 2, 7);
  x.say(x.scale(1.3, 12.0), "times less bandwidth between hosts while other jobs fill the fabric");
  const World &w = x.job.world;
  for (const Window &all : x.c.windows) {
    double piece = (all.end - all.begin) / 6;
    for (double t = all.begin; t < all.end - 1e-9; t += piece)
      for (int h = 0; h < w.n_hosts(); h++)
        for (int k = 0; k < w.kind.nics; k++) {
          double factor = std::max(1.0, x.c.severity * x.dice.between(0.75, 1.25));
          x.e.link[w.nic_out(h, k)].add({t, t + piece, 1 / factor});
          x.e.link[w.nic_in(h, k)].add({t, t + piece, 1 / factor});
        }
  }
}

void heavy_stage(Context &x) {
  always(x);
  x.say(x.scale(1.05, 1.9), "times the work of the other stages: the model was cut unevenly");
  for (int r : x.c.ranks)
    x.e.load[r] *= x.c.severity;
}

void uneven_replica(Context &x) {
  always(x);
  x.say(x.scale(1.04, 1.7), "times the work of the other replicas: its part of the data has longer texts");
  for (int r : x.c.ranks)
    x.e.load[r] *= x.c.severity;
}

void hot_experts(Context &x) {
  always(x);
  x.say(x.scale(1.15, 3.5), "times the tokens of other experts");
  for (int r : x.c.ranks)
    x.e.expert[r] *= x.c.severity;
}

void checkpoints(Context &x) {
  x.c.paused = true;
  x.c.every_steps = std::max(4, std::min(x.steps / 4, x.dice.whole(x.steps / 14, x.steps / 4)));
  x.say(x.step_s() * x.c.every_steps * x.scale(0.012, 0.5), "seconds that a checkpoint takes");
  x.e.checkpoint_every = x.c.every_steps;
  x.e.checkpoint_s = x.c.severity;
}

void slow_checkpoint_host(Context &x) {
  x.c.paused = true;
  x.c.every_steps = x.e.checkpoint_every;
  x.say(x.scale(1.4, 12.0), "times as long as the other hosts for a checkpoint");
  for (int r : x.c.ranks)
    x.e.storage[r].add({0, kForever, 1 / x.c.severity});
}

void evaluations(Context &x) {
  x.c.paused = true;
  x.c.every_steps = std::max(5, std::min(x.steps / 4, x.dice.whole(x.steps / 12, x.steps / 4)));
  x.say(std::max(1.0, std::round(x.c.every_steps * x.scale(0.03, 1.6))), "batches of each evaluation");
  x.e.eval_every = x.c.every_steps;
  x.e.eval_rounds = int(x.c.severity);
}

void heavy_batches(Context &x) {
  x.say(x.scale(1.1, 3.0), "times the work of a usual step, in some steps");
  double share = x.dice.between(0.08, 0.3);
  for (int s = 1; s < x.steps; s++)
    if (x.dice.chance(share))
      x.e.heavy_steps.push_back({s, x.c.severity * x.dice.between(0.85, 1.15)});
  always(x);
}

void rank0_logging(Context &x) {
  x.c.paused = true;
  x.c.every_steps = x.dice.pick(std::vector<int>{1, 2, 5, 10});
  double mean = x.step_s() * x.c.every_steps * x.scale(0.012, 0.55);
  x.say(mean, "seconds that rank 0 needs to send its metrics");
  for (int s = x.c.every_steps - 1; s < x.steps; s += x.c.every_steps)
    pause(x, 0, s, mean * std::exp(0.35 * x.dice.normal()), true);
}

void power_cap(Context &x) {
  lasting(x);
  x.say(x.scale(1.03, 1.8), "times the time of the host's GPUs: a power supply has failed");
  for (int r : x.c.ranks)
    slow_gpu(x, r, x.c.severity * x.dice.between(0.985, 1.015));
}

void hot_inlet(Context &x) {
  double begin = x.span * x.dice.between(0.1, 0.4), length = x.span * x.dice.between(0.4, 0.9);
  x.c.windows = {{begin, begin + length, 1}};
  x.say(x.scale(1.06, 2.4), "times the time of the host's GPUs when its air is hottest");
  const int pieces = 16;
  for (int k = 0; k < pieces; k++) {
    double t = begin + length * k / pieces, heat = std::sin(3.14159 * (k + 0.5) / pieces);
    for (int r : x.c.ranks) {
      double own = 1 + (x.c.severity - 1) * heat * x.dice.between(0.85, 1.1);
      x.e.gpu[r].add({t, t + length / pieces, 1 / own});
    }
  }
}

void allocator_retries(Context &x) {
  x.c.paused = true;
  double share = x.dice.between(0.06, 0.25), mean = x.scale(0.2, 8.0) * x.step_s();
  x.say(mean, "seconds that memory is given back and asked for again");
  for (int s = 2; s < x.steps; s++)
    if (x.dice.chance(share * (0.4 + 1.2 * s / x.steps)))
      pause(x, x.c.ranks[0], s, mean * x.dice.between(0.3, 1.7), false);
}

void monitor_cron(Context &x) {
  x.c.paused = true;
  x.c.period_s = x.span / x.dice.between(6, 25);
  double length = x.c.period_s * x.scale(0.012, 0.5);
  x.say(length, "seconds that a job of the system takes all CPUs of the host");
  for (double t = x.c.period_s * x.dice.real(); t < x.span * 2.5; t += x.c.period_s)
    x.c.windows.push_back({t, t + length, 1});
  for (int r : x.c.ranks)
    slow_cpu(x, r, 60);
}

void pcie_gpu(Context &x) {
  lasting(x);
  x.say(x.scale(2.0, 32.0), "times the time of copies to a GPU: its PCIe link was trained down");
  slow_copy(x, x.c.ranks[0], x.c.severity);
}

struct Kind {
  const char *name;
  const char *level;
  bool benign;
  void (*apply)(Context &);
};

const std::vector<Kind> &kinds() {
  static const std::vector<Kind> list = {
      {"gpu_low_clock", "rank", false, low_clock},
      {"gpu_thermal_bursts", "rank", false, thermal_bursts},
      {"gpu_memory_errors", "rank", false, memory_errors},
      {"gpu_shared", "rank", false, shared_gpu},
      {"gc_pause", "rank", false, gc_pause},
      {"gc_leak", "rank", false, gc_leak},
      {"slow_loader", "rank", false, slow_loader},
      {"numa_misbind", "rank", false, numa_misbind},
      {"rank0_logging", "rank", false, rank0_logging},
      {"allocator_retries", "rank", false, allocator_retries},
      {"pcie_gpu_downgrade", "rank", false, pcie_gpu},
      {"loader_rhythm", "host", false, loader_rhythm},
      {"cpu_governor", "host", false, cpu_governor},
      {"noisy_neighbour", "host", false, noisy_neighbour},
      {"power_cap", "host", false, power_cap},
      {"hot_inlet", "host", false, hot_inlet},
      {"monitor_cron", "host", false, monitor_cron},
      {"slow_checkpoint_host", "host", false, slow_checkpoint_host},
      {"nic_pcie_downgrade", "nic", false, nic_downgrade},
      {"nic_flaps", "nic", false, nic_flaps},
      {"lossy_nic", "nic", false, lossy_nic},
      {"nvlink_lanes", "nvlink", false, nvlink_lanes},
      {"slow_path", "pair", false, slow_path},
      {"fabric_congestion", "fabric", false, fabric_congestion},
      {"heavy_stage", "stage", false, heavy_stage},
      {"uneven_replica", "replica", true, uneven_replica},
      {"hot_experts", "expert", true, hot_experts},
      {"checkpoints", "job", true, checkpoints},
      {"evaluations", "job", true, evaluations},
      {"uneven_steps", "job", true, heavy_batches},
  };
  return list;
}

const Kind &kind_named(const std::string &name) {
  for (const Kind &k : kinds())
    if (name == k.name)
      return k;
  throw std::runtime_error("no such cause: " + name);
}

// Whom two causes share could not be told apart.
bool overlaps(const Cause &a, const Cause &b) {
  if (a.level == "job" && b.level == "job")
    return true;
  for (int h : a.hosts)
    if (std::count(b.hosts.begin(), b.hosts.end(), h))
      return true;
  for (int r : a.ranks)
    if (std::count(b.ranks.begin(), b.ranks.end(), r))
      return true;
  bool a_net = a.level == "fabric" || a.level == "nic" || a.level == "pair";
  bool b_net = b.level == "fabric" || b.level == "nic" || b.level == "pair";
  return a_net && b_net;
}

}  // namespace

const std::vector<std::string> &cause_kinds() {
  static std::vector<std::string> names;
  if (names.empty())
    for (const Kind &k : kinds())
      names.push_back(k.name);
  return names;
}

Effects base_effects(const Job &job) {
  Effects e(job.world.n_ranks(), job.world.n_links());
  e.checkpoint_every = job.checkpoint_every;
  e.checkpoint_s = job.checkpoint_s;
  return e;
}

Cause draw_cause(const Job &job, Dice &dice, const std::string &name, const std::vector<Cause> &others) {
  const World &w = job.world;
  const Kind &k = kind_named(name);
  Cause none, c;
  c.kind = k.name;
  c.level = k.level;
  c.benign = k.benign;
  c.seed = dice.next();
  int host = dice.whole(0, w.n_hosts() - 1), rank = dice.whole(0, w.n_ranks() - 1);
  bool several = w.n_hosts() > 1;
  bool loader = job.shape->has_loader;
  if (!loader &&
      (c.level == "job" || name == "slow_loader" || name == "loader_rhythm" || name == "rank0_logging"))
    return none;
  if (name == "slow_checkpoint_host" && job.checkpoint_every == 0)
    return none;
  if (name == "checkpoints" && job.checkpoint_every)
    return none;
  if (c.level == "rank") {
    c.ranks = {name == "rank0_logging" ? 0 : rank};
    c.hosts = {w.ranks[c.ranks[0]].host};
  } else if (c.level == "host") {
    if (!several)
      return none;
    c.hosts = {host};
    c.ranks = w.ranks_on(host);
  } else if (c.level == "nic") {
    if (!several)
      return none;
    c.hosts = {host};
    c.nic = w.nic_of(rank);
    c.index = c.nic;
    c.ranks = w.ranks_on_nic(host, c.nic);
  } else if (c.level == "nvlink") {
    if (!w.kind.nvlink)
      return none;
    c.ranks = {rank};
    c.index = w.ranks[rank].local;
    c.hosts = {w.ranks[rank].host};
  } else if (c.level == "pair") {
    if (w.n_hosts() < 3)
      return none;
    int other = (host + dice.whole(1, w.n_hosts() - 1)) % w.n_hosts();
    c.hosts = {std::min(host, other), std::max(host, other)};
    for (int h : c.hosts)
      for (int r : w.ranks_on(h))
        c.ranks.push_back(r);
  } else if (c.level == "fabric") {
    if (!several)
      return none;
    for (int h = 0; h < w.n_hosts(); h++)
      c.hosts.push_back(h);
  } else if (c.level == "stage") {
    if (job.stages.size() < 2)
      return none;
    // The last stage has the logits and the loss besides its layers.
    c.index = dice.chance(0.5) ? int(job.stages.size()) - 1 : dice.whole(0, int(job.stages.size()) - 1);
    c.ranks = job.stages[c.index];
  } else if (c.level == "replica") {
    if (job.replicas.size() < 2)
      return none;
    c.index = dice.whole(0, int(job.replicas.size()) - 1);
    c.ranks = job.replicas[c.index];
    if (c.ranks.size() < 2)
      return none;
  } else if (c.level == "expert") {
    if (job.experts.size() < 2)
      return none;
    c.index = dice.whole(0, int(job.experts.size()) - 1);
    c.ranks = job.experts[c.index];
  } else {
    for (int r = 0; r < w.n_ranks(); r++)
      c.ranks.push_back(r);
  }
  if (c.hosts.empty() && c.level != "job") {
    std::set<int> on;
    for (int r : c.ranks)
      on.insert(w.ranks[r].host);
    c.hosts.assign(on.begin(), on.end());
  }
  if (c.level == "job")
    c.hosts.clear();
  for (const Cause &o : others) {
    bool both_of_job = o.level == "job" || c.level == "job";
    if (both_of_job ? o.level == c.level : overlaps(o, c))
      return none;
  }
  return c;
}

void apply_cause(const Job &job, Cause &cause, int number, double span, int steps, Effects &e) {
  cause.windows.clear();
  cause.always = false;
  cause.every_steps = 0;
  Context x{job, cause, number, span, steps, e, Dice(cause.seed)};
  kind_named(cause.kind).apply(x);
}
