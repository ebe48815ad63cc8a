/*
 * Where the machine's own trees lie: /sys, /run and /proc below NI_ROOT, which tests set; else below "/". And small files and
 * folders, whose path is whole: a user's, or what ni_root_path() made.
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
/*
 * What is in a folder but names that begin with '.', sorted as people count ("cxi2" before "cxi10"). Returns how many, to be
 * freed with ni_root_names_free(); -errno.
 */
int ni_root_names(struct dirent ***names, const char *folder);
void ni_root_names_free(struct dirent **names, int n);
/* The first line of a small file, without its end, into out. file NULL: folder is the file. Its length, or -errno; a file without
 * a byte has 0. */
int ni_root_line(char *out, size_t size, const char *folder, const char *file);
/* Of a descriptor that stays open: from its beginning, all of it that fits. Its length, or -errno. */
int ni_root_read(int fd, char *out, size_t size);

#endif
