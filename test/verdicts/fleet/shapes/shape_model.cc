// Shapes that cut the model: Megatron's tensor and pipeline parallelism (plain and interleaved), experts with
// all-to-all, a recommender with its embedding tables spread out, and a served model.
#include "shapes.h"

#include <algorithm>
#include <numeric>

namespace {

class Megatron : public Trainer {
 public:
  Grid grid{{}};
  CommTable tp, pp, dp, model, embedding;
  int layers = 2, micros = 8, chunks = 1;  // layers of a chunk; chunks: virtual stages of a rank
  double half_layer_s = 0.0015;            // attention, or the MLP, forward
  bool sequence_parallel = false, overlap_grads = true, sync_messages = false;
  int64_t activation = 32 << 20;  // of a micro batch
  int64_t grads = 300 << 20;      // bytes of a rank, in fp32
  int buckets = 2;
  std::vector<double> stage_work;  // of the model's cut: 1 is even
  double image_tail = 0;           // the first stage encodes images: their number varies

  void step(Tape &t, const Job &job, const Effects &, int rank, int step) const override {
    begin(t, job, rank, step);
    Turn turn{t, job, rank, step};
    if (stages() == 1) {
      for (int m = 0; m < micros; m++) {
        forward(turn, m, 0);
        backward(turn, m, 0, m + 1 == micros);
      }
    } else if (chunks == 1) {
      one_forward_one_backward(turn);
    } else {
      interleaved(turn);
    }
    finish(turn);
  }

  void evaluate(Tape &t, const Job &job, int rank, int round) const override {
    Turn turn{t, job, rank, 1000000 + round};
    if (stage(rank) > 0)
      receive(turn, stage(rank) - 1);
    for (int c = 0; c < chunks; c++)
      forward(turn, round, c);
    if (stage(rank) + 1 < stages())
      send(turn, stage(rank) + 1);
    if (round % 4 == 3)
      t.sync_compute();
  }

 private:
  struct Turn {
    Tape &t;
    const Job &job;
    int rank, step;
    int grads_done = -1;
  };

  int stages() const { return grid.extent("pp"); }
  int stage(int rank) const { return grid.at(rank, "pp"); }
  int64_t message_bytes() const { return activation / (sequence_parallel ? grid.extent("tp") : 1); }

  void tensor_parallel(Turn &turn) const {
    int c = tp[turn.rank];
    if (c < 0)
      return;
    int n = grid.extent("tp");
    if (sequence_parallel) {
      turn.t.join(turn.t.coll(c, Func::ReduceScatter, activation / n, kBf16));
      turn.t.join(turn.t.coll(c, Func::AllGather, activation / n, kInt8));
    } else {
      turn.t.join(turn.t.coll(c, Func::AllReduce, activation, kBf16));
    }
  }

  double work(const Turn &turn, int micro) const {
    double w = stage_work[stage(turn.rank)];
    if (image_tail > 0 && stage(turn.rank) == 0) {
      uint64_t batch = uint64_t(grid.at(turn.rank, "dp"));
      w *= std::exp(image_tail * gauss(key_of(turn.job.seed, 91, batch, uint64_t(turn.step) * 64 + micro)));
    }
    return w * length(turn.job, turn.rank, turn.step, micro);
  }

  void forward(Turn &turn, int micro, int chunk) const {
    double w = work(turn, micro);
    turn.t.cpu(0.00015);
    for (int l = 0; l < layers; l++) {
      turn.t.kernel(half_layer_s * w, 28);
      tensor_parallel(turn);
      turn.t.kernel(half_layer_s * w, 22);
      if (!sequence_parallel || l + 1 < layers)
        tensor_parallel(turn);
    }
    if (stage(turn.rank) + 1 == stages() && chunk + 1 == chunks) {
      turn.t.kernel(half_layer_s * 0.8, 12);  // logits and loss
      if (tp[turn.rank] >= 0)
        turn.t.join(turn.t.coll(tp[turn.rank], Func::AllReduce, 16384, kF32));
    }
  }

  void backward(Turn &turn, int micro, int chunk, bool last) const {
    double w = work(turn, micro);
    turn.t.cpu(0.0001);
    for (int l = layers - 1; l >= 0; l--) {
      turn.t.kernel(half_layer_s * w * 2, 40);
      tensor_parallel(turn);
      turn.t.kernel(half_layer_s * w * 2, 34);
      if (!sequence_parallel || l > 0)
        tensor_parallel(turn);
    }
    if (last && overlap_grads && dp[turn.rank] >= 0)
      reduce_grads(turn, std::max(1, buckets / chunks));
    (void)chunk;
  }

  void reduce_grads(Turn &turn, int n) const {
    int64_t each = grads / buckets / grid.extent("dp") / 4096 * 4096;
    for (int b = 0; b < n; b++)
      turn.grads_done = turn.t.coll(dp[turn.rank], Func::ReduceScatter, each, kF32);
  }

  // The end of a step with a distributed optimizer.
  void finish(Turn &turn) const {
    Tape &t = turn.t;
    int r = turn.rank;
    if (!overlap_grads && dp[r] >= 0)
      reduce_grads(turn, buckets);
    if (turn.grads_done >= 0)
      t.join(turn.grads_done);
    if (embedding[r] >= 0)
      t.join(t.coll(embedding[r], Func::AllReduce, activation, kF32));
    t.kernel(0.0006, 10);
    if (model[r] >= 0)
      t.join(t.coll(model[r], Func::AllReduce, 4, kF32));  // norm of the gradients
    t.sync_compute();
    t.kernel(0.004, 30);
    if (dp[r] >= 0) {
      int last = -1;
      for (int b = 0; b < buckets; b++)
        last = t.coll(dp[r], Func::AllGather, grads / 2 / buckets / grid.extent("dp") / 4096 * 4096, kInt8);
      t.join(last);
    }
    bool has_loss = stage(r) + 1 == stages();
    log_loss(t, turn.step, has_loss ? dp[r] : -1);
  }

  // --- messages between stages ---

  void exchange(Turn &turn, const std::vector<Message> &messages) const {
    if (messages.empty())
      return;
    int g = turn.t.group(pp[turn.rank], messages, kBf16);
    turn.t.join(g);
    if (sync_messages)
      turn.t.sync_compute();
  }
  Message to(int stage) const { return {stage, true, message_bytes()}; }
  Message from(int stage) const { return {stage, false, message_bytes()}; }
  void send(Turn &turn, int stage) const { exchange(turn, {to(stage)}); }
  void receive(Turn &turn, int stage) const { exchange(turn, {from(stage)}); }

  void one_forward_one_backward(Turn &turn) const {
    int s = stage(turn.rank), p = stages();
    bool first = s == 0, last = s + 1 == p;
    int warm = std::min(p - 1 - s, micros), steady = micros - warm;
    for (int m = 0; m < warm; m++) {
      if (!first)
        receive(turn, s - 1);
      forward(turn, m, 0);
      if (!last)
        send(turn, s + 1);
    }
    if (steady > 0 && !first)
      receive(turn, s - 1);
    for (int m = 0; m < steady; m++) {
      forward(turn, warm + m, 0);
      if (!last)
        exchange(turn, {to(s + 1), from(s + 1)});
      bool end = m + 1 == steady;
      backward(turn, m, 0, end && warm == 0);
      if (first)
        continue;
      if (end)
        send(turn, s - 1);
      else
        exchange(turn, {to(s - 1), from(s - 1)});
    }
    for (int m = 0; m < warm; m++) {
      if (!last)
        receive(turn, s + 1);
      backward(turn, steady + m, 0, m + 1 == warm);
      if (!first)
        send(turn, s - 1);
    }
  }

  int chunk_of(int k, bool forward) const {
    int c = k % (stages() * chunks) / stages();
    return forward ? c : chunks - 1 - c;
  }

  // Each rank has several chunks of the model, so the stages form a ring.
  void interleaved(Turn &turn) const {
    int s = stage(turn.rank), p = stages(), total = micros * chunks;
    bool first = s == 0, last = s + 1 == p;
    int next = (s + 1) % p, before = (s + p - 1) % p;
    int warm = std::min((p - s - 1) * 2 + (chunks - 1) * p, total), steady = total - warm;
    auto sends_forward = [&](int k) { return !(last && chunk_of(k, true) == chunks - 1); };
    auto sends_back = [&](int k) { return !(first && chunk_of(k, false) == 0); };
    if (!first)
      receive(turn, before);
    for (int k = 0; k < warm; k++) {
      forward(turn, k, chunk_of(k, true));
      std::vector<Message> m;
      bool recv_prev = k + 1 < total && !(first && chunk_of(k + 1, true) == 0);
      if (sends_forward(k))
        m.push_back(to(next));
      if (recv_prev)
        m.push_back(from(before));
      if (k + 1 == warm && steady > 0 && !last)
        m.push_back(from(next));
      exchange(turn, m);
    }
    for (int k = 0; k < steady; k++) {
      int fk = k + warm;
      forward(turn, fk, chunk_of(fk, true));
      backward(turn, k, chunk_of(k, false), false);
      bool recv_prev = k + 1 < steady, recv_next = true;
      if (first && chunk_of(fk - (p - 1), true) == chunks - 1)
        recv_prev = false;
      if (last && chunk_of(k - (p - 1) + total, false) == 0)
        recv_next = false;
      std::vector<Message> m;
      if (sends_forward(fk))
        m.push_back(to(next));
      if (recv_prev)
        m.push_back(from(before));
      if (sends_back(k))
        m.push_back(to(before));
      if (recv_next)
        m.push_back(from(next));
      exchange(turn, m);
    }
    if (steady == 0 && !last)
      receive(turn, next);
    for (int k = steady; k < total; k++) {
      backward(turn, k, chunk_of(k, false), k + chunks >= total);
      std::vector<Message> m;
      if (sends_back(k))
        m.push_back(to(before));
      bool recv_next = k + 1 < total && !(last && chunk_of(k + 1, false) == chunks - 1);
      if (recv_next)
        m.push_back(from(next));
      exchange(turn, m);
    }
  }
};

class Moe : public Trainer {
 public:
  CommTable ep, same_experts;
  int world = -1, size = 8, layers = 3, micros = 1;
  std::vector<int> place;
  double attention_s = 0.004, experts_s = 0.006;
  double tokens = 8192, hidden = 4096;
  double imbalance = 0.15;
  int64_t dense = 200 << 20, expert_grads = 200 << 20;
  int n_same = 1, n_world = 1;

  void step(Tape &t, const Job &job, const Effects &e, int rank, int step) const override {
    begin(t, job, rank, step);
    int reduced = -1;
    for (int m = 0; m < micros; m++) {
      for (int l = 0; l < layers; l++)
        layer(t, job, e, rank, step, m * layers + l, 1);
      t.kernel(attention_s * 0.5, 20);
      for (int l = layers - 1; l >= 0; l--) {
        layer(t, job, e, rank, step, m * layers + l, 2);
        if (m + 1 < micros)
          continue;
        reduced = t.coll(world, Func::ReduceScatter, dense / layers / n_world / 4096 * 4096, kF32);
        if (same_experts[rank] >= 0)
          t.coll(same_experts[rank], Func::ReduceScatter, expert_grads / layers / n_same / 4096 * 4096, kF32);
      }
    }
    t.join(reduced);
    if (same_experts[rank] >= 0)
      t.join(t.coll(same_experts[rank], Func::AllGather, expert_grads / 2 / n_same / 4096 * 4096, kInt8));
    t.join(t.coll(world, Func::AllReduce, 4, kF32));
    t.sync_compute();
    t.kernel(0.006, 40);
    t.join(t.coll(world, Func::AllGather, dense / 2 / n_world / 4096 * 4096, kInt8));
    log_loss(t, step, world);
  }
  void evaluate(Tape &t, const Job &job, int rank, int round) const override {
    t.cpu(habits.loader_s, CpuWork::Storage);
    Effects even(job.world.n_ranks(), 0);
    for (int l = 0; l < layers; l++)
      layer(t, job, even, rank, 1000000 + round, l, 1);
  }

 private:
  // Shares of the tokens of each rank that go to the experts of each other one, for one layer of one step.
  std::vector<std::vector<double>> routing(const Job &job, const Effects &e, int comm, int step,
                                           int layer) const {
    const std::vector<int> &members = job.world.comms[comm].members;
    std::vector<std::vector<double>> share(size, std::vector<double>(size));
    // How popular an expert is changes slowly, and a little from rank to rank.
    std::vector<double> popular(size);
    for (int k = 0; k < size; k++)
      popular[k] = imbalance * gauss(key_of(job.seed, 101, uint64_t(k) * 64 + layer, step / 20));
    for (int from = 0; from < size; from++) {
      uint64_t batch = uint64_t(step) * 4096 + members[from];
      double sum = 0;
      for (int k = 0; k < size; k++) {
        double own = imbalance * 0.4 * gauss(key_of(job.seed, 102, uint64_t(k) * 64 + layer, batch));
        sum += share[from][k] = std::exp(popular[k] + own) * e.expert[members[k]];
      }
      for (double &p : share[from])
        p /= sum;
    }
    return share;
  }

  void layer(Tape &t, const Job &job, const Effects &e, int rank, int step, int l, int times) const {
    int c = ep[rank], me = place[rank];
    auto share = routing(job, e, c, step, l);
    std::vector<int64_t> out(size), in(size);
    double load = 0;
    for (int k = 0; k < size; k++) {
      out[k] = bytes(share[me][k]);
      in[k] = bytes(share[k][me]);
      load += share[k][me];
    }
    t.kernel(attention_s * times, 45 * times);
    t.join(t.group(c, all_to_all(me, out, in), kBf16));
    t.kernel(experts_s * times * load, 30 * times);
    t.join(t.group(c, all_to_all(me, in, out), kBf16));
  }
  int64_t bytes(double share) const {
    return std::max<int64_t>(1, int64_t(tokens * share)) * int64_t(hidden) * 2;
  }
  std::vector<Message> all_to_all(int me, const std::vector<int64_t> &out,
                                  const std::vector<int64_t> &in) const {
    std::vector<Message> m;
    for (int k = 1; k < size; k++) {
      int to = (me + k) % size, from = (me + size - k) % size;
      m.push_back({to, true, out[to]});
      m.push_back({from, false, in[from]});
    }
    return m;
  }
};

class Recommender : public Trainer {
 public:
  int comm = -1, n = 8;
  double tables_s = 0.006, mlp_s = 0.02;
  int64_t ids = 300000, pooled = 3 << 20;  // bytes from each rank to each other one
  std::vector<int64_t> buckets;

  void step(Tape &t, const Job &job, const Effects &, int rank, int step) const override {
    begin(t, job, rank, step);
    t.join(t.group(comm, even(rank, ids), "ncclInt64"));
    t.sync_compute();  // the sizes of the splits are needed
    double w = length(job, rank, step, 0);
    t.kernel(tables_s * w, 140);
    int moved = t.group(comm, even(rank, pooled), kF32);
    t.kernel(mlp_s * 0.3, 80);  // the dense part of the input
    t.join(moved);
    t.kernel(mlp_s * 0.7, 350);
    int reduced = -1;
    for (int64_t b : buckets) {
      t.kernel(mlp_s * 1.6 / double(buckets.size()), 300);
      reduced = t.coll(comm, Func::AllReduce, b, kF32);
    }
    t.join(t.group(comm, even(rank, pooled), kF32));
    t.kernel(tables_s * 1.5 * w, 50);
    t.join(reduced);
    t.kernel(0.003, 40);
    log_loss(t, step, -1);
  }
  void evaluate(Tape &t, const Job &job, int rank, int round) const override {
    t.cpu(habits.loader_s, CpuWork::Storage);
    t.join(t.group(comm, even(rank, pooled), kF32));
    t.kernel(mlp_s, 200);
    (void)job, (void)round;
  }

 private:
  std::vector<Message> even(int me, int64_t bytes) const {
    std::vector<Message> m;
    for (int k = 1; k < n; k++) {
      m.push_back({(me + k) % n, true, bytes});
      m.push_back({(me + n - k) % n, false, bytes});
    }
    return m;
  }
};

class Serving : public Shape {
 public:
  Grid grid{{}};
  CommTable tp, pp;
  int layers = 6;
  double half_layer_s = 0.0009;
  double prefill_share = 0.2;

  // One iteration of the engine's loop: a batch of tokens to decode, now and then with a part of a prompt.
  void step(Tape &t, const Job &job, const Effects &, int rank, int step) const override {
    bool prompt = unit(key_of(job.seed, 111, step)) < prefill_share;
    double batch = 48 + 80 * unit(key_of(job.seed, 112, step / 30));
    double rows = prompt ? 1024 + 1024 * unit(key_of(job.seed, 113, step)) : batch;
    int64_t bytes = int64_t(rows) * 8192 * 2;
    double work = prompt ? 1.0 + rows / 220 : 0.8 + batch / 400;
    int c = tp[rank], stage = grid.at(rank, "pp"), stages = grid.extent("pp");
    t.cpu(0.0016);  // the scheduler
    t.kernel(0.00003, 3, Work::Copy);
    if (stage > 0)
      t.join(t.group(pp[rank], {{stage - 1, false, bytes}}, kBf16));
    for (int l = 0; l < 2 * layers; l++) {
      t.kernel(half_layer_s * work, 9);
      t.join(t.coll(c, Func::AllReduce, bytes, kBf16));
    }
    if (stage + 1 < stages)
      t.join(t.group(pp[rank], {{stage + 1, true, bytes}}, kBf16));
    if (stage + 1 == stages) {
      t.kernel(half_layer_s * 0.7, 8);
      t.join(t.coll(c, Func::AllGather, int64_t(batch) * 128256 / grid.extent("tp") * 2, kInt8));
    }
    t.sync_compute();  // the token is sampled, and the next iteration depends on it
    if (stages > 1) {  // the first stage gets the tokens
      int peer = stage == 0 ? stages - 1 : 0;
      if (stage == 0)
        t.join(t.group(pp[rank], {{peer, false, int64_t(batch) * 8}}, "ncclInt64"));
      if (stage + 1 == stages)
        t.join(t.group(pp[rank], {{peer, true, int64_t(batch) * 8}}, "ncclInt64"));
      t.sync_compute();
    }
  }
  void evaluate(Tape &, const Job &, int, int) const override {}
};

}  // namespace

std::unique_ptr<Shape> make_megatron(Job &job, Dice &dice, const std::string &variant) {
  auto s = std::make_unique<Megatron>();
  const World &w = job.world;
  int n = w.n_ranks(), tp = 1, pp = 1;
  if (variant == "megatron_tp_pp_dp") {
    tp = dice.pick(std::vector<int>{2, 4, w.kind.gpus});
    pp = dice.pick(std::vector<int>{2, 4});
    if (n / tp / pp < 1)
      pp = 2;
  } else if (variant == "megatron_interleaved") {
    tp = dice.pick(std::vector<int>{1, 2, 4});
    pp = dice.pick(std::vector<int>{2, 4});
    if (n / tp / pp < 1)
      tp = 1;
    s->chunks = 2;
  } else if (variant == "pipeline_pcie") {
    pp = std::min(w.n_hosts() * 2, 8);
  } else if (variant == "megatron_tp_dp") {
    tp = dice.pick(std::vector<int>{2, 4, 8});
  } else {
    tp = dice.pick(std::vector<int>{2, 4});
    pp = 4;
  }
  int dp = n / tp / pp;
  std::vector<std::pair<std::string, int>> axes = {{"tp", tp}, {"dp", dp}, {"pp", pp}};
  if (dice.chance(0.3))
    std::swap(axes[1], axes[2]);  // pipelines are neighbours, replicas far apart
  s->grid = Grid(axes);
  int style = dice.whole(0, 2);
  auto name = [&](const char *torch, const char *megatron) {
    return std::string(style == 0 ? "" : style == 1 ? torch : megatron);
  };
  const Grid &g = s->grid;
  s->tp = make_comms(job, g.groups({"tp"}), name("mesh_tp", "TENSOR_MODEL_PARALLEL_GROUP"), job.seed + 1);
  s->dp = make_comms(job, g.groups({"dp"}), name("mesh_dp", "DATA_PARALLEL_GROUP"), job.seed + 2);
  s->pp = make_comms(job, g.groups({"pp"}), name("mesh_pp", "PIPELINE_MODEL_PARALLEL_GROUP"), job.seed + 3);
  if (tp * pp > 1)
    s->model = make_comms(job, g.groups({"tp", "pp"}), name("mesh_mp", "MODEL_PARALLEL_GROUP"), job.seed + 4);
  else
    s->model.assign(size_t(n), -1);
  std::vector<std::vector<int>> ends;
  if (pp > 1 && dice.chance(0.6))
    for (int r = 0; r < n; r++)
      if (g.at(r, "pp") == 0)
        ends.push_back({r, g.moved(r, "pp", pp - 1)});
  s->embedding = make_comms(job, ends, name("mesh_embd", "EMBEDDING_GROUP"), job.seed + 5);
  if (pp > 1) {
    job.stages.resize(size_t(pp));
    for (int r = 0; r < n; r++)
      job.stages[g.at(r, "pp")].push_back(r);
  }
  if (dp > 1) {
    job.replicas.resize(size_t(dp));
    for (int r = 0; r < n; r++)
      job.replicas[g.at(r, "dp")].push_back(r);
  }
  for (int r = 0; r < n; r++)
    s->batch_of.push_back(g.at(r, "dp"));
  bool pcie = !w.kind.nvlink;
  s->micros = pp > 1 ? pp * dice.whole(2, n > 32 ? 2 : 3) : dice.whole(2, 4);
  s->layers = n > 32 ? dice.whole(1, 2) : dice.whole(2, 3);
  s->half_layer_s = dice.geometric(0.003, 0.011) * (pcie ? 3 : 1);
  s->sequence_parallel = tp > 1 && dice.chance(0.35);
  if (s->sequence_parallel && n > 16)
    s->layers = 1;
  s->overlap_grads = dice.chance(0.6);
  s->sync_messages = dice.chance(0.4);
  s->activation = int64_t(4096) * dice.pick(std::vector<int>{2048, 4096}) * (pcie ? 1 : 2);
  s->grads = int64_t(dice.between(250, 700) * 1e6) / (pcie ? 5 : 1);
  s->buckets = s->chunks * dice.whole(1, 2);
  s->stage_work.assign(size_t(pp), 1.0);
  for (double &f : s->stage_work)
    f = dice.between(0.98, 1.02);
  s->habits.log_every = dice.pick(std::vector<int>{1, 1, 10});
  if (variant == "multimodal_pp") {
    s->stage_work[0] = dice.between(0.6, 1.05);
    s->image_tail = dice.between(0.05, 0.25);
    s->habits.copy_s = 0.005;
  }
  return s;
}

std::unique_ptr<Shape> make_moe(Job &job, Dice &dice) {
  auto s = std::make_unique<Moe>();
  int n = job.world.n_ranks();
  s->size = n >= 16 && n <= 16 && dice.chance(0.25) ? 16 : dice.pick(std::vector<int>{4, 8});
  bool near = dice.chance(0.7);
  Grid g(near ? std::vector<std::pair<std::string, int>>{{"ep", s->size}, {"dp", n / s->size}}
              : std::vector<std::pair<std::string, int>>{{"dp", n / s->size}, {"ep", s->size}});
  bool named = dice.chance(0.6);
  std::vector<int> all(size_t(n), 0);
  std::iota(all.begin(), all.end(), 0);
  s->world = make_comms(job, {all}, named ? "DATA_PARALLEL_GROUP" : "", job.seed)[0];
  s->ep = make_comms(job, g.groups({"ep"}), named ? "EXPERT_MODEL_PARALLEL_GROUP" : "", job.seed + 1);
  s->same_experts =
      make_comms(job, g.groups({"dp"}), named ? "EXPERT_DATA_PARALLEL_GROUP" : "", job.seed + 2);
  for (int r = 0; r < n; r++)
    s->place.push_back(g.at(r, "ep"));
  job.experts = g.groups({"dp"});
  s->n_same = n / s->size;
  s->n_world = n;
  s->layers = s->size == 4 ? dice.whole(3, 4) : s->size == 8 ? dice.whole(2, 3) : 2;
  s->attention_s = dice.geometric(0.02, 0.07);
  s->experts_s = s->attention_s * dice.between(0.8, 1.6);
  s->tokens = dice.pick(std::vector<double>{4096, 8192});
  s->imbalance = dice.between(0.03, 0.15);
  s->habits.log_every = dice.pick(std::vector<int>{1, 10});
  return s;
}

std::unique_ptr<Shape> make_recommender(Job &job, Dice &dice) {
  auto s = std::make_unique<Recommender>();
  // All-to-all among many ranks makes more records than it has news.
  if (job.world.n_ranks() > 16) {
    std::vector<Place> kept;
    for (const Place &p : job.world.ranks)
      if (p.local < 16 / job.world.n_hosts())
        kept.push_back(p);
    job.world.ranks = kept;
  }
  s->n = job.world.n_ranks();
  std::vector<int> all(size_t(s->n), 0);
  std::iota(all.begin(), all.end(), 0);
  s->comm = make_comms(job, {all}, dice.chance(0.5) ? "default_pg" : "", job.seed)[0];
  s->tables_s = dice.geometric(0.004, 0.02);
  s->mlp_s = dice.geometric(0.015, 0.06);
  s->ids = 8 * dice.whole(8000, 60000);
  s->pooled = int64_t(dice.geometric(0.6, 4) * 1e6) / 4096 * 4096;
  s->buckets = {20000000, int64_t(dice.between(4, 20) * 1e6) / 4 * 4};
  s->habits.loader_s = dice.geometric(0.001, 0.006);
  s->habits.length_tail = dice.chance(0.5) ? dice.between(0.02, 0.08) : 0;
  s->habits.log_every = dice.pick(std::vector<int>{1, 10, 50});
  return s;
}

std::unique_ptr<Shape> make_serving(Job &job, Dice &dice) {
  auto s = std::make_unique<Serving>();
  int n = job.world.n_ranks(), tp = job.world.kind.gpus;
  s->grid = Grid({{"tp", tp}, {"pp", n / tp}});
  bool named = dice.chance(0.5);
  s->tp = make_comms(job, s->grid.groups({"tp"}), named ? "tp" : "", job.seed + 1);
  s->pp = make_comms(job, s->grid.groups({"pp"}), named ? "pp" : "", job.seed + 2);
  if (n / tp > 1) {
    job.stages.resize(size_t(n / tp));
    for (int r = 0; r < n; r++)
      job.stages[s->grid.at(r, "pp")].push_back(r);
  }
  s->layers = dice.whole(4, 8);
  s->half_layer_s = dice.geometric(0.00025, 0.001);
  s->prefill_share = dice.between(0.1, 0.3);
  s->has_loader = false;
  return s;
}
