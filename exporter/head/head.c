#include "head.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api.h"
#include "exporter/base/process/background.h"
#include "exporter/base/text/safe_text.h"
#include "log.h"
#include "service.h"

#define SECOND INT64_C(1000000000)

struct head {
  struct ni_core core;
  struct ni_service *service;
  struct ni_api *api;
  bool background;
  int epoll, signals;
};

static bool watch(struct head *h, int fd) {
  struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
  return fd >= 0 && epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

/* A client is a descriptor. */
static void want_descriptors(void) {
  struct rlimit l;
  if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
  }
}

/* A signal ends us, or somebody who may. */
static bool asked_to_end(struct head *h) {
  struct signalfd_siginfo s;
  return read(h->signals, &s, sizeof s) == sizeof s || h->core.ended;
}

static void loop(struct head *h) {
  struct epoll_event event[32];
  int64_t repeated = 0;
  while (!asked_to_end(h)) {
    int64_t due = ni_core_turn(&h->core), wait = due - ni_core_now(&h->core);
    if (h->service && (h->core.acknowledge || h->core.now_ns - repeated > SECOND)) {
      ni_service_acknowledge(h->service);
      repeated = h->core.now_ns;
    }
    h->core.acknowledge = false;
    if (h->service)
      ni_service_turn(h->service);
    if (h->api)
      ni_api_turn(h->api);
    if (h->background)
      ni_background_bound(ni_store_dir(h->core.store), "head.log");
    if (h->core.ended)
      break;
    if (wait > SECOND)
      wait = SECOND;
    (void)epoll_wait(h->epoll, event, 32, wait < 0 ? 0 : (int)((wait + 999999) / 1000000));
  }
  if (h->service)
    ni_service_turn(h->service); /* the answer to who asked */
  if (h->api)
    ni_api_turn(h->api);
}

int ni_head_main(const struct ni_head_options *o, const char *name) {
  struct head h = {.background = o->background, .epoll = epoll_create1(EPOLL_CLOEXEC)};
  char why[512];
  sigset_t set;
  int code = NI_EXIT_COULD_NOT_RUN;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  signal(SIGPIPE, SIG_IGN);
  int waiting = o->background ? ni_background(name) : -1;
  sigprocmask(SIG_BLOCK, &set, NULL);
  want_descriptors();
  h.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (h.epoll < 0 || !watch(&h, h.signals)) {
    ni_say(stderr, "%s: %s\n", name, strerror(errno));
    return code;
  }
  if (ni_core_open(&h.core, o, why, sizeof why) < 0) {
    ni_say(stderr, "%s: %s\n", name, why);
    return code;
  }
  int e = ni_service_open(&h.service, &h.core, o, why, sizeof why);
  if (e == -ENOTSUP) {
    ni_say(stderr, "%s: no gRPC: %s\n", name, why);
    e = 0;
  }
  if (e == 0 && o->http_port)
    e = ni_api_open(&h.api, &h.core, o, why, sizeof why);
  if (e == 0) {
    watch(&h, ni_store_fd(h.core.store));
    if (h.service)
      watch(&h, ni_service_fd(h.service));
    if (h.api)
      watch(&h, ni_api_fd(h.api));
    char grpc[320] = "none", line[512];
    if (h.service)
      snprintf(grpc, sizeof grpc, strchr(o->host, ':') ? "[%s]:%u" : "%s:%u", o->host,
               ni_service_port(h.service));
    snprintf(line, sizeof line, "%s: gRPC at %s, HTTP at %s (pid %d)", name, grpc,
             h.api ? ni_api_url(h.api) : "none", (int)getpid());
    if (waiting < 0)
      ni_say(stderr, "%s\n", line);
    else
      ni_background_done(waiting, line, ni_store_dir(h.core.store), "head.log");
    loop(&h);
    ni_head_log("the head ends%s", h.core.ended ? "" : " by a signal");
    code = NI_EXIT_FINE;
  } else {
    ni_say(stderr, "%s: %s\n", name, why);
  }
  if (h.api)
    ni_api_close(h.api);
  if (h.service)
    ni_service_close(h.service);
  ni_core_close(&h.core);
  close(h.signals);
  close(h.epoll);
  return code;
}
