#include "engine.h"

#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <queue>
#include <stdexcept>

namespace {

constexpr double kUnknown = -1;
constexpr double kKernelDelay = 3.5e-6;  // from the launch to the GPU's begin
constexpr double kWakeCpu = 9e-6;        // from an item's end until a waiting CPU goes on
constexpr double kNcclCall = 14e-6;      // CPU time of an NCCL call
constexpr int kLaunchQueue = 1024;       // launches that CUDA takes before it blocks the CPU

struct Item {
  enum Kind : uint8_t { Kernel, Collective, Messages, Join } kind;
  Work work;
  int id;
  double ready, ready_last, seconds;
  int after;
  int instance;  // of a collective, or of a group of messages
  int comm;
  double enqueue;
};

struct Stream {
  std::deque<Item> queue;
  double tail = 0;
  bool waits = false;  // its head is in the hands of the network
};

struct Member {
  int item = -1;
  double enqueue = 0, start = kUnknown;
};

struct Instance {  // one collective
  Func func;
  int64_t bytes;
  const char *type;
  int root, sn;
  int arrived = 0;
  double latest = 0;
  std::vector<Member> members = {};
};

struct GroupCall {  // the messages that one rank sends and receives in one kernel
  int rank, comm, open;
  int item;
  double end = 0;
};

struct Side {
  int group;
  double enqueue, start;
  int64_t bytes;
  int sn;
  const char *type;
};

struct Flow {
  const std::vector<Load> *loads = nullptr;
  std::vector<Load> own_loads;
  double bytes = 0, left = 1, rate = 0, since = 0;  // left: share that is not moved yet
  double max_rate = 1e30;
  int version = 0;
  bool active = false;
  uint32_t mark = 0;
  int comm = -1, instance = -1;  // of a collective
  Side sender, receiver;         // of a message
  int from = -1, to = -1;        // ranks in the communicator
};

struct Event {
  double time;
  enum Kind : uint8_t { Begin, End, Capacity } kind;
  int id, version;
  bool operator<(const Event &o) const { return time != o.time ? time > o.time : id > o.id; }
};

struct RankState {
  double cpu = 0;
  int step = -1;
  size_t pc = 0;
  Tape tape;
  int base = 0;       // number of the first item of this step
  int issued = 0;     // items of this step so far
  size_t pauses = 0;  // pauses in this step's code so far: draws must not move because of them
  int last_compute = -1;
  std::vector<double> ends;
  std::vector<Stream> streams;
  std::vector<int> calls, messages;  // per communicator
  std::vector<std::array<int, 4>> func_calls;
  std::deque<std::pair<int, int>> launched;  // item, launches
  int launches_open = 0;
  int waits_for = -1;
  bool in_barrier = false, done = false;
  size_t next_pause = 0;
};

class Engine {
 public:
  Engine(const Job &job, const Effects &effects, int steps, bool keep)
      : job_(job),
        w_(job.world),
        e_(effects),
        steps_(steps),
        keep_(keep),
        ranks_(w_.n_ranks()),
        on_link_(w_.n_links()),
        link_mark_(w_.n_links(), 0),
        scale_(w_.n_links(), 1.0),
        instances_(w_.comms.size()),
        posts_(w_.comms.size()) {
    out_.records.resize(ranks_.size());
    out_.step_begin.assign(steps, 1e30);
    for (size_t r = 0; r < ranks_.size(); r++) {
      RankState &s = ranks_[r];
      s.streams.resize(1 + w_.comms.size());
      s.calls.assign(w_.comms.size(), 0);
      s.messages.assign(w_.comms.size(), 0);
      s.func_calls.assign(w_.comms.size(), {0, 0, 0, 0});
      s.cpu = 0.002 * unit(key_of(job.seed, 77, r));
      mine_.push_back({});
      for (size_t c = 0; c < w_.comms.size(); c++)
        if (w_.comms[c].index_of(int(r)) >= 0)
          mine_.back().push_back(int(c));
      index_.push_back(std::vector<int>(w_.comms.size()));
      for (size_t c = 0; c < w_.comms.size(); c++)
        index_.back()[c] = w_.comms[c].index_of(int(r));
      chip_.push_back(1 + job.noise.chip * gauss(key_of(job.seed, 11, r)));
    }
    for (int l = 0; l < w_.n_links(); l++) {
      scale_[l] = e_.link[l].at(0);
      for (double t : e_.link[l].edges())
        heap_.push({t, Event::Capacity, l, 0});
    }
  }

  Outcome run() {
    for (size_t r = 0; r < ranks_.size(); r++)
      todo_.push_back(int(r));
    pump_all();
    while (!heap_.empty() && finished_ < int(ranks_.size())) {
      Event ev = heap_.top();
      heap_.pop();
      now_ = ev.time;
      if (ev.kind == Event::Begin)
        begin_flow(ev.id);
      if (ev.kind == Event::Capacity)
        change_capacity(ev.id);
      if (ev.kind == Event::End && flows_[ev.id].active && flows_[ev.id].version == ev.version)
        end_flow(ev.id);
      pump_all();
    }
    if (finished_ < int(ranks_.size())) {
      fprintf(stderr, "deadlock in shape %s\n", job_.shape->name.c_str());
      for (size_t r = 0; r < ranks_.size(); r++)
        if (!ranks_[r].done)
          fprintf(stderr, "  rank %zu step %d pc %zu of %zu waits %d barrier %d\n", r, ranks_[r].step,
                  ranks_[r].pc, ranks_[r].tape.code.size(), ranks_[r].waits_for, ranks_[r].in_barrier);
      throw std::runtime_error("deadlock");
    }
    return std::move(out_);
  }

 private:
  const Job &job_;
  const World &w_;
  const Effects &e_;
  int steps_;
  bool keep_;
  std::vector<RankState> ranks_;
  std::vector<std::vector<int>> mine_, index_;
  std::vector<double> chip_;
  Outcome out_;
  double now_ = 0;
  int finished_ = 0;
  std::priority_queue<Event> heap_;
  std::vector<int> todo_;
  std::vector<int> barrier_;
  double barrier_latest_ = 0;

  std::vector<Flow> flows_;
  std::vector<int> free_flows_;
  std::vector<std::vector<int>> on_link_;
  std::vector<uint32_t> link_mark_;
  std::vector<double> scale_;
  uint32_t mark_ = 0;

  std::vector<std::vector<Instance>> instances_;
  std::vector<GroupCall> groups_;
  std::vector<std::map<std::pair<int, int>, std::array<std::deque<Side>, 2>>> posts_;  // sends, receives

  // --- ranks: CPU and streams ---

  void pump_all() {
    while (!todo_.empty()) {
      int r = todo_.back();
      todo_.pop_back();
      pump(r);
    }
  }

  void pump(int r) {
    RankState &s = ranks_[r];
    bool progress = true;
    while (progress) {
      progress = advance_stream(r, 0);
      for (int c : mine_[r])
        progress = advance_stream(r, 1 + c) || progress;
      if (!s.done && !s.in_barrier && (s.waits_for < 0 || s.ends[s.waits_for] != kUnknown))
        progress = run_cpu(r) || progress;
    }
  }

  bool known(const RankState &s, int item) const { return item < 0 || s.ends[item] != kUnknown; }
  double end_of(const RankState &s, int item) const { return item < 0 ? 0 : s.ends[item]; }

  bool advance_stream(int r, int number) {
    RankState &s = ranks_[r];
    Stream &stream = s.streams[number];
    bool progress = false;
    while (!stream.queue.empty() && !stream.waits) {
      Item &i = stream.queue.front();
      if (!known(s, i.after))
        break;
      double start = std::max({i.ready, stream.tail, end_of(s, i.after)});
      progress = true;
      if (i.kind == Item::Collective || i.kind == Item::Messages) {
        stream.waits = true;
        Item op = i;  // a small broadcast may end, and leave the queue, at once
        if (op.kind == Item::Collective)
          arrive(r, op, start);
        if (op.kind == Item::Messages)
          arrive_group(r, op, start);
        continue;
      }
      double end = start;
      if (i.kind == Item::Kernel) {
        const Speed &speed = i.work == Work::Copy ? e_.copy[r] : e_.gpu[r];
        end = std::max(speed.advance(start, i.seconds), i.ready_last + 2e-6);
      }
      finish_item(s, i.id, end);
      stream.tail = end;
      stream.queue.pop_front();
    }
    return progress;
  }

  void finish_item(RankState &s, int item, double end) { s.ends[item] = end; }

  void fill_tape(int r) {
    RankState &s = ranks_[r];
    s.base += s.tape.items;
    s.tape.clear();
    s.pc = 0;
    s.issued = 0;
    s.pauses = 0;
    Tape &t = s.tape;
    job_.shape->step(t, job_, e_, r, s.step);
    if (e_.eval_every && (s.step + 1) % e_.eval_every == 0)
      for (int k = 0; k < e_.eval_rounds; k++)
        job_.shape->evaluate(t, job_, r, k);
    if (e_.checkpoint_every && (s.step + 1) % e_.checkpoint_every == 0) {
      t.sync_compute();
      double luck = std::exp(0.12 * gauss(key_of(job_.seed, 41, r, s.step)));
      t.cpu(e_.checkpoint_s * luck, CpuWork::Storage);
      t.barrier();
    }
    for (auto &p = s.next_pause; p < e_.pauses[r].size() && e_.pauses[r][p].step == s.step; p++) {
      const PauseAt &pause = e_.pauses[r][p];
      Instr i{Do::Pause};
      i.seconds = pause.seconds;
      i.tag = pause.cause;
      size_t place = pause.late_data ? 0 : size_t(pause.place * double(t.code.size()));
      t.code.insert(t.code.begin() + long(place), i);
    }
    s.ends.resize(size_t(s.base + t.items), kUnknown);
    out_.step_begin[s.step] = std::min(out_.step_begin[s.step], s.cpu);
  }

  // Runs until the CPU has to wait. Returns whether it did anything.
  bool run_cpu(int r) {
    RankState &s = ranks_[r];
    if (s.waits_for >= 0) {
      s.cpu = std::max(s.cpu, s.ends[s.waits_for] + kWakeCpu);
      s.waits_for = -1;
    }
    while (true) {
      if (s.pc == s.tape.code.size()) {
        if (s.step + 1 == steps_) {
          // The process ends when its streams are empty.
          for (Stream &stream : s.streams)
            if (!stream.queue.empty()) {
              s.waits_for = stream.queue.back().id;
              return true;
            }
          for (Stream &stream : s.streams)
            s.cpu = std::max(s.cpu, stream.tail);
          out_.run_s = std::max(out_.run_s, s.cpu);
          s.done = true;
          finished_++;
          return true;
        }
        s.step++;
        fill_tape(r);
        continue;
      }
      const Instr &i = s.tape.code[s.pc];
      uint64_t luck = key_of(job_.seed, 1000003u * uint64_t(r) + 5, uint64_t(s.step) + 1, s.pc - s.pauses);
      if (i.what == Do::Sync) {
        int item = s.base + i.handle;
        if (!known(s, item)) {
          s.waits_for = item;
          s.pc++;
          return true;
        }
        s.cpu = std::max(s.cpu, s.ends[item]) + kWakeCpu;
      } else if (i.what == Do::Barrier) {
        s.pc++;
        return enter_barrier(r);
      } else if (i.what == Do::Pause) {
        out_.moments.push_back({i.tag, r, s.step, s.cpu, s.cpu + i.seconds});
        s.cpu += i.seconds;
        s.pauses++;
      } else if (i.what == Do::Cpu && i.cpu == CpuWork::Storage) {
        s.cpu = e_.storage[r].advance(s.cpu, i.seconds);
      } else if (i.what == Do::Cpu) {
        s.cpu = e_.cpu[r].advance(s.cpu, cpu_time(i.seconds, luck));
      } else if (i.what == Do::Join) {
        push(s, 0, {Item::Join, Work::Compute, next_item(s, 0), s.cpu, 0, 0, s.base + i.handle, -1, -1, 0});
      } else if (i.what == Do::Kernel) {
        if (!room_for_launch(s))
          return true;
        launch_kernel(r, i, luck);
      } else {
        call_nccl(r, i, luck);
      }
      s.pc++;
    }
  }

  double cpu_time(double seconds, uint64_t luck) const {
    double t = seconds * std::exp(job_.noise.cpu * gauss(luck));
    if (unit(luck ^ 0xabcdef) < job_.noise.hiccup_chance)
      t += job_.noise.hiccup_s * 2 * unit(luck ^ 0x1234);
    return t;
  }

  int next_item(RankState &s, int stream) {
    int id = s.base + s.issued++;
    if (stream == 0)
      s.last_compute = id;
    return id;
  }

  void push(RankState &s, int stream, const Item &item) { s.streams[stream].queue.push_back(item); }

  // CUDA blocks the CPU when too many launches are waiting.
  bool room_for_launch(RankState &s) {
    while (s.launches_open > kLaunchQueue) {
      auto oldest = s.launched.front();
      if (!known(s, oldest.first)) {
        s.waits_for = oldest.first;
        return false;
      }
      s.cpu = std::max(s.cpu, s.ends[oldest.first]);
      s.launches_open -= oldest.second;
      s.launched.pop_front();
    }
    while (!s.launched.empty() && known(s, s.launched.front().first) &&
           s.ends[s.launched.front().first] <= s.cpu) {
      s.launches_open -= s.launched.front().second;
      s.launched.pop_front();
    }
    return true;
  }

  void launch_kernel(int r, const Instr &i, uint64_t luck) {
    RankState &s = ranks_[r];
    double first = s.cpu;
    s.cpu = e_.cpu[r].advance(s.cpu, cpu_time(i.launches * job_.shape->launch_s, luck));
    double seconds = i.seconds;
    if (i.work == Work::Compute) {
      double common = 1 + job_.noise.step * gauss(key_of(job_.seed, 21, s.step));
      double own = 1 + job_.noise.kernel * gauss(luck ^ 0x77);
      seconds *= e_.load[r] * e_.step_factor(s.step) * chip_[r] * common * std::max(0.3, own);
    }
    int id = next_item(s, 0);
    s.launched.push_back({id, i.launches});
    s.launches_open += i.launches;
    double ready = first + job_.shape->launch_s + kKernelDelay;
    push(s, 0, {Item::Kernel, i.work, id, ready, s.cpu + kKernelDelay, seconds, -1, -1, -1, 0});
  }

  void call_nccl(int r, const Instr &i, uint64_t luck) {
    RankState &s = ranks_[r];
    double enqueue = s.cpu + 1.5e-6;
    size_t n = i.what == Do::Group ? i.messages.size() : 1;
    double called =
        enqueue + 1.2e-6 * double(n) + 2e-6;  // the kernel is launched after the last of the calls
    s.cpu = std::max(called, e_.cpu[r].advance(s.cpu, cpu_time(kNcclCall + 1.2e-6 * double(n - 1), luck)));
    int after = i.handle == -2 ? s.last_compute : i.handle < 0 ? -1 : s.base + i.handle;
    int instance = i.what == Do::Group ? open_group(r, i, enqueue) : open_collective(r, i);
    int id = next_item(s, 1 + i.comm);
    Item item{i.what == Do::Group ? Item::Messages : Item::Collective,
              Work::Compute,
              id,
              s.cpu + kKernelDelay,
              0,
              0,
              after,
              instance,
              i.comm,
              enqueue};
    if (i.what == Do::Group)
      groups_[instance].item = id;
    push(s, 1 + i.comm, item);
  }

  bool enter_barrier(int r) {
    barrier_.push_back(r);
    ranks_[r].in_barrier = true;
    barrier_latest_ = std::max(barrier_latest_, ranks_[r].cpu);
    if (barrier_.size() < ranks_.size())
      return true;
    for (int other : barrier_) {
      RankState &s = ranks_[other];
      s.in_barrier = false;
      s.cpu = barrier_latest_ + 0.0004 + 0.0004 * unit(key_of(job_.seed, 31, other, s.step));
      if (other != r)
        todo_.push_back(other);
    }
    barrier_.clear();
    barrier_latest_ = 0;
    return true;
  }

  // --- operations ---

  int open_collective(int r, const Instr &i) {
    int c = i.comm, number = ranks_[r].calls[c]++;
    int sn = ranks_[r].func_calls[c][int(i.func)]++;
    auto &list = instances_[c];
    if (number == int(list.size())) {
      Instance x{i.func, i.bytes, i.type, i.root, sn};
      x.members.resize(w_.comms[c].members.size());
      list.push_back(std::move(x));
    }
    Instance &x = list[number];
    if (x.func != i.func || x.bytes != i.bytes) {
      fprintf(stderr, "%s: rank %d calls %s of %lld, others %s of %lld\n", job_.shape->name.c_str(), r,
              func_name(i.func), (long long)i.bytes, func_name(x.func), (long long)x.bytes);
      throw std::runtime_error("calls differ");
    }
    return number;
  }

  int open_group(int r, const Instr &i, double enqueue) {
    GroupCall g{r, i.comm, int(i.messages.size()), -1, 0};
    groups_.push_back(g);
    pending_.push_back({});
    int id = int(groups_.size()) - 1;
    for (const Message &m : i.messages) {
      Side side{
          id,    enqueue + 1.2e-6 * double(&m - i.messages.data()), 0, m.bytes, ranks_[r].messages[i.comm]++,
          i.type};
      pending_.back().push_back({m, side});
    }
    return id;
  }

  void arrive(int r, const Item &i, double start) {
    Instance &x = instances_[i.comm][i.instance];
    int me = index_[r][i.comm];
    x.members[me] = {i.id, i.enqueue, start};
    x.arrived++;
    x.latest = std::max(x.latest, start);
    const Comm &c = w_.comms[i.comm];
    if (x.func == Func::Broadcast && x.bytes < (4 << 20)) {
      arrive_broadcast(i.comm, i.instance, me);
      return;
    }
    if (x.arrived < int(c.members.size()))
      return;
    int f = new_flow();
    Flow &flow = flows_[f];
    flow.comm = i.comm;
    flow.instance = i.instance;
    double n = double(c.members.size());
    bool in_switch = x.func == Func::AllReduce && uses_nvls(c, x.bytes);
    double payload = double(x.bytes);
    if (x.func == Func::AllReduce && !in_switch)
      payload *= 2 * (n - 1) / n;
    if (x.func == Func::AllGather || x.func == Func::ReduceScatter)
      payload *= n - 1;
    if (x.bytes < 65536)
      payload *= 2;  // LL: half of what is sent are flags
    flow.loads = in_switch ? &c.nvls : &c.ring;
    flow.bytes = payload;
    // Not much below the size at which all channels are busy.
    double ramp = std::min(1.0, 0.08 + double(x.bytes) * (x.func == Func::AllReduce ? 1 : n) / 24e6);
    double widest = w_.kind.port_gbs * 1e9 * ramp;
    flow.max_rate = payload > 0 ? widest / payload : 1e30;
    heap_.push({x.latest + latency(c, x.func, x.bytes), Event::Begin, f, 0});
  }

  bool uses_nvls(const Comm &c, int64_t bytes) const {
    return w_.kind.nvls && c.hosts.size() == 1 && c.members.size() >= 4 && bytes >= (1 << 20);
  }

  double latency(const Comm &c, Func func, int64_t bytes) const {
    double hosts = double(c.hosts.size()), n = double(c.members.size());
    double hop = w_.kind.nvlink ? 0.7e-6 : 1.6e-6;
    bool tree = func == Func::AllReduce && bytes < (1 << 20);
    double inside =
        hop * (tree ? 2 * std::log2(n) : std::min(n, 16.0) * (func == Func::AllReduce ? 1.2 : 0.6));
    double across = hosts > 1 ? (tree ? 9e-6 * 2 * std::log2(hosts) : 5.5e-6 * hosts) : 0;
    return 5e-6 + inside + across;
  }

  // A small broadcast: the root leaves its data in buffers and goes on. The others need nobody but the root.
  void arrive_broadcast(int comm, int instance, int me) {
    Instance &x = instances_[comm][instance];
    const Comm &c = w_.comms[comm];
    double wire = latency(c, x.func, x.bytes) + double(x.bytes) / (w_.kind.nic_gbs * 0.4e9);
    Member &root = x.members[x.root];
    if (root.start == kUnknown)
      return;
    for (size_t m = 0; m < x.members.size(); m++) {
      Member &member = x.members[m];
      if (member.start == kUnknown || member.item < 0 || (me != x.root && int(m) != me))
        continue;
      double end =
          int(m) == x.root ? root.start + wire * 0.6 : std::max(member.start + 4e-6, root.start + wire);
      finish_member(comm, instance, int(m), end);
    }
  }

  void finish_member(int comm, int instance, int me, double end) {
    Instance &x = instances_[comm][instance];
    int r = w_.comms[comm].members[me];
    Member &m = x.members[me];
    RankState &s = ranks_[r];
    Stream &stream = s.streams[1 + comm];
    finish_item(s, m.item, end);
    stream.tail = end;
    stream.waits = false;
    stream.queue.pop_front();
    if (keep_)
      out_.records[r].push_back(
          {m.enqueue, m.start, end, x.bytes, comm, x.func, -1, x.sn, instance, x.root, x.type});
    m.item = -1;
    todo_.push_back(r);
  }

  void arrive_group(int r, const Item &i, double start) {
    GroupCall &g = groups_[i.instance];
    int me = index_[r][g.comm];
    auto messages = std::move(pending_[i.instance]);
    for (size_t k = 0; k < messages.size(); k++) {
      Message &m = messages[k].first;
      Side side = messages[k].second;
      side.start = start + 0.3e-6 * double(k / 2);
      auto pair = m.send ? std::make_pair(me, m.peer) : std::make_pair(m.peer, me);
      auto &posted = posts_[g.comm][pair];
      auto &others = posted[m.send ? 1 : 0];
      if (others.empty()) {
        posted[m.send ? 0 : 1].push_back(side);
        continue;
      }
      Side other = others.front();
      others.pop_front();
      if (other.bytes != side.bytes)
        throw std::runtime_error("sizes of a message differ in " + job_.shape->name);
      begin_message(g.comm, pair, m.send ? side : other, m.send ? other : side);
    }
    if (groups_[i.instance].open == 0)
      throw std::runtime_error("empty group");
  }

  void begin_message(int comm, std::pair<int, int> pair, const Side &sender, const Side &receiver) {
    int f = new_flow();
    Flow &flow = flows_[f];
    const Comm &c = w_.comms[comm];
    int from = c.members[pair.first], to = c.members[pair.second];
    flow.comm = comm;
    flow.instance = -1;
    flow.from = pair.first;
    flow.to = pair.second;
    flow.sender = sender;
    flow.receiver = receiver;
    flow.own_loads = w_.pair_loads(from, to);
    flow.loads = nullptr;
    flow.bytes = double(sender.bytes);
    bool across = w_.ranks[from].host != w_.ranks[to].host;
    double ramp = std::min(1.0, 0.06 + double(sender.bytes) / 8e6);
    // Few channels carry a message: it does not fill NVLink alone.
    flow.max_rate = w_.kind.port_gbs * 1e9 * (across ? 1.0 : 0.6) * ramp / flow.bytes;
    heap_.push({std::max(sender.start, receiver.start) + (across ? 16e-6 : 6e-6), Event::Begin, f, 0});
  }

  void finish_side(const Side &side, const Flow &f, bool send, double end) {
    GroupCall &g = groups_[side.group];
    if (keep_)
      out_.records[g.rank].push_back({side.enqueue, side.start, end, side.bytes, g.comm,
                                      send ? Func::Send : Func::Recv, send ? f.to : f.from, side.sn, side.sn,
                                      -1, side.type});
    g.end = std::max(g.end, end);
    if (--g.open > 0)
      return;
    RankState &s = ranks_[g.rank];
    Stream &stream = s.streams[1 + g.comm];
    finish_item(s, g.item, g.end);
    stream.tail = g.end;
    stream.waits = false;
    stream.queue.pop_front();
    todo_.push_back(g.rank);
  }

  // --- flows on links ---

  int new_flow() {
    if (!free_flows_.empty()) {
      int f = free_flows_.back();
      free_flows_.pop_back();
      int version = flows_[f].version;
      flows_[f] = Flow();
      flows_[f].version = version + 1;
      return f;
    }
    flows_.push_back({});
    return int(flows_.size()) - 1;
  }

  const std::vector<Load> &loads(const Flow &f) const { return f.loads ? *f.loads : f.own_loads; }

  void begin_flow(int id) {
    Flow &f = flows_[id];
    f.active = true;
    f.since = now_;
    for (const Load &l : loads(f))
      on_link_[l.link].push_back(id);
    share_out({id});
  }

  void end_flow(int id) {
    Flow &f = flows_[id];
    f.active = false;
    f.version++;
    std::vector<int> neighbours;
    for (const Load &l : loads(f)) {
      auto &list = on_link_[l.link];
      for (size_t k = 0; k < list.size(); k++)
        if (list[k] == id) {
          list[k] = list.back();
          list.pop_back();
          break;
        }
      for (int other : list)
        if (neighbours.empty() || neighbours.back() != other)
          neighbours.push_back(other);
    }
    if (!neighbours.empty())
      share_out(neighbours);
    Flow done = f;
    if (done.instance >= 0) {
      size_t n = w_.comms[done.comm].members.size();
      for (size_t m = 0; m < n; m++) {
        uint64_t luck = key_of(job_.seed, 51, uint64_t(done.comm) << 32 | uint64_t(done.instance), m);
        finish_member(done.comm, done.instance, int(m), now_ + 3.5e-6 * unit(luck));
      }
      instances_[done.comm][done.instance].members.clear();
      instances_[done.comm][done.instance].members.shrink_to_fit();
    } else {
      finish_side(done.sender, done, true, now_ + 0.5e-6);
      finish_side(done.receiver, done, false, now_ + 2e-6);
    }
    free_flows_.push_back(id);
  }

  void change_capacity(int link) {
    double scale = e_.link[link].at(now_ + 1e-9);
    if (scale == scale_[link])
      return;
    scale_[link] = scale;
    if (!on_link_[link].empty())
      share_out(std::vector<int>(on_link_[link]));
  }

  // Rates of all flows that share links with the given ones, directly or by others: max-min fair.
  void share_out(const std::vector<int> &seeds) {
    mark_++;
    std::vector<int> &flows = scratch_flows_;
    std::vector<int> &links = scratch_links_;
    flows.clear();
    links.clear();
    for (int f : seeds)
      if (flows_[f].active && flows_[f].mark != mark_) {
        flows_[f].mark = mark_;
        flows.push_back(f);
      }
    for (size_t k = 0; k < flows.size(); k++)
      for (const Load &l : loads(flows_[flows[k]])) {
        if (link_mark_[l.link] == mark_)
          continue;
        link_mark_[l.link] = mark_;
        links.push_back(l.link);
        for (int other : on_link_[l.link])
          if (flows_[other].mark != mark_) {
            flows_[other].mark = mark_;
            flows.push_back(other);
          }
      }
    room_.resize(on_link_.size());
    count_.resize(on_link_.size());
    for (int l : links) {
      room_[l] = w_.capacity(l) * scale_[l];
      count_[l] = int(on_link_[l].size());
    }
    rates_.assign(flows.size(), -1);
    size_t open = flows.size();
    while (open > 0) {
      double tightest = 1e300;
      int where = -1;
      for (int l : links)
        if (count_[l] > 0 && room_[l] / count_[l] < tightest) {
          tightest = room_[l] / count_[l];
          where = l;
        }
      size_t fixed = 0;
      for (size_t k = 0; k < flows.size(); k++) {
        if (rates_[k] >= 0)
          continue;
        Flow &f = flows_[flows[k]];
        bool here = false;
        double rate = f.max_rate;
        for (const Load &l : loads(f)) {
          here = here || l.link == where;
          rate = std::min(rate, room_[l.link] / std::max(1, count_[l.link]) / (l.per_byte * f.bytes));
        }
        // Flows that cannot use their share anywhere are fixed too, so that others get the rest.
        if (!here && rate < f.max_rate)
          continue;
        rates_[k] = rate;
        fixed++;
      }
      for (size_t k = 0; k < flows.size(); k++) {
        if (rates_[k] < 0 || flows_[flows[k]].mark == 0)
          continue;
        Flow &f = flows_[flows[k]];
        f.mark = 0;
        for (const Load &l : loads(f)) {
          room_[l.link] = std::max(0.0, room_[l.link] - rates_[k] * l.per_byte * f.bytes);
          count_[l.link]--;
        }
      }
      open -= fixed;
      if (fixed == 0)
        throw std::runtime_error("no flow could be given a rate");
    }
    for (size_t k = 0; k < flows.size(); k++)
      set_rate(flows[k], std::max(rates_[k], 1e-9));
  }

  void set_rate(int id, double rate) {
    Flow &f = flows_[id];
    if (f.rate > 0 && std::fabs(rate / f.rate - 1) < 1e-9)
      return;
    f.left = std::max(0.0, f.left - f.rate * (now_ - f.since));
    f.since = now_;
    f.rate = rate;
    f.version++;
    heap_.push({now_ + f.left / rate, Event::End, id, f.version});
  }

  std::vector<std::vector<std::pair<Message, Side>>> pending_;
  std::vector<int> scratch_flows_, scratch_links_, count_;
  std::vector<double> room_, rates_;
};

}  // namespace

Outcome play(const Job &job, const Effects &effects, int steps, bool keep_records) {
  return Engine(job, effects, steps, keep_records).run();
}
