/*
 * Bytes over TCP or TLS that never wait: what lies below HTTP/2. Inner header of rpc.c.
 *
 *   listen ─▶ accept ─┐
 *   connect ──────────┴▶ ready (connected, TLS shaken, ALPN h2) ─▶ read, write ─▶ close
 *
 * One thread for each. Errors: -errno; -EAGAIN: not now; a sentence in why.
 */
#ifndef NI_CONN_H
#define NI_CONN_H

#include <gnutls/gnutls.h>
#include <sys/types.h>

#include "rpc.h"

struct ni_conn {
  int fd;
  gnutls_session_t tls;                   /* NULL: none */
  gnutls_certificate_credentials_t creds; /* the owner's; NULL: no TLS */
  bool connecting, shaken;
  struct addrinfo *found, *next; /* a client's addresses; the one to be tried next */
  char host[256];                /* a client's, as its certificate is to name it */
};

/*
 * Credentials, or NULL in *out where the options say no TLS. 0 or -EINVAL. The caller frees them after the
 * connections.
 */
int ni_conn_creds(gnutls_certificate_credentials_t *out, const struct ni_rpc_options *o, bool server,
                  char *why, size_t cap);
/* The descriptor. Numbers and "localhost" alone; nothing is looked up. */
int ni_conn_listen(const char *at, uint16_t *port, char *why, size_t cap);
/* c->creds is set. cert: of the client is wanted. */
int ni_conn_accept(struct ni_conn *c, int listens, bool cert, struct ni_rpc_peer *peer);
/* Looks the name up, which waits; begins with its first address. c->creds is set. */
int ni_conn_connect(struct ni_conn *c, const char *at, char *why, size_t cap);
/*
 * 1: bytes may go; 0: not yet, *out: it waits for room to write; -errno with why. c->fd may be another one
 * each time.
 */
int ni_conn_ready(struct ni_conn *c, bool *out, char *why, size_t cap);
/* Bytes; read: 0 at the end; 16 KiB at least have room. */
ssize_t ni_conn_read(struct ni_conn *c, void *to, size_t n);
/* After -EAGAIN the same bytes come again. */
ssize_t ni_conn_write(struct ni_conn *c, const void *from, size_t n);
void ni_conn_close(struct ni_conn *c);

#endif
