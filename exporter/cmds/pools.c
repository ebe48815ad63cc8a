/*
 * nccl-inspector pools: what the pools of a run reached, and the settings that follow.
 *
 * Model: pool_stats lines hold what a pool has reached since it began, so the largest values count. The pools
 * of one process are gathered while its files are read (they follow one another in the sorted list) and then
 * folded into the run's totals; memory grows with the communicators of one process, not with the run. One
 * thread.
 *
 * The recommendation is what this run needed, plus a quarter; drops are added in full, since nobody can know
 * how many of them overlapped. docs/pool-sizing.md has the arithmetic.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/array.h"
#include "exporter/cli/command.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/table.h"
#include "exporter/input/scan_files.h"
#include "format/line.h"
#include "format/names.h"
#include "exporter/base/text/plural.h"

#define STEP_SLOTS 32u         /* a page: pool sizes are rounded up to this */
#define FIRST_SLOTS STEP_SLOTS /* taken at the first use of a communicator */
#define COMM_BYTES (16u << 10) /* what a communicator takes beside its pools */
#define TABLE_BYTES 560000u    /* the process's own tables */
#define MIN_ARENA_BYTES (1u << 20)

struct slot_pool {
  uint64_t hash, capacity, high_water, growths, slot_bytes, dropped;
  int32_t rank;
  uint8_t kind;
};

struct totals {
  uint64_t pools, dropped, high_water, capacity, growths, slot_bytes, needed;
  char where[300]; /* of the largest */
};

struct pools {
  struct ni_inputs inputs;
  struct ni_files files;
  bool json;
  /* the process being read */
  char host[256];
  int64_t pid;
  struct slot_pool *pool;
  size_t n, cap;
  uint64_t arena_high, arena_cap, event_bytes;
  /* the run */
  struct totals kind[NI_KIND_COUNT];
  uint64_t unreadable, processes, lines, arena_full, pool_full, overwritten, max_pools[NI_KIND_COUNT],
      max_comms;
  uint64_t run_arena_high, run_arena_cap, run_event_bytes; /* events: they grow whatever POOL_GROW says */
  bool growth_off;
};

static const char *const settings[NI_KIND_COUNT] = {"NCCL_INSPECTOR_COLL_POOL_SIZE",
                                                    "NCCL_INSPECTOR_P2P_POOL_SIZE"};

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

static void count_pools(struct pools *p) {
  uint64_t of_kind[NI_KIND_COUNT] = {0};
  if (p->n == 0 && p->arena_high == 0)
    return;
  p->processes++;
  for (size_t i = 0; i < p->n; i++) {
    const struct slot_pool *x = &p->pool[i];
    struct totals *t = &p->kind[x->kind];
    uint64_t needed = x->high_water + x->dropped;
    t->pools++;
    of_kind[x->kind]++;
    t->dropped += x->dropped;
    t->capacity = larger(t->capacity, x->capacity);
    t->growths = larger(t->growths, x->growths);
    t->slot_bytes = larger(t->slot_bytes, x->slot_bytes);
    t->high_water = larger(t->high_water, x->high_water);
    if (needed > t->needed || t->pools == 1) {
      t->needed = needed;
      snprintf(t->where, sizeof t->where, "communicator 0x%" PRIx64 " rank %d (%.200s pid %" PRId64 ")",
               x->hash, x->rank, p->host, p->pid);
    }
  }
  for (int k = 0; k < NI_KIND_COUNT; k++)
    p->max_pools[k] = larger(p->max_pools[k], of_kind[k]);
  p->max_comms = larger(p->max_comms, larger(of_kind[0], of_kind[1]));
  p->run_arena_high = larger(p->run_arena_high, p->arena_high);
  p->run_arena_cap = larger(p->run_arena_cap, p->arena_cap);
  p->run_event_bytes = larger(p->run_event_bytes, p->event_bytes);
  p->n = 0;
  p->arena_high = p->arena_cap = p->event_bytes = 0;
}

static int read_pool(struct pools *p, const struct ni_line *l) {
  const struct ni_pool_line *in = &l->pool;
  if (strcmp(in->kind, "arena") == 0) {
    p->arena_high = larger(p->arena_high, in->high_water_bytes);
    p->arena_cap = larger(p->arena_cap, in->cap_bytes);
    return 0;
  }
  if (strcmp(in->kind, "event") == 0 || strcmp(in->kind, "proxy") == 0) {
    p->event_bytes += in->bytes;
    return 0;
  }
  uint8_t kind = ni_kind_from_name(in->kind);
  size_t i = 0;
  for (; i < p->n; i++) {
    const struct slot_pool *x = &p->pool[i];
    if (x->hash == l->ident.comm_hash && x->rank == l->ident.rank && x->kind == kind)
      break;
  }
  if (i == p->n) {
    if (!ni_array_room(p->pool, p->n, p->cap))
      return -ENOMEM;
    p->pool[p->n++] = (struct slot_pool){.hash = l->ident.comm_hash, .rank = l->ident.rank, .kind = kind};
  }
  struct slot_pool *x = &p->pool[i];
  x->capacity = larger(x->capacity, in->capacity);
  x->high_water = larger(x->high_water, in->high_water);
  x->growths = larger(x->growths, in->growths);
  x->slot_bytes = larger(x->slot_bytes, in->slot_bytes);
  x->dropped = larger(x->dropped, in->dropped);
  return 0;
}

static void read_settings(struct pools *p, const struct ni_pairs *s) {
  const char *grow = ni_pairs_value(s, "NCCL_INSPECTOR_POOL_GROW");
  p->growth_off |= grow && strcmp(grow, "0") == 0;
}

/* Reads the causes from the final lines. Each communicator has one. */
static void read_causes(struct pools *p, const struct ni_stats_line *s) {
  if (!s->final || !s->has_accounting)
    return;
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    p->pool_full += ni_by_count(&s->kind[k].dropped_by, "pool_full");
    p->arena_full += ni_by_count(&s->kind[k].dropped_by, "arena_full");
    p->overwritten += ni_by_count(&s->kind[k].dropped_by, "overwritten");
  }
}

static int read_pools_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct pools *p = arg;
  if (l->kind != NI_LINE_POOL_STATS && l->kind != NI_LINE_PROCESS && l->kind != NI_LINE_DUMP_STATS)
    return 0;
  if (l->meta.pid != p->pid || strcmp(l->meta.hostname, p->host) != 0) {
    count_pools(p);
    p->pid = l->meta.pid;
    snprintf(p->host, sizeof p->host, "%s", l->meta.hostname);
  }
  if (l->kind == NI_LINE_PROCESS)
    read_settings(p, &l->process.settings);
  else if (l->kind == NI_LINE_DUMP_STATS)
    read_causes(p, &l->stats);
  else {
    p->lines++;
    return read_pool(p, l);
  }
  return 0;
}

/* In one thread: the lines of a process follow one another. */
static int read_pools_file(void *arg, struct ni_scan *scan, struct ni_scan_to *to,
                           const struct ni_scan_part *part, void **result) {
  struct pools *p = arg;
  struct ni_scan_end end;
  to->arg = p;
  to->take = read_pools_line;
  int e = ni_scan_file(scan, part->file->path, NULL, to, &end);
  if (end.error && e == 0) {
    ni_say(stderr, "nccl-inspector pools: %s: %s\n", part->file->path, strerror(-end.error));
    p->unreadable++;
  }
  return e;
}

static int read_all_logs(struct pools *p) {
  struct ni_progress progress = {.mode = ni_inputs_progress(&p->inputs, false),
                                 .lock = PTHREAD_MUTEX_INITIALIZER};
  struct ni_scan_plan plan = {0};
  int e = ni_scan_plan(&plan, &p->files, false, 1);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){
        .plan = &plan, .jobs = 1, .progress = &progress, .arg = p, .part = read_pools_file});
  ni_scan_plan_free(&plan);
  count_pools(p);
  return e;
}

struct advice {
  uint64_t slots[NI_KIND_COUNT], fixed_bytes, arena_bytes, drops;
};

static struct advice advise_sizes(const struct pools *p) {
  struct advice a = {0};
  a.fixed_bytes = TABLE_BYTES + p->max_comms * COMM_BYTES + p->run_event_bytes;
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    const struct totals *t = &p->kind[k];
    a.drops += t->dropped;
    if (t->pools == 0 || t->needed == 0)
      continue;
    a.slots[k] = round_up(t->needed + t->needed / 4, STEP_SLOTS);
    a.fixed_bytes += p->max_pools[k] * (a.slots[k] + FIRST_SLOTS) * t->slot_bytes;
  }
  a.drops = larger(a.drops, p->arena_full + p->pool_full + p->overwritten);
  /*
   * Growing pools stay below what fixed ones of the largest need take; twice what was seen is room for a slow
   * disk.
   */
  a.arena_bytes = round_up(
      larger(larger(2 * p->run_arena_high, a.drops ? 2 * a.fixed_bytes : 0), MIN_ARENA_BYTES), 1u << 20);
  return a;
}

static void print_text(const struct pools *p) {
  struct advice a = advise_sizes(p);
  ni_say(stdout, "%s process%s, at most %s communicator%s in one\n\n", NI_COUNT(p->processes),
         ni_plural(p->processes, "", "es"), NI_COUNT(p->max_comms), ni_plural(p->max_comms, "", "s"));
  static const struct ni_column columns[] = {{"kind", .width = 5, .left = true},
                                             {"pools", .width = 8},
                                             {"high water", .width = 12},
                                             {"capacity", .width = 12},
                                             {"growths", .width = 10, .drop = 1},
                                             {"slot bytes", .width = 10, .drop = 2},
                                             {"dropped", .width = 12},
                                             {"", .below = true}};
  struct ni_table table;
  ni_table_begin(&table, columns, sizeof columns / sizeof *columns);
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    const struct totals *t = &p->kind[k];
    const uint64_t counts[] = {t->pools, t->high_water, t->capacity, t->growths, t->slot_bytes, t->dropped};
    ni_table_cell(&table, "%s", ni_kind_names[k]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
      ni_table_cell(&table, "%s", NI_COUNT(counts[i]));
    ni_table_cell(&table, "%s%s", t->needed ? "      largest: " : "", t->needed ? t->where : "");
  }
  ni_table_print(&table, stdout);
  ni_say(stdout, "arena %12.2f MB at most in use, of %.2f MB\n\n", (double)p->run_arena_high / 1e6,
         (double)p->run_arena_cap / 1e6);
  if (a.drops == 0) {
    ni_say(stdout, "Nothing was dropped%s%s. No setting is needed: pools grow ahead of need.\n",
           p->growth_off ? " with fixed pools" : "", p->unreadable ? " in what could be read" : "");
  } else {
    ni_say(stdout, "%s %s dropped", NI_COUNT(a.drops),
           ni_plural(a.drops, "operation was", "operations were"));
    if (p->pool_full || p->arena_full || p->overwritten)
      ni_say(stdout, " (%s pool_full, %s arena_full, %s overwritten)", NI_COUNT(p->pool_full),
             NI_COUNT(p->arena_full), NI_COUNT(p->overwritten));
    ni_say(stdout, ".\n");
    if (p->pool_full || p->overwritten || p->growth_off)
      ni_say(
          stdout,
          "Recommended: unset NCCL_INSPECTOR_POOL_GROW=0, so that pools grow; or the fixed sizes below.\n");
    if (p->arena_full)
      ni_say(stdout,
             "Recommended: NCCL_INSPECTOR_POOL_MAX_BYTES=%" PRIu64 ", since the arena's cap was met.\n",
             a.arena_bytes);
  }
  ni_say(stdout,
         "\nFor fixed pools (high water%s, a quarter more, in steps of %u):\n  NCCL_INSPECTOR_POOL_GROW=0\n",
         a.drops ? " and all drops" : "", STEP_SLOTS);
  for (int k = 0; k < NI_KIND_COUNT; k++)
    if (a.slots[k])
      ni_say(stdout, "  %s=%" PRIu64 "\n", settings[k], a.slots[k]);
  ni_say(stdout, "  memory per process at most %.2f MB (%s %s)\n", (double)a.fixed_bytes / 1e6,
         NI_COUNT(p->max_comms), ni_plural(p->max_comms, "communicator", "communicators"));
  ni_say(stdout,
         "For a smaller cap (twice the most that was in use):\n  NCCL_INSPECTOR_POOL_MAX_BYTES=%" PRIu64 "\n",
         a.arena_bytes);
}

static void print_json(const struct pools *p) {
  static const struct ni_json_field fields[] = {NI_JSON(totals, pools),      NI_JSON(totals, high_water),
                                                NI_JSON(totals, capacity),   NI_JSON(totals, growths),
                                                NI_JSON(totals, slot_bytes), NI_JSON(totals, dropped),
                                                NI_JSON(totals, needed)};
  struct advice a = advise_sizes(p);
  struct ni_json j;
  ni_json_open(&j, stdout, "nccl-inspector-pools-1");
  ni_json_u64(&j, "processes", p->processes);
  ni_json_u64(&j, "files_unreadable", p->unreadable);
  ni_json_u64(&j, "max_communicators", p->max_comms);
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    ni_json_object(&j, ni_kind_names[k]);
    NI_JSON_ALL(&j, fields, &p->kind[k], NULL);
    ni_json_u64(&j, "recommended_slots", a.slots[k]);
    ni_json_end_object(&j);
  }
  ni_json_u64(&j, "arena_high_water_bytes", p->run_arena_high);
  ni_json_u64(&j, "arena_cap_bytes", p->run_arena_cap);
  ni_json_u64(&j, "dropped", a.drops);
  ni_json_u64(&j, "dropped_pool_full", p->pool_full);
  ni_json_u64(&j, "dropped_arena_full", p->arena_full);
  ni_json_u64(&j, "dropped_overwritten", p->overwritten);
  ni_json_bool(&j, "growth_off", p->growth_off);
  ni_json_u64(&j, "recommended_max_bytes", a.arena_bytes);
  ni_json_u64(&j, "fixed_bytes_per_process", a.fixed_bytes);
  ni_json_close(&j);
}

const struct ni_command ni_pools_command = {
    .name = "pools",
    .need = NI_NEED_AFTER,
    .purpose = "what the event pools reached, and the settings that follow",
    .about = "What the event pools of a run reached, and the settings that follow.",
    .run = ni_pools_run,
    .opt = (const struct ni_opt[]){NI_ROWS_LOGS(struct pools, 1), NI_ROW_JSON(struct pools, "pools"), {0}},
    .exits = {{"0", "nothing was dropped"},
              {"1", "could not run (no pool_stats lines)"},
              {"2", "operations were dropped or files could not be read"}},
    .examples = {{"logs/", "which pool sizes the next run of this job needs"}}};

int ni_pools_run(int argc, char **argv) {
  struct pools p = {.pid = -1};
  struct ni_runs runs = {0};
  int done, code = ni_words_parse(&ni_pools_command, argc, argv, &p, &done), e;
  if (done)
    goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&p.inputs, argv[0], &p.files, &runs);
  if (e == -ENOENT)
    goto out;
  ni_inputs_unreadable(argv[0], &p.files);
  p.unreadable = p.files.n_bad;
  if (e == 0)
    e = read_all_logs(&p);
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
  } else if (p.lines == 0) {
    ni_say(stderr,
           "%s: no pool_stats lines in %zu file%s: logs of another writer, or "
           "NCCL_INSPECTOR_DUMP_CONTROL_LINES=0\n",
           argv[0], p.files.n, ni_plural(p.files.n, "", "s"));
  } else {
    if (p.json)
      print_json(&p);
    else
      print_text(&p);
    code = advise_sizes(&p).drops || p.unreadable ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
  }
out:
  ni_files_free(&p.files);
  ni_runs_free(&runs);
  ni_inputs_free(&p.inputs);
  free(p.pool);
  return code;
}
