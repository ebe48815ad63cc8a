// Data parallel shapes: DDP with buckets, FSDP and HSDP, ZeRO-2 with the optimizer on the CPU,
// long sequences over several ranks (context parallel), and reinforcement learning (rollout, then training).
#include "shapes.h"

#include <algorithm>
#include <numeric>

namespace {

std::vector<int> all_ranks(const Job &job) {
  std::vector<int> r(size_t(job.world.n_ranks()));
  std::iota(r.begin(), r.end(), 0);
  return r;
}

class Ddp : public Trainer {
 public:
  int comm = -1;
  std::vector<int64_t> buckets;  // in the order of the backward pass
  double forward_s = 0.1, backward_s = 0.2, optimizer_s = 0.01;
  int launches = 400, accumulate = 1;
  int64_t buffers = 0;  // running means and the like: rank 0's are sent to all
  bool clip = false;
  const char *type = kF32;

  void step(Tape &t, const Job &job, const Effects &, int rank, int step) const override {
    for (int micro = 0; micro < accumulate; micro++) {
      begin(t, job, rank, step);
      bool last = micro + 1 == accumulate;
      if (buffers && last)
        t.join(t.coll(comm, Func::Broadcast, buffers, kInt8));
      double work = length(job, rank, step, micro);
      for (int part = 0; part < 4; part++)
        t.kernel(forward_s / 4 * work, launches / 4);
      int reduce = -1;
      for (size_t b = 0; b < buckets.size(); b++) {
        int n = int(buckets.size());
        t.kernel(backward_s / n * work, std::max(1, 2 * launches / n));
        if (last)
          reduce = t.coll(comm, Func::AllReduce, buckets[b], type);
      }
      if (last)
        t.join(reduce);
    }
    if (clip) {
      t.kernel(optimizer_s * 0.3, 30);
      t.sync_compute();  // clip_grad_norm_ looks at the norm
    }
    t.kernel(optimizer_s, 60);
    log_loss(t, step, -1);
  }
  void evaluate(Tape &t, const Job &, int, int round) const override {
    t.cpu(habits.loader_s, CpuWork::Storage);
    t.kernel(forward_s * 0.9, launches);
    if (round % 8 == 7) {
      t.join(t.coll(comm, Func::AllReduce, 8, kF32));
      t.sync_compute();
    }
  }
};

class Fsdp : public Trainer {
 public:
  CommTable shard, replicate, cp, tp;  // replicate: of HSDP; tp: of the engines that generate
  int world = -1;
  int units = 8, micros = 1;
  int64_t unit_bytes = 400 << 20;
  double unit_forward_s = 0.012, optimizer_s = 0.012;
  int launches = 70;
  bool clip = true, fp32_reduce = true;
  int64_t kv_bytes = 0;    // context parallel: keys and values of one rank's part
  int rollout_chunks = 0;  // reinforcement learning: pieces of generation per step
  double chunk_s = 0.05;
  double rollout_tail = 0.25;

  void step(Tape &t, const Job &job, const Effects &, int rank, int step) const override {
    if (rollout_chunks)
      generate(t, job, rank, step);
    for (int micro = 0; micro < micros; micro++) {
      begin(t, job, rank, step);
      train(t, job, rank, length(job, rank, step, micro));
    }
    if (clip) {
      t.kernel(0.0015, 24);
      t.join(t.coll(shard[rank], Func::AllReduce, 4, kF32));
    }
    if (clip && (step + 1) % habits.log_every == 0)
      t.sync_compute();
    t.kernel(optimizer_s, 50);
    log_loss(t, step, world);
    if (rollout_chunks)
      send_weights(t, rank);
  }

  void evaluate(Tape &t, const Job &, int rank, int round) const override {
    t.cpu(habits.loader_s, CpuWork::Storage);
    forward(t, rank, 0.9);
    if (round % 4 == 3) {
      t.join(t.coll(world, Func::AllReduce, 8, kF32));
      t.sync_compute();
    }
  }

 private:
  int64_t shard_bytes(const Job &, int rank) const { return unit_bytes / members[shard[rank]]; }

 public:
  std::vector<int> members;  // of each communicator

 private:
  int gather(Tape &t, int rank, int after) const {
    return t.coll(shard[rank], Func::AllGather, unit_bytes / members[shard[rank]], kInt8, after);
  }

  // Keys and values go round the ring of ranks while each part is worked on.
  void attention(Tape &t, int rank, double seconds, int times) const {
    int c = cp[rank], n = members[c], me = place_in_cp[rank];
    for (int part = 0; part < n; part++) {
      int moved = -1;
      if (part + 1 < n)
        moved = t.group(
            c, {{(me + 1) % n, true, kv_bytes * times}, {(me + n - 1) % n, false, kv_bytes * times}}, kBf16);
      t.kernel(seconds / n, std::max(2, launches / 2 / n));
      if (moved >= 0)
        t.join(moved);
    }
  }

  // At most two units are gathered at a time: the gather of one waits for the work on the last but one.
  void forward(Tape &t, int rank, double work) const {
    std::vector<int> done;
    for (int u = 0; u < units; u++) {
      int g = gather(t, rank, u >= 2 ? done[u - 2] : -1);
      t.join(g);
      if (kv_bytes)
        attention(t, rank, unit_forward_s * work * 0.5, 1);
      done.push_back(t.kernel(unit_forward_s * work * (kv_bytes ? 0.5 : 1), launches));
    }
  }

  void train(Tape &t, const Job &job, int rank, double work) const {
    forward(t, rank, work);
    int reduced = -1, before = -1, next = -1;
    for (int u = units - 1; u >= 0; u--) {
      int mine = next;
      next = u > 0 ? gather(t, rank, before) : -1;  // ahead of time
      if (mine >= 0)
        t.join(mine);
      if (kv_bytes)
        attention(t, rank, unit_forward_s * work, 2);
      before = t.kernel(unit_forward_s * work * (kv_bytes ? 1.0 : 2.0), launches * 2);
      reduced = t.coll(shard[rank], Func::ReduceScatter, shard_bytes(job, rank) * (fp32_reduce ? 2 : 1),
                       fp32_reduce ? kF32 : kBf16);
      if (!replicate.empty() && replicate[rank] >= 0)
        reduced = t.coll(replicate[rank], Func::AllReduce, shard_bytes(job, rank) * (fp32_reduce ? 2 : 1),
                         fp32_reduce ? kF32 : kBf16, reduced);
    }
    t.join(reduced);
  }

  // Each engine generates for itself. Answers have different lengths, so the engines end apart.
  void generate(Tape &t, const Job &job, int rank, int step) const {
    int engine = tp[rank] >= 0 ? tp[rank] : rank;
    double tail = std::exp(rollout_tail * gauss(key_of(job.seed, 81, engine, step)));
    int chunks = std::clamp(int(rollout_chunks * tail + 0.5), 2, rollout_chunks * 2);
    for (int k = 0; k < chunks; k++) {
      t.cpu(0.0015);
      t.kernel(chunk_s / 2, 120);
      if (tp[rank] >= 0)
        t.join(t.coll(tp[rank], Func::AllReduce, 2 << 20, kBf16));
      t.kernel(chunk_s / 2, 120);
      if (tp[rank] >= 0)
        t.join(t.coll(tp[rank], Func::AllReduce, 2 << 20, kBf16));
      t.sync_compute();
    }
    t.cpu(0.01);
    t.join(t.coll(world, Func::AllGather, 16384, kInt8));
    t.sync_compute();
  }

  void send_weights(Tape &t, int rank) const {
    int last = -1;
    for (int u = 0; u < units; u++)
      last = gather(t, rank, -1);
    t.join(last);
    t.sync_compute();
  }

 public:
  std::vector<int> place_in_cp;
};

class ZeroOffload : public Trainer {
 public:
  int comm = -1;
  std::vector<int64_t> buckets;
  double forward_s = 0.15, adam_s = 0.25;
  int accumulate = 2;
  int64_t shard_bytes = 100 << 20;
  int gathers = 4;

  void step(Tape &t, const Job &job, const Effects &, int rank, int step) const override {
    for (int micro = 0; micro < accumulate; micro++) {
      begin(t, job, rank, step);
      double work = length(job, rank, step, micro);
      for (int part = 0; part < 4; part++)
        t.kernel(forward_s / 4 * work, 150);
      int last = -1;
      for (int64_t b : buckets) {
        t.kernel(2 * forward_s / double(buckets.size()) * work, 120);
        last = t.coll(comm, Func::AllReduce, b, kBf16);
      }
      t.join(last);
      t.kernel(0.004, 8, Work::Copy);  // gradients go to the host
    }
    t.sync_compute();
    t.join(t.coll(comm, Func::AllReduce, 4, kF32));  // overflow?
    t.sync_compute();
    t.cpu(adam_s);  // the optimizer runs on the CPU
    t.kernel(0.008, 8, Work::Copy);
    int last = -1;
    for (int k = 0; k < gathers; k++)
      last = t.coll(comm, Func::AllGather, shard_bytes / gathers, kInt8);
    t.join(last);
    log_loss(t, step, comm);
  }
  void evaluate(Tape &t, const Job &, int, int round) const override {
    t.cpu(habits.loader_s, CpuWork::Storage);
    t.kernel(forward_s * 0.9, 500);
    if (round % 8 == 7)
      t.join(t.coll(comm, Func::AllReduce, 8, kF32));
  }
};

}  // namespace

std::unique_ptr<Shape> make_ddp(Job &job, Dice &dice, const std::string &variant) {
  auto s = std::make_unique<Ddp>();
  std::string name = dice.pick(std::vector<std::string>{"", "default_pg", "world"});
  s->comm = make_comms(job, {all_ranks(job)}, name, job.seed)[0];
  s->habits.log_every = dice.pick(std::vector<int>{1, 10, 10, 20, 50});
  s->habits.loader_s = dice.geometric(0.0005, 0.004);
  if (variant == "ddp_vision") {
    int n = dice.whole(3, 7);
    for (int b = 0; b < n; b++)
      s->buckets.push_back(int64_t(dice.between(23, 27) * 1e6) / 4 * 4);
    s->buckets.front() = 8204000;  // the head comes first, in a bucket of its own
    s->buckets.back() = int64_t(dice.between(2, 20) * 1e6) / 4 * 4;
    s->forward_s = dice.geometric(0.03, 0.12);
    s->launches = dice.whole(300, 700);
    s->buffers = dice.chance(0.6) ? 106496 + 8 * dice.whole(0, 4000) : 0;
    s->habits.copy_s = dice.between(0.002, 0.008);  // images are large
  } else if (variant == "ddp_bert_accum") {
    int n = dice.whole(8, 16);
    s->buckets.assign(size_t(n), 26214400);
    s->buckets.back() = int64_t(dice.between(40, 110) * 1e6) / 4 * 4;  // embeddings
    s->forward_s = dice.geometric(0.03, 0.09);
    s->accumulate = dice.whole(1, 4);
    s->launches = 500;
    s->clip = true;
    s->habits.length_tail = dice.chance(0.5) ? dice.between(0.03, 0.12) : 0;
    s->type = dice.chance(0.3) ? "ncclFloat16" : kF32;
  } else {
    s->buckets = {int64_t(dice.between(15, 40) * 1e6) / 4 * 4, int64_t(dice.between(10, 40) * 1e6) / 4 * 4};
    s->forward_s = dice.geometric(0.06, 0.25);
    s->launches = 1200;
    s->accumulate = dice.whole(1, 2);
    s->clip = dice.chance(0.7);
    s->habits.log_every = dice.pick(std::vector<int>{1, 1, 10});
  }
  s->backward_s = s->forward_s * dice.between(1.8, 2.3);
  s->optimizer_s = s->forward_s * dice.between(0.05, 0.12);
  return s;
}

std::unique_ptr<Shape> make_fsdp(Job &job, Dice &dice, const std::string &variant) {
  auto s = std::make_unique<Fsdp>();
  const World &w = job.world;
  int n = w.n_ranks();
  bool named = dice.chance(0.6);
  s->world = make_comms(job, {all_ranks(job)}, named ? "default_pg" : "", job.seed)[0];
  s->shard.assign(size_t(n), s->world);
  double gb = w.kind.nvlink ? dice.between(0.25, 0.6) : 0.2;
  s->units = n > 32 ? dice.whole(5, 7) : dice.whole(6, 10);
  s->unit_bytes = int64_t(gb * 1e9) / (n * 512) * (n * 512);
  s->unit_forward_s = dice.geometric(0.012, 0.04);
  s->micros = dice.whole(1, 2);
  s->fp32_reduce = dice.chance(0.6);
  s->habits.log_every = dice.pick(std::vector<int>{1, 5, 10});
  if (variant == "hsdp_llm") {
    // The shards of a host, wherever the numbers of its ranks are.
    std::vector<std::vector<int>> hosts, rails(size_t(w.kind.gpus));
    for (int h = 0; h < w.n_hosts(); h++)
      hosts.push_back(w.ranks_on(h));
    std::sort(hosts.begin(), hosts.end());
    for (auto &h : hosts)
      for (size_t k = 0; k < h.size(); k++)
        rails[k].push_back(h[k]);
    s->shard = make_comms(job, hosts, named ? "mesh_shard" : "", job.seed + 1);
    s->replicate = make_comms(job, rails, named ? "mesh_replicate" : "", job.seed + 2);
    job.replicas = hosts;
    s->unit_bytes = s->unit_bytes / 2 / 4096 * 4096;
  }
  if (variant == "context_parallel") {
    int cp = dice.pick(std::vector<int>{2, 4, 4});
    bool inside = dice.chance(0.6);
    Grid grid(inside ? std::vector<std::pair<std::string, int>>{{"cp", cp}, {"dp", n / cp}}
                     : std::vector<std::pair<std::string, int>>{{"dp", n / cp}, {"cp", cp}});
    s->cp = make_comms(job, grid.groups({"cp"}), named ? "mesh_cp" : "", job.seed + 3);
    for (int r = 0; r < n; r++)
      s->place_in_cp.push_back(grid.at(r, "cp"));
    job.replicas = grid.groups({"cp"});
    for (int r = 0; r < n; r++)
      s->batch_of.push_back(grid.at(r, "dp"));
    s->kv_bytes = int64_t(dice.between(8, 32) * 1e6) / 4096 * 4096 / (inside ? 1 : 2);
    s->units = dice.whole(4, 6);
    s->unit_forward_s *= 1.6;
    s->micros = 1;
  }
  if (variant == "sft_longtail")
    s->habits.length_tail = dice.between(0.12, 0.4);
  if (variant == "rl_rollout_train") {
    int tp = dice.pick(std::vector<int>{2, 4});
    Grid grid({{"tp", tp}, {"dp", n / tp}});
    s->tp = make_comms(job, grid.groups({"tp"}), named ? "tp" : "", job.seed + 4);
    s->rollout_chunks = dice.whole(8, 14);
    s->chunk_s = dice.geometric(0.03, 0.09);
    s->rollout_tail = dice.between(0.05, 0.3);
    s->units = dice.whole(4, 6);
  }
  for (const Comm &c : w.comms)
    s->members.push_back(int(c.members.size()));
  s->optimizer_s = dice.between(0.004, 0.02);
  return s;
}

std::unique_ptr<Shape> make_zero_offload(Job &job, Dice &dice) {
  auto s = std::make_unique<ZeroOffload>();
  s->comm = make_comms(job, {all_ranks(job)}, dice.chance(0.5) ? "default_pg" : "", job.seed)[0];
  int n = dice.whole(4, 8);
  s->buckets.assign(size_t(n), int64_t(job.world.kind.nvlink ? 200000000 : 60000000));
  s->forward_s = dice.geometric(0.12, 0.4);
  s->adam_s = dice.geometric(0.12, 0.5);
  s->accumulate = dice.whole(1, 3);
  s->shard_bytes = s->buckets[0] * n / job.world.n_ranks() / 1024 * 1024;
  s->habits.log_every = dice.pick(std::vector<int>{1, 10});
  return s;
}
