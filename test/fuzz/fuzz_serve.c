/*
 * The agent's HTTP over a real connection: any bytes, in pieces, from a client that then stops sending. The daemon must answer, end
 * or wait, and an honest request behind them must be answered.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/agent/serve.h"

static bool make(void *arg, enum ni_serve_what what, FILE *f) {
  (void)arg;
  return what != NI_SERVE_NOW && fputs("ok\n", f) >= 0;
}

static int reach(const struct ni_serve *s) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(ni_serve_url(s), ':') + 1))};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) abort();
  return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ni_serve *s;
  static const char honest[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  const struct ni_agent_options o = {.listen = "127.0.0.1:0"};
  uint64_t scrapes = 0, refused = 0;
  char why[256], answer[4096] = "";
  ssize_t n = -1;
  if (!s && ni_serve_open(&s, &o, make, NULL, why, sizeof why) != 0) abort();
  int fd = reach(s);
  for (size_t at = 0, piece; at < size; at += piece) {
    piece = 1 + data[at] * 16 < size - at ? (size_t)1 + data[at] * 16 : size - at;
    if (send(fd, data + at, piece, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
    ni_serve_turn(s, &scrapes, &refused);
  }
  shutdown(fd, SHUT_WR);
  ni_serve_turn(s, &scrapes, &refused);
  int other = reach(s);
  if (send(other, honest, sizeof honest - 1, MSG_NOSIGNAL) < 0) abort();
  for (int i = 0; i < 1000 && (n = recv(other, answer, sizeof answer - 1, MSG_DONTWAIT)) < 0; i++) ni_serve_turn(s, &scrapes, &refused);
  if (n <= 0 || strncmp(answer, "HTTP/1.1 200", 12) != 0) abort();
  while (recv(fd, answer, sizeof answer, MSG_DONTWAIT) > 0) continue;
  close(fd);
  close(other);
  ni_serve_turn(s, &scrapes, &refused);
  return 0;
}
