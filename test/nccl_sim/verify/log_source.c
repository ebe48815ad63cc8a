/* See log_source.h. */
#include "log_source.h"

#include <string.h>

#include "exporter/input/discover.h"
#include "exporter/input/line_reader.h"
#include "exporter/input/parse/parse.h"
#include "format/line_tables.h"
#include "test/nccl_sim/core/sim.h"

static void read_file(const char *path, struct ni_parser *parser,
                      void (*each)(const struct ni_line *, void *), void *arg, struct ni_log_totals *t) {
  struct ni_reader *r;
  static struct ni_line line; /* large: holds a trace */
  int rc = ni_reader_open(&r, path, NULL);
  if (rc < 0) {
    ni_sim_say("%s: %s", path, strerror(-rc));
    t->bad++;
    return;
  }
  for (struct ni_text text; ni_reader_next(r, &text) == 1;) {
    t->lines++;
    enum ni_reject why =
        text.too_long ? NI_REJ_TOO_LONG : ni_parse_line(parser, text.text, text.len, text.room, &line);
    if (why != NI_OK) {
      if (t->bad++ < 5)
        ni_sim_say("%s:%llu: %s %s", path, (unsigned long long)text.line_no, ni_reject_name(why),
                   line.bad_key ? line.bad_key : "");
      continue;
    }
    each(&line, arg);
  }
  if (ni_reader_stats(r)->damages)
    t->damaged++;
  ni_reader_close(r);
  t->files++;
}

int ni_logs_read(const char *path, void (*each)(const struct ni_line *, void *), void *arg,
                 struct ni_log_totals *totals) {
  struct ni_files files = {0};
  struct ni_parser *parser;
  char *paths[1] = {(char *)path};
  memset(totals, 0, sizeof *totals);
  if (ni_discover(&files, paths, 1) < 0 || ni_parser_new(&parser) < 0)
    return -1;
  for (size_t i = 0; i < files.n_bad; i++)
    ni_sim_say("%s: %s", files.bad[i].path, strerror(files.bad[i].error));
  for (size_t i = 0; i < files.n; i++)
    read_file(files.file[i].path, parser, each, arg, totals);
  ni_parser_free(parser);
  int n = files.n_bad && !files.n ? -1 : (int)files.n;
  ni_files_free(&files);
  return n;
}
