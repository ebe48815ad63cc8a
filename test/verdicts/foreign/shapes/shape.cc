#include "shape.h"
#include <map>

const char *const shape_names[] = {"ddp",  "fsdp", "megatron", "hsdp",    "moe",  "interleaved", "cp",
                                   "dlrm", "tpdp", "rlhf",     "serving", "lora", "gradacc",     "diloco"};
const int n_shapes = sizeof shape_names / sizeof *shape_names;

std::unique_ptr<Shape> make_shape(const std::string &name, uint64_t seed) {
  typedef std::unique_ptr<Shape> (*Maker)(Rng &);
  static const std::map<std::string, Maker> makers = {
      {"ddp", make_ddp},   {"gradacc", make_gradacc},
      {"lora", make_lora}, {"diloco", make_diloco},
      {"fsdp", make_fsdp}, {"hsdp", make_hsdp},
      {"cp", make_cp},     {"megatron", make_megatron},
      {"tpdp", make_tpdp}, {"interleaved", make_interleaved},
      {"moe", make_moe},   {"dlrm", make_dlrm},
      {"rlhf", make_rlhf}, {"serving", make_serving},
  };
  Rng rng(seed);
  std::unique_ptr<Shape> s = makers.at(name)(rng);
  s->name = name;
  s->seed = seed;
  s->c.net_jitter = rng.log_uniform(0.005, 0.05);
  s->jitter = rng.log_uniform(0.003, 0.02);
  return s;
}

void draw_cluster(Rng &rng, Cluster &c, int min_ranks, int max_ranks, int gpus) {
  c.gpus = gpus ? gpus : (rng.chance(0.7) ? 8 : 4);
  do
    c.n_hosts = rng.range(2, 8);
  while (c.n_ranks() < min_ranks || c.n_ranks() > max_ranks);
  const int nics[] = {1, 2, 4, 8, 8};
  c.nics = std::min(rng.pick(nics), c.gpus);
  const double speeds[] = {10, 20, 40, 42};
  c.nic = rng.pick(speeds);
  if (c.nics == 1)
    c.nic = 42;
  const double nvlinks[] = {130, 220, 350};
  c.nvlink = rng.pick(nvlinks);
  c.hosts_per_pod = c.n_hosts >= 4 && rng.chance(0.5) ? (c.n_hosts + 1) / 2 : 64;
  c.oversubscribed = rng.uniform(1, 1.5);
  c.launch_ns = rng.uniform(3500, 7000);
}

std::vector<int> Shape::split(const char *comm_name, const std::function<int(int)> &key, int dtype_bytes) {
  std::map<int, std::vector<int>> groups;
  for (int r = 0; r < c.n_ranks(); r++)
    groups[key(r)].push_back(r);
  std::vector<int> of(c.n_ranks(), -1);
  for (auto &g : groups) {
    int id = add_comm(g.second, comm_name, dtype_bytes);
    for (int r : g.second)
      of[r] = id;
  }
  return of;
}

static double spread(const Work &w, int replica, int step, int micro) {
  return std::exp(w.factor * normal(hash4(w.salt, replica, step, micro)));
}

double Shape::work(const Effects &fx, int rank, int step, int micro) const {
  double f = 1;
  for (const Work &w : fx.works) {
    if (step < w.from_step)
      continue;
    if (w.axis == Work::STAGE && stage(rank) == w.index)
      f *= w.factor;
    if (w.axis == Work::REPLICA && replica(rank) == w.index)
      f *= w.factor;
    if (w.axis == Work::REPLICA_STEP)
      f *= spread(w, replica(rank), step, micro);
  }
  return f;
}

double Shape::sizes(const Effects &fx, int rank, int step, int micro) const {
  double f = 1;
  for (const Work &w : fx.works) {
    if (step < w.from_step || !w.sizes)
      continue;
    if (w.axis == Work::REPLICA && replica(rank) == w.index)
      f *= w.factor;
    if (w.axis == Work::REPLICA_STEP)
      f *= spread(w, replica(rank), step, micro);
  }
  return f;
}

double Shape::expert_work(const Effects &fx, int rank, int step) const {
  double f = 1;
  for (const Work &w : fx.works)
    if (w.axis == Work::EXPERT && step >= w.from_step && expert(rank) == w.index)
      f *= w.factor;
  return f;
}

// All ranks write their shard, or rank 0 writes for all and the others wait in a barrier.
void Shape::checkpoint(int rank, int step, Builder &b, const Effects &fx) {
  b.sync();
  uint64_t h = hash4(seed, 91, rank, step);
  if (!fx.ckpt_rank0)
    b.sleep(fx.ckpt_ns * (0.9 + 0.2 * unit(h)));
  else if (rank == 0)
    b.sleep(fx.ckpt_ns * (0.95 + 0.1 * unit(h)));
  b.blocking(1, world_, ALLREDUCE, 4);
  b.sync();
}

bool Shape::write(int rank, int step, Builder &b, const Effects &fx) {
  if (step == 0) {  // set up: a barrier after the model has been loaded
    b.sleep(SETUP_NS + 3e8 * unit(hash4(seed, 90, rank, 0)));
    b.blocking(1, world_, ALLREDUCE, 4);
    b.sync();
  }
  if (step >= steps)
    return false;
  if (step < 3 && training)  // JIT, autotuning, caches: the first steps are long
    b.cpu(step_ms * 1e6 * (step == 0 ? 3 : 0.3) * (0.9 + 0.2 * unit(hash4(seed, 92, rank, step))));
  b.loader(loader_ns);
  for (const Extra &e : fx.extras) {
    bool due = step >= e.from_step && step < e.to_step && step % e.every == e.phase;
    if (!e.on[rank] || !due || unit(hash4(e.salt, rank, step, 0)) > e.chance)
      continue;
    double ns = e.ns * (0.7 + 0.6 * unit(hash4(e.salt, rank, step, 1)));
    if (e.loader)
      b.loader(ns);
    else
      b.sleep(ns);
  }
  body(rank, step, b, fx);
  if (step % sync_every == 0 || step == steps - 1) {
    b.sync();
    if (training)
      b.cpu(rank == 0 ? 4e5 : 5e4);  // rank 0 writes the log
  }
  bool eval = fx.eval_every && step % fx.eval_every == fx.eval_every - 1;
  for (int i = 0; eval && i < fx.eval_passes; i++)
    forward_only(rank, step, b, fx);
  if (eval) {
    b.blocking(1, world_, ALLREDUCE, 16);
    b.sync();
  }
  if (fx.ckpt_every && step % fx.ckpt_every == fx.ckpt_every - 1)
    checkpoint(rank, step, b, fx);
  return true;
}
