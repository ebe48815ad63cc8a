// Jobs that generate: inference servers with tensor parallelism, and RLHF, which trains as well.
#include "shape.h"

class Serving : public Shape {
 public:
  int tp = 8, layers = 4;
  double prefill_ns = 40e6, decode_ns = 12e6, hidden_bytes = 16384;
  std::vector<int> tp_comm;

  int replica(int r) const override { return r / tp; }

  void set_up() {
    training = false;
    n_replicas = c.n_ranks() / tp;
    world_ = split("world", [](int) { return 0; }, 4)[0];
    tp_comm = split("tp", [this](int r) { return r / tp; });
    step_ms = (prefill_ns + 8 * decode_ns) / 1e6;
  }

  // A prefill of what has come, and then tokens until the next requests are let in. Each
  // replica has its own requests, and sometimes none.
  void body(int r, int step, Builder &b, const Effects &fx) override {
    uint64_t h = hash4(seed, 95, replica(r), step);
    double w = work(fx, r, step, 0);
    double prompt = std::exp(0.6 * normal(h));
    if (unit(mix(h + 2)) < 0.08)
      b.sleep(step_ms * 1e6 * unit(mix(h + 3)));
    forward(r, prefill_ns * prompt * w, std::floor(512 * prompt * sizes(fx, r, step, 0)), b);
    int tokens = 3 + (int)(10 * unit(mix(h + 1)));
    double batch = 8 + std::floor(56 * unit(mix(h + 4)));
    for (int t = 0; t < tokens; t++) {
      b.cpu(3e5);  // the scheduler
      forward(r, decode_ns * (0.8 + batch / 160) * w, batch, b);
      b.sync();  // the tokens that were sampled
    }
  }

  void forward_only(int, int, Builder &, const Effects &) override {}

 private:
  void forward(int r, double ns, double tokens, Builder &b) {
    for (int l = 0; l < 2 * layers; l++) {
      b.kernel(ns / (2 * layers), 12);
      b.blocking(1, tp_comm[r], ALLREDUCE, std::max(1.0, tokens) * hidden_bytes);
    }
    b.blocking(1, tp_comm[r], ALLGATHER, std::max(1.0, tokens) * 32000 * 2 / tp / 8);
  }
};

std::unique_ptr<Shape> make_serving(Rng &rng) {
  auto s = std::make_unique<Serving>();
  draw_cluster(rng, s->c, 8, 32);
  s->tp = rng.chance(0.6) ? s->c.gpus : s->c.gpus / 2;
  s->layers = rng.range(2, 5);
  s->prefill_ns = rng.log_uniform(20e6, 80e6);
  s->decode_ns = rng.log_uniform(6e6, 20e6);
  s->loader_ns = 1e5;
  s->steps = rng.range(40, 150);
  s->set_up();
  return s;
}

class Rlhf : public Shape {
 public:
  int tp = 4, gen_layers = 2, tokens = 20, layers = 6, epochs = 2;
  double decode_ns = 8e6, layer_ns = 10e6, layer_bytes = 200e6, weight_bytes = 1e9;
  std::vector<int> tp_comm, fsdp_comm;

  int replica(int r) const override { return r / tp; }

  void set_up() {
    n_replicas = c.n_ranks() / tp;
    world_ = split("world", [](int) { return 0; }, 4)[0];
    tp_comm = split("rollout_tp", [this](int r) { return r / tp; });
    fsdp_comm = split("fsdp", [](int) { return 0; });
    sync_comm_ = split("weights", [](int) { return 0; })[0];
    step_ms = (tokens * decode_ns + 3.2 * epochs * layers * layer_ns) / 1e6;
  }

  void body(int r, int step, Builder &b, const Effects &fx) override {
    generate(r, step, b, fx);
    b.blocking(5, world_, ALLGATHER, 1 << 16);  // rewards and lengths
    b.sync();
    for (int e = 0; e < epochs; e++)
      train(r, work(fx, r, step, e), b);
    for (int i = 0; i < 4; i++)  // the new weights go to the engines
      b.blocking(4, sync_comm_, BROADCAST, weight_bytes / 4);
    b.sync();
  }

  void forward_only(int r, int step, Builder &b, const Effects &fx) override { generate(r, step, b, fx); }

 private:
  int sync_comm_ = -1;

  // A replica generates until its longest answer is done: a little different for each.
  void generate(int r, int step, Builder &b, const Effects &fx) {
    uint64_t h = hash4(seed, 96, replica(r), step);
    int n = (int)(tokens * (0.85 + 0.3 * unit(h)));
    for (int t = 0; t < n; t++) {
      for (int l = 0; l < 2 * gen_layers; l++) {
        b.kernel(decode_ns * work(fx, r, step, 100) / (2 * gen_layers), 10);
        b.blocking(1, tp_comm[r], ALLREDUCE, 32 * 8192.0);
      }
      b.sync();
    }
  }

  void train(int r, double w, Builder &b) {
    double share = layer_bytes / c.n_ranks();
    for (int pass = 0; pass < 2; pass++) {
      int last = -1;
      int there = b.async(2, fsdp_comm[r], ALLGATHER, share);
      for (int l = 0; l < layers; l++) {
        int next = l + 1 < layers ? b.async(2, fsdp_comm[r], ALLGATHER, share) : there;
        b.wait(S_COMPUTE, there);
        b.kernel(layer_ns * w * (pass + 1), 60);
        if (pass)
          last = b.async(2, fsdp_comm[r], REDUCESCATTER, share);
        there = next;
      }
      if (pass)
        b.wait(S_COMPUTE, last);
    }
    b.blocking(5, world_, ALLREDUCE, 4);
    b.sync();
    b.kernel(layer_ns * 0.5, 40);
  }
};

std::unique_ptr<Shape> make_rlhf(Rng &rng) {
  auto s = std::make_unique<Rlhf>();
  draw_cluster(rng, s->c, 8, 32);
  s->tp = rng.chance(0.5) ? s->c.gpus : s->c.gpus / 2;
  s->tokens = rng.range(12, 40);
  s->layers = rng.range(4, 8);
  s->epochs = rng.range(1, 3);
  s->decode_ns = rng.log_uniform(4e6, 14e6);
  s->layer_ns = rng.log_uniform(5e6, 15e6);
  double rate = std::min(s->c.nic * s->c.nics, s->c.nvlink);
  s->layer_bytes = rng.uniform(0.3, 0.8) * s->layer_ns * rate;
  s->weight_bytes = rng.uniform(0.05, 0.2) * s->tokens * s->decode_ns * rate;
  s->steps = rng.range(15, 60);
  s->set_up();
  return s;
}
