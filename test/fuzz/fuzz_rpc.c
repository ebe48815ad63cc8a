/*
 * The head's gRPC over a real connection: any bytes, in pieces, behind the preface of HTTP/2 where the first
 * byte is odd. The server must answer, end or wait; every call that began must end; and an honest call beside
 * it must be answered.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/rpc/rpc.h"

static int open_calls, answers;

static enum ni_rpc_status begin(void *arg, struct ni_rpc_call *c, const char *path,
                                const struct ni_rpc_peer *peer, void **data) {
  (void)arg, (void)c, (void)peer, (void)data;
  if (strcmp(path, "/no") == 0)
    return NI_RPC_UNIMPLEMENTED;
  open_calls++;
  return NI_RPC_OK;
}

static void message(void *arg, struct ni_rpc_call *c, void *data, const void *bytes, size_t len) {
  (void)arg, (void)data;
  ni_rpc_send(c, bytes, len);
}

static void end(void *arg, struct ni_rpc_call *c, void *data, bool half, enum ni_rpc_status status,
                const char *text) {
  (void)arg, (void)data, (void)status, (void)text;
  if (half)
    ni_rpc_finish(c, NI_RPC_OK, "");
  else
    open_calls--;
}

static void answer(void *arg, struct ni_rpc_call *c, void *data, const void *bytes, size_t len) {
  (void)arg, (void)c, (void)data;
  if (len != 3 || memcmp(bytes, "abc", 3) != 0)
    abort();
}

static void answered(void *arg, struct ni_rpc_call *c, void *data, bool half, enum ni_rpc_status status,
                     const char *text) {
  (void)arg, (void)c, (void)data, (void)half, (void)text;
  if (status == NI_RPC_OK)
    answers++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ni_rpc *server, *client;
  static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
  const struct ni_rpc_options none = {0};
  char why[256], at[32];
  if (!server &&
      ni_rpc_listen(&server, "127.0.0.1:0", &none, &(struct ni_rpc_handler){begin, message, end}, NULL, why,
                    sizeof why) != 0)
    abort();
  snprintf(at, sizeof at, "127.0.0.1:%u", ni_rpc_port(server));
  if (!client &&
      ni_rpc_connect(&client, at, &none, &(struct ni_rpc_handler){NULL, answer, answered}, NULL, why,
                     sizeof why) != 0)
    abort();
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons(ni_rpc_port(server)),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM, 0), before = answers;
  if (fd < 0)
    abort();
  if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
    perror("connect");
    /* the fuzzer's clock; no port is left on this machine */
    if (errno != EINTR && errno != EADDRNOTAVAIL)
      abort();
    close(fd);
    return 0;
  }
  if (size && data[0] & 1)
    send(fd, preface, sizeof preface, MSG_NOSIGNAL);
  for (size_t i = 1, piece; i < size; i += piece) {
    piece = 1 + data[i] * 16 < size - i ? (size_t)1 + data[i] * 16 : size - i;
    if (send(fd, data + i, piece, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      break;
    ni_rpc_turn(server);
  }
  struct ni_rpc_call *c = ni_rpc_begin(client, "/yes", NULL);
  if (!c || ni_rpc_send(c, "abc", 3) != 0)
    abort();
  ni_rpc_finish(c, NI_RPC_OK, "");
  for (int i = 0; i < 10000 && answers == before; i++)
    ni_rpc_turn(client), ni_rpc_turn(server);
  if (answers != before + 1)
    abort();
  /* no port waits for its time */
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
  close(fd);
  for (int i = 0; i < 10000 && open_calls; i++)
    ni_rpc_turn(server), ni_rpc_turn(client);
  if (open_calls)
    abort();
  return 0;
}
