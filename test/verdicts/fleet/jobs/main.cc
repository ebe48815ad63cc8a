// ni-fleet-jobs SEED JOBS NUMBER OUT: makes job NUMBER of a set of JOBS.

#include <sys/stat.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "shapes/shapes.h"
#include "writer.h"

namespace {

constexpr double kLeastCost = 0.01, kMostCost = 0.35;

struct Role {
  int causes;  // 0, 1, 2
  bool noisy;  // healthy, but uneven by nature
  bool weather;
};

double run_time(const Job &job, std::vector<Cause> &causes, double span, const Cause *without = nullptr) {
  Effects e = base_effects(job);
  for (size_t i = 0; i < causes.size(); i++)
    if (&causes[i] != without)
      apply_cause(job, causes[i], int(i), span, job.steps, e);
  e.seal();
  return play(job, e, job.steps, false).run_s;
}

// Finds how strong a cause has to be for the wanted cost. False: it cannot cost that here.
bool fit_strength(const Job &job, std::vector<Cause> &causes, double span, double wanted) {
  Cause &c = causes.back();
  double before = run_time(job, causes, span, &c);
  auto cost_at = [&](double strength) {
    c.strength = strength;
    return 1 - before / run_time(job, causes, span);
  };
  double low = 0, high = 1, low_cost = cost_at(0), high_cost = cost_at(1);
  if (high_cost < 1.2 * kLeastCost || low_cost > 0.97 * kMostCost)
    return false;
  wanted = std::clamp(wanted, std::max(low_cost, kLeastCost), std::min(high_cost, 0.97 * kMostCost));
  double best = low_cost, at = 0;
  if (std::abs(high_cost - wanted) < std::abs(best - wanted)) {
    best = high_cost;
    at = 1;
  }
  for (int k = 0; k < 6 && std::abs(best - wanted) > 0.08 * wanted; k++) {
    double middle = (low + high) / 2, cost = cost_at(middle);
    if (std::abs(cost - wanted) < std::abs(best - wanted)) {
      best = cost;
      at = middle;
    }
    (cost < wanted ? low : high) = middle;
  }
  c.strength = at;
  return best >= kLeastCost && best <= kMostCost;
}

// Takes the first kinds of a list that this job can have at the wanted costs.
std::vector<Cause> choose_causes(const Job &job, Dice &dice, int wanted,
                                 const std::vector<std::string> &order, double span) {
  std::vector<Cause> causes;
  for (size_t k = 0; k < order.size() && int(causes.size()) < wanted; k++) {
    Cause c = draw_cause(job, dice, order[k], causes);
    double cost = dice.geometric(0.015, 0.33);
    if (c.kind.empty())
      continue;
    causes.push_back(c);
    bool fits = fit_strength(job, causes, span, cost);
    for (size_t i = 0; fits && i + 1 < causes.size(); i++)  // the first may vanish behind the second
      fits = 1 - run_time(job, causes, span, &causes[i]) / run_time(job, causes, span) > kLeastCost;
    if (!fits)
      causes.pop_back();
  }
  return causes;
}

// In which order a job tries the kinds of causes, so that a set has all of them about as often.
std::vector<std::string> order_of_kinds(const Job &job, int wanted, Dice &dice,
                                        std::map<std::string, int> &used) {
  std::vector<std::string> order = cause_kinds();
  dice.shuffle(order);
  std::stable_sort(order.begin(), order.end(), [&](auto &a, auto &b) { return used[a] < used[b]; });
  std::vector<Cause> planned;
  for (const std::string &kind : order) {
    if (int(planned.size()) == wanted)
      break;
    Cause c = draw_cause(job, dice, kind, planned);
    if (c.kind.empty())
      continue;
    planned.push_back(c);
    used[kind]++;
  }
  return order;
}

void make_noisy(Job &job, Dice &dice) {
  Noise &n = job.noise;
  n.kernel = dice.between(0.02, 0.06);
  n.chip = dice.between(0.005, 0.012);
  n.step = dice.between(0.01, 0.06);
  n.cpu = dice.between(0.25, 0.45);
  n.hiccup_chance = dice.geometric(5e-4, 3e-3);
  n.hiccup_s = dice.geometric(0.003, 0.015);
}

// --- truth ---

int step_at(const Outcome &o, double t) {
  auto next = std::upper_bound(o.step_begin.begin(), o.step_begin.end(), t);
  return std::max(0, int(next - o.step_begin.begin()) - 1);
}

template <class T, class F>
std::string list(const T &values, F show) {
  std::string out = "[";
  for (auto &v : values)
    out += (out.size() > 1 ? "," : "") + show(v);
  return out + "]";
}

std::string number(double v) {
  char text[32];
  snprintf(text, sizeof text, "%.6g", v);
  return text;
}
std::string seconds(double v) {
  char text[32];
  snprintf(text, sizeof text, "%.6f", v);
  return text;
}
std::string quoted(const std::string &s) { return "\"" + s + "\""; }
std::string yes(bool b) { return b ? "true" : "false"; }

std::vector<double> moments_of(const Cause &c, int index, const Outcome &o) {
  std::vector<double> found;
  std::set<int> steps;
  for (const Moment &m : o.moments)
    if (m.cause == index && steps.insert(m.step).second)
      found.push_back(m.begin);
  if (found.empty() && c.paused && c.every_steps) {
    for (size_t s = size_t(c.every_steps); s < o.step_begin.size(); s += size_t(c.every_steps))
      found.push_back(c.level == "job" && c.kind == "checkpoints" ? o.step_begin[s] - c.severity
                                                                  : o.step_begin[s]);
  } else if (found.empty() && c.paused) {
    for (const Window &w : c.windows)
      if (w.begin < o.run_s)
        found.push_back(w.begin);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string cause_json(const Job &job, const Cause &c, int index, const Outcome &o) {
  std::vector<double> moments = moments_of(c, index, o);
  std::vector<Window> windows;
  for (const Window &w : c.windows)
    if (w.begin < o.run_s)
      windows.push_back({w.begin, std::min(w.end, o.run_s), 1});
  if (windows.empty())
    windows.push_back({moments.empty() ? 0 : moments.front(), o.run_s, 1});
  if (windows.size() > 300)
    windows.resize(300);
  auto window = [&](const Window &w) {
    return "{\"begin_s\":" + seconds(w.begin) + ",\"end_s\":" + seconds(w.end) +
        ",\"begin_step\":" + std::to_string(step_at(o, w.begin)) +
        ",\"end_step\":" + std::to_string(step_at(o, w.end)) + "}";
  };
  auto host = [&](int h) { return quoted(job.world.hosts[h]); };
  auto rank = [](int r) { return std::to_string(r); };
  std::string out = "{\"kind\":" + quoted(c.kind) + ",\"level\":" + quoted(c.level);
  out += ",\"ranks\":" + list(c.ranks, rank) + ",\"hosts\":" + list(c.hosts, host);
  out += ",\"nic\":" + (c.nic < 0 ? "null" : std::to_string(c.nic));
  out += ",\"index\":" + (c.index < 0 ? "null" : std::to_string(c.index));
  out +=
      ",\"benign\":" + yes(c.benign) + ",\"severity\":" + number(c.severity) + ",\"what\":" + quoted(c.what);
  out += ",\"cost\":" + number(c.cost) + ",\"windows\":" + list(windows, window);
  out += ",\"moments_s\":" + list(moments, seconds) + ",\"period_s\":" + number(c.period_s);
  out += ",\"every_steps\":" + std::to_string(c.every_steps) + ",\"identifiable\":" + yes(c.identifiable);
  return out + ",\"why_not\":" + quoted(c.why_not) + "}";
}

void write_truth(const std::string &folder, const Job &job, const Weather &weather,
                 const std::vector<Cause> &causes, const Outcome &o, double healthy_s, const Attempt &attempt,
                 bool noisy) {
  const World &w = job.world;
  auto same = [](const std::string &s) { return quoted(s); };
  auto rank = [](int r) { return std::to_string(r); };
  std::vector<std::string> texts;
  for (size_t i = 0; i < causes.size(); i++)
    texts.push_back("\n  " + cause_json(job, causes[i], int(i), o));
  std::vector<int> host_of;
  for (const Place &p : w.ranks)
    host_of.push_back(p.host);
  std::string out = "{\"shape\":" + quoted(job.shape->name) + ",\"seed\":" + std::to_string(job.seed);
  out += ",\"n_ranks\":" + std::to_string(w.n_ranks()) + ",\"n_hosts\":" + std::to_string(w.n_hosts());
  out += ",\"steps\":" + std::to_string(job.steps) + ",\"run_s\":" + seconds(o.run_s);
  out += ",\"healthy_run_s\":" + seconds(healthy_s) +
      ",\"start_unix_ns\":" + std::to_string(attempt.start_unix_ns);
  out += ",\"machine\":" + quoted(w.kind.gpu) + ",\"nics\":" + std::to_string(w.kind.nics);
  out += ",\"hosts\":" + list(w.hosts, same) + ",\"host_of_rank\":" + list(host_of, rank);
  out += ",\"own_checkpoint_every\":" + std::to_string(job.checkpoint_every) + ",\"noisy\":" + yes(noisy);
  out += ",\"weather\":" + list(weather.names, same) + ",\"missing_ranks\":" + list(weather.missing, rank);
  double port = w.kind.port_limit_gbs, nic = w.kind.nic_limit_gbs;
  out += ",\"limits_gbs\":{\"port\":" + number(port) + ",\"nic\":" + number(nic) + "}";
  out += ",\"causes\":" + list(texts, [](const std::string &s) { return s; }) + "}\n";
  FILE *f = fopen((folder + "/truth.json").c_str(), "w");
  if (!f)
    throw std::runtime_error("cannot write truth.json");
  fputs(out.c_str(), f);
  fclose(f);
}

// --- what else lies in the folder ---

std::vector<std::vector<Fate>> all_fates(const Job &job, const Weather &weather, const Outcome &o) {
  std::vector<std::vector<Fate>> fate;
  for (int r = 0; r < job.world.n_ranks(); r++)
    fate.push_back(fates(job, weather, r, o.records[r]));
  return fate;
}

void write_stranger(const std::string &folder, Job &job, const Weather &weather, Attempt attempt) {
  Effects e = base_effects(job);
  e.seal();
  Outcome o = play(job, e, job.steps, true);
  attempt.start_unix_ns -= int64_t((o.run_s + 95) * 1e9);
  write_logs(folder, job, weather, o, all_fates(job, weather, o), attempt);
}

void write_earlier_attempt(const std::string &folder, uint64_t seed, int shape, const Weather &weather,
                           Attempt attempt) {
  auto job = draw_job(seed, shape);
  for (Comm &c : job->world.comms)
    c.hash = mix64(c.hash) >> 4;
  job->steps = std::max(4, job->steps / 8);
  Weather same = fair_weather(*job);
  same.offset_s = weather.offset_s;
  same.drift = weather.drift;
  same.plain_files = weather.plain_files;
  same.other_attempt = true;
  attempt.restart = 0;
  attempt.killed = true;
  attempt.salt ^= 0x51;
  write_stranger(folder, *job, same, attempt);
}

void write_other_job(const std::string &folder, uint64_t seed, Attempt attempt) {
  auto job = draw_job(seed ^ 0x0717e7, 2);  // a small one: LoRA on one host
  job->steps = 30;
  Weather fair = fair_weather(*job);
  attempt.restart = 0;
  attempt.salt = seed ^ 0xbeef;
  attempt.job_id = "88123";
  attempt.start_unix_ns -= int64_t(3600) * 1000000000;
  write_stranger(folder, *job, fair, attempt);
}

// --- a job ---

void make_job(uint64_t seed, int shape, const Role &role, const std::vector<std::string> &order,
              const std::string &folder) {
  Dice dice(key_of(seed, 501));
  auto job = draw_job(seed, shape);
  if (role.noisy)
    make_noisy(*job, dice);
  std::vector<Cause> none, causes;
  double span = run_time(*job, none, 1);
  if (job->checkpoint_every) {
    job->checkpoint_s = span / job->steps * job->checkpoint_every * job->checkpoint_share;
    span = run_time(*job, none, span);
  }
  if (role.causes)
    causes = choose_causes(*job, dice, role.causes, order, span);

  Effects e = base_effects(*job);
  for (size_t i = 0; i < causes.size(); i++)
    apply_cause(*job, causes[i], int(i), span, job->steps, e);
  e.seal();
  Outcome o = play(*job, e, job->steps, true);
  for (Cause &c : causes) {
    std::vector<Cause> copy = causes;
    c.cost = 1 - run_time(*job, copy, span, &copy[size_t(&c - causes.data())]) / o.run_s;
  }

  Weather weather = fair_weather(*job);
  Dice sky(key_of(seed, 502));
  if (role.weather)
    draw_weather(*job, sky, causes, weather);
  auto fate = all_fates(*job, weather, o);
  for (size_t i = 0; i < causes.size(); i++)
    judge(*job, weather, o, fate, int(i), causes[i]);

  Attempt attempt;
  attempt.start_unix_ns = 1780000000000000000 + int64_t(sky.between(0, 1.2e7) * 1e9);
  attempt.restart = weather.other_attempt ? 1 : 0;
  attempt.salt = seed;
  attempt.job_id = std::to_string(sky.whole(100000, 999999));
  attempt.rollups = job->shape->name != "moe_ep" && job->shape->name != "serving_tp_pp";
  write_logs(folder, *job, weather, o, fate, attempt);
  if (weather.other_attempt)
    write_earlier_attempt(folder, seed, shape, weather, attempt);
  if (weather.other_job)
    write_other_job(folder, seed, attempt);
  write_truth(folder, *job, weather, causes, o, span, attempt, role.noisy);
}

std::vector<Role> deal_roles(Dice &dice, int jobs) {
  std::vector<Role> roles;
  for (int i = 0; i < jobs; i++) {
    int sixth = i % 6;
    roles.push_back({sixth == 0       ? 0
                         : sixth == 1 ? 2
                                      : 1,
                     sixth == 0 && i / 12 % 2 == 1, i / 6 % 2 == sixth % 2});
  }
  dice.shuffle(roles);
  return roles;
}

}  // namespace

int main(int argc, char **argv) {
  uint64_t seed = argc == 5 ? strtoull(argv[1], nullptr, 10) : 0;
  int jobs = argc == 5 ? atoi(argv[2]) : 0, number = argc == 5 ? atoi(argv[3]) : 0;
  if (number < 0 || number >= jobs) {
    fprintf(stderr, "Usage: ni-fleet-jobs SEED JOBS NUMBER OUT, NUMBER from 0 to JOBS - 1\n");
    return 64;
  }
  Dice dice(key_of(seed, 600));
  std::vector<Role> roles = deal_roles(dice, jobs);
  std::vector<int> shapes;
  for (int i = 0; i < jobs; i++)
    shapes.push_back(i % number_of_shapes());
  dice.shuffle(shapes);
  // What the jobs before this one have is planned, not made: a set has all kinds about as often.
  std::map<std::string, int> used;
  std::vector<std::string> order;
  uint64_t job_seed = 0;
  for (int i = 0; i <= number; i++) {
    job_seed = key_of(seed, 500, i) >> 12;
    order = order_of_kinds(*draw_job(job_seed, shapes[i]), roles[i].causes, dice, used);
  }
  char name[16];
  snprintf(name, sizeof name, "/job-%03d", number);
  std::string folder = argv[4] + std::string(name);
  mkdir(folder.c_str(), 0777);
  try {
    make_job(job_seed, shapes[number], roles[number], order, folder);
  } catch (const std::exception &x) {
    fprintf(stderr, "job %d: %s\n", number, x.what());
    return 1;
  }
  return 0;
}
