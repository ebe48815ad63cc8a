/* What is met while reading, each thing by a number. Any thread: all take the lock. 0, -ENOMEM, -ENOSPC. */
#ifndef NI_SUMMARY_TABLES_H
#define NI_SUMMARY_TABLES_H

#include "exporter/model/sums/state.h"

/* Before and after everything else. */
int ni_run_tables_init(struct ni_run *r);
void ni_tables_free(struct ni_run *r);
/* host: a name. start_ns: Unix ns, 0: not known. file: index into files. */
int ni_find_or_add_process(struct ni_run *r, uint32_t host, int64_t pid, uint64_t start_ns, uint32_t file,
                           uint32_t *out);
int ni_find_or_add_member(struct ni_run *r, uint32_t process, uint32_t run, const struct ni_ident *id,
                          uint32_t *out);
int ni_find_or_add_context(struct ni_run *r, const struct ni_context *c, uint32_t *out);
int ni_find_or_add_cell(struct ni_run *r, const struct ni_sum_cell *key, uint32_t *out);
/* A pair of algorithm and protocol; 0: not stated, or beyond NI_MIX_MAX. */
int ni_find_or_add_mix(struct ni_run *r, uint32_t algo, uint32_t proto, uint8_t *out);
/* piece is the run's from here on. */
int ni_cell_add_piece(struct ni_run *r, uint32_t cell, struct ni_piece *piece);
/* Its pieces are needed no more. Without the lock, by the thread that has the cell. */
void ni_cell_drop(struct ni_run *r, struct ni_sum_cell *c);

#endif
