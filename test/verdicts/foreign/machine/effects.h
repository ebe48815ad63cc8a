// What causes do to a run. Causes fill it in; the engine and the shapes ask it.
#pragma once
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>
#include "cluster.h"

struct Window {
  ns_t begin, end;
  bool has(ns_t t) const { return t >= begin && t < end; }
};

// A factor on some ranks (or hosts) in some windows.
struct Slow {
  std::vector<bool> on;  // by rank
  std::vector<Window> windows;
  double factor;
};

// Something that stops a rank for a while, the first time that it comes by after `at`.
struct Stall {
  ns_t at;
  double ns;
};

struct CapChange {
  ns_t at;
  int resource;
  double factor;
};

// Packets are lost at a resource: an operation that crosses it waits for a timeout now and then.
struct Lossy {
  int resource;
  Window window;
  double chance;
  double ns;
};

// Work that a step has beside its own, on some ranks.
struct Extra {
  int from_step, to_step, every, phase;
  std::vector<bool> on;
  double ns;
  double chance;  // of a rank and step
  uint64_t salt;
  bool loader;  // the input is late; else the thread sleeps after a sync
};

// Compute is so many times as long: by stage, replica, expert.
struct Work {
  enum Axis { STAGE, REPLICA, REPLICA_STEP, EXPERT } axis;
  int index;
  int from_step;
  double factor;
  uint64_t salt;
  bool sizes;  // messages grow, too
};

struct Effects {
  std::vector<Slow> gpu, launch;
  std::map<int, std::vector<Stall>> cpu_stalls, gpu_stalls;  // by rank, in order of time
  std::vector<CapChange> caps;
  std::vector<Lossy> lossy;
  std::vector<Extra> extras;
  std::vector<Work> works;
  int eval_every = 0;  // steps, 0: never
  int eval_passes = 0;
  int ckpt_every = 0;
  double ckpt_ns = 0;
  bool ckpt_rank0 = false;

  static double factor(const std::vector<Slow> &list, int rank, ns_t t) {
    double f = 1;
    for (const Slow &s : list) {
      if (!s.on[rank])
        continue;
      for (const Window &w : s.windows)
        if (w.has(t))
          f *= s.factor;
    }
    return f;
  }
};
