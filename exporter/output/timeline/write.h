/* The sorted events as the file. */
#ifndef NI_TRACE_WRITE_H
#define NI_TRACE_WRITE_H

#include "exporter/model/timeline/trace.h"
#include "out.h"

/* How much text Perfetto opens in a browser, about. */
#ifndef NI_TR_VIEWER_BYTES
#define NI_TR_VIEWER_BYTES 2000000000u
#endif
#define NI_TR_SMALLER "--since, --until, --rank, --node, --comm, --coll and --no-flows make it smaller"

/*
 * about: writes the object behind "otherData", once all events are out. One thread. 0 or -errno, told by
 * ni_tr_fail().
 */
int ni_tr_write(struct ni_tr *r, void (*about)(const struct ni_tr *r, struct ni_tr_out *o));

#endif
