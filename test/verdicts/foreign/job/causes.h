// The causes that can be planted.
#pragma once
#include <string>
#include <vector>
#include "shape.h"

struct Cause {
  std::string kind;
  std::string level;              // rank, host, nic, nvlink, pair, fabric, stage, replica, expert, job
  std::vector<int> ranks, hosts;  // what it is on
  int nic = -1;                   // number within its host
  int index = -1;                 // stage, replica or expert
  double severity = 0.2;          // scaled until the cost is about `target`
  double target = 0.1;
  bool benign = false;
  std::vector<Window> windows;
  std::vector<double> moments;  // of stalls, ns
  double period_s = 0;
  int from_step = 0, every = 1;
  double chance = 1, share = 0;
  uint64_t salt = 0;

  double cost = 0;  // by the counterfactual
  bool identifiable = true;
  std::string why_not;
};

extern const char *const cause_kinds[];
extern const int n_cause_kinds;

bool cause_fits(const std::string &kind, const Shape &s);
// Draws where and when; t0 is how long the run takes without.
Cause draw_cause(const std::string &kind, const Shape &s, ns_t t0, Rng &rng);
void apply_cause(const Cause &k, const Shape &s, ns_t t0, Effects &fx);
// The resources of the network that it slows down.
std::vector<int> cause_resources(const Cause &k, const Shape &s);
