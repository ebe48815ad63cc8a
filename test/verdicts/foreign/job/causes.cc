#include "causes.h"
#include <algorithm>

const char *const cause_kinds[] = {"slow_gpu",         "hot_host",       "throttle_bursts",  "onset_gpu",
                                   "random_pauses",    "periodic_pause", "slow_cpu_host",    "loader_host",
                                   "loader_rank",      "slow_nic",       "flapping_nic",     "lossy_nic",
                                   "slow_pair",        "congestion",     "slow_nvlink",      "slow_stage",
                                   "uneven_replica",   "uneven_steps",   "expert_imbalance", "checkpoint_all",
                                   "checkpoint_rank0", "evaluation",     "noisy_neighbour",  "ecc_stalls"};
const int n_cause_kinds = sizeof cause_kinds / sizeof *cause_kinds;
static const ns_t FOREVER = 1e18;

bool cause_fits(const std::string &kind, const Shape &s) {
  bool hosts = s.c.n_hosts > 1;
  if (kind == "slow_nic" || kind == "flapping_nic" || kind == "lossy_nic" || kind == "noisy_neighbour")
    return hosts && s.name != "serving";
  if (kind == "hot_host" || kind == "slow_cpu_host" || kind == "loader_host")
    return hosts && !(kind == "loader_host" && !s.training);
  if (kind == "slow_pair" || kind == "congestion")
    return s.c.n_hosts > 2 && s.name != "serving";
  if (kind == "slow_stage")
    return s.n_stages > 1;
  if (kind == "uneven_replica" || kind == "uneven_steps")
    return s.n_replicas > 1 && s.training;
  if (kind == "expert_imbalance")
    return s.experts;
  if (kind == "checkpoint_all" || kind == "checkpoint_rank0" || kind == "evaluation")
    return s.training;
  if (kind == "loader_rank")
    return s.training;
  return true;
}

static bool is_one_of(const std::string &k, std::initializer_list<const char *> list) {
  for (const char *l : list)
    if (k == l)
      return true;
  return false;
}

static void on_rank(Cause &k, const Shape &s, Rng &rng) {
  k.level = "rank";
  k.ranks = {rng.range(0, s.c.n_ranks() - 1)};
  k.hosts = {s.c.host(k.ranks[0])};
}

static void on_host(Cause &k, const Shape &s, Rng &rng) {
  k.level = "host";
  int h = rng.range(0, s.c.n_hosts - 1);
  k.hosts = {h};
  for (int r = h * s.c.gpus; r < (h + 1) * s.c.gpus; r++)
    k.ranks.push_back(r);
}

static void on_nic(Cause &k, const Shape &s, Rng &rng) {
  on_host(k, s, rng);
  k.level = "nic";
  k.nic = rng.range(0, s.c.nics - 1);
  std::vector<int> users;
  for (int r : k.ranks)
    if (s.c.nic_of(r) == k.hosts[0] * s.c.nics + k.nic)
      users.push_back(r);
  k.ranks = users;
}

// A group of ranks that the shape numbers: a stage, a replica, the holders of some experts.
static void on_group(Cause &k, const Shape &s, Rng &rng, const char *level, int n,
                     int (Shape::*of)(int) const) {
  k.level = level;
  if (n > 0) {
    k.index = rng.range(0, n - 1);
  } else {
    k.index = (s.*of)(rng.range(0, s.c.n_ranks() - 1));
  }
  for (int r = 0; r < s.c.n_ranks(); r++) {
    if ((s.*of)(r) != k.index)
      continue;
    k.ranks.push_back(r);
    if (std::find(k.hosts.begin(), k.hosts.end(), s.c.host(r)) == k.hosts.end())
      k.hosts.push_back(s.c.host(r));
  }
  if (k.ranks.size() == 1)
    k.level = "rank";
}

static void draw_place(Cause &k, const Shape &s, Rng &rng) {
  const std::string &kind = k.kind;
  if (is_one_of(kind, {"hot_host", "slow_cpu_host", "loader_host", "noisy_neighbour"})) {
    on_host(k, s, rng);
  } else if (is_one_of(kind, {"slow_nic", "flapping_nic", "lossy_nic"})) {
    on_nic(k, s, rng);
  } else if (kind == "slow_pair") {
    k.level = "pair";
    int a = rng.range(0, s.c.n_hosts - 1);
    k.hosts = {a, (a + 1) % s.c.n_hosts};  // neighbours, which rings and pipelines join
  } else if (kind == "congestion") {
    k.level = "fabric";
  } else if (kind == "slow_nvlink") {
    on_rank(k, s, rng);
    k.level = "nvlink";
  } else if (kind == "slow_stage") {
    on_group(k, s, rng, "stage", s.n_stages, &Shape::stage);
  } else if (kind == "uneven_replica") {
    on_group(k, s, rng, "replica", s.n_replicas, &Shape::replica);
  } else if (kind == "expert_imbalance") {
    on_group(k, s, rng, "expert", 0, &Shape::expert);
  } else if (is_one_of(kind, {"uneven_steps", "checkpoint_all", "evaluation"})) {
    k.level = "job";
  } else if (kind == "checkpoint_rank0") {
    k.level = "rank";
    k.ranks = {0};
    k.hosts = {0};
  } else {
    on_rank(k, s, rng);
  }
  k.benign = is_one_of(kind,
                       {"uneven_steps", "uneven_replica", "checkpoint_all", "checkpoint_rank0", "evaluation",
                        "expert_imbalance"});
}

// Bursts that do not overlap, over three times the run's length, since causes make it longer.
static void draw_bursts(Cause &k, ns_t t0, Rng &rng, int per_run, double duty) {
  double cycle = t0 / per_run;
  ns_t t = cycle * rng.uniform(0.2, 0.8);
  while (t < 3 * t0) {
    double length = cycle * duty * rng.uniform(0.5, 1.5);
    k.windows.push_back({t, t + length});
    t += length + cycle * (1 - duty) * rng.uniform(0.5, 1.5);
  }
  k.share = duty;
}

static void draw_times(Cause &k, const Shape &s, ns_t t0, Rng &rng) {
  const std::string &kind = k.kind;
  if (is_one_of(kind, {"throttle_bursts", "noisy_neighbour"})) {
    draw_bursts(k, t0, rng, rng.range(3, 9), rng.uniform(0.2, 0.5));
  } else if (kind == "flapping_nic") {
    draw_bursts(k, t0, rng, rng.range(4, 20), rng.uniform(0.15, 0.4));
  } else if (kind == "congestion") {
    draw_bursts(k, t0, rng, rng.range(1, 6), rng.uniform(0.25, 0.6));
  } else if (kind == "onset_gpu") {
    k.windows = {{t0 * rng.uniform(0.3, 0.7), FOREVER}};
  } else if (is_one_of(kind, {"slow_nic", "slow_pair", "slow_nvlink", "hot_host", "slow_cpu_host"})) {
    bool later = rng.chance(0.3);
    k.windows = {{later ? t0 * rng.uniform(0.2, 0.6) : -1, FOREVER}};
  } else {
    k.windows = {{-1, FOREVER}};
  }
  if (is_one_of(kind, {"random_pauses", "ecc_stalls"})) {
    int per_run = rng.range(6, 30);
    for (ns_t t = rng.exponential(t0 / per_run); t < 3 * t0; t += rng.exponential(t0 / per_run))
      k.moments.push_back(t);
    k.share = 1.0 / per_run;
  }
  if (kind == "periodic_pause") {
    int per_run = rng.range(6, 30);
    k.period_s = t0 / per_run / 1e9;
    for (ns_t t = t0 / per_run * rng.uniform(0.3, 1); t < 3 * t0; t += t0 / per_run)
      k.moments.push_back(t);
    k.share = 1.0 / per_run;
  }
  if (is_one_of(kind, {"checkpoint_all", "checkpoint_rank0", "evaluation"}))
    k.every = std::max(3, s.steps / rng.range(3, 8));
  if (is_one_of(kind, {"loader_host", "loader_rank"})) {
    k.chance = rng.chance(0.5) ? 1 : rng.uniform(0.3, 0.8);
    k.from_step = rng.chance(0.3) ? s.steps * rng.range(2, 6) / 10 : 0;
  }
  if (kind == "lossy_nic")
    k.chance = rng.log_uniform(0.002, 0.03);
}

Cause draw_cause(const std::string &kind, const Shape &s, ns_t t0, Rng &rng) {
  Cause k;
  k.kind = kind;
  draw_place(k, s, rng);
  draw_times(k, s, t0, rng);
  k.target = rng.log_uniform(0.012, 0.35);
  k.severity = std::max(0.02, 1.5 * k.target);
  k.salt = rng.next();
  return k;
}

std::vector<int> cause_resources(const Cause &k, const Shape &s) {
  std::vector<int> v;
  if (k.level == "nic") {
    int nic = k.hosts[0] * s.c.nics + k.nic;
    v = {s.c.r_nic_out(nic), s.c.r_nic_in(nic)};
  } else if (k.level == "nvlink") {
    v = {s.c.r_nvlink(k.ranks[0])};
  } else if (k.level == "pair") {
    v = {s.c.r_pair(k.hosts[0], k.hosts[1]), s.c.r_pair(k.hosts[1], k.hosts[0])};
  } else if (k.kind == "noisy_neighbour") {
    for (int i = 0; i < s.c.nics; i++) {
      v.push_back(s.c.r_nic_out(k.hosts[0] * s.c.nics + i));
      v.push_back(s.c.r_nic_in(k.hosts[0] * s.c.nics + i));
    }
  } else if (k.level == "fabric") {
    for (int i = 0; i < s.c.n_hosts * s.c.nics; i++) {
      v.push_back(s.c.r_nic_out(i));
      v.push_back(s.c.r_nic_in(i));
    }
  }
  return v;
}

static void slow_compute(const Cause &k, const Shape &s, double factor, std::vector<Slow> &list) {
  Slow slow;
  slow.on.assign(s.c.n_ranks(), false);
  for (int r : k.ranks)
    slow.on[r] = true;
  slow.windows = k.windows;
  slow.factor = factor;
  list.push_back(slow);
}

static void slow_network(const Cause &k, const Shape &s, double factor, Effects &fx) {
  for (const Window &w : k.windows) {
    for (int r : cause_resources(k, s)) {
      fx.caps.push_back({std::max(w.begin, 0.0), r, factor});
      if (w.end < FOREVER)
        fx.caps.push_back({w.end, r, 1});
    }
  }
}

static void stalls(const Cause &k, ns_t t0, std::map<int, std::vector<Stall>> &list) {
  for (size_t i = 0; i < k.moments.size(); i++) {
    bool regular = k.kind == "periodic_pause";
    double luck = std::exp((regular ? 0.05 : 0.5) * normal(hash4(k.salt, i, 0, 0)));
    list[k.ranks[0]].push_back({k.moments[i], k.severity * k.share * t0 * luck});
  }
  std::sort(list[k.ranks[0]].begin(), list[k.ranks[0]].end(),
            [](const Stall &a, const Stall &b) { return a.at < b.at; });
}

static void late_input(const Cause &k, const Shape &s, Effects &fx) {
  Extra e = {k.from_step, 1 << 30, 1, 0, std::vector<bool>(s.c.n_ranks()), 0, k.chance, k.salt, true};
  for (int r : k.ranks)
    e.on[r] = true;
  e.ns = k.severity * s.step_ms * 1e6 / k.chance;
  fx.extras.push_back(e);
}

void apply_cause(const Cause &k, const Shape &s, ns_t t0, Effects &fx) {
  const std::string &kind = k.kind;
  double more = 1 + k.severity;
  if (is_one_of(kind, {"slow_gpu", "hot_host", "onset_gpu"}))
    slow_compute(k, s, more, fx.gpu);
  else if (kind == "throttle_bursts")
    slow_compute(k, s, 1 + k.severity / k.share, fx.gpu);
  else if (kind == "slow_cpu_host")
    slow_compute(k, s, 1 + 10 * k.severity, fx.launch);
  else if (is_one_of(kind, {"random_pauses", "periodic_pause"}))
    stalls(k, t0, fx.cpu_stalls);
  else if (kind == "ecc_stalls")
    stalls(k, t0, fx.gpu_stalls);
  else if (is_one_of(kind, {"loader_host", "loader_rank"}))
    late_input(k, s, fx);
  else if (is_one_of(kind, {"slow_nic", "slow_pair", "slow_nvlink"}))
    slow_network(k, s, 1 / (1 + 3 * k.severity), fx);
  else if (is_one_of(kind, {"flapping_nic", "congestion"}))
    slow_network(k, s, 1 / (1 + 3 * k.severity / k.share), fx);
  else if (kind == "lossy_nic")
    for (int r : cause_resources(k, s))
      fx.lossy.push_back({r, k.windows[0], k.chance, 2e8 * k.severity});
  else if (kind == "slow_stage")
    fx.works.push_back({Work::STAGE, k.index, 0, more, k.salt, false});
  else if (kind == "uneven_replica")
    fx.works.push_back({Work::REPLICA, k.index, 0, more, k.salt, true});
  else if (kind == "uneven_steps")
    fx.works.push_back({Work::REPLICA_STEP, 0, 0, k.severity, k.salt, true});
  else if (kind == "expert_imbalance")
    fx.works.push_back({Work::EXPERT, k.index, 0, more, k.salt, true});
  if (kind == "evaluation") {
    fx.eval_every = k.every;
    fx.eval_passes = std::max(1, (int)(k.severity * k.every * 3));
  }
  if (is_one_of(kind, {"checkpoint_all", "checkpoint_rank0"})) {
    fx.ckpt_every = k.every;
    fx.ckpt_ns = k.severity * k.every * s.step_ms * 1e6;
    fx.ckpt_rank0 = kind == "checkpoint_rank0";
  }
  if (kind == "noisy_neighbour") {
    slow_compute(k, s, 1 + 4 * k.severity / k.share, fx.launch);
    slow_network(k, s, 1 / (1 + 1.5 * k.severity / k.share), fx);
  }
}
