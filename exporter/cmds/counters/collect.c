/*
 * nccl-inspector counters collect: one reading of everything that NICs and GPUs count, into a file that
 * net_prof reads as well.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/cli/command.h"
#include "exporter/collect/collector.h"
#include "exporter/output/counters/sweep_json.h"

enum { NAMED = 20, THREADS = 16 };

struct collect {
  const char *from, *file;
  bool quiet;
};

/* Writes the file completely or not at all; "-" is standard output. 0, or -errno with a sentence in why. */
static int write_file(const struct collect *c, const struct ni_set *s, const struct ni_reading *r,
                      int64_t started, char *why, size_t cap) {
  const char *input = c->from ? c->from : "/sys/class/cxi";
  int64_t finished = (int64_t)ni_now_ns(CLOCK_REALTIME);
  struct ni_out_stream out;
  int e = ni_out_open(&out, strcmp(c->file, "-") != 0 ? c->file : NULL);
  if (e == 0)
    e = ni_sweep_json(out.f, s, r, input, started, finished);
  e = ni_out_close(&out, e, true);
  if (e < 0)
    snprintf(why, cap, "%s", out.why);
  return e;
}

/* Files and folders that could not be read, and those that are passed over on purpose. */
enum unread_kind { NOT_READ, LEFT_OUT };

/* Names on stderr paths of that kind. Returns how many. */
static size_t name_unread_paths(const struct ni_set *s, enum unread_kind kind, const char *name) {
  const char *what = kind == LEFT_OUT ? "left out" : "not read";
  size_t n = 0;
  NI_EACH(const struct ni_unread, u, s->unread, s->n_unread)
  if (u->skipped == (kind == LEFT_OUT) && n++ < NAMED)
    ni_say(stderr, "%s: %s: %s: %s\n", name, what, u->path, u->why);
  if (n > NAMED)
    ni_say(stderr, "%s: %s: and %s more\n", name, what, NI_COUNT(n - NAMED));
  return n;
}

/* Names on stderr counters that exist and could not be read. Returns how many. */
static size_t name_unread_counters(const struct ni_set *s, const struct ni_reading *r, const char *name) {
  size_t n = 0;
  for (size_t i = 0; i < s->n_counters; i++)
    if (r[i].state != NI_READ_OK && n++ < NAMED)
      ni_say(stderr, "%s: not read: %s %s\n", name, s->entity[s->counter[i].entity].name, s->counter[i].name);
  if (n > NAMED)
    ni_say(stderr, "%s: not read: and %s more\n", name, NI_COUNT(n - NAMED));
  return n;
}

static int collect_counters(const struct collect *c, const char *name) {
  struct ni_wanted wanted = {.all = true, .cxi_dir = c->from, .sources = c->from ? 1u << NI_METRIC_CXI : 0};
  struct ni_collector *collector = NULL;
  char why[512] = "", unreadable_text[64] = "";
  int64_t started = (int64_t)ni_now_ns(CLOCK_REALTIME);
  int code = NI_EXIT_COULD_NOT_RUN;
  ni_collector_raise_limit();
  int e = ni_collector_open(&collector, &wanted);
  const struct ni_set *s = collector ? ni_collector_set(collector) : NULL;
  struct ni_reading *r = s ? calloc(s->n_counters + 1, sizeof *r) : NULL;
  if (!r) {
    ni_say(stderr, "%s: %s\n", name, strerror(e ? -e : ENOMEM));
  } else {
    ni_collector_read(collector, r, THREADS);
    const size_t paths = name_unread_paths(s, NOT_READ, name);
    const size_t counters = name_unread_counters(s, r, name);
    if (!c->quiet)
      (void)name_unread_paths(s, LEFT_OUT, name);
    if (!s->n_counters)
      ni_say(stderr, "%s: nothing to read %s%s\n", name, c->from ? "in " : "here: no NIC or GPU that counts",
             c->from ? c->from : "");
    else if (write_file(c, s, r, started, why, sizeof why) < 0)
      ni_say(stderr, "%s: %s: %s\n", name, c->file, why);
    else {
      code = paths || counters ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
      if (counters)
        snprintf(unreadable_text, sizeof unreadable_text, ", %zu of them unreadable,", counters);
      if (!c->quiet)
        ni_say(stderr, "%s: %s counters of %s %s%s in %.3f s\n", c->file, NI_COUNT(s->n_counters),
               NI_COUNT(s->n_entities), ni_plural(s->n_entities, "source", "sources"), unreadable_text,
               (double)((int64_t)ni_now_ns(CLOCK_REALTIME) - started) / 1e9);
    }
  }
  free(r);
  ni_collector_close(collector);
  return code;
}

static int parse_file(const struct ni_opt *o, void *into, const char *arg) {
  struct collect *c = into;
  if (c->file)
    return -EINVAL;
  c->file = arg;
  return 0;
}

static const char *refuse_collect(void *into) {
  const struct collect *c = into;
  size_t n = c->file ? strlen(c->file) : 0;
  if (n > 3 && strcmp(c->file + n - 3, ".gz") == 0)
    return "FILE is plain JSON: net_prof reads no gzip. Name it .json";
  return c->file ? NULL : "where to? FILE, as before.json; - writes to standard output";
}

const struct ni_command ni_counters_collect_command = {
    .name = "counters collect",
    .need = NI_NEED_COUNTERS,
    .purpose = "reads all that NICs and GPUs count into a file",
    .about = "Reads everything that NICs and GPUs count, once, into a file: one before a run, one after it.",
    .synopsis = "[OPTION...] FILE",
    .refuse = refuse_collect,
    .run = ni_counters_collect_run,
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_TAKE, "FILE", NULL, .want = "one file", .take = parse_file},
            {"from", 0, NI_OPT_TEXT, "DIR",
             "Only Cassini's counters, from there: a folder of cxiN, or one NIC's telemetry",
             NI_INTO(struct collect, from), .min = 1},
            {"quiet", 'q', NI_OPT_FLAG, NULL, "Only what could not be read", NI_INTO(struct collect, quiet)},
            {0}},
    .more =
        "The file is net_prof's JSON: net_prof summarizes two of them, and so does `counters summarize`, "
        "which also reads what other fabrics and GPUs have in them.",
    .exits = {{"0", "done"},
              {"1", "could not run: nothing to read, or FILE cannot be written"},
              {"2", "something could not be read; the rest is in FILE"}},
    .examples = {{"before.json", "then the job, then the same with after.json"},
                 {"--from /sys/class/cxi before.json", "Cassini's NICs alone"}}};

int ni_counters_collect_run(int argc, char **argv) {
  struct collect c = {0};
  int done, code = ni_words_parse(&ni_counters_collect_command, argc, argv, &c, &done);
  return done ? code : collect_counters(&c, argv[0]);
}
