/*
 * The state (live.h) in a file, replaced as a whole: a version, a length, a checksum. Numbers are this
 * machine's, in its byte order. It is not synced: it must outlive the agent, not the machine, whose jobs end
 * with it. Looks are not in it. Ages are what they were when it was saved, whatever the clocks did meanwhile:
 * mono_ns is CLOCK_MONOTONIC now.
 *
 * One thread. 0 or -errno.
 */
#ifndef NI_LIVE_CHECKPOINT_H
#define NI_LIVE_CHECKPOINT_H

#include "live.h"

/* dir: open; name: "agent.state". The file that was there stays as it was where this fails. */
int ni_live_save(const struct ni_live *l, int dir, const char *name, uint64_t mono_ns);
/*
 * Into an empty l. -ENOENT: there is none; -EBADMSG: torn, damaged or of another version: why says which, and
 * l is empty.
 */
int ni_live_load(struct ni_live *l, int dir, const char *name, uint64_t mono_ns, char *why, size_t cap);

#endif
