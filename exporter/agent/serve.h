/*
 * The agent's HTTP: /metrics, /v1/now, /healthz, GET and HEAD alone. By libmicrohttpd inside the agent's epoll
 * loop, no thread. No request makes it read a path: what there is to answer is made by the agent.
 *
 * Bounds: 64 connections, 16 of one address beyond this machine; 16 KiB of headers, no body; 10 s of silence; 20 s for a request and
 * its answer, 1 s while many are open; an answer is made at most once in 100 ms and shared by those who ask meanwhile. TLS and a
 * token as the options say; without them only loopback is served, unless --open.
 */
#ifndef NI_SERVE_H
#define NI_SERVE_H

#include <stdio.h>

#include "exporter/cmds/live.h"

struct ni_serve;
enum ni_serve_what { NI_SERVE_TEXT = 0, NI_SERVE_OPENMETRICS, NI_SERVE_NOW, NI_SERVE_HEALTH, NI_SERVE_WHATS };
/* Writes an answer's body; false: there is none yet (503). */
typedef bool ni_serve_make(void *arg, enum ni_serve_what what, FILE *f);

/*
 * *out: NULL, or one whose place the new one takes, with its socket where --listen is the same; it stays where that fails. Files are
 * read now and not again. 0, or -errno with a sentence in why that names the option at fault.
 */
int ni_serve_open(struct ni_serve **out, const struct ni_agent_options *o, ni_serve_make *make, void *arg, char *why, size_t cap);
/* "http://127.0.0.1:9777" */
const char *ni_serve_url(const struct ni_serve *s);
/* To be added to an epoll of the caller; ni_serve_turn() when it has something, and at least each second. */
int ni_serve_fd(const struct ni_serve *s);
/* Adds what was asked for since the last turn: answers of /metrics, and requests that were refused. */
void ni_serve_turn(struct ni_serve *s, uint64_t *scrapes, uint64_t *refused);
void ni_serve_close(struct ni_serve *s);

#endif
