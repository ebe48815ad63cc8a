#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/input/whole.h"
#include "exporter/output/metrics/text.h"

enum {
  CONNECTIONS = 64, OF_ONE_ADDRESS = 16, HEADER_BYTES = 16 << 10, SILENCE_S = 10, FILE_BYTES = 256 << 10, ROUNDS = 32, FDS = 1024
};
#define SECOND UINT64_C(1000000000)

struct ni_serve {
  struct MHD_Daemon *mhd;
  ni_serve_make *make;
  void *arg;
  char *token, *listen, url[96];
  struct MHD_Response *made[NI_SERVE_WHATS];
  uint64_t made_ns[NI_SERVE_WHATS], scrapes, refused;
  uint64_t since_ns[FDS]; /* by descriptor: when the connection began, or its newest request was whole; 0: none */
};

/* ---- requests ---- */

static struct MHD_Response *response(char *text, size_t bytes, enum MHD_ResponseMemoryMode mode, const char *type) {
  struct MHD_Response *r = MHD_create_response_from_buffer(bytes, text, mode);
  if (!r) return NULL;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  return r;
}

static enum MHD_Result reply(struct ni_serve *s, struct MHD_Connection *c, unsigned code, char *text,
                             const char *header, const char *value) {
  struct MHD_Response *r = response(text, strlen(text), MHD_RESPMEM_PERSISTENT, "text/plain");
  if (!r) return MHD_NO;
  s->refused++;
  if (header) MHD_add_response_header(r, header, value);
  enum MHD_Result done = MHD_queue_response(c, code, r);
  MHD_destroy_response(r);
  return done;
}

/* Takes as long whatever is wrong with what was sent. */
static bool knows(const char *token, const char *sent) {
  size_t want = strlen(token), n = sent && strncasecmp(sent, "Bearer ", 7) == 0 ? strlen(sent += 7) : 0;
  volatile unsigned char differs = want != n;
  for (size_t i = 0; i < n; i++) differs |= (unsigned char)(sent[i] ^ token[i % want]);
  return !differs;
}

/* The newest answer, made anew when it is older than 100 ms. NULL: there is none yet. */
static struct MHD_Response *made(struct ni_serve *s, enum ni_serve_what what) {
  static const char *const type[] = {NI_METRICS_TEXT_TYPE, NI_METRICS_OPEN_TYPE, "application/json", "text/plain"};
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  char *text = NULL;
  size_t bytes = 0;
  if (s->made[what] && now - s->made_ns[what] < SECOND / 10) return s->made[what];
  FILE *f = open_memstream(&text, &bytes);
  bool fine = f && s->make(s->arg, what, f) && !ferror(f);
  if (f && fclose(f) != 0) fine = false;
  struct MHD_Response *r = fine ? response(text, bytes, MHD_RESPMEM_MUST_FREE, type[what]) : NULL;
  if (!r) return free(text), NULL;
  if (s->made[what]) MHD_destroy_response(s->made[what]);
  s->made_ns[what] = now;
  return s->made[what] = r;
}

/* The library ends silent connections, but a byte now and then would keep one for ever. */
static void mark(struct ni_serve *s, struct MHD_Connection *c, bool open) {
  int fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  if (fd >= 0 && fd < FDS) s->since_ns[fd] = open ? ni_now_ns(CLOCK_MONOTONIC) : 0;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                              const char *upload, size_t *upload_bytes, void **begun) {
  struct ni_serve *s = arg;
#define HEADER(name) MHD_lookup_connection_value(c, MHD_HEADER_KIND, name)
  const char *length = HEADER(MHD_HTTP_HEADER_CONTENT_LENGTH);
  (void)version, (void)upload, (void)upload_bytes;
  if (!*begun) { /* a refusal at this time closes the connection, and nothing more is read from it */
    *begun = s;
    mark(s, c, true);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
      return reply(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD alone\n", MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (s->token && !knows(s->token, HEADER(MHD_HTTP_HEADER_AUTHORIZATION)))
      return reply(s, c, MHD_HTTP_UNAUTHORIZED, "a token is wanted\n", MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if ((length && strcmp(length, "0") != 0) || HEADER(MHD_HTTP_HEADER_TRANSFER_ENCODING))
      return reply(s, c, MHD_HTTP_CONTENT_TOO_LARGE, "no body is taken\n", NULL, NULL);
    return MHD_YES;
  }
  enum ni_serve_what what;
  bool open = ni_metrics_wants_open(HEADER(MHD_HTTP_HEADER_ACCEPT));
  if (strcmp(url, "/metrics") == 0) what = open ? NI_SERVE_OPENMETRICS : NI_SERVE_TEXT;
  else if (strcmp(url, "/v1/now") == 0) what = NI_SERVE_NOW;
  else if (strcmp(url, "/healthz") == 0) what = NI_SERVE_HEALTH;
  else return reply(s, c, MHD_HTTP_NOT_FOUND, "there are /metrics, /v1/now and /healthz\n", NULL, NULL);
  struct MHD_Response *r = made(s, what);
  if (!r)
    return reply(s, c, MHD_HTTP_SERVICE_UNAVAILABLE, "not yet: logs are still being read\n", MHD_HTTP_HEADER_RETRY_AFTER, "1");
  s->scrapes += what <= NI_SERVE_OPENMETRICS;
  return MHD_queue_response(c, MHD_HTTP_OK, r);
}

static void connected(void *s, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode code) {
  (void)context;
  mark(s, c, code == MHD_CONNECTION_NOTIFY_STARTED);
}

/* Ends those that took too long, and where room is short those whose other side is done with sending: no request comes of these. */
static void cut(struct ni_serve *s, bool short_of_room) {
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC), most = (short_of_room ? 1 : 20) * SECOND;
  for (int fd = 0; fd < FDS; fd++) {
    if (!s->since_ns[fd]) continue;
    bool gone = short_of_room && poll(&(struct pollfd){.fd = fd, .events = POLLRDHUP}, 1, 0) > 0;
    if (gone || now - s->since_ns[fd] > most) shutdown(fd, SHUT_RDWR);
  }
}

void ni_serve_turn(struct ni_serve *s, uint64_t *scrapes, uint64_t *refused) {
  MHD_UNSIGNED_LONG_LONG due = 1;
  /* Twice at least, and as long as room is short: what one round ends makes room for those who wait. */
  for (int i = 0; i < ROUNDS; i++) {
    bool many = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections > CONNECTIONS * 3 / 4;
    if (i > 1 && !many && (MHD_get_timeout(s->mhd, &due) != MHD_YES || due != 0)) break;
    if (i == 0 || many) cut(s, many);
    MHD_run(s->mhd);
  }
  *scrapes += s->scrapes;
  *refused += s->refused;
  s->scrapes = s->refused = 0;
}

/* ---- begin and end ---- */

/* "127.0.0.1:9777", "[::1]:9777", "localhost:9777": no other names, so that nothing is looked up. NULL: none of these. */
static struct addrinfo *address(const char *text) {
  const struct addrinfo want = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : "x";
  size_t n = colon ? (size_t)(colon - text) : 0;
  bool six = n > 2 && text[0] == '[' && colon[-1] == ']';
  struct addrinfo *found = NULL;
  char host[64];
  snprintf(host, sizeof host, "%.*s", (int)(six ? n - 2 : n), text + six);
  bool number = *port && !port[strspn(port, "0123456789")] && strtoul(port, NULL, 10) <= 65535;
  if (!number || !*host || six != (strchr(host, ':') != NULL)) return NULL;
  return getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &want, &found) == 0 ? found : NULL;
}

static bool is_loopback(const struct sockaddr *a) {
  if (a->sa_family == AF_INET) return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* A file of whoever runs the agent, for free(); NULL: why says it. secret: others may not read it. */
static char *text_of(const char *option, const char *path, bool secret, char *why, size_t cap) {
  struct stat st;
  size_t len = 0;
  char said[160] = "it is empty, or larger than 256 KiB";
  char *text = ni_whole_read(path, FILE_BYTES, &len, said, sizeof said);
  bool shown = secret && text && stat(path, &st) == 0 && (st.st_mode & S_IRWXO);
  if (text && !shown && *text && *text != '\n' && len < FILE_BYTES) return text;
  snprintf(why, cap, "--%s=%s: %s", option, path, shown ? "others can read it: chmod o= it" : said);
  free(text);
  return NULL;
}

/* Listens at the address, or goes on with the socket of the one before. */
static struct MHD_Daemon *start(struct ni_serve *s, const struct ni_serve *before, const struct addrinfo *at, char *cert,
                                char *key) {
  int listens = before ? MHD_get_daemon_info(before->mhd, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd : -1;
  int fd = before ? fcntl(listens, F_DUPFD_CLOEXEC, 0) : -1;
  const struct MHD_OptionItem where = {before ? MHD_OPTION_LISTEN_SOCKET : MHD_OPTION_SOCK_ADDR, fd, before ? NULL : at->ai_addr};
  const struct MHD_OptionItem more[] = {where, {cert ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, cert},
      {MHD_OPTION_HTTPS_MEM_KEY, 0, key}, {MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"}, {MHD_OPTION_END, 0, NULL}};
  unsigned flags = MHD_USE_EPOLL | (cert ? MHD_USE_TLS : 0) | (at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
  return MHD_start_daemon(flags, 0, NULL, NULL, answer, s, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, is_loopback(at->ai_addr) ? 0u : (unsigned)OF_ONE_ADDRESS,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S,
      MHD_OPTION_LISTEN_BACKLOG_SIZE, (unsigned)CONNECTIONS, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, connected, s,
      MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

int ni_serve_open(struct ni_serve **out, const struct ni_agent_options *o, ni_serve_make *make, void *arg, char *why, size_t cap) {
  struct ni_serve *s = calloc(1, sizeof *s), *before = *out;
  struct addrinfo *at = address(o->listen);
  char *cert = NULL, *key = NULL;
  snprintf(why, cap, "%s", strerror(ENOMEM));
  bool fine = s && (s->listen = strdup(o->listen));
  if (fine) s->make = make, s->arg = arg;
  if (!at || (!is_loopback(at->ai_addr) && !o->open && !(o->token_file && o->tls_cert))) {
    snprintf(why, cap, "--listen=%s: %s", o->listen, at ? "others reach that. Give --token-file, --tls-cert and --tls-key, or --open to "
             "serve everybody" : "want an address and a port, such as 127.0.0.1:9777, [::1]:9777 or localhost:9777");
    fine = false;
  }
  if (fine && o->token_file) fine = (s->token = text_of("token-file", o->token_file, true, why, cap));
  if (fine && o->tls_cert) fine = (cert = text_of("tls-cert", o->tls_cert, false, why, cap)) &&
                                  (key = text_of("tls-key", o->tls_key, true, why, cap));
  if (fine) {
    if (s->token) s->token[strcspn(s->token, "\r\n")] = 0;
    errno = 0;
    s->mhd = start(s, before && strcmp(before->listen, o->listen) == 0 ? before : NULL, at, cert, key);
    snprintf(why, cap, "--listen=%s%s: %s", o->listen, cert ? ", --tls-cert, --tls-key" : "",
             errno && (errno != EINVAL || !cert) ? strerror(errno) : "want a certificate and its key in PEM");
  }
  if (at) freeaddrinfo(at);
  if (key) explicit_bzero(key, strlen(key));
  free(cert);
  free(key);
  if (!s || !s->mhd) return s ? ni_serve_close(s) : (void)0, -EINVAL;
  snprintf(s->url, sizeof s->url, "http%s://%.*s:%u", o->tls_cert ? "s" : "", (int)(strrchr(s->listen, ':') - s->listen), s->listen,
           MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_BIND_PORT)->port);
  if (before) ni_serve_close(before);
  *out = s;
  return 0;
}

const char *ni_serve_url(const struct ni_serve *s) { return s->url; }
int ni_serve_fd(const struct ni_serve *s) { return MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd; }

void ni_serve_close(struct ni_serve *s) {
  if (s->mhd) MHD_stop_daemon(s->mhd);
  for (int i = 0; i < NI_SERVE_WHATS; i++)
    if (s->made[i]) MHD_destroy_response(s->made[i]);
  if (s->token) explicit_bzero(s->token, strlen(s->token));
  free(s->token);
  free(s->listen);
  free(s);
}
