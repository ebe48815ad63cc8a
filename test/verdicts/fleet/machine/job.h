// A job: its world, the program of its ranks, and how noisy it is by nature.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "effects.h"
#include "program.h"
#include "world.h"

struct Noise {
  double kernel = 0.008;        // of each kernel's time, relative
  double chip = 0.004;          // of each GPU, for the whole run
  double step = 0.003;          // of each step, all ranks alike
  double cpu = 0.12;            // of each piece of code on the CPU
  double hiccup_chance = 3e-4;  // per piece of code: the scheduler takes the CPU away
  double hiccup_s = 0.002;
};

class Shape;

struct Job {
  uint64_t seed = 0;
  World world;
  Noise noise;
  std::unique_ptr<Shape> shape;
  int steps = 0;
  int checkpoint_every = 0;     // by itself, whatever the causes
  double checkpoint_share = 0;  // of the run's time
  double checkpoint_s = 0;
  std::vector<std::vector<int>> stages;    // ranks of each pipeline stage, if there are stages
  std::vector<std::vector<int>> replicas;  // ranks of each data parallel replica, if there are several
  std::vector<std::vector<int>> experts;   // ranks that hold the same experts
  int world_comm = -1;                     // a communicator of all ranks, if the framework makes one
};

// One kind of job. It writes the program of a rank for a step.
class Shape {
 public:
  virtual ~Shape() = default;
  virtual void step(Tape &t, const Job &job, const Effects &e, int rank, int step) const = 0;
  // One batch of an evaluation: forward only, on all ranks.
  virtual void evaluate(Tape &t, const Job &job, int rank, int round) const = 0;
  std::string name;
  bool has_loader = true;    // a batch comes from storage at the begin of a step
  double launch_s = 5.5e-6;  // CPU time for one kernel launch
};
