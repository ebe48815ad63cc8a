/*
 * A track is what one row of the timeline is called. Events of one track that overlap go to lanes of their own (write.c);
 * on tracks of calls what lies inside another stays on its lane, as calls do. One thread. Failure: -ENOMEM.
 */
#ifndef NI_TRACE_TRACK_H
#define NI_TRACE_TRACK_H

#include "exporter/model/timeline/trace.h"

/* In the order in which they stand in a process. */
enum ni_tr_class { NI_TR_T_MARKS, NI_TR_T_CALLS, NI_TR_T_ENQUEUE, NI_TR_T_COLL, NI_TR_T_P2P, NI_TR_T_CHANNEL, NI_TR_T_NET_SEND,
                   NI_TR_T_NET_RECV, NI_TR_T_STEPS, NI_TR_T_NET_PLUGIN, NI_TR_T_PROXY, NI_TR_T_OTHER, NI_TR_T_COUNT };

struct ni_tr_lane {
  uint32_t tid, depth;
  int64_t *end;                /* of the slices that are open, the outermost first */
  size_t cap_end;
};

struct ni_tr_track {
  uint32_t unit, member;       /* member NI_TR_NONE: of the unit */
  uint8_t class;
  uint32_t sub;                /* channel, or 0; OTHER: what it is called, a name */
  struct ni_tr_lane *lane;     /* write.c */
  uint32_t n_lanes;
  size_t cap_lanes;
  uint32_t tid;                /* of its first lane */
};

int ni_tr_track(struct ni_tr *r, uint32_t unit, uint32_t member, enum ni_tr_class class, uint32_t sub, uint32_t *out);
/* What it is called; lane 0 is the first. */
void ni_tr_track_name(const struct ni_tr *r, const struct ni_tr_track *t, uint32_t lane, char *out, size_t size);
/* What a unit's process is called. */
void ni_tr_unit_name(const struct ni_tr *r, uint32_t unit, char *out, size_t size);
const char *ni_tr_host_name(const struct ni_tr *r, uint32_t host);
/* "clock: +1234.567 us to the reference, error below 3.210 us, drift 0.120 ppm (812 collectives with node-a)", of a host. */
void ni_tr_clock_text(const struct ni_tr *r, uint32_t host, char *out, size_t size);
void ni_tr_tracks_free(struct ni_tr *r);

#endif
