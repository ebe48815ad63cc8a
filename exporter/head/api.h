/*
 * The head's HTTP (docs/cluster.md, "HTTP"): gsprof's routes with their bodies and codes, and ours. All of it
 * in the loop's thread.
 */
#ifndef NI_API_H
#define NI_API_H

#include "core.h"

struct ni_api;
/* why: as ni_http_open() says. The core must outlive it. */
int ni_api_open(struct ni_api **out, struct ni_core *core, const struct ni_head_options *o, char *why,
                size_t cap);
void ni_api_close(struct ni_api *a);
const char *ni_api_url(const struct ni_api *a);
int ni_api_fd(const struct ni_api *a);
/* Also sends events: what changed, and the newest frame once a second. */
void ni_api_turn(struct ni_api *a);

#endif
