/*
 * A verdict on a terminal (the sentence, then who is where) and as JSON (schema nccl-inspector-hang-1). One
 * thread.
 */
#ifndef NI_HANG_PRINT_H
#define NI_HANG_PRINT_H

#include "exporter/model/hang/verdict.h"
#include "ras.h"

/*
 * all: every rank on a line of its own, and every knot. runs: of the logs; several that are judged together
 * are told. ras: NULL where it was not asked; where the plugin left nothing its verdict is the answer.
 */
void ni_hang_print(const struct ni_hang_verdict *v, const struct ni_runs *runs, const struct ni_hang_ras *ras,
                   bool all);
void ni_hang_print_json(const struct ni_hang_verdict *v, const struct ni_runs *runs,
                        const struct ni_hang_ras *ras);
/* The answer of both: its words and its exit code. */
enum ni_hang_answer ni_hang_answer_of(const struct ni_hang_verdict *v, const struct ni_hang_ras *ras);

#endif
