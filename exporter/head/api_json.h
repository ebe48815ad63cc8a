/* What the head says of itself as JSON objects, for answers and events. The stream is the caller's; no errors of their own. */
#ifndef NI_API_JSON_H
#define NI_API_JSON_H

#include <stdio.h>

#include "core.h"

void ni_api_status(FILE *f, const struct ni_core *c);       /* GET /status; with the sessions: event `state` */
void ni_api_sessions(FILE *f, const struct ni_core *c);     /* GET /profiling/sessions */
void ni_api_clients(FILE *f, const struct ni_core *c);      /* GET /clients */
void ni_api_latest(FILE *f, const struct ni_core *c);       /* GET /metrics/latest */
void ni_api_frame(FILE *f, const struct ni_core *c);        /* event `frame`: the same, also as gsprof in percent and GB/s */

#endif
