#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/process/listen.h"
#include "exporter/base/now.h"
#include "exporter/base/process/secret.h"
#include "exporter/output/metrics/text.h"
#include "refuse.h"

enum {
  OF_ONE_ADDRESS = 16,
  SILENCE_S = 10,
  ROUNDS = 32,
  MOST_ROUNDS = 4096,
  SHARED = 16,
  STREAM_BLOCK = 8 << 10,
  BEHIND_BYTES = 1 << 20
};
#define SECOND UINT64_C(1000000000)

struct http_link { /* a connection */
  struct ni_http *http;
  struct http_link *next, **at;
  struct MHD_Connection *c;
  int fd;
  bool certified, too_large, stream, waits, cut; /* waits: a stream with nothing to send, suspended */
  /* the path of the newest request, or what is behind it, has a NUL */
  bool nul;
  /* that path as it was sent, in the library's memory, only to be compared */
  const char *asked;
  size_t asked_len;
  char peer[48];
  /* suspended until the next turn, when the handler is asked again */
  bool later;
  uint64_t since_ns; /* when it began, or its newest request */
  uint64_t asked_ns; /* when the handler was asked first; 0: not yet */
  /* a stream: as many bytes of all events were sent, or not for it */
  uint64_t told;
  char *body; /* of the request; a stream: what it is told first */
  size_t len;
};

struct ni_http {
  struct MHD_Daemon *mhd;
  ni_http_handler *handler;
  void *arg;
  struct ni_http_options o; /* of it: what is the owner's for long, and plain values */
  char *token, *listen, url[96];
  struct shared_answer {
    char key[96]; /* "": none */
    struct MHD_Response *r;
    unsigned status;
    bool counted;
    uint64_t made_ns;
  } shared[SHARED];
  struct http_link *links;
  size_t streams;
  char *events; /* the last len bytes of all that were ever given to streams, `total` */
  size_t len, cap;
  uint64_t total, event_ns, answered, refused;
};

/* ---- streams ---- */

/* Ends a connection from beneath: the library notices. */
static void end_link(struct http_link *l) {
  l->cut = true;
  shutdown(l->fd, SHUT_RDWR);
  if (l->waits || l->later)
    MHD_resume_connection(l->c);
  l->waits = l->later = false;
}

static ssize_t send_events(void *arg, uint64_t pos, char *buf, size_t max) {
  struct http_link *l = arg;
  struct ni_http *h = l->http;
  bool first = pos < l->len;
  size_t n = first ? l->len - pos : (size_t)(h->total - l->told);
  if (l->cut)
    return MHD_CONTENT_READER_END_WITH_ERROR;
  if (n == 0) {
    MHD_suspend_connection(l->c);
    l->waits = true;
    return 0;
  }
  const char *from = first ? l->body + pos : h->events + h->len - n;
  if (n > max)
    n = max;
  memcpy(buf, from, n);
  if (!first)
    l->told += n;
  return (ssize_t)n;
}

void ni_http_event(struct ni_http *h, const char *text) {
  size_t n = strlen(text), kept = 0;
  bool room = ni_array_room(h->events, h->len + n, h->cap);
  h->event_ns = ni_now_ns(CLOCK_MONOTONIC);
  for (struct http_link *l = h->links; l; l = l->next) {
    if (!l->stream || l->cut)
      continue;
    size_t behind = (size_t)(h->total - l->told);
    if (!room || behind > BEHIND_BYTES)
      end_link(l);
    else if (behind > kept)
      kept = behind;
  }
  if (!room || !h->streams)
    return;
  memmove(h->events, h->events + h->len - kept, kept);
  memcpy(h->events + kept, text, n);
  h->len = kept + n;
  h->total += n;
  for (struct http_link *l = h->links; l; l = l->next)
    if (l->waits) {
      l->waits = false;
      MHD_resume_connection(l->c);
    }
}

/* ---- requests ---- */

/* NULL: no memory; the body is freed then, too. */
static struct MHD_Response *make_response(const struct ni_http *h, struct http_link *l,
                                          struct ni_http_answer *a) {
  const char *origin = ni_refuse_listed_origin(&h->o, l->c),
             *type = a->stream ? "text/event-stream" : a->type;
  struct MHD_Response *r;
  if (a->why) {
    type = h->o.json ? "application/json" : "text/plain";
    if (asprintf(&a->body, h->o.json ? "{\"detail\":\"%s\"}" : "%s\n", a->why) < 0)
      return NULL;
    a->len = strlen(a->body);
  }
  if (l->stream)
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, send_events, l, NULL);
  else
    r = MHD_create_response_from_buffer(a->body ? a->len : 0, a->body, MHD_RESPMEM_MUST_FREE);
  if (!r) {
    if (!l->stream)
      free(a->body);
    return NULL;
  }
  if (type)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(r, "X-Frame-Options", "DENY"); /* for browsers that do not know the next one */
  MHD_add_response_header(r, "Content-Security-Policy", "frame-ancestors 'none'");
  if (a->header)
    MHD_add_response_header(r, a->header, a->header_value);
  if (origin)
    MHD_add_response_header(r, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, origin);
  return r;
}

/* The shared answer of the key, or the oldest one. */
static struct shared_answer *find_shared(struct ni_http *h, const char *key) {
  struct shared_answer *found = h->shared;
  for (struct shared_answer *s = found; strcmp(found->key, key) != 0 && s < h->shared + SHARED; s++)
    if (s->made_ns < found->made_ns || strcmp(s->key, key) == 0)
      found = s;
  return found;
}

static enum MHD_Result queue_answer(struct ni_http *h, struct http_link *l, struct ni_http_answer a,
                                    const char *key) {
  struct MHD_Response *r = make_response(h, l, &a);
  if (!r)
    return MHD_NO;
  if (a.status == MHD_HTTP_NO_CONTENT) {
    MHD_add_response_header(r, "Access-Control-Allow-Methods", ni_refuse_methods(&h->o));
    MHD_add_response_header(r, "Access-Control-Allow-Headers", "content-type, authorization");
  }
  h->answered += a.counted;
  h->refused += a.status >= 400;
  enum MHD_Result done = MHD_queue_response(l->c, a.status, r);
  struct shared_answer *s = a.shared && key ? find_shared(h, key) : NULL;
  if (!s) {
    MHD_destroy_response(r);
    return done;
  }
  if (s->r)
    MHD_destroy_response(s->r);
  *s = (struct shared_answer){
      .r = r, .status = a.status, .counted = a.counted, .made_ns = ni_now_ns(CLOCK_MONOTONIC)};
  strcpy(s->key, key);
  return done;
}

/* The headers are there. A refusal at this time closes the connection, and nothing more is read from it. */
static enum MHD_Result check_headers(struct ni_http *h, struct http_link *l, const char *path,
                                     const char *method) {
  const struct ni_refuse_request q = {.options = &h->o,
                                      .token = h->token,
                                      .c = l->c,
                                      .path = path,
                                      .method = method,
                                      .has_nul = l->nul,
                                      .certified = &l->certified};
  struct ni_http_answer refusal;
  l->since_ns = ni_now_ns(CLOCK_MONOTONIC);
  free(l->body);
  l->body = NULL;
  l->len = 0;
  l->too_large = false;
  l->asked_ns = 0;
  return ni_refuse(&q, &refusal) ? queue_answer(h, l, refusal, NULL) : MHD_YES;
}

/* A piece of the body. What is too much is read and forgotten: the library answers only behind it. */
static enum MHD_Result append_body(struct http_link *l, const char *piece, size_t *bytes) {
  if (!l->body && !(l->body = malloc(NI_HTTP_BODY_BYTES + 1)))
    return MHD_NO;
  if (*bytes > NI_HTTP_BODY_BYTES - l->len)
    l->too_large = true;
  else {
    memcpy(l->body + l->len, piece, *bytes);
    l->len += *bytes;
  }
  l->body[l->len] = 0;
  *bytes = 0;
  return MHD_YES;
}

static const struct ni_http_answer preflight = {
    .status = MHD_HTTP_NO_CONTENT, .header = "Access-Control-Max-Age", .header_value = "600"};
static const struct ni_http_answer too_large = {.status = MHD_HTTP_CONTENT_TOO_LARGE,
                                                .why = NI_HTTP_LONG_BODY};
static const struct ni_http_answer too_many_streams = {.status = MHD_HTTP_SERVICE_UNAVAILABLE,
                                                       .why = "too many streams",
                                                       .header = MHD_HTTP_HEADER_RETRY_AFTER,
                                                       .header_value = "10"};

/* All of it is there. Answers that are shared are made anew when they are older than 100 ms. */
static enum MHD_Result answer_request(struct ni_http *h, struct http_link *l, const char *path,
                                      const char *method) {
  struct ni_http_request q = {
      .method = method,
      .path = path,
      .content_type = ni_http_header(l->c, MHD_HTTP_HEADER_CONTENT_TYPE),
      .body = l->body ? l->body : "",
      .len = l->len,
      .peer = l->peer,
      .open_metrics = ni_metrics_wants_open(ni_http_header(l->c, MHD_HTTP_HEADER_ACCEPT))};
  const char *origin = ni_refuse_listed_origin(&h->o, l->c);
  struct ni_http_answer a = {0};
  struct shared_answer *s = NULL;
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  char key[sizeof s->key];
  if (l->too_large)
    return queue_answer(h, l, too_large, NULL);
  if (strcmp(method, "OPTIONS") == 0)
    return queue_answer(h, l, preflight, NULL);
  int n = snprintf(key, sizeof key, "%d%s %s", q.open_metrics, origin ? origin : "", path);
  if (strcmp(method, "POST") != 0 && n < (int)sizeof key)
    s = find_shared(h, key);
  if (s && now - s->made_ns < SECOND / 10 && strcmp(s->key, key) == 0) {
    h->answered += s->counted;
    h->refused += s->status >= 400;
    return MHD_queue_response(l->c, s->status, s->r);
  }
  if (!l->asked_ns)
    l->asked_ns = now;
  q.asked_ns = l->asked_ns;
  if (l->cut)
    return MHD_NO;
  h->handler(h->arg, &q, &a);
  if (a.later) {
    MHD_suspend_connection(l->c);
    l->later = true;
    return MHD_YES;
  }
  if (!a.stream || strcmp(method, "HEAD") == 0)
    return queue_answer(h, l, a, s ? key : NULL);
  free(l->body);
  l->body = a.body;
  l->len = a.body ? a.len : 0;
  if (h->streams >= h->o.connections / 2)
    return queue_answer(h, l, too_many_streams, NULL);
  if (h->streams++ == 0)
    h->event_ns = now;
  l->stream = true;
  l->told = h->total;
  return queue_answer(h, l, a, NULL);
}

static struct http_link *find_link(struct MHD_Connection *c) {
  return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* A request begins: its path with the query as it was sent. */
static void *note_path(void *arg, const char *uri, struct MHD_Connection *c) {
  struct http_link *l = find_link(c);
  (void)arg;
  if (!l)
    return NULL;
  const char *escaped = strstr(uri, "%00"), *query = strchr(uri, '?');
  l->asked = uri;
  l->asked_len = strlen(uri);
  l->nul = escaped && (!query || escaped < query); /* a query is not read */
  return NULL;
}

static enum MHD_Result handle_request(void *arg, struct MHD_Connection *c, const char *url,
                                      const char *method, const char *version, const char *upload,
                                      size_t *upload_bytes, void **begun) {
  struct ni_http *h = arg;
  struct http_link *l = find_link(c);
  if (!l)
    return MHD_NO;
  if (!*begun) {
    l->nul |= l->asked &&
        (ni_refuse_has_nul(method, strlen(method), l->asked, false) ||
         ni_refuse_has_nul(l->asked, l->asked_len, version, false));
    *begun = l;
    return check_headers(h, l, url, method);
  }
  return *upload_bytes ? append_body(l, upload, upload_bytes) : answer_request(h, l, url, method);
}

static bool is_loopback(const struct sockaddr *a) {
  if (a->sa_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* A connection begins or has ended. Without memory it has no link, and is not answered. */
static void track_connection(void *arg, struct MHD_Connection *c, void **context,
                             enum MHD_ConnectionNotificationCode code) {
  struct ni_http *h = arg;
  struct http_link *l = code == MHD_CONNECTION_NOTIFY_STARTED ? calloc(1, sizeof *l) : *context;
  if (!l)
    return;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    *l = (struct http_link){
        .http = h, .next = h->links, .at = &h->links, .c = c, .since_ns = ni_now_ns(CLOCK_MONOTONIC)};
    l->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const struct sockaddr *a = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    getnameinfo(a, a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
                l->peer, sizeof l->peer, NULL, 0, NI_NUMERICHOST);
    if (l->next)
      l->next->at = &l->next;
    *context = h->links = l;
    return;
  }
  if ((*l->at = l->next))
    l->next->at = l->at;
  h->streams -= l->stream;
  free(l->body);
  free(l);
}

/*
 * The library ends silent connections, but a byte now and then would keep one for ever. Ends those that took
 * too long, and where room is short those whose other side is done with sending: no request comes of these.
 * So of streams at any time: nothing is read of them.
 */
static void cut_connections(struct ni_http *h, bool short_of_room) {
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC), most = (short_of_room ? 1 : 20) * SECOND;
  for (struct http_link *l = h->links; l; l = l->next) {
    bool is_gone =
        (short_of_room || l->stream) && poll(&(struct pollfd){.fd = l->fd, .events = POLLRDHUP}, 1, 0) > 0;
    if (is_gone || (!l->stream && now - l->since_ns > most))
      end_link(l);
  }
  if (h->streams && now - h->event_ns > 15 * SECOND)
    ni_http_event(h, ":\n\n");
}

void ni_http_turn(struct ni_http *h, uint64_t *answered, uint64_t *refused) {
  MHD_UNSIGNED_LONG_LONG due = 1;
  for (struct http_link *l = h->links; l; l = l->next)
    if (l->later) {
      l->later = false;
      MHD_resume_connection(l->c);
    }
  /*
   * Twice at least, and as long as room is short or more is to be sent: what one round ends makes room for
   * those who wait.
   */
  for (int i = 0; i < MOST_ROUNDS; i++) {
    bool many = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections >
        h->o.connections * 3 / 4;
    bool is_done = i > 1 && (!many || i >= ROUNDS);
    if (is_done && (MHD_get_timeout(h->mhd, &due) != MHD_YES || due != 0))
      break;
    if (i == 0 || (many && i < ROUNDS))
      cut_connections(h, many);
    MHD_run(h->mhd);
  }
  *answered += h->answered;
  *refused += h->refused;
  h->answered = h->refused = 0;
}

/* ---- begin and end ---- */

/* Listens at the address, or goes on with the socket of the one before. */
static struct MHD_Daemon *start_daemon(struct ni_http *h, const struct ni_http *before,
                                       const struct addrinfo *at, char *cert, char *key, char *ca) {
  int listens = before ? MHD_get_daemon_info(before->mhd, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd : -1;
  int fd = before ? fcntl(listens, F_DUPFD_CLOEXEC, 0) : -1;
  const struct MHD_OptionItem where = {before ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_SOCK_ADDR, fd,
                                       before ? NULL : at->ai_addr};
  const struct MHD_OptionItem more[] = {where,
                                        {cert ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, cert},
                                        {MHD_OPTION_HTTPS_MEM_KEY, 0, key},
                                        {MHD_OPTION_HTTPS_MEM_TRUST, 0, ca},
                                        {MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"},
                                        {MHD_OPTION_END, 0, NULL}};
  unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (cert ? MHD_USE_TLS : 0) |
      (at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
  return MHD_start_daemon(
      flags, 0, NULL, NULL, handle_request, h, MHD_OPTION_CONNECTION_LIMIT, h->o.connections,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, is_loopback(at->ai_addr) ? 0u : (unsigned)OF_ONE_ADDRESS,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)NI_HTTP_HEADER_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
      (unsigned)SILENCE_S, MHD_OPTION_URI_LOG_CALLBACK, note_path, NULL, MHD_OPTION_LISTEN_BACKLOG_SIZE,
      h->o.connections, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, track_connection, h,
      MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

int ni_http_open(struct ni_http **out, const struct ni_http_options *o, ni_http_handler *handler, void *arg,
                 char *why, size_t cap) {
  struct ni_http *h = calloc(1, sizeof *h), *before = *out;
  struct addrinfo *at = ni_listen_address(o->listen);
  char *cert = NULL, *key = NULL, *ca = NULL;
  const char *option = o->option ? o->option : "--listen";
  snprintf(why, cap, "%s", strerror(ENOMEM));
  bool is_fine = h && (h->listen = strdup(o->listen));
  if (is_fine) {
    h->o = *o;
    h->handler = handler;
    h->arg = arg;
  }
  bool is_guarded = o->token_file && o->tls_cert;
  if (!at || (!is_loopback(at->ai_addr) && !o->open && !is_guarded)) {
    snprintf(why, cap, "%s=%s: %s", option, o->listen,
             at ? "others reach that. Give --token-file, --tls-cert and --tls-key, or --open to "
                  "serve everybody"
                : "want " NI_LISTEN_WANT);
    is_fine = false;
  }
  if (is_fine && o->token_file)
    is_fine = (h->token = ni_secret_read("token-file", o->token_file, true, why, cap));
  if (is_fine && o->tls_cert)
    is_fine = (cert = ni_secret_read("tls-cert", o->tls_cert, false, why, cap)) &&
        (key = ni_secret_read("tls-key", o->tls_key, true, why, cap));
  if (is_fine && o->client_ca)
    is_fine = (ca = ni_secret_read("client-ca", o->client_ca, false, why, cap));
  if (is_fine) {
    errno = 0;
    h->mhd =
        start_daemon(h, before && strcmp(before->listen, o->listen) == 0 ? before : NULL, at, cert, key, ca);
    snprintf(why, cap, "%s=%s%s: %s", option, o->listen,
             cert ? ca ? ", --tls-cert, --tls-key, --client-ca" : ", --tls-cert, --tls-key" : "",
             errno && (errno != EINVAL || !cert) ? strerror(errno) : "want a certificate and its key in PEM");
  }
  if (at)
    freeaddrinfo(at);
  ni_secret_free(cert);
  ni_secret_free(key);
  ni_secret_free(ca);
  if (!h || !h->mhd) {
    if (h)
      ni_http_close(h);
    return -EINVAL;
  }
  snprintf(h->url, sizeof h->url, "http%s://%.*s:%u", o->tls_cert ? "s" : "",
           (int)(strrchr(h->listen, ':') - h->listen), h->listen,
           MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_BIND_PORT)->port);
  if (before)
    ni_http_close(before);
  *out = h;
  return 0;
}

const char *ni_http_url(const struct ni_http *h) { return h->url; }
size_t ni_http_streams(const struct ni_http *h) { return h->streams; }
int ni_http_fd(const struct ni_http *h) {
  return MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void ni_http_close(struct ni_http *h) {
  /* the library stops with nothing suspended alone */
  for (struct http_link *l = h->links; l; l = l->next)
    end_link(l);
  if (h->mhd)
    MHD_stop_daemon(h->mhd);
  for (int i = 0; i < SHARED; i++)
    if (h->shared[i].r)
      MHD_destroy_response(h->shared[i].r);
  ni_secret_free(h->token);
  free(h->listen);
  free(h->events);
  free(h);
}
