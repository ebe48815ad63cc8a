/*
 * HTTP/1.1 for the agent and the head, by libmicrohttpd inside the owner's epoll loop, no thread. No request makes it read a path: what
 * there is to answer is made by the owner.
 *
 * Bounds: 64 connections (the head: 256), 16 of one address beyond this machine; 16 KiB of headers, 64 KiB of body, where the owner takes
 * bodies at all; 10 s of silence; 20 s for a request and its answer, 1 s while many are open. TLS and a token as the options say;
 * without them only loopback is served, unless `open`. CORS for the listed origins alone, with preflight.
 */
#ifndef NI_HTTP_H
#define NI_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_http;
struct ni_http_options {
  const char *listen;                 /* "127.0.0.1:9777", "[::1]:9777", "localhost:9777" */
  const char *token_file, *tls_cert, *tls_key;
  bool open;                          /* listens beyond loopback without token or TLS */
  unsigned connections;
  const char *const *origin;          /* CORS: such as "http://localhost:3000"; NULL ends the list; NULL: none */
};

struct ni_http_request {
  const char *method, *path;          /* without the query */
  const char *accept, *content_type;  /* NULL: not given */
  const char *body;                   /* ends with a NUL beyond len */
  size_t len;
  bool loopback, trusted;             /* trusted: it gave the token, or there is none and it comes from loopback */
};
struct ni_http_answer {
  unsigned status;
  char *body;                         /* for free(), by http.c */
  size_t len;
  const char *type;                   /* of content; a constant */
  const char *header, *header_value;  /* one more; NULL: none; value until the call returns */
  bool shared;                        /* may be given to whoever asks the same within 100 ms (GET) */
  bool stream;                        /* server-sent events: stays open; what ni_http_event() is given goes to it */
};
/* Fills the answer. Wrong tokens never come here: they were answered with 401, but where `anyone` says yes. Called in ni_http_turn(). */
typedef void ni_http_handler(void *arg, const struct ni_http_request *q, struct ni_http_answer *a);

/*
 * *out: NULL, or one whose place the new one takes, with its socket where the address is the same; it stays where that fails. Files are
 * read now and not again. methods: "GET, HEAD" or "GET, HEAD, POST". 0, or -errno with a sentence in why that names the option at fault.
 */
int ni_http_open(struct ni_http **out, const struct ni_http_options *o, const char *methods, ni_http_handler *handler, void *arg,
                 char *why, size_t cap);
const char *ni_http_url(const struct ni_http *h);
int ni_http_fd(const struct ni_http *h);
/* When the descriptor has something, and at least each second. Adds requests that were answered and refused since. */
void ni_http_turn(struct ni_http *h, uint64_t *answered, uint64_t *refused);
/* To all streams. One that is behind by more than 1 MiB is cut: its reader comes again. text: "event: frame\ndata: {...}\n\n" */
void ni_http_event(struct ni_http *h, const char *text);
size_t ni_http_streams(const struct ni_http *h);
void ni_http_close(struct ni_http *h);

/* Shared with what else listens (rpc): a PEM file or token; for free(); NULL with a sentence in why. */
char *ni_http_secret(const char *option, const char *path, bool secret, char *why, size_t cap);

#endif
