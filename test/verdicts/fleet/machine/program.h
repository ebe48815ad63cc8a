// What the CPU thread of a rank does in one step, instruction by instruction.
//
// The CPU runs ahead: a kernel or an NCCL call is put into a stream and takes place later. It stops only
// where a real framework stops: at loss.item(), a batch that is not there, a checkpoint, or a full launch
// queue.
#pragma once

#include <cstdint>
#include <vector>

#include "world.h"

enum class Do : uint8_t { Cpu, Pause, Kernel, Coll, Group, Join, Sync, Barrier };
enum class Work : uint8_t { Compute, Copy };     // Copy: host to device, by PCIe
enum class CpuWork : uint8_t { Code, Storage };  // Storage: waits for a disk, whatever the CPU's clock

struct Message {
  int peer;  // rank in the communicator
  bool send;
  int64_t bytes;
};

struct Instr {
  Do what;
  Work work = Work::Compute;
  CpuWork cpu = CpuWork::Code;
  Func func = Func::AllReduce;
  double seconds = 0;
  int launches = 1;
  int comm = -1;
  int handle = -1;  // Join, Sync: of what; Coll, Group: it runs after this item, -2: after the compute stream
  int64_t bytes = 0;
  const char *type = "ncclBfloat16";
  int root = 0;
  int tag = -1;  // Pause: the cause that it is of
  std::vector<Message> messages = {};
};

class Tape {
 public:
  std::vector<Instr> code;
  int items = 0;  // kernels, operations and joins get numbers in order

  void clear() {
    code.clear();
    items = 0;
    last_compute_ = -1;
  }
  void cpu(double seconds, CpuWork kind = CpuWork::Code) {
    Instr i{Do::Cpu};
    i.seconds = seconds;
    i.cpu = kind;
    code.push_back(i);
  }
  int kernel(double seconds, int launches, Work work = Work::Compute) {
    Instr i{Do::Kernel};
    i.seconds = seconds;
    i.launches = launches;
    i.work = work;
    code.push_back(i);
    return last_compute_ = items++;
  }
  // after: an item of this step that the operation's input comes from; -2: all that the compute stream has so
  // far; -1: nothing.
  int coll(int comm, Func func, int64_t bytes, const char *type, int after = -2, int root = 0) {
    Instr i{Do::Coll};
    i.comm = comm;
    i.func = func;
    i.bytes = bytes;
    i.type = type;
    i.handle = after;
    i.root = root;
    code.push_back(i);
    return items++;
  }
  int group(int comm, std::vector<Message> messages, const char *type) {
    Instr i{Do::Group};
    i.comm = comm;
    i.messages = std::move(messages);
    i.type = type;
    i.handle = -2;
    code.push_back(std::move(i));
    return items++;
  }
  // The compute stream waits for an item (work.wait()).
  int join(int handle) {
    Instr i{Do::Join};
    i.handle = handle;
    code.push_back(i);
    return last_compute_ = items++;
  }
  // The CPU waits for an item.
  void sync(int handle) {
    if (handle < 0)
      return;
    Instr i{Do::Sync};
    i.handle = handle;
    code.push_back(i);
  }
  void sync_compute() { sync(last_compute_); }
  // All ranks wait for each other on their CPUs (gloo, TCPStore): NCCL sees nothing of it.
  void barrier() { code.push_back(Instr{Do::Barrier}); }

 private:
  int last_compute_ = -1;
};
