// The discrete-event simulation. CPU threads run ahead of their GPU's streams, streams run items in
// order, operations begin on a rank when its kernel does and end when all have come and data moved.
#pragma once
#include <deque>
#include <functional>
#include <queue>
#include <unordered_map>
#include "effects.h"
#include "load.h"
#include "network.h"
#include "program.h"
#include "rng.h"

// One operation on one rank, in true time.
struct Rec {
  int comm;
  int16_t rank;  // in the communicator
  int16_t peer;
  uint8_t func;
  uint8_t stream;
  double bytes;
  int call;  // number of the call on the communicator: collectives, or sends and receives
  ns_t enqueue, start, end;
};

// Writes the instructions of a rank's step; false: the rank is done.
typedef std::function<bool(int rank, int step, Builder &)> StepWriter;

class Engine {
 public:
  Engine(const Cluster &c, const std::vector<Comm> &comms, const Effects &fx, uint64_t seed, double jitter,
         StepWriter writer, bool keep_records);
  void run();

  std::vector<std::vector<Rec>> records;  // by global rank, in order of their end
  std::vector<ns_t> step_begin;           // of rank 0
  ns_t end = 0;
  bool stuck = false;

 private:
  struct Item {
    Kind kind;
    int launches, event;
    std::vector<Sub> subs;
    double ns;
    ns_t ready;       // the CPU has launched it
    ns_t not_before;  // the last of its kernels has been launched
    uint64_t id;
  };
  struct Strm {
    std::deque<Item> items;
    bool busy = false;
    int subs_open = 0;
    ns_t alarm = -1;
  };
  struct Rank {
    Builder program;
    size_t pc = 0;
    int step = 0;
    ns_t cpu = 0;
    int waits_for = -1;  // event
    bool queue_full = false, finished = false, running = false;
    int queued = 0;
    uint64_t ids = 0;
    std::vector<bool> events;
    Strm streams[N_STREAMS];
    size_t cpu_stall = 0, gpu_stall = 0;
  };
  struct Side {  // one rank's part of an operation
    int rank, stream, peer;
    Func func;
    double bytes;
    int call;
    ns_t enqueue, start;
    bool ending;
  };
  struct Op {
    int comm;
    Func func;
    double bytes;
    int root, ended;
    std::vector<Side> sides;
  };
  struct Event {
    ns_t t;
    uint64_t sn;
    int type, a, b, c;
    bool operator<(const Event &o) const { return t > o.t || (t == o.t && sn > o.sn); }
  };
  enum { E_STREAM, E_KERNEL, E_SIDE, E_FLOW, E_CAP, E_TRANSFER };

  void post(ns_t t, int type, int a, int b = 0, int c = 0);
  void run_cpu(int r);
  void launch(Rank &k, int r, const Instr &in);
  void wake(int r, ns_t now);
  void advance(int r, int s, ns_t now);
  void begin(int r, int s, Item &it, ns_t now);
  void item_done(int r, int s, ns_t now);
  void begin_kernel(int r, int s, const Item &it, ns_t now);
  void begin_comm(int r, int s, const Item &it, ns_t now);
  void arrive(int r, int s, const Sub &sub, const Item &it, ns_t now);
  int op_of(int r, const Sub &sub, int &call);
  void complete(int op, ns_t now);
  void leave_early(int op, ns_t now);
  void all_end(int op, ns_t at);
  double alpha(const Op &op) const;
  Network::Load load_of(const Op &op);
  void post_flows();
  void end_side(int op, int side, ns_t now);
  void pass_stalls(const std::map<int, std::vector<Stall>> &all, int r, size_t &next, ns_t &t);
  void start_flow(int op, ns_t now);

  const Cluster &c_;
  const std::vector<Comm> &comms_;
  const Effects &fx_;
  uint64_t seed_;
  double jitter_;
  StepWriter writer_;
  bool keep_;
  Network net_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<int>> comm_rank_;               // of communicator and global rank
  std::vector<std::vector<int>> coll_calls_, p2p_calls_;  // by communicator and its rank
  std::unordered_map<uint64_t, std::deque<int>> open_;    // operations that lack members
  std::vector<Op> ops_;
  std::vector<int> free_ops_;
  std::unordered_map<int, Network::Load> loads_;  // of one byte, by communicator and function
  std::priority_queue<Event> heap_;
  uint64_t sn_ = 0;
};
