// What causes change in a job. A job without causes has the neutral values.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

struct Window {
  double begin, end;  // seconds of the run
  double factor;      // speed, or share of the capacity, inside
};

// A speed over time: the product of all windows that cover a moment.
class Speed {
 public:
  void add(Window w) { windows_.push_back(w); }
  void seal() {
    edges_.clear();
    values_.clear();
    if (windows_.empty())
      return;
    std::vector<std::pair<double, double>> changes;  // time, factor to multiply by
    for (const Window &w : windows_) {
      changes.push_back({w.begin, w.factor});
      changes.push_back({w.end, 1 / w.factor});
    }
    std::sort(changes.begin(), changes.end());
    double log_value = 0;
    for (auto &c : changes) {
      log_value += std::log(c.second);
      edges_.push_back(c.first);
      values_.push_back(std::fabs(log_value) < 1e-9 ? 1.0 : std::exp(log_value));
    }
  }
  bool flat() const { return edges_.empty(); }
  double at(double t) const {
    size_t i = size_t(std::upper_bound(edges_.begin(), edges_.end(), t) - edges_.begin());
    return i == 0 ? 1.0 : values_[i - 1];
  }
  // When work of so many seconds at full speed is done that begins at t.
  double advance(double t, double work) const {
    if (edges_.empty())
      return t + work;
    size_t i = size_t(std::upper_bound(edges_.begin(), edges_.end(), t) - edges_.begin());
    while (true) {
      double speed = i == 0 ? 1.0 : values_[i - 1];
      if (i == edges_.size() || work <= (edges_[i] - t) * speed)
        return t + work / speed;
      work -= (edges_[i] - t) * speed;
      t = edges_[i++];
    }
  }
  const std::vector<double> &edges() const { return edges_; }

 private:
  std::vector<Window> windows_;
  std::vector<double> edges_, values_;
};

struct PauseAt {
  int step;
  double place;  // where in the step's code, 0 to 1
  double seconds;
  int cause;
  bool late_data;  // the batch is not there yet: at the step's begin
};

struct Effects {
  std::vector<Speed> gpu, cpu, copy, storage;  // of each rank
  std::vector<Speed> link;
  std::vector<std::vector<PauseAt>> pauses;  // of each rank, by step
  std::vector<double> load;                  // of each rank: factor on all its work
  std::vector<double> expert;  // of each rank: share of tokens that come to its experts, 1: even
  std::vector<std::pair<int, double>> heavy_steps;
  int eval_every = 0, eval_rounds = 0;
  int checkpoint_every = 0;
  double checkpoint_s = 0;

  Effects(int ranks, int links)
      : gpu(ranks),
        cpu(ranks),
        copy(ranks),
        storage(ranks),
        link(links),
        pauses(ranks),
        load(ranks, 1.0),
        expert(ranks, 1.0) {}
  double step_factor(int step) const {
    auto i = std::lower_bound(heavy_steps.begin(), heavy_steps.end(), std::make_pair(step, 0.0));
    return i != heavy_steps.end() && i->first == step ? i->second : 1.0;
  }
  void seal() {
    for (auto *list : {&gpu, &cpu, &copy, &storage, &link})
      for (Speed &s : *list)
        s.seal();
    for (auto &p : pauses)
      std::stable_sort(p.begin(), p.end(), [](auto &a, auto &b) { return a.step < b.step; });
    std::sort(heavy_steps.begin(), heavy_steps.end());
  }
};
