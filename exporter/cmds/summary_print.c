/*
 * What the terminal shows: whose logs these are in one line, what stands out, where the time went, and last
 * what the tables are made of and whether that is all there is.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/table.h"
#include "exporter/base/text/terminal.h"
#include "exporter/base/text/time_text.h"
#include "exporter/cli/program.h"
#include "format/release.h"
#include "exporter/model/sums/findings.h"
#include "exporter/base/text/safe_text.h"
#include "summary_counters.h"
#include "summary_print.h"

enum {
  GROUPS_SHOWN = 20,
  TAGS_SHOWN = 12,
  TROUBLE_SHOWN = 5,
  OUTLIERS_SHOWN = 3,
  FINDINGS_SHOWN = 6,
  INPUTS_SHOWN = 4
};

/* What ended is compared. A job that hangs has that, too. */
#define NI_UNTIL_THEN " in what had ended by then"

static void print_head(const struct ni_summary *s, const struct ni_inputs *in, FILE *f) {
  char text[NI_HEAD_TEXT];
  ni_say(f, "%s\n", ni_head_text(s, text));
  if (s->job.runs > 1)
    ni_say(f, "all of them are in the figures below: --run N takes one alone\n");
  if (s->hang) {
    ni_say(f, "%s\n     next: ", s->hang);
    ni_print_next("hang LOGS", in, f);
  }
}

/* Prints what the tables are made of, and what they lack. */
static void print_logs(const struct ni_summary *s, FILE *f) {
  const struct ni_input *in = &s->input;
  char first[40], last[40], release[40];
  if (s->records)
    ni_say(f, "%s to %s, ", ni_utc_text(s->first_us, ' ', 0, first), ni_utc_text(s->last_us, ' ', 0, last));
  if (s->job.nccl_version > 0)
    ni_say(f, "NCCL %s, ", ni_release_text(s->job.nccl_version, release));
  ni_say(f, "%s %s\n%s %s, ", NI_COUNT(s->n_comms), ni_plural(s->n_comms, "communicator", "communicators"),
         NI_COUNT(s->records), ni_plural(s->records, "record", "records"));
  if (!s->approximate)
    ni_say(f, "%s %s, ", NI_COUNT(s->operations), ni_plural(s->operations, "operation", "operations"));
  ni_say(f, "from %s %s", NI_COUNT(in->files), ni_plural(in->files, "file", "files"));
  if (*s->job.formats)
    ni_say(f, " (%s, written by %s)", s->job.formats, s->job.producers);
  if (in->without_record) {
    ni_say(f, "; %s more %s no record (sampled, expired or lost): the tables do not have %s",
           NI_COUNT(in->without_record), ni_plural(in->without_record, "operation has", "operations have"),
           ni_plural(in->without_record, "it", "them"));
    if (!s->n_rolled) {
      /* with times, numbers, sizes or --approximate */
    } else if (in->unrolled) {
      ni_say(f, ", summary/summary_rollups.csv has %s of all %s (of the rest no roll-up was written)",
             NI_COUNT(in->rolled), NI_COUNT(in->rolled + in->unrolled));
    } else {
      ni_say(f, ", summary/summary_rollups.csv has all %s", NI_COUNT(in->rolled));
    }
  }
  if (in->left_out_by_settings)
    ni_say(f, "; %s %s left out by the plugin's settings (`nccl-inspector check` says which)",
           NI_COUNT(in->left_out_by_settings),
           ni_plural(in->left_out_by_settings, "operation was", "operations were"));
  if (in->filtered_out)
    ni_say(f, "; %s %s filtered out as asked for", NI_COUNT(in->filtered_out),
           ni_plural(in->filtered_out, "record", "records"));
  ni_say(f, "\n");
}

static void print_clock_line(void *f, const char *text) { ni_say(f, "CLOCKS: %s\n", text); }

static void print_clocks(const struct ni_summary *s, FILE *f) {
  if (s->clocks)
    ni_clocks_say(s->clocks, !s->approximate, print_clock_line, f);
}

/* Prints what is not complete, and what else matters. The first line has the verdict. */
static void print_troubles(const struct ni_summary *s, FILE *f) {
  for (size_t i = 0; i < s->input.n_trouble && i < TROUBLE_SHOWN; i++)
    ni_say(f, "%s%s\n", i == 0 ? "INCOMPLETE: " : "            ", s->input.trouble[i]);
  if (s->input.n_trouble > TROUBLE_SHOWN)
    ni_say(f, "            and %s more, in output.log\n", NI_COUNT(s->input.n_trouble - TROUBLE_SHOWN));
  if (s->capped)
    ni_say(f,
           "%" PRIu64
           " %s of sizes or times in summary_rollups.csv or series*.csv would be more than %" PRIu64
           " and %s as that: the logs "
           "state sizes that no operation has\n",
           s->capped, ni_plural(s->capped, "sum", "sums"), NI_COUNT_MAX,
           ni_plural(s->capped, "stands", "stand"));
  for (size_t i = 0; i < s->input.n_notes; i++)
    ni_say(f, "note: %s\n", s->input.note[i]);
}

/* The table of groups: as narrow as its cells, so that the usual one fits on 80 columns. */
enum { COLS = 10 };
static const struct ni_column group_columns[COLS] = {{.head = "time"},
                                                     {"type", .left = true, .drop = 2},
                                                     {"function", .left = true},
                                                     {.head = "size"},
                                                     {"timed by", .left = true, .drop = 5},
                                                     {"p50", .drop = 1},
                                                     {"p99", .drop = 3},
                                                     {.head = "busbw"},
                                                     {"peak", .drop = 4},
                                                     {"", .left = true, .drop = 6}};

static void format_number(char out[48], double v, int digits, const char *unit) {
  if (isnan(v))
    strcpy(out, "-");
  else
    snprintf(out, 48, "%.*f%s", digits, v, unit);
}

static void add_number_cell(struct ni_table *t, double v, int digits, const char *unit) {
  char text[48];
  format_number(text, v, digits, unit);
  ni_table_cell(t, "%s", text);
}

static void add_duration_cell(struct ni_table *t, double us) {
  char text[32];
  ni_table_cell(t, "%s", isnan(us) ? "-" : ni_duration_text(us, text));
}

/* With the unit that fits: 4 bytes go at kB/s where 400 MB go at GB/s. */
static void add_rate_cell(struct ni_table *t, double gbs) {
  double v = gbs * 1e9;
  if (isnan(gbs)) {
    ni_table_cell(t, "-");
    return;
  }
  const char *unit = ni_decimal_unit(&v, 999.5);
  ni_table_cell(t, "%.*f %s/s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit);
}

static void fill_row(struct ni_table *t, const struct ni_group *g, bool approximate) {
  char func[81], size[32];
  ni_table_cell(t, "%.1f%%", 100 * g->time_share);
  ni_table_cell(t, "%s", ni_comm_type_words[g->type]);
  ni_table_cell(t, "%.40s", ni_safe_text(g->func, func, sizeof func));
  ni_table_cell(t, "%s", ni_size_text(g->msg_bytes, size));
  ni_table_cell(t, "%s", *ni_timing_names[g->timing] ? ni_timing_names[g->timing] : "-");
  add_duration_cell(t, g->us.p50);
  add_duration_cell(t, g->us.p99);
  add_rate_cell(t, g->busbw_gbs.p50);
  add_number_cell(t, 100 * g->of_best, 0, "%");
  ni_table_cell(t, "%s",
                !approximate && (g->us.approx || g->busbw_gbs.approx) ? " (percentiles within 0.4 %)" : "");
}

/*
 * Prints words at most 80 columns wide, each line indented, the first one by `begin`. A terminal has its own
 * width.
 */
static void print_hanging(FILE *f, const char *begin, const char *indent, const char *text) {
  int at = 0;
  if (ni_terminal_columns(f)) {
    ni_say(f, "%s%s\n", begin, text);
    return;
  }
  for (const char *p = text; *p;) {
    size_t n = strcspn(p, " ");
    int wide = ni_text_columns(p, n);
    bool fits = at + 1 + wide <= 80;
    if (at && !fits)
      ni_say(f, "\n");
    if (at == 0 || !fits)
      at = ni_say(f, "%s", at ? indent : begin);
    else
      at += ni_say(f, " ");
    ni_say(f, "%.*s", (int)n, p);
    at += wide;
    p += n + (p[n] == ' ');
  }
  ni_say(f, "\n");
}
static void print_wrapped(FILE *f, const char *indent, const char *text) {
  print_hanging(f, indent, indent, text);
}

static void print_groups(const struct ni_summary *s, FILE *f) {
  static const char *const legend[NI_TIMING_COUNT] = {
      [NI_TIMING_KERNEL_GPU] = "kernel_gpu: from the kernel's start to its end, by the GPU's clock",
      [NI_TIMING_KERNEL_CPU] = "kernel_cpu: from the kernel's start to its end, as the CPU saw them",
      [NI_TIMING_COLLECTIVE_CPU] =
          "collective_cpu: the time of the call, which says nothing of the kernel; "
          "nccl-inspector check tells why"};
  uint32_t *order = ni_groups_by_share(s);
  size_t n = s->n_groups < GROUPS_SHOWN ? s->n_groups : GROUPS_SHOWN;
  struct ni_table t;
  bool timed[NI_TIMING_COUNT] = {false}, peak = false;
  if (!order)
    return;
  ni_table_begin(&t, group_columns, COLS);
  for (size_t i = 0; i < n; i++) {
    fill_row(&t, &s->group[order[i]], s->approximate);
    timed[s->group[order[i]].timing] = true;
    peak |= !isnan(s->group[order[i]].of_best);
  }
  if (n)
    ni_say(f, "\n");
  ni_table_print(&t, f);
  if (s->n_groups > GROUPS_SHOWN)
    ni_say(f, "  and %s more %s, in summary/summary.csv\n", NI_COUNT(s->n_groups - GROUPS_SHOWN),
           ni_plural(s->n_groups - GROUPS_SHOWN, "group", "groups"));
  for (int i = 0; i < NI_TIMING_COUNT; i++)
    if (timed[i] && legend[i])
      print_wrapped(f, "  | ", legend[i]);
  if (peak)
    ni_say(f, "  | peak: p50 of busbw, the bus bandwidth, against the best of that function and type\n");
  uint64_t fused = 0;
  for (size_t i = 0; i < s->n_groups; i++)
    fused += s->group[i].tails;
  if (fused)
    print_wrapped(f, "  | ",
                  "one kernel can do several symmetric calls: their times are then the whole kernel's, "
                  "which shares of time count once");
  free(order);
}

static const struct ni_column tag_columns[] = {
    {.head = "time"},          {.head = "tag"},
    {"name", .left = true},    {"timed by", .left = true, .drop = 2},
    {"operations", .drop = 1}, {"bytes", .drop = 3},
    {.head = "sum of times"},  {.head = "mean busbw"}};

static void print_tags(const struct ni_summary *s, FILE *f) {
  enum { COLUMNS = sizeof tag_columns / sizeof *tag_columns };
  struct ni_table t;
  char size[32], name[81], took[32];
  if (s->tag_sums.too_many)
    ni_say(f, "\nmore than %u tags of the application: no figures by tag; --tag chooses some\n",
           NI_TAG_ROWS_MAX);
  if (!s->n_tags)
    return;
  ni_say(f, "\nby tag of the application:\n");
  ni_table_begin(&t, tag_columns, COLUMNS);
  for (size_t i = 0; i < s->n_tags && i < TAGS_SHOWN; i++) {
    const struct ni_tag_row *x = &s->tag[i];
    ni_table_cell(&t, "%.1f%%", 100 * x->time_share);
    ni_table_cell(&t, "%" PRIu64, x->tag);
    ni_table_cell(&t, "%.64s", x->name ? ni_safe_text(x->name, name, sizeof name) : "-");
    ni_table_cell(&t, "%s", *ni_timing_names[x->timing] ? ni_timing_names[x->timing] : "-");
    ni_table_cell(&t, "%s", NI_COUNT(x->operations));
    ni_table_cell(&t, "%s", ni_size_text(x->bytes, size));
    ni_table_cell(&t, "%s", ni_duration_text(x->exec_ns / 1e3, took));
    add_number_cell(&t, x->busbw_gbs, 2, "");
  }
  ni_table_print(&t, f);
  if (s->n_tags > TAGS_SHOWN)
    ni_say(f, "  and %s more %s, in summary/summary_by_tag.csv\n", NI_COUNT(s->n_tags - TAGS_SHOWN),
           ni_plural(s->n_tags - TAGS_SHOWN, "row", "rows"));
  ni_say(f, "  untagged: %.1f%% of the time\n", 100 * (s->tagged_share < 1 ? 1 - s->tagged_share : 0));
}

/* Prints it as one word of a shell, whatever is in it. */
static void print_word(FILE *f, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=+,@%-";
  if (*word && word[strspn(word, plain)] == 0) {
    ni_say(f, "%s", word);
    return;
  }
  for (const char *quote = "'";; word++, quote = "'\\''") {
    size_t n = strcspn(word, "'");
    ni_say(f, "%s%.*s", quote, (int)n, word);
    word += n;
    if (!*word)
      break;
  }
  ni_say(f, "'");
}

void ni_print_next(const char *next, const struct ni_inputs *in, FILE *f) {
  const char *logs = strstr(next, "LOGS");
  print_word(f, ni_program_text());
  ni_say(f, " %.*s", logs ? (int)(logs - next) : (int)strlen(next), next);
  if (logs && (in->n < 1 || in->n > INPUTS_SHOWN))
    ni_say(f, "LOGS");
  for (size_t i = 0; logs && i < in->n && in->n <= INPUTS_SHOWN; i++) {
    ni_say(f, i ? " " : "");
    print_word(f, in->path[i]);
  }
  if (logs)
    ni_say(f, "%s", logs + strlen("LOGS"));
  if (logs && in->run && strncmp(next, "recover ", 8) != 0) { /* which takes none */
    ni_say(f, " --run ");
    print_word(f, in->run);
  }
  ni_say(f, "\n");
}

static void print_finding(const struct ni_summary *s, size_t i, const struct ni_inputs *in, FILE *f) {
  const struct ni_finding *x = &s->finding[i];
  char begin[32], evidence[340];
  snprintf(begin, sizeof begin, "  %zu  ", i + 1);
  print_hanging(f, begin, "     ", x->text);
  snprintf(evidence, sizeof evidence, "evidence: %s", x->evidence);
  if (*x->evidence)
    print_wrapped(f, "     ", evidence);
  if (*x->next) {
    ni_say(f, "     next: ");
    ni_print_next(x->next, in, f);
  }
}

/* Prints what it is judged by, and what is judged. */
static void print_judged(const struct ni_summary *s, FILE *f) {
  char text[320], why[256];
  if (ni_finding_of_all(s, text))
    ni_say(f, "  %s\n", text);
  if (ni_cost_text(s, text))
    print_wrapped(f, "  ", text);
  if (ni_steps_text(s, text))
    print_wrapped(f, "  ", text);
  if (s->n_findings)
    print_wrapped(f, "  | ", ni_findings_rules(s, text));
  if (s->by_own_time || !s->why_durations)
    return;
  snprintf(why, sizeof why, "judged by durations, not by own time: %s", s->why_durations);
  print_wrapped(f, "  | ", why);
}

/*
 * Prints faults, or notes, which accuse nobody. A finding has the same number everywhere. Returns how many
 * there are.
 */
static size_t print_class(const struct ni_summary *s, const struct ni_inputs *in, bool notes,
                          const char *title, FILE *f) {
  size_t n = 0;
  for (size_t i = 0; i < s->n_findings; i++) {
    if (ni_finding_is_note(&s->finding[i]) != notes)
      continue;
    if (n == 0)
      ni_say(f, "\n%s:\n", title);
    if (n++ < FINDINGS_SHOWN)
      print_finding(s, i, in, f);
  }
  uint64_t more = (n > FINDINGS_SHOWN ? n - FINDINGS_SHOWN : 0) + (notes ? 0 : s->findings_left_out);
  if (more)
    ni_say(f, "  and %" PRIu64 " more, in summary/summary.json\n", more);
  return n;
}

static void print_findings(const struct ni_summary *s, const struct ni_inputs *in, FILE *f) {
  if (s->approximate) {
    ni_say(f, "\n");
    print_wrapped(f, "  ",
                  "approximate: percentiles within 0.4 %, all else is exact. From sums of each log, so "
                  "ranks are not compared: who is late, operations, messages by pair and roll-ups are told "
                  "without --approximate.");
    return;
  }
  size_t faults = print_class(s, in, false, "what stands out", f);
  if (!faults && s->records)
    ni_say(f, "\nno rank, host or communicator stands out%s\n", s->hang ? NI_UNTIL_THEN : "");
  (void)print_class(s, in, true, "also seen", f);
  print_judged(s, f);
}

/* "node-1 rank 3 (global rank 11)" */
static void print_seat(const struct ni_summary *s, const struct ni_outlier *o, FILE *f) {
  const struct ni_process *p = &s->process[o->process];
  char host[81];
  ni_say(f, "%s rank %d", ni_safe_text(s->host[p->host].name, host, sizeof host), o->rank);
  if (p->rank_stated && p->ranks < 2)
    ni_say(f, " (global rank %d)", p->rank);
}

/* The name of a communicator, "tp1"; with its hash if others have that name; only the hash if it has none. */
static const char *name_row_comm(const struct ni_summary *s, uint32_t comm, char out[128]) {
  const struct ni_comm_row *c = &s->comm[comm];
  bool unique = c->name && *c->name;
  char name[81];
  for (uint32_t i = 0; unique && i < s->n_comms; i++)
    unique = i == comm || !s->comm[i].name || strcmp(s->comm[i].name, c->name) != 0;
  ni_safe_text(c->name, name, sizeof name);
  if (unique)
    snprintf(out, 128, "%s", name);
  else
    snprintf(out, 128, *name ? "%s (%s)" : "%s%s", name, c->id);
  return out;
}

/*
 * "rank 3 on node-0 paused 20.1 ms before AllReduce #36 on tp0 (step 212): 41 operations of 31 ranks waited,
 * 19.8 ms at most"
 */
static void print_incident(const struct ni_summary *s, const struct ni_outlier *o, const char *operation,
                           FILE *f) {
  const bool slow = o->kind == NI_OUTLIER_SLOW;
  char host[81], us[32];
  if (o->began_host != UINT32_MAX)
    ni_safe_text(s->host[o->began_host].name, host, sizeof host);
  if (o->began_host == UINT32_MAX)
    ni_say(f, slow ? "slow" : "late, who began it is not known");
  else if (o->began == UINT32_MAX)
    ni_say(f, "host %s", host);
  else
    ni_say(f, "rank %d on %s", s->process[o->began].rank, host);
  if (!isnan(o->began_us))
    ni_say(f, " paused %s", ni_duration_text(o->began_us, us));
  if (o->before)
    ni_say(f, " before %s", operation);
  if (o->began_step >= 0)
    ni_say(f, " (step %" PRId64 ")", o->began_step);
  ni_say(f, ": %u %s ", o->operations, ni_plural(o->operations, "operation", "operations"));
  /* else nobody waited long enough to be one */
  if (o->ranks)
    ni_say(f, "of %s %s ", NI_COUNT(o->ranks), ni_plural(o->ranks, "rank", "ranks"));
  ni_say(f, "%s, ", slow ? "took longer than usual" : o->ranks ? "waited" : "came late");
  if (!o->before)
    ni_say(f, "%s ", operation);
  ni_say(f, "%s%s", ni_duration_text(o->most_us, us), o->before ? " at most" : "");
  if (o->finding >= 0)
    ni_say(f, ", see %d above", o->finding + 1);
  ni_say(f, o->more ? ", and %u more such pauses\n" : "\n", o->more);
}

static void print_outliers(const struct ni_summary *s, FILE *f) {
  if (s->n_outliers)
    ni_say(f, "\nlargest single losses (all in summary.json):\n");
  for (size_t i = 0; i < s->n_outliers && i < OUTLIERS_SHOWN; i++) {
    const struct ni_outlier *o = &s->outlier[i];
    char func[81], comm[128], operation[256], took[32], peers[32];
    ni_safe_text(s->group[o->group].func, func, sizeof func);
    name_row_comm(s, o->comm, comm);
    ni_say(f, "  ");
    if (o->operations) {
      snprintf(operation, sizeof operation, "%s #%" PRIu64 " on %s", func, o->sn, comm);
      print_incident(s, o, operation, f);
      continue;
    }
    if (o->kind == NI_OUTLIER_LATE) {
      print_seat(s, o, f);
      ni_say(f, " came late to %s #%" PRIu64 " on %s: its kernel took %s, its peers' %s\n", func, o->sn, comm,
             ni_duration_text(o->us, took), ni_duration_text(o->peers_us, peers));
      continue;
    }
    ni_say(f, "%s #%" PRIu64 " on %s took %s at its fastest rank (", func, o->sn, comm,
           ni_duration_text(o->us, took));
    print_seat(s, o, f);
    ni_say(f, "), usual are %s\n", ni_duration_text(o->peers_us, peers));
  }
}

/* Verdicts of a part are none of the job: what explains them may be left out. */
static void print_part(const struct ni_run *r, FILE *f) {
  char names[128], text[320];
  if (!*ni_filters_names(&r->opt.filter, names))
    return;
  snprintf(text, sizeof text,
           "A PART of the job, by %s: what is said is of that part, and its cause may be in the rest", names);
  print_wrapped(f, "", text);
}

void ni_print_summary(const struct ni_summary *s, const struct ni_run *r, FILE *f) {
  print_head(s, &r->opt.inputs, f);
  print_part(r, f);
  print_clocks(s, f);
  if (!r->opt.quiet) {
    print_findings(s, &r->opt.inputs, f);
    print_groups(s, f);
    print_tags(s, f);
    print_outliers(s, f);
    ni_print_beside(s, f);
    ni_say(f, "\nthe logs:\n");
  }
  print_logs(s, f);
  print_troubles(s, f);
}

static bool is_same_operation(const struct ni_group *x, const struct ni_group *y) {
  return strcmp(x->func, y->func) == 0 && x->kind == y->kind && x->type == y->type;
}

struct tests_row {
  uint64_t bytes;
  const struct ni_slice *slice;
};
static NI_ORDER_BY(by_bytes, struct tests_row, bytes, slice);

/* The '#' makes a comment of the heads, as nccl-tests has it. */
static const struct ni_column tests_columns[] = {{"#        size", "#         (B)", .width = 13},
                                                 {"records", "", .width = 12, .drop = 4},
                                                 {"timed by", "", .width = 14, .drop = 3},
                                                 {"time", "(us)", .width = 10},
                                                 {"time p99", "(us)", .width = 10, .drop = 2},
                                                 {"algbw", "(GB/s)", .width = 10, .drop = 1},
                                                 {"busbw", "(GB/s)", .width = 10}};

/* nccl-tests' size: of the whole buffer where NCCL counts one rank's part; its time: the mean. */
void ni_print_nccl_tests(const struct ni_summary *s, FILE *f) {
  struct tests_row *row = malloc((s->n_by_comm + 1) * sizeof *row);
  struct ni_table t;
  if (!row)
    return;
  for (uint32_t c = 0; c < s->n_comms; c++) {
    for (uint32_t g0 = 0; g0 < s->n_groups; g0++) {
      const struct ni_group *head = &s->group[g0];
      if (g0 > 0 && is_same_operation(head, &s->group[g0 - 1]))
        continue;
      size_t n = 0;
      for (size_t i = 0; i < s->n_by_comm; i++) {
        const struct ni_group *g = &s->group[s->by_comm[i].group];
        if (s->by_comm[i].of != c || !is_same_operation(g, head))
          continue;
        row[n].bytes = ni_nccl_tests_bytes(ni_func_from_name(g->func), g->msg_bytes, s->comm[c].n_ranks);
        row[n++].slice = &s->by_comm[i];
      }
      if (n == 0)
        continue;
      qsort(row, n, sizeof *row, by_bytes);
      char func[81], name[81];
      ni_safe_text(head->func, func, sizeof func);
      ni_say(f, "# %s  communicator %s%s%s  nranks %d  nnodes %d%s%s\n", func, s->comm[c].id,
             s->comm[c].name ? " " : "", ni_safe_text(s->comm[c].name, name, sizeof name), s->comm[c].n_ranks,
             s->comm[c].nnodes, s->comm[c].role ? "  role " : "",
             s->comm[c].role ? ni_role_names[s->comm[c].role] : "");
      ni_say(f, "#\n");
      ni_table_begin(&t, tests_columns, sizeof tests_columns / sizeof *tests_columns);
      for (size_t i = 0; i < n; i++) {
        const struct ni_slice *x = row[i].slice;
        const struct ni_group *g = &s->group[x->group];
        /* The time of an enqueue is no time of a transfer: its records have no bandwidth either. */
        double algbw = x->busbw_gbs.n ? (double)row[i].bytes / (x->us.mean * 1e3) : NAN;
        ni_table_cell(&t, "%" PRIu64, row[i].bytes);
        ni_table_cell(&t, "%" PRIu64, x->records);
        ni_table_cell(&t, "%s", *ni_timing_names[g->timing] ? ni_timing_names[g->timing] : "-");
        ni_table_cell(&t, "%.2f", x->us.mean);
        ni_table_cell(&t, "%.2f", x->us.p99);
        add_number_cell(&t, algbw, 2, "");
        add_number_cell(&t, algbw * ni_bus_factor(ni_func_from_name(g->func), s->comm[c].n_ranks), 2, "");
      }
      ni_table_print(&t, f);
      ni_say(f, "\n");
    }
  }
  free(row);
}
