/* What rollup lines say, which records no longer can. 0 or -ENOMEM. */
#ifndef NI_SUMMARY_ROLLUPS_H
#define NI_SUMMARY_ROLLUPS_H

#include "state.h"

/* Do the options leave anything of them? */
bool ni_rollups_are_wanted(const struct ni_run *r);
/* Any thread; takes the lock. member: whose line it is; func: a name. */
int ni_rollups_add(struct ni_run *r, uint32_t member, uint32_t func, const struct ni_rollup_line *l);
/* The main thread, after the join. */
int ni_rollups_build(struct ni_run *r, struct ni_summary *s);
void ni_rollups_free(struct ni_run *r);
/* All of them as bytes, or such bytes added to them (bytes/wire.h). The main thread. */
struct ni_wire;
void ni_rollups_wire(struct ni_wire *w, struct ni_run *r);

#endif
