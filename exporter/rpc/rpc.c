#include "rpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/process/secret.h"
#include "link.h"

enum { IDLE_S = 60, BEGUN_S = 20, SILENT_S = 15, EVENTS = 256, READS = 4 };

static void flush(struct ni_link *h) {
  int e = nghttp2_session_send(h->session);
  if (e != 0)
    return ni_link_die(h, nghttp2_strerror(e));
  if (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session))
    return ni_link_die(h, "the other side ended the connection");
  ni_link_wait(h, EPOLLIN | (nghttp2_session_want_write(h->session) ? EPOLLOUT : 0));
}

static void receive(struct ni_link *h) {
  struct ni_rpc *r = h->rpc;
  for (int i = 0; i < READS && !h->dead; i++) {
    ssize_t n = ni_conn_read(&h->conn, r->read, sizeof r->read);
    if (n == -EAGAIN)
      return;
    if (n <= 0)
      return ni_link_fail(h, n);
    if (!r->server && !h->heard && memcmp(r->read, "HTTP/1.", n < 7 ? (size_t)n : 7) == 0)
      return ni_link_die(h, "it speaks HTTP/1.1 there, not gRPC: the other port?");
    h->heard = true;
    h->came_ns = r->now;
    h->pinged_ns = 0;
    ssize_t took = nghttp2_session_mem_recv(h->session, r->read, (size_t)n);
    if (took < 0)
      return ni_link_die(h, nghttp2_strerror((int)took));
    if (!h->conn.tls && (size_t)n < sizeof r->read)
      return;
  }
}

static void handle(struct ni_link *h, uint32_t events) {
  char why[256] = "";
  bool out = false;
  if (h->dead)
    return;
  h->rpc->active = h;
  int e = h->ready ? 1 : ni_conn_ready(&h->conn, &out, why, sizeof why);
  if (e < 0)
    ni_link_die(h, why);
  h->ready = e > 0;
  h->events = e == 0 ? 0 : h->events; /* it may be another socket */
  if (e == 0)
    ni_link_wait(h, EPOLLIN | (out ? EPOLLOUT : 0));
  /* the greeting comes first: whoever speaks something else is cut, and reads from it who is here */
  if (e > 0 && !h->heard)
    flush(h);
  if (e > 0 && !h->dead && events & ~(uint32_t)EPOLLOUT)
    receive(h);
  if (e > 0 && !h->dead)
    flush(h);
  h->rpc->active = NULL;
}

/* ---- the owner's ---- */

static void bury(struct ni_link *h) {
  struct ni_rpc *r = h->rpc;
  ni_link_end(h, r->server ? "the connection is gone" : r->broken);
  if ((*h->at = h->next))
    h->next->at = h->at;
  if (h->session)
    nghttp2_session_del(h->session);
  ni_conn_close(&h->conn);
  r->n--;
  free(h);
}

static void *mem_malloc(size_t n, void *data) {
  (void)data;
  return malloc(n);
}
static void *mem_calloc(size_t n, size_t one, void *data) {
  (void)data;
  return calloc(n, one);
}
static void *mem_realloc(void *p, size_t n, void *data) {
  (void)data;
  return ni_wiping_realloc(p, n);
}
static void mem_free(void *p, void *data) {
  (void)data;
  ni_wiping_free(p);
}

/* A connection whose bytes are conn's; false: without memory, and conn is closed. */
static bool add(struct ni_rpc *r, const struct ni_conn *conn, const struct ni_rpc_peer *peer) {
  struct ni_link *h = calloc(1, sizeof *h);
  if (!h) {
    ni_conn_close(&(struct ni_conn){.fd = conn->fd, .tls = conn->tls, .found = conn->found});
    return false;
  }
  *h = (struct ni_link){.conn = *conn,
                        .rpc = r,
                        .peer = *peer,
                        .next = r->all,
                        .at = &r->all,
                        .came_ns = r->now,
                        .idle_ns = r->now};
  if (h->next)
    h->next->at = &h->next;
  r->all = h;
  r->n++;
  nghttp2_mem wiping = {NULL, mem_malloc, mem_free, mem_calloc, mem_realloc}; /* copied */
  int e = r->server
      ? nghttp2_session_server_new2(&h->session, r->callbacks, h, r->option)
      : nghttp2_session_client_new3(&h->session, r->callbacks, h, r->option, r->token ? &wiping : NULL);
  if (e != 0 || ni_link_greet(h) != 0) {
    bury(h);
    return false;
  }
  ni_link_wait(h, EPOLLIN | EPOLLOUT);
  return true;
}

static void listening(struct ni_rpc *r, bool on) {
  r->paused = !on;
  epoll_ctl(r->epoll, EPOLL_CTL_MOD, r->listens, &(struct epoll_event){.events = on ? EPOLLIN : 0});
}

/* One address beyond this machine may have a quarter of all. */
static bool too_many(const struct ni_rpc *r, const struct ni_rpc_peer *peer) {
  size_t n = 0, address = (size_t)(strrchr(peer->name, ':') + 1 - peer->name);
  if (peer->loopback || r->n < NI_RPC_CONNECTIONS / 4)
    return false;
  for (const struct ni_link *h = r->all; h; h = h->next)
    n += strncmp(h->peer.name, peer->name, address) == 0;
  return n >= NI_RPC_CONNECTIONS / 4;
}

static void take_in(struct ni_rpc *r) {
  for (int i = 0; i < EVENTS; i++) {
    struct ni_conn c = {.creds = r->creds};
    struct ni_rpc_peer peer = {0};
    int e = r->n < NI_RPC_CONNECTIONS ? ni_conn_accept(&c, r->listens, r->cert, &peer) : -EMFILE;
    if (e == -EAGAIN)
      return;
    if (e == 0 && too_many(r, &peer)) {
      ni_conn_close(&c);
      continue;
    }
    const bool lacks_files = e == -EMFILE || e == -ENFILE, lacks_memory = e == -ENOMEM || e == -ENOBUFS;
    if (lacks_files || lacks_memory || (e == 0 && !add(r, &c, &peer)))
      return listening(r, false);
  }
}

static void look_after(struct ni_link *h) {
  uint64_t now = h->rpc->now;
  if (!h->ready && now - h->came_ns > BEGUN_S * SECOND)
    ni_link_die(h, "no connection after 20 s");
  if (ni_link_late(h, BEGUN_S * SECOND))
    ni_link_die(h, "a message was begun and not ended");
  if (h->pinged_ns && now - h->pinged_ns > SILENT_S * SECOND)
    ni_link_die(h, "nothing came for 30 s");
  if (!h->ready || h->dead)
    return;
  if (!h->pinged_ns && now - h->came_ns > SILENT_S * SECOND) {
    h->pinged_ns = now;
    nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL);
    ni_link_stir(h);
  }
  if (!h->rpc->server || h->calls || now - h->idle_ns < IDLE_S * SECOND)
    return;
  nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
  ni_link_stir(h);
}

void ni_rpc_turn(struct ni_rpc *r) {
  struct epoll_event e[EVENTS];
  int n = epoll_wait(r->epoll, e, EVENTS, 0);
  r->now = ni_now_ns(CLOCK_MONOTONIC);
  for (int i = 0; i < n; i++) {
    if (e[i].data.ptr)
      handle(e[i].data.ptr, e[i].events);
    else
      take_in(r);
  }
  if (r->now - r->swept_ns >= SECOND) {
    r->swept_ns = r->now;
    if (r->paused)
      listening(r, true);
    for (struct ni_link *h = r->all; h; h = h->next)
      look_after(h);
  }
  for (struct ni_link *h; (h = r->dead); bury(h))
    r->dead = h->next_dead;
}

/* For ni_secret_free(); NULL: no memory. */
static char *bearer(const char *token) {
  char *text, *kept = NULL;
  if (asprintf(&text, "Bearer %s", token) < 0)
    return NULL;
  kept = ni_secret_keep(text);
  explicit_bzero(text, strlen(text));
  free(text);
  return kept;
}

/* What servers and clients have in common. */
static struct ni_rpc *make(const struct ni_rpc_options *o, const struct ni_rpc_handler *h, void *arg,
                           bool server, char *why, size_t cap) {
  struct ni_rpc *r = calloc(1, sizeof *r);
  snprintf(why, cap, "%s", strerror(ENOMEM));
  if (!r)
    return NULL;
  *r = (struct ni_rpc){
      .listens = -1, .server = server, .cert = o->need_client_cert, .handler = *h, .arg = arg};
  r->now = r->swept_ns = ni_now_ns(CLOCK_MONOTONIC);
  if ((r->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
    snprintf(why, cap, "%s", strerror(errno));
  else if ((r->callbacks = ni_link_callbacks()) && nghttp2_option_new(&r->option) == 0 &&
           (!o->token || (r->token = bearer(o->token))) &&
           ni_conn_creds(&r->creds, o, server, why, cap) == 0) {
    nghttp2_option_set_no_closed_streams(r->option, 1);
    return r;
  }
  ni_rpc_close(r);
  return NULL;
}

int ni_rpc_listen(struct ni_rpc **out, const char *at, const struct ni_rpc_options *o,
                  const struct ni_rpc_handler *h, void *arg, char *why, size_t cap) {
  struct ni_rpc *r = make(o, h, arg, true, why, cap);
  if (!r)
    return -EINVAL;
  int e = r->listens = ni_conn_listen(at, &r->port, why, cap);
  if (e >= 0 &&
      epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->listens, &(struct epoll_event){.events = EPOLLIN}) != 0) {
    e = -errno;
    snprintf(why, cap, "%s: %s", at, strerror(errno));
  }
  if (e >= 0)
    *out = r;
  else
    ni_rpc_close(r);
  return e < 0 ? e : 0;
}

int ni_rpc_connect(struct ni_rpc **out, const char *at, const struct ni_rpc_options *o,
                   const struct ni_rpc_handler *h, void *arg, char *why, size_t cap) {
  struct ni_rpc *r = make(o, h, arg, false, why, cap);
  if (!r)
    return -EINVAL;
  struct ni_conn c = {.creds = r->creds};
  snprintf(r->at, sizeof r->at, "%s", at);
  int e = ni_conn_connect(&c, at, why, cap);
  if (e == 0 && !add(r, &c, &(struct ni_rpc_peer){0}))
    e = -ENOMEM;
  if (e == 0)
    *out = r;
  else
    ni_rpc_close(r);
  return e;
}

const char *ni_rpc_broken(const struct ni_rpc *client) { return *client->broken ? client->broken : NULL; }
uint16_t ni_rpc_port(const struct ni_rpc *r) { return r->port; }
int ni_rpc_fd(const struct ni_rpc *r) { return r->epoll; }

void ni_rpc_close(struct ni_rpc *r) {
  r->now = ni_now_ns(CLOCK_MONOTONIC);
  for (struct ni_link *h; (h = r->all); bury(h)) {
    r->active = h;
    if (h->ready && !h->dead)
      flush(h); /* answers that are queued, then a farewell */
    if (h->ready && !h->dead && nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR) == 0)
      flush(h);
    h->dead = true;
  }
  if (r->creds)
    gnutls_certificate_free_credentials(r->creds);
  if (r->callbacks)
    nghttp2_session_callbacks_del(r->callbacks);
  if (r->option)
    nghttp2_option_del(r->option);
  ni_secret_free(r->token);
  if (r->listens >= 0)
    close(r->listens);
  if (r->epoll >= 0)
    close(r->epoll);
  free(r);
}
