/*
 * What import can read: a row for each format, with the functions of its room (exporter/input/<format>/) and
 * the words for what was not found. One thread. All of it is constant.
 */
#ifndef NI_IMPORT_FORMATS_H
#define NI_IMPORT_FORMATS_H

#include "exporter/base/progress.h"
#include "exporter/input/imported/imported.h"

struct ni_import_format {
  const char *name;
  const char *mechanism;            /* rec_mechanism of the logs: NI_MECHANISM_KINETO */
  const char *source;               /* the same for people: "a kineto trace" */
  const char *files;                /* what they are called */
  bool (*is_one)(const char *name); /* of files in folders */
  /* the order in which files of one process are beside one another; NULL: each file by itself */
  int (*by_process)(const char *a, const char *b);
  bool (*same_process)(const char *a, const char *b);
  /* n files of one process: gives each rank in them to take(), whose result ends it if it is not 0 */
  int (*read)(const char *const *path, size_t n, ni_imported_take *take, void *arg,
              struct ni_progress *progress);
  const char *none, *broken; /* what -ENODATA and -EBADMSG of read() mean */
  /* said where no operation has a size: what to do; NULL: nothing can be done */
  const char *without_sizes;
};

/* NULL: there is none of that name. */
const struct ni_import_format *ni_import_format(const char *name);

#endif
