// Draws a job: which shape on which machines, and what the shapes share.
#include "shapes.h"

#include <algorithm>
#include <set>
#include <stdexcept>

int Grid::size() const {
  int n = 1;
  for (auto &a : axes_)
    n *= a.second;
  return n;
}

int Grid::at(int rank, const std::string &axis) const {
  for (auto &a : axes_) {
    if (a.first == axis)
      return rank % a.second;
    rank /= a.second;
  }
  return 0;
}

int Grid::extent(const std::string &axis) const {
  for (auto &a : axes_)
    if (a.first == axis)
      return a.second;
  return 1;
}

int Grid::moved(int rank, const std::string &axis, int place) const {
  int stride = 1;
  for (auto &a : axes_) {
    if (a.first == axis)
      return rank + (place - at(rank, axis)) * stride;
    stride *= a.second;
  }
  throw std::runtime_error("no such axis: " + axis);
}

std::vector<std::vector<int>> Grid::groups(const std::vector<std::string> &axes) const {
  std::map<std::vector<int>, std::vector<int>> found;
  for (int r = 0; r < size(); r++) {
    std::vector<int> fixed;
    for (auto &a : axes_)
      if (std::find(axes.begin(), axes.end(), a.first) == axes.end())
        fixed.push_back(at(r, a.first));
    found[fixed].push_back(r);
  }
  std::vector<std::vector<int>> list;
  for (auto &g : found)
    list.push_back(g.second);
  std::sort(list.begin(), list.end());
  return list;
}

CommTable make_comms(Job &job, const std::vector<std::vector<int>> &groups, const std::string &name,
                     uint64_t salt) {
  CommTable table(size_t(job.world.n_ranks()), -1);
  for (auto &g : groups) {
    if (g.size() < 2)
      continue;
    int c = job.world.add_comm(name, g, salt);
    for (int r : g)
      table[r] = c;
    if (int(g.size()) == job.world.n_ranks() && job.world_comm < 0)
      job.world_comm = c;
  }
  return table;
}

void Trainer::begin(Tape &t, const Job &job, int rank, int step) const {
  if (has_loader) {
    double luck = std::exp(0.5 * gauss(key_of(job.seed, 61, rank, step)));
    t.cpu(habits.loader_s * luck, CpuWork::Storage);
    t.kernel(habits.copy_s, 4, Work::Copy);
  }
  t.cpu(habits.python_s);
}

void Trainer::log_loss(Tape &t, int step, int comm) const {
  if ((step + 1) % habits.log_every != 0)
    return;
  if (comm >= 0)
    t.join(t.coll(comm, Func::AllReduce, 4, kF32));
  t.sync_compute();
  t.cpu(0.0012);
}

double Trainer::length(const Job &job, int rank, int step, int micro) const {
  if (habits.length_tail == 0)
    return 1;
  int batch = batch_of.empty() ? rank : batch_of[rank];
  double s = habits.length_tail;
  double tokens = std::exp(s * gauss(key_of(job.seed, 71, batch, uint64_t(step) * 64 + micro)) - s * s / 2);
  tokens = std::min(tokens, 3.0);
  return 0.75 * tokens + 0.25 * tokens * tokens;  // attention grows with the square
}

namespace {

struct Plan {
  const char *name;
  std::vector<int> kinds;  // places in host_kinds()
  std::vector<int> host_counts;
  bool any_order;  // ranks may go round the hosts: no group has to stay on one
};

const std::vector<Plan> &plans() {
  static const std::vector<Plan> list = {
      {"ddp_vision", {6, 7, 8, 5}, {2, 3, 4, 6}, true},
      {"ddp_bert_accum", {3, 4, 5, 6}, {2, 4, 6}, true},
      {"lora_one_host", {6, 2, 3}, {1}, false},
      {"fsdp_llm", {0, 1, 3}, {2, 4, 8}, true},
      {"hsdp_llm", {0, 3, 4}, {2, 4, 6}, true},
      {"zero2_offload", {4, 5, 6, 7}, {2, 3, 4}, true},
      {"megatron_tp_pp_dp", {0, 1, 3}, {2, 4, 8}, false},
      {"megatron_interleaved", {0, 3, 4}, {2, 4}, false},
      {"pipeline_pcie", {7, 8, 6}, {2, 4, 8}, false},
      {"megatron_tp_dp", {0, 1, 3}, {2, 4}, false},
      {"moe_ep", {0, 1, 3}, {1, 2, 3}, false},
      {"context_parallel", {0, 3, 4}, {2, 4}, false},
      {"sft_longtail", {0, 3, 4}, {2, 3, 4}, true},
      {"multimodal_pp", {0, 1, 3}, {2, 4}, false},
      {"rl_rollout_train", {0, 3, 4}, {2, 3, 4}, false},
      {"recommender", {3, 4, 5, 6}, {2, 4}, true},
      {"serving_tp_pp", {0, 1, 3}, {1, 2}, false},
  };
  return list;
}

// Ranks go host by host, with the hosts in any order, or round the hosts.
void place_ranks(Job &job, Dice &dice, int n_hosts, bool any_order) {
  World &w = job.world;
  w.hosts = draw_host_names(dice, n_hosts);
  std::vector<int> order;
  for (int h = 0; h < n_hosts; h++)
    order.push_back(h);
  if (dice.chance(0.35))
    dice.shuffle(order);
  bool round = any_order && n_hosts > 1 && dice.chance(0.25);
  for (int r = 0; r < n_hosts * w.kind.gpus; r++) {
    int block = round ? r % n_hosts : r / w.kind.gpus;
    int local = round ? r / n_hosts : r % w.kind.gpus;
    w.ranks.push_back({order[block], local});
  }
}

std::unique_ptr<Shape> make_shape(Job &job, Dice &dice, const std::string &name) {
  if (name == "ddp_vision" || name == "ddp_bert_accum" || name == "lora_one_host")
    return make_ddp(job, dice, name);
  if (name == "zero2_offload")
    return make_zero_offload(job, dice);
  if (name.rfind("megatron", 0) == 0 || name == "pipeline_pcie" || name == "multimodal_pp")
    return make_megatron(job, dice, name);
  if (name == "moe_ep")
    return make_moe(job, dice);
  if (name == "recommender")
    return make_recommender(job, dice);
  if (name == "serving_tp_pp")
    return make_serving(job, dice);
  return make_fsdp(job, dice, name);
}

int records_of_a_step(const Job &job) {
  Effects none(job.world.n_ranks(), job.world.n_links());
  int n = 0;
  for (int r = 0; r < job.world.n_ranks(); r++) {
    Tape t;
    job.shape->step(t, job, none, r, 1);
    for (const Instr &i : t.code) {
      if (i.what == Do::Coll)
        n++;
      if (i.what == Do::Group)
        n += int(i.messages.size());
    }
  }
  return n;
}

}  // namespace

int number_of_shapes() { return int(plans().size()); }

std::unique_ptr<Job> draw_job(uint64_t seed, int shape_number) {
  Dice dice(key_of(seed, 1));
  auto job = std::make_unique<Job>();
  job->seed = seed;
  const Plan &plan = plans()[size_t(shape_number) % plans().size()];
  int n_hosts;
  do {
    job->world.kind = host_kinds()[dice.pick(plan.kinds)];
    n_hosts = dice.pick(plan.host_counts);
  } while (n_hosts * job->world.kind.gpus < 8 && plan.host_counts.size() > 1);
  place_ranks(*job, dice, n_hosts, plan.any_order);
  Noise &noise = job->noise;
  noise.kernel = dice.geometric(0.003, 0.02);
  noise.chip = dice.geometric(0.002, 0.007);
  noise.step = dice.geometric(0.001, 0.006);
  noise.cpu = dice.between(0.08, 0.25);
  noise.hiccup_chance = dice.geometric(5e-5, 6e-4);
  noise.hiccup_s = dice.geometric(0.0005, 0.004);
  job->shape = make_shape(*job, dice, plan.name);
  job->shape->name = plan.name;
  if (auto *trainer = dynamic_cast<Trainer *>(job->shape.get())) {
    trainer->habits.python_s = dice.geometric(0.0015, 0.01);
    trainer->habits.copy_s *= dice.geometric(0.8, 5);
  }
  job->shape->launch_s = dice.geometric(5e-6, 13e-6);
  int each = records_of_a_step(*job);
  int budget = dice.whole(90000, 190000);
  int most = plan.name == std::string("serving_tp_pp") ? 1500 : 450;
  job->steps = std::clamp(budget / std::max(1, each), 50, most);
  if (job->shape->has_loader && dice.chance(0.35)) {
    job->checkpoint_every = std::max(4, job->steps / dice.whole(3, 9));
    job->checkpoint_share = dice.geometric(0.008, 0.05);
  }
  return job;
}
