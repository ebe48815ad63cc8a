/*
 * nccl-inspector: one program, its subcommands in one table.
 *
 * Without a subcommand but with options it is `summary`: the spelling of NVIDIA's exporter script.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/cli/command.h"
#include "exporter/base/text/safe_text.h"

#define ENTRY(name, help) {#name, ni_##name##_run, help},
static const struct ni_command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help;
} commands[] = {NI_COMMANDS(ENTRY)};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void usage(FILE *f) {
  ni_say(f, "Usage: nccl-inspector COMMAND [OPTION...] DIR|FILE...\n\nCommands:\n");
  for (size_t i = 0; i < N_COMMANDS; i++) ni_say(f, "  %-10s %s\n", commands[i].name, commands[i].help);
  ni_say(f, "\nnccl-inspector COMMAND --help lists the options of a command.\n"
            "Exit codes: 0 fine, 1 could not run, 2 data incomplete (doctor: a problem), 3 a finding (hang; doctor --gate),\n"
            "4 a job that was killed (hang), 64 wrong usage.\n");
}

static const struct ni_command *find(const char *name) {
  for (size_t i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i].name, name) == 0) return &commands[i];
  return NULL;
}

static int run(const struct ni_command *c, int argc, char **argv) {
  char full[64];
  snprintf(full, sizeof full, "nccl-inspector %s", c->name);
  argv[0] = full;
  program_invocation_name = program_invocation_short_name = full;
  int code = c->run(argc, argv);
  /* What was meant for the user and did not get there is a failure: a full disk, a closed pipe. */
  if (fflush(stdout) != 0 || ferror(stdout)) {
    ni_say(stderr, "nccl-inspector: standard output: %s\n", strerror(errno));
    return code == NI_EXIT_FINE ? NI_EXIT_COULD_NOT_RUN : code;
  }
  return code;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    usage(stderr);
    return NI_EXIT_USAGE;
  }
  const char *first = argv[1];
  if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "-?") == 0 || strcmp(first, "help") == 0) {
    usage(stdout);
    return NI_EXIT_FINE;
  }
  if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
    ni_say(stdout, "nccl-inspector %s (%s)\n", NI_VERSION, NI_GIT_REV);
    return NI_EXIT_FINE;
  }
  const struct ni_command *c = find(first);
  if (c) return run(c, argc - 1, argv + 1);
  if (first[0] == '-' && (c = find("summary"))) return run(c, argc, argv);
  ni_say(stderr, "nccl-inspector: there is no command '%s'; commands are:", first);
  for (size_t i = 0; i < N_COMMANDS; i++) ni_say(stderr, " %s", commands[i].name);
  ni_say(stderr, "\n");
  return NI_EXIT_USAGE;
}
