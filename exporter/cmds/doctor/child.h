/*
 * Work that may harm or hang, in a process of its own with a time limit. One thread.
 */
#ifndef NI_DOCTOR_CHILD_H
#define NI_DOCTOR_CHILD_H

/*
 * Runs fn(arg, fd) in a child process; what it writes to fd comes back as text (NUL-ended, to be freed, at
 * most 1 MiB). Returns the child's exit status, -SIGNAL when a signal ended it, NI_CHILD_TIME after
 * `seconds`, NI_CHILD_FAILED when there is no process to be had.
 */
enum { NI_CHILD_TIME = -1000, NI_CHILD_FAILED = -1001 };
int ni_child_call(int (*fn)(void *arg, int fd), void *arg, unsigned seconds, char **text);
/*
 * The same for a program; stdout and stderr come back. argv[0] is looked for in PATH. env: a list of
 * NAME=value to be set that ends with NULL, or NULL.
 */
int ni_child_exec(char *const *argv, char *const *env, unsigned seconds, char **text);
/* "status 3", "signal 11 (Segmentation fault)", "no end after N s" */
const char *ni_child_why(int rc, char *buf, size_t cap);

#endif
