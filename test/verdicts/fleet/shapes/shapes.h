// Jobs of all shapes, and what the shapes share: the grid of ranks, the begin and the end of a step.
#pragma once

#include <map>

#include "machine/job.h"

constexpr const char *kBf16 = "ncclBfloat16";
constexpr const char *kF32 = "ncclFloat32";
constexpr const char *kInt8 = "ncclInt8";

// Ranks as points of a grid, the first axis varying fastest.
class Grid {
 public:
  explicit Grid(std::vector<std::pair<std::string, int>> axes) : axes_(std::move(axes)) {}
  int size() const;
  int at(int rank, const std::string &axis) const;
  int extent(const std::string &axis) const;
  // The rank that has the same place, but for one axis.
  int moved(int rank, const std::string &axis, int place) const;
  // All groups of ranks that differ in these axes alone.
  std::vector<std::vector<int>> groups(const std::vector<std::string> &axes) const;

 private:
  std::vector<std::pair<std::string, int>> axes_;
};

// For each rank its communicator of one kind, or -1.
using CommTable = std::vector<int>;
CommTable make_comms(Job &job, const std::vector<std::vector<int>> &groups, const std::string &name,
                     uint64_t salt);

struct Habits {        // of the training loop
  int log_every = 10;  // loss.item()
  double loader_s = 0.0008;
  double copy_s = 0.0006;
  double python_s = 0.0015;  // of the loop, per step
  double length_tail = 0;    // spread of the work of a rank's batch, from step to step
};

class Trainer : public Shape {
 public:
  Habits habits;
  std::vector<int> batch_of;  // ranks with the same number work on the same batch

 protected:
  void begin(Tape &t, const Job &job, int rank, int step) const;
  void log_loss(Tape &t, int step, int comm) const;
  double length(const Job &job, int rank, int step, int micro) const;
};

// Draws a whole job: machines, ranks, shape.
std::unique_ptr<Job> draw_job(uint64_t seed, int shape_number);
int number_of_shapes();

std::unique_ptr<Shape> make_ddp(Job &job, Dice &dice, const std::string &variant);
std::unique_ptr<Shape> make_fsdp(Job &job, Dice &dice, const std::string &variant);
std::unique_ptr<Shape> make_zero_offload(Job &job, Dice &dice);
std::unique_ptr<Shape> make_megatron(Job &job, Dice &dice, const std::string &variant);
std::unique_ptr<Shape> make_moe(Job &job, Dice &dice);
std::unique_ptr<Shape> make_recommender(Job &job, Dice &dice);
std::unique_ptr<Shape> make_serving(Job &job, Dice &dice);
