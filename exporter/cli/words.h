/*
 * The words of a command in one table: what it is for, its options, exit codes, examples and files.
 *
 * From the table come the parser of the command line, and `--help`, the man page and the completion in a
 * shell (page.h), so what is accepted and what is said about it are the same rows. An option's row says where
 * its value goes in the command's own struct, the default and what is accepted; nothing else parses values.
 * Main thread only. Messages go to stderr, help to stdout, both through ni_say().
 */
#ifndef NI_WORDS_H
#define NI_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/input/discover.h"
#include "exporter/input/filters.h"
#include "exporter/input/inputs.h"
#include "exporter/model/who/who.h"

/* What the member holds that a row names. */
enum ni_opt_kind {
  NI_OPT_END = 0,
  NI_OPT_FLAG,   /* bool; no argument */
  NI_OPT_NUMBER, /* unsigned or uint64_t, from min to max; max 0: no end */
  NI_OPT_SIZE,   /* uint64_t: bytes with units, from min on; a row has a default */
  NI_OPT_TEXT,   /* const char *: at least min bytes of the command line's own memory */
  /* one of the words in want, '|' between them. bool: true; unsigned or enum: its number; const char *: it */
  NI_OPT_CHOICE,
  NI_OPT_WHEN,   /* struct ni_when */
  NI_OPT_NAMES,  /* struct ni_words; repeatable */
  NI_OPT_RANKS,  /* struct ni_ranks; repeatable */
  NI_OPT_TAGS,   /* struct ni_tag_filter; repeatable */
  NI_OPT_INPUTS, /* struct ni_inputs, at least min of them; repeatable */
  NI_OPT_TAKE,   /* take() does it; repeatable */
  /*
   * char **: a command line of its own, from the first plain word on; at least min words, NULL behind the
   * last
   */
  NI_OPT_REST,
};

struct ni_opt {
  const char *name; /* NULL: the row of what stands without an option */
  char letter;      /* 0: none */
  enum ni_opt_kind kind;
  /* what its argument is called; NULL: it has none; "[=WHAT]": --name or --name=WHAT, and "" without one */
  const char *arg;
  /* NULL: hidden, an earlier name or for our own build; shown rows that an abbreviation fits go before */
  const char *help;
  size_t at, size; /* of the member: NI_INTO() */
  /* what is accepted, in "want ...": NULL where the kind says it. INPUTS: said when there are too few */
  const char *want;
  /* the default, parsed like a value before all others, and shown; NULL: what the struct begins with */
  const char *def;
  uint64_t min, max;
  /* 0, -EINVAL: refused with want, -ENOMEM */
  int (*take)(const struct ni_opt *o, void *into, const char *arg);
  /* the option that contradicts it: both are FLAG or TEXT; NULL: none */
  const char *without;
  /* What had a meaning once: words of the value, '|' between them, or "": the option as a whole. It is
   * accepted, also in a list with commas, named once on standard error unless JSON is wanted (a row "json"),
   * and nothing else. NULL: nothing. */
  const char *gone;
};
#define NI_INTO(type, member) .at = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/* May its argument be left out? */
static inline bool ni_opt_may_lack(const struct ni_opt *o) {
  return o->name && o->arg && o->arg[0] == '[' && o->arg[1] == '=';
}

/* Rows that several commands have. */
#define NI_ROWS_LOGS(type, least) \
  {NULL,          0, \
   NI_OPT_INPUTS, "DIR|FILE|PATTERN...", \
   NULL,          NI_INTO(type, inputs), \
   .min = least,  .want = "which logs? give a directory, files or a pattern"}, \
      {"input-dir", \
       0, \
       NI_OPT_INPUTS, \
       "DIR", \
       "Logs to read: a directory, a file or a pattern (also as plain argument)", \
       NI_INTO(type, inputs)}, \
      NI_ROW_RUN(type), NI_ROW_PROGRESS(type)
#define NI_ROW_PROGRESS(type) \
  {"progress", \
   0, \
   NI_OPT_CHOICE, \
   "json", \
   "Progress as JSON lines on standard error", \
   NI_INTO(type, inputs.progress_json), \
   .want = "json"}
#define NI_ROW_RUN(type) \
  {"run", \
   0, \
   NI_OPT_TEXT, \
   "N|last|JOB", \
   "Only this run, where the logs hold several: its number, the last one, or its job id", \
   NI_INTO(type, inputs.run)}
#define NI_ROW_BOXES(type) {NULL, 0, NI_OPT_INPUTS, "[DIR|BOX...]", NULL, NI_INTO(type, inputs)}
#define NI_ROW_BOX_DIR(type) \
  {"box-dir", \
   0, \
   NI_OPT_TEXT, \
   "DIR", \
   "Where the black boxes of this machine lie (default " NI_BOX_DIR ")", \
   NI_INTO(type, box_dir)}
#define NI_ROW_JSON(type, command) \
  {"json", \
   0, \
   NI_OPT_FLAG, \
   NULL, \
   "JSON on standard output (schema nccl-inspector-" command "-1)", \
   NI_INTO(type, json)}
#define NI_ROWS_INDEX(type) \
  {"no-index", \
   0, \
   NI_OPT_FLAG, \
   NULL, \
   "Read the logs as if there were no index, and leave none", \
   NI_INTO(type, index.off)}, \
      {"index-dir", \
       0, \
       NI_OPT_TEXT, \
       "DIR", \
       "Where the index lies (default: beside the logs, else in the cache of the user)", \
       NI_INTO(type, index.dir), \
       .min = 1, \
       .want = "a folder", \
       .without = "no-index"}, \
      {"reindex", \
       0, \
       NI_OPT_FLAG, \
       NULL, \
       "Make the index anew", \
       NI_INTO(type, index.reindex), \
       .without = "no-index"}
#define NI_ROWS_FILTERS(type, what, whose) \
  {"since", \
   0, \
   NI_OPT_WHEN, \
   "TIME", \
   "Only " what \
   " from then on: 2026-11-21T08:00:00Z, seconds since 1970, -10m before the end, +5m after the start", \
   NI_INTO(type, filter.since)}, \
      {"until", 0, NI_OPT_WHEN, "TIME", "Only " what " before then", NI_INTO(type, filter.until)}, \
      {"rank", 0, NI_OPT_RANKS, "N,M-K,...", "Only these ranks (" whose ")", NI_INTO(type, filter.rank)}, \
      {"job-rank", \
       0, \
       NI_OPT_RANKS, \
       "N,M-K,...", \
       "Only these ranks of the job, as findings name them", \
       NI_INTO(type, filter.job_rank)}, \
      {"node", \
       0, \
       NI_OPT_NAMES, \
       "NAME,...", \
       "Only these nodes, by the names of their hosts", \
       NI_INTO(type, filter.host), \
       .want = "names of nodes"}, \
      {"host", 0, NI_OPT_NAMES, "NAME,...", NULL, NI_INTO(type, filter.host), .want = "names of nodes"}, \
      {"comm", \
       0, \
       NI_OPT_NAMES, \
       "ID|NAME,...", \
       "Only these communicators, by hash (0x...) or name", \
       NI_INTO(type, filter.comm), \
       .want = "names or hashes (0x...)"}, \
      {"coll", \
       0, \
       NI_OPT_NAMES, \
       "NAME,...", \
       "Only these functions (AllReduce, Send, ...)", \
       NI_INTO(type, filter.coll), \
       .want = "names, such as AllReduce,Send"}, \
      NI_ROW_TAG(type)
#define NI_ROW_TAG(type) \
  {"tag", \
   0, \
   NI_OPT_TAGS, \
   "N,M-K,NAME,...", \
   "Only operations with these tags of the application, by number or name; none: untagged", \
   NI_INTO(type, filter.tag)}

/*
 * A word and what it means: exit codes, files, examples (the command line without "nccl-inspector COMMAND",
 * what it does).
 */
struct ni_meaning {
  const char *word, *meaning;
};

/* When one needs a command; the list of commands goes by it. Groups without commands are not shown. */
enum ni_need {
  NI_NEED_BEFORE,
  NI_NEED_DURING,
  NI_NEED_AFTER,
  NI_NEED_COUNTERS,
  NI_NEED_ALWAYS,
  NI_NEED_COUNT
};

enum { NI_MEANINGS_MAX = 6 };
struct ni_help_page;
struct ni_command {
  const char *name;
  enum ni_need need;
  /* in the list of commands: one line */
  const char *purpose;
  /* a sentence before the options; paragraphs behind them, '\n' between; NULL: none */
  const char *about, *more;
  /* NULL: "[OPTION...]" and what the plain row is called; else lines */
  const char *synopsis;
  /* ends with an empty row */
  const struct ni_opt *opt;
  /* 64, wrong usage, goes without saying */
  struct ni_meaning exits[NI_MEANINGS_MAX], examples[NI_MEANINGS_MAX], files[NI_MEANINGS_MAX];
  /* further pairs, before the options; NULL: none */
  void (*extra)(struct ni_help_page *p);
  /* what is wrong with the options together, as a sentence; NULL: nothing */
  const char *(*refuse)(void *into);
  int (*run)(int argc, char **argv);
};

/*
 * The defaults, then argv, into the command's struct. argv[0] is the name that messages and help begin with.
 * *done: the command has nothing more to do, because help was asked for or a word refused; the return value
 * is then its exit code.
 */
int ni_words_parse(const struct ni_command *c, int argc, char **argv, void *into, int *done);

/* ---- the inputs of a command line; the list is the caller's ---- */

/*
 * The logs among the inputs, those of --run alone where it is given; *runs: all that there are
 * (ni_runs_free()). Where there are none, says of each input why, in who's name. 0, -ENOENT, -ENOMEM.
 */
int ni_inputs_find(const struct ni_inputs *in, const char *who, struct ni_files *out, struct ni_runs *runs);
/* The same of files that were found already. */
int ni_inputs_choose(const struct ni_inputs *in, const char *who, struct ni_files *files,
                     struct ni_runs *runs);
/* The paths that cannot be read, on stderr. */
void ni_inputs_unreadable(const char *who, const struct ni_files *files);

#endif
