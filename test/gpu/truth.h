/*
 * What the GPU driver did, one text line each, for the checker. One file per rank: <dir>/truth-<rank>.txt.
 *
 *   process pid=4242 rank=0 ranks=2 nccl=22809 layout=hostid device=NVIDIA_H200 cc=9 cuda=13000
 *   env NCCL_ALGO=Ring                          settings of NCCL and of the plugin that the checker must know
 *   comm name=ni-world rank=0 ranks=2
 *   op comm=ni-world group=0 func=AllReduce dtype=ncclFloat32 bytes=8 root=0 peer=-1 how=eager event_ns=21000
 *      call_ns=9000 tag=0
 *   gap ns=4100                                 time between two events with one small memset between them
 *   skip plan=sweep what=AllReduce/268435456 why=time
 *   cost what=enqueue n=640 ns=8123             see plan_cost.c
 *   end comm=ni-world how=destroy
 *   done                                        the rank came to its end
 *
 * `bytes` is what NCCL's descriptor will carry: count x element size, for AllGather and ReduceScatter one
 * rank's share. group: what comes in any order has one number, above 0: operations of one ncclGroupEnd;
 * replays and what is issued behind them. how: eager, group, graph (one line per replay), lost (issued, never
 * finished: before an abort). event_ns: CUDA events around the call, 0: not timed. call_ns: the host's time
 * in the call. tag: given with the call, 0 none. Lines of one communicator are in the order of issue.
 */
#ifndef NI_TEST_GPU_TRUTH_H
#define NI_TEST_GPU_TRUTH_H

#include <stdint.h>

#define NI_TRUTH_NAME 64

struct ni_gpu_op {
  char comm[NI_TRUTH_NAME];
  char func[20], dtype[20], how[8];
  uint64_t group, bytes, event_ns, call_ns, tag;
  int root, peer;
};

#define NI_GPU_OP_FORMAT \
  "op comm=%s group=%llu func=%s dtype=%s bytes=%llu root=%d peer=%d how=%s event_ns=%llu call_ns=%llu " \
  "tag=%llu\n"
#define NI_GPU_OP_SCAN \
  "op comm=%63s group=%llu func=%19s dtype=%19s bytes=%llu root=%d peer=%d how=%7s event_ns=%llu " \
  "call_ns=%llu tag=%llu"

#endif
