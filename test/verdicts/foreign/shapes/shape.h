// A kind of job: its communicators, and what each rank does in each step.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include "effects.h"
#include "program.h"
#include "rng.h"

// The model is loaded before the first operation: no part of the run as logs show it.
const ns_t SETUP_NS = 2e9;

class Shape {
 public:
  virtual ~Shape() {}
  Cluster c;
  std::vector<Comm> comms;
  std::string name;
  int steps = 50;
  double jitter = 0.01;  // of a kernel's time
  double step_ms = 300;  // about; for sizes of causes
  int sync_every = 1;    // steps between two looks at the loss
  double loader_ns = 1.5e6;
  int n_stages = 1, n_replicas = 0;
  bool experts = false;
  bool training = true;
  uint64_t seed = 0;

  virtual int stage(int) const { return 0; }
  virtual int replica(int) const { return -1; }
  virtual int expert(int) const { return -1; }
  // The step itself. What the causes add comes around it.
  virtual void body(int rank, int step, Builder &b, const Effects &fx) = 0;
  // A forward pass alone, as in an evaluation.
  virtual void forward_only(int rank, int step, Builder &b, const Effects &fx) = 0;

  bool write(int rank, int step, Builder &b, const Effects &fx);

  int add_comm(const std::vector<int> &members, const char *name, int dtype_bytes = 2) {
    comms.push_back({members, name, dtype_bytes});
    return (int)comms.size() - 1;
  }
  // Communicators of all ranks with the same key; the result is each rank's.
  std::vector<int> split(const char *name, const std::function<int(int)> &key, int dtype_bytes = 2);
  // How much longer a rank's work is than usual, and how much larger its messages are.
  double work(const Effects &fx, int rank, int step, int micro) const;
  double sizes(const Effects &fx, int rank, int step, int micro) const;
  double expert_work(const Effects &fx, int rank, int step) const;

 protected:
  int world_ = -1;  // communicator of all
  void checkpoint(int rank, int step, Builder &b, const Effects &fx);
};

// Draws the shape's cluster, sizes and times.
std::unique_ptr<Shape> make_shape(const std::string &name, uint64_t seed);
extern const char *const shape_names[];
extern const int n_shapes;

std::unique_ptr<Shape> make_ddp(Rng &rng);
std::unique_ptr<Shape> make_gradacc(Rng &rng);
std::unique_ptr<Shape> make_lora(Rng &rng);
std::unique_ptr<Shape> make_diloco(Rng &rng);
std::unique_ptr<Shape> make_fsdp(Rng &rng);
std::unique_ptr<Shape> make_hsdp(Rng &rng);
std::unique_ptr<Shape> make_cp(Rng &rng);
std::unique_ptr<Shape> make_megatron(Rng &rng);
std::unique_ptr<Shape> make_tpdp(Rng &rng);
std::unique_ptr<Shape> make_interleaved(Rng &rng);
std::unique_ptr<Shape> make_moe(Rng &rng);
std::unique_ptr<Shape> make_dlrm(Rng &rng);
std::unique_ptr<Shape> make_rlhf(Rng &rng);
std::unique_ptr<Shape> make_serving(Rng &rng);
void draw_cluster(Rng &rng, Cluster &c, int min_ranks, int max_ranks, int gpus = 0);
