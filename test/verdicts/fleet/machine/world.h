// The machines of a job, its ranks on them, and its communicators with the links they use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dice.h"

// Bandwidths in GB/s and one direction. "limit" is what the hardware could carry at most, the other number is
// what NCCL gets out of it.
struct HostKind {
  const char *gpu;
  int gpus;
  bool nvlink;      // false: GPUs talk by PCIe
  bool nvls;        // the switch can reduce
  double port_gbs;  // of one GPU
  double port_limit_gbs;
  int nics;
  double nic_gbs;
  double nic_limit_gbs;
  int gpu_tick_ns;  // resolution of the GPU's clock
  int channels;
};

struct Place {
  int host, local;
};

// So many bytes go over a link for each byte of payload of an operation.
struct Load {
  int link;
  double per_byte;
};

enum class Func { AllReduce, AllGather, ReduceScatter, Broadcast, Send, Recv };

struct Comm {
  uint64_t hash = 0;
  std::string name;
  std::vector<int> members;  // job ranks in the order of the communicator's ranks
  std::vector<int> hosts;    // in ring order
  std::vector<Load> ring;    // per byte that a full ring carries past each member
  std::vector<Load> nvls;    // per byte of an AllReduce in the switch
  int index_of(int rank) const {
    for (size_t i = 0; i < members.size(); i++)
      if (members[i] == rank)
        return int(i);
    return -1;
  }
};

class World {
 public:
  HostKind kind;
  std::vector<std::string> hosts;
  std::vector<Place> ranks;
  std::vector<Comm> comms;

  int n_ranks() const { return int(ranks.size()); }
  int n_hosts() const { return int(hosts.size()); }
  int gpu_out(int rank) const { return 2 * gpu(rank); }
  int gpu_in(int rank) const { return 2 * gpu(rank) + 1; }
  int nic_of(int rank) const { return ranks[rank].local * kind.nics / kind.gpus; }
  int nic_out(int host, int nic) const { return nic_base() + 2 * (host * kind.nics + nic); }
  int nic_in(int host, int nic) const { return nic_out(host, nic) + 1; }
  // The way through the fabric from one host to another. It is never the narrowest part of a sound network.
  int path(int from, int to) const { return path_base() + from * n_hosts() + to; }
  int n_links() const { return path_base() + n_hosts() * n_hosts(); }
  double capacity(int link) const;  // bytes per second
  std::vector<int> ranks_on(int host) const;
  std::vector<int> ranks_on_nic(int host, int nic) const;

  int add_comm(const std::string &name, const std::vector<int> &members, uint64_t salt);
  std::vector<Load> pair_loads(int from, int to) const;

 private:
  int gpu(int rank) const { return ranks[rank].host * kind.gpus + ranks[rank].local; }
  int nic_base() const { return 2 * n_hosts() * kind.gpus; }
  int path_base() const { return nic_base() + 2 * n_hosts() * kind.nics; }
};

const std::vector<HostKind> &host_kinds();
std::vector<std::string> draw_host_names(Dice &dice, int n);
const char *func_name(Func f);
