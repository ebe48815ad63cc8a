// Jobs whose parameters are sharded: FSDP, HSDP, and context parallelism over it.
#include "shape.h"

class Sharded : public Shape {
 public:
  int layers = 8;
  int launches = 60;           // of a layer
  int cp = 1;                  // ranks that share a sequence
  double layer_ns = 8e6;       // forward
  double layer_bytes = 400e6;  // parameters of a layer
  double kv_bytes = 32e6;
  bool prefetch = true;
  std::vector<int> shard, copies, ring;

  int replica(int rank) const override { return rank / cp; }

  void set_up(bool hybrid) {
    n_replicas = c.n_ranks() / cp;
    world_ = split("world", [](int) { return 0; }, 4)[0];
    shard = split("fsdp", [this, hybrid](int r) { return hybrid ? c.host(r) : 0; });
    if (hybrid)
      copies = split("replicate", [this](int r) { return r % c.gpus; });
    if (cp > 1)
      ring = split("cp", [this](int r) { return r / cp; });
    step_ms = 3.2 * layers * layer_ns / 1e6;
  }

  void body(int r, int step, Builder &b, const Effects &fx) override {
    pass(r, step, b, fx, false);
    int reduced = pass(r, step, b, fx, true);
    b.wait(S_COMPUTE, reduced);
    b.blocking(1, world_, ALLREDUCE, 4);  // the norm of the gradients
    b.sync();
    b.kernel(layer_ns * 0.5, 40);
  }

  void forward_only(int r, int step, Builder &b, const Effects &fx) override { pass(r, step, b, fx, false); }

 private:
  double share(int r) const { return layer_bytes / (double)comms[shard[r]].members.size(); }

  // Gathers run one layer ahead of what is computed; no more than two layers are held.
  int pass(int r, int step, Builder &b, const Effects &fx, bool backward) {
    std::vector<int> done, there;
    int reduced = -1;
    double w = work(fx, r, step, 0) * (backward ? 2 : 1);
    for (int i = 0; i < layers; i++) {
      for (int g = (int)there.size(); g < layers && g <= i + (prefetch ? 1 : 0); g++)
        there.push_back(gather(r, g, done, b));
      b.wait(S_COMPUTE, there[i]);
      compute(r, w, sizes(fx, r, step, 0) * (backward ? 2 : 1), b);
      done.push_back(b.record(S_COMPUTE));
      if (backward)
        reduced = reduce(r, done.back(), b);
    }
    return reduced;
  }

  int gather(int r, int layer, const std::vector<int> &done, Builder &b) {
    if (layer >= 2)
      b.wait(1, done[layer - 2]);
    b.comm(1, {{shard[r], ALLGATHER, share(r), 0}});
    return b.record(1);
  }

  int reduce(int r, int computed, Builder &b) {
    b.wait(1, computed);  // one communicator, one stream
    b.comm(1, {{shard[r], REDUCESCATTER, share(r), 0}});
    int event = b.record(1);
    if (copies.empty())
      return event;
    b.wait(3, event);
    b.comm(3, {{copies[r], ALLREDUCE, share(r), 0}});
    return b.record(3);
  }

  // With context parallelism, keys and values go round while the last ones are used.
  void compute(int r, double w, double size, Builder &b) {
    if (cp == 1) {
      b.kernel(layer_ns * w, (int)(launches * (w > 1.5 ? 2 : 1)));
      return;
    }
    const std::vector<int> &m = comms[ring[r]].members;
    int me = r - m[0];
    for (int i = 0; i < cp; i++) {
      int event = -1;
      if (i < cp - 1) {
        double bytes = std::floor(kv_bytes * size / 1024) * 1024;
        event =
            b.async(4, {{ring[r], SEND, bytes, (me + 1) % cp}, {ring[r], RECV, bytes, (me + cp - 1) % cp}});
      }
      b.kernel(layer_ns * w * 0.5 / cp, launches / 4);
      if (event >= 0)
        b.wait(S_COMPUTE, event);
    }
    b.kernel(layer_ns * w * 0.5, launches / 2);
  }
};

static void draw_sharded(Rng &rng, Sharded &s) {
  s.layers = rng.range(6, 16);
  s.layer_ns = rng.log_uniform(4e6, 16e6);
  s.launches = rng.range(40, 120);
  s.prefetch = rng.chance(0.8);
  s.steps = rng.range(30, 200);
  // The gather of a layer takes this share of its forward time.
  double share = rng.uniform(0.3, 1.1);
  s.layer_bytes = share * s.layer_ns * std::min(s.c.nic * s.c.nics, s.c.nvlink);
}

std::unique_ptr<Shape> make_fsdp(Rng &rng) {
  auto s = std::make_unique<Sharded>();
  draw_cluster(rng, s->c, 8, 64);
  draw_sharded(rng, *s);
  s->set_up(false);
  return s;
}

std::unique_ptr<Shape> make_hsdp(Rng &rng) {
  auto s = std::make_unique<Sharded>();
  draw_cluster(rng, s->c, 16, 64);
  draw_sharded(rng, *s);
  s->layer_bytes = std::min(s->layer_bytes, 0.6 * s->layer_ns * s->c.nic * s->c.nics);
  s->set_up(true);
  return s;
}

std::unique_ptr<Shape> make_cp(Rng &rng) {
  auto s = std::make_unique<Sharded>();
  draw_cluster(rng, s->c, 16, 32);
  draw_sharded(rng, *s);
  s->layers = rng.range(4, 8);
  s->cp = rng.chance(0.3) && s->c.gpus == 4 ? 8 : 4;
  if (s->c.n_ranks() % s->cp)
    s->cp = 4;
  s->layer_ns *= 2;
  double rate = s->cp > s->c.gpus ? s->c.nic * s->c.nics / s->c.gpus : s->c.nvlink / 2;
  s->kv_bytes = rng.uniform(0.3, 0.9) * s->layer_ns * 0.5 / s->cp * rate;
  s->set_up(false);
  return s;
}
