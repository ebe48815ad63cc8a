#include "engine.h"
#include <algorithm>

// Salts of the draws, so that no two of them are the same.
enum { SALT_KERNEL = 1, SALT_GPU, SALT_NOISE, SALT_CPU = 6 };

Engine::Engine(const Cluster &c, const std::vector<Comm> &comms, const Effects &fx, uint64_t seed,
               double jitter, StepWriter writer, bool keep)
    : c_(c), comms_(comms), fx_(fx), seed_(seed), jitter_(jitter), writer_(writer), keep_(keep), net_(c) {
  records.resize(c.n_ranks());
  ranks_.resize(c.n_ranks());
  for (const Comm &m : comms) {
    std::vector<int> local(c.n_ranks(), -1);
    for (size_t i = 0; i < m.members.size(); i++)
      local[m.members[i]] = (int)i;
    comm_rank_.push_back(local);
    coll_calls_.emplace_back(m.members.size(), 0);
    p2p_calls_.emplace_back(m.members.size(), 0);
  }
}

void Engine::post(ns_t t, int type, int a, int b, int c) { heap_.push({t, sn_++, type, a, b, c}); }

void Engine::post_flows() {
  for (int id : net_.changed) {
    const Network::Flow &f = net_.flows[id];
    if (f.active)
      post(f.since + f.left / f.rate, E_FLOW, id, f.version);
  }
  net_.changed.clear();
}

void Engine::run() {
  for (size_t i = 0; i < fx_.caps.size(); i++)
    post(fx_.caps[i].at, E_CAP, (int)i);
  for (int r = 0; r < c_.n_ranks(); r++)
    run_cpu(r);
  size_t left = fx_.caps.size();
  while (!heap_.empty()) {
    Event e = heap_.top();
    heap_.pop();
    switch (e.type) {
      case E_STREAM:
        ranks_[e.a].streams[e.b].alarm = -1;
        advance(e.a, e.b, e.t);
        break;
      case E_KERNEL:
        item_done(e.a, e.b, e.t);
        break;
      case E_SIDE:
        end_side(e.a, e.b, e.t);
        break;
      case E_FLOW:
        if (net_.flows[e.a].version != e.b || !net_.flows[e.a].active)
          break;
        net_.finish(e.a, e.t);
        post_flows();
        all_end(net_.flows[e.a].owner, e.t + alpha(ops_[net_.flows[e.a].owner]));
        break;
      case E_CAP:
        net_.set_factor(fx_.caps[e.a].resource, fx_.caps[e.a].factor, e.t);
        post_flows();
        left--;
        break;
      case E_TRANSFER:
        start_flow(e.a, e.t);
        break;
    }
    if (heap_.size() == left)
      break;  // only changes of links are left: nobody runs any more
  }
  for (Rank &k : ranks_) {
    stuck |= !k.finished;
    end = std::max(end, k.cpu);
  }
}

// Stalls that are due stop the clock of the thread, or of the stream.
void Engine::pass_stalls(const std::map<int, std::vector<Stall>> &all, int r, size_t &next, ns_t &t) {
  auto it = all.find(r);
  if (it == all.end())
    return;
  while (next < it->second.size() && it->second[next].at <= t)
    t += it->second[next++].ns;
}

// The CPU's thread runs in its own time until it has to wait for the GPU.
void Engine::run_cpu(int r) {
  Rank &k = ranks_[r];
  if (k.running)
    return;
  k.running = true;
  while (!k.finished) {
    if (k.pc == k.program.code.size()) {
      k.program.code.clear();
      k.program.subs.clear();
      k.pc = 0;
      k.ids = 0;
      if (r == 0)
        step_begin.push_back(k.cpu);
      if (!writer_(r, k.step++, k.program)) {
        k.finished = true;
        break;
      }
      k.events.resize(k.program.next_event, false);
      continue;
    }
    const Instr &in = k.program.code[k.pc];
    if (in.kind == I_SYNC) {
      if (!k.events[in.launches]) {
        k.waits_for = in.launches;
        break;
      }
      k.pc++;
      continue;
    }
    if (k.queued > c_.queue) {
      k.queue_full = true;
      break;
    }
    pass_stalls(fx_.cpu_stalls, r, k.cpu_stall, k.cpu);
    double noise = std::exp(0.05 * normal(hash4(seed_, SALT_CPU, r, (k.step << 16) + k.pc)));
    if (in.kind == I_SLEEP)
      k.cpu += in.ns;
    else if (in.kind == I_CPU || in.kind == I_LOADER)
      k.cpu += in.ns * noise * Effects::factor(fx_.launch, r, k.cpu);
    else
      launch(k, r, in);
    k.pc++;
  }
  k.running = false;
}

void Engine::launch(Rank &k, int r, const Instr &in) {
  Item it;
  it.kind = in.kind;
  it.launches = 1;
  it.event = in.launches;
  it.ns = in.ns;
  it.id = 0;
  it.ready = k.cpu;
  if (in.kind == I_KERNEL) {
    // The first of the kernels begins when it is there, the last not before it is.
    double one = c_.launch_ns * Effects::factor(fx_.launch, r, k.cpu);
    it.launches = in.launches;
    it.id = ((uint64_t)k.step << 20) + k.ids++;
    it.ready = k.cpu + one;
    k.cpu += one * in.launches;
    it.not_before = k.cpu + in.ns / in.launches;
  } else if (in.kind == I_COMM) {
    it.subs.assign(k.program.subs.begin() + in.first_sub, k.program.subs.begin() + in.first_sub + in.n_subs);
    k.cpu += (2 * c_.launch_ns + 800.0 * in.n_subs) * Effects::factor(fx_.launch, r, k.cpu);
    it.not_before = it.ready;  // the time of the call
    it.ready = k.cpu;
  }
  k.queued += it.launches;
  Strm &s = k.streams[in.stream];
  s.items.push_back(std::move(it));
  if (s.items.size() == 1 && !s.busy && s.alarm < 0) {
    s.alarm = k.cpu;
    post(k.cpu, E_STREAM, r, in.stream);
  }
}

// An event has come, or items have left the queue: whoever waits looks again.
void Engine::wake(int r, ns_t now) {
  Rank &k = ranks_[r];
  bool go = false;
  if (k.waits_for >= 0 && k.events[k.waits_for]) {
    k.waits_for = -1;
    go = true;
  }
  if (k.queue_full && k.queued <= c_.queue * 9 / 10) {
    k.queue_full = false;
    go = true;
  }
  if (!go)
    return;
  k.cpu = std::max(k.cpu, now);
  run_cpu(r);
}

// Begins what is at the head of the stream, if it can.
void Engine::advance(int r, int s, ns_t now) {
  Rank &k = ranks_[r];
  Strm &st = k.streams[s];
  while (!st.busy && !st.items.empty()) {
    Item &it = st.items.front();
    if (it.ready > now) {
      if (st.alarm < 0) {
        st.alarm = it.ready;
        post(it.ready, E_STREAM, r, s);
      }
      return;
    }
    if (it.kind == I_WAIT) {
      if (!k.events[it.event])
        return;
    } else if (it.kind == I_RECORD) {
      k.events[it.event] = true;
      for (int o = 0; o < N_STREAMS; o++)
        if (o != s && !k.streams[o].busy && !k.streams[o].items.empty() &&
            k.streams[o].items.front().kind == I_WAIT)
          post(now, E_STREAM, r, o);
    } else {
      st.busy = true;
      begin(r, s, it, now);
      return;
    }
    k.queued -= it.launches;
    st.items.pop_front();
    wake(r, now);
  }
}

void Engine::begin(int r, int s, Item &it, ns_t now) {
  if (it.kind == I_KERNEL)
    begin_kernel(r, s, it, now);
  else
    begin_comm(r, s, it, now);
}

void Engine::item_done(int r, int s, ns_t now) {
  Rank &k = ranks_[r];
  Strm &st = k.streams[s];
  k.queued -= st.items.front().launches;
  st.items.pop_front();
  st.busy = false;
  advance(r, s, now);
  wake(r, now);
}

void Engine::begin_kernel(int r, int s, const Item &it, ns_t now) {
  double f = std::exp(jitter_ * normal(hash4(seed_, SALT_KERNEL, r, it.id)));
  f *= std::exp(0.003 * normal(hash4(seed_, SALT_GPU, r, 0)));
  f *= Effects::factor(fx_.gpu, r, now);
  ns_t t = now;
  pass_stalls(fx_.gpu_stalls, r, ranks_[r].gpu_stall, t);
  t += it.ns * f;
  if (unit(hash4(seed_, SALT_NOISE, r, it.id)) < 0.0005)
    t += 3e5 * unit(hash4(seed_, SALT_NOISE, r + 1000, it.id));
  post(std::max(t, it.not_before), E_KERNEL, r, s);
}

void Engine::begin_comm(int r, int s, const Item &it, ns_t now) {
  ranks_[r].streams[s].subs_open = (int)it.subs.size();
  for (const Sub &sub : it.subs)
    arrive(r, s, sub, it, now);
}
