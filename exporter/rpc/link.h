/*
 * A connection and its owner: what rpc.c (sockets, times) and call.c (streams, messages) share. Inner header.
 *
 * A connection that is over lies in `dead` until the turn ends, so that nobody holds one that is gone. One
 * thread.
 */
#ifndef NI_LINK_H
#define NI_LINK_H

#include <nghttp2/nghttp2.h>

#include "conn.h"
#include "rpc.h"

#define SECOND UINT64_C(1000000000)
enum { READ_BYTES = 64 << 10 };

struct ni_link { /* a connection */
  struct ni_conn conn;
  nghttp2_session *session;
  struct ni_rpc *rpc;
  struct ni_link *next, **at, *next_dead;
  struct ni_rpc_call *calls;
  struct ni_rpc_peer peer;
  uint32_t events;
  bool ready, out, dead, heard; /* heard: something came */
  /* pinged: 0: not since something came; idle: since when there is no call */
  uint64_t came_ns, pinged_ns, idle_ns;
  size_t unsent;
};

struct ni_rpc {
  int epoll, listens;
  uint16_t port;
  bool server, cert, paused; /* paused: no connection is taken in until the next second */
  gnutls_certificate_credentials_t creds;
  struct ni_rpc_handler handler;
  void *arg;
  char *token /* "Bearer ..." */, at[300], broken[256];
  nghttp2_session_callbacks *callbacks;
  nghttp2_option *option;
  struct ni_link *all, *dead, *active; /* active: will be flushed anyway */
  size_t n, parts;
  uint64_t now, swept_ns;
  uint8_t read[READ_BYTES];
};

/* The connection is over, for that reason; its calls end when the turn does. */
void ni_link_die(struct ni_link *h, const char *why);
/* So did ni_conn_read() or ni_conn_write() with this number, 0 or -errno. */
void ni_link_fail(struct ni_link *h, ssize_t n);
/* The events of epoll that it waits for. */
void ni_link_wait(struct ni_link *h, uint32_t events);
/* Something is queued: the turn comes at once. */
void ni_link_stir(struct ni_link *h);
/* What nghttp2 says goes to calls; for nghttp2_session_callbacks_del(); NULL without memory. */
nghttp2_session_callbacks *ni_link_callbacks(void);
/* SETTINGS and windows: nghttp2's error. */
int ni_link_greet(struct ni_link *h);
/* Were headers or a message begun that long ago, and are not whole yet? */
bool ni_link_late(const struct ni_link *h, uint64_t ns);
/* All calls end, as nobody ended them. */
void ni_link_end(struct ni_link *h, const char *why);

#endif
