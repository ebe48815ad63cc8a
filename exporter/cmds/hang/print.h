/* A verdict on a terminal (the sentence, then who is where) and as JSON (schema nccl-inspector-hang-1). One thread. */
#ifndef NI_HANG_PRINT_H
#define NI_HANG_PRINT_H

#include "exporter/model/hang/verdict.h"

/*
 * all: every rank on a line of its own, and every knot. runs: of the logs; several that are judged together
 * are told.
 */
void ni_hang_print(const struct ni_hang_verdict *v, const struct ni_runs *runs, bool all);
void ni_hang_print_json(const struct ni_hang_verdict *v, const struct ni_runs *runs);

#endif
