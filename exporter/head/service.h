/*
 * The head's gRPC: gsprof's service for its clients, ours for our agents (messages.h). All of it in the
 * loop's thread.
 *
 * A client of gsprof is known by host and connection since it called Connect, or since its first message
 * where it did not. It is disconnected when its stream ends, or when none began within 30 s. Rights:
 * docs/cluster.md, "Who may do what".
 */
#ifndef NI_SERVICE_H
#define NI_SERVICE_H

#include "core.h"

struct ni_service;
/* why: as ni_rpc_listen() says. The core must outlive it. */
int ni_service_open(struct ni_service **out, struct ni_core *core, const struct ni_head_options *o, char *why,
                    size_t cap);
void ni_service_close(struct ni_service *s);
uint16_t ni_service_port(const struct ni_service *s);
/* for the loop's epoll; ni_service_turn() when it has something, and each second */
int ni_service_fd(const struct ni_service *s);
void ni_service_turn(struct ni_service *s);
/* Acknowledges what the core says is safe. */
void ni_service_acknowledge(struct ni_service *s);

#endif
