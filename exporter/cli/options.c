#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/plural.h"

void ni_inputs_unreadable(const char *who, const struct ni_files *files) {
  for (size_t i = 0; i < files->n_bad; i++)
    ni_say(stderr, "%s: %s: %s\n", who, files->bad[i].path, ni_unreadable_why(&files->bad[i]));
}

static bool is_of_another(const struct ni_file *f, void *run) { return f->run != 0 && f->run != *(const uint32_t *)run; }

int ni_inputs_choose(const struct ni_inputs *in, const char *who, struct ni_files *files, struct ni_runs *runs) {
  char text[256];
  int e = ni_runs_find(runs, files);
  if (e < 0 || !in->run) return e;
  uint32_t run = ni_runs_named(runs, in->run);
  if (run) {
    ni_files_drop(files, is_of_another, &run);
    return 0;
  }
  ni_say(stderr, "%s: --run=%s: want a number from 1 to %zu, last, or the id of a job that is there once; there %s:\n", who,
         in->run, runs->n, ni_plural(runs->n, "is", "are"));
  for (size_t i = 0; i < runs->n && i < 8; i++) ni_say(stderr, "  %s\n", ni_run_text(runs, i, text));
  if (runs->n > 8) ni_say(stderr, "  and %zu more\n", runs->n - 8);
  return -ENOENT;
}

int ni_inputs_find(const struct ni_inputs *in, const char *who, struct ni_files *out, struct ni_runs *runs) {
  int e = ni_discover(out, in->path, in->n);
  if (e < 0) return e;
  if (out->n) return ni_inputs_choose(in, who, out, runs);
  ni_inputs_unreadable(who, out);
  for (size_t i = 0; i < in->n; i++) {
    size_t k = 0;
    while (k < out->n_bad && strcmp(out->bad[k].path, in->path[i]) != 0) k++;
    if (k < out->n_bad) continue;
    ni_say(stderr, "%s: %s: no log files in it (*.log, *.log.gz, *.jsonl, *.jsonl.gz)\n", who, in->path[i]);
  }
  return -ENOENT;
}

int ni_parse_expect(const char *text, char **name, uint64_t *count) {
  const char *eq = strrchr(text, '=');
  if (!eq || eq == text || eq[1] < '0' || eq[1] > '9') return -EINVAL;
  char *end;
  errno = 0;
  unsigned long long n = strtoull(eq + 1, &end, 10);
  if (errno || *end) return -EINVAL;
  *name = strndup(text, (size_t)(eq - text));
  if (!*name) return -ENOMEM;
  *count = n;
  return 0;
}
