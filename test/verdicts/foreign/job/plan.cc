#include "plan.h"
#include <algorithm>
#include <map>
#include "causes.h"

template <class T>
static void shuffle(std::vector<T> &v, Rng &rng) {
  for (size_t i = v.size(); i > 1; i--)
    std::swap(v[i - 1], v[rng.next() % i]);
}

// The shapes that all of the causes fit.
static std::vector<std::string> fitting(const Plan &p) {
  std::vector<std::string> v;
  for (int i = 0; i < n_shapes; i++) {
    auto s = make_shape(shape_names[i], p.seed);
    bool fits = true;
    for (const std::string &k : p.kinds)
      fits &= cause_fits(k, *s);
    if (fits)
      v.push_back(shape_names[i]);
  }
  return v;
}

// One of those that were used least. If no shape has room for two causes, one of them goes.
static void choose_shape(Plan &p, std::map<std::string, int> &used, Rng &rng) {
  std::vector<std::string> all = fitting(p);
  while (all.empty()) {
    if (p.kinds.size() > 1)
      p.kinds.pop_back();
    else
      p.seed = rng.next();
    all = fitting(p);
  }
  int least = 1 << 30;
  for (const std::string &name : all)
    least = std::min(least, used[name]);
  std::vector<std::string> best;
  for (const std::string &name : all)
    if (used[name] == least)
      best.push_back(name);
  p.shape = best[rng.next() % best.size()];
  used[p.shape]++;
}

static std::vector<std::string> all_kinds(Rng &rng) {
  std::vector<std::string> v(cause_kinds, cause_kinds + n_cause_kinds);
  shuffle(v, rng);
  return v;
}

std::vector<Plan> plan_set(unsigned long long seed, int n_jobs) {
  Rng rng(seed * 7919 + 5);
  std::vector<Plan> plans(n_jobs);
  std::vector<int> order;
  for (int i = 0; i < n_jobs; i++)
    order.push_back(i);
  shuffle(order, rng);
  int healthy = n_jobs / 6;
  int twice = n_jobs / 6;
  std::vector<std::string> queue;
  for (int i = 0; i < n_jobs; i++) {
    Plan &p = plans[order[i]];
    int wanted = i < healthy ? 0 : i < healthy + twice ? 2 : 1;
    p.uneven = i < healthy / 2;
    for (int k = 0; k < wanted; k++) {
      if (queue.empty())
        queue = all_kinds(rng);
      p.kinds.push_back(queue.back());
      queue.pop_back();
    }
    // One benign thing and one cause can coincide; the same thing twice cannot.
    if (p.kinds.size() == 2 && p.kinds[0] == p.kinds[1])
      p.kinds.pop_back();
  }
  std::map<std::string, int> used;
  for (Plan &p : plans)
    p.seed = rng.next();
  // Healthy jobs fit every shape: they take what the others leave.
  for (Plan &p : plans) {
    if (!p.kinds.empty())
      choose_shape(p, used, rng);
  }
  for (Plan &p : plans) {
    if (p.kinds.empty())
      choose_shape(p, used, rng);
  }
  return plans;
}
