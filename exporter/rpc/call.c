/*
 * Messages in streams of HTTP/2. nghttp2 knows frames, windows and floods; here are gRPC's five bytes before
 * a message, its headers and trailers, and the bounds of calls.
 */
#include "call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "exporter/base/array.h"
#include "exporter/base/text/safe_text.h"
#include "link.h"

enum {
  MESSAGE_MAX = 4 << 20,
  UNSENT_MAX = MESSAGE_MAX + 5,
  WINDOW = 4 << 20,
  CONNECTION_WINDOW = 16 << 20,
  STREAMS = 64,
  HEADERS_MAX = 16 << 10,
  /* parts of messages that are not whole: of all connections; always taken */
  PARTS_MAX = 64 << 20,
  SMALL = 64 << 10
};

struct ni_rpc_call {
  struct ni_link *link;
  struct ni_rpc_call *next, **at;
  void *data;
  int32_t id;
  bool begun;          /* the owner knows it */
  bool deaf, finished; /* what comes is dropped; what is queued is the last */
  bool answered, grpc, post, trusted;
  enum ni_rpc_status status;
  char path[128], text[256];
  size_t headers;
  uint64_t since_ns; /* when headers or a message began that are not whole; 0: there are none */
  uint8_t head[5], *in, *out;
  size_t n_head, want, n_in, in_cap, out_at, out_n, out_cap;
};

/* ---- connections ---- */

void ni_link_die(struct ni_link *h, const char *why) {
  if (h->dead)
    return;
  h->dead = true;
  h->next_dead = h->rpc->dead;
  h->rpc->dead = h;
  if (!h->rpc->server)
    ni_safe_text(why, h->rpc->broken, sizeof h->rpc->broken);
  if (h->conn.fd >= 0)
    shutdown(h->conn.fd, SHUT_RDWR); /* wakes the owner's epoll */
}

void ni_link_fail(struct ni_link *h, ssize_t n) {
  bool at_once = !h->rpc->server && !h->heard;
  ni_link_die(h,
              at_once && h->conn.tls ? "it ended TLS at once: does it want a certificate of the client "
                                       "(--cert FILE, or of an agent --head-cert)?"
                  : at_once ? "it closed the connection at once: does it speak TLS there (--ca FILE, or of "
                              "an agent --head-ca), or is it the HTTP port?"
                  : n < 0   ? strerror((int)-n)
                            : "the other side closed the connection");
}

void ni_link_wait(struct ni_link *h, uint32_t events) {
  struct epoll_event e = {.events = events, .data.ptr = h};
  if (h->dead || h->events == events)
    return;
  h->events = events;
  if (epoll_ctl(h->rpc->epoll, EPOLL_CTL_MOD, h->conn.fd, &e) != 0 &&
      epoll_ctl(h->rpc->epoll, EPOLL_CTL_ADD, h->conn.fd, &e) != 0)
    ni_link_die(h, strerror(errno));
}

void ni_link_stir(struct ni_link *h) {
  if (h->ready && h != h->rpc->active)
    ni_link_wait(h, EPOLLIN | EPOLLOUT);
}

/* ---- calls ---- */

static struct ni_rpc_call *add_call(struct ni_link *h) {
  struct ni_rpc_call *c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->link = h;
  c->status = NI_RPC_UNAVAILABLE;
  c->since_ns = h->rpc->now;
  c->at = &h->calls;
  if ((c->next = h->calls))
    c->next->at = &c->next;
  return h->calls = c;
}

static void end_call(struct ni_rpc_call *c, const char *why) {
  struct ni_link *h = c->link;
  struct ni_rpc *r = h->rpc;
  if ((*c->at = c->next))
    c->next->at = c->at;
  if (!h->calls)
    h->idle_ns = r->now;
  c->deaf = c->finished = true;
  if (c->begun)
    r->handler.end(r->arg, c, c->data, false, c->status,
                   c->status == NI_RPC_OK ? ""
                       : *c->text         ? c->text
                                          : why);
  r->parts -= c->n_in;
  h->unsent -= c->out_n - c->out_at;
  free(c->in);
  free(c->out);
  free(c);
}

#define NV(name, value) \
  ((nghttp2_nv){(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), strlen(name), strlen(value), 0})

/*
 * The trailers: status and text as gRPC writes them. What is for the headers goes before, where there were
 * none yet.
 */
static void put_status(struct ni_rpc_call *c, bool headers) {
  char number[4], text[3 * sizeof c->text], *to = text;
  for (const char *p = c->text; *p; p++)
    to += sprintf(to, *p < ' ' || *p > '~' || *p == '%' ? "%%%02X" : "%c", (unsigned char)*p);
  *to = 0;
  snprintf(number, sizeof number, "%d", (int)c->status);
  const nghttp2_nv nv[] = {NV(":status", "200"), NV("content-type", "application/grpc"),
                           NV("grpc-status", number), NV("grpc-message", text)};
  size_t n = *text ? 2 : 1;
  if (headers)
    nghttp2_submit_response(c->link->session, c->id, nv, 2 + n, NULL);
  else
    nghttp2_submit_trailer(c->link->session, c->id, nv + 2, n);
}

static ssize_t give(nghttp2_session *s, int32_t id, uint8_t *to, size_t len, uint32_t *flags,
                    nghttp2_data_source *source, void *arg) {
  struct ni_rpc_call *c = source->ptr;
  size_t left = c->out_n - c->out_at, n = left < len ? left : len;
  if (n)
    memcpy(to, c->out + c->out_at, n);
  c->out_at += n;
  c->link->unsent -= n;
  if (n < left)
    return (ssize_t)n;
  c->out_at = c->out_n = 0;
  if (c->out_cap > SMALL) {
    free(c->out);
    c->out = NULL;
    c->out_cap = 0;
  }
  if (!c->finished)
    return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (c->link->rpc->server) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    put_status(c, false);
  }
  return (ssize_t)n;
}

static void resume(struct ni_rpc_call *c) {
  const nghttp2_nv nv[] = {NV(":status", "200"), NV("content-type", "application/grpc")};
  const nghttp2_data_provider from = {{.ptr = c}, give};
  if (c->link->rpc->server && !c->answered)
    nghttp2_submit_response(c->link->session, c->id, nv, 2, &from);
  else
    nghttp2_session_resume_data(c->link->session, c->id);
  c->answered = true;
  ni_link_stir(c->link);
}

void ni_rpc_finish(struct ni_rpc_call *c, enum ni_rpc_status status, const char *text) {
  bool server = c->link->rpc->server, gives_up = !server && status != NI_RPC_OK;
  if (c->finished && !gives_up)
    return;
  c->finished = true;
  if (server || gives_up) {
    c->status = status;
    c->deaf = true;
    ni_safe_text(text, c->text, sizeof c->text);
  }
  if (gives_up)
    nghttp2_submit_rst_stream(c->link->session, NGHTTP2_FLAG_NONE, c->id, NGHTTP2_CANCEL);
  if (!server || c->answered || c->out_n)
    return resume(c);
  c->answered = true;
  put_status(c, true);
  ni_link_stir(c->link);
}

int ni_rpc_send(struct ni_rpc_call *c, const void *bytes, size_t len) {
  struct ni_link *h = c->link;
  const uint8_t head[5] = {0, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
  if (c->finished || h->dead)
    return 0; /* its end is told */
  if (len + sizeof head > UNSENT_MAX - (h->unsent < UNSENT_MAX ? h->unsent : UNSENT_MAX)) {
    ni_link_die(h, "too much is unsent");
    return -ENOBUFS;
  }
  if (c->out_at > c->out_n / 2) {
    memmove(c->out, c->out + c->out_at, c->out_n -= c->out_at);
    c->out_at = 0;
  }
  if (c->out_cap - c->out_n < len + sizeof head &&
      !ni_array_more(&c->out, &c->out_cap, c->out_n + len + sizeof head, 1))
    return -ENOMEM;
  memcpy(c->out + c->out_n, head, sizeof head);
  if (len)
    memcpy(c->out + c->out_n + sizeof head, bytes, len);
  c->out_n += len + sizeof head;
  h->unsent += len + sizeof head;
  resume(c);
  return 0;
}

size_t ni_rpc_unsent(const struct ni_rpc_call *c) { return c->out_n - c->out_at; }

/* Ends a call for what came. */
static void refuse(struct ni_rpc_call *c, enum ni_rpc_status status, const char *text) {
  c->deaf = true;
  c->since_ns = 0;
  ni_rpc_finish(c, status, text);
}

struct ni_rpc_call *ni_rpc_begin(struct ni_rpc *client, const char *path, void *data) {
  struct ni_link *h = client->all;
  struct ni_rpc_call *c = h && !h->dead ? add_call(h) : NULL;
  if (!c)
    return NULL;
  nghttp2_nv nv[] = {NV(":method", "POST"),
                     NV(":scheme", client->creds ? "https" : "http"),
                     NV(":path", path),
                     NV(":authority", client->at),
                     NV("te", "trailers"),
                     NV("content-type", "application/grpc"),
                     NV("user-agent", "nccl-inspector/" NI_VERSION),
                     NV("authorization", client->token ? client->token : "")};
  const nghttp2_data_provider from = {{.ptr = c}, give};
  /* a table that lives as long as the connection would have it */
  nv[sizeof nv / sizeof *nv - 1].flags = NGHTTP2_NV_FLAG_NO_INDEX;
  c->data = data;
  c->since_ns = 0;
  c->id = nghttp2_submit_request(h->session, NULL, nv, sizeof nv / sizeof *nv - !client->token, &from, c);
  if (c->id < 0) {
    end_call(c, "");
    return NULL;
  }
  c->begun = true;
  ni_link_stir(h);
  return c;
}

/* ---- what nghttp2 says ---- */

static ssize_t on_send(nghttp2_session *s, const uint8_t *data, size_t n, int flags, void *link) {
  struct ni_link *h = link;
  ssize_t put = ni_conn_write(&h->conn, data, n);
  if (put == -EAGAIN)
    return NGHTTP2_ERR_WOULDBLOCK;
  if (put < 0)
    ni_link_fail(h, put);
  return put < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : put;
}

static int on_begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *link) {
  struct ni_link *h = link;
  if (!h->rpc->server || f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
    return 0;
  struct ni_rpc_call *c = add_call(h);
  if (!c)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  c->id = f->hd.stream_id;
  return nghttp2_session_set_stream_user_data(s, c->id, c);
}

/* grpc-message as text. */
static void take_text(struct ni_rpc_call *c, const char *value) {
  char raw[sizeof c->text];
  size_t n = 0;
  for (unsigned byte; *value && n + 1 < sizeof raw; n++) {
    bool escaped = *value == '%' && sscanf(value + 1, "%2x", &byte) == 1 && value[2];
    raw[n] = escaped ? (char)byte : *value;
    value += escaped ? 3 : 1;
  }
  raw[n] = 0;
  ni_safe_text(raw, c->text, sizeof c->text);
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name_, size_t n,
                     const uint8_t *value_, size_t len, uint8_t flags, void *link) {
  struct ni_rpc_call *c = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
  const char *name = (const char *)name_, *value = (const char *)value_,
             *token = ((struct ni_link *)link)->rpc->token;
  if (!c)
    return 0;
  if ((c->headers += n + len + 32) > HEADERS_MAX)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (strcmp(name, ":path") == 0 && len < sizeof c->path)
    memcpy(c->path, value, len + 1);
  else if (strcmp(name, ":method") == 0)
    c->post = strcmp(value, "POST") == 0;
  else if (strcmp(name, "content-type") == 0)
    c->grpc = strncmp(value, "application/grpc", 16) == 0;
  else if (strcmp(name, "authorization") == 0 && token)
    c->trusted = len == strlen(token) && strncasecmp(value, token, 7) == 0 &&
        gnutls_memcmp(value + 7, token + 7, len - 7) == 0;
  else if (!c->begun || ((struct ni_link *)link)->rpc->server || c->deaf)
    return 0;
  else if (strcmp(name, ":status") == 0 && strcmp(value, "200") != 0)
    snprintf(c->text, sizeof c->text, "HTTP %.3s", value);
  else if (strcmp(name, "grpc-status") == 0)
    c->status = *value >= '0' && *value <= '9' ? strtoul(value, NULL, 10) : NI_RPC_INTERNAL;
  else if (strcmp(name, "grpc-message") == 0)
    take_text(c, value);
  return 0;
}

/* A request's headers are whole. */
static void request(struct ni_rpc_call *c) {
  struct ni_rpc *r = c->link->rpc;
  struct ni_rpc_peer peer = c->link->peer;
  const nghttp2_nv nv = NV(":status", "415");
  c->since_ns = 0;
  if (!c->post || !c->grpc) {
    c->deaf = c->finished = true;
    nghttp2_submit_response(c->link->session, c->id, &nv, 1, NULL);
    return;
  }
  peer.trusted = c->trusted || !r->token;
  enum ni_rpc_status status = r->handler.begin(r->arg, c, c->path, &peer, &c->data);
  if (status == NI_RPC_OK)
    c->begun = true;
  else
    refuse(c, status,
           status == NI_RPC_UNAUTHENTICATED     ? "a token is wanted"
               : status == NI_RPC_UNIMPLEMENTED ? "there is no such method"
                                                : "");
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *link) {
  struct ni_rpc *r = ((struct ni_link *)link)->rpc;
  struct ni_rpc_call *c = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
  if (!c || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
    return 0;
  if (r->server && f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
    request(c);
  if (!(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
    return 0;
  if (!r->server) { /* over; what was still to be sent is of no use to the other side */
    c->deaf = true;
    if (!nghttp2_session_get_stream_local_close(s, c->id))
      nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, c->id, NGHTTP2_CANCEL);
  } else if (c->begun && !c->deaf) {
    if (c->n_head)
      refuse(c, NI_RPC_INTERNAL, "the last message is cut");
    else
      r->handler.end(r->arg, c, c->data, true, NI_RPC_OK, "");
  }
  return 0;
}

/* Trailers are out: the other side need not end its half. */
static int on_sent(nghttp2_session *s, const nghttp2_frame *f, void *link) {
  bool last = f->hd.type == NGHTTP2_HEADERS && f->hd.flags & NGHTTP2_FLAG_END_STREAM;
  if (last && ((struct ni_link *)link)->rpc->server &&
      !nghttp2_session_get_stream_remote_close(s, f->hd.stream_id))
    nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, f->hd.stream_id, NGHTTP2_NO_ERROR);
  return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                   void *link) {
  struct ni_rpc_call *c = nghttp2_session_get_stream_user_data(s, id);
  struct ni_rpc *r = ((struct ni_link *)link)->rpc;
  while (c && len && !c->deaf) {
    if (c->n_head < sizeof c->head) {
      if (!c->n_head)
        c->since_ns = r->now;
      c->head[c->n_head++] = *data++;
      len--;
      if (c->n_head < sizeof c->head)
        continue;
      c->want = (size_t)c->head[1] << 24 | (size_t)c->head[2] << 16 | (size_t)c->head[3] << 8 | c->head[4];
      if (c->head[0])
        refuse(c, NI_RPC_UNIMPLEMENTED, "compressed messages are not taken");
      else if (c->want > MESSAGE_MAX)
        refuse(c, NI_RPC_EXHAUSTED, "the message is larger than 4194304 bytes");
      if (c->deaf)
        break;
    }
    size_t n = len < c->want - c->n_in ? len : c->want - c->n_in;
    const uint8_t *whole = data;
    if (n < c->want) { /* it is put together */
      bool room = c->want <= SMALL || r->parts + n <= PARTS_MAX;
      if (!room || (c->in_cap < c->n_in + n && !ni_array_more(&c->in, &c->in_cap, c->n_in + n, 1))) {
        refuse(c, NI_RPC_EXHAUSTED, "no memory for this message");
        return 0;
      }
      if (n)
        memcpy(c->in + c->n_in, data, n);
      c->n_in += n;
      r->parts += n;
      whole = c->in;
    }
    data += n;
    len -= n;
    if (c->n_in < c->want && n < c->want)
      break;
    c->n_head = c->since_ns = 0;
    r->handler.message(r->arg, c, c->data, whole, c->want);
    r->parts -= c->n_in;
    c->n_in = 0;
    if (c->in_cap > SMALL) {
      free(c->in);
      c->in = NULL;
      c->in_cap = 0;
    }
  }
  return 0;
}

static int on_close(nghttp2_session *s, int32_t id, uint32_t error, void *link) {
  struct ni_rpc_call *c = nghttp2_session_get_stream_user_data(s, id);
  if (c)
    end_call(c, error ? nghttp2_http2_strerror(error) : "");
  return 0;
}

nghttp2_session_callbacks *ni_link_callbacks(void) {
  nghttp2_session_callbacks *cb;
  if (nghttp2_session_callbacks_new(&cb) != 0)
    return NULL;
  nghttp2_session_callbacks_set_send_callback(cb, on_send);
  nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
  nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
  return cb;
}

int ni_link_greet(struct ni_link *h) {
  const nghttp2_settings_entry say[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS},
                                        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
                                        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADERS_MAX},
                                        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
  int e = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, say, h->rpc->server ? 3 : 4);
  return e ? e : nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
}

bool ni_link_late(const struct ni_link *h, uint64_t ns) {
  const struct ni_rpc_call *c = h->calls;
  while (c && (!c->since_ns || h->rpc->now - c->since_ns <= ns))
    c = c->next;
  return c;
}

void ni_link_end(struct ni_link *h, const char *why) {
  while (h->calls)
    end_call(h->calls, why);
}
