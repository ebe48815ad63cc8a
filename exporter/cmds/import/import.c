/*
 * nccl-inspector import: logs of what another program recorded. The command line, and the phases one after
 * the other.
 *
 *   read: each process (recordings.h) ─▶ cycles; then, of each cycle:
 *   settle: who is who ─▶ number: all ranks ─▶ write: each one's log
 *
 * Each cycle of a profiler with a schedule is settled, numbered and written by itself, into a folder of its
 * own. Nothing is written before all files were read. Memory: that of one rank's operations (imported.h), and
 * align.h's of all.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/plural.h"
#include "exporter/cli/command.h"
#include "log.h"
#include "recordings.h"
#include "settle.h"

struct import {
  struct ni_inputs words, inputs; /* the format, then paths */
  const char *out;
  unsigned ranks_per_host;
  bool quiet;
  struct ni_progress progress;
  const struct ni_import_format *format;
  struct ni_recordings all;
  uint32_t cycle;            /* at hand */
  struct ni_align align;     /* of that */
  struct ni_settled settled; /* of all cycles */
  int dir;                   /* for the logs of the cycle at hand */
  char into[PATH_MAX];       /* what that is called */
};

static const char *refuse_import(void *into) {
  struct import *x = into;
  if (!(x->format = ni_import_format(x->words.path[0])))
    return "the first word is the format; it reads: kineto, nsys, accl";
  return x->out ? NULL : "where to? give --out LOGS";
}

#define IN(member) NI_INTO(struct import, member)
const struct ni_command ni_import_command = {
    .name = "import",
    .need = NI_NEED_AFTER,
    .purpose = "logs from what torch.profiler, Nsight Systems or ACCL recorded, for all other commands",
    .about =
        "Makes logs of what another program recorded, so that summary, show, check, trace, diff and hang "
        "work on a job that ran without the plugin.",
    .synopsis = "kineto|nsys|accl [OPTION...] FILE|DIR... --out LOGS",
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_INPUTS, "FORMAT FILE|DIR...", NULL, IN(words), .min = 2,
             .want =
                 "what is to be imported? give the format, then files or folders: kineto traces/ --out logs"},
            {"out", 'o', NI_OPT_TEXT, "LOGS",
             "The folder for the logs, a file each rank; made where it is missing", IN(out), .min = 1,
             .want = "a folder"},
            {"ranks-per-host", 0, NI_OPT_NUMBER, "N",
             "Hosts that a file does not state: ranks 0 to N-1 are on the first one, and so on",
             IN(ranks_per_host), .min = 1, .max = 1024},
            NI_ROW_PROGRESS(struct import),
            {"quiet", 'q', NI_OPT_FLAG, NULL, "Only what is wrong", IN(quiet)},
            {0}},
    .more =
        "kineto: what torch.profiler exports (.json, .json.gz), a file each rank; of a folder all of them.\n"
        "nsys: what `nsys export --type sqlite` makes of a report (.sqlite), a file each rank or each host.\n"
        "accl: logs of ACCL, AMD's profiler plugin for RCCL (accl_profiler_rank*.jsonl).\n"
        "What a source does not say is absent from the logs, never guessed: docs/import.md has the list.",
    .exits = {{"0", "all there"},
              {"1", "could not run; no log was written"},
              {"2", "written, but a file was left out, or operations of a rank could not be told"}},
    .examples = {{"kineto traces/ --out logs", "then nccl-inspector summary logs"},
                 {"nsys reports/ --out logs",
                  "of nsys export --type sqlite --include-blobs=true: with sizes and communicators"},
                 {"kineto rank*.json.gz --out logs --ranks-per-host 8",
                  "where neither files nor their names say the host"}},
    .refuse = refuse_import,
    .run = ni_import_run};
#undef IN

/* ---- a cycle ------------------------------------------------------------------------------------------- */

/* Settles communicators and ranks, by all files of the current cycle together. */
static int settle_cycle(struct import *x) {
  struct ni_settled found;
  struct ni_imported **m = malloc((x->all.n + 1) * sizeof *m);
  if (!m)
    return -ENOMEM;
  size_t n = 0;
  for (size_t i = 0; i < x->all.n; i++)
    if (x->all.item[i].cycle == x->cycle)
      m[n++] = &x->all.item[i].m;
  const int e = ni_import_settle(m, n, &found);
  free(m);
  if (e < 0)
    return e;
  x->settled.ranks += found.ranks;
  if (found.ranks)
    x->settled.job = found.job;
  x->settled.seated += found.seated;
  x->settled.by_gpu += found.by_gpu;
  x->settled.alone += found.alone;
  return 0;
}

/* Aligns the numbers of operations of all ranks in the current cycle. */
static int align_numbers(struct import *x) {
  int e = 0;
  ni_align_free(&x->align);
  for (size_t i = 0; e == 0 && i < x->all.n; i++) {
    struct ni_imported *m = &x->all.item[i].m;
    if (x->all.item[i].cycle != x->cycle || m->numbered)
      continue;
    e = ni_recordings_load(&x->all, i);
    if (e == 0)
      e = ni_align_add(&x->align, (uint32_t)i, m);
    ni_recordings_unload(&x->all, i);
  }
  return e == 0 ? ni_align_find(&x->align) : e;
}

/* If there are several cycles, each has a folder below --out. */
static int enter_cycle(struct import *x) {
  char why[512];
  snprintf(x->into, sizeof x->into, "%s", x->out);
  x->dir = x->all.dir;
  if (x->all.cycles == 1)
    return 0;
  snprintf(x->into, sizeof x->into, "%s/cycle-%u", x->out, x->cycle + 1);
  x->dir = ni_out_dir(x->into, true, why, sizeof why);
  if (x->dir < 0)
    ni_say(stderr, "%s: %s: %s\n", x->all.who, x->into, why);
  return x->dir < 0 ? x->dir : 0;
}

static void leave_cycle(struct import *x) {
  if (x->dir >= 0 && x->dir != x->all.dir)
    close(x->dir);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/*
 * Chooses the host: what the file states, else what the user states, else a name that says that it is
 * unknown. Then no two ranks share a host.
 */
static void choose_host(const struct import *x, const struct ni_imported *m, char out[256]) {
  if (*m->host)
    snprintf(out, 256, "%s", m->host);
  else if (m->rank >= 0 && x->ranks_per_host)
    snprintf(out, 256, "host%u", (unsigned)m->rank / x->ranks_per_host);
  else if (m->rank >= 0)
    snprintf(out, 256, "unknown-rank%d", m->rank);
  else
    snprintf(out, 256, "unknown");
}

/*
 * Counts earlier ranks with the same name. Containers have their own pids, so those of one host may be equal;
 * and a source may state none.
 */
static size_t count_same_names(const struct import *x, size_t rank, const char *host) {
  const struct ni_imported *m = &x->all.item[rank].m;
  size_t n = 0;
  for (size_t i = 0; i < rank; i++) {
    const struct ni_imported *o = &x->all.item[i].m;
    char its[256];
    if (o->pid != m->pid || o->first_ns / 1000000000 != m->first_ns / 1000000000)
      continue;
    choose_host(x, o, its);
    n += strcmp(its, host) == 0;
  }
  return n;
}

static void report_rank(const struct import *x, const struct ni_imported *m, const char *host,
                        const char *name) {
  char rank[64] = "no rank";
  const char *by = m->rank_of_name ? " (by the file's name)"
      : m->rank_of_comm            ? " (by the communicator of all)"
                                   : "";
  if (m->rank >= 0)
    snprintf(rank, sizeof rank, "rank %d%s", m->rank, by);
  if (!x->quiet)
    ni_say(stdout, "%s: %s on %s, %zu %s, %zu %s: %s/%s\n", m->path, rank, host, m->n,
           ni_plural(m->n, "operation", "operations"), m->n_steps, ni_plural(m->n_steps, "step", "steps"),
           x->into, name);
}

static int write_rank(struct import *x, size_t i) {
  struct ni_imported *m = &x->all.item[i].m;
  struct ni_import_log l = {.m = m,
                            .align = &x->align,
                            .file = (uint32_t)i,
                            .mechanism = x->format->mechanism,
                            .source = x->format->source};
  char host[256];
  choose_host(x, m, host);
  l.host = host;
  l.before = count_same_names(x, i, host);
  int e = ni_recordings_load(&x->all, i);
  if (e == 0)
    e = ni_import_log(&l, x->dir);
  if (e < 0)
    ni_say(stderr, "%s: %s: %s\n", x->all.who, x->into, *l.why ? l.why : strerror(-e));
  else
    report_rank(x, m, host, l.name);
  ni_recordings_unload(&x->all, i);
  return e;
}

static int write_all(struct import *x) {
  int e = 0;
  ni_progress_begin(&x->progress, "write", x->all.n, false, x->all.n);
  for (size_t i = 0; e == 0 && i < x->all.n; i++) {
    if (x->all.item[i].cycle != x->cycle)
      continue;
    e = write_rank(x, i);
    ni_progress_add(&x->progress, 1, 1);
  }
  ni_progress_end(&x->progress);
  return e;
}

/* ---- what is worth knowing ----------------------------------------------------------------------------- */

/*
 * Reports from whom to whom, from the side of the receiver, or of the sender if that is the one that is
 * apart.
 */
static void report_messages(const struct import *x, const struct ni_align_seat *s) {
  const struct ni_imported_comm *c = &x->all.item[s->file].m.comm[s->comm];
  const int32_t peer = (int32_t)((s->of - 1) / 2);
  ni_say(stdout,
         "messages from rank %d to rank %d of communicator %s (0x%" PRIx64
         "): which one sent is which one received cannot be "
         "told; they are not compared\n",
         s->rank ? peer : c->rank, s->rank ? c->rank : peer, c->name, c->hash);
}

/* Messages between two ranks of which one recorded earlier ones, and those of which nobody can tell. */
static size_t report_pairs(const struct import *x) {
  size_t apart = 0, how[NI_ALIGN_APART + 1] = {0}, later = 0;
  NI_EACH(const struct ni_align_seat, s, x->align.seat, x->align.n) {
    if (!s->of)
      continue;
    const bool is_later = s->how != NI_ALIGN_APART && s->ahead > 0;
    later += is_later;
    how[s->how] += is_later;
    if (s->how == NI_ALIGN_APART && apart++ < 4)
      report_messages(x, s);
  }
  if (apart > 4)
    ni_say(stdout, "... and messages of %zu more\n", apart - 4);
  if (!x->quiet && later)
    ni_say(stdout,
           "messages between %zu %s of ranks begin later on one side: told by steps of %zu, by when they "
           "ended of %zu, at once of the rest\n",
           later, ni_plural(later, "pair", "pairs"), how[NI_ALIGN_STEPS], how[NI_ALIGN_ENDS]);
  return apart;
}

/* Ranks of communicators whose operations were laid upon others', and those of which nobody can tell. */
static size_t report_numbers(const struct import *x) {
  size_t apart = 0, how[NI_ALIGN_APART + 1] = {0}, later = 0;
  NI_EACH(const struct ni_align_seat, s, x->align.seat, x->align.n) {
    if (s->of)
      continue;
    how[s->how]++;
    later += s->how != NI_ALIGN_SEQ && s->how != NI_ALIGN_APART && s->ahead > 0;
    if (s->how != NI_ALIGN_APART || apart++ >= 4)
      continue;
    const struct ni_imported *m = &x->all.item[s->file].m;
    ni_say(stdout,
           "rank %d of communicator %s (0x%" PRIx64
           "): which of its operations is which of the other ranks' cannot be told; "
           "it is not compared with them\n",
           s->rank, m->comm[s->comm].name, s->hash);
  }
  if (apart > 4)
    ni_say(stdout, "... and %zu more\n", apart - 4);
  if (!x->quiet && later)
    ni_say(stdout,
           "%zu %s of communicators later than the first one: told by steps of %zu, by when operations ended "
           "of %zu, at once of the rest\n",
           later, ni_plural(later, "rank begins", "ranks begin"), how[NI_ALIGN_STEPS], how[NI_ALIGN_ENDS]);
  return apart;
}

static void report_operations(uint64_t n, const char *have) {
  if (n)
    ni_say(stdout, "%" PRIu64 " %s %s\n", n, ni_plural(n, "operation has", "operations have"), have);
}

static void report_absent(const struct import *x) {
  uint64_t ops = 0, unlaunched = 0, unsized = 0, ungrouped = 0, bad = 0;
  size_t hostless = 0, timeless = 0, dateless = 0;
  for (size_t i = 0; i < x->all.n; i++) {
    const struct ni_imported *m = &x->all.item[i].m;
    ops += m->n;
    unlaunched += m->unlaunched;
    unsized += m->unsized;
    ungrouped += m->ungrouped;
    bad += m->bad;
    timeless += m->numbered;
    dateless += m->undated;
    hostless += !*m->host && !(x->ranks_per_host && m->rank >= 0);
  }
  ni_say(stdout, "%zu %s, %" PRIu64 " %s in %s\n", x->all.n, ni_plural(x->all.n, "rank", "ranks"), ops,
         ni_plural(ops, "operation", "operations"), x->out);
  if (hostless)
    ni_say(stdout,
           "hosts of %zu %s are not stated: whatever is said of hosts, NICs and NVLinks is not known "
           "(--ranks-per-host N)\n",
           hostless, ni_plural(hostless, "rank", "ranks"));
  if (dateless)
    ni_say(stdout, "%zu %s no date: times count from 2020-01-01\n", dateless,
           ni_plural(dateless, "rank has", "ranks have"));
  if (x->settled.ranks)
    ni_say(stdout,
           "ranks of %zu %s are those of communicator 0x%" PRIx64
           ", which all are in: right where all of the job was given\n",
           x->settled.ranks, ni_plural(x->settled.ranks, "process", "processes"), x->settled.job);
  if (x->settled.seated)
    ni_say(stdout,
           "%zu %s made before the recording began: members are those who have the same one, in order of "
           "their ranks\n",
           x->settled.seated, ni_plural(x->settled.seated, "communicator was", "communicators were"));
  if (x->settled.by_gpu)
    ni_say(stdout,
           "%zu %s made before the recording began, and nobody says ranks: a rank in them is a number of "
           "ours, by host and GPU; go by these\n",
           x->settled.by_gpu, ni_plural(x->settled.by_gpu, "communicator was", "communicators were"));
  if (x->settled.alone)
    ni_say(stdout,
           "%zu %s made before the recording began, and who is in them is not known: not compared with other "
           "ranks\n",
           x->settled.alone, ni_plural(x->settled.alone, "communicator was", "communicators were"));
  if (timeless)
    ni_say(stdout, "when operations began is not in the source: only how long they took is compared\n");
  report_operations(ungrouped, "no communicator, or no rank in it: not compared with other ranks");
  report_operations(unsized, "no size: 0 bytes here, and no bandwidth");
  if (ops && unsized == ops && x->format->without_sizes)
    ni_say(stdout, "%s\n", x->format->without_sizes);
  if (!timeless)
    report_operations(unlaunched, "no launch: nothing is said of how late they were launched");
  if (bad)
    ni_say(stdout, "%" PRIu64 " %s could not be read, or had a time that cannot be\n", bad,
           ni_plural(bad, "event", "events"));
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

/* apart: ranks of which operations could not be told. */
static int run_cycle(struct import *x, size_t *apart) {
  int e = enter_cycle(x);
  if (e < 0)
    return e;
  e = settle_cycle(x);
  if (e == 0)
    e = align_numbers(x);
  if (e < 0)
    ni_say(stderr, "%s: %s\n", x->all.who, strerror(-e));
  if (e == 0)
    e = write_all(x);
  if (e == 0)
    *apart += report_numbers(x) + report_pairs(x);
  leave_cycle(x);
  return e;
}

static int import_files(struct import *x, size_t *apart) {
  int e = ni_recordings_read(&x->all, x->words.path + 1, x->words.n - 1);
  for (x->cycle = 0; e == 0 && x->cycle < x->all.cycles; x->cycle++)
    e = run_cycle(x, apart);
  if (e == 0 && x->all.cycles > 1 && !x->quiet)
    ni_say(stdout,
           "the profiler ran %u times: look at each by itself, as %s/cycle-1, or compare two with "
           "nccl-inspector diff\n",
           x->all.cycles, x->out);
  return e;
}

int ni_import_run(int argc, char **argv) {
  struct import x = {.progress = NI_PROGRESS_INIT};
  int done, code = ni_words_parse(&ni_import_command, argc, argv, &x, &done);
  ni_recordings_init(&x.all);
  if (!done) {
    x.progress.mode = ni_inputs_progress(&x.inputs, x.quiet);
    x.all.who = argv[0];
    x.all.out = x.out;
    x.all.format = x.format;
    x.all.progress = &x.progress;
    code = NI_EXIT_COULD_NOT_RUN;
    size_t apart = 0;
    if (import_files(&x, &apart) == 0) {
      if (!x.quiet)
        report_absent(&x);
      code = apart || x.all.left_out ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
    }
  }
  ni_recordings_free(&x.all);
  ni_align_free(&x.align);
  ni_inputs_free(&x.words);
  return code;
}
