/*
 * The whole plugin driven through its callbacks, in a forked child whose state is empty (state.h), so that
 * each test has settings of its own. For test programs of one file.
 */
#ifndef NI_TEST_CORE_CHILD_H
#define NI_TEST_CORE_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/callbacks/callbacks.h"
#include "plugin/callbacks/callbacks_channel.h"
#include "plugin/callbacks/callbacks_event.h"
#include "plugin/callbacks/callbacks_proxy.h"
#include "plugin/callbacks/chan_trace.h"
#include "plugin/drain/collect.h"
#include "plugin/drain/event_drain.h"
#include "plugin/drain/judge.h"
#include "plugin/drain/settle.h"
#include "plugin/dump/closing.h"
#include "plugin/dump/session.h"
#include "plugin/dump/tick.h"
#include "plugin/write/accounts.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"
#include "plugin/slots/state.h"
#include "plugin/callbacks/event_masks.h"
#include "plugin/os/futex.h"
#include "plugin/life/lifecycle.h"

static char dir[] = "/tmp/ni_core_XXXXXX";
static int mask;

static inline void *open_comm_of(uint64_t hash, int *nccl_mask) { /* of an NCCL that has its mask there */
  void *ctx = NULL;
  struct ni_init_args a = {.comm_hash = hash, .comm_name = "core", .n_nodes = 1, .n_ranks = 2};
  ni_init(6, &ctx, nccl_mask, &a);
  return ctx;
}
static inline void *open_comm(uint64_t hash) { return open_comm_of(hash, &mask); }

static inline void *start_op(void *ctx, uint64_t sn, int channels) {
  struct ni_start d = {.sn = sn,
                       .func = "AllReduce",
                       .datatype = "ncclFloat32",
                       .algo = "RING",
                       .proto = "LL",
                       .count = 1024,
                       .nchannels = (uint8_t)channels,
                       .group = ni_cb_group_start(ctx)};
  return ni_cb_op_start(ctx, NI_KIND_COLL, &d);
}

/* A channel of an operation, 100 ns long by the GPU's clock. */
static inline void channel(void *op, uint32_t ch, uint64_t gpu_ns) {
  void *h = ni_cb_channel_start(op, ch, gpu_ns);
  ni_cb_channel_stamp(h, gpu_ns + 100);
  ni_cb_stop(h);
}

/*
 * One operation on one channel from start to end. gpu_ns 0: without stamps. Returns the KernelCh's handle,
 * now stale.
 */
static inline void *run_op(void *ctx, uint64_t sn, uint64_t gpu_ns) {
  void *op = start_op(ctx, sn, 1), *ch = ni_cb_channel_start(op, 0, gpu_ns);
  ni_cb_stop(op);
  ni_cb_channel_stamp(ch, gpu_ns ? gpu_ns + 1000 : 0);
  ni_cb_stop(ch);
  return ch;
}

static inline struct ni_comm *comm_at(void *ctx) {
  return ni_arena_comm(&ni_g.arena, ni_payload_index(ni_handle_payload(ctx, ni_g.nonce)));
}

static inline struct ni_op *slot_of(void *op) {
  return ni_arena_op(&ni_g.arena, ni_payload_index(ni_handle_payload(op, ni_g.nonce)));
}

static inline void sleep_ms(unsigned ms) { usleep(ms * 1000); }
static inline uint64_t now_ms(void) { return ni_monotonic_ns() / 1000000; }

/* In the child: a failed condition is its exit status, by line. */
#define CHECK(c) \
  do { \
    if (!(c)) { \
      fprintf(stderr, "line %d: " #c "\n", __LINE__); \
      _exit(1); \
    } \
  } while (0)

/* The whole log of this process. */
static inline char *log_text(void) {
  static char text[1 << 20];
  char cmd[128];
  snprintf(cmd, sizeof cmd, "cat %s/*-pid%d-* 2>/dev/null", dir, (int)getpid());
  FILE *f = popen(cmd, "r");
  CHECK(f);
  size_t n = fread(text, 1, sizeof text - 1, f);
  pclose(f);
  text[n] = 0;
  return text;
}

static inline int lines_with(const char *text, const char *a, const char *b) {
  int n = 0;
  for (const char *line = text, *end; *line; line = end + 1) {
    end = strchrnul(line, '\n');
    const char *x = strstr(line, a), *y = strstr(line, b);
    n += x && y && x < end && y < end;
    if (!*end)
      break;
  }
  return n;
}

static inline void in_child(void (*fn)(void), const char *const *settings) {
  pid_t pid = fork();
  assert_int_not_equal(pid, -1);
  if (pid == 0) {
    setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
    setenv("NCCL_INSPECTOR_DUMP_DIR", dir, 1);
    setenv("NCCL_INSPECTOR_DUMP_FORMAT", "jsonl", 1);
    setenv("NCCL_INSPECTOR_GPU_CLOCK_KHZ", "1000000", 1); /* no library says it: the mask is ours */
    /* a child that ends by _exit leaves its box behind */
    setenv("NCCL_INSPECTOR_BLACKBOX", "0", 1);
    for (; settings && settings[0]; settings += 2)
      setenv(settings[0], settings[1], 1);
    fn();
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

static inline int make_dir(void **state) {
  (void)state;
  return mkdtemp(dir) ? 0 : -1;
}
static inline int remove_dir(void **state) {
  (void)state;
  char cmd[64];
  snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
  return system(cmd);
}

#endif
