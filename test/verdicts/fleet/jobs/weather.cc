#include "weather.h"

#include <algorithm>
#include <map>
#include <tuple>

Weather fair_weather(const Job &job) {
  Weather w;
  Dice dice(key_of(job.seed, 301));
  w.tick_ns = job.world.kind.gpu_tick_ns;
  for (int h = 0; h < job.world.n_hosts(); h++) {
    w.offset_s.push_back(dice.normal() * 40e-6);  // NTP or PTP does that well
    w.drift.push_back(dice.normal() * 3e-8);
  }
  return w;
}

namespace {

bool has_p2p(const Job &job) {
  Effects none(job.world.n_ranks(), job.world.n_links());
  Tape t;
  job.shape->step(t, job, none, 0, 1);
  for (const Instr &i : t.code)
    if (i.what == Do::Group)
      return true;
  return false;
}

int64_t largest_call(const Job &job) {
  Effects none(job.world.n_ranks(), job.world.n_links());
  Tape t;
  job.shape->step(t, job, none, 0, 1);
  int64_t most = 0;
  for (const Instr &i : t.code)
    if (i.what == Do::Coll && i.func != Func::Broadcast)
      most = std::max(most, i.bytes);
  return most;
}

void skew(Dice &dice, Weather &w, double low, double high) {
  for (double &o : w.offset_s)
    if (dice.chance(0.7))
      o += dice.geometric(low, high) * (dice.chance(0.5) ? 1 : -1);
}

void some_ranks(Dice &dice, int n, double share, std::set<int> &out) {
  int count = std::max(1, int(n * share));
  while (int(out.size()) < count)
    out.insert(dice.whole(0, n - 1));
}

bool add_one(const Job &job, Dice &dice, Weather &w, const std::string &name) {
  const World &world = job.world;
  int n = world.n_ranks(), hosts = world.n_hosts();
  if (w.has(name.c_str()))
    return false;
  if (name == "clock_skew_ms" || name == "clock_skew_minutes") {
    if (hosts < 2 || w.has("clock_skew_ms") || w.has("clock_skew_minutes"))
      return false;
    if (name == "clock_skew_ms")
      skew(dice, w, 0.001, 0.5);
    else
      skew(dice, w, 5, 240);
  } else if (name == "clock_drift") {
    for (double &d : w.drift)
      d += dice.normal() * 15e-6;
  } else if (name == "clock_step") {
    w.step_host = dice.whole(0, hosts - 1);
    w.step_at = dice.between(0.2, 0.8);  // of the run; seconds later
    w.step_s = -dice.geometric(0.003, 1.5);
  } else if (name == "coarse_gpu_clock") {
    w.coarse_host = dice.chance(0.5) ? -2 : dice.whole(0, hosts - 1);
  } else if (name == "noisy_stamps") {
    w.start_noise_ns = dice.geometric(2e4, 4e5);
    w.time_noise_ns = dice.geometric(2e3, 3e4);
  } else if (name == "missing_ranks") {
    some_ranks(dice, n, dice.between(0.02, 0.3), w.missing);
  } else if (name == "missing_host") {
    if (hosts < 3 || !w.missing.empty())
      return false;
    for (int r : world.ranks_on(dice.whole(0, hosts - 1)))
      w.missing.insert(r);
  } else if (name == "sampled") {
    w.sample = dice.pick(std::vector<int>{2, 4, 8, 16});
  } else if (name == "min_size") {
    w.min_size = dice.pick(std::vector<int64_t>{4096, 65536, 1 << 20});
    if (largest_call(job) < w.min_size) {
      w.min_size = 0;
      return false;  // nothing would be left
    }
  } else if (name == "no_p2p") {
    if (!has_p2p(job))
      return false;
    w.no_p2p = true;
  } else if (name == "cpu_timing") {
    w.cpu_timing = true;
  } else if (name == "other_job_in_folder") {
    w.other_job = true;
  } else if (name == "earlier_attempt_in_folder") {
    w.other_attempt = true;
  } else if (name == "truncated_files") {
    some_ranks(dice, n, dice.between(0.02, 0.2), w.truncated);
  } else if (name == "killed") {
    if (dice.chance(0.5))
      some_ranks(dice, n, 0.1, w.killed);
    else
      for (int r = 0; r < n; r++)
        w.killed.insert(r);
  } else if (name == "dropped_records") {
    some_ranks(dice, n, dice.between(0.05, 0.4), w.dropping);
  } else if (name == "no_control_lines") {
    if (job.world_comm < 0 || w.has("no_launcher"))
      return false;
    w.no_control_lines = true;
  } else if (name == "no_launcher") {
    if (job.world_comm < 0 || w.has("no_control_lines"))
      return false;
    w.no_launcher = true;
  } else if (name == "plain_files") {
    w.plain_files = true;
  }
  w.names.push_back(name);
  return true;
}

}  // namespace

void draw_weather(const Job &job, Dice &dice, const std::vector<Cause> &causes, Weather &w) {
  static const std::vector<std::string> kinds = {"clock_skew_ms",
                                                 "clock_skew_ms",
                                                 "clock_skew_minutes",
                                                 "clock_drift",
                                                 "clock_step",
                                                 "noisy_stamps",
                                                 "coarse_gpu_clock",
                                                 "missing_ranks",
                                                 "missing_host",
                                                 "sampled",
                                                 "sampled",
                                                 "min_size",
                                                 "no_p2p",
                                                 "cpu_timing",
                                                 "other_job_in_folder",
                                                 "killed",
                                                 "truncated_files",
                                                 "dropped_records",
                                                 "no_control_lines",
                                                 "no_launcher",
                                                 "plain_files",
                                                 "earlier_attempt_in_folder"};
  int wanted = dice.pick(std::vector<int>{1, 1, 2, 2, 3});
  for (int tries = 0; tries < 40 && int(w.names.size()) < wanted; tries++)
    add_one(job, dice, w, dice.pick(kinds));
  // Mostly the logs of those that matter are there.
  if (w.missing.empty() || dice.chance(0.2))
    return;
  for (const Cause &c : causes) {
    if (c.level == "job" || c.level == "fabric")
      continue;
    for (int r : c.ranks)
      w.missing.erase(r);
  }
  // Others are missing instead.
  while (w.missing.empty()) {
    int r = dice.whole(0, job.world.n_ranks() - 1);
    bool matters = false;
    for (const Cause &c : causes)
      matters = matters || (c.level != "job" && std::count(c.ranks.begin(), c.ranks.end(), r) > 0);
    if (!matters || dice.chance(0.02))
      w.missing.insert(r);
  }
}

std::vector<Fate> fates(const Job &job, const Weather &weather, int rank,
                        const std::vector<Record> &records) {
  std::vector<Fate> out(records.size(), Fate::Written);
  Dice dice(key_of(job.seed, 311, rank));
  bool drops = weather.dropping.count(rank) > 0;
  int dropping = 0;
  for (size_t i = 0; i < records.size(); i++) {
    const Record &r = records[i];
    bool p2p = r.peer >= 0;
    // Pools fill up now and then while the disk is slow.
    if (drops && dropping == 0 && dice.chance(0.002))
      dropping = dice.whole(5, 80);
    bool drop = dropping > 0;
    if (drop)
      dropping--;
    uint64_t id = mix64(job.world.comms[r.comm].hash ^ mix64(uint64_t(r.call_sn)));
    if (p2p && weather.no_p2p)
      out[i] = Fate::NoP2p;
    else if (r.bytes < weather.min_size)
      out[i] = Fate::TooSmall;
    else if (drop)
      out[i] = Fate::Dropped;
    else if (weather.sample > 1 && id % uint64_t(weather.sample) != 0)
      out[i] = Fate::Sampled;
  }
  return out;
}

namespace {

bool uses(const World &w, const Record &r, int rank, const std::set<int> &links) {
  const Comm &c = w.comms[r.comm];
  std::vector<Load> pair;
  if (r.peer >= 0) {
    int from = r.func == Func::Send ? rank : c.members[r.peer];
    pair = w.pair_loads(from, r.func == Func::Send ? c.members[r.peer] : rank);
  }
  for (const Load &l : r.peer >= 0 ? pair : c.ring)
    if (links.count(l.link))
      return true;
  return false;
}

// Does the operation cross hosts (or, for NVLink, stay on one)?
bool of_the_same_medium(const World &w, const Record &r, int rank, bool nvlink) {
  const Comm &c = w.comms[r.comm];
  if (r.peer >= 0)
    return (w.ranks[c.members[r.peer]].host == w.ranks[rank].host) == nvlink;
  return nvlink ? c.hosts.size() == 1 : c.hosts.size() > 1;
}

void deny(Cause &c, const char *why) {
  c.identifiable = false;
  c.why_not = why;
}

void judge_network(const Job &job, const Weather &weather, const Outcome &o,
                   const std::vector<std::vector<Fate>> &fate, Cause &c) {
  const World &w = job.world;
  std::set<int> links;
  bool nvlink = c.level == "nvlink";
  if (nvlink)
    links = {w.gpu_out(c.ranks[0]), w.gpu_in(c.ranks[0])};
  if (c.level == "nic")
    links = {w.nic_out(c.hosts[0], c.nic), w.nic_in(c.hosts[0], c.nic)};
  if (c.level == "pair")
    links = {w.path(c.hosts[0], c.hosts[1]), w.path(c.hosts[1], c.hosts[0])};
  using Sort = std::tuple<int, int64_t, size_t>;  // what can be compared: function, size, ranks
  std::map<Sort, int> with, without;
  long seen = 0;
  for (int r = 0; r < w.n_ranks(); r++) {
    if (weather.missing.count(r))
      continue;
    for (size_t i = 0; i < o.records[r].size(); i++) {
      const Record &x = o.records[r][i];
      if (fate[r][i] != Fate::Written || x.func == Func::Broadcast)
        continue;
      int func = x.func == Func::Recv ? int(Func::Send) : int(x.func);
      int64_t size = x.peer >= 0 ? x.bytes >> 18 : x.bytes;  // sizes of messages may vary a little
      Sort sort{func, size, x.peer >= 0 ? 2 : w.comms[x.comm].members.size()};
      if (c.level == "fabric" ? of_the_same_medium(w, x, r, false) : uses(w, x, r, links)) {
        with[sort]++;
        seen++;
      } else if (of_the_same_medium(w, x, r, nvlink)) {
        without[sort]++;
      }
    }
  }
  if (seen < 20)
    return deny(c, "hardly any operation that went over it is in the logs");
  if (c.level == "fabric" || !c.always)
    return;  // it can be compared with itself at other times
  for (auto &s : with)
    if (without.count(s.first))
      return;
  deny(c, "every operation of its kind goes over it, all the time: there is nothing to compare with");
}

// For causes that make ranks late: are there operations that show it beside ranks that are not affected?
void judge_lateness(const Job &job, const Weather &weather, const Outcome &o,
                    const std::vector<std::vector<Fate>> &fate, int number, Cause &c) {
  const World &w = job.world;
  std::set<int> on(c.ranks.begin(), c.ranks.end());
  std::vector<int> stage_of(size_t(w.n_ranks()), 0);
  for (size_t s = 0; s < job.stages.size(); s++)
    for (int r : job.stages[s])
      stage_of[r] = int(s);
  size_t present = 0;
  long shared = 0, messages = 0;
  std::vector<double> starts;
  for (int r : c.ranks) {
    if (weather.missing.count(r))
      continue;
    present++;
    for (size_t i = 0; i < o.records[r].size(); i++) {
      const Record &x = o.records[r][i];
      if (fate[r][i] != Fate::Written || x.func == Func::Broadcast)
        continue;
      starts.push_back(x.start);
      if (x.peer >= 0) {
        int peer = w.comms[x.comm].members[x.peer];
        messages += !on.count(peer) && !weather.missing.count(peer);
        continue;
      }
      for (int m : w.comms[x.comm].members)
        if (!on.count(m) && !weather.missing.count(m) && (c.level == "job" || stage_of[m] == stage_of[r])) {
          shared++;
          break;
        }
    }
  }
  if (present * 2 <= c.ranks.size())
    return deny(c, "most of its ranks have no log");
  if (c.level == "stage" && messages < 20)
    return deny(c, "no messages between the stages are in the logs");
  if (c.level != "stage" && shared + messages < 20)
    return deny(c, "hardly any operation of its ranks with others is in the logs");
  if (!c.paused)
    return;
  // Pauses: each is seen only if an operation that it delays is in the logs.
  std::vector<std::pair<double, double>> pauses;
  for (const Moment &m : o.moments)
    if (m.cause == number)
      pauses.push_back({m.begin, m.end});
  for (const Window &win : c.windows)
    if (c.every_steps == 0 && c.windows.size() > 1 && win.begin < o.run_s)
      pauses.push_back({win.begin, win.end});
  long total = long(pauses.size()), visible = 0;
  std::sort(starts.begin(), starts.end());
  double step_s = o.run_s / double(o.step_begin.size());
  for (auto &p : pauses) {
    auto next = std::lower_bound(starts.begin(), starts.end(), p.first);
    visible += next != starts.end() && *next < p.second + step_s;
  }
  if (total > 0 && visible < 3)
    deny(c, "too few of its pauses are followed by an operation in the logs");
}

}  // namespace

void judge(const Job &job, const Weather &weather, const Outcome &outcome,
           const std::vector<std::vector<Fate>> &fate, int number, Cause &cause) {
  bool network =
      cause.level == "nic" || cause.level == "nvlink" || cause.level == "pair" || cause.level == "fabric";
  if (network)
    return judge_network(job, weather, outcome, fate, cause);
  if (cause.level == "job") {
    long n = 0;
    for (int r = 0; r < job.world.n_ranks(); r++)
      if (!weather.missing.count(r))
        n += std::count(fate[r].begin(), fate[r].end(), Fate::Written);
    if (n < long(outcome.step_begin.size()))
      deny(cause, "less than one record per step is in the logs");
    return;
  }
  judge_lateness(job, weather, outcome, fate, number, cause);
}
