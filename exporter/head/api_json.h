/*
 * What the head says of itself, for answers and events: the members of a JSON object, which the caller opens
 * and ends.
 */
#ifndef NI_API_JSON_H
#define NI_API_JSON_H

#include "core.h"
#include "exporter/base/text/json_write.h"

typedef void ni_api_members(struct ni_json *j, const void *of); /* of: here struct ni_core */
/* GET /status; with the sessions: event `state` */
ni_api_members ni_api_status;
ni_api_members ni_api_sessions; /* GET /profiling/sessions */
ni_api_members ni_api_clients;  /* GET /clients */
ni_api_members ni_api_latest;   /* GET /metrics/latest */
/* event `frame`: the same, also as gsprof in percent and GB/s */
ni_api_members ni_api_frame;

#endif
