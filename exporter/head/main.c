/* nccl-inspector-live: what looks at running jobs (exporter/cmds/live.h, exporter/cmds/head.h). Run by
 * nccl-inspector; argv[1] is the command, of two words in one argument. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/gsprof.h"
#include "cli/session.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/top/top.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/terminal.h"
#include "head.h"

static int run_top(int argc, char **argv) {
  struct ni_top_options o;
  int done, code = ni_top_options_parse(&o, argc, argv, &done);
  if (!done)
    code = ni_top(&o, argv[0]);
  ni_top_options_free(&o);
  return code;
}

static int run_head(int argc, char **argv) {
  struct ni_head_options o;
  int done, code = ni_head_options_parse(&o, argc, argv, &done);
  if (!done)
    code = ni_head_main(&o, argv[0]);
  ni_head_options_free(&o);
  return code;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
  } programs[] = {{"agent", ni_agent_main}, {"top", run_top}, {"head", run_head}, {"gsprof", ni_gsprof_main}};
  ni_terminal_begin();
  const char *word = argc > 1 ? argv[1] : "";
  char name[64];
  int code = NI_EXIT_USAGE;
  bool known = false;
  snprintf(name, sizeof name, strcmp(word, "gsprof") == 0 ? "%s" : "nccl-inspector %s", word);
  if (argc > 1)
    argv[1] = program_invocation_name = program_invocation_short_name = name;
  for (size_t i = 0; !known && i < sizeof programs / sizeof *programs; i++)
    if ((known = strcmp(word, programs[i].name) == 0))
      code = programs[i].run(argc - 1, argv + 1);
  for (int i = 0; !known && i < NI_SESSION_WORDS; i++)
    if ((known = strcmp(word, ni_session_commands[i]->name) == 0))
      code = ni_session_main((enum ni_session_word)i, argc - 1, argv + 1);
  if (!known)
    ni_say(stderr, "%s: run as `nccl-inspector agent`, `top`, `head` or `session`\n",
           argc ? argv[0] : "nccl-inspector-live");
  if (fflush(stdout) != 0 || ferror(stdout)) {
    ni_say(stderr, "%s: standard output: %s\n", name, strerror(errno));
    return code == NI_EXIT_FINE ? NI_EXIT_COULD_NOT_RUN : code;
  }
  return code;
}
