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
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/process/as_user.h"
#include "exporter/base/process/secret.h"
#include "exporter/output/metrics/text.h"
#include "exporter/rpc/rpc.h"

enum {
  OF_ONE_ADDRESS = 16,
  HEADER_BYTES = 16 << 10,
  BODY_BYTES = 64 << 10,
  SILENCE_S = 10,
  FILE_BYTES = 256 << 10,
  ROUNDS = 32,
  MOST_ROUNDS = 4096,
  SHARED = 16,
  STREAM_BLOCK = 8 << 10,
  BEHIND_BYTES = 1 << 20
};
#define SECOND UINT64_C(1000000000)

struct link { /* a connection */
  struct ni_http *http;
  struct link *next, **at;
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
  struct shared {
    char key[96]; /* "": none */
    struct MHD_Response *r;
    unsigned status;
    bool counted;
    uint64_t made_ns;
  } shared[SHARED];
  struct link *links;
  size_t streams;
  char *events; /* the last len bytes of all that were ever given to streams, `total` */
  size_t len, cap;
  uint64_t total, event_ns, answered, refused;
};

/* ---- streams ---- */

/* Ends a connection from beneath: the library notices. */
static void end_link(struct link *l) {
  l->cut = true;
  shutdown(l->fd, SHUT_RDWR);
  if (l->waits || l->later)
    MHD_resume_connection(l->c);
  l->waits = l->later = false;
}

static ssize_t send_events(void *arg, uint64_t pos, char *buf, size_t max) {
  struct link *l = arg;
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
  for (struct link *l = h->links; l; l = l->next) {
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
  for (struct link *l = h->links; l; l = l->next)
    if (l->waits) {
      l->waits = false;
      MHD_resume_connection(l->c);
    }
}

/* ---- requests ---- */

#define METHODS(h) ((h)->o.posts ? "GET, HEAD, POST" : "GET, HEAD")
#define HEADER(c, name) MHD_lookup_connection_value(c, MHD_HEADER_KIND, name)

/* Takes as long whatever is wrong with what was sent. */
static bool knows(const char *token, const char *sent) {
  size_t want = strlen(token), n = sent && strncasecmp(sent, "Bearer ", 7) == 0 ? strlen(sent += 7) : 0;
  volatile unsigned char differs = want != n || !want; /* a token that is empty nobody knows */
  for (size_t i = 0; want && i < n; i++)
    differs |= (unsigned char)(sent[i] ^ token[i % want]);
  return !differs;
}

/* That of the request where it is listed, else NULL. */
static const char *listed_origin(const struct ni_http *h, struct MHD_Connection *c) {
  const char *sent = HEADER(c, MHD_HTTP_HEADER_ORIGIN), *const *o = h->o.origin;
  while (sent && o && *o && strcmp(*o, sent) != 0)
    o++;
  return sent && o ? *o : NULL;
}

/*
 * By number, or localhost: other names can be made to lead here, so that a page of theirs reads what only
 * this machine may.
 */
static bool by_number(const char *host) {
  return *host == '[' || !host[strspn(host, "0123456789.:")] || strcmp(host, "localhost") == 0 ||
      strncmp(host, "localhost:", 10) == 0;
}

/* Is it of a page of another site? Browsers say so in Origin. A page of ours has the host that was asked. */
static bool foreign(const struct ni_http *h, struct MHD_Connection *c) {
  const char *sent = HEADER(c, MHD_HTTP_HEADER_ORIGIN), *host = HEADER(c, MHD_HTTP_HEADER_HOST),
             *own = sent ? strstr(sent, "://") : NULL;
  bool same = own && host && strcmp(own + 3, host) == 0;
  return sent && !(same && by_number(host)) && !listed_origin(h, c);
}

/* NULL: no memory; the body is freed then, too. */
static struct MHD_Response *response(const struct ni_http *h, struct link *l, struct ni_http_answer *a) {
  const char *origin = listed_origin(h, l->c), *type = a->stream ? "text/event-stream" : a->type;
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
    l->stream ? (void)0 : free(a->body);
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

/* That of the key, or the oldest one. */
static struct shared *shared_as(struct ni_http *h, const char *key) {
  struct shared *found = h->shared;
  for (struct shared *s = found; strcmp(found->key, key) != 0 && s < h->shared + SHARED; s++)
    if (s->made_ns < found->made_ns || strcmp(s->key, key) == 0)
      found = s;
  return found;
}

static enum MHD_Result answer(struct ni_http *h, struct link *l, struct ni_http_answer a, const char *key) {
  struct MHD_Response *r = response(h, l, &a);
  if (!r)
    return MHD_NO;
  if (a.status == MHD_HTTP_NO_CONTENT) {
    MHD_add_response_header(r, "Access-Control-Allow-Methods", METHODS(h));
    MHD_add_response_header(r, "Access-Control-Allow-Headers", "content-type, authorization");
  }
  h->answered += a.counted;
  h->refused += a.status >= 400;
  enum MHD_Result done = MHD_queue_response(l->c, a.status, r);
  struct shared *s = a.shared && key ? shared_as(h, key) : NULL;
  if (!s) {
    MHD_destroy_response(r);
    return done;
  }
  if (s->r)
    MHD_destroy_response(s->r);
  *s = (struct shared){
      .r = r, .status = a.status, .counted = a.counted, .made_ns = ni_now_ns(CLOCK_MONOTONIC)};
  strcpy(s->key, key);
  return done;
}

#define REFUSE(code, ...) return answer(h, l, (struct ni_http_answer){.status = (code), __VA_ARGS__}, NULL)

/*
 * Releases of the library before 1.0, which refuses a NUL itself, take it for the end of a text. Their texts
 * are pieces of what was sent, with a NUL in place of what ended each: a blank, or both bytes of a line's
 * end. Where anything else follows that NUL it was sent.
 */
static bool behind_nul(const char *text, size_t len, const char *next, bool line) {
  const uintptr_t from = (uintptr_t)text + len + 1, to = (uintptr_t)next;
  static int old = -1;
  if (old < 0)
    old = strncmp(MHD_get_version(), "0.", 2) == 0;
  if (!old || to <= from || to - from > HEADER_BYTES)
    return false; /* one of them was moved */
  for (const char *c = text + len + 1; c < next; c++)
    if (*c != ' ' && *c != '\t' && !(line && (*c == 0 || *c == '\r' || *c == '\n')))
      return true;
  return false;
}

struct framing { /* what a request's headers say of where it ends */
  unsigned lengths, encodings, hosts;
  bool odd;
};

static enum MHD_Result look_at(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len,
                               const char *value, size_t len) {
  static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  struct framing *f = arg;
  bool encoding = strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
  f->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
  f->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
  f->encodings += encoding;
  f->odd |= value && behind_nul(value, len, value + len + 2, true);
  f->odd |= !name_len || strspn(name, token) != name_len || (encoding && strcasecmp(value, "chunked") != 0);
  for (size_t i = 0; value && i < len; i++)
    f->odd |= (unsigned char)value[i] < ' ' && value[i] != '\t';
  return MHD_YES;
}

/* Could somebody on the way take it for another request, or for two? NULL: no, else why. */
static const char *ambiguous(const struct link *l) {
  struct framing f = {0};
  (void)MHD_get_connection_values_n(l->c, MHD_HEADER_KIND, look_at, &f);
  if (l->nul)
    return "a NUL";
  if (f.odd)
    return "a header that is none";
  if (f.hosts > 1)
    return "two hosts";
  return f.lengths + f.encodings > 1 ? "a length more than once" : NULL;
}

/* Headers are there. A refusal at this time closes the connection, and nothing more is read from it. */
static enum MHD_Result begin(struct ni_http *h, struct link *l, const char *path, const char *method) {
  struct MHD_Connection *c = l->c;
  const char *length = HEADER(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
  bool post = h->o.posts && strcmp(method, "POST") == 0, head = strcmp(method, "HEAD") == 0,
       get = head || strcmp(method, "GET") == 0;
  bool preflight = strcmp(method, "OPTIONS") == 0 && listed_origin(h, c),
       shown = get && h->o.anyone && strcmp(path, h->o.anyone) == 0;
  l->since_ns = ni_now_ns(CLOCK_MONOTONIC);
  free(l->body);
  l->body = NULL;
  l->len = 0;
  l->too_large = false;
  l->asked_ns = 0;
  const char *unclear = ambiguous(l);
  if (unclear)
    REFUSE(MHD_HTTP_BAD_REQUEST, .why = unclear, .header = MHD_HTTP_HEADER_CONNECTION,
           .header_value = "close");
  bool knows_token = h->token && knows(h->token, HEADER(c, MHD_HTTP_HEADER_AUTHORIZATION));
  if (!get && !post && !preflight)
    REFUSE(MHD_HTTP_METHOD_NOT_ALLOWED, .why = h->o.posts ? "GET, HEAD and POST alone" : "GET and HEAD alone",
           .header = MHD_HTTP_HEADER_ALLOW, .header_value = METHODS(h));
  if (h->o.client_ca && !l->certified) { /* asked once: a connection keeps its certificate */
    const union MHD_ConnectionInfo *tls = MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    l->certified = tls && ni_rpc_certified(tls->tls_session);
    if (!l->certified)
      REFUSE(MHD_HTTP_FORBIDDEN, .why = "a client certificate is wanted that --client-ca of the head signed");
  }
  if (h->token && !knows_token && !preflight && !shown)
    REFUSE(MHD_HTTP_UNAUTHORIZED, .why = "a token is wanted", .header = MHD_HTTP_HEADER_WWW_AUTHENTICATE,
           .header_value = "Bearer");
  if (!h->token && !h->o.open && HEADER(c, MHD_HTTP_HEADER_HOST) &&
      !by_number(HEADER(c, MHD_HTTP_HEADER_HOST)))
    REFUSE(MHD_HTTP_FORBIDDEN, .why = "without a token ask by number, or localhost");
  if (post && !h->token && foreign(h, c))
    REFUSE(MHD_HTTP_FORBIDDEN, .why = "pages of other sites may not do that");
  if (post && length && strtoull(length, NULL, 10) > BODY_BYTES)
    REFUSE(MHD_HTTP_CONTENT_TOO_LARGE, .why = "64 KiB are taken at most");
  if (!post && ((length && strcmp(length, "0") != 0) || HEADER(c, MHD_HTTP_HEADER_TRANSFER_ENCODING)))
    REFUSE(MHD_HTTP_CONTENT_TOO_LARGE, .why = "no body is taken");
  return MHD_YES;
}

/* A piece of the body. What is too much is read and forgotten: the library answers only behind it. */
static enum MHD_Result take(struct link *l, const char *piece, size_t *bytes) {
  if (!l->body && !(l->body = malloc(BODY_BYTES + 1)))
    return MHD_NO;
  if (*bytes > BODY_BYTES - l->len)
    l->too_large = true;
  else {
    memcpy(l->body + l->len, piece, *bytes);
    l->len += *bytes;
  }
  l->body[l->len] = 0;
  *bytes = 0;
  return MHD_YES;
}

/* All of it is there. Answers that are shared are made anew when they are older than 100 ms. */
static enum MHD_Result finish(struct ni_http *h, struct link *l, const char *path, const char *method) {
  struct ni_http_request q = {.method = method,
                              .path = path,
                              .content_type = HEADER(l->c, MHD_HTTP_HEADER_CONTENT_TYPE),
                              .body = l->body ? l->body : "",
                              .len = l->len,
                              .peer = l->peer,
                              .open_metrics = ni_metrics_wants_open(HEADER(l->c, MHD_HTTP_HEADER_ACCEPT))};
  const char *origin = listed_origin(h, l->c);
  struct ni_http_answer a = {0};
  struct shared *s = NULL;
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  char key[sizeof s->key];
  if (l->too_large)
    REFUSE(MHD_HTTP_CONTENT_TOO_LARGE, .why = "64 KiB are taken at most");
  if (strcmp(method, "OPTIONS") == 0)
    REFUSE(MHD_HTTP_NO_CONTENT, .header = "Access-Control-Max-Age", .header_value = "600");
  int n = snprintf(key, sizeof key, "%d%s %s", q.open_metrics, origin ? origin : "", path);
  if (strcmp(method, "POST") != 0 && n < (int)sizeof key)
    s = shared_as(h, key);
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
    return answer(h, l, a, s ? key : NULL);
  free(l->body);
  l->body = a.body;
  l->len = a.body ? a.len : 0;
  if (h->streams >= h->o.connections / 2)
    REFUSE(MHD_HTTP_SERVICE_UNAVAILABLE, .why = "too many streams", .header = MHD_HTTP_HEADER_RETRY_AFTER,
           .header_value = "10");
  if (h->streams++ == 0)
    h->event_ns = now;
  l->stream = true;
  l->told = h->total;
  return answer(h, l, a, NULL);
}

static struct link *link_of(struct MHD_Connection *c) {
  return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* A request begins: its path with the query as it was sent. */
static void *asked(void *arg, const char *uri, struct MHD_Connection *c) {
  struct link *l = link_of(c);
  (void)arg;
  if (!l)
    return NULL;
  const char *escaped = strstr(uri, "%00"), *query = strchr(uri, '?');
  l->asked = uri;
  l->asked_len = strlen(uri);
  l->nul = escaped && (!query || escaped < query); /* a query is not read */
  return NULL;
}

static enum MHD_Result request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
                               const char *version, const char *upload, size_t *upload_bytes, void **begun) {
  struct ni_http *h = arg;
  struct link *l = link_of(c);
  if (!l)
    return MHD_NO;
  if (!*begun) {
    l->nul |= l->asked &&
        (behind_nul(method, strlen(method), l->asked, false) ||
         behind_nul(l->asked, l->asked_len, version, false));
    *begun = l;
    return begin(h, l, url, method);
  }
  return *upload_bytes ? take(l, upload, upload_bytes) : finish(h, l, url, method);
}

static bool is_loopback(const struct sockaddr *a) {
  if (a->sa_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* A connection begins or has ended. Without memory it has no link, and is not answered. */
static void connected(void *arg, struct MHD_Connection *c, void **context,
                      enum MHD_ConnectionNotificationCode code) {
  struct ni_http *h = arg;
  struct link *l = code == MHD_CONNECTION_NOTIFY_STARTED ? calloc(1, sizeof *l) : *context;
  if (!l)
    return;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    *l = (struct link){
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
static void cut(struct ni_http *h, bool short_of_room) {
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC), most = (short_of_room ? 1 : 20) * SECOND;
  for (struct link *l = h->links; l; l = l->next) {
    bool gone =
        (short_of_room || l->stream) && poll(&(struct pollfd){.fd = l->fd, .events = POLLRDHUP}, 1, 0) > 0;
    if (gone || (!l->stream && now - l->since_ns > most))
      end_link(l);
  }
  if (h->streams && now - h->event_ns > 15 * SECOND)
    ni_http_event(h, ":\n\n");
}

void ni_http_turn(struct ni_http *h, uint64_t *answered, uint64_t *refused) {
  MHD_UNSIGNED_LONG_LONG due = 1;
  for (struct link *l = h->links; l; l = l->next)
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
    if (i > 1 && (!many || i >= ROUNDS) && (MHD_get_timeout(h->mhd, &due) != MHD_YES || due != 0))
      break;
    if (i == 0 || (many && i < ROUNDS))
      cut(h, many);
    MHD_run(h->mhd);
  }
  *answered += h->answered;
  *refused += h->refused;
  h->answered = h->refused = 0;
}

/* ---- begin and end ---- */

/*
 * "127.0.0.1:9777", "[::1]:9777", "localhost:9777": no other names, so that nothing is looked up. NULL: none
 * of these.
 */
static struct addrinfo *address(const char *text) {
  const struct addrinfo want = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : "x";
  size_t n = colon ? (size_t)(colon - text) : 0;
  bool six = n > 2 && text[0] == '[' && colon[-1] == ']';
  struct addrinfo *found = NULL;
  char host[64];
  snprintf(host, sizeof host, "%.*s", (int)(six ? n - 2 : n), text + six);
  bool number = *port && !port[strspn(port, "0123456789")] && strtoul(port, NULL, 10) <= 65535;
  if (!number || !*host || six != (strchr(host, ':') != NULL))
    return NULL;
  return getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &want, &found) == 0 ? found
                                                                                                    : NULL;
}

static bool first_line_alone(const char *option) {
  const size_t n = strlen(option), end = sizeof "token-file" - 1;
  return n >= end &&
      (strcmp(option + n - end, "token-file") == 0 ||
       (n > end && strcmp(option + n - end - 1, "header-file") == 0));
}

char *ni_http_secret(const char *option, const char *path, bool secret, char *why, size_t cap) {
  struct stat st = {0};
  char *text = calloc(1, FILE_BYTES + 1), *kept = NULL;
  const char *wrong = text ? NULL : strerror(ENOMEM);
  size_t n = 0;
  int fd = ni_named_open(path);
  if (!wrong && (fd < 0 || fstat(fd, &st) != 0))
    wrong = strerror(fd < 0 ? -fd : errno);
  for (ssize_t got = 1; !wrong && got > 0 && n < FILE_BYTES; n += got > 0 ? (size_t)got : 0)
    if ((got = read(fd, text + n, FILE_BYTES - n)) < 0)
      wrong = strerror(errno);
  if (!wrong && first_line_alone(option))
    text[strcspn(text, "\r\n")] = 0;
  if (!wrong && secret && (st.st_mode & S_IRWXO))
    wrong = "others can read it: chmod o= it";
  if (!wrong && (!*text || *text == '\n' || n == FILE_BYTES))
    wrong = "it is empty, or larger than 256 KiB";
  if (!wrong && !(kept = ni_secret_keep(text)))
    wrong = strerror(ENOMEM);
  if (wrong)
    snprintf(why, cap, "--%s=%s: %s", option, path, wrong);
  if (text)
    explicit_bzero(text, n);
  free(text);
  if (fd >= 0)
    close(fd);
  return kept;
}

/* Listens at the address, or goes on with the socket of the one before. */
static struct MHD_Daemon *start(struct ni_http *h, const struct ni_http *before, const struct addrinfo *at,
                                char *cert, char *key, char *ca) {
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
      flags, 0, NULL, NULL, request, h, MHD_OPTION_CONNECTION_LIMIT, h->o.connections,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, is_loopback(at->ai_addr) ? 0u : (unsigned)OF_ONE_ADDRESS,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
      (unsigned)SILENCE_S, MHD_OPTION_URI_LOG_CALLBACK, asked, NULL, MHD_OPTION_LISTEN_BACKLOG_SIZE,
      h->o.connections, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, connected, h,
      MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

int ni_http_open(struct ni_http **out, const struct ni_http_options *o, ni_http_handler *handler, void *arg,
                 char *why, size_t cap) {
  struct ni_http *h = calloc(1, sizeof *h), *before = *out;
  struct addrinfo *at = address(o->listen);
  char *cert = NULL, *key = NULL, *ca = NULL;
  const char *option = o->option ? o->option : "--listen";
  snprintf(why, cap, "%s", strerror(ENOMEM));
  bool fine = h && (h->listen = strdup(o->listen));
  if (fine) {
    h->o = *o;
    h->handler = handler;
    h->arg = arg;
  }
  if (!at || (!is_loopback(at->ai_addr) && !o->open && !(o->token_file && o->tls_cert))) {
    snprintf(why, cap, "%s=%s: %s", option, o->listen,
             at ? "others reach that. Give --token-file, --tls-cert and --tls-key, or --open to "
                  "serve everybody"
                : "want an address and a port, such as 127.0.0.1:9777, [::1]:9777 or localhost:9777");
    fine = false;
  }
  if (fine && o->token_file)
    fine = (h->token = ni_http_secret("token-file", o->token_file, true, why, cap));
  if (fine && o->tls_cert)
    fine = (cert = ni_http_secret("tls-cert", o->tls_cert, false, why, cap)) &&
        (key = ni_http_secret("tls-key", o->tls_key, true, why, cap));
  if (fine && o->client_ca)
    fine = (ca = ni_http_secret("client-ca", o->client_ca, false, why, cap));
  if (fine) {
    errno = 0;
    h->mhd = start(h, before && strcmp(before->listen, o->listen) == 0 ? before : NULL, at, cert, key, ca);
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
    h ? ni_http_close(h) : (void)0;
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
  for (struct link *l = h->links; l; l = l->next)
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
