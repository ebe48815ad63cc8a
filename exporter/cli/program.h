/*
 * How the user has called this program. A command that we propose is to work as it is pasted: where
 * build/nccl-inspector was typed, the shell finds no nccl-inspector.
 */
#ifndef NI_PROGRAM_H
#define NI_PROGRAM_H

/*
 * argv[0] of main, which stays the caller's and has to live as long as the process. Once, by main, before
 * other threads are there.
 */
void ni_program_called(const char *argv0);

/* What to type for this program: a path where one was typed, else "nccl-inspector". Any thread. */
const char *ni_program_text(void);

#endif
