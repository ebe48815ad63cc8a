/* nccl-inspector-live: what looks at running jobs (exporter/cmds/live.h). Run by nccl-inspector; argv[1] is the command. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/terminal.h"
#include "top/top.h"

int main(int argc, char **argv) {
  ni_terminal_begin();
  char name[64];
  int done, code = NI_EXIT_USAGE;
  snprintf(name, sizeof name, "nccl-inspector %s", argc > 1 ? argv[1] : "");
  if (argc > 1) argv[1] = program_invocation_name = program_invocation_short_name = name;
  if (argc > 1 && strcmp(name, "nccl-inspector agent") == 0) {
    code = ni_agent_main(argc - 1, argv + 1);
  } else if (argc > 1 && strcmp(name, "nccl-inspector top") == 0) {
    struct ni_top_options o;
    code = ni_top_options_parse(&o, argc - 1, argv + 1, &done);
    if (!done) code = ni_top(&o, name);
    ni_top_options_free(&o);
  } else {
    ni_say(stderr, "%s: run as `nccl-inspector agent` or `nccl-inspector top`\n", argc ? argv[0] : "nccl-inspector-live");
  }
  if (fflush(stdout) != 0 || ferror(stdout)) {
    ni_say(stderr, "%s: standard output: %s\n", name, strerror(errno));
    return code == NI_EXIT_FINE ? NI_EXIT_COULD_NOT_RUN : code;
  }
  return code;
}
