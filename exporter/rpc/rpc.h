/*
 * gRPC by libnghttp2: a server, and a client's connection, inside the owner's epoll loop. Messages are bytes
 * here (messages.h).
 *
 *   epoll ─▶ ni_rpc_turn() ─▶ nghttp2 ─▶ begin(), message(), end() of the owner
 *   owner ─▶ ni_rpc_send(), ni_rpc_finish() ─▶ queued, sent in this turn or the next
 *
 * HTTP/2 without TLS ("h2c" with prior knowledge, as gRPC has it), or with TLS by GnuTLS (ALPN h2). One
 * thread.
 *
 * Bounds, all stated to the other side where HTTP/2 can: NI_RPC_CONNECTIONS connections (as many as
 * descriptors allow; more wait), a quarter of them from one address beyond this machine (more are closed), 64
 * streams on each, 16 KiB of headers, messages of 4 MiB (RESOURCE_EXHAUSTED), 4 MiB of a connection's
 * messages unsent (it is cut then), 64 MiB of large messages that are not whole yet, of all connections
 * together (RESOURCE_EXHAUSTED), no compression (UNIMPLEMENTED). A connection that has no open stream for 60
 * s is closed; one with a message or headers begun and not ended for 20 s is cut; where nothing came for 15 s
 * a PING is sent, and 15 s later the connection is cut. Every PING is answered, and none is punished but
 * floods, which nghttp2 ends. Rapid resets end in GOAWAY (nghttp2's rate limit).
 */
#ifndef NI_RPC_H
#define NI_RPC_H

#include "call.h"

enum { NI_RPC_CONNECTIONS = 4096 };
struct ni_rpc_options {
  /* server: what clients must give as `authorization: Bearer ...`; client: what it gives; NULL: none */
  const char *token;
  /* PEM texts; server: cert and key for TLS; client: ca for TLS with that, "" for the system's */
  const char *cert, *key, *ca;
  bool need_client_cert; /* server: certificates of clients signed by ca are wanted */
};

/* A server at "127.0.0.1:8090" or "[::1]:8090", port 0: any. 0, or -errno with a sentence in why. */
int ni_rpc_listen(struct ni_rpc **out, const char *at, const struct ni_rpc_options *o,
                  const struct ni_rpc_handler *h, void *arg, char *why, size_t cap);
uint16_t ni_rpc_port(const struct ni_rpc *r);
/*
 * A connection to HOST:PORT. The name is looked up while the caller waits, the rest is begun and not waited
 * for. Where it fails or breaks, all its calls end with UNAVAILABLE and ni_rpc_broken() says why.
 */
int ni_rpc_connect(struct ni_rpc **out, const char *at, const struct ni_rpc_options *o,
                   const struct ni_rpc_handler *h, void *arg, char *why, size_t cap);
const char *ni_rpc_broken(const struct ni_rpc *client); /* NULL: it is not */
/*
 * An epoll descriptor for the caller's epoll; ni_rpc_turn() when it has something, and at least each second.
 */
int ni_rpc_fd(const struct ni_rpc *r);
void ni_rpc_turn(struct ni_rpc *r);
/*
 * Did the other side of a GnuTLS session, a server's, give a certificate that the session trusts? For servers
 * of other protocols.
 */
bool ni_rpc_certified(void *tls);
/* Sends what the sockets take; all calls end. Never inside the handler. */
void ni_rpc_close(struct ni_rpc *r);

#endif
