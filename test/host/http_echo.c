/*
 * A server of exporter/http/http.h alone, for test/lib/http_server.py:
 *
 *   http_echo ADDRESS TOKEN_FILE|- ORIGIN|-     says its URL; on standard input: "event BYTES" (so many to
 *                                               all streams), "streams" and "counts" (says how many); it
 *                                               stops at the end
 *
 * POST /echo: the body, where its type is JSON. GET /flags: loopback, trusted. /count: how often it was made.
 * /events: a stream. /large: 4 MB. /page: without the token.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/http/http.h"

static struct ni_http *http;

static void text(struct ni_http_answer *a, const char *type, const char *body, size_t len) {
  a->status = 200;
  a->type = type;
  a->len = len;
  if ((a->body = malloc(len + 1)))
    memcpy(a->body, body, len + 1);
}

static void answer(void *arg, const struct ni_http_request *q, struct ni_http_answer *a) {
  static char large[(4 << 20) + 1];
  unsigned *made = arg;
  char said[64];
  bool post = strcmp(q->method, "POST") == 0;
  if (strcmp(q->path, "/echo") == 0 && !post) {
    a->status = 405;
    a->why = "POST alone";
    a->header = "Allow";
    a->header_value = "POST";
  } else if (post && (!q->content_type || strcmp(q->content_type, "application/json") != 0)) {
    a->status = 422;
    a->why = "JSON is wanted";
  } else if (post) {
    text(a, "application/json", q->body, q->len);
    ni_http_event(http, "data: posted\n\n");
  } else if (strcmp(q->path, "/peer") == 0)
    text(a, "text/plain", q->peer, strlen(q->peer));
  else if (strcmp(q->path, "/count") == 0) {
    snprintf(said, sizeof said, "%u", ++*made);
    text(a, "text/plain", said, strlen(said));
    a->shared = a->counted = true;
  } else if (strcmp(q->path, "/events") == 0) {
    text(a, NULL, "data: hello\n\n", 13);
    a->stream = true;
  } else if (strcmp(q->path, "/large") == 0)
    text(a, "text/plain", memset(large, 'l', sizeof large - 1), sizeof large - 1);
  else if (strcmp(q->path, "/page") == 0)
    text(a, "text/html", "page", 4);
  else {
    a->status = 404;
    a->why = "Not Found";
  }
}

static void event(size_t n) {
  char *t = malloc(n + 16);
  if (!t)
    abort();
  memset(t, 'x', n + 16);
  memcpy(t, "data: ", 6);
  memcpy(t + 6 + n, "\n\n", 3);
  ni_http_event(http, t);
  free(t);
}

int main(int argc, char **argv) {
  unsigned made = 0;
  uint64_t answered = 0, refused = 0;
  char why[512], line[64];
  if (argc != 4)
    return 2;
  const char *origin[] = {"http://first.example", argv[3], NULL};
  const struct ni_http_options o = {.listen = argv[1],
                                    .token_file = *argv[2] == '-' ? NULL : argv[2],
                                    .posts = true,
                                    .json = true,
                                    .connections = 64,
                                    .anyone = "/page",
                                    .origin = *argv[3] == '-' ? NULL : origin,
                                    .open = true};
  if (ni_http_open(&http, &o, answer, &made, why, sizeof why) != 0) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  setvbuf(stdin, NULL, _IONBF, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("%s\n", ni_http_url(http));
  for (;;) {
    struct pollfd p[] = {{.fd = ni_http_fd(http), .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    if (poll(p, 2, 1000) < 0)
      return 1;
    if (!p[1].revents) {
      ni_http_turn(http, &answered, &refused);
      continue;
    }
    if (!fgets(line, sizeof line, stdin))
      break;
    if (strncmp(line, "event ", 6) == 0)
      event(strtoul(line + 6, NULL, 10));
    else if (strcmp(line, "streams\n") == 0)
      printf("%zu\n", ni_http_streams(http));
    else if (strcmp(line, "counts\n") == 0)
      printf("%" PRIu64 " %" PRIu64 "\n", answered, refused);
    ni_http_turn(http, &answered, &refused);
  }
  ni_http_close(http);
  return 0;
}
