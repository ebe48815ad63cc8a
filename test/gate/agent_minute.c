/*
 * The agent's work of a minute, one part after the other in one process, for the gate. The daemon itself
 * reads by child processes at real times, and no two of its minutes take the same instructions.
 *
 *   agent_minute LOG_DIR NODE BOX_DIR      writes agent.state in the working folder
 *
 * reads_logs():  what a reader does with the logs of a node, and what the agent does with its batches
 * one_minute():  60 seconds of the agent: a look by the reader and a tick in each, the state saved every 5 s,
 *                and every 15 s an answer to /metrics and one to /v1/now
 *
 * Prints "records N bytes N": of the logs, and of all answers. Exit status: 0; 1 with a message.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/agent/reader/watch.h"
#include "exporter/model/live/checkpoint.h"
#include "exporter/model/live/live_tick.h"
#include "exporter/output/metrics/now.h"
#include "exporter/output/metrics/text.h"

enum { SECONDS = 60, SAVE_EVERY = 5, ASK_EVERY = 15 };
static const uint64_t S = 1000000000, BEGAN_NS = UINT64_C(1790000000) * 1000000000u;
static struct ni_live live;
static struct ni_watch *watch;
static uint64_t mono_ns = UINT64_C(5000) * 1000000000u, answered;

static void must(bool truth, const char *what) {
  if (truth)
    return;
  fprintf(stderr, "agent_minute: %s\n", what);
  exit(1);
}

static uint64_t unix_ns(void) { return BEGAN_NS + mono_ns; }

/* As the pipe between a reader and the agent has it: a batch is bytes in between. */
static int apply(void *arg, const struct ni_live_batch *b) {
  struct ni_live_batch got;
  size_t bytes, took;
  void *p = ni_live_encode(b, &bytes);
  (void)arg;
  must(p && ni_live_decode(&got, p, bytes, &took) == 1, "a batch does not come through");
  int e = ni_live_apply(&live, &got, unix_ns(), mono_ns);
  free(p);
  return e;
}

__attribute__((noinline)) static void reads_logs(void) {
  bool more = true;
  while (more)
    must(ni_watch_turn(watch, apply, NULL, &more) == 0, "a turn of the reader failed");
}

static void answer(bool metrics) {
  struct ni_agent_self self = {.node = "node-0", .version = "0", .began_ns = BEGAN_NS};
  const struct ni_metrics_in in = {.live = &live, .self = &self, .unix_ns = unix_ns(), .mono_ns = mono_ns};
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  must(f != NULL, "no memory");
  if (metrics)
    must(ni_metrics_text(f, &in, false) == 0, "no memory");
  else
    ni_now_json(f, &in);
  must(fclose(f) == 0, "no memory");
  answered += bytes;
  free(text);
}

__attribute__((noinline)) static void one_minute(int folder) {
  for (int s = 1; s <= SECONDS; s++) {
    mono_ns += S;
    reads_logs();
    (void)ni_live_tick(&live, mono_ns, 600 * S);
    if (s % SAVE_EVERY == 0)
      must(ni_live_save(&live, folder, "agent.state", mono_ns) == 0, "agent.state cannot be written");
    if (s % ASK_EVERY)
      continue;
    answer(true);
    answer(false);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: agent_minute LOG_DIR NODE BOX_DIR\n");
    return 64;
  }
  const struct ni_watch_settings s = {.uid = getuid(),
                                      .box_dir = argv[3],
                                      .node = argv[2],
                                      .log_dir = &argv[1],
                                      .n_log_dirs = 1,
                                      .stuck_ns = 300 * S};
  int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  must(folder >= 0 && ni_watch_open(&watch, &s, NULL) == 0, "cannot begin");
  reads_logs();
  uint64_t records = 0;
  for (size_t i = 0; i < live.n_funcs; i++)
    records += live.func[i].records;
  must(records > 0, "no records were read");
  one_minute(folder);
  printf("records %llu bytes %llu\n", (unsigned long long)records, (unsigned long long)answered);
  ni_watch_close(watch);
  ni_live_free(&live);
  close(folder);
  return 0;
}
