/*
 * A server and a client of exporter/rpc/rpc.h for test/lib/rpc.py, and what messages.h makes of bytes.
 *
 *   rpc_echo serve [TOKEN CERT KEY CA]   prints the port; /echo.Echo/Each answers each message, Sum (unary or
 *                                        a stream) the count and bytes at the end, Pour sends messages of 64
 *                                        KiB until it is cut; "-": not given; CA: of clients
 *   rpc_echo call HOST:PORT PATH N SIZE [TOKEN CA]   sends N messages; prints what comes, and how it ended
 *   rpc_echo decode KIND                 standard input decoded and encoded again to standard output; exit 3:
 *                                        refused
 * TOKEN, CERT: texts; files as @PATH. All calls but /open.* want the token. Ends when standard input does.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/rpc/messages.h"
#include "exporter/rpc/rpc.h"

enum { POUR = 64 << 10, MANY = 6 << 20 };
struct count {
  uint64_t messages, bytes;
  bool each, pour, half;
};
static uint64_t calls, ended;
static bool over;
static char bytes[MANY];

static enum ni_rpc_status begin(void *arg, struct ni_rpc_call *c, const char *path,
                                const struct ni_rpc_peer *peer, void **data) {
  struct count *n = calloc(1, sizeof *n);
  (void)arg;
  *data = n;
  calls++;
  n->each = strcmp(path, "/echo.Echo/Each") == 0;
  n->pour = strcmp(path, "/echo.Echo/Pour") == 0;
  bool known =
      n->each || n->pour || strcmp(path, "/echo.Echo/Sum") == 0 || strcmp(path, "/open.Echo/Sum") == 0;
  enum ni_rpc_status s = !known                         ? NI_RPC_UNIMPLEMENTED
      : peer->trusted || strncmp(path, "/open", 5) == 0 ? NI_RPC_OK
                                                        : NI_RPC_UNAUTHENTICATED;
  if (s != NI_RPC_OK) {
    free(n);
    calls--;
    return s;
  }
  while (n->pour && ni_rpc_unsent(c) < 1 << 20)
    ni_rpc_send(c, bytes, POUR);
  return s;
}

static void message(void *arg, struct ni_rpc_call *c, void *data, const void *m, size_t len) {
  struct count *n = data;
  (void)arg;
  n->messages++;
  n->bytes += len;
  if (n->each)
    ni_rpc_send(c, m, len);
  if (n->pour)
    while (ni_rpc_send(c, bytes, POUR) == 0)
      continue; /* until it is cut for that */
}

static void end(void *arg, struct ni_rpc_call *c, void *data, bool half, enum ni_rpc_status status,
                const char *text) {
  struct count *n = data;
  char said[64];
  (void)arg;
  (void)status;
  (void)text;
  if (half) {
    int len = snprintf(said, sizeof said, "%" PRIu64 " %" PRIu64, n->messages, n->bytes);
    if (!n->each)
      ni_rpc_send(c, said, (size_t)len);
    ni_rpc_finish(c, n->messages == 13 ? NI_RPC_NOT_FOUND : NI_RPC_OK,
                  n->messages == 13 ? "13 % of \xc3\xa4" : "");
    return;
  }
  ended++;
  free(n);
}

static void answer(void *arg, struct ni_rpc_call *c, void *data, const void *m, size_t len) {
  (void)arg;
  (void)c;
  (void)data;
  if (len < 100)
    printf("message %.*s\n", (int)len, (const char *)m);
  else
    printf("bytes %zu\n", len);
}

static void finished(void *arg, struct ni_rpc_call *c, void *data, bool half, enum ni_rpc_status status,
                     const char *text) {
  (void)arg;
  (void)c;
  (void)data;
  (void)half;
  printf("status %d %s\n", (int)status, text);
  over = true;
}

static const char *given(int argc, char **argv, int i) {
  if (i >= argc || strcmp(argv[i], "-") == 0)
    return NULL;
  if (*argv[i] != '@')
    return argv[i];
  static char files[4][1 << 16];
  static int n;
  char *text = files[n++ % 4];
  int fd = open(argv[i] + 1, O_RDONLY);
  if (read(fd, text, sizeof *files - 1) < 0)
    exit(2);
  close(fd);
  return text;
}

static int serve(const struct ni_rpc_options *o) {
  const struct ni_rpc_handler h = {begin, message, end};
  struct ni_rpc *r;
  char why[256], c;
  if (ni_rpc_listen(&r, "127.0.0.1:0", o, &h, NULL, why, sizeof why) != 0) {
    printf("refused %s\n", why);
    return 1;
  }
  printf("%u\n", ni_rpc_port(r));
  fflush(stdout);
  for (struct pollfd p[2] = {{ni_rpc_fd(r), POLLIN, 0}, {0, POLLIN, 0}}; poll(p, 2, 1000) >= 0;) {
    ni_rpc_turn(r);
    if (p[1].revents && read(0, &c, 1) == 0)
      break;
    if (p[1].revents) {
      printf("%" PRIu64 " %" PRIu64 " %.3f\n", calls, ended, (double)clock() / CLOCKS_PER_SEC);
      fflush(stdout);
    }
  }
  ni_rpc_close(r);
  return calls == ended ? 0 : (printf("%" PRIu64 " calls, %" PRIu64 " ended\n", calls, ended), 1);
}

static int call(const char *at, const char *path, int n, size_t size, const struct ni_rpc_options *o) {
  const struct ni_rpc_handler h = {NULL, answer, finished};
  struct ni_rpc *r;
  char why[256];
  if (ni_rpc_connect(&r, at, o, &h, NULL, why, sizeof why) != 0) {
    printf("refused %s\n", why);
    return 1;
  }
  struct ni_rpc_call *c = ni_rpc_begin(r, path, NULL);
  uint64_t until = ni_now_ns(CLOCK_MONOTONIC) + UINT64_C(60000000000);
  for (struct pollfd p = {ni_rpc_fd(r), POLLIN, 0}; !over && ni_now_ns(CLOCK_MONOTONIC) < until;
       poll(&p, 1, 1000)) {
    while (n > 0 && ni_rpc_unsent(c) < 1 << 20 && ni_rpc_send(c, bytes, size) == 0)
      if (--n == 0)
        ni_rpc_finish(c, NI_RPC_OK, "");
    ni_rpc_turn(r);
    if (ni_rpc_broken(r))
      break;
  }
  if (ni_rpc_broken(r))
    printf("broken %s\n", ni_rpc_broken(r));
  ni_rpc_close(r);
  return 0;
}

/* Decoded and encoded again: what went through is what Python decodes. */
static bool again(const char *kind, const void *in, size_t len, struct ni_pb_writer *w) {
  char host[NI_HOST_MAX];
  struct ni_sample *s = NULL;
  struct ni_status st;
  struct ni_reply r;
  struct ni_from_agent a = {0};
  struct ni_from_head f;
  bool given_, sound = false;
  if (strcmp(kind, "initial") == 0 && (sound = ni_initial_decode(in, len, host, &s)))
    ni_initial_encode(w, host, s);
  if (strcmp(kind, "update") == 0 && (sound = ni_update_decode(in, len, host, &s)))
    ni_update_encode(w, host, s);
  if (strcmp(kind, "node") == 0 && (sound = ni_update_decode(in, len, host, &s)))
    ni_node_encode(w, 4, host, s);
  if (strcmp(kind, "reply") == 0 && (sound = ni_reply_decode(in, len, &r)))
    ni_reply_encode(w, &r);
  if (strcmp(kind, "name") == 0 && (sound = ni_name_decode(in, len, host, &given_)))
    ni_name_encode(w, host);
  if (strcmp(kind, "enable") == 0 && (sound = ni_enable_decode(in, len, &given_)))
    ni_pb_put_u64(w, 1, given_);
  if (strcmp(kind, "head") == 0 && (sound = ni_head_decode(in, len, &f)))
    ni_head_encode(w, &f);
  if (strcmp(kind, "status") == 0 && (sound = ni_status_decode(in, len, &st))) {
    const char *const clients[] = {"a_ipv4:1.2.3.4:5", "b"};
    st.output = "x.json";
    st.client = clients;
    st.n_clients = st.n_clients < 2 ? st.n_clients : 2;
    ni_status_encode(w, &st);
  }
  if (strcmp(kind, "agent") == 0 && (sound = ni_agent_decode(in, len, &a))) {
    if (a.hello)
      ni_hello_encode(w, a.hello);
    else
      ni_sample_encode(w, a.sample, a.sent_ns);
  }
  free(s);
  free(a.hello);
  free(a.sample);
  return sound && !w->failed;
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc > 1 && strcmp(argv[1], "serve") == 0) {
    const struct ni_rpc_options o = {given(argc, argv, 2), given(argc, argv, 3), given(argc, argv, 4),
                                     given(argc, argv, 5), argc > 5};
    return serve(&o);
  }
  if (argc > 5 && strcmp(argv[1], "call") == 0) {
    const struct ni_rpc_options o = {.token = given(argc, argv, 6), .ca = given(argc, argv, 7)};
    return call(argv[2], argv[3], atoi(argv[4]), (size_t)atol(argv[5]), &o);
  }
  if (argc > 2 && strcmp(argv[1], "decode") == 0) {
    struct ni_pb_writer w = {0};
    if (!again(argv[2], bytes, fread(bytes, 1, sizeof bytes, stdin), &w))
      return 3;
    return fwrite(w.bytes, 1, w.n, stdout) == w.n ? ni_pb_free(&w), 0 : 1;
  }
  return 2;
}
