/*
 * What the user is told: what there is, how far the clocks can be believed, what is not in the timeline.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/names_alike.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/time_text.h"
#include "exporter/output/timeline/event.h"
#include "exporter/output/timeline/write.h"
#include "exporter/base/text/safe_text.h"
#include "trace_print.h"
#include "exporter/model/ledger/judge.h"

enum { HOSTS_SHOWN = 4, WITH_SHOWN = 8 };

static bool is_host_shown(const struct ni_tr *r, uint32_t host) {
  for (uint32_t i = 0; i < r->n_units; i++)
    if (r->unit[i].shown && r->process[r->unit[i].process].host == host)
      return true;
  return false;
}

struct said_loss {
  const char *name, *text;
  const char *more; /* what it means for the picture; "": nothing */
  uint64_t count;
};
enum { TOLD_MAX = NI_PROBLEM_COUNT + 5 };

/* What the ledger's problems are called in this command's JSON, and what they mean for the picture. */
static const struct {
  enum ni_problem_code code;
  const char *name, *more;
} drawn[] = {{NI_PROBLEM_DROPPED, "lost", " (drawn where they fell)"},
             {NI_PROBLEM_EXPIRED, "expired", ": not drawn"},
             {NI_PROBLEM_EVENTS_LOST, "events_lost", ""},
             {NI_PROBLEM_CUT, "cut_files", ""},
             {NI_PROBLEM_DAMAGED, "damaged_files", ""},
             {NI_PROBLEM_UNREADABLE, "unreadable_files", ""},
             {NI_PROBLEM_NO_END, "no_final_line", ""}};

#define NVIDIA_STARTS " (NVIDIA's inspector states it with NCCL_INSPECTOR_DUMP_VERBOSE=1)"

const char *ni_tr_start_advice(const struct ni_tr *r) {
  for (size_t i = 0; i < r->ledger.n_processes; i++)
    if (!r->ledger.process[i]->ours)
      return NVIDIA_STARTS;
  return "";
}

/*
 * Lists what makes the timeline incomplete, in one list for all outputs: the problems of the ledger, and what
 * cannot be drawn.
 */
static unsigned list_left_out(const struct ni_tr *r, struct said_loss *t) {
  const struct ni_tr_counts *c = &r->count;
  uint64_t off = 0, cut = 0;
  for (uint32_t i = 0; i < r->n_with; i++) {
    bool there = r->with[i].unit != NI_TR_NONE;
    off += there && r->unit[r->with[i].unit].shown && !r->with[i].fit.good;
    cut += !there || r->with[i].error < 0;
  }
  const bool is_nvidia = *ni_tr_start_advice(r) != 0;
  const struct said_loss own[] = {
      {"no_start_time", ni_plural(c->no_start, "record has no start time", "records have no start time"),
       is_nvidia ? ": not drawn" NVIDIA_STARTS : ": not drawn", c->no_start},
      {"no_possible_time",
       ni_plural(c->no_time, "event has a time before 2001 or after 2100",
                 "events have a time before 2001 or after 2100"),
       ": not drawn", c->no_time},
      {"unfinished_not_kept", ni_plural(c->open_lost, "unfinished operation", "unfinished operations"),
       " beyond 4,096 of one communicator", c->open_lost},
      {"with_unaligned", ni_plural(off, "file of --with has", "files of --with have"),
       " a clock of its own: no kernels tell", off},
      {"with_unread", ni_plural(cut, "file of --with is", "files of --with are"),
       " not whole, or of no rank that is here", cut},
  };
  unsigned n = 0;
  for (int i = 0; i < NI_PROBLEM_FIRST_NOTE; i++) {
    const struct ni_problem *p = &r->ledger.problem[i];
    if (!p->places)
      continue;
    struct said_loss x = {ni_problem_name((enum ni_problem_code)i),
                          ni_problem_text((enum ni_problem_code)i, p->count), "", p->count};
    for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++)
      if ((int)drawn[k].code == i) {
        x.name = drawn[k].name;
        x.more = drawn[k].more;
      }
    t[n++] = x;
  }
  for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i].count)
      t[n++] = own[i];
  return n;
}

bool ni_tr_incomplete(const struct ni_tr *r) {
  struct said_loss t[TOLD_MAX];
  return list_left_out(r, t) > 0; /* the ledger's problems are in it */
}

static int64_t find_worst_gpu_spread(const struct ni_tr *r) {
  int64_t worst = 0;
  for (uint32_t i = 0; i < r->n_units; i++)
    if (r->unit[i].shown && r->unit[i].clock.spread_ns > worst)
      worst = r->unit[i].clock.spread_ns;
  return worst;
}

/*
 * A process has several ranks and its log knows no GPUs. Nothing tells which ranks of two communicators are
 * the same, so its units are no ranks. Counts them at least: as many as one communicator has. *more: another
 * communicator of that kind has as many.
 */
static uint32_t count_ranks_at_least(const struct ni_tr *r, uint32_t process, bool *more) {
  uint32_t most = 0;
  const char *of = NULL;
  for (uint32_t i = 0; i < r->n_members; i++) {
    const struct ni_who_member *x = &r->who.member[i];
    uint32_t n = 0;
    bool first = x->process == process;
    for (uint32_t k = 0; first && k < r->n_members; k++) {
      const struct ni_who_member *y = &r->who.member[k];
      bool same = r->member[k].first == k && y->process == process && y->hash == x->hash;
      first = !same || k >= i;
      n += same;
    }
    if (!first || n < most)
      continue;
    const char *name = ni_tr_comm_name(r, &r->member[i]);
    *more = n == most && (*more || ni_names_alike(of, name));
    if (n > most) {
      most = n;
      of = name;
    }
  }
  return most;
}

/* Of the communicators that were asked for it has to be in one: of the others nothing is drawn. */
static bool is_unit_drawn(const struct ni_tr *r, uint32_t unit) {
  bool has_member = !r->opt.filter.comm.n;
  for (uint32_t i = 0; !has_member && i < r->n_members; i++)
    has_member = r->member[i].unit == unit && r->member[i].shown;
  return r->unit[unit].shown && has_member;
}

/* *more: there may be more ranks than that. */
static void count_shown(const struct ni_tr *r, uint32_t *ranks, bool *more, uint32_t *hosts) {
  *ranks = *hosts = 0;
  *more = false;
  for (uint32_t p = 0; p < r->n_processes; p++) {
    uint32_t units = 0, n = 0;
    bool known = true, tied = false;
    for (uint32_t u = r->process[p].first_unit; u != NI_TR_NONE; u = r->unit[u].next_in_process, n++) {
      units += is_unit_drawn(r, u);
      known &= r->unit[u].gpu >= 0;
    }
    uint32_t least = known || n < 2 ? units : count_ranks_at_least(r, p, &tied);
    *more |= tied && units > least;
    *ranks += units < least ? units : least;
  }
  for (uint32_t i = 0; i < r->n_hosts; i++)
    *hosts += is_host_shown(r, i);
}

/* Prints a few hosts; of many, the doubtful ones first. */
static void print_hosts(const struct ni_tr *r, uint32_t hosts, FILE *f) {
  uint32_t told = 0;
  int64_t worst = 0;
  char text[512];
  for (int pass = hosts > HOSTS_SHOWN ? 0 : 1; pass < 2; pass++)
    for (uint32_t i = 0; i < r->n_hosts; i++) {
      const struct ni_host_clock *h = &r->host[i].clock;
      bool doubtful = i != r->reference && (!h->aligned || h->contradiction);
      if (!is_host_shown(r, i) || (hosts > HOSTS_SHOWN && doubtful != (pass == 0)))
        continue;
      if (told++ < HOSTS_SHOWN) {
        ni_tr_clock_text(r, i, text, sizeof text);
        ni_say(f, "host        %s, %s\n", ni_tr_host_name(r, i), text);
      } else if (h->aligned && h->error_ns > worst) {
        worst = h->error_ns;
      }
    }
  if (told > HOSTS_SHOWN)
    ni_say(f, "            ... and %s more %s, errors below %s; all are in the file's otherData\n",
           NI_COUNT(told - HOSTS_SHOWN), ni_plural(told - HOSTS_SHOWN, "host", "hosts"),
           ni_span_text(worst, text));
}

/*
 * "rank 3: 240 of 250 NCCL kernels are ours, clock +1.50 s, error below 2.1 us, drift 0.120 ppm; 4,711
 * events"
 */
static void format_with(const struct ni_tr_with *w, char *out, size_t size) {
  char offset[32], error[32], clock[128] = "CLOCK NOT PUT RIGHT: its own is used";
  if (w->fit.good)
    snprintf(clock, sizeof clock, "clock %s%s, error below %s, drift %.3f ppm",
             w->fit.offset_ns < 0 ? "" : "+", ni_span_text(w->fit.offset_ns, offset),
             ni_span_text(w->fit.error_ns, error), w->fit.drift * 1e6);
  if (w->rank < 0)
    snprintf(out, size,
             "no rank: neither its distributedInfo nor its name says whose it is: --with RANK=FILE");
  else if (w->unit == NI_TR_NONE)
    snprintf(out, size, "rank %d: not in the logs: left out", w->rank);
  else
    snprintf(out, size, "rank %d: %s of %s NCCL kernels are ours, %s; %s %s, %s left out%s", w->rank,
             NI_COUNT(w->fit.matched), NI_COUNT(w->fit.beside), clock, NI_COUNT(w->events),
             ni_plural(w->events, "event", "events"), NI_COUNT(w->left_out),
             w->error < 0 ? "; the file is not whole" : "");
}

static void print_with(const struct ni_tr *r, FILE *f) {
  char text[512];
  for (uint32_t i = 0; i < r->n_with && !r->opt.quiet; i++) {
    format_with(&r->with[i], text, sizeof text);
    if (i < WITH_SHOWN || !r->with[i].fit.good)
      ni_say(f, "with        %s, %s\n", r->with[i].path, text);
  }
}

void ni_tr_print(const struct ni_tr *r) {
  const struct ni_tr_counts *c = &r->count;
  struct said_loss t[TOLD_MAX];
  char text[512], a[32];
  uint32_t ranks, hosts;
  bool more;
  /* With -o - the file is standard output. */
  FILE *f = strcmp(r->out_path, "-") == 0 ? stderr : stdout;
  count_shown(r, &ranks, &more, &hosts);
  ni_say(f, "timeline    %s %s of %s %s on %s host%s: %s %s, %s %s\n", NI_COUNT(c->shown),
         ni_plural(c->shown, "operation", "operations"), NI_COUNT(ranks),
         more ? "or more ranks" : ni_plural(ranks, "rank", "ranks"), NI_COUNT(hosts),
         ni_plural(hosts, "", "s"), NI_COUNT(c->slices), ni_plural(c->slices, "slice", "slices"),
         NI_COUNT(c->arrows), ni_plural(c->arrows, "arrow", "arrows"));
  if (c->slices || c->events) {
    ni_say(f, "time        %s from %s\n", ni_span_text(r->t1_ns - r->t0_ns, a),
           ni_utc_text(r->t0_ns / 1000, 'T', 6, text));
  }
  if (!r->opt.quiet && hosts > 1)
    print_hosts(r, hosts, f);
  int64_t spread = find_worst_gpu_spread(r);
  if (!r->opt.quiet && (spread || r->contradiction_ns)) {
    ni_say(f, "GPU clocks  aligned by clock lines within %s", ni_span_text(spread, a));
    if (r->contradiction_ns)
      ni_say(f, "; ranks of one host contradict each other by up to %s",
             ni_span_text(r->contradiction_ns, a));
    ni_say(f, "\n");
  }
  print_with(r, f);
  unsigned n = list_left_out(r, t);
  for (unsigned i = 0; i < n; i++)
    ni_say(f, "%s %s %s%s\n", i ? "           " : "incomplete ", NI_COUNT(t[i].count), t[i].text, t[i].more);
  if (r->ledger.n_samples)
    ni_say(f, "            first bad line: %s\n", r->ledger.sample[0].text);
  if (c->open)
    ni_say(f, "unfinished  %s %s never ended: search for NOT FINISHED\n", NI_COUNT(c->open),
           ni_plural(c->open, "operation", "operations"));
  const struct ni_problem *runs = &r->ledger.problem[NI_PROBLEM_RUNS];
  if (runs->places)
    ni_say(f, "note        %s %s\n", NI_COUNT(runs->count), ni_problem_text(NI_PROBLEM_RUNS, runs->count));
  if (c->start_assumed)
    ni_say(f, "note        %s %s\n", NI_COUNT(c->start_assumed),
           ni_plural(c->start_assumed, "operation has no GPU times: drawn from its enqueue on",
                     "operations have no GPU times: drawn from their enqueue on"));
  if (c->sampled)
    ni_say(f, "note        %s %s left out by NCCL_INSPECTOR_SAMPLE: empty space is not idleness\n",
           NI_COUNT(c->sampled), ni_plural(c->sampled, "operation was", "operations were"));
  if (c->filtered > c->sampled)
    ni_say(f, "note        %s %s left out by the plugin's settings: empty space is not idleness\n",
           NI_COUNT(c->filtered - c->sampled),
           ni_plural(c->filtered - c->sampled, "operation was", "operations were"));
  if (c->proxy_untimed)
    ni_say(f, "note        %s %s no time: not drawn\n", NI_COUNT(c->proxy_untimed),
           ni_plural(c->proxy_untimed, "proxy record of NVIDIA's inspector has",
                     "proxy records of NVIDIA's inspector have"));
  if (c->arrows_back)
    ni_say(
        f, "note        %s %s not in the timeline, or later by the clocks\n", NI_COUNT(c->arrows_back),
        ni_plural(c->arrows_back, "arrow left out: its other end is", "arrows left out: their other end is"));
  if (c->with_crowded)
    ni_say(f, "note        %s %s of --with left out: more than 256 at once on a track\n",
           NI_COUNT(c->with_crowded), ni_plural(c->with_crowded, "slice", "slices"));
  char bytes[32];
  if (r->out_large)
    ni_say(f, "note        %s of text, more than Perfetto opens: " NI_TR_SMALLER "\n",
           ni_bytes_text(r->out_text_bytes, bytes));
  if (strcmp(r->out_path, "-") == 0)
    return;
  ni_say(f, "\nwritten to  %s (%s)%s\n", r->out_path, ni_bytes_text(r->out_bytes, bytes),
         r->opt.quiet ? "" : "; open it in https://ui.perfetto.dev or chrome://tracing");
  if (r->replaces)
    ni_say(f, "            in place of an earlier timeline, which is gone; -o FILE names another file\n");
}

static void write_in_unit(struct ni_json *j, const char *what, bool us, int64_t ns) {
  char key[40];
  snprintf(key, sizeof key, "%s_%s", what, us ? "us" : "ns");
  if (us)
    ni_json_f64(j, key, (double)ns / 1e3);
  else
    ni_json_i64(j, key, ns);
}

/* What the file's otherData (in us) and --json (in ns) both say. */
static void print_about(const struct ni_tr *r, struct ni_json *j, bool us) {
  static const struct ni_json_field of_with[] = {NI_JSON(ni_tr_with, rank),
                                                 NI_JSON_AS(ni_tr_with, fit.matched, "kernels_matched"),
                                                 NI_JSON_AS(ni_tr_with, fit.beside, "kernels"),
                                                 NI_JSON_AS(ni_tr_with, fit.drift, "drift"),
                                                 NI_JSON(ni_tr_with, events),
                                                 NI_JSON(ni_tr_with, left_out)};
  struct said_loss t[TOLD_MAX];
  char text[512];
  ni_json_text(j, "clock_reference",
               r->reference == NI_TR_NONE ? us ? "" : NULL : ni_tr_host_name(r, r->reference));
  ni_json_array(j, "clocks");
  for (uint32_t i = 0; i < r->n_hosts; i++) {
    const struct ni_host_clock *h = &r->host[i].clock;
    if (!is_host_shown(r, i))
      continue;
    ni_json_object(j, NULL);
    ni_json_text(j, "host", ni_tr_host_name(r, i));
    ni_json_bool(j, "aligned", h->aligned);
    write_in_unit(j, "offset", us, (int64_t)h->offset_ns);
    if (h->aligned)
      write_in_unit(j, "error", us, h->error_ns);
    else
      ni_json_text(j, us ? "error_us" : "error_ns", NULL);
    ni_json_f64(j, "drift_ppm", h->drift * 1e6);
    ni_json_bool(j, "contradictory", h->contradiction);
    ni_json_u64(j, "collectives", h->matched);
    if (h->messages)
      ni_json_u64(j, "messages", h->messages);
    ni_json_u64(j, "collectives_rejected", h->rejected);
    ni_tr_clock_text(r, i, text, sizeof text);
    ni_json_text(j, "text", text);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  if (r->n_with)
    ni_json_array(j, "with");
  for (uint32_t i = 0; i < r->n_with; i++)
    NI_JSON_OBJECT (j, NULL) {
      ni_json_text(j, "file", r->with[i].path);
      ni_json_bool(j, "aligned", r->with[i].fit.good);
      NI_JSON_ALL(j, of_with, &r->with[i], NULL);
      write_in_unit(j, "offset", us, r->with[i].fit.offset_ns);
      write_in_unit(j, "error", us, r->with[i].fit.error_ns);
      format_with(&r->with[i], text, sizeof text);
      ni_json_text(j, "text", text);
    }
  if (r->n_with)
    ni_json_end_array(j);
  write_in_unit(j, "gpu_clock_spread", us, find_worst_gpu_spread(r));
  write_in_unit(j, "gpu_clock_contradiction", us, r->contradiction_ns);
  ni_json_object(j, "incomplete");
  unsigned n = list_left_out(r, t);
  for (unsigned i = 0; i < n; i++)
    ni_json_u64(j, t[i].name, t[i].count);
  ni_json_end_object(j);
}

void ni_tr_other_data(const struct ni_tr *r, struct ni_tr_out *o) {
  char text[512], *all = NULL;
  size_t size;
  struct ni_json j;
  FILE *f = open_memstream(&all, &size);
  if (!f)
    return ni_tr_out_text(o, "{}");
  ni_json_open(&j, f, NULL);
  ni_json_text(&j, "producer", "nccl-inspector " NI_VERSION);
  snprintf(text, sizeof text, "%" PRId64, r->t0_ns);
  ni_json_text(&j, "start_unix_ns", text); /* as text: a double has no room for it */
  ni_json_text(&j, "start_utc", ni_utc_text(r->t0_ns / 1000, 'T', 6, text));
  ni_json_u64(&j, "operations", r->count.shown);
  ni_json_u64(&j, "left_out_by_settings", r->count.filtered);
  print_about(r, &j, true);
  ni_json_close(&j);
  fclose(f);
  ni_tr_out_text(o, all ? all : "{}");
  free(all);
}

void ni_tr_print_json(const struct ni_tr *r) {
  static const struct ni_json_field fields[] = {
      NI_JSON_AS(ni_tr_counts, shown, "operations"),
      NI_JSON(ni_tr_counts, slices),
      NI_JSON(ni_tr_counts, events),
      NI_JSON(ni_tr_counts, arrows),
      NI_JSON_AS(ni_tr_counts, arrows_back, "arrows_left_out"),
      NI_JSON_AS(ni_tr_counts, open, "unfinished"),
      NI_JSON(ni_tr_counts, start_assumed),
      NI_JSON(ni_tr_counts, unknown_lines),
      NI_JSON(ni_tr_counts, marks),
      NI_JSON_AS(ni_tr_counts, filtered, "left_out_by_settings"),
      NI_JSON_AS(ni_tr_counts, proxy_untimed, "proxy_without_time")};
  const struct ni_tr_counts *c = &r->count;
  struct ni_json j;
  uint32_t ranks, hosts;
  bool more;
  count_shown(r, &ranks, &more, &hosts);
  ni_json_open(&j, strcmp(r->out_path, "-") == 0 ? stderr : stdout, "nccl-inspector-trace-1");
  ni_json_text(&j, "output", r->out_path);
  ni_json_u64(&j, "output_bytes", r->out_bytes);
  ni_json_u64(&j, "text_bytes", r->out_text_bytes);
  ni_json_i64(&j, "start_unix_ns", r->t0_ns);
  ni_json_i64(&j, "span_ns", r->t1_ns - r->t0_ns);
  ni_json_u64(&j, "ranks", ranks);
  ni_json_bool(&j, "more_ranks", more);
  ni_json_u64(&j, "hosts", hosts);
  NI_JSON_ALL(&j, fields, c, NULL);
  if (r->n_with)
    ni_json_u64(&j, "with_crowded", c->with_crowded);
  ni_json_text(&j, "verdict", ni_ledger_complete(&r->ledger) ? "COMPLETE" : "INCOMPLETE");
  ni_json_object(&j, "problems_by");
  for (int i = 0; i < NI_PROBLEM_FIRST_NOTE; i++)
    if (r->ledger.problem[i].places)
      ni_json_u64(&j, ni_problem_name((enum ni_problem_code)i), r->ledger.problem[i].count);
  ni_json_end_object(&j);
  print_about(r, &j, false);
  ni_json_close(&j);
}
