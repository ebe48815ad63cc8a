/* nccl-inspector merge: partial results into one. */
#include "exporter/cli/command.h"
#include "exporter/cmds/result.h"
#include "shards.h"

static const char *refuse_merge(void *into) {
  const struct ni_sum_options *o = into;
  if (o->partial && o->output_dir)
    return "--partial writes no result: leave out --output-dir";
  return NULL;
}

const struct ni_command ni_merge_command = {
    .name = "merge",
    .need = NI_NEED_AFTER,
    .purpose = "one result from partial results of `summary --shard`",
    .about =
        "One result from the partial results that `summary --shard I/N --partial FILE` wrote, in any order.",
    .refuse = refuse_merge,
    .run = ni_merge_run,
    .opt = (const struct ni_opt[]){{NULL, 0, NI_OPT_INPUTS, "FILE...", NULL, NI_RESULT_IN(parts), .min = 1,
                                    .want = "which partial results? give their files"},
                                   NI_ROWS_RESULT_PLACE,
                                   {"partial", 0, NI_OPT_TEXT, "FILE",
                                    "Write a partial result again, of all these shards",
                                    NI_RESULT_IN(partial), .min = 1, .want = "a file"},
                                   {"allow-missing", 0, NI_OPT_FLAG, NULL,
                                    "Make a result without the shards that are missing, and say in it which",
                                    NI_RESULT_IN(allow_missing)},
                                   NI_ROWS_RESULT_TEXT,
                                   NI_ROW_PROGRESS(struct ni_sum_options),
                                   {0}},
    .exits = {{"0", "all there"},
              {"1", "could not run, or could not write all that it should"},
              {"2", "shards are missing, or the data is incomplete (what and where is said)"}},
    .more = "The bytes are those of one summary of all logs. Filters and the like are those of the shards.",
    .examples = {{"out.*", "NAME-analysis/ as summary would have written it"},
                 {"--partial node1.part out.1 out.2", "one partial result from two"}}};

int ni_merge_run(int argc, char **argv) {
  struct ni_run r;
  int done, code, e = ni_summarize_init(&r);
  if (e < 0)
    return NI_EXIT_COULD_NOT_RUN;
  code = ni_words_parse(&ni_merge_command, argc, argv, &r.opt, &done);
  if (!done)
    code = ni_result_of(&r, argv[0], ni_merge_parts, NULL);
  ni_summarize_free(&r);
  return code;
}
