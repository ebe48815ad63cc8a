/*
 * Where the machine's own trees lie: /sys, /run and /proc below NI_ROOT, which tests set; else below "/".
 *
 * Any thread; NI_ROOT is read once.
 */
#ifndef NI_ROOT_H
#define NI_ROOT_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

enum { NI_ROOT_PATH = 1024 };

/* "/sys/class/net", ... below the root, into out. Returns out; a path that is too long becomes one that is not there. */
const char *ni_root_path(char out[NI_ROOT_PATH], const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Opens a file for reading. The descriptor is the caller's, or -errno. */
int ni_root_open(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The first line of a small file, without its end, into out. Its length, or -errno; a file without a byte has 0. */
int ni_root_line(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same of a descriptor that stays open: from its beginning, all of it that fits. Its length, or -errno. */
int ni_root_read(int fd, char *out, size_t size);
/*
 * The names in a folder but those that begin with '.', sorted as people count ("cxi2" before "cxi10"). Returns how many, to
 * be freed with free() each and as a whole; -errno.
 */
int ni_root_names(char ***names, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same two of a path that is whole: a user's, or what ni_root_path() made. file NULL: folder is the file. */
int ni_names_of(char ***names, const char *folder);
int ni_line_of(char *out, size_t size, const char *folder, const char *file);
void ni_root_names_free(char **names, int n);

#endif
