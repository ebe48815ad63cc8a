/*
 * What the terminal shows: first who and how much, then whether it is all there, then where the time went.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "format/release.h"
#include "exporter/output/tables/output.h"

enum { GROUPS_SHOWN = 20, TROUBLE_SHOWN = 5, OUTLIERS_SHOWN = 3, FINDINGS_SHOWN = 6 };

static const char *time_text(int64_t us, char out[32]) {
  time_t t = (time_t)(us / 1000000);
  struct tm tm;
  if (!gmtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%SZ", &tm)) *out = 0;
  return out;
}

static void print_job(const struct ni_summary *s, FILE *f) {
  char a[81], b[81], first[32], last[32], took[32], release[40];
  const char *gap = "";
  if (s->job.id) ni_say(f, "job %s", ni_safe_text(s->job.id, a, sizeof a)), gap = ", ";
  if (s->job.exe) ni_say(f, "%s%s", gap, ni_safe_text(s->job.exe, b, sizeof b)), gap = ", ";
  if (s->job.nccl_version > 0)
    ni_say(f, "%sNCCL %s", gap, ni_release_text(s->job.nccl_version, release)), gap = ", ";
  ni_say(f, "%s%zu host%s, %zu process%s, %zu communicator%s", gap, s->n_hosts, ni_plural(s->n_hosts, "", "s"), s->n_processes,
         ni_plural(s->n_processes, "", "es"), s->n_comms, ni_plural(s->n_comms, "", "s"));
  if (s->records)
    ni_say(f, "\n%s to %s (%s)", time_text(s->first_us, first), time_text(s->last_us, last),
           ni_duration_text((double)(s->last_us - s->first_us), took));
  ni_say(f, "\n%" PRIu64 " %s, %" PRIu64 " %s, from %" PRIu64 " %s", s->records, ni_plural(s->records, "record", "records"),
         s->operations, ni_plural(s->operations, "operation", "operations"), s->input.files,
         ni_plural(s->input.files, "file", "files"));
  if (*s->job.formats) ni_say(f, " (%s, written by %s)", s->job.formats, s->job.producers);
  const struct ni_input *in = &s->input;
  if (in->without_record) {
    ni_say(f, "; %" PRIu64 " more %s no record (sampled, expired or lost): the tables below do not have %s, "
              "summary/summary_rollups.csv has ", in->without_record,
           ni_plural(in->without_record, "operation has", "operations have"), ni_plural(in->without_record, "it", "them"));
    if (in->unrolled) ni_say(f, "%" PRIu64 " of all %" PRIu64 " (of the rest no roll-up was written)", in->rolled,
                             in->rolled + in->unrolled);
    else ni_say(f, "all %" PRIu64, in->rolled);
  }
  if (s->input.filtered_out) ni_say(f, "; %" PRIu64 " %s filtered out as asked for", s->input.filtered_out,
                                    ni_plural(s->input.filtered_out, "record", "records"));
  ni_say(f, "\n");
}

static void print_verdict(const struct ni_summary *s, FILE *f) {
  if (s->complete) ni_say(f, "COMPLETE\n");
  for (size_t i = 0; i < s->input.n_trouble && i < TROUBLE_SHOWN; i++)
    ni_say(f, "%s%s\n", i == 0 ? "INCOMPLETE: " : "            ", s->input.trouble[i]);
  if (s->input.n_trouble > TROUBLE_SHOWN)
    ni_say(f, "            and %zu more, in output.log\n", s->input.n_trouble - TROUBLE_SHOWN);
  for (size_t i = 0; i < s->input.n_notes; i++) ni_say(f, "note: %s\n", s->input.note[i]);
}

static int by_share(const void *a, const void *b, void *summary) {
  const struct ni_summary *s = summary;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  double p = s->group[x].time_share, q = s->group[y].time_share;
  return p != q ? (p > q ? -1 : 1) : x < y ? -1 : 1;
}

/* A cell: the column's width is that of its widest, so that the usual table fits on 80 columns. */
enum { COL_TIME, COL_TYPE, COL_FUNCTION, COL_SIZE, COL_TIMED_BY, COL_P50, COL_P99, COL_BUSBW, COL_PEAK, COLS };
struct cells {
  char text[COLS][48];
  bool approx;
};

static void number(char out[48], double v, int digits, const char *unit) {
  if (isnan(v)) strcpy(out, "-");
  else snprintf(out, 48, "%.*f%s", digits, v, unit);
}

static void fill(const struct ni_group *g, struct cells *c) {
  char func[81], size[32];
  snprintf(c->text[COL_TIME], sizeof *c->text, "%.1f%%", 100 * g->time_share);
  snprintf(c->text[COL_TYPE], sizeof *c->text, "%s", ni_comm_type_names[g->type]);
  snprintf(c->text[COL_FUNCTION], sizeof *c->text, "%.40s", ni_safe_text(g->func, func, sizeof func));
  snprintf(c->text[COL_SIZE], sizeof *c->text, "%s", ni_size_text(g->msg_bytes, size));
  snprintf(c->text[COL_TIMED_BY], sizeof *c->text, "%s", *ni_timing_names[g->timing] ? ni_timing_names[g->timing] : "-");
  number(c->text[COL_P50], g->us.p50, 1, "");
  number(c->text[COL_P99], g->us.p99, 1, "");
  number(c->text[COL_BUSBW], g->busbw_gbs.p50, 2, "");
  number(c->text[COL_PEAK], 100 * g->of_best, 0, "%");
  c->approx = g->us.approx || g->busbw_gbs.approx;
}

static void print_groups(const struct ni_summary *s, FILE *f) {
  static const char *const heads[COLS] = {"time", "type", "function", "size", "timed by", "p50 us", "p99 us", "bus GB/s", "peak"};
  uint32_t *order = ni_order((uint32_t)s->n_groups, by_share, (void *)s);
  struct cells row[GROUPS_SHOWN + 1] = {0};
  size_t n = s->n_groups < GROUPS_SHOWN ? s->n_groups : GROUPS_SHOWN;
  int width[COLS];
  if (!order) return;
  for (int k = 0; k < COLS; k++) strcpy(row[0].text[k], heads[k]);
  for (size_t i = 0; i < n; i++) fill(&s->group[order[i]], &row[i + 1]);
  for (int k = 0; k < COLS; k++) {
    width[k] = 0;
    for (size_t i = 0; i <= n; i++)
      if ((int)strlen(row[i].text[k]) > width[k]) width[k] = (int)strlen(row[i].text[k]);
    if (k == COL_TYPE || k == COL_FUNCTION || k == COL_TIMED_BY) width[k] = -width[k]; /* words to the left */
  }
  if (n) ni_say(f, "\n");
  for (size_t i = 0; n && i <= n; i++) {
    for (int k = 0; k < COLS; k++) ni_say(f, "%s%*s", k ? " " : "", width[k], row[i].text[k]);
    ni_say(f, "%s\n", row[i].approx ? "  (percentiles within 0.4 %)" : "");
  }
  if (s->n_groups > GROUPS_SHOWN)
    ni_say(f, "  and %zu more %s, in summary/summary.csv\n", s->n_groups - GROUPS_SHOWN,
           ni_plural(s->n_groups - GROUPS_SHOWN, "group", "groups"));
  for (size_t i = 0; i < n; i++)
    if (strcmp(row[i + 1].text[COL_TIMED_BY], ni_timing_names[NI_TIMING_COLLECTIVE_CPU]) == 0) {
      ni_say(f, "  | collective_cpu: the time of the call, which says nothing of the kernel;\n"
               "  | nccl-inspector check tells why\n");
      break;
    }
  free(order);
}

/* Words at most 80 columns wide, each line indented. */
static void print_wrapped(FILE *f, const char *indent, const char *text) {
  size_t at = 0;
  for (const char *p = text; *p;) {
    size_t n = strcspn(p, " ");
    bool fits = at + 1 + n <= 80;
    if (at && !fits) ni_say(f, "\n");
    if (at == 0 || !fits) at = (size_t)ni_say(f, "%s", indent);
    else at += (size_t)ni_say(f, " ");
    at += (size_t)ni_say(f, "%.*s", (int)n, p);
    p += n + (p[n] == ' ');
  }
  ni_say(f, "\n");
}

static void print_all_late(const struct ni_summary *s, FILE *f) {
  char text[128];
  if (ni_finding_of_all(s, text)) ni_say(f, "  %s\n", text);
}

static void print_findings(const struct ni_summary *s, FILE *f) {
  if (s->n_findings == 0) {
    if (s->records) ni_say(f, "\nno rank, host or communicator stands out\n");
    print_all_late(s, f);
    return;
  }
  ni_say(f, "\nwhat stands out:\n");
  for (size_t i = 0; i < s->n_findings && i < FINDINGS_SHOWN; i++) ni_say(f, "  %s\n", s->finding[i].text);
  uint64_t more = s->findings_left_out + (s->n_findings > FINDINGS_SHOWN ? s->n_findings - FINDINGS_SHOWN : 0);
  if (more) ni_say(f, "  and %" PRIu64 " more, in summary/summary.json\n", more);
  print_all_late(s, f);
  print_wrapped(f, "  | ", ni_findings_rules());
}

/* "node-1 rank 3 (global rank 11)" */
static void print_seat(const struct ni_summary *s, const struct ni_outlier *o, FILE *f) {
  const struct ni_process *p = &s->process[o->process];
  char host[81];
  ni_say(f, "%s rank %d", ni_safe_text(s->host[p->host].name, host, sizeof host), o->rank);
  if (p->rank_stated && p->ranks < 2) ni_say(f, " (global rank %d)", p->rank);
}

static void print_outliers(const struct ni_summary *s, FILE *f) {
  if (s->n_outliers) ni_say(f, "\nlargest single losses (all in summary.json):\n");
  for (size_t i = 0; i < s->n_outliers && i < OUTLIERS_SHOWN; i++) {
    const struct ni_outlier *o = &s->outlier[i];
    char func[81];
    ni_safe_text(s->group[o->group].func, func, sizeof func);
    ni_say(f, "  ");
    if (o->kind == NI_OUTLIER_LATE) {
      print_seat(s, o, f);
      ni_say(f, " came late to %s %" PRIu64 " of %s: its kernel took %.0f us, its peers' %.0f us\n", func, o->sn,
             s->comm[o->comm].id, o->us, o->peers_us);
      continue;
    }
    ni_say(f, "%s %" PRIu64 " of %s took %.0f us at its fastest rank (", func, o->sn, s->comm[o->comm].id, o->us);
    print_seat(s, o, f);
    ni_say(f, "), usual are %.0f us\n", o->peers_us);
  }
}

void ni_print_summary(const struct ni_summary *s, const struct ni_run *r, FILE *f) {
  print_job(s, f);
  print_verdict(s, f);
  if (r->opt.quiet) return;
  print_groups(s, f);
  print_findings(s, f);
  print_outliers(s, f);
}

struct tests_row {
  uint64_t bytes;
  const struct ni_slice *slice;
};
static int by_bytes(const void *a, const void *b) {
  const struct tests_row *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
  return x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* nccl-tests' size: of the whole buffer where NCCL counts one rank's part; its time: the mean. */
void ni_print_nccl_tests(const struct ni_summary *s, FILE *f) {
  struct tests_row *row = malloc((s->n_by_comm + 1) * sizeof *row);
  if (!row) return;
  for (uint32_t c = 0; c < s->n_comms; c++) {
    for (uint32_t g0 = 0; g0 < s->n_groups; g0++) {
      const struct ni_group *head = &s->group[g0];
      if (g0 > 0 && strcmp(head->func, s->group[g0 - 1].func) == 0 && head->kind == s->group[g0 - 1].kind &&
          head->type == s->group[g0 - 1].type)
        continue;
      size_t n = 0;
      for (size_t i = 0; i < s->n_by_comm; i++) {
        const struct ni_group *g = &s->group[s->by_comm[i].group];
        if (s->by_comm[i].of != c || g->kind != head->kind || g->type != head->type || strcmp(g->func, head->func) != 0)
          continue;
        row[n].bytes = ni_nccl_tests_bytes(ni_func_from_name(g->func), g->msg_bytes, s->comm[c].n_ranks);
        row[n++].slice = &s->by_comm[i];
      }
      if (n == 0) continue;
      qsort(row, n, sizeof *row, by_bytes);
      char func[81], name[81];
      ni_safe_text(head->func, func, sizeof func);
      ni_say(f, "# %s  communicator %s%s%s  nranks %d  nnodes %d\n", func, s->comm[c].id, s->comm[c].name ? " " : "",
             ni_safe_text(s->comm[c].name, name, sizeof name), s->comm[c].n_ranks, s->comm[c].nnodes);
      ni_say(f, "#\n#%12s %12s %14s %10s %10s %10s %10s\n", "size", "records", "timed by", "time", "time p99", "algbw",
             "busbw");
      ni_say(f, "#%12s %12s %14s %10s %10s %10s %10s\n", "(B)", "", "", "(us)", "(us)", "(GB/s)", "(GB/s)");
      for (size_t i = 0; i < n; i++) {
        const struct ni_slice *x = row[i].slice;
        const struct ni_group *g = &s->group[x->group];
        /* The time of an enqueue is no time of a transfer: its records have no bandwidth either. */
        double algbw = x->busbw_gbs.n ? (double)row[i].bytes / (x->us.mean * 1e3) : NAN;
        char alg[48], bus[48];
        number(alg, algbw, 2, "");
        number(bus, algbw * ni_bus_factor(ni_func_from_name(g->func), s->comm[c].n_ranks), 2, "");
        ni_say(f, " %12" PRIu64 " %12" PRIu64 " %14s %10.2f %10.2f %10s %10s\n", row[i].bytes, x->records,
               *ni_timing_names[g->timing] ? ni_timing_names[g->timing] : "-", x->us.mean, x->us.p99, alg, bus);
      }
      ni_say(f, "\n");
    }
  }
  free(row);
}
