/* A run from the summary.json of `summary`. One thread. */
#ifndef NI_DIFF_READ_JSON_H
#define NI_DIFF_READ_JSON_H

#include "diff.h"

/* false: why says which file, and what is wrong with it. Files above 256 MB are refused. */
bool ni_diff_read_json(struct ni_diff_run *out, const char *path, char *why, size_t cap);

#endif
