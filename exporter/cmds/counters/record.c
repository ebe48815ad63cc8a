/*
 * nccl-inspector counters record: a time series of counters, until a signal or for a time.
 */
#include <errno.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "recorder.h"

struct record {
  struct ni_record_options o;
  uint64_t for_ns; /* 0: until a signal */
};

static int take_dir(const struct ni_opt *o, void *into, const char *arg) {
  struct record *r = into;
  (void)o;
  if (r->o.dir || !*arg) return -EINVAL;
  r->o.dir = arg;
  return 0;
}

static const char *refuse(void *into) {
  return ((struct record *)into)->o.dir ? NULL : "where to? give the folder of the job's logs, or another one";
}

const struct ni_command ni_counters_record_command = {
    .name = "counters record", .need = NI_NEED_COUNTERS, .purpose = "a time series of what NICs, GPUs and the host count",
    .about = "Writes what NICs, GPUs and the host count into DIR, as a file beside a job's logs, until it is told to end.",
    .opt = (const struct ni_opt[]){
        {NULL, 0, NI_OPT_TAKE, "DIR", NULL, .take = take_dir, .want = "one folder"},
        NI_ROWS_SAMPLING(struct record),
        {"for", 0, NI_OPT_TAKE, "TIME", "End after that time: 30s, 10m, 2h; else by SIGINT, SIGTERM or SIGHUP",
         NI_INTO(struct record, for_ns), .take = ni_take_time, .want = "a time from 10ms on, such as 30s, 10m or 2h"},
        NI_ROW_CPUS(struct record),
        {0}},
    .more = "It takes only processor time that nobody else wants. All counters are read at both ends.\n"
            "Whoever kills it with SIGKILL loses the last 10 s at most.",
    .exits = {{"0", "ended as it was told, all is in the file"}, {"1", "could not run, or not all is in the file"}},
    .examples = {{"logs/ &", "beside a job, from its launcher's prolog"}, {"--every 100ms --for 30s /tmp/series", "a close look"}},
    .files = {{"HOST-counters-START.jsonl.gz", "in DIR: lines as docs/format.md has them"}},
    .refuse = refuse, .run = ni_counters_record_run};

int ni_counters_record_run(int argc, char **argv) {
  struct record r = {0};
  struct ni_recorder recorder = {0};
  int done, code = ni_words_parse(&ni_counters_record_command, argc, argv, &r, &done);
  if (!done) {
    int signals = ni_end_signals(0);
    ni_collector_raise_limit();
    code = ni_recorder_start(&recorder, &r.o, argv[0], false) == NI_EXIT_FINE ? NI_EXIT_FINE : NI_EXIT_COULD_NOT_RUN;
    if (code == NI_EXIT_FINE) {
      struct pollfd p[] = {{.fd = signals, .events = POLLIN}, {.fd = recorder.done, .events = POLLIN}};
      (void)ni_wait_until(p, 2, r.for_ns ? ni_now_ns(CLOCK_MONOTONIC) + r.for_ns : UINT64_MAX);
      if (!ni_recorder_stop(&recorder)) code = NI_EXIT_COULD_NOT_RUN;
    }
    close(signals);
  }
  ni_words_free(&r.o.counters);
  ni_ranks_free(&r.o.cpus);
  return code;
}
