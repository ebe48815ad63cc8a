#include "world.h"

#include <algorithm>
#include <cstdio>
#include <set>

const std::vector<HostKind> &host_kinds() {
  static const std::vector<HostKind> kinds = {
      {"H100 SXM, 8 x 400G", 8, true, true, 365, 450, 8, 47.5, 50, 32, 16},
      {"H100 SXM, 4 x 400G", 8, true, true, 365, 450, 4, 47.5, 50, 32, 16},
      {"H100 SXM, 1 x 400G", 8, true, true, 365, 450, 1, 46.0, 50, 32, 16},
      {"A100 SXM, 8 x 200G", 8, true, false, 232, 300, 8, 23.6, 25, 1024, 24},
      {"A100 SXM, 4 GPUs, 4 x 200G", 4, true, false, 226, 300, 4, 23.4, 25, 1024, 12},
      {"A100 SXM, 4 GPUs, 2 x 200G", 4, true, false, 226, 300, 2, 23.4, 25, 1024, 12},
      {"L40S PCIe, 8 GPUs, 2 x 200G", 8, false, false, 21, 32, 2, 22.5, 25, 1024, 4},
      {"L40S PCIe, 4 GPUs, 1 x 100G", 4, false, false, 21, 32, 1, 11.6, 12.5, 1024, 4},
      {"A10 PCIe, 4 GPUs, 1 x 100G Ethernet", 4, false, false, 19, 32, 1, 10.4, 12.5, 1024, 2},
  };
  return kinds;
}

std::vector<std::string> draw_host_names(Dice &dice, int n) {
  std::vector<std::string> names;
  int style = dice.whole(0, 4), start = dice.whole(1, 900);
  while (int(names.size()) < n) {
    char text[64];
    int i = int(names.size());
    if (style == 0)
      snprintf(text, sizeof text, "gpu-r%02d-n%02d", (start + i / 4) % 60, dice.whole(1, 24));
    if (style == 1)
      snprintf(text, sizeof text, "ip-10-%d-%d-%d", start % 250, dice.whole(0, 63), dice.whole(4, 250));
    if (style == 2)
      snprintf(text, sizeof text, "train-%d-worker-%d", start, i);
    if (style == 3)
      snprintf(text, sizeof text, "hgx%04d", start * 7 % 3000 + 3 * i + dice.whole(0, 2));
    if (style == 4)
      snprintf(text, sizeof text, "node%03d.cluster.local", (start + 2 * i) % 1000);
    if (std::find(names.begin(), names.end(), text) == names.end())
      names.push_back(text);
  }
  return names;
}

const char *func_name(Func f) {
  static const char *names[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Send", "Recv"};
  return names[int(f)];
}

double World::capacity(int link) const {
  if (link < nic_base())
    return kind.port_gbs * 1e9;
  if (link < path_base())
    return kind.nic_gbs * 1e9;
  return kind.nic_gbs * kind.nics * 1e9;
}

std::vector<int> World::ranks_on(int host) const {
  std::vector<int> found;
  for (int r = 0; r < n_ranks(); r++)
    if (ranks[r].host == host)
      found.push_back(r);
  return found;
}

std::vector<int> World::ranks_on_nic(int host, int nic) const {
  std::vector<int> found;
  for (int r : ranks_on(host))
    if (nic_of(r) == nic)
      found.push_back(r);
  return found;
}

// A ring passes the ranks of a host one after another and crosses to the next host. NCCL lays one ring for
// each rail, so the bytes that cross are spread over the NICs that are near the members.
int World::add_comm(const std::string &name, const std::vector<int> &members, uint64_t salt) {
  Comm c;
  c.hash = key_of(salt, comms.size(), members[0], members.size()) >> 4;
  c.name = name;
  c.members = members;
  for (int r : members)
    if (std::find(c.hosts.begin(), c.hosts.end(), ranks[r].host) == c.hosts.end())
      c.hosts.push_back(ranks[r].host);
  for (int r : members) {
    bool alone = true;
    for (int other : members)
      alone = alone && (other == r || ranks[other].host != ranks[r].host);
    if (!alone) {
      c.ring.push_back({gpu_out(r), 1});
      c.ring.push_back({gpu_in(r), 1});
      // The switch reduces: data goes up once and comes back once, at a lower efficiency.
      c.nvls.push_back({gpu_out(r), 1.35});
      c.nvls.push_back({gpu_in(r), 1.35});
    }
  }
  if (c.hosts.size() > 1) {
    for (size_t i = 0; i < c.hosts.size(); i++) {
      int from = c.hosts[i], to = c.hosts[(i + 1) % c.hosts.size()];
      std::set<int> out, in;
      for (int r : members) {
        if (ranks[r].host == from)
          out.insert(nic_of(r));
        if (ranks[r].host == to)
          in.insert(nic_of(r));
      }
      for (int nic : out)
        c.ring.push_back({nic_out(from, nic), 1.0 / double(out.size())});
      for (int nic : in)
        c.ring.push_back({nic_in(to, nic), 1.0 / double(in.size())});
      c.ring.push_back({path(from, to), 1});
    }
  }
  comms.push_back(c);
  return int(comms.size()) - 1;
}

std::vector<Load> World::pair_loads(int from, int to) const {
  int a = ranks[from].host, b = ranks[to].host;
  if (a == b)
    return {{gpu_out(from), 1}, {gpu_in(to), 1}};
  return {{nic_out(a, nic_of(from)), 1}, {nic_in(b, nic_of(to)), 1}, {path(a, b), 1}};
}
