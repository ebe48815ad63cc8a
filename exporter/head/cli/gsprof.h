/*
 * Called as gsprof: its commands, options, lines on standard error and exit codes (docs/cluster.md "Called as
 * gsprof"). Main thread.
 */
#ifndef NI_GSPROF_CLI_H
#define NI_GSPROF_CLI_H

/* argv[0]: "gsprof", argv[1]: its command. The exit code. */
int ni_gsprof_main(int argc, char **argv);

#endif
