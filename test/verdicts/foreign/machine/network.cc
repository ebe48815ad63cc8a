#include "network.h"
#include <algorithm>

// Books what the flow has moved so far, and finds its rate from now on.
void Network::update(int id, ns_t now) {
  Flow &f = flows[id];
  f.left -= f.rate * (now - f.since);
  f.left = std::max(f.left, 0.0);
  f.since = now;
  double slowest = 0;
  for (auto &l : f.load) {
    double share = cap_[l.first] * factor_[l.first] / (double)on_[l.first].size();
    slowest = std::max(slowest, l.second / share);
  }
  double rate = 1.0 / std::max(slowest, 1.0);
  // Nothing has to be posted anew if another resource is what holds the flow up.
  if (f.version > 0 && std::abs(rate - f.rate) < rate * 1e-9)
    return;
  f.rate = rate;
  f.version++;
  changed.push_back(id);
}

// Updates each transfer on the load's resources, once.
void Network::touch(const Load &load, ns_t now) {
  round_++;
  for (auto &l : load) {
    for (int id : on_[l.first]) {
      if (flows[id].round == round_)
        continue;
      flows[id].round = round_;
      update(id, now);
    }
  }
}

int Network::start(const Load &load, ns_t now, int owner) {
  int id;
  if (free_.empty()) {
    id = (int)flows.size();
    flows.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow &f = flows[id];
  f.load = load;
  f.left = 1;
  f.rate = 0;
  f.since = now;
  f.owner = owner;
  f.active = true;
  for (auto &l : load)
    on_[l.first].push_back(id);
  f.version++;
  touch(load, now);
  return id;
}

void Network::finish(int id, ns_t now) {
  Flow &f = flows[id];
  f.active = false;
  f.version++;
  for (auto &l : f.load) {
    std::vector<int> &v = on_[l.first];
    v.erase(std::find(v.begin(), v.end(), id));
  }
  touch(f.load, now);
  free_.push_back(id);
}

void Network::set_factor(int resource, double factor, ns_t now) {
  factor_[resource] = factor;
  touch({{resource, 0}}, now);
}
