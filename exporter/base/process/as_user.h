/*
 * Work on the files of another user, with his rights and no others.
 *
 * recover, snapshot, boxes and hang are run by root, over files that any local user can make: black boxes in
 * /dev/shm, logs in a job's folder. What is in such a file decides what is opened next and where something is
 * written. So root does not do it: a child process takes the owner's uid, gid and groups and gives up
 * everything else, and the kernel decides what it may. Whatever a forged file makes it do, its owner could
 * have done himself.
 *
 *   root ─▶ whose is it? (ni_plain_open: no link, no pipe, the open file is looked at)
 *       ─▶ child of that uid ─▶ work(arg)
 *
 * The child keeps standard input, output and error and one descriptor that it is handed, but no terminal to
 * type into; it cannot be traced, dies with its parent and after `seconds`. What it finds out it leaves in
 * memory of ni_shared(), which its parent takes for hostile, too.
 *
 * Main thread, before other threads are started. Not for users other than root: for them, and for root's own
 * files, the work is done at once, in this process.
 */
#ifndef NI_AS_USER_H
#define NI_AS_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Seconds that root gives to all boxes of one user in one command, and to a look of `hang` at one user's job.
 */
#define NI_AS_USER_SECONDS 120u
#define NI_AS_USER_LOOK_SECONDS 600u

/*
 * Opens a regular file that others may have made, for reading: never follows a link in the last part of the
 * name, never waits (a pipe), and *st is of what is open. -ELOOP: a link; -EINVAL: no regular file; -errno.
 */
int ni_plain_open(int dir, const char *path, struct stat *st);

/*
 * Opens what somebody has named on our command line or in our settings, for reading: links are followed, and
 * a pipe that nobody writes to is empty and not waited for. A descriptor, or -errno.
 */
int ni_named_open(const char *path);

/* Is a file of this owner another user's, and are we root? Then its work is a child's. */
bool ni_as_user_needed(uid_t owner);

/* Are we the child that root has made? */
bool ni_as_user_here(void);

/*
 * Runs work(arg) with the rights of a file's owner: in a child where that is needed, else here. keep: a
 * descriptor that stays open in the child, or -1. 0 to 100: what work returned; less than 0 with a sentence
 * in why: the rights could not be taken (-EPERM), it took too long (-ETIMEDOUT), it crashed (-ECHILD), no
 * process could be made (-errno).
 */
int ni_as_owner(uid_t owner, unsigned seconds, int keep, int (*work)(void *arg), void *arg, char *why,
                size_t why_bytes);

/* A child that runs on: work(arg) with the rights of that user, or with ours where they are; for waitpid().
 * Or -errno. Other threads may run; they are not in it. It exits with NI_CANNOT_BECOME where the rights could
 * not be taken. */
enum { NI_CANNOT_BECOME = 125 };
pid_t ni_as_owner_start(uid_t owner, int keep, int (*work)(void *arg), void *arg);

/* Zeroed memory that a child shares; NULL without memory. Freed by the process's end. */
void *ni_shared(size_t bytes);

/*
 * Has it ended, or does it within so many ms? It is still there for waitpid(). A stopped one has not ended.
 */
bool ni_child_ended(pid_t child, unsigned ms);

#endif
