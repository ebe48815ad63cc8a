#include "conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int ni_conn_creds(gnutls_certificate_credentials_t *out, const struct ni_rpc_options *o, bool server,
                  char *why, size_t cap) {
  const char *what = "memory";
  int e = 0;
  *out = NULL;
  if (!(server ? o->cert : o->ca))
    return 0;
  if ((e = gnutls_certificate_allocate_credentials(out)) >= 0 && o->cert) {
    gnutls_datum_t cert = {(void *)(uintptr_t)o->cert, (unsigned)strlen(o->cert)};
    gnutls_datum_t key = {(void *)(uintptr_t)(o->key ? o->key : ""), o->key ? (unsigned)strlen(o->key) : 0};
    what = "the certificate and its key";
    e = gnutls_certificate_set_x509_key_mem(*out, &cert, &key, GNUTLS_X509_FMT_PEM);
  }
  if (e >= 0 && o->ca) {
    gnutls_datum_t ca = {(void *)(uintptr_t)o->ca, (unsigned)strlen(o->ca)};
    what = "the certificates to be trusted";
    e = *o->ca ? gnutls_certificate_set_x509_trust_mem(*out, &ca, GNUTLS_X509_FMT_PEM)
               : gnutls_certificate_set_x509_system_trust(*out);
    if (e == 0)
      e = GNUTLS_E_NO_CERTIFICATE_FOUND;
  }
  if (e >= 0)
    return 0;
  snprintf(why, cap, "%s: %s", what, gnutls_strerror(e));
  if (*out)
    gnutls_certificate_free_credentials(*out);
  *out = NULL;
  return -EINVAL;
}

/* "HOST:PORT", "[::1]:PORT". NULL: why says it. */
static struct addrinfo *look_up(const char *at, int flags, char host[256], char *why, size_t cap) {
  const struct addrinfo want = {.ai_flags = flags | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  const char *colon = strrchr(at, ':'), *port = colon ? colon + 1 : "x";
  bool six = *at == '[' && colon && colon[-1] == ']';
  int n = colon ? (int)(colon - at) - 2 * six : 0;
  struct addrinfo *found = NULL;
  snprintf(host, 256, "%.*s", n, at + six);
  bool fine = n > 0 && n < 256 && six == (strchr(host, ':') != NULL) && *port &&
      !port[strspn(port, "0123456789")] && strtoul(port, NULL, 10) <= 65535;
  const char *name = flags & AI_NUMERICHOST && strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
  int e = fine ? getaddrinfo(name, port, &want, &found) : 0;
  if (e || !fine)
    snprintf(why, cap, "%s: %s", at,
             fine ? gai_strerror(e) : "want an address and a port, such as 127.0.0.1:8090");
  return found;
}

static uint16_t port_of(const struct sockaddr_storage *a) {
  return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
                                        : ((const struct sockaddr_in *)a)->sin_port);
}

int ni_conn_listen(const char *at, uint16_t *port, char *why, size_t cap) {
  struct sockaddr_storage got;
  socklen_t n = sizeof got;
  char host[256];
  struct addrinfo *a = look_up(at, AI_NUMERICHOST, host, why, cap);
  if (!a)
    return -EINVAL;
  int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), e = 0;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) != 0 ||
      bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, 1024) != 0 ||
      getsockname(fd, (struct sockaddr *)&got, &n) != 0) {
    e = -errno;
    snprintf(why, cap, "%s: %s", at, strerror(-e));
    if (fd >= 0)
      close(fd);
  } else {
    *port = port_of(&got);
  }
  freeaddrinfo(a);
  return e ? e : fd;
}

/* TLS over c->fd; cert: a server wants one. */
static int begin_tls(struct ni_conn *c, bool server, bool cert) {
  const gnutls_datum_t h2 = {(unsigned char *)(uintptr_t)"h2", 2};
  unsigned char number[16];
  c->shaken = !c->creds;
  if (c->shaken)
    return 0;
  if (gnutls_init(&c->tls, (server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) <
          0 ||
      gnutls_priority_set_direct(c->tls, "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1", NULL) < 0 ||
      gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, c->creds) < 0 ||
      gnutls_alpn_set_protocols(c->tls, &h2, 1, GNUTLS_ALPN_MANDATORY) < 0)
    return -ENOMEM;
  gnutls_transport_set_int(c->tls, c->fd);
  if (!server || cert)
    gnutls_session_set_verify_cert(c->tls, server ? NULL : c->host, 0);
  if (server && cert)
    gnutls_certificate_server_set_request(c->tls, GNUTLS_CERT_REQUIRE);
  bool name =
      !server && inet_pton(AF_INET, c->host, number) != 1 && inet_pton(AF_INET6, c->host, number) != 1;
  return name && gnutls_server_name_set(c->tls, GNUTLS_NAME_DNS, c->host, strlen(c->host)) < 0 ? -ENOMEM : 0;
}

int ni_conn_accept(struct ni_conn *c, int listens, bool cert, struct ni_rpc_peer *peer) {
  struct sockaddr_storage a = {0};
  socklen_t n = sizeof a;
  char host[48] = "?";
  if ((c->fd = accept4(listens, (struct sockaddr *)&a, &n, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0)
    return -errno;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  getnameinfo((struct sockaddr *)&a, n, host, sizeof host, NULL, 0, NI_NUMERICHOST);
  bool six = a.ss_family == AF_INET6;
  const struct in6_addr *ip = &((struct sockaddr_in6 *)&a)->sin6_addr;
  peer->loopback = six ? IN6_IS_ADDR_LOOPBACK(ip) || (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127)
                       : strncmp(host, "127.", 4) == 0;
  snprintf(peer->name, sizeof peer->name, six ? "ipv6:[%s]:%u" : "ipv4:%s:%u", host, port_of(&a));
  int e = begin_tls(c, true, cert);
  if (e < 0)
    ni_conn_close(c);
  return e;
}

/* Begins with the next address that can be begun with. */
static int try_next(struct ni_conn *c, int before) {
  int e = before;
  for (struct addrinfo *a; (a = c->next);) {
    c->next = a->ai_next;
    if (c->fd >= 0)
      close(c->fd);
    c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
      return -errno;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(c->fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS)
      return 0;
    e = -errno;
  }
  return e;
}

int ni_conn_connect(struct ni_conn *c, const char *at, char *why, size_t cap) {
  c->fd = -1;
  c->connecting = true;
  if (!(c->found = c->next = look_up(at, 0, c->host, why, cap)))
    return -EHOSTUNREACH;
  int e = try_next(c, -EHOSTUNREACH);
  if (e < 0) {
    snprintf(why, cap, "%s: %s", at, strerror(-e));
    ni_conn_close(c);
  }
  return e;
}

static int shake(struct ni_conn *c, bool *out, char *why, size_t cap) {
  gnutls_datum_t text = {NULL, 0};
  int e;
  do
    e = gnutls_handshake(c->tls);
  while (e < 0 && e != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(e));
  *out = gnutls_record_get_direction(c->tls);
  if (e == GNUTLS_E_AGAIN)
    return 0;
  if (e == 0 && gnutls_alpn_get_selected_protocol(c->tls, &text) == 0)
    return c->shaken = true;
  if (e == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
      gnutls_certificate_verification_status_print(gnutls_session_get_verify_cert_status(c->tls),
                                                   GNUTLS_CRT_X509, &text, 0) == 0) {
    snprintf(why, cap, "TLS: %s", text.data);
    gnutls_free(text.data);
  } else {
    snprintf(why, cap, "TLS: %s",
             !e                                    ? "it speaks no HTTP/2 there: the other port?"
                 : e == GNUTLS_E_UNEXPECTED_PACKET ? "it speaks no TLS there"
                                                   : gnutls_strerror(e));
  }
  return -EPROTO;
}

int ni_conn_ready(struct ni_conn *c, bool *out, char *why, size_t cap) {
  socklen_t n = sizeof(int);
  int e = 0;
  *out = true;
  if (c->connecting) {
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &n) != 0)
      e = errno;
    if (e && try_next(c, -e) == 0)
      return 0;
    c->connecting = false;
    if (!e)
      e = -begin_tls(c, false, false);
    if (e) {
      snprintf(why, cap, "%s", strerror(e));
      return -e;
    }
  }
  return c->shaken ? 1 : shake(c, out, why, cap);
}

/* GnuTLS's number as ours. */
static ssize_t said(ssize_t n) { return n >= 0 ? n : gnutls_error_is_fatal((int)n) ? -EPROTO : -EAGAIN; }

ssize_t ni_conn_read(struct ni_conn *c, void *to, size_t n) {
  if (c->tls)
    return said(gnutls_record_recv(c->tls, to, n));
  ssize_t got = recv(c->fd, to, n, 0);
  return got < 0 ? -errno : got;
}

ssize_t ni_conn_write(struct ni_conn *c, const void *from, size_t n) {
  if (c->tls)
    return said(gnutls_record_send(c->tls, from, n));
  ssize_t put = send(c->fd, from, n, MSG_NOSIGNAL);
  return put < 0 ? -errno : put;
}

void ni_conn_close(struct ni_conn *c) {
  if (c->tls) {
    if (c->shaken)
      gnutls_bye(c->tls, GNUTLS_SHUT_WR);
    gnutls_deinit(c->tls);
  }
  if (c->found)
    freeaddrinfo(c->found);
  if (c->fd >= 0)
    close(c->fd);
  *c = (struct ni_conn){.fd = -1};
}

bool ni_rpc_certified(void *tls) {
  unsigned status;
  return gnutls_certificate_verify_peers2(tls, &status) == 0 && status == 0;
}
