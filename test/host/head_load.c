/*
 * Clients of a head, many of them in one process: every second one an agent of ours, the others gsprof's; and
 * how quickly GetStatus is answered meanwhile.
 *
 *   head_load HOST:PORT CLIENTS GPUS PERIOD_MS SECONDS     1,000 s and 4,000 clients at most
 *
 * Prints a line "up" when all are connected, and at the end "sent N acknowledged N broken N calls N p50_ms X
 * p99_ms X max_ms X". An agent's sample n is its n-th; acknowledged: by all agents together. Ends by itself,
 * or when standard input ends.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "exporter/base/now.h"
#include "exporter/rpc/messages.h"
#include "exporter/rpc/rpc.h"

#define MS UINT64_C(1000000)
enum { MOST = 4000, CALLS = 1 << 16 };
struct client {
  struct ni_rpc *rpc;
  struct ni_rpc_call *call;
  char host[32];
  bool agent, welcome, over;
  uint64_t seq, have, due_ns;
};
static struct client client[MOST], control;
static uint64_t asked_ns, took_ns[CALLS], broken;
static size_t n_calls;

static void message(void *arg, struct ni_rpc_call *call, void *data, const void *bytes, size_t len) {
  struct client *c = data;
  struct ni_from_head m;
  (void)arg;
  (void)call;
  if (c == &control || !ni_head_decode(bytes, len, &m))
    return;
  c->welcome = true;
  c->have = m.have;
}

static void end(void *arg, struct ni_rpc_call *call, void *data, bool half, enum ni_rpc_status status,
                const char *text) {
  struct client *c = data;
  (void)arg;
  (void)call;
  (void)half;
  c->call = NULL;
  if (c == &control) {
    if (status == NI_RPC_OK && n_calls < CALLS)
      took_ns[n_calls++] = ni_now_ns(CLOCK_MONOTONIC) - asked_ns;
    return;
  }
  if (broken++ == 0)
    fprintf(stderr, "%s: %d %s\n", c->host, (int)status, text);
  c->over = true;
}

static void send_one(struct client *c, uint32_t gpus) {
  struct ni_pb_writer w = {0};
  struct ni_sample *s = ni_sample_new(gpus, 0, 0, 0);
  if (!s)
    exit(2);
  s->seq = ++c->seq;
  s->time_ns = (int64_t)ni_now_ns(CLOCK_REALTIME);
  s->memory = 0.5;
  s->disk = 0.25;
  for (uint32_t i = 0; i < gpus; i++) {
    struct ni_sample_gpu *g = &s->gpu[i];
    g->index = (int32_t)i;
    snprintf(g->name, sizeof g->name, "NVIDIA H100 80GB HBM3");
    g->util = (double)((s->seq * 7 + i) % 100) / 100;
    g->memory = 0.5;
    g->pcie_rx = 1e9;
    g->pcie_tx = 2e9;
  }
  if (c->agent)
    ni_sample_encode(&w, s, (int64_t)ni_now_ns(CLOCK_MONOTONIC));
  else {
    s->time_ns = 0;
    ni_update_encode(&w, c->host, s);
  }
  if (w.failed || ni_rpc_send(c->call, w.bytes, w.n) < 0)
    broken++;
  ni_pb_free(&w);
  free(s);
}

static void greet(struct client *c, size_t i, const char *at) {
  static const struct ni_rpc_options none;
  static const struct ni_rpc_handler handler = {NULL, message, end};
  char why[256];
  if (ni_rpc_connect(&c->rpc, at, &none, &handler, NULL, why, sizeof why) < 0)
    exit((fprintf(stderr, "%s\n", why), 1));
  if (c == &control)
    return;
  snprintf(c->host, sizeof c->host, "load%04zu", i);
  c->agent = i % 2;
  c->call = ni_rpc_begin(c->rpc, c->agent ? NI_HEAD_STREAM : NI_GSPROF "StreamMetrics", c);
  if (!c->agent)
    return;
  struct ni_hello h = {.protocol = NI_PROTOCOL, .version = "load", .first = 1, .next = 1};
  struct ni_pb_writer w = {0};
  snprintf(h.uuid, sizeof h.uuid, "%08zx-0000-4000-8000-000000000000", i + 1);
  memcpy(h.host, c->host, sizeof c->host);
  ni_hello_encode(&w, &h);
  if (w.failed || ni_rpc_send(c->call, w.bytes, w.n) < 0)
    exit(1);
  ni_pb_free(&w);
}

static void ask(void) {
  asked_ns = ni_now_ns(CLOCK_MONOTONIC);
  control.call = ni_rpc_begin(control.rpc, NI_GSPROF "GetStatus", &control);
  if (!control.call)
    return;
  ni_rpc_send(control.call, "", 0);
  ni_rpc_finish(control.call, NI_RPC_OK, "");
}

static int by_time(const void *a, const void *b) {
  return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
}

/* Sends what is due, turns who has something, each one at least once a second. */
static void turn(int epoll, size_t n, uint32_t gpus, uint64_t period_ns, bool sending) {
  struct epoll_event event[256];
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  static uint64_t all_ns;
  for (size_t i = 0; i < n && sending; i++) {
    struct client *c = &client[i];
    if (c->over || now < c->due_ns || (c->agent && !c->welcome))
      continue;
    c->due_ns += period_ns;
    if (c->due_ns < now)
      c->due_ns = now + period_ns;
    send_one(c, gpus);
    ni_rpc_turn(c->rpc);
  }
  int got = epoll_wait(epoll, event, 256, 1);
  for (int i = 0; i < got; i++)
    ni_rpc_turn(((struct client *)event[i].data.ptr)->rpc);
  if (now - all_ns > 1000 * MS) {
    for (size_t i = 0; i < n; i++)
      ni_rpc_turn(client[i].rpc);
    if (control.rpc)
      ni_rpc_turn(control.rpc);
    all_ns = now;
  }
}

int main(int argc, char **argv) {
  size_t n = argc > 5 ? strtoul(argv[2], NULL, 10) : 0;
  if (n < 1 || n > MOST)
    return 2;
  uint32_t gpus = (uint32_t)strtoul(argv[3], NULL, 10);
  uint64_t period_ns = strtoul(argv[4], NULL, 10) * MS, seconds = strtoul(argv[5], NULL, 10), sent = 0,
           acknowledged = 0;
  if (period_ns < MS || gpus > NI_SAMPLE_GPUS_MAX || seconds > 1000)
    return 2;
  struct rlimit l = {0};
  if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
  }
  int epoll = epoll_create1(0);
  for (size_t i = 0; i <= n; i++) {
    struct client *c = i < n ? &client[i] : &control;
    greet(c, i, argv[1]);
    epoll_ctl(epoll, EPOLL_CTL_ADD, ni_rpc_fd(c->rpc),
              &(struct epoll_event){.events = EPOLLIN, .data.ptr = c});
    if (i % 100 == 99)
      turn(epoll, i, gpus, period_ns, false);
  }
  uint64_t start = ni_now_ns(CLOCK_MONOTONIC);
  for (size_t i = 0; i < n; i++)
    client[i].due_ns = start + period_ns * i / n;
  printf("up\n");
  fflush(stdout);
  for (uint64_t now = start, next = start; now < start + seconds * 1000 * MS;
       now = ni_now_ns(CLOCK_MONOTONIC)) {
    struct pollfd in = {0, POLLIN, 0};
    char byte;
    if (now >= next) {
      next = now + 50 * MS;
      if (!control.call) {
        ask();
        ni_rpc_turn(control.rpc);
      }
      if (poll(&in, 1, 0) > 0 && fread(&byte, 1, 1, stdin) == 0)
        break;
    }
    turn(epoll, n, gpus, period_ns, true);
  }
  for (size_t i = 0; i < n; i++) {
    sent += client[i].seq;
    acknowledged += client[i].agent ? client[i].have : 0;
  }
  qsort(took_ns, n_calls, sizeof *took_ns, by_time);
  uint64_t none = 0, *took = n_calls ? took_ns : &none;
  size_t last = n_calls ? n_calls - 1 : 0;
  printf("sent %" PRIu64 " acknowledged %" PRIu64 " broken %" PRIu64
         " calls %zu p50_ms %.2f p99_ms %.2f max_ms %.2f\n",
         sent, acknowledged, broken, n_calls, (double)took[last / 2] / 1e6,
         (double)took[last * 99 / 100] / 1e6, (double)took[last] / 1e6);
  return 0; /* the sockets close */
}
