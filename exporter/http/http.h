/*
 * HTTP/1.1 for the agent and the head, by libmicrohttpd inside the owner's epoll loop, no thread. No request
 * makes it read a path: what there is to answer is made by the owner.
 *
 * Bounds: as many connections as the owner says, half of them streams, 16 of one address beyond this machine;
 * 16 KiB of headers, 64 KiB of body, where the owner takes bodies at all; 10 s of silence; 20 s for a request
 * and its answer, 1 s while many are open. TLS and a token as the options say; without them only loopback is
 * served, unless `open`. CORS for the listed origins alone, with preflight. Without a token POST is refused
 * (403) to pages of other sites: a browser here would send for them. Requests that another program on the way
 * may read otherwise are refused (400): two lengths, a length and an encoding, names of headers with a blank,
 * bytes that steer, a NUL in the path. No answer is shown in a frame, or taken for another type than it says.
 */
#ifndef NI_HTTP_H
#define NI_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_http;
struct ni_http_options {
  const char *option; /* what messages call the next one; NULL: --listen */
  const char *listen; /* "127.0.0.1:9777", "[::1]:9777", "localhost:9777" */
  const char *token_file, *tls_cert, *tls_key;
  /* clients need a certificate that one of these (PEM) signed: else 403; wants tls_cert */
  const char *client_ca;
  bool open;  /* listens beyond loopback without token or TLS */
  bool posts; /* takes POST, beside GET and HEAD */
  /* `why` of an answer is shown as {"detail":"..."}, not as a line of text */
  bool json;
  unsigned connections; /* 2 or more */
  /* a path that GET shows without the token, such as a page that asks for it; NULL: none */
  const char *anyone;
  /* CORS: such as "http://localhost:3000"; NULL ends the list; NULL: none */
  const char *const *origin;
}; /* the last two: the owner's, as long as it serves */

struct ni_http_request {
  const char *method, *path; /* without the query; OPTIONS and what is refused never come */
  const char *content_type;  /* NULL: not given */
  const char *body;          /* ends with a NUL beyond len; "" where there is none */
  size_t len;
  bool open_metrics; /* prefers OpenMetrics to Prometheus's text */
  const char *peer;  /* "127.0.0.1", for logs */
  uint64_t asked_ns; /* when the handler was asked first, CLOCK_MONOTONIC */
};
struct ni_http_answer { /* given as zeros */
  unsigned status;
  /* for free(), by http.c; of a stream: what this reader is told first, or NULL */
  char *body;
  size_t len;
  const char *type;                  /* of content; a constant. Not read of streams */
  const char *why;                   /* instead of the three: a constant without quotes */
  const char *header, *header_value; /* one more; NULL: none; constants */
  bool counted;                      /* adds to what ni_http_turn() says was answered */
  /* may be given for 100 ms to whoever gets the same path: not of a body */
  bool shared;
  /* there is none yet: the handler is asked again in the next turn; the rest is not read */
  bool later;
  /* server-sent events: stays open; what ni_http_event() is given goes to it */
  bool stream;
};
/*
 * Fills the answer. Wrong tokens never come here: they were answered with 401, but for `anyone`. Called in
 * ni_http_turn().
 */
typedef void ni_http_handler(void *arg, const struct ni_http_request *q, struct ni_http_answer *a);

/*
 * *out: NULL, or one whose place the new one takes, with its socket where the address is the same; it stays
 * where that fails. Its streams end. Files are read now and not again. 0, or -errno with a sentence in why
 * that names the option at fault.
 */
int ni_http_open(struct ni_http **out, const struct ni_http_options *o, ni_http_handler *handler, void *arg,
                 char *why, size_t cap);
const char *ni_http_url(const struct ni_http *h); /* "http://127.0.0.1:9777" */
int ni_http_fd(const struct ni_http *h);          /* for the owner's epoll */
/*
 * When the descriptor has something, and at least each second. Adds answers that are `counted`, and requests
 * refused (4xx, 5xx).
 */
void ni_http_turn(struct ni_http *h, uint64_t *answered, uint64_t *refused);
/*
 * To all streams, by the handler, or by the loop, which calls ni_http_turn() then. One that is behind by more
 * than 1 MiB is cut: its reader comes again. All are, where memory is short. text: "event: frame\ndata:
 * {...}\n\n"; of any length, copied. Silence is broken by a comment each 15 s.
 */
void ni_http_event(struct ni_http *h, const char *text);
size_t ni_http_streams(const struct ni_http *h);
void ni_http_close(struct ni_http *h);

#endif
