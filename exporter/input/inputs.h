/*
 * What a command line names as input: paths, and which of the runs in them. Main thread; ni_inputs_free()
 * frees the paths.
 */
#ifndef NI_INPUTS_H
#define NI_INPUTS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/progress.h"

struct ni_inputs {
  char **path;
  size_t n, cap;
  const char *run; /* --run; NULL: all */
  bool progress_json;
};

/* How progress is shown: as JSON where that was asked for, not at all where quiet was. */
static inline enum ni_progress_mode ni_inputs_progress(const struct ni_inputs *in, bool quiet) {
  return in->progress_json ? NI_PROGRESS_JSON : quiet ? NI_PROGRESS_NONE : NI_PROGRESS_AUTO;
}

/* 0 or -ENOMEM. The path is copied. */
static inline int ni_inputs_add(struct ni_inputs *in, const char *path) {
  if (!ni_array_room(in->path, in->n, in->cap) || !(in->path[in->n] = strdup(path)))
    return -ENOMEM;
  in->n++;
  return 0;
}

static inline void ni_inputs_free(struct ni_inputs *in) {
  for (size_t i = 0; i < in->n; i++)
    free(in->path[i]);
  free(in->path);
  *in = (struct ni_inputs){0};
}

#endif
