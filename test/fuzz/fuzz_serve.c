/*
 * HTTP of agent and head over a real connection: any bytes, in pieces, from a client that then stops sending.
 * The daemon must answer, end or wait, and an honest request behind them must be answered.
 */
#include <errno.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/http/http.h"

static void give(void *arg, const struct ni_http_request *q, struct ni_http_answer *a) {
  (void)arg;
  if (strlen(q->body) > q->len)
    abort();
  a->status = 200, a->type = "text/plain", a->shared = *q->path == '/',
  a->stream = strcmp(q->path, "/e") == 0;
  if (*q->method == 'P')
    a->body = strdup(q->body), a->len = strlen(q->body);
  else if (strcmp(q->path, "/n") == 0)
    a->status = 503, a->why = "not yet";
}

static int reach(const struct ni_http *s) {
  struct sockaddr_in at = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)atoi(strrchr(ni_http_url(s), ':') + 1))};
  inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
  /* No port stays behind for a minute: there are fewer than inputs. */
  const struct linger gone = {.l_onoff = 1};
  for (;;) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &gone, sizeof gone) != 0)
      abort();
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
      return fd;
    /* libFuzzer's own alarm interrupts, too. */
    if (errno != EINTR && errno != EADDRNOTAVAIL)
      perror("connect"), abort();
    if (errno == EADDRNOTAVAIL)
      usleep(100000);
    close(fd);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ni_http *s;
  static const char honest[] = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  static const char *const origin[] = {"http://o", NULL};
  const struct ni_http_options o = {
      .listen = "127.0.0.1:0", .posts = true, .connections = 64, .origin = origin};
  uint64_t answered = 0, refused = 0;
  char why[256], answer[4096] = "";
  ssize_t n = -1;
  if (!s && ni_http_open(&s, &o, give, NULL, why, sizeof why) != 0)
    abort();
  int fd = reach(s);
  for (size_t at = 0, piece; at < size; at += piece) {
    piece = 1 + data[at] * 16 < size - at ? (size_t)1 + data[at] * 16 : size - at;
    if (send(fd, data + at, piece, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      break;
    ni_http_turn(s, &answered, &refused);
  }
  ni_http_event(s, "data: a\n\n");
  shutdown(fd, SHUT_WR);
  ni_http_turn(s, &answered, &refused);
  int other = reach(s);
  if (send(other, honest, sizeof honest - 1, MSG_NOSIGNAL) < 0)
    abort();
  for (int i = 0; i < 1000 && (n = recv(other, answer, sizeof answer - 1, MSG_DONTWAIT)) < 0; i++)
    ni_http_turn(s, &answered, &refused);
  if (n <= 0 || strncmp(answer, "HTTP/1.1 200", 12) != 0)
    abort();
  while (recv(fd, answer, sizeof answer, MSG_DONTWAIT) > 0)
    continue;
  close(fd);
  close(other);
  ni_http_turn(s, &answered, &refused);
  return 0;
}
