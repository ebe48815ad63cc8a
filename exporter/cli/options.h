/*
 * The inputs of a command line: finds the log files among them and reports when there are none.
 *
 * Options are words.h's. Messages go to stderr. Main thread only. The input list is owned by the caller: ni_inputs_free().
 */
#ifndef NI_OPTIONS_H
#define NI_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

#include "exporter/input/discover.h"
#include "exporter/input/inputs.h"
#include "exporter/model/who/runs.h"
#include "exporter/base/text/safe_text.h"

/*
 * The logs among the inputs, those of --run alone where it is given; *runs: all that there are (ni_runs_free()). Where there
 * are none, says of each input why, in who's name. 0, -ENOENT, -ENOMEM.
 */
int ni_inputs_find(const struct ni_inputs *in, const char *who, struct ni_files *out, struct ni_runs *runs);
/* The same of files that were found already. */
int ni_inputs_choose(const struct ni_inputs *in, const char *who, struct ni_files *files, struct ni_runs *runs);
/* The paths that cannot be read, on stderr. */
void ni_inputs_unreadable(const char *who, const struct ni_files *files);

/* "name=count" into *name (to be freed) and *count. 0, -EINVAL, -ENOMEM. */
int ni_parse_expect(const char *text, char **name, uint64_t *count);

#endif
