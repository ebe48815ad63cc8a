/*
 * Calls of gRPC: a stream of messages each way, and a status at the end. Part of rpc.h, which says the bounds
 * and the thread.
 */
#ifndef NI_CALL_H
#define NI_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ni_rpc_status { /* gRPC's numbers */
                     NI_RPC_OK = 0,
                     NI_RPC_INVALID = 3,
                     NI_RPC_NOT_FOUND = 5,
                     NI_RPC_DENIED = 7,
                     NI_RPC_EXHAUSTED = 8,
                     NI_RPC_UNIMPLEMENTED = 12,
                     NI_RPC_INTERNAL = 13,
                     NI_RPC_UNAVAILABLE = 14,
                     NI_RPC_UNAUTHENTICATED = 16
};

struct ni_rpc;      /* a server, or one client's connection */
struct ni_rpc_call; /* a stream; gone when end() returns */

struct ni_rpc_peer {
  char name[64];          /* "ipv4:1.2.3.4:5678", as gRPC writes it */
  bool loopback, trusted; /* trusted: it gave the token, or none is wanted */
};

struct ni_rpc_handler {
  /*
   * A call begins. *data: the owner's, for the other two. NI_RPC_OK, or the status that ends it. Server only.
   */
  enum ni_rpc_status (*begin)(void *arg, struct ni_rpc_call *c, const char *path,
                              const struct ni_rpc_peer *peer, void **data);
  /* One whole message; it holds for the call alone. */
  void (*message)(void *arg, struct ni_rpc_call *c, void *data, const void *bytes, size_t len);
  /*
   * half: the other side sends no more, and a server finishes then. Else the call is over, which is told once
   * of each that began: status and text as the server said, or UNAVAILABLE.
   */
  void (*end)(void *arg, struct ni_rpc_call *c, void *data, bool half, enum ni_rpc_status status,
              const char *text);
};

/*
 * All of it from the owner's thread, also inside the handler. Client: begins a call; NULL without memory or
 * on a broken connection.
 */
struct ni_rpc_call *ni_rpc_begin(struct ni_rpc *client, const char *path, void *data);
/* A message is queued. 0; -ENOBUFS: too much is unsent, and the connection will be cut; -ENOMEM. */
int ni_rpc_send(struct ni_rpc_call *c, const void *bytes, size_t len);
/* Bytes of this call that wait for the socket or the other side's window. */
size_t ni_rpc_unsent(const struct ni_rpc_call *c);
/*
 * Server: ends the call with trailers after what is queued. Client: sends no more (status OK), or gives the
 * call up (another).
 */
void ni_rpc_finish(struct ni_rpc_call *c, enum ni_rpc_status status, const char *text);

#endif
