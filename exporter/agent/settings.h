/*
 * The agent's settings: of the file that --config names, then of the command line. A line `listen =
 * [::1]:9777` for each long option (flags: true or false; `#` at the beginning or behind a blank: a comment).
 * -FILE: where there is none, no settings. As root the file must be root's, and writable for nobody else: it
 * says what root runs. Main thread.
 */
#ifndef NI_SETTINGS_H
#define NI_SETTINGS_H
#include "exporter/cmds/live.h"

struct ni_settings {
  struct ni_agent_options o; /* texts are of words and argv */
  struct ni_argv words;      /* of file and command line; none without a file */
};
/*
 * NULL: nothing more is to be done, since help was asked for or something is wrong, which was told with file
 * and line; *code then.
 */
struct ni_settings *ni_settings_read(int argc, char **argv, int *code);
void ni_settings_free(struct ni_settings *s);
#endif
