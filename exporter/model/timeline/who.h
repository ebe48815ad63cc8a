/* Whose line it is: processes, members, and once all are read units and ranks (struct ni_tr). One thread. 0 or -ENOMEM. */
#ifndef NI_TRACE_WHO_H
#define NI_TRACE_WHO_H

#include "trace.h"

int ni_tr_find_process(struct ni_tr *r, struct ni_tr_file *f, const struct ni_line *l, uint32_t *out);
/* The member a line is about; a comm line chooses the instance, other lines belong to the newest chosen. */
int ni_tr_find_member(struct ni_tr *r, uint32_t process, const struct ni_line *l, uint32_t *out);
/* Before the second pass: the first instance of each hash is the current one again. */
void ni_tr_rewind(struct ni_tr *r);
/* After the scan: units, ranks, what is shown. */
int ni_tr_settle(struct ni_tr *r);
void ni_tr_who_free(struct ni_tr *r);

#endif
