// The machines: hosts, GPUs, and the resources that transfers share.
#pragma once
#include <string>
#include <vector>

typedef double ns_t;  // times of the simulation: ns since the job began

struct Cluster {
  int n_hosts = 1;
  int gpus = 8;                 // of each host
  int nics = 8;                 // of each host
  int hosts_per_pod = 64;       // hosts under one leaf switch
  double nvlink = 250;          // bytes per ns (= GB/s) and GPU, as a ring gets them
  double nic = 40;              // bytes per ns and NIC
  double oversubscribed = 1;    // the leaf's uplinks carry 1/this of its hosts' NICs
  double alpha_in_ns = 9000;    // latency of an operation within a host
  double alpha_out_ns = 22000;  // across hosts
  double net_jitter = 0.02;     // of a transfer's time
  double launch_ns = 5000;      // CPU time of a kernel launch
  int queue = 1000;             // launches that may wait in a rank's streams

  int n_ranks() const { return n_hosts * gpus; }
  int host(int rank) const { return rank / gpus; }
  int pod(int host) const { return host / hosts_per_pod; }
  int n_pods() const { return (n_hosts + hosts_per_pod - 1) / hosts_per_pod; }
  int nic_of(int rank) const { return host(rank) * nics + (rank % gpus) * nics / gpus; }

  // Resources by number: NVLink of each GPU, NICs (out, in), pairs of hosts, uplinks of pods.
  int r_nvlink(int rank) const { return rank; }
  int r_nic_out(int nic) const { return n_ranks() + nic; }
  int r_nic_in(int nic) const { return n_ranks() + n_hosts * nics + nic; }
  int r_pair(int from, int to) const { return n_ranks() + 2 * n_hosts * nics + from * n_hosts + to; }
  int r_uplink(int pod) const { return r_pair(0, 0) + n_hosts * n_hosts + pod; }
  int n_resources() const { return r_uplink(0) + n_pods(); }

  // What each resource carries when nothing is wrong with it.
  std::vector<double> capacities() const {
    std::vector<double> cap(n_resources(), nic * nics);
    for (int r = 0; r < n_ranks(); r++)
      cap[r_nvlink(r)] = nvlink;
    for (int i = 0; i < n_hosts * nics; i++) {
      cap[r_nic_out(i)] = nic;
      cap[r_nic_in(i)] = nic;
    }
    for (int p = 0; p < n_pods(); p++)
      cap[r_uplink(p)] = nic * nics * hosts_per_pod / oversubscribed;
    return cap;
  }
};
