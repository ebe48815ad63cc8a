// Tensor, pipeline and data parallel jobs as Megatron-LM runs them, with a distributed optimizer.
#include "shape.h"

class Megatron : public Shape {
 public:
  int tp = 4, pp = 2, dp = 2, chunks = 1;
  int micro = 8, layers = 2;  // layers of a stage (of a chunk of it)
  int launches = 30;
  double layer_ns = 6e6, tp_bytes = 16e6, grad_bytes = 300e6;
  bool sequence_parallel = false;
  double last_stage_extra = 0.3;  // layers' worth of loss
  std::vector<int> tp_comm, pp_comm, dp_comm;
  std::vector<std::vector<int>> hop_fwd, hop_bwd;  // interleaved: by tp-dp column and stage

  int stage(int r) const override { return r / (tp * dp); }
  int replica(int r) const override { return r / tp % dp; }
  int column(int r) const { return r % (tp * dp); }

  void set_up() {
    n_stages = pp;
    n_replicas = dp;
    world_ = split("world", [](int) { return 0; }, 4)[0];
    tp_comm = split("tp", [this](int r) { return r / tp; });
    if (pp > 1 && chunks == 1)
      pp_comm = split("pp", [this](int r) { return column(r); });
    if (chunks > 1)
      hops();
    dp_comm = split("dp", [this](int r) { return stage(r) * tp + r % tp; });
    step_ms = 3 * layers * chunks * layer_ns * (micro + pp - 1) / 1e6;
  }

  void body(int r, int step, Builder &b, const Effects &fx) override {
    if (tp > 1)  // TP rank 0 loads the batch
      b.blocking(1, {{tp_comm[r], BROADCAST, 65536, 0}});
    if (chunks > 1)
      interleaved(r, step, b, fx);
    else
      one_f_one_b(r, step, b, fx);
    if (dp > 1)
      for (int i = 0; i < 2; i++)
        b.blocking(6, dp_comm[r], REDUCESCATTER, grad_bytes / 2 / dp);
    b.blocking(7, world_, ALLREDUCE, 8);
    b.sync();
    b.kernel(layer_ns * 0.4, 30);
    if (dp > 1)
      for (int i = 0; i < 2; i++)
        b.blocking(6, dp_comm[r], ALLGATHER, grad_bytes / 4 / dp);
  }

  void forward_only(int r, int step, Builder &b, const Effects &fx) override {
    for (int k = 0; chunks > 1 && k < pp * chunks; k++)
      virtual_step(r, step, k, false, b, fx);
    for (int m = 0; chunks == 1 && m < 4; m++) {
      messages(r, false, stage(r) > 0, stage(r) - 1, b, 1);
      compute(r, step, m, false, b, fx);
      messages(r, true, stage(r) < pp - 1, stage(r) + 1, b, 1);
    }
  }

 private:
  // Embedding and loss make the first and the last stage a little longer, as always.
  void compute(int r, int step, int m, bool backward, Builder &b, const Effects &fx) {
    double w = work(fx, r, step, m) * (backward ? 2 : 1);
    double bytes = round_to(tp_bytes * sizes(fx, r, step, m));
    for (int l = 0; l < layers; l++) {
      for (int half = 0; half < 2; half++) {
        b.kernel(layer_ns * w / 2, launches);
        if (tp == 1)
          continue;
        if (sequence_parallel) {
          b.blocking(1, tp_comm[r], half ? REDUCESCATTER : ALLGATHER, bytes / tp);
        } else {
          b.blocking(1, tp_comm[r], ALLREDUCE, bytes);
        }
      }
    }
    if (stage(r) == pp - 1)
      b.kernel(layer_ns * w * last_stage_extra, launches);
  }

  static double round_to(double bytes) { return std::floor(bytes / 4096) * 4096; }

  // A group of messages, all of one call: to or from the stage before or after.
  void messages(int r, bool send, bool there, int peer, Builder &b, double size) {
    if (!there)
      return;
    double bytes = round_to(tp_bytes * size / (sequence_parallel ? tp : 1));
    b.blocking(2, {{pp_comm[r], send ? SEND : RECV, bytes, peer}});
  }

  void exchange(int r, int peer, double size_out, double size_in, Builder &b) {
    double k = sequence_parallel ? tp : 1;
    b.blocking(2,
               {{pp_comm[r], SEND, round_to(tp_bytes * size_out / k), peer},
                {pp_comm[r], RECV, round_to(tp_bytes * size_in / k), peer}});
  }

  void one_f_one_b(int r, int step, Builder &b, const Effects &fx) {
    int s = stage(r);
    bool first = s == 0;
    bool last = s == pp - 1;
    int warm = std::min(pp - s - 1, micro);
    auto size = [&](int m) { return sizes(fx, r, step, m); };
    for (int m = 0; m < warm; m++) {
      messages(r, false, !first, s - 1, b, size(m));
      compute(r, step, m, false, b, fx);
      messages(r, true, !last, s + 1, b, size(m));
    }
    int rest = micro - warm;
    if (rest > 0)
      messages(r, false, !first, s - 1, b, size(warm));
    for (int i = 0; i < rest; i++) {
      compute(r, step, warm + i, false, b, fx);
      if (!last)
        exchange(r, s + 1, size(warm + i), size(i), b);
      compute(r, step, i, true, b, fx);
      if (i == rest - 1)
        messages(r, true, !first, s - 1, b, size(i));
      else if (!first)
        exchange(r, s - 1, size(i), size(warm + i + 1), b);
    }
    for (int i = rest; i < micro; i++) {
      messages(r, false, !last, s + 1, b, size(i));
      compute(r, step, i, true, b, fx);
      messages(r, true, !first, s - 1, b, size(i));
    }
  }

  // Interleaved: each hop from stage to stage has communicators of its own, one a direction.
  void hops() {
    for (int col = 0; col < tp * dp; col++) {
      std::vector<int> f, g;
      for (int s = 0; s < pp; s++) {
        int a = s * tp * dp + col;
        int z = (s + 1) % pp * tp * dp + col;
        std::vector<int> both = {std::min(a, z), std::max(a, z)};
        f.push_back(add_comm(both, "pp_fwd"));
        g.push_back(add_comm(both, "pp_bwd"));
      }
      hop_fwd.push_back(f);
      hop_bwd.push_back(g);
    }
  }

  // One message of a hop: `from` is the hop's lower stage in the order of the pipeline.
  void hop(int r, int from, bool backward, bool send, double size, Builder &b) {
    int id = (backward ? hop_bwd : hop_fwd)[column(r)][from];
    int me = comms[id].members[0] == r ? 0 : 1;
    double bytes = round_to(tp_bytes * size / (sequence_parallel ? tp : 1));
    int stream = 2 + (backward ? 2 : 0) + (send ? 1 : 0);
    int event = b.async(stream, {{id, send ? SEND : RECV, bytes, 1 - me}});
    if (!send)
      b.wait(S_COMPUTE, event);
  }

  void virtual_step(int r, int step, int k, bool backward, Builder &b, const Effects &fx) {
    int s = stage(r);
    int chunk = k % (pp * chunks) / pp;
    int m = k / (pp * chunks) * pp + k % pp;
    double size = sizes(fx, r, step, m);
    if (backward)
      chunk = chunks - 1 - chunk;
    bool is_first = s == 0 && chunk == 0;
    bool is_last = s == pp - 1 && chunk == chunks - 1;
    int before = (s + pp - 1) % pp;
    if (!backward) {
      if (!is_first)
        hop(r, before, false, false, size, b);
      compute(r, step, m, false, b, fx);
      if (!is_last)
        hop(r, s, false, true, size, b);
    } else {
      if (!is_last)
        hop(r, s, true, false, size, b);
      compute(r, step, m, true, b, fx);
      if (!is_first)
        hop(r, before, true, true, size, b);
    }
  }

  void interleaved(int r, int step, Builder &b, const Effects &fx) {
    int total = micro * chunks;
    int warm = std::min((pp - stage(r) - 1) * 2 + (chunks - 1) * pp, total);
    for (int k = 0; k < warm; k++)
      virtual_step(r, step, k, false, b, fx);
    for (int k = warm; k < total; k++) {
      virtual_step(r, step, k, false, b, fx);
      virtual_step(r, step, k - warm, true, b, fx);
    }
    for (int k = total - warm; k < total; k++)
      virtual_step(r, step, k, true, b, fx);
  }
};

static void draw_common(Rng &rng, Megatron &s) {
  s.layer_ns = rng.log_uniform(2e6, 8e6);
  s.launches = rng.range(10, 40);
  s.sequence_parallel = rng.chance(0.5);
  s.tp_bytes = rng.uniform(0.1, 0.3) * s.layer_ns / 2 * s.c.nvlink / 2;
  // Gradients take some part of a step on the network.
  double rate = std::min(s.c.nic * s.c.nics / (double)s.c.gpus, s.c.nvlink);
  double step_ns = 3.0 * s.layers * s.chunks * s.layer_ns * s.micro;
  s.grad_bytes = rng.uniform(0.05, 0.25) * step_ns * rate;
  s.last_stage_extra = rng.uniform(0.02, 0.2);
  s.steps = rng.range(15, 120);
}

std::unique_ptr<Shape> make_megatron(Rng &rng) {
  auto s = std::make_unique<Megatron>();
  s->c.gpus = 8;
  draw_cluster(rng, s->c, 16, 64, 8);
  const int hosts[] = {2, 4, 8};
  s->c.n_hosts = rng.pick(hosts);
  s->c.hosts_per_pod = 64;
  s->tp = rng.chance(0.5) ? 4 : 2;
  s->pp = s->c.n_hosts == 8 ? 4 : rng.chance(0.5) ? 2 : 4;
  s->dp = s->c.n_ranks() / s->tp / s->pp;
  s->micro = rng.range(1, 3) * 4;
  s->layers = rng.range(1, 3);
  draw_common(rng, *s);
  s->set_up();
  return s;
}

std::unique_ptr<Shape> make_tpdp(Rng &rng) {
  auto s = std::make_unique<Megatron>();
  draw_cluster(rng, s->c, 8, 48);
  s->tp = rng.chance(0.5) ? s->c.gpus : s->c.gpus / 2;
  s->pp = 1;
  s->dp = s->c.n_ranks() / s->tp;
  s->micro = rng.range(1, 4);
  s->layers = rng.range(4, 8);
  draw_common(rng, *s);
  s->set_up();
  return s;
}

std::unique_ptr<Shape> make_interleaved(Rng &rng) {
  auto s = std::make_unique<Megatron>();
  draw_cluster(rng, s->c, 16, 64, 8);
  const int hosts[] = {2, 4};
  s->c.n_hosts = rng.pick(hosts);
  s->c.hosts_per_pod = 64;
  s->tp = 2;
  s->pp = 4;
  s->dp = s->c.n_ranks() / 8;
  s->chunks = 2;
  s->micro = rng.range(2, 3) * 4;
  s->layers = rng.range(1, 2);
  draw_common(rng, *s);
  s->set_up();
  return s;
}
