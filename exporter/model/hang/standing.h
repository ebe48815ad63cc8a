/*
 * What one log has said to the model, and where its reading stands, as bytes and back (bytes/wire.h): for the
 * index, so that the next look goes on where this one ended.
 *
 * No path and nothing of the file system is in it: who loads it asks again. What was loaded is sound enough
 * to be read on, merged and judged, whoever wrote it: numbers name what is there, counts have the bounds of
 * model.h.
 */
#ifndef NI_HANG_STANDING_H
#define NI_HANG_STANDING_H

#include "exporter/base/bytes/wire.h"
#include "model.h"

/* While one log is read. */
struct ni_hang_reading {
  struct ni_hang_model *m;  /* of this file alone */
  int64_t process;          /* -1: none yet */
  int64_t member;           /* of the last line about a communicator; -1: that was about another thing */
  struct ni_hang_member *x; /* the same, where there is one */
  uint64_t newest_ns;       /* time of the newest line; 0: none */
  bool recovered;           /* recover wrote the file: its in_flight lines are all there was */
};

/*
 * Stores it, or loads it into one whose model is empty. If that fails w->bad is set, and the model is to be
 * freed all the same. Any thread.
 */
void ni_hang_standing_wire(struct ni_wire *w, struct ni_hang_reading *r);
/*
 * Its bytes, checked: bad is set if they do not come back as they were put, or without memory. The caller
 * frees them.
 */
struct ni_wire ni_hang_standing_bytes(struct ni_hang_reading *r);

#endif
