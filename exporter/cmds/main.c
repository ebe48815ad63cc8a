/*
 * nccl-inspector: one program, its subcommands in one table; and those that are about the others.
 *
 * Without a subcommand but with options (the spelling of NVIDIA's exporter script), or with a folder of logs,
 * it is `summary`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/cli/command.h"
#include "exporter/cli/complete.h"
#include "exporter/cli/page.h"
#include "exporter/cli/program.h"
#include "exporter/base/text/names_alike.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/terminal.h"
#include "exporter/input/discover.h"
#include "live.h"

#define ENTRY(name) &ni_##name##_command,
static const struct ni_command *const commands[] = {NI_COMMANDS(ENTRY)};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const struct ni_command *find_command(const char *name) {
  for (size_t i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i]->name, name) == 0)
      return commands[i];
  return NULL;
}

/* Earlier spellings of names, which scripts may have: no help, page or completion has them. */
static const struct {
  const char *spelling, *name;
} earlier[] = {{"counters compare", "counters diff"}};

static const struct ni_command *find_earlier(const char *name) {
  for (size_t i = 0; i < sizeof earlier / sizeof *earlier; i++)
    if (strcmp(earlier[i].spelling, name) == 0)
      return find_command(earlier[i].name);
  return NULL;
}

/* A name may be two words ("counters list"): then second is its second one, and *words is 2. */
static const struct ni_command *find_words(const char *first, const char *second, int *words) {
  char two[64];
  snprintf(two, sizeof two, "%s %s", first, second ? second : "");
  const struct ni_command *c = find_command(first);
  *words = c ? 1 : 2;
  if (!c)
    c = find_command(two);
  return c ? c : find_earlier(two);
}

static void list_commands(struct ni_help_page *p) {
  static const char *const heads[NI_NEED_COUNT] = {"Before a job", "While it runs, and when it hangs",
                                                   "After it", "What NICs and GPUs did",
                                                   "About these commands"};
  for (int g = 0; g < NI_NEED_COUNT; g++) {
    bool any = false;
    int column = 13;
    for (size_t i = 0; i < N_COMMANDS; i++)
      if ((int)commands[i]->need == g && (int)strlen(commands[i]->name) + 3 > column)
        column = (int)strlen(commands[i]->name) + 3;
    for (size_t i = 0; i < N_COMMANDS; i++) {
      if ((int)commands[i]->need != g)
        continue;
      if (!any)
        ni_help_head(p, heads[g], column);
      any = true;
      ni_help_pair(p, commands[i]->name, commands[i]->purpose);
    }
  }
}

static const struct ni_command program = {
    .name = "nccl-inspector",
    .purpose = "what NCCL did: reads logs and black boxes of the NCCL Inspector plugin",
    .about =
        "Checks, sums up and draws what the NCCL Inspector plugin wrote, and looks at jobs that run or hang.",
    .synopsis = "COMMAND [OPTION...] DIR|FILE...",
    .extra = list_commands,
    .opt = (const struct ni_opt[]){{0}},
    .more =
        "nccl-inspector COMMAND --help lists the options of a command, with an example. Where a folder of "
        "logs or an option stands in place of COMMAND, it is summary. The man page nccl-inspector(7) "
        "begins with a first job.",
    .exits = {{"0", "fine"},
              {"1", "could not run"},
              {"2", "data incomplete (doctor: a problem)"},
              {"3", "a finding (hang; doctor --gate)"},
              {"4", "a job that was killed (hang)"}},
    .examples = {{"doctor", "before the first job: would its log be complete?"},
                 {"summary logs/", "after a job: tables, pictures and report.html"},
                 {"hang", "on a node whose job stands still"}}};

/* ---- groups: commands of two words that share the first one ---- */

static bool is_of_group(const struct ni_command *c, const char *group) {
  size_t n = strlen(group);
  return strncmp(c->name, group, n) == 0 && c->name[n] == ' ';
}

static void list_group(struct ni_help_page *p, const char *group) {
  ni_help_head(p, "Commands", 22);
  for (size_t i = 0; i < N_COMMANDS; i++)
    if (is_of_group(commands[i], group))
      ni_help_pair(p, commands[i]->name, commands[i]->purpose);
}

static void list_counters(struct ni_help_page *p) { list_group(p, "counters"); }
static void list_session(struct ni_help_page *p) { list_group(p, "session"); }

/* What is said of a group as such. */
static const struct ni_command groups[] = {
    {.name = "session",
     .purpose = "stretches of time over which a head gathers what the agents of a cluster say",
     .about = "A session is a named stretch of time over which a head gathers what the agents of a cluster "
              "say about GPUs, NICs and "
              "the job's collectives. Each command has a --help of its own.",
     .synopsis = "COMMAND [OPTION...]",
     .extra = list_session,
     .opt = (const struct ni_opt[]){{0}},
     .examples = {{"start warm-up", "begins one"}, {"stop warm-up", "ends it: its file is written"}}},
    {.name = "counters",
     .purpose = "what NICs, GPUs and the host count, during a job or around it",
     .about = "Reads what NICs, GPUs and the host count, and says what it means. Each command has a --help "
              "of its own.",
     .synopsis = "COMMAND [OPTION...]",
     .extra = list_counters,
     .opt = (const struct ni_opt[]){{0}},
     .examples = {{"list", "which NICs and GPUs are here"},
                  {"run -- ./job", "a command, and what they counted meanwhile"}}}};
enum { N_GROUPS = sizeof groups / sizeof *groups };

static const struct ni_command *find_group(const char *name) {
  for (size_t i = 0; i < N_GROUPS; i++)
    if (strcmp(groups[i].name, name) == 0)
      return &groups[i];
  return NULL;
}

/* ---- what is no command ---- */

/* Does a log lie in the folder, or below it? */
static bool has_logs(const char *path) {
  struct ni_files files = {.first_only = true};
  struct stat st;
  char *dir = strdup(path);
  bool is_folder = dir && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
  bool holds = is_folder && ni_discover(&files, &dir, 1) == 0 && files.n > 0;
  ni_files_free(&files);
  free(dir);
  return holds;
}

/*
 * The command whose name is nearly the word; NULL: none is. With a third of the letters wrong it is another
 * word.
 */
static const char *find_nearest(const char *word) {
  const char *best = NULL;
  const size_t length = strlen(word);
  unsigned least = length > 6 ? 3 : 2;
  for (size_t i = 0; i < N_COMMANDS && length > 2; i++) {
    unsigned far = strlen(word) < NI_EDITS_MAX
        ? ni_edits(word, strlen(word), commands[i]->name, strlen(commands[i]->name), true)
        : least;
    if (far < least) {
      least = far;
      best = commands[i]->name;
    }
  }
  return best;
}

/* Reports a word in the place of a command that is a path. */
static void report_path(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0)
    return;
  if (S_ISDIR(st.st_mode))
    ni_say(stderr, "; no log lies in the folder of that name (*.log, *.log.gz, *.jsonl, *.jsonl.gz)");
  else
    ni_say(stderr, "; for the file of that name: %s summary %s", ni_program_text(), path);
}

/*
 * Refuses an unknown command. Commands of two words are named by their first word, once. If that was given,
 * all that begin with it are named.
 */
static int refuse_unknown(const char *first, const char *second) {
  bool group = find_group(first) != NULL;
  ni_say(stderr, "nccl-inspector: there is no command '%s%s%s'", first, group && second ? " " : "",
         group && second ? second : "");
  if (!group)
    report_path(first);
  ni_say(stderr, "; commands are:");
  for (size_t i = 0, before = 0; i < N_COMMANDS; i++) {
    const char *name = commands[i]->name;
    size_t word = strcspn(name, " ");
    bool new_word = before != word || strncmp(name, commands[i - 1]->name, word) != 0;
    if (!group && new_word)
      ni_say(stderr, " %.*s", (int)word, name);
    if (group && is_of_group(commands[i], first))
      ni_say(stderr, " '%s'", name);
    before = word;
  }
  ni_say(stderr, "\n");
  const char *meant = group ? NULL : find_nearest(first);
  if (meant)
    ni_say(stderr, "Did you mean %s?\n", meant);
  return NI_EXIT_USAGE;
}

/*
 * Runs a group: the first word is its name, and no command of it follows. So it is its own --help or
 * --version, or a refusal.
 */
static int run_group(const struct ni_command *group, int argc, char **argv) {
  char name[64];
  int done;
  snprintf(name, sizeof name, "nccl-inspector %s", group->name);
  if (argc > 2 && argv[2][0] != '-')
    return refuse_unknown(argv[1], argv[2]);
  if (argc > 2) {
    argv[1] = name;
    int code = ni_words_parse(group, argc - 1, argv + 1, NULL, &done);
    if (done)
      return code;
  }
  ni_words_help(stderr, name, group);
  return NI_EXIT_USAGE;
}

/* ---- help ---- */

struct help {
  const char *command, *second;
  bool man, names;
};

static int collect_word(const struct ni_opt *o, void *into, const char *arg) {
  struct help *h = into;
  if (h->second)
    return -EINVAL;
  *(h->command ? &h->second : &h->command) = arg;
  return 0;
}

const struct ni_command ni_help_command = {
    .name = "help",
    .need = NI_NEED_ALWAYS,
    .purpose = "the list of commands, or the help of one",
    .about = "The list of commands, or the help of one, also as a man page.",
    .run = ni_help_run,
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_TAKE, "[COMMAND]", NULL, .want = "one command", .take = collect_word},
            {"man", 0, NI_OPT_FLAG, NULL, "As a man page in roff, for man -l -", NI_INTO(struct help, man)},
            {"names", 0, NI_OPT_FLAG, NULL, "Only the names of the commands, one a line",
             NI_INTO(struct help, names)},
            {0}},
    .exits = {{"0", "done"}},
    .examples = {{"check", "the options of check, with examples"},
                 {"--man summary | man -l -", "where the man pages are not installed"}}};

int ni_help_run(int argc, char **argv) {
  struct help h = {0};
  int done, code = ni_words_parse(&ni_help_command, argc, argv, &h, &done);
  if (done)
    return code;
  for (size_t i = 0; h.names && i < N_COMMANDS; i++)
    ni_say(stdout, "%s\n", commands[i]->name);
  if (h.names)
    return NI_EXIT_FINE;
  int words;
  const struct ni_command *c = h.command ? find_words(h.command, h.second, &words) : &program;
  if (!c && !h.second)
    c = find_group(h.command);
  if (!c)
    return refuse_unknown(h.command, h.second);
  char name[64];
  snprintf(name, sizeof name, "nccl-inspector%s%s", h.command ? " " : "", h.command ? c->name : "");
  if (h.man)
    ni_words_man(stdout, name, 1, c);
  else
    ni_words_help(stdout, name, c);
  return NI_EXIT_FINE;
}

/* ---- completion ---- */

struct completion {
  const char *shell;
};

const struct ni_command ni_completion_command = {
    .name = "completion",
    .need = NI_NEED_ALWAYS,
    .purpose = "a script that completes commands and options in bash, zsh or fish",
    .about =
        "Prints a script that completes commands and options in a shell. Where nccl-inspector is installed, "
        "the shell has it.",
    .run = ni_completion_run,
    .opt = (const struct ni_opt[]){{NULL, 0, NI_OPT_CHOICE, "[" NI_SHELLS "]", NULL,
                                    NI_INTO(struct completion, shell), .want = NI_SHELLS},
                                   {0}},
    .exits = {{"0", "done"}},
    .examples = {{"bash >/etc/bash_completion.d/nccl-inspector", "for all users"},
                 {"fish >~/.config/fish/completions/nccl-inspector.fish", "for oneself, in fish"}}};

int ni_completion_run(int argc, char **argv) {
  struct completion c = {0};
  int done, code = ni_words_parse(&ni_completion_command, argc, argv, &c, &done);
  if (!done)
    ni_words_complete(stdout, c.shell ? c.shell : "bash", "nccl-inspector", commands, N_COMMANDS, NULL);
  return code;
}

/* What was meant for the user and did not get there is a failure: a full disk, a closed pipe. */
static int end_output(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout))
    return code;
  ni_say(stderr, "nccl-inspector: standard output: %s\n", strerror(errno));
  return code == NI_EXIT_FINE ? NI_EXIT_COULD_NOT_RUN : code;
}

static int run_command(const struct ni_command *c, int argc, char **argv) {
  char full[64];
  snprintf(full, sizeof full, "nccl-inspector %s", c->name);
  argv[0] = full;
  program_invocation_name = program_invocation_short_name = full;
  return end_output(c->run(argc, argv));
}

static bool is_help_word(const char *word) {
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0;
}

int main(int argc, char **argv) {
  ni_terminal_begin();
  if (argc > 0)
    ni_program_called(argv[0]);
  if (argc > 0 && strcmp(basename(argv[0]), "gsprof") == 0)
    return ni_live_become("gsprof", argc, argv);
  if (argc < 2) {
    ni_words_help(stderr, "nccl-inspector", &program);
    return NI_EXIT_USAGE;
  }
  const char *first = argv[1];
  if (is_help_word(first)) {
    ni_words_help(stdout, "nccl-inspector", &program);
    return end_output(NI_EXIT_FINE);
  }
  int words;
  const struct ni_command *c = find_words(first, argc > 2 ? argv[2] : NULL, &words);
  if (c)
    return run_command(c, argc - words, argv + words);
  if (first[0] == '-' && (c = find_command("summary")))
    return run_command(c, argc, argv);
  const struct ni_command *group = find_group(first);
  if (group)
    return run_group(group, argc, argv);
  if (has_logs(first) && (c = find_command("summary"))) {
    ni_say(stderr,
           "nccl-inspector: %s is no command but a folder of logs: this is nccl-inspector summary %s\n",
           first, first);
    return run_command(c, argc, argv);
  }
  return refuse_unknown(first, argc > 2 ? argv[2] : NULL);
}
