#include "load.h"
#include <map>

static void add_pair(const Cluster &c, std::map<int, double> &m, int from, int to, double bytes) {
  if (from == to)
    return;
  m[c.r_pair(from, to)] += bytes;
  if (c.pod(from) != c.pod(to)) {
    m[c.r_uplink(c.pod(from))] += bytes;
    m[c.r_uplink(c.pod(to))] += bytes;
  }
}

static void add_message(const Cluster &c, std::map<int, double> &m, int from, int to, double bytes) {
  if (c.host(from) == c.host(to)) {
    m[c.r_nvlink(from)] += bytes;
    m[c.r_nvlink(to)] += bytes;
    return;
  }
  m[c.r_nic_out(c.nic_of(from))] += bytes;
  m[c.r_nic_in(c.nic_of(to))] += bytes;
  add_pair(c, m, c.host(from), c.host(to), bytes);
}

// A ring crosses each host's border once in each direction; its channels spread that over the NICs
// of the members there. Within a host every member passes the whole ring's bytes on.
static void add_ring(const Cluster &c, const Comm &comm, double volume, std::map<int, double> &m) {
  std::map<int, std::vector<int>> by_host;
  std::vector<int> order;
  for (int r : comm.members) {
    int h = c.host(r);
    if (by_host[h].empty())
      order.push_back(h);
    by_host[h].push_back(r);
  }
  for (auto &b : by_host) {
    if (b.second.size() > 1)
      for (int r : b.second)
        m[c.r_nvlink(r)] += volume;
    if (order.size() < 2)
      continue;
    for (int r : b.second) {
      double share = volume / (double)b.second.size();
      m[c.r_nic_out(c.nic_of(r))] += share;
      m[c.r_nic_in(c.nic_of(r))] += share;
    }
  }
  for (size_t i = 0; order.size() > 1 && i < order.size(); i++)
    add_pair(c, m, order[i], order[(i + 1) % order.size()], volume);
}

Network::Load collective_load(const Cluster &c, const Comm &comm, Func f, double bytes) {
  std::map<int, double> m;
  int n = (int)comm.members.size();
  if (f == ALLTOALL) {
    for (int a : comm.members)
      for (int b : comm.members)
        if (a != b)
          add_message(c, m, a, b, bytes / n);
  } else {
    add_ring(c, comm, ring_bytes(f, bytes, n), m);
  }
  return Network::Load(m.begin(), m.end());
}

Network::Load message_load(const Cluster &c, int from, int to, double bytes) {
  std::map<int, double> m;
  add_message(c, m, from, to, bytes);
  return Network::Load(m.begin(), m.end());
}
