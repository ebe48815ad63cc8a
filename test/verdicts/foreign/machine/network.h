// Transfers that share resources: each resource gives equal shares to the transfers on it, and a
// transfer goes as fast as the slowest of its shares.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>
#include "cluster.h"

class Network {
 public:
  typedef std::vector<std::pair<int, double>> Load;  // resource, bytes

  explicit Network(const Cluster &c) : cap_(c.capacities()), factor_(cap_.size(), 1), on_(cap_.size()) {}

  // How long a load would take alone, now.
  double alone(const Load &load) const {
    double t = 0;
    for (auto &l : load)
      t = std::max(t, l.second / (cap_[l.first] * factor_[l.first]));
    return t;
  }

  int start(const Load &load, ns_t now, int owner);
  void finish(int flow, ns_t now);
  void set_factor(int resource, double factor, ns_t now);

  struct Flow {
    Load load;
    double left = 0, rate = 0;  // share of the whole, and per ns
    ns_t since = 0;
    int version = 0, owner = -1;
    bool active = false;
    long round = 0;
  };
  std::vector<Flow> flows;
  std::vector<int> changed;  // flows whose end has to be posted anew

 private:
  void touch(const Load &load, ns_t now);
  long round_ = 0;
  void update(int flow, ns_t now);
  std::vector<double> cap_, factor_;
  std::vector<std::vector<int>> on_;
  std::vector<int> free_;
};
