/*
 * nccl-inspector import: logs of what another program recorded. The command line, and the phases one after
 * the other.
 *
 *   read: each process, alone ─▶ its operations aside (spill) ─▶ cycles; then, of each cycle:
 *   settle: who is who ─▶ number: all ranks ─▶ write: each one's log
 *
 * A profiler with a schedule that repeats writes a file a rank and cycle. Files of one rank that do not
 * overlap in time are such cycles: each cycle is settled, numbered and written by itself, into a folder of
 * its own.
 *
 * Nothing is written before all files were read. A file that cannot be read is named and left out. Memory:
 * that of one rank's operations (imported.h), and align.h's of all.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/order.h"
#include "exporter/base/out_file.h"
#include "exporter/base/spill/spill_file.h"
#include "exporter/base/text/plural.h"
#include "exporter/cli/command.h"
#include "exporter/input/accl/accl.h"
#include "exporter/input/kineto/gather.h"
#include "exporter/input/kineto/kineto.h"
#include "exporter/input/nsys/nsys.h"
#include "log.h"
#include "settle.h"

struct rank {
  struct ni_imported m; /* without its operations, but while it is written */
  uint64_t at;          /* where these are put aside */
  uint32_t cycle;
};

struct import {
  struct ni_inputs words, inputs; /* the format, then paths */
  const char *out;
  unsigned ranks_per_host;
  bool quiet, failed; /* failed: not the file, but what is done with it */
  const struct format *format;
  struct ni_files files;
  struct ni_progress progress;
  struct rank *rank;
  size_t n, cap, left_out;
  uint32_t cycles, cycle;    /* cycle: at hand */
  struct ni_align align;     /* of that */
  struct ni_settled settled; /* of all cycles */
  struct ni_spill aside;
  const char *who;
  int dir;             /* of --out, then of the cycle at hand */
  char into[PATH_MAX]; /* what the latter is called */
};

static int read_kineto(const char *const *path, size_t n, ni_imported_take *take, void *arg,
                       struct ni_progress *progress) {
  struct ni_imported m;
  ni_imported_init(&m, path[0]);
  const int e = ni_kineto_gather(&m, progress);
  if (e == 0)
    return take(arg, &m);
  ni_imported_free(&m);
  return e;
}

static int read_nsys(const char *const *path, size_t n, ni_imported_take *take, void *arg,
                     struct ni_progress *progress) {
  return ni_nsys_read(path[0], take, arg, progress);
}

static const struct format {
  const char *name, *mechanism, *source, *files;
  bool (*is_one)(const char *name);                /* of files in folders */
  int (*by_process)(const char *a, const char *b); /* NULL: each file by itself */
  bool (*same_process)(const char *a, const char *b);
  int (*read)(const char *const *path, size_t n, ni_imported_take *take, void *arg,
              struct ni_progress *progress);
  const char *none, *broken; /* what -ENODATA and -EBADMSG mean */
  /* said where no operation has one: what to do; NULL: nothing can be done */
  const char *without_sizes;
} formats[] = {
    {"kineto", NI_MECHANISM_KINETO, "a kineto trace", ".json and no .json.gz", ni_kineto_is_trace, NULL, NULL,
     read_kineto,
     "no NCCL kernel in it, or none with a time: was the GPU profiled (ProfilerActivity.CUDA), and did the "
     "rank communicate?",
     "not a whole trace: not JSON with a list of traceEvents, or its end is missing",
     "sizes and communicators are in the traces of PyTorch 2.3 and later"},
    {"nsys", NI_MECHANISM_NSYS, "an export of Nsight Systems", ".sqlite", ni_nsys_is_export, NULL, NULL,
     read_nsys,
     "no NCCL kernel in it, or none with a time: were CUDA's kernels traced (nsys profile "
     "--trace=cuda,nvtx), and did the rank communicate?",
     "no whole SQLite file of nsys export --type sqlite: another kind of file, cut, or broken",
     "sizes are in what nsys export --include-blobs=true makes, of nsys profile --trace=cuda,nvtx"},
    {"accl", NI_MECHANISM_ACCL, "logs of ACCL", "accl_profiler_rank*.jsonl", ni_accl_is_log,
     ni_accl_by_process, ni_accl_same_process, ni_accl_read,
     "no collective in it: the process died before its first one had ended, or all were below "
     "ACCL_PROFILER_MIN_SIZE_BYTES",
     "no log of ACCL, by its name (accl_profiler_rank<N>_<host>_pid<PID>_0x<id>.jsonl) or by its lines",
     NULL}};
enum { FORMATS = sizeof formats / sizeof *formats };

static const struct format *find_format(const char *name) {
  for (size_t i = 0; i < FORMATS; i++)
    if (strcmp(formats[i].name, name) == 0)
      return &formats[i];
  return NULL;
}

static const char *refuse_import(void *into) {
  struct import *x = into;
  if (!(x->format = find_format(x->words.path[0])))
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
        "work on a job that "
        "ran without the plugin.",
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

/* ---- reading ------------------------------------------------------------------------------------------- */

static int find_files(struct import *x, const char *who) {
  x->files.wanted = x->format->is_one;
  int e = ni_discover(&x->files, x->words.path + 1, x->words.n - 1);
  if (e == 0)
    ni_inputs_unreadable(who, &x->files);
  x->left_out += x->files.n_bad;
  if (e == 0 && x->files.n == 0) {
    ni_say(stderr, "%s: no %s among what was given\n", who, x->format->files);
    e = -ENOENT;
  }
  return e;
}

static bool is_same_rank(const struct ni_imported *m, const struct ni_imported *of) {
  return m->rank >= 0 && of->rank == m->rank && of->world == m->world;
}

/* The recording of the same rank at the same time. */
static const struct rank *find_same_recording(const struct import *x, const struct ni_imported *m) {
  for (size_t i = 0; i < x->n; i++) {
    const struct ni_imported *of = &x->rank[i].m;
    if (is_same_rank(m, of) && m->first_ns <= of->last_ns && of->first_ns <= m->last_ns)
      return &x->rank[i];
  }
  return NULL;
}

/* The same recording once more, of a process whose rank it does not state. */
static const struct rank *find_same_process(const struct import *x, const struct ni_imported *m) {
  for (size_t i = 0; m->rank < 0 && m->pid > 0 && i < x->n; i++) {
    const struct ni_imported *y = &x->rank[i].m;
    if (y->pid == m->pid && y->first_ns == m->first_ns && strcmp(y->host, m->host) == 0)
      return &x->rank[i];
  }
  return NULL;
}

static const char *explain_failure(const struct import *x, int e) {
  if (e == -EBADMSG)
    return x->format->broken;
  if (e == -EFBIG)
    return "more operations or communicators than a rank can have here; trace fewer steps";
  if (e == -EBUSY)
    return "it is being written, or its export was broken off (a -journal or -wal lies beside it): export it "
           "again";
  if (e == -ENOTSUP)
    return "this nccl-inspector was built without SQLite (libsqlite3-dev)";
  return e == -ENODATA ? x->format->none : strerror(-e);
}

static int spool_rank(struct import *x, struct rank *r) {
  const size_t bytes = r->m.n * sizeof *r->m.op;
  int e = ni_spill_reserve(&x->aside, bytes, &r->at);
  if (e == 0)
    e = ni_spill_write(&x->aside, r->m.op, bytes, r->at);
  free(r->m.op);
  r->m.op = NULL;
  r->m.cap = 0;
  return e;
}

static int reload_rank(struct import *x, struct rank *r) {
  if (!(r->m.op = malloc((r->m.n + 1) * sizeof *r->m.op)))
    return -ENOMEM;
  return ni_spill_read(&x->aside, r->m.op, r->m.n * sizeof *r->m.op, r->at);
}

static int make_folder(struct import *x, const char *who) {
  char why[512];
  if (x->dir >= 0)
    return 0;
  x->dir = ni_out_dir(x->out, true, why, sizeof why);
  if (x->dir < 0)
    ni_say(stderr, "%s: --out %s: %s\n", who, x->out, why);
  return x->dir < 0 ? x->dir : 0;
}

static void report_left_out(struct import *x, const char *path, const char *why) {
  ni_say(stderr, "%s: %s: left out: %s\n", x->who, path, why);
  x->left_out++;
}

/* Adds a process of a file. */
static int add_process(void *arg, struct ni_imported *m) {
  struct import *x = arg;
  const struct rank *before = find_same_recording(x, m);
  char why[1024];
  snprintf(why, sizeof why, "%s; the others of its process were read", x->format->broken);
  if (m->n_unread)
    report_left_out(x, m->unread, why);
  if (m->n_unread > 1)
    ni_say(stderr, "%s: and %zu more of that process\n", x->who, m->n_unread - 1);
  const struct rank *again = before ? NULL : find_same_process(x, m);
  if (again) {
    snprintf(why, sizeof why, "it is of process %" PRId64 " on %.200s, as %.700s is", m->pid, m->host,
             again->m.path);
    report_left_out(x, m->path, why);
    ni_imported_free(m);
    return 0;
  }
  if (before) {
    snprintf(why, sizeof why, "it is of rank %d, as %.700s is, and of the same time", m->rank,
             before->m.path);
    report_left_out(x, m->path, why);
    ni_imported_free(m);
    return 0;
  }
  if (!ni_array_room(x->rank, x->n, x->cap)) {
    ni_imported_free(m);
    return -ENOMEM;
  }
  x->rank[x->n] = (struct rank){.m = *m};
  int e = make_folder(x, x->who);
  if (e == 0)
    e = spool_rank(x, &x->rank[x->n]);
  x->n++;
  x->failed = e < 0;
  return e;
}

/* Not 0: no other file can be read either. */
static int read_recording(struct import *x, const char *const *path, size_t n) {
  const int e = x->format->read(path, n, add_process, x, &x->progress);
  if (e == 0 || e == -ENOMEM || x->failed)
    return e;
  report_left_out(x, path[0], explain_failure(x, e));
  return 0;
}

static const struct format *sorting; /* qsort has no argument for it; one thread */
static int by_process(const void *a, const void *b) {
  const char *const *x = a, *const *y = b;
  return sorting->by_process(*x, *y);
}

static int read_all_recordings(struct import *x, const char *who) {
  uint64_t bytes = 0;
  const size_t n = x->files.n;
  const char **path = malloc((n + 1) * sizeof *path);
  int e = path ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < n; i++) {
    bytes += x->files.file[i].bytes;
    path[i] = x->files.file[i].path;
  }
  sorting = x->format;
  if (e == 0 && x->format->by_process)
    qsort(path, n, sizeof *path, by_process);
  ni_progress_begin(&x->progress, "read", bytes, true, n);
  for (size_t from = 0, to; e == 0 && from < n; from = to) {
    for (to = from + 1; to < n && x->format->same_process && x->format->same_process(path[from], path[to]);)
      to++;
    e = read_recording(x, path + from, to - from);
    ni_progress_add(&x->progress, 0, to - from);
  }
  ni_progress_end(&x->progress);
  free(path);
  return e;
}

/* ---- cycles -------------------------------------------------------------------------------------------- */

static NI_ORDER_BY(by_time, struct rank, m.first_ns, m.rank);

/*
 * In order of time: a cycle ends where a rank comes again. What lies behind all of the cycle begins the next
 * one, too, where ranks come again at all; so a rank without a file in one cycle is not put into the wrong
 * one.
 */
static void find_cycles(struct import *x) {
  bool again = false;
  for (size_t i = 0; i < x->n; i++)
    for (size_t k = 0; k < i; k++)
      again |= is_same_rank(&x->rank[i].m, &x->rank[k].m);
  x->cycles = 1;
  if (!again)
    return;
  qsort(x->rank, x->n, sizeof *x->rank, by_time);
  int64_t last_ns = INT64_MIN;
  size_t first = 0;
  for (size_t i = 0; i < x->n; i++) {
    const struct ni_imported *m = &x->rank[i].m;
    bool ends = i > first && m->first_ns > last_ns;
    for (size_t k = first; k < i; k++)
      ends |= is_same_rank(m, &x->rank[k].m);
    if (ends) {
      first = i;
      x->cycles++;
    }
    x->rank[i].cycle = x->cycles - 1;
    if (i == first || m->last_ns > last_ns)
      last_ns = m->last_ns;
  }
}

/* Settles communicators and ranks, by all files of the current cycle together. */
static int settle_cycle(struct import *x) {
  struct ni_settled found;
  struct ni_imported **m = malloc((x->n + 1) * sizeof *m);
  if (!m)
    return -ENOMEM;
  size_t n = 0;
  for (size_t i = 0; i < x->n; i++)
    if (x->rank[i].cycle == x->cycle)
      m[n++] = &x->rank[i].m;
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
  x->align = (struct ni_align){0};
  for (size_t i = 0; e == 0 && i < x->n; i++) {
    struct ni_imported *m = &x->rank[i].m;
    if (x->rank[i].cycle != x->cycle || m->numbered)
      continue;
    e = reload_rank(x, &x->rank[i]);
    if (e == 0)
      e = ni_align_add(&x->align, (uint32_t)i, m);
    free(m->op);
    m->op = NULL;
  }
  return e == 0 ? ni_align_find(&x->align) : e;
}

/* If there are several cycles, each has a folder below --out. */
static int enter_cycle(struct import *x, const char *who) {
  char why[512];
  snprintf(x->into, sizeof x->into, "%s", x->out);
  if (x->cycles == 1)
    return 0;
  snprintf(x->into, sizeof x->into, "%s/cycle-%u", x->out, x->cycle + 1);
  if (x->dir >= 0)
    close(x->dir);
  x->dir = ni_out_dir(x->into, true, why, sizeof why);
  if (x->dir < 0)
    ni_say(stderr, "%s: %s: %s\n", who, x->into, why);
  return x->dir < 0 ? x->dir : 0;
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
  const struct ni_imported *m = &x->rank[rank].m;
  size_t n = 0;
  for (size_t i = 0; i < rank; i++) {
    const struct ni_imported *o = &x->rank[i].m;
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

static int write_rank(struct import *x, const char *who, size_t i) {
  struct ni_imported *m = &x->rank[i].m;
  struct ni_import_log l = {.m = m,
                            .align = &x->align,
                            .file = (uint32_t)i,
                            .mechanism = x->format->mechanism,
                            .source = x->format->source};
  char host[256];
  choose_host(x, m, host);
  l.host = host;
  l.before = count_same_names(x, i, host);
  int e = reload_rank(x, &x->rank[i]);
  if (e == 0)
    e = ni_import_log(&l, x->dir);
  if (e < 0)
    ni_say(stderr, "%s: %s: %s\n", who, x->into, *l.why ? l.why : strerror(-e));
  else
    report_rank(x, m, host, l.name);
  free(m->op);
  m->op = NULL;
  return e;
}

static int write_all(struct import *x, const char *who) {
  int e = 0;
  ni_progress_begin(&x->progress, "write", x->n, false, x->n);
  for (size_t i = 0; e == 0 && i < x->n; i++) {
    if (x->rank[i].cycle != x->cycle)
      continue;
    e = write_rank(x, who, i);
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
  const struct ni_imported_comm *c = &x->rank[s->file].m.comm[s->comm];
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
    const struct ni_imported *m = &x->rank[s->file].m;
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
  for (size_t i = 0; i < x->n; i++) {
    const struct ni_imported *m = &x->rank[i].m;
    ops += m->n;
    unlaunched += m->unlaunched;
    unsized += m->unsized;
    ungrouped += m->ungrouped;
    bad += m->bad;
    timeless += m->numbered;
    dateless += m->undated;
    hostless += !*m->host && !(x->ranks_per_host && m->rank >= 0);
  }
  ni_say(stdout, "%zu %s, %" PRIu64 " %s in %s\n", x->n, ni_plural(x->n, "rank", "ranks"), ops,
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

/* apart: ranks of which operations could not be told. */
static int run_cycle(struct import *x, const char *who, size_t *apart) {
  int e = enter_cycle(x, who);
  if (e < 0)
    return e;
  e = settle_cycle(x);
  if (e == 0)
    e = align_numbers(x);
  if (e < 0)
    ni_say(stderr, "%s: %s\n", who, strerror(-e));
  if (e == 0)
    e = write_all(x, who);
  if (e == 0)
    *apart += report_numbers(x) + report_pairs(x);
  return e;
}

static int import_files(struct import *x, const char *who, size_t *apart) {
  x->who = who;
  int e = find_files(x, who);
  if (e == 0)
    e = read_all_recordings(x, who);
  if (e == 0 && x->n == 0)
    return -ENODATA; /* each was named */
  const bool is_unsaid = e < 0 && e != -ENOENT && x->dir >= 0 && x->n;
  if (e == -ENOMEM)
    ni_say(stderr, "%s: %s\n", who, strerror(-e));
  else if (is_unsaid) /* of the temporary file there */
    ni_say(stderr, "%s: %s: %s\n", who, x->out, strerror(-e));
  if (e == 0)
    find_cycles(x);
  for (x->cycle = 0; e == 0 && x->cycle < x->cycles; x->cycle++)
    e = run_cycle(x, who, apart);
  if (e == 0 && x->cycles > 1 && !x->quiet)
    ni_say(stdout,
           "the profiler ran %u times: look at each by itself, as %s/cycle-1, or compare two with "
           "nccl-inspector diff\n",
           x->cycles, x->out);
  return e;
}

int ni_import_run(int argc, char **argv) {
  struct import x = {.progress = NI_PROGRESS_INIT, .dir = -1};
  int done, code = ni_words_parse(&ni_import_command, argc, argv, &x, &done);
  if (!done) {
    x.progress.mode = ni_inputs_progress(&x.inputs, x.quiet);
    ni_spill_init(&x.aside, x.out, 0);
    code = NI_EXIT_COULD_NOT_RUN;
    size_t apart = 0;
    if (import_files(&x, argv[0], &apart) == 0) {
      if (!x.quiet)
        report_absent(&x);
      code = apart || x.left_out ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
    }
    ni_spill_close(&x.aside);
  }
  for (size_t i = 0; i < x.n; i++)
    ni_imported_free(&x.rank[i].m);
  free(x.rank);
  ni_align_free(&x.align);
  ni_files_free(&x.files);
  ni_inputs_free(&x.words);
  if (x.dir >= 0)
    close(x.dir);
  return code;
}
