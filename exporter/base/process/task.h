/*
 * A program that is run beside us, with a time limit, in a process group of its own. Never waits. Each task
 * belongs to one thread.
 */
#ifndef NI_TASK_H
#define NI_TASK_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ni_task { /* all 0: nothing runs */
  pid_t pid;
  uint64_t end_ns; /* CLOCK_MONOTONIC: what it began is killed then */
};
/*
 * argv[0] is looked for in PATH; where it cannot be run it ends with 127, and its standard error says why.
 * fd: its standard input, output and error; -1: /dev/null. most: bytes of a file that it writes; 0: any.
 * stays: it does not end with us. false: errno.
 */
bool ni_task_begin(struct ni_task *t, char *const *argv, const int fd[3], uint64_t most, bool stays,
                   uint64_t end_ns);
/*
 * Has it ended? *status: as waitpid()'s, -1: not known. One that is late is killed, and has ended at a later
 * call.
 */
bool ni_task_over(struct ni_task *t, uint64_t now_ns, int *status);
/* Kills what runs. */
void ni_task_end(struct ni_task *t);
#endif
