/* Files of jobs in a folder, by their names. Nothing is opened but folders, no link is followed. Any thread. */
#ifndef NI_AGENT_FIND_H
#define NI_AGENT_FIND_H

#include <stdbool.h>
#include <sys/stat.h>

typedef bool ni_find_wanted(const void *arg, const char *name);
typedef void ni_find_found(void *arg, const char *dir, const char *name, const struct stat *st);
/* Regular files of path and of the folders in it, so many levels deep, whose names are wanted. 0 or -errno of path itself. */
int ni_find(const char *path, int depth, ni_find_wanted *wanted, ni_find_found *found, void *arg);
/* A black box of the plugin's (arg: nothing); a log of a node (arg: the node's name). */
bool ni_find_box(const void *arg, const char *name);
bool ni_find_log(const void *node, const char *name);

#endif
