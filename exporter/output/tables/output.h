/*
 * Where the output goes.
 *
 * Model: everything is made in OUT/.tmp-<pid> and moved into OUT at the end, so OUT never holds half of a
 * result. A marker file tells that OUT is ours: an earlier result is then replaced as a whole; a folder with
 * other things in it is refused unless forced, and then only what has our names is replaced. A run that fails
 * or is stopped leaves OUT as it was. Threads: main only. Failure: -errno, with a sentence in r->error_text.
 */
#ifndef NI_SUMMARY_OUTPUT_H
#define NI_SUMMARY_OUTPUT_H

#include "exporter/model/sums/state.h"

int ni_result_begin(struct ni_run *r);
/* Holds OUT a result of before? */
bool ni_result_earlier(const struct ni_run *r);
int ni_result_commit(struct ni_run *r);
void ni_result_abort(struct ni_run *r);
/* A line of output.log, as the reference writes them. level: "INFO", "WARNING", "ERROR". */
void ni_out_log(struct ni_run *r, const char *level, const char *text, ...)
    __attribute__((format(printf, 3, 4)));

#endif
