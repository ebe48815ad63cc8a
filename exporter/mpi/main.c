/*
 * nccl-inspector-mpi: `summary`, `check` and `trace` of logs that all nodes see, read by all ranks of an MPI
 * job.
 *
 *   rank 0   lists the logs ─▶ plan to all ─▶ its shard ─┐            ┌─ joins what it owns ─▶ judges, writes
 *   rank i   ................. waits ───────▶ its shard ─┴─▶ tables ─▶└─ joins what it owns ─▶ sums to rank 0
 *
 * Rank 0 runs the command of nccl-inspector itself; only how it reads and joins is other functions
 * (exporter/model/sums/team/team.h). It alone lists and stats. Each log is opened by one rank, once: so
 * nothing is copied to a node's own disk first, which would read it twice. Parquet files and parts of the CSV
 * go straight into the hidden folder of rank 0's output; nothing there gets its name before rank 0 has all.
 *
 * A rank that fails says why, and all end with that; one that dies ends the job by MPI. Either way the output
 * is as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/terminal.h"
#include "exporter/cmds/merge/shards.h"
#include "exporter/cmds/result.h"
#include "exporter/model/ledger/pack.h"
#include "exporter/model/ledger/read.h"
#include "exporter/output/tables/output.h"
#include "link.h"

enum { OVER, SUMMARY, CHECK, TRACE };

static bool over; /* rank 0: the others know that nothing more comes */

static void say(const struct ni_run *r, int e) {
  ni_say(stderr, "nccl-inspector-mpi: rank %d: %s\n", ni_mpi_rank(),
         *r->error_text ? r->error_text : strerror(-e));
}

/* Where others wait for what cannot come any more, all end. */
static void give_up(struct ni_run *r, int e) {
  say(r, e);
  if (ni_mpi_rank() == 0)
    ni_result_abort(r);
  MPI_Abort(MPI_COMM_WORLD, NI_EXIT_COULD_NOT_RUN);
}

/* ---- the plan, from rank 0 to all ---------------------------------------------------------------------- */

static void wire_when(struct ni_wire *w, struct ni_when *x) {
  uint32_t base = (uint32_t)x->base;
  ni_wire_below(w, &base, NI_WHEN_AFTER_START + 1);
  ni_wire_i64(w, &x->us);
  x->base = (enum ni_when_base)base;
}

/* what: of the enum above. folder: the hidden one of the output; NULL: none. */
static void wire_plan(struct ni_wire *w, struct ni_run *r, char **folder) {
  NI_WIRE(w, &r->opt.codec, &r->opt.jobs, &r->opt.no_csv, &r->opt.no_plots, &r->opt.no_html,
          &r->opt.memory_bytes);
  wire_when(w, &r->opt.filter.since);
  wire_when(w, &r->opt.filter.until);
  ni_wire_text(w, folder);
  ni_partial_wire_options(w, r);
  ni_partial_wire_logs(w, r);
}

static int send_plan(struct ni_run *r, uint32_t what, char *folder) {
  struct ni_wire w = {0};
  ni_wire_u32(&w, &what);
  wire_plan(&w, r, &folder);
  int e = w.bad ? -ENOMEM : ni_mpi_share(&w, NULL);
  if (w.bad)
    give_up(r, e);
  over = what == OVER;
  ni_wire_free(&w);
  return e;
}

/* ---- what all ranks do --------------------------------------------------------------------------------- */

/*
 * The options and logs as others store them, once the times are known: what comes from them must be of the
 * same plan.
 */
static int keep_plan(struct ni_run *r) {
  struct ni_bytes *const to[] = {&r->partial->options, &r->partial->logs};
  void (*const wire[])(struct ni_wire *, struct ni_run *) = {ni_partial_wire_options, ni_partial_wire_logs};
  for (int i = 0; i < 2; i++) {
    struct ni_wire w = {0};
    wire[i](&w, r);
    if (w.bad)
      return -ENOMEM;
    *to[i] = (struct ni_bytes){w.bytes, w.n};
  }
  return 0;
}

static int take_from(struct ni_run *r, int rank) {
  char name[32];
  struct ni_mpi_peer peer = {.rank = rank};
  const struct ni_section_from from = {&peer, name, ni_mpi_get};
  uint32_t *shard;
  size_t n;
  snprintf(name, sizeof name, "what rank %d sent", rank);
  int e = ni_partial_load_plan(r, &from, "rank 0", &shard, &n);
  if (e == 0)
    e = ni_partial_load(r, &from, shard, n);
  free(shard);
  free(peer.got.at);
  return e;
}

/* Binomial: rank 1 to 0, 3 to 2, ...; then 2 to 0, 6 to 4, ... */
static void reduce(struct ni_run *r) {
  const int rank = ni_mpi_rank(), size = ni_mpi_size();
  int e = keep_plan(r);
  for (int k = 1; e == 0 && k < size; k <<= 1) {
    if (rank & k) {
      struct ni_mpi_peer to = {.rank = rank - k};
      e = ni_partial_store(r, &(struct ni_section_to){&to, ni_mpi_put});
      break;
    }
    if (rank + k < size)
      e = take_from(r, rank + k);
  }
  if (e < 0)
    give_up(r, e);
}

/* Tables and accounts to rank 0, tables of all to everybody; records stay. */
static void join_tables(struct ni_run *r) {
  static struct ni_team team;
  r->partial->no_pieces = true;
  reduce(r);
  team = ni_mpi_team();
  r->team = team.size > 1 ? &team : NULL;
  int e = r->team ? ni_team_tables(r) : 0;
  if (e < 0)
    give_up(r, e);
}

/* 0: all ranks have read their shards; else all get the same error. */
static int read_shard(struct ni_run *r) {
  const bool together = ni_filters_relative(&r->opt.filter);
  r->agree = ni_mpi_times;
  int e = ni_shards_plan(r, (uint32_t)ni_mpi_rank() + 1, (uint32_t)ni_mpi_size());
  if (e == 0)
    e = ni_summarize_read(r);
  if (e < 0 && together)
    give_up(r, e); /* others wait for its times */
  int worst = ni_mpi_worst(e);
  if (e < 0 && ni_mpi_rank())
    say(r, e);
  if (e == 0 && worst < 0)
    ni_run_fail(r, worst, "another rank could not read its logs");
  return worst;
}

/* ---- summary ------------------------------------------------------------------------------------------- */

static int summarize(struct ni_run *r, struct ni_summary *s) {
  char folder[PATH_MAX];
  if (r->opt.partial || r->opt.dataset || r->opt.approximate)
    return ni_run_fail(
        r, -EINVAL,
        "--partial, --dataset and --approximate are for nccl-inspector: with MPI all ranks make one result");
  int e = ni_result_begin(r);
  if (e < 0)
    return e;
  char *out = realpath(r->out_dir, NULL);
  snprintf(folder, sizeof folder, "%s/%s", out ? out : r->out_dir, r->tmp_name);
  free(out);
  ni_summarize_store(r, r->tmp_dir);
  e = send_plan(r, SUMMARY, r->opt.no_parquet && r->opt.no_csv ? NULL : folder);
  if (e == 0)
    e = read_shard(r);
  if (e < 0)
    return e;
  join_tables(r);
  e = ni_merge_finish(r, s);
  if (e < 0 && r->team)
    give_up(r, e); /* others wait for what comes no more */
  return e;
}

static int open_folder(struct ni_run *r, const char *folder) {
  struct stat st;
  if (!folder)
    return 0;
  r->tmp_fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (r->tmp_fd >= 0 && fstat(r->tmp_fd, &st) == 0 && st.st_uid == geteuid()) {
    snprintf(r->tmp_dir, sizeof r->tmp_dir, "/proc/self/fd/%d", r->tmp_fd);
    return 0;
  }
  return ni_run_fail(r, -ENOENT,
                     "%s: is not there: the output must be in a folder that all nodes see, or give "
                     "--only tables,plots,page",
                     folder);
}

static void serve_summary(struct ni_run *r, const char *folder) {
  r->opt.quiet = true;
  r->opt.comm_map = NULL; /* rank 0 reads that */
  int e = open_folder(r, folder);
  if (e < 0)
    give_up(r, e);
  ni_summarize_store(r, NULL);
  if (read_shard(r) < 0)
    return;
  join_tables(r);
  e = r->team ? ni_summarize_serve(r) : 0;
  if (e < 0)
    give_up(r, e);
}

/* ---- check --------------------------------------------------------------------------------------------- */

/* Accounts of the logs of this rank's shard. */
static int account(struct ni_run *r) {
  int e = ni_shards_plan(r, (uint32_t)ni_mpi_rank() + 1, (uint32_t)ni_mpi_size());
  if (e == 0)
    e = ni_partial_read_accounts(r);
  int worst = ni_mpi_worst(e);
  if (e < 0 && ni_mpi_rank())
    say(r, e);
  if (worst == 0)
    reduce(r);
  return worst;
}

static int read_ledger(struct ni_ledger *c, struct ni_files *files, const struct ni_inputs *in,
                       struct ni_progress *progress) {
  struct ni_run r;
  int e = ni_summarize_init(&r);
  r.files = *files;
  r.progress = *progress;
  if (e == 0)
    e = ni_inputs_add(&r.opt.inputs, in->path[0]);
  if (e == 0)
    e = send_plan(&r, CHECK, NULL);
  if (e == 0)
    e = account(&r);
  if (e == 0)
    e = ni_partial_settle(&r, c);
  ni_partial_free(&r);
  r.files = (struct ni_files){0}; /* the caller's */
  ni_summarize_free(&r);
  return e;
}

/* ---- trace --------------------------------------------------------------------------------------------- */

/*
 * Reads the logs of this rank's shard into maps and accounts: of each its number in the plan, and what was
 * made of it.
 */
static int map_logs(struct ni_run *r, struct ni_wire *w) {
  const struct ni_atlas_options nowhere = {.off = true, .maps = true};
  struct ni_atlas *a = NULL;
  struct ni_ledger all = {0};
  r->progress.mode = NI_PROGRESS_NONE;
  int e = ni_shards_plan(r, (uint32_t)ni_mpi_rank() + 1, (uint32_t)ni_mpi_size());
  if (e == 0)
    e = ni_atlas_open(&a, "nccl-inspector-mpi", &r->files, &nowhere, false);
  if (e == 0)
    e = ni_atlas_read_ledger(a, &all, &r->files, ni_scan_jobs(), &r->progress);
  for (uint32_t i = 0; e == 0 && i < r->files.n; i++) {
    if (r->files.file[i].elsewhere)
      continue;
    ni_wire_u32(w, &i);
    ni_atlas_wire_made(w, a, i);
  }
  ni_atlas_close(a, false, NULL);
  ni_ledger_free(&all);
  return e == 0 && w->bad ? -ENOMEM : e;
}

/* no: of each log of the plan its number in a. */
static int bring(struct ni_atlas *a, const size_t *no, size_t n, struct ni_wire w) {
  while (!w.bad && w.at < w.end) {
    uint32_t i = 0;
    ni_wire_below(&w, &i, n);
    if (!w.bad)
      ni_atlas_wire_made(&w, a, no[i]);
  }
  return w.bad ? -ENOMEM : 0;
}

static int share_logs(struct ni_run *r, struct ni_atlas *a, const size_t *no) {
  struct ni_wire mine = {0};
  struct ni_mpi_peer from = {0};
  enum ni_section id;
  const uint8_t *bytes;
  size_t n;
  int e = send_plan(r, TRACE, NULL);
  if (e == 0)
    e = map_logs(r, &mine);
  if (e == 0)
    e = bring(a, no, r->files.n, ni_wire_load(mine.bytes, mine.n));
  ni_wire_free(&mine);
  for (from.rank = 1; from.rank < ni_mpi_size(); from.rank++) {
    int got = ni_mpi_get(&from, r, &id, &bytes, &n);
    if (got < 0)
      give_up(r, got);
    if (e == 0)
      e = bring(a, no, r->files.n, ni_wire_load(bytes, n));
  }
  free(from.got.at);
  return e;
}

/* Those that no index knows, by all ranks. */
static int share_trace(struct ni_atlas *a, const struct ni_files *files) {
  struct ni_run r;
  struct ni_files news = {.file = calloc(files->n + 1, sizeof *news.file)};
  size_t *no = calloc(files->n + 1, sizeof *no);
  int e = ni_summarize_init(&r);
  if (!news.file || !no)
    e = -ENOMEM;
  for (size_t i = 0; e == 0 && a && i < files->n; i++) {
    if (ni_atlas_known(a, i).state != NI_ATLAS_STALE)
      continue;
    no[news.n] = i;
    news.file[news.n++] = files->file[i];
  }
  r.files = news;
  if (e == 0 && news.n)
    e = ni_inputs_add(&r.opt.inputs, news.file[0].path);
  if (e == 0 && news.n)
    e = share_logs(&r, a, no);
  ni_partial_free(&r);
  r.files = (struct ni_files){0}; /* the caller's */
  ni_summarize_free(&r);
  free(news.file);
  free(no);
  return e;
}

/* What cannot be read here, rank 0 reads. */
static void serve_trace(struct ni_run *r) {
  struct ni_mpi_peer to = {.rank = 0};
  struct ni_wire mine = {0};
  int e = map_logs(r, &mine);
  if (e < 0)
    say(r, e);
  (void)ni_mpi_put(&to, NI_SECTION_ACCOUNTS, mine.bytes, e < 0 ? 0 : mine.n);
  ni_wire_free(&mine);
}

/* ---- the program --------------------------------------------------------------------------------------- */

static void serve(void) {
  for (uint32_t what = TRACE; what != OVER;) {
    struct ni_run r;
    struct ni_wire w = {0};
    uint8_t *hold = NULL;
    char *folder = NULL;
    int e = ni_summarize_init(&r);
    if (e == 0)
      e = ni_mpi_share(&w, &hold);
    if (e < 0)
      give_up(&r, e);
    ni_wire_below(&w, &what, TRACE + 1);
    if (what != OVER)
      wire_plan(&w, &r, &folder);
    if (what != OVER && !ni_wire_over(&w))
      give_up(&r, -ENOMEM);
    if (what == SUMMARY)
      serve_summary(&r, folder);
    if (what == CHECK)
      (void)account(&r);
    if (what == TRACE)
      serve_trace(&r);
    free(folder);
    free(hold);
    ni_summarize_free(&r);
  }
}

static int usage(void) {
  ni_say(stderr,
         "usage: mpirun nccl-inspector-mpi summary|check|trace [OPTION...] LOGS\n"
         "The options are those of nccl-inspector. Other commands need no MPI.\n");
  return NI_EXIT_USAGE;
}

static int command(int argc, char **argv) {
  static char name[64];
  static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
  } commands[] = {{"summary", ni_summary_run}, {"check", ni_check_run}, {"trace", ni_trace_run}, {0}};
  int k = 0;
  while (commands[k].name && (argc < 2 || strcmp(argv[1], commands[k].name) != 0))
    k++;
  if (!commands[k].name)
    return usage();
  snprintf(name, sizeof name, "nccl-inspector-mpi %s", argv[1]);
  argv[1] = name;
  ni_summary_work = summarize;
  ni_check_work = read_ledger;
  ni_trace_share = share_trace;
  int code = commands[k].run(argc - 1, argv + 1);
  return fflush(stdout) != 0 && code == NI_EXIT_FINE ? NI_EXIT_COULD_NOT_RUN : code;
}

int main(int argc, char **argv) {
  int code = 0;
  MPI_Init(&argc, &argv);
  ni_terminal_begin();
  if (ni_mpi_rank() == 0) {
    struct ni_run none = {0};
    code = command(argc, argv);
    if (!over)
      (void)send_plan(&none, OVER, NULL);
  } else {
    serve();
  }
  MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return code;
}
