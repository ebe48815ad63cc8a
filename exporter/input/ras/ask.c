/* One question to RAS over TCP, with one deadline for all of it. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/input/parse/parse.h"
#include "exporter/input/whole.h"
#include "ras.h"

#define FIRST_ROOM 65536

struct talk {
  int fd;
  uint64_t until_ns; /* CLOCK_MONOTONIC */
  unsigned seconds;
  const char *at; /* "localhost:28028", for messages */
  char *why;
  size_t cap;
  char line[256]; /* the newest answer to a command, without its end */
};

bool ni_ras_is_answer(const char *path) {
  static const char first[] = "\"nccl_version\"", second[] = "\"cuda_runtime_version\"", blank[] = " \t\r\n";
  struct stat st;
  char why[256];
  size_t n;
  if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
    return false;
  char *head = ni_read_whole(path, 256, &n, why, sizeof why);
  if (!head)
    return false;
  const char *p = head + strspn(head, blank);
  if (*p == '{')
    p++;
  p += strspn(p, blank);
  const bool is_answer = strncmp(p, first, sizeof first - 1) == 0 && strstr(p, second);
  free(head);
  return is_answer;
}

bool ni_ras_is_file(const char *where) { return strchr(where, '/') || access(where, F_OK) == 0; }

static bool refuse_answer(struct talk *t, const char *what) {
  snprintf(t->why, t->cap, "%s: %s", t->at, what);
  return false;
}

static bool report_timeout(struct talk *t) {
  snprintf(t->why, t->cap,
           "%s: no whole answer within %u s (RAS itself waits 5 to 10 s for a process that does not answer): "
           "--ras-timeout allows more",
           t->at, t->seconds);
  return false;
}

/*
 * Waits until the connection can be read or written. false: the deadline is over, or it is broken: why says
 * it.
 */
static bool wait_until(struct talk *t, short events) {
  for (;;) {
    uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
    struct pollfd p = {.fd = t->fd, .events = events};
    if (now >= t->until_ns)
      return report_timeout(t);
    int n = poll(&p, 1, (int)((t->until_ns - now) / 1000000u) + 1);
    if (n > 0)
      return true;
    if (n < 0 && errno != EINTR)
      return refuse_answer(t, strerror(errno));
  }
}

/* Names are looked up by the C library, which has limits of its own. */
static bool connect_to(struct talk *t, const char *host, const char *port) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *all = NULL;
  int e = getaddrinfo(host, port, &hints, &all), error = ECONNREFUSED;
  if (e) {
    snprintf(t->why, t->cap, "%s: %s, and there is no file %s", t->at, gai_strerror(e), host);
    return false;
  }
  for (struct addrinfo *a = all; a && t->fd < 0; a = a->ai_next) {
    socklen_t size = sizeof error;
    t->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    error = t->fd < 0 || (connect(t->fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) ? errno : 0;
    if (!error && !wait_until(t, POLLOUT)) {
      freeaddrinfo(all);
      return false;
    }
    if (!error && getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
      error = errno;
    if (!error)
      continue;
    if (t->fd >= 0)
      close(t->fd);
    t->fd = -1;
  }
  freeaddrinfo(all);
  if (t->fd >= 0)
    return true;
  snprintf(t->why, t->cap,
           "%s: %s: no RAS answers there. It runs in each process of a job with NCCL 2.24 or later, on the "
           "nodes of the job, unless NCCL_RAS_ENABLE=0; NCCL_RAS_ADDR says where it listens",
           t->at, strerror(error));
  return false;
}

static bool write_all(struct talk *t, const char *text) {
  for (size_t n = strlen(text); n;) {
    ssize_t put = send(t->fd, text, n, MSG_NOSIGNAL);
    if (put > 0) {
      text += put;
      n -= (size_t)put;
    } else if (put < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!wait_until(t, POLLOUT))
        return false;
    } else
      return refuse_answer(t, strerror(errno));
  }
  return true;
}

/* Bytes; 0: the end; below 0: why says it. */
static ssize_t read_some(struct talk *t, char *to, size_t most) {
  for (;;) {
    if (!wait_until(t, POLLIN))
      return -1;
    ssize_t n = recv(t->fd, to, most, 0);
    if (n >= 0)
      return n;
    if (errno != EAGAIN && errno != EINTR) {
      (void)refuse_answer(t, strerror(errno));
      return -1;
    }
  }
}

/* A command, and the line that answers it, byte by byte: what is behind it is the next answer's. */
static bool send_command(struct talk *t, const char *text) {
  size_t n = 0;
  if (!write_all(t, text))
    return false;
  for (char c; n < sizeof t->line - 1; t->line[n++] = c) {
    ssize_t got = read_some(t, &c, 1);
    if (got < 0)
      return false;
    if (got == 0)
      return refuse_answer(t,
                           "the connection was closed before there was an answer: another program's port?");
    if (c == '\n')
      break;
  }
  if (n && t->line[n - 1] == '\r')
    n--;
  t->line[n] = 0;
  return true;
}

static bool negotiate_protocol(struct talk *t) {
  char said[64], why[256];
  if (!send_command(t, "CLIENT PROTOCOL 2\n"))
    return false;
  if (strncasecmp(t->line, "SERVER PROTOCOL ", 16) != 0) {
    snprintf(why, sizeof why, "what answers there is not RAS: \"%s\"",
             ni_safe_text(t->line, said, sizeof said));
    return refuse_answer(t, why);
  }
  if (!send_command(t, "SET FORMAT json\n"))
    return false;
  if (strcasecmp(t->line, "OK") == 0)
    return true;
  snprintf(
      why, sizeof why,
      "its NCCL is older than 2.28.7, whose RAS has no JSON (it answers \"%s\"): `ncclras` shows its text",
      ni_safe_text(t->line, said, sizeof said));
  return refuse_answer(t, why);
}

/* All up to the end of the connection. */
static char *read_answer(struct talk *t, size_t *len) {
  char *text = NULL;
  size_t room = 0;
  ssize_t got = 1;
  for (*len = 0; got > 0 && *len <= NI_RAS_BYTES; *len += got > 0 ? (size_t)got : 0) {
    if (!ni_array_room(text, *len + FIRST_ROOM + NI_PARSE_PADDING, room))
      got = refuse_answer(t, strerror(ENOMEM)) - 1;
    else
      got = read_some(t, text + *len, room - NI_PARSE_PADDING - *len);
  }
  if (got >= 0 && *len > NI_RAS_BYTES)
    got = refuse_answer(t, "its answer does not end: no answer of RAS is longer than 128 MiB") - 1;
  if (got >= 0 && *len == 0)
    got = refuse_answer(t, "the connection was closed without an answer") - 1;
  if (got >= 0) {
    memset(text + *len, 0, NI_PARSE_PADDING);
    return text;
  }
  free(text);
  return NULL;
}

static char *read_file(const char *path, size_t *len, char *why, size_t cap) {
  char said[200];
  char *text = ni_read_whole(path, NI_RAS_BYTES + 1, len, said, sizeof said);
  if (!text)
    snprintf(why, cap, "%s: %s", path, said);
  return text;
}

/* HOST:PORT, HOST, [ADDRESS]:PORT, an address with colons of its own, :PORT. false: too long. */
static bool split_address(const char *where, char host[256], char port[16]) {
  const char *colon = strrchr(where, ':'), *end = where + strlen(where);
  bool bracket = *where == '[', one = colon && (bracket ? colon[-1] == ']' : strchr(where, ':') == colon);
  const char *host_end = one ? colon : end;
  if (bracket && host_end > where + 1 && host_end[-1] == ']') {
    where++;
    host_end--;
  }
  if (host_end - where >= 256 || (one && end - colon > 15))
    return false;
  snprintf(host, 256, "%.*s", (int)(host_end - where), where);
  snprintf(port, 16, "%s", one && colon[1] ? colon + 1 : NI_RAS_PORT);
  if (!*host)
    strcpy(host, "localhost");
  return true;
}

char *ni_ras_ask(const char *where, unsigned seconds, size_t *len, char *why, size_t cap) {
  char host[256], port[16], at[280], *text = NULL;
  if (ni_ras_is_file(where))
    return read_file(where, len, why, cap);
  if (!split_address(where, host, port)) {
    snprintf(why, cap, "--ras: want HOST:PORT or a file");
    return NULL;
  }
  snprintf(at, sizeof at, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
  struct talk t = {.fd = -1,
                   .until_ns = ni_now_ns(CLOCK_MONOTONIC) + seconds * UINT64_C(1000000000),
                   .seconds = seconds,
                   .at = at,
                   .why = why,
                   .cap = cap};
  if (connect_to(&t, host, port) && negotiate_protocol(&t) && write_all(&t, "STATUS\n"))
    text = read_answer(&t, len);
  if (t.fd >= 0)
    close(t.fd);
  return text;
}
