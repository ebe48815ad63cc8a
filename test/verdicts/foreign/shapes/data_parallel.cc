// Jobs whose ranks hold the whole model: DDP, gradient accumulation, LoRA, DiLoCo.
#include "shape.h"

class DataParallel : public Shape {
 public:
  int buckets = 8;
  int micro_steps = 1;
  int outer_every = 0;  // DiLoCo: steps between two exchanges of hosts
  double forward_ns = 60e6;
  double bucket_bytes = 50e6;
  double model_bytes = 1e9;
  int launches = 400;  // of a forward pass
  bool grad_norm = false;
  std::vector<int> group;  // gradients are reduced among these
  std::vector<int> outer;  // ... and DiLoCo's pseudo-gradients

  int replica(int rank) const override { return rank; }

  void set_up() {
    n_replicas = c.n_ranks();
    world_ = add_comm(all(), "world", 4);
    if (outer_every) {
      group = split("inner", [this](int r) { return c.host(r); });
      outer = split("outer", [this](int r) { return r % c.gpus; }, 4);
    } else {
      group.assign(c.n_ranks(), world_);
    }
    step_ms = 3.2 * forward_ns * micro_steps / 1e6;
  }

  void body(int r, int step, Builder &b, const Effects &fx) override {
    for (int m = 0; m < micro_steps; m++) {
      double w = work(fx, r, step, m);
      int parts = 4;
      for (int i = 0; i < parts; i++)
        b.kernel(forward_ns * w / parts, launches / parts);
      backward(r, m == micro_steps - 1, w, b);
    }
    if (grad_norm) {
      b.kernel(2e5, 20);
      b.sync();
    }
    b.kernel(forward_ns * 0.06, launches / 6);
    if (outer_every && step % outer_every == outer_every - 1)
      for (int i = 0; i < 4; i++)
        b.blocking(2, outer[r], ALLREDUCE, model_bytes / 4 / c.gpus);
    if (step % sync_every == 0)
      b.blocking(1, world_, ALLREDUCE, 4);  // the loss, for the log
  }

  void backward(int r, bool reduce, double w, Builder &b) {
    int last = -1;
    for (int i = 0; i < buckets; i++) {
      b.kernel(2 * forward_ns * w / buckets, 2 * launches / buckets);
      double bytes = i == 0 ? bucket_bytes * 0.2 : bucket_bytes;
      if (reduce)
        last = b.async(1, group[r], ALLREDUCE, bytes);
    }
    if (last >= 0)
      b.wait(S_COMPUTE, last);
  }

  void forward_only(int r, int step, Builder &b, const Effects &fx) override {
    (void)fx;
    (void)step;
    (void)r;
    b.kernel(forward_ns, launches);
  }

 private:
  std::vector<int> all() const {
    std::vector<int> v;
    for (int r = 0; r < c.n_ranks(); r++)
      v.push_back(r);
    return v;
  }
};

std::unique_ptr<Shape> make_ddp(Rng &rng) {
  auto s = std::make_unique<DataParallel>();
  draw_cluster(rng, s->c, 16, 64);
  s->buckets = rng.range(4, 14);
  s->forward_ns = rng.log_uniform(20e6, 120e6);
  double share = rng.uniform(0.3, 1.1);  // of the backward pass, on the network
  s->bucket_bytes = 2 * s->forward_ns * share / s->buckets * s->c.nic * s->c.nics / 2;
  s->launches = rng.range(300, 900);
  s->sync_every = rng.chance(0.5) ? 1 : 10;
  s->steps = rng.range(60, 400);
  s->set_up();
  return s;
}

std::unique_ptr<Shape> make_gradacc(Rng &rng) {
  auto s = std::make_unique<DataParallel>();
  draw_cluster(rng, s->c, 8, 32);
  s->micro_steps = rng.range(4, 16);
  s->buckets = rng.range(3, 10);
  s->forward_ns = rng.log_uniform(15e6, 60e6);
  double share = rng.uniform(0.3, 1.5);
  s->bucket_bytes = 2 * s->forward_ns * share / s->buckets * s->c.nic * s->c.nics / 2;
  s->steps = rng.range(60, 250);
  s->grad_norm = true;
  s->set_up();
  return s;
}

std::unique_ptr<Shape> make_lora(Rng &rng) {
  auto s = std::make_unique<DataParallel>();
  s->c.n_hosts = 1;
  s->c.gpus = 8;
  s->c.nics = 1;
  s->c.nvlink = rng.chance(0.5) ? 18 : 200;  // PCIe or NVLink
  s->buckets = rng.range(1, 3);
  s->forward_ns = rng.log_uniform(15e6, 50e6);
  s->launches = (int)(s->forward_ns / rng.uniform(9000, 14000));
  s->bucket_bytes = rng.log_uniform(10e6, 80e6);
  s->grad_norm = true;
  s->steps = rng.range(150, 400);
  s->set_up();
  return s;
}

std::unique_ptr<Shape> make_diloco(Rng &rng) {
  auto s = std::make_unique<DataParallel>();
  draw_cluster(rng, s->c, 16, 48);
  const double speeds[] = {1.2, 5.0, 10.0};
  s->c.nic = rng.pick(speeds);  // slow links between sites
  s->c.nics = 1;
  s->outer_every = rng.range(8, 25);
  s->forward_ns = rng.log_uniform(15e6, 60e6);
  s->buckets = rng.range(3, 6);
  s->bucket_bytes = rng.log_uniform(30e6, 150e6);
  s->model_bytes = s->c.nic * rng.uniform(0.5e9, 2e9);
  s->sync_every = s->outer_every;
  s->steps = rng.range(100, 300);
  s->set_up();
  return s;
}
