/*
 * Files that a command passes over, because they lay in the folders of a job before it began: logs and black
 * boxes of an earlier attempt, which may have hung there. `run` writes the list, `hang` reads it.
 *
 * The list is a file in which each path ends with a byte 0. A path is spelled as ni_discover() spells it, so
 * both commands have to be given the same folders.
 *
 * One thread; ni_passed_over_free(). All 0: nothing is passed over.
 */
#ifndef NI_BOX_PASSED_OVER_H
#define NI_BOX_PASSED_OVER_H

#include "exporter/input/discover.h"

struct ni_passed_over {
  char *text;  /* the file */
  char **path; /* into text, sorted */
  size_t n;
};

/* Adds these files to the list in fd. 0, or -errno of writing. */
int ni_passed_over_add(int fd, const struct ni_files *files);
/* 0, -ENOMEM, or -errno of reading the file. */
int ni_passed_over_read(struct ni_passed_over *list, const char *file);
/* Takes those of the list off files. */
void ni_passed_over_drop(const struct ni_passed_over *list, struct ni_files *files);
void ni_passed_over_free(struct ni_passed_over *list);

#endif
