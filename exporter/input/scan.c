#include "scan.h"
#include "parse/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

enum { LINES_BETWEEN = 4096 }; /* looks at stop(), words of read() */

struct ni_scan {
  struct ni_parser *parser;
  struct ni_line line;
  /*
   * The marker whose records follow; its texts lie in words. head_no: for them, behind the parser's numbers.
   */
  bool in_marker;
  uint32_t head_no;
  uint64_t marker_line, announced, followed;
  struct ni_ident ident;
  struct ni_meta meta;
  char *words;
  size_t cap_words;
};

int ni_scan_new(struct ni_scan **out) {
  struct ni_scan *s = *out = calloc(1, sizeof *s);
  int e = s ? ni_parser_new(&s->parser) : -ENOMEM;
  if (e < 0) {
    free(s);
    *out = NULL;
  }
  return e;
}

void ni_scan_free(struct ni_scan *s) {
  if (!s)
    return;
  ni_parser_free(s->parser);
  free(s->words);
  free(s);
}

static int report_fault(const struct ni_scan_to *to, const struct ni_fault *f) {
  return to->fault ? to->fault(to->arg, f) : 0;
}

static int close_marker(struct ni_scan *s, const struct ni_scan_to *to) {
  bool differs = s->in_marker && s->announced != s->followed;
  s->in_marker = false;
  return differs ? report_fault(to,
                                &(struct ni_fault){.kind = NI_FAULT_MARKER,
                                                   .line_no = s->marker_line,
                                                   .announced = s->announced,
                                                   .followed = s->followed})
                 : 0;
}

/* Up to v4.2 the marker only counts what self-contained lines hold; from v4.3 on bare records follow it. */
static int open_marker(struct ni_scan *s, const struct ni_line *l, uint64_t line_no) {
  const char *v = l->meta.version;
  s->in_marker = false;
  if (strcmp(v, "v4.0") == 0 || strcmp(v, "v4.1") == 0 || strcmp(v, "v4.2") == 0)
    return 0;
  s->ident = l->ident;
  s->meta = l->meta;
  /* The parser's texts go with its next line. */
  const char **text[] = {&s->ident.comm_name,    &s->meta.version,  &s->meta.git_rev,
                         &s->meta.rec_mechanism, &s->meta.hostname, &s->meta.producer};
  size_t need = 0;
  for (size_t i = 0; i < sizeof text / sizeof *text; i++)
    need += *text[i] ? strlen(*text[i]) + 1 : 0;
  if (need > s->cap_words) {
    char *more = malloc(need);
    if (!more)
      return -ENOMEM;
    free(s->words);
    s->words = more;
    s->cap_words = need;
  }
  char *at = s->words;
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    if (!*text[i])
      continue;
    char *copy = at;
    at = stpcpy(at, *text[i]) + 1;
    *text[i] = copy;
  }
  s->in_marker = true;
  s->head_no = (s->head_no + 1) | UINT32_C(1) << 31;
  s->marker_line = line_no;
  s->announced = l->stats.records[0] + l->stats.records[1] + l->stats.proxy_records;
  s->followed = 0;
  return 0;
}

uint64_t ni_scan_count_owed(const struct ni_scan *s) { return s->in_marker ? s->announced - s->followed : 0; }

static bool is_marker(const struct ni_line *l) {
  return l->kind == NI_LINE_DUMP_STATS && !l->stats.has_accounting;
}

/*
 * A record without a header is of whom the marker says, as long as that has announced more. false: it is
 * nobody's.
 */
static bool assign_record(struct ni_scan *s) {
  struct ni_line *l = &s->line;
  if (l->has_header)
    return true;
  if ((l->kind != NI_LINE_OP && l->kind != NI_LINE_PROXY) || !ni_scan_count_owed(s))
    return false;
  s->followed++;
  l->ident = s->ident;
  l->meta = s->meta;
  l->head_no = s->head_no;
  return true;
}

static int handle_line(struct ni_scan *s, const struct ni_scan_to *to, uint64_t line_no, bool placed) {
  struct ni_line *l = &s->line;
  if (!placed)
    return report_fault(to, &(struct ni_fault){.kind = NI_FAULT_ORPHAN, .line_no = line_no});
  int e = is_marker(l) ? close_marker(s, to) : 0;
  if (e == 0 && is_marker(l))
    e = open_marker(s, l, line_no);
  if ((l->kind == NI_LINE_COUNTER_NAMES || l->kind == NI_LINE_COUNTERS) && !to->counters)
    return e;
  return e < 0 ? e : to->take(to->arg, l, line_no);
}

static int map_line(struct ni_scan *s, struct ni_granules *g, const struct ni_reader *reader,
                    const struct ni_text *t, bool sound) {
  struct ni_border b;
  int e = ni_reader_border(reader, &b) ? ni_granules_border(g, &b) : 0;
  return e < 0 || !sound ? e : ni_granules_map_line(g, &s->line, t->text, t->len);
}

static int read_lines(struct ni_scan *s, struct ni_reader *reader, const struct ni_scan_to *to,
                      struct ni_scan_end *end) {
  const struct ni_reader_stats *stats = ni_reader_stats(reader);
  struct ni_text t;
  uint64_t told = 0;
  int e = 0, got = 0;
  for (unsigned since = 1; e == 0 && (got = ni_reader_next(reader, &t)) == 1; since++) {
    enum ni_reject why =
        t.too_long ? NI_REJ_TOO_LONG : ni_parse_line(s->parser, t.text, t.len, t.room, &s->line);
    bool placed = why == NI_OK && assign_record(s);
    if (to->granules && (e = map_line(s, to->granules, reader, &t, placed)) < 0)
      break;
    if (why == NI_OK)
      e = handle_line(s, to, t.line_no, placed);
    else if (why == NI_REJ_NO_MEMORY)
      e = -ENOMEM;
    else if (why == NI_REJ_BLANK)
      end->blank++;
    else if (!t.unterminated)
      e = report_fault(to,
                       &(struct ni_fault){.kind = NI_FAULT_BAD_LINE,
                                          .line_no = t.line_no,
                                          .why = why,
                                          .key = why == NI_REJ_TOO_LONG ? NULL : s->line.bad_key});
    else if (!stats->cut)
      e = report_fault(to, &(struct ni_fault){.kind = NI_FAULT_CUT_LINE, .line_no = t.line_no});
    if (since % LINES_BETWEEN)
      continue;
    if (to->read)
      to->read(to->team, stats->file_bytes - told);
    told = stats->file_bytes;
    if (to->stop && to->stop(to->team))
      break;
  }
  if (to->read)
    to->read(to->team, stats->file_bytes - told);
  if (got == -ENOMEM && e == 0)
    e = got;
  if (got < 0)
    end->error = got;
  return e == 0 ? close_marker(s, to) : e;
}

int ni_scan_file(struct ni_scan *s, const char *path, const struct ni_range *part,
                 const struct ni_scan_to *to, struct ni_scan_end *end) {
  static const struct ni_range all;
  const struct ni_range *p = part ? part : &all;
  const struct ni_reader_options opt = {.from = p->from,
                                        .to = p->to,
                                        .text = p->text,
                                        .entry = p->entry,
                                        .borders = to->granules != NULL,
                                        .whole_members = to->granules && to->granules->brief,
                                        .head = to->head};
  struct ni_scan_end unused;
  struct ni_reader *reader;
  if (!end)
    end = &unused;
  *end = (struct ni_scan_end){0};
  s->in_marker = false;
  int e = end->error = ni_reader_open(&reader, path, &opt);
  if (e < 0)
    return e == -ENOMEM ? e : 0;
  e = read_lines(s, reader, to, end);
  if (to->granules)
    ni_granules_end(to->granules, reader);
  end->stats = *ni_reader_stats(reader);
  ni_reader_close(reader);
  return e;
}

const struct ni_line *ni_scan_text(struct ni_scan *s, char *text, size_t len, int *e) {
  const struct ni_line *l = &s->line;
  enum ni_reject why = ni_parse_line(s->parser, text, len, len + NI_PARSE_PADDING, &s->line);
  *e = why == NI_REJ_NO_MEMORY ? -ENOMEM : 0;
  if (why != NI_OK || !assign_record(s))
    return NULL;
  if (is_marker(l))
    *e = open_marker(s, l, 0);
  return *e == 0 ? l : NULL;
}

void ni_scan_begin(struct ni_scan *s) { s->in_marker = false; }

void ni_scan_skip_records(struct ni_scan *s, uint64_t records) {
  s->followed += records < ni_scan_count_owed(s) ? records : ni_scan_count_owed(s);
}

static int handle_kept(struct ni_scan *s, const struct ni_granules *g, const struct ni_kept *k, char *text,
                       const struct ni_scan_to *to) {
  int e;
  if (!k->len) {
    s->line = (struct ni_line){
        .kind = NI_LINE_CLOCK,
        .has_header = true,
        .ident = g->context[k->context].ident,
        .meta = g->context[k->context].meta,
        .clock = {.source = "", .gpu_offset_ns = k->offset_ns, .gpu_offset_at_ns = k->at_ns}};
    return to->take(to->arg, &s->line, 0);
  }
  memcpy(text, g->kept_text + k->at, k->len);
  memset(text + k->len, 0, NI_PARSE_PADDING);
  return ni_scan_text(s, text, k->len, &e) ? to->take(to->arg, &s->line, 0) : e;
}

int ni_scan_kept(struct ni_scan *s, const struct ni_granules *g, size_t from, size_t to_granule,
                 const struct ni_scan_to *to) {
  size_t first, longest = 0;
  ni_array_search(first, g->n_kept, g->kept[first].granule < from);
  for (size_t i = first; i < g->n_kept && g->kept[i].granule < to_granule; i++)
    if (g->kept[i].len > longest)
      longest = g->kept[i].len;
  char *text = malloc(longest + NI_PARSE_PADDING);
  int e = text ? 0 : -ENOMEM;
  for (size_t i = first; e == 0 && i < g->n_kept && g->kept[i].granule < to_granule; i++)
    e = handle_kept(s, g, &g->kept[i], text, to);
  free(text);
  return e;
}
