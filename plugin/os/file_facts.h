/* Small things about files and descriptors. Any thread; no state, no memory. */
#ifndef NI_FILE_FACTS_H
#define NI_FILE_FACTS_H

#include <stddef.h>
#include <sys/stat.h>

/*
 * statx, by the call before it where the kernel has none or a container's filter refuses it (EPERM). Fills at
 * least inode, device, links, type, mode, owner, size and the times of change. 0, or -1 and errno.
 */
int ni_file_facts(int fd, const char *path, int flags, struct statx *out);

/*
 * The same open file under a descriptor above 2; fd is closed if it was not. A host may run without stdin,
 * stdout or stderr, and would soon print into ours. -1 and errno: fd was negative (errno as it was), or there
 * is no descriptor.
 */
int ni_above_two(int fd);

/* The text of a small file of the kernel's, terminated and cut at cap; "" where it cannot be read. */
void ni_file_text(const char *path, char *out, size_t cap);

#endif
