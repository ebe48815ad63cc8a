/* What the kernel knows of a file, wherever statx may be refused. Any thread; no state, no memory. */
#ifndef NI_FILE_FACTS_H
#define NI_FILE_FACTS_H

#include <sys/stat.h>

/*
 * statx, by the call before it where the kernel has none or a container's filter refuses it (EPERM). Fills at least inode,
 * device, links, type, mode, owner, size and the times of change. 0, or -1 and errno.
 */
int ni_file_facts(int fd, const char *path, int flags, struct statx *out);

#endif
