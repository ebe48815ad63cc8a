// gen SEED N_JOBS JOB DIR: makes one job of a set.
#include <sys/stat.h>
#include <cstdio>
#include <cstdlib>
#include "truth.h"

struct Result {
  std::vector<std::vector<Rec>> records;
  std::vector<ns_t> step_begin;
  ns_t end;
};

static Result simulate(Shape &s, const Effects &fx, bool keep) {
  auto writer = [&](int r, int step, Builder &b) { return s.write(r, step, b, fx); };
  Engine e(s.c, s.comms, fx, s.seed, s.jitter, writer, keep);
  e.run();
  if (e.stuck) {
    fprintf(stderr, "%s: the job hangs\n", s.name.c_str());
    exit(1);
  }
  return {std::move(e.records), std::move(e.step_begin), e.end};
}

static Effects effects(const std::vector<Cause> &causes, size_t without, const Shape &s, ns_t t0,
                       const Effects &natural) {
  Effects fx = natural;
  for (size_t i = 0; i < causes.size(); i++)
    if (i != without)
      apply_cause(causes[i], s, t0, fx);
  return fx;
}

// Fewer steps if the log would be longer than it may be.
static void limit_steps(Shape &s, Rng &rng) {
  int wanted = s.steps;
  s.steps = 3;
  Result pilot = simulate(s, Effects(), true);
  size_t lines = 0;
  for (auto &v : pilot.records)
    lines += v.size();
  double budget = rng.log_uniform(40e3, 250e3);
  int room = (int)(budget / ((double)lines / 3));
  int most = (int)(390e3 / ((double)lines / 3));
  s.steps = std::min(wanted, std::min(most, std::max(room, 25)));
}

// What is uneven in a healthy job: the last stage, and a rank 0 that logs.
static Effects natural_unevenness(const Shape &s, const Plan &p) {
  Effects fx;
  if (!p.uneven)
    return fx;
  Extra log = {0, 1 << 30, 10, 9, std::vector<bool>(s.c.n_ranks()), 0.008 * s.step_ms * 1e6, 1, 5, false};
  log.on[0] = true;
  fx.extras.push_back(log);
  if (s.n_stages > 1) {
    fx.works.push_back({Work::STAGE, s.n_stages - 1, 0, 1.04, 0, false});
    fx.works.push_back({Work::STAGE, 0, 0, 1.02, 0, false});
  }
  return fx;
}

// Scales each cause until its cost is near what was drawn, and measures that.
static Result plant(Shape &s, std::vector<Cause> &causes, ns_t t0, const Effects &natural) {
  Result all;
  for (int attempt = 0; attempt < 5; attempt++) {
    all = simulate(s, effects(causes, causes.size(), s, t0, natural), true);
    bool good = true;
    for (size_t i = 0; i < causes.size(); i++) {
      Cause &k = causes[i];
      ns_t without = t0;
      if (causes.size() > 1)
        without = simulate(s, effects(causes, i, s, t0, natural), false).end;
      k.cost = (all.end - without) / (all.end - SETUP_NS);
      bool near = k.cost > 0.6 * k.target && k.cost < 1.6 * k.target;
      if (near || attempt == 4)
        continue;
      good = false;
      double ratio = k.target / std::max(k.cost, 1e-4);
      k.severity *= std::min(std::max(ratio, 0.3), 3.0);
    }
    if (good)
      break;
  }
  return all;
}

static std::vector<std::string> host_names(int n, Rng &rng) {
  const char *const styles[] = {"node-%02d", "gpu%03d", "h100-r2-n%d", "dgx-%d"};
  const char *style = rng.pick(styles);
  int first = rng.range(1, 80);
  std::vector<std::string> v;
  for (int i = 0; i < n; i++) {
    char name[64];
    snprintf(name, sizeof name, style, first + i);
    v.push_back(name);
  }
  return v;
}

// An attempt that was killed before, or another job, in the same folder.
static void write_other(const LogJob &main_log, const Plan &p, Rng &rng) {
  bool attempt = main_log.w.other == "attempt";
  auto s = make_shape(attempt ? p.shape : "ddp", attempt ? p.seed : p.seed + 1);
  s->steps = attempt ? 6 : 20;
  s->seed = rng.next();
  Result r = simulate(*s, Effects(), true);
  LogJob log = main_log;
  log.c = &s->c;
  log.comms = &s->comms;
  log.records = &r.records;
  log.seed = rng.next();
  log.w = Weather();
  log.w.missing.assign(s->c.n_ranks(), false);
  log.w.offset_ns.assign(s->c.n_hosts, 0);
  log.w.drift.assign(s->c.n_hosts, 0);
  if (attempt) {
    log.w.offset_ns = main_log.w.offset_ns;
    log.killed = true;
  } else {
    log.hosts.clear();
    for (int h = 0; h < s->c.n_hosts; h++)
      log.hosts.push_back("other-" + std::to_string(h));
  }
  log.start_unix_ns -= r.end + 9e10;
  write_logs(log);
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "Usage: gen SEED N_JOBS JOB DIR\n");
    return 1;
  }
  unsigned long long set_seed = strtoull(argv[1], NULL, 10);
  int number = atoi(argv[3]);
  std::vector<Plan> plans = plan_set(set_seed, atoi(argv[2]));
  const Plan &p = plans[number];
  Rng rng(p.seed + 17);
  auto s = make_shape(p.shape, p.seed);
  limit_steps(*s, rng);
  Effects natural = natural_unevenness(*s, p);

  Outcome o;
  Result base = simulate(*s, natural, true);
  ns_t t0 = base.end;
  o.healthy_s = (t0 - SETUP_NS) / 1e9;
  for (const std::string &kind : p.kinds)
    o.causes.push_back(draw_cause(kind, *s, t0, rng));
  Result run = o.causes.empty() ? std::move(base) : plant(*s, o.causes, t0, natural);

  bool messages = false;
  for (auto &v : run.records)
    for (const Rec &r : v)
      messages |= r.func == SEND;
  o.plan = &p;
  o.shape = s.get();
  o.set_seed = set_seed;
  o.steps = s->steps;
  o.end_s = run.end / 1e9;
  o.run_s = (run.end - SETUP_NS) / 1e9;
  o.step_begin = run.step_begin;
  o.weather = draw_weather(s->c, run.end, messages, rng);
  o.hosts = host_names(s->c.n_hosts, rng);
  for (Cause &k : o.causes)
    judge_identifiable(k, *s, o.weather, run.records, run.end);

  char dir[600];
  snprintf(dir, sizeof dir, "%s/job-%03d", argv[4], number);
  mkdir(dir, 0777);
  o.start_unix_ns = 1.79e18 + 1e9 * rng.range(0, 1000000);
  LogJob log = {dir, &s->c, &s->comms, &run.records, o.weather, rng.next(), o.start_unix_ns, false, o.hosts};
  o.lines = write_logs(log);
  if (!o.weather.other.empty())
    write_other(log, p, rng);
  write_truth(std::string(dir) + "/truth.json", o);
  return 0;
}
