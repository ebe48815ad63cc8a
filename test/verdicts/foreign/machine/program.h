// What a rank's CPU thread does: a list of instructions, built step by step by a shape.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include "cluster.h"

enum Func { ALLREDUCE, ALLGATHER, REDUCESCATTER, BROADCAST, ALLTOALL, SEND, RECV };
enum Kind { I_CPU, I_LOADER, I_KERNEL, I_COMM, I_RECORD, I_WAIT, I_SYNC, I_SLEEP };
enum Stream { S_COMPUTE = 0, N_STREAMS = 8 };  // 1.. are for communication, as shapes like

// One operation of a kernel that does several (ncclGroupStart ... ncclGroupEnd).
struct Sub {
  int comm;
  Func func;
  double bytes;  // as NCCL hands it over
  int peer;      // rank in the communicator, of Send and Recv; the root of Broadcast
};

struct Instr {
  Kind kind;
  int stream;
  int launches;  // of I_KERNEL; event of I_RECORD, I_WAIT, I_SYNC
  double ns;     // time on CPU or GPU
  int first_sub;
  int n_subs;
};

struct Comm {
  std::vector<int> members;  // global ranks, in order of the communicator's ranks
  const char *name;
  int dtype_bytes;
};

// Builds the program of one rank for one step.
class Builder {
 public:
  std::vector<Instr> code;
  std::vector<Sub> subs;
  int next_event = 0;
  double launch_scale = 1;  // kernels per unit: small kernels cost the CPU more

  void cpu(double ns) { code.push_back({I_CPU, 0, 0, ns, 0, 0}); }
  void loader(double ns) { code.push_back({I_LOADER, 0, 0, ns, 0, 0}); }
  void sleep(double ns) { code.push_back({I_SLEEP, 0, 0, ns, 0, 0}); }

  void kernel(double ns, int launches, int stream = S_COMPUTE) {
    code.push_back({I_KERNEL, stream, launches, ns, 0, 0});
  }

  int record(int stream) {
    int event = next_event++;
    code.push_back({I_RECORD, stream, event, 0, 0, 0});
    return event;
  }

  void wait(int stream, int event) { code.push_back({I_WAIT, stream, event, 0, 0, 0}); }

  // The CPU waits until all that is in the stream is done.
  void sync(int stream = S_COMPUTE) {
    int event = record(stream);
    code.push_back({I_SYNC, stream, event, 0, 0, 0});
  }

  void comm(int stream, const std::vector<Sub> &list) {
    if (list.empty())
      return;
    code.push_back({I_COMM, stream, 1, 0, (int)subs.size(), (int)list.size()});
    // Sizes are whole elements, of aligned buffers.
    for (Sub s : list) {
      double unit = s.bytes >= 4096 ? 512 : 4;
      s.bytes = std::max(unit, std::floor(s.bytes / unit) * unit);
      subs.push_back(s);
    }
  }

  // As PyTorch does it: the communication stream waits for what was computed. The event
  // returned is when it is done.
  int async(int stream, const std::vector<Sub> &list) {
    wait(stream, record(S_COMPUTE));
    comm(stream, list);
    return record(stream);
  }

  // The same, and the compute stream waits for it.
  void blocking(int stream, const std::vector<Sub> &list) { wait(S_COMPUTE, async(stream, list)); }

  int async(int stream, int c, Func f, double bytes) { return async(stream, {{c, f, bytes, 0}}); }
  void blocking(int stream, int c, Func f, double bytes) { blocking(stream, {{c, f, bytes, 0}}); }
};
