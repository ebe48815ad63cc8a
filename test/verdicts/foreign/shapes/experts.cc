// Jobs with all-to-all: mixture of experts with expert parallelism, and DLRM.
#include "shape.h"

class Experts : public Shape {
 public:
  int ep = 8, layers = 4, launches = 40;
  bool messages = false;  // all-to-all as sends and receives, sizes by what the router says
  double layer_ns = 6e6, expert_ns = 5e6, token_bytes = 30e6, grad_bytes = 200e6;
  std::vector<int> ep_comm, edp_comm;

  int replica(int r) const override { return r; }
  int expert(int r) const override { return r % ep; }

  void set_up() {
    experts = true;
    n_replicas = c.n_ranks();
    world_ = split("world", [](int) { return 0; }, 4)[0];
    ep_comm = split("ep", [this](int r) { return r / ep; });
    if (c.n_ranks() > ep)
      edp_comm = split("edp", [this](int r) { return r % ep; });
    step_ms = 3.2 * layers * (layer_ns + expert_ns) / 1e6;
  }

  void body(int r, int step, Builder &b, const Effects &fx) override {
    for (int l = 0; l < layers; l++)
      layer(r, step, l, false, b, fx);
    b.kernel(layer_ns * 0.3, 20);
    int dense = -1;
    int last = -1;
    for (int l = layers - 1; l >= 0; l--) {
      layer(r, step, l, true, b, fx);
      dense = b.async(3, world_, ALLREDUCE, grad_bytes / layers);
      if (!edp_comm.empty())
        last = b.async(4, edp_comm[r], ALLREDUCE, grad_bytes / layers);
    }
    b.wait(S_COMPUTE, dense);
    if (last >= 0)
      b.wait(S_COMPUTE, last);
    b.blocking(3, world_, ALLREDUCE, 4);
    b.sync();
    b.kernel(layer_ns * 0.5, 40);
  }

  void forward_only(int r, int step, Builder &b, const Effects &fx) override {
    for (int l = 0; l < layers; l++)
      layer(r, step, l, false, b, fx);
  }

 private:
  void layer(int r, int step, int l, bool backward, Builder &b, const Effects &fx) {
    double w = work(fx, r, step, 0) * (backward ? 2 : 1);
    b.kernel(layer_ns * w, launches * (backward ? 2 : 1));
    exchange(r, step, l, false, b, fx);
    // The router is never quite even: a few percent, anew in each layer and step.
    double luck = std::exp(0.03 * normal(hash4(seed, 93, r * 64 + l, step)));
    b.kernel(expert_ns * expert_work(fx, r, step) * luck * (backward ? 2 : 1), launches / 2);
    exchange(r, step, l, true, b, fx);
  }

  // How much goes from one to the other: what the receiver's experts attract.
  double flow(int from, int to, int l, int step, const Effects &fx) const {
    double luck = std::exp(0.05 * normal(hash4(seed, 94 + from * 64 + to, l, step)));
    double bytes = token_bytes / ep * luck * expert_work(fx, to, step);
    return std::floor(bytes / 4096) * 4096;
  }

  void exchange(int r, int step, int l, bool back, Builder &b, const Effects &fx) {
    if (!messages) {
      b.blocking(1, ep_comm[r], ALLTOALL, token_bytes);
      return;
    }
    std::vector<Sub> list;
    const std::vector<int> &m = comms[ep_comm[r]].members;
    int me = r % ep;
    for (int i = 1; i < ep; i++) {
      int to = (me + i) % ep;
      int from = (me + ep - i) % ep;
      double out = back ? flow(m[to], r, l, step, fx) : flow(r, m[to], l, step, fx);
      double in = back ? flow(r, m[from], l, step, fx) : flow(m[from], r, l, step, fx);
      list.push_back({ep_comm[r], SEND, out, to});
      list.push_back({ep_comm[r], RECV, in, from});
    }
    b.blocking(1, list);
  }
};

std::unique_ptr<Shape> make_moe(Rng &rng) {
  auto s = std::make_unique<Experts>();
  draw_cluster(rng, s->c, 8, 64);
  s->messages = s->c.n_ranks() <= 32 && rng.chance(0.4);
  s->ep = s->messages ? s->c.gpus : rng.chance(0.4) ? s->c.n_ranks() : s->c.gpus;
  s->layers = s->messages ? 3 : rng.range(4, 8);
  s->layer_ns = rng.log_uniform(4e6, 12e6);
  s->expert_ns = s->layer_ns * rng.uniform(0.5, 1.2);
  double rate = s->ep > s->c.gpus ? s->c.nic * s->c.nics / s->c.gpus : s->c.nvlink;
  s->token_bytes = rng.uniform(0.1, 0.4) * s->layer_ns * rate;
  s->grad_bytes = s->layers * s->layer_ns * rng.uniform(0.2, 0.6) * s->c.nic * s->c.nics / 4;
  s->steps = rng.range(40, 200);
  s->set_up();
  return s;
}

class Dlrm : public Shape {
 public:
  double bottom_ns = 4e6, top_ns = 10e6, emb_ns = 3e6, exchange_bytes = 50e6, dense_bytes = 60e6;
  int launches = 60;

  int replica(int r) const override { return r; }

  void set_up() {
    n_replicas = c.n_ranks();
    world_ = split("world", [](int) { return 0; }, 4)[0];
    dense_ = split("dense", [](int) { return 0; }, 4)[0];
    step_ms = 2.5 * (bottom_ns + top_ns + emb_ns) / 1e6;
  }

  void body(int r, int step, Builder &b, const Effects &fx) override {
    double w = work(fx, r, step, 0);
    b.blocking(1, world_, ALLTOALL, exchange_bytes / 20);  // indices
    b.kernel(emb_ns * w, launches / 2);
    int pooled = b.async(1, world_, ALLTOALL, exchange_bytes);
    b.kernel(bottom_ns * w, launches);
    b.wait(S_COMPUTE, pooled);
    b.kernel(top_ns * w, launches);
    b.kernel(2 * top_ns * w, launches);
    int first = b.async(2, dense_, ALLREDUCE, dense_bytes);
    int back = b.async(1, world_, ALLTOALL, exchange_bytes);
    b.kernel(2 * bottom_ns * w, launches);
    int second = b.async(2, dense_, ALLREDUCE, dense_bytes / 3);
    b.wait(S_COMPUTE, back);
    b.kernel(emb_ns * w, launches / 2);
    b.wait(S_COMPUTE, first);
    b.wait(S_COMPUTE, second);
    b.kernel(1e6, 20);
  }

  void forward_only(int, int, Builder &b, const Effects &) override {
    b.blocking(1, world_, ALLTOALL, exchange_bytes);
    b.kernel(emb_ns + bottom_ns + top_ns, launches);
  }

 private:
  int dense_ = -1;
};

std::unique_ptr<Shape> make_dlrm(Rng &rng) {
  auto s = std::make_unique<Dlrm>();
  draw_cluster(rng, s->c, 8, 64);
  double unit_ns = rng.log_uniform(3e6, 12e6);
  s->emb_ns = unit_ns * rng.uniform(0.3, 0.8);
  s->bottom_ns = unit_ns * rng.uniform(0.5, 1);
  s->top_ns = unit_ns * rng.uniform(1, 2);
  double rate = s->c.nic * s->c.nics / s->c.gpus;
  s->exchange_bytes = rng.uniform(0.3, 0.8) * unit_ns * rate;
  s->dense_bytes = rng.uniform(0.2, 0.8) * unit_ns * s->c.nic * s->c.nics;
  s->loader_ns = rng.uniform(1e6, 4e6);
  s->sync_every = rng.chance(0.5) ? 5 : 20;
  s->steps = rng.range(150, 400);
  s->set_up();
  return s;
}
