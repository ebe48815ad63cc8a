/*
 * nccl-inspector index: brings the index of logs up to date, which other commands do by the way.
 */
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/cli/command.h"
#include "exporter/index/atlas.h"

struct index {
  struct ni_inputs inputs;
  struct ni_files files;
  struct ni_runs runs;
  struct ni_atlas_options index;
  bool quiet;
  struct ni_progress progress;
};

static const char *refuse_index(void *into) {
  return ((struct index *)into)->index.off ? "--no-index: then there is nothing to do" : NULL;
}

const struct ni_command ni_index_command = {
    .name = "index",
    .need = NI_NEED_AFTER,
    .purpose = "makes later commands fast; they leave an index by themselves, too",
    .about =
        "Brings the index of logs up to date. check, summary and show do that by the way where logs are "
        "large.",
    .refuse = refuse_index,
    .run = ni_index_run,
    .opt = (const struct ni_opt[]){NI_ROWS_LOGS(struct index, 1),
                                   NI_ROWS_INDEX(struct index),
                                   {"quiet", 'q', NI_OPT_FLAG, NULL, "Only what went wrong",
                                    NI_INTO(struct index, quiet)},
                                   {0}},
    .exits = {{"0", "the index is up to date"}, {"1", "could not run, or the index cannot be written"}},
    .examples = {{"logs/", "after a job, before others look at its logs"}}};

int ni_index_run(int argc, char **argv) {
  struct index x = {.progress = NI_PROGRESS_INIT};
  struct ni_ledger ledger = {0};
  struct ni_atlas *atlas = NULL;
  struct ni_atlas_counts n = {0};
  int done, code = ni_words_parse(&ni_index_command, argc, argv, &x, &done), e;
  if (done)
    goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&x.inputs, argv[0], &x.files, &x.runs);
  if (e == -ENOENT)
    goto out;
  x.progress.mode = ni_inputs_progress(&x.inputs, x.quiet);
  if (e == 0)
    e = ni_atlas_open(&atlas, argv[0], &x.files, &x.index, true);
  if (e == 0)
    e = ni_atlas_read_ledger(atlas, &ledger, &x.files, ni_scan_jobs(), &x.progress);
  ni_atlas_close(atlas, e == 0, &n);
  if (e < 0)
    ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
  else if (!x.quiet)
    ni_say(stdout, "%s %s: %s indexed as before, %s longer than before, %s read\n", NI_COUNT(x.files.n),
           ni_plural(x.files.n, "log", "logs"), NI_COUNT(n.fresh), NI_COUNT(n.grown), NI_COUNT(n.stale));
  if (e == 0 && !n.failed)
    code = NI_EXIT_FINE;
out:
  ni_ledger_free(&ledger);
  ni_files_free(&x.files);
  ni_runs_free(&x.runs);
  ni_inputs_free(&x.inputs);
  return code;
}
