// The engine's operations: who has come, when data move, when kernels end.
#include <algorithm>
#include <cstdio>
#include "engine.h"

// Salts of the draws, apart from those in engine.cc.
enum { SALT_END = 4, SALT_LOSS = 5, SALT_NET = 7 };

// Finds the operation that this call belongs to, or opens one.
int Engine::op_of(int r, const Sub &sub, int &call) {
  int me = comm_rank_[sub.comm][r];
  uint64_t key = (uint64_t)sub.comm << 40;
  bool message = sub.func == SEND || sub.func == RECV;
  if (message) {
    call = p2p_calls_[sub.comm][me]++;
    int from = sub.func == SEND ? me : sub.peer;
    int to = sub.func == SEND ? sub.peer : me;
    key |= (uint64_t)from << 20 | (uint64_t)to;
  } else {
    call = coll_calls_[sub.comm][me]++;
    key |= 1ULL << 62 | (uint64_t)call;
  }
  std::deque<int> &waiting = open_[key];
  if (!waiting.empty() && (!message || ops_[waiting.front()].sides[0].func != sub.func))
    return waiting.front();
  int id;
  if (free_ops_.empty()) {
    id = (int)ops_.size();
    ops_.emplace_back();
  } else {
    id = free_ops_.back();
    free_ops_.pop_back();
  }
  ops_[id] = {sub.comm, sub.func, sub.bytes, sub.peer, 0, {}};
  waiting.push_back(id);
  return id;
}

void Engine::arrive(int r, int s, const Sub &sub, const Item &it, ns_t now) {
  int call = 0;
  int id = op_of(r, sub, call);
  Op &op = ops_[id];
  op.sides.push_back({r, s, sub.peer, sub.func, sub.bytes, call, it.not_before, now, false});
  bool message = sub.func == SEND || sub.func == RECV;
  size_t wanted = message ? 2 : comms_[sub.comm].members.size();
  if (!message && op.bytes != sub.bytes)
    fprintf(stderr, "sizes differ: comm %d call %d\n", sub.comm, call);
  if (sub.func == BROADCAST && sub.bytes < 262144)
    leave_early(id, now);
  if (op.sides.size() < wanted)
    return;
  uint64_t key = (uint64_t)sub.comm << 40;
  if (message) {
    int me = comm_rank_[sub.comm][r];
    key |= sub.func == SEND ? (uint64_t)me << 20 | sub.peer : (uint64_t)sub.peer << 20 | me;
  } else {
    key |= 1ULL << 62 | (uint64_t)call;
  }
  std::deque<int> &waiting = open_[key];
  waiting.pop_front();
  if (waiting.empty())
    open_.erase(key);
  if (sub.func != BROADCAST || sub.bytes >= 262144)
    complete(id, now);
}

// A small broadcast's root pushes its data and goes; the others need the root alone.
void Engine::leave_early(int id, ns_t now) {
  Op &op = ops_[id];
  bool root_there = false;
  for (Side &s : op.sides)
    root_there |= comm_rank_[op.comm][s.rank] == op.root;
  if (!root_there)
    return;
  double a = alpha(op);
  for (size_t i = 0; i < op.sides.size(); i++) {
    if (op.sides[i].ending)
      continue;
    op.sides[i].ending = true;
    post(now + a, E_SIDE, id, (int)i);
  }
}

double Engine::alpha(const Op &op) const {
  int host = -1;
  for (const Side &s : op.sides) {
    if (host >= 0 && host != c_.host(s.rank))
      return c_.alpha_out_ns + 1500.0 * op.sides.size();
    host = c_.host(s.rank);
  }
  return c_.alpha_in_ns + 500.0 * op.sides.size();
}

// What an operation loads; collectives scale with their bytes, so one byte's load is kept.
Network::Load Engine::load_of(const Op &op) {
  const Side &a = op.sides[0];
  int other = op.sides.back().rank;
  // No two transfers take exactly as long: paths, buffers and the memory's load differ.
  bool message = op.func == SEND || op.func == RECV;
  int pair = message ? std::min(a.rank, other) * 100 + std::max(a.rank, other) : 0;
  int call = message ? std::max(a.call, op.sides.back().call) : a.call;
  uint64_t h = hash4(seed_, SALT_NET, op.comm * 100000ULL + pair, call);
  double bytes = op.bytes * std::exp(c_.net_jitter * normal(h));
  if (op.func == SEND)
    return message_load(c_, a.rank, other, bytes);
  if (op.func == RECV)
    return message_load(c_, other, a.rank, bytes);
  Network::Load &one = loads_[op.comm * 8 + op.func];
  if (one.empty())
    one = collective_load(c_, comms_[op.comm], op.func, 1.0);
  Network::Load load = one;
  for (auto &l : load)
    l.second *= bytes;
  return load;
}

// All have come: the data move, after timeouts of lost packets if there are any.
void Engine::complete(int id, ns_t now) {
  Op &op = ops_[id];
  const Side &a = op.sides[0];
  if (op.func == SEND || op.func == RECV)
    op.bytes = std::min(a.bytes, op.sides[1].bytes);
  ns_t t = now;
  if (!fx_.lossy.empty()) {
    auto load = load_of(op);
    for (const Lossy &l : fx_.lossy) {
      bool crosses = false;
      for (auto &p : load)
        crosses |= p.first == l.resource;
      uint64_t h = hash4(seed_, SALT_LOSS, op.comm * 8ULL + op.func, a.call * 100ULL + l.resource);
      if (crosses && l.window.has(now) && unit(h) < l.chance)
        t += l.ns * (0.5 + unit(mix(h)));
    }
  }
  post(t, E_TRANSFER, id);
}

void Engine::start_flow(int id, ns_t now) {
  Op &op = ops_[id];
  auto load = load_of(op);
  double quick = net_.alone(load);
  // What is over in no time does not disturb others much.
  if (load.empty() || quick < 4000) {
    all_end(id, now + quick + alpha(op));
    return;
  }
  net_.start(load, now, id);
  post_flows();
}

// The operation's kernels end everywhere, a few us apart.
void Engine::all_end(int id, ns_t at) {
  for (size_t i = 0; i < ops_[id].sides.size(); i++) {
    uint64_t h = hash4(seed_, SALT_END, ops_[id].comm, ops_[id].sides[i].rank + ops_[id].sides[i].call * 100);
    post(at + 2500 * unit(h), E_SIDE, id, (int)i);
  }
}

void Engine::end_side(int id, int i, ns_t now) {
  Op &op = ops_[id];
  Side s = op.sides[i];
  if (keep_) {
    int16_t me = (int16_t)comm_rank_[op.comm][s.rank];
    records[s.rank].push_back({op.comm, me, (int16_t)s.peer, (uint8_t)s.func, (uint8_t)s.stream, s.bytes,
                               s.call, s.enqueue, s.start, now});
  }
  size_t wanted = op.func == SEND || op.func == RECV ? 2 : comms_[op.comm].members.size();
  if (++op.ended == (int)wanted)
    free_ops_.push_back(id);
  if (--ranks_[s.rank].streams[s.stream].subs_open == 0)
    item_done(s.rank, s.stream, now);
}
