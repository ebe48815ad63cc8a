#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/process/background.h"
#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "exporter/base/process/secret.h"
#include "exporter/http/http.h"
#include "exporter/model/live/checkpoint.h"
#include "exporter/model/live/live_tick.h"
#include "exporter/output/metrics/now.h"
#include "exporter/output/metrics/otlp.h"
#include "exporter/output/metrics/text.h"
#include "hooks.h"
#include "otlp_send.h"
#include "ras_watch.h"
#include "reader/readers.h"
#include "sampler.h"
#include "settings.h"
#include "up_sample.h"
#include "uplink.h"

#define SECOND UINT64_C(1000000000)

struct agent {
  int argc, epoll, timer, signals, dir, lock;
  char **argv, state[PATH_MAX], ring[PATH_MAX + 8], node[256], refused[256], away[256];
  struct ni_settings *set;
  struct ni_live live;
  struct ni_running running, before; /* before: up to 5 s older */
  struct ni_sampler_totals samples;
  struct ni_agent_self self;
  struct ni_hooks hooks;
  struct ni_readers *readers;
  struct ni_sampler *sampler;
  struct ni_http *http;
  struct ni_otlp *otlp;
  struct ni_uplink *uplink;
  struct ni_ras_watch *ras;
  struct ni_up up;
  /* turns: left of NI_AGENT_TURNS; the clocks are ours then */
  uint64_t unix_ns, mono_ns, began_ns, saved_ns, sent_ns, trimmed_ns, turns;
  bool changed, settled, unsaved, ended;
};

#define say(a, format, ...) ni_say(stderr, "%s: " format "\n", (a)->argv[0], ##__VA_ARGS__)

static struct ni_metrics_in collect_figures(struct agent *a) {
  struct ni_agent_self *s = &a->self;
  const struct ni_otlp_totals sent = a->otlp ? ni_otlp_totals(a->otlp) : (struct ni_otlp_totals){0};
  ni_readers_figures(a->readers, s);
  s->samples = a->samples.samples;
  s->samples_missed = a->samples.missed;
  s->samples_lost = a->samples.ring.lost;
  s->ring_bytes = a->samples.ring.bytes;
  s->degraded = a->unsaved || a->samples.ring.degraded;
  s->otlp_sent = sent.sent;
  s->otlp_retried = sent.retried;
  s->otlp_dropped = sent.dropped;
  s->otlp_refused = sent.refused;
  const struct ni_uplink_totals up = a->uplink ? ni_uplink_totals(a->uplink) : (struct ni_uplink_totals){0};
  s->head = a->set->o.head;
  s->head_connected = up.connected;
  s->head_kept = up.kept;
  s->head_skew_ns = up.skew_ns;
  s->head_sent = up.sent;
  s->head_acknowledged = up.acknowledged;
  s->head_lost = up.lost;
  return (struct ni_metrics_in){.live = &a->live,
                                .running = a->sampler ? &a->running : NULL,
                                .before = &a->before,
                                .self = s,
                                .unix_ns = a->unix_ns,
                                .mono_ns = a->mono_ns,
                                .nvidia = a->set->o.nvidia_names};
}

static void save_state(struct agent *a) {
  int e = ni_live_save(&a->live, a->dir, "agent.state", a->mono_ns);
  if ((e < 0) != a->unsaved)
    say(a, "%s/agent.state: %s", a->state, e < 0 ? strerror(-e) : "saved again");
  if (e == 0) {
    a->self.state_saved_ns = a->unix_ns;
    a->changed = false;
  }
  a->self.state_errors += e < 0;
  a->unsaved = e < 0;
  a->saved_ns = a->mono_ns;
}

/*
 * Saves the state before counters are shown: what was shown must be there after a kill. Logs would say most
 * of it again, but not of a job whose box is gone meanwhile, nor who was last in operations under way.
 */
static void save_shown_state(struct agent *a) {
  if (a->settled && a->changed)
    save_state(a);
}

/* Answers GET of /metrics, /v1/now and /healthz. */
static void answer_request(void *arg, const struct ni_http_request *q, struct ni_http_answer *to) {
  struct agent *a = arg;
  bool metrics = strcmp(q->path, "/metrics") == 0, now = strcmp(q->path, "/v1/now") == 0,
       health = strcmp(q->path, "/healthz") == 0;
  *to = (struct ni_http_answer){.status = 404, .why = "there are /metrics, /v1/now and /healthz"};
  if (!metrics && !now && !health)
    return;
  if (metrics)
    save_shown_state(a);
  const struct ni_metrics_in in = collect_figures(a);
  const char *said = a->unsaved ? "degraded: the state cannot be saved"
      : in.self->degraded       ? "degraded: samples are lost"
                                : "ok";
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  bool fine = f && (a->settled || health);
  if (fine && health)
    ni_say(f, "%s\n", said);
  if (fine && now)
    ni_now_json(f, &in);
  if (fine && metrics)
    fine = ni_metrics_text(f, &in, q->open_metrics) == 0;
  fine = fine && !ferror(f);
  if (f && fclose(f) != 0)
    fine = false;
  const char *type = q->open_metrics ? NI_METRICS_OPEN_TYPE : NI_METRICS_TEXT_TYPE;
  if (health)
    type = "text/plain";
  else if (now)
    type = "application/json";
  *to = (struct ni_http_answer){
      .status = 200, .body = text, .len = bytes, .shared = true, .counted = metrics, .type = type};
  if (fine)
    return;
  free(text);
  *to = (struct ni_http_answer){.status = 503,
                                .why = "not yet: logs are still being read",
                                .header = "Retry-After",
                                .header_value = "1"};
}

static void send_otlp(struct agent *a) {
  save_shown_state(a);
  const struct ni_metrics_in in = collect_figures(a);
  size_t bytes;
  const struct ni_otlp_totals t = ni_otlp_totals(a->otlp);
  if (*t.error && strcmp(t.error, a->refused) != 0)
    say(a, "--otlp=%s: %s", a->set->o.otlp, strcpy(a->refused, t.error));
  void *request = a->settled ? ni_metrics_otlp(&in, &bytes) : NULL;
  if (request)
    ni_otlp_put(a->otlp, request, bytes);
  a->sent_ns = a->mono_ns;
}

/* Tells systemd, if it has started us. */
static void notify_systemd(const char *text) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  const char *path = getenv("NOTIFY_SOCKET");
  size_t n = path ? strlen(path) : 0;
  int fd = n && n < sizeof to.sun_path ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
  if (fd < 0)
    return;
  memcpy(to.sun_path, path, n);
  if (*path == '@')
    to.sun_path[0] = 0;
  (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
               (socklen_t)(sizeof to - sizeof to.sun_path + n));
  close(fd);
}

/* Chooses where the state lies if nobody names a folder. Homes are often shared by all nodes. */
static void choose_state_path(struct agent *a) {
  const char *given = a->set->o.state_dir, *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  if (!given)
    given = getenv("STATE_DIRECTORY");
  if (given && *given)
    snprintf(a->state, sizeof a->state, "%s", given);
  else if (geteuid() == 0)
    snprintf(a->state, sizeof a->state, "/var/lib/nccl-inspector");
  else if (xdg && *xdg == '/')
    snprintf(a->state, sizeof a->state, "%s/nccl-inspector/%s", xdg, a->node);
  else
    snprintf(a->state, sizeof a->state, "%s/.local/state/nccl-inspector/%s", home ? home : "", a->node);
  snprintf(a->ring, sizeof a->ring, "%s/ring", a->state);
}

/*
 * Opens the folder, for one agent only. A lock of fcntl() is not inherited by children, and says who has it.
 */
static bool open_state(struct agent *a) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  char why[256] = "";
  int e;
  mode_t mask = umask(077);
  a->dir = ni_out_dir(a->state, true, why, sizeof why);
  umask(mask);
  if (a->dir >= 0 && (e = ni_out_own(a->dir, why, sizeof why)) < 0) {
    close(a->dir);
    a->dir = e;
  }
  if (a->dir >= 0)
    a->lock = openat(a->dir, "agent.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (a->dir < 0 || a->lock < 0) {
    say(a, "--state-dir=%s: %s", a->state, *why ? why : strerror(errno));
    return false;
  }
  if (fcntl(a->lock, F_SETLK, &lock) != 0) {
    if (fcntl(a->lock, F_GETLK, &lock) != 0)
      lock.l_pid = -1;
    say(a, "--state-dir=%s: the agent with pid %d has it. One state, one agent", a->state, (int)lock.l_pid);
    return false;
  }
  e = ni_live_load(&a->live, a->dir, "agent.state", a->mono_ns, why, sizeof why);
  if (e == 0 || e == -ENOENT)
    return true;
  a->self.state_lost++;
  say(a, "%s/agent.state: %s; logs are read from their beginning", a->state, *why ? why : strerror(-e));
  return true;
}

static bool watch_fd(const struct agent *a, int fd, void *ptr) {
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = ptr};
  return fd >= 0 && epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool open_http(struct agent *a, const struct ni_agent_options *o) {
  const struct ni_http_options http = {.listen = o->listen,
                                       .token_file = o->token_file,
                                       .tls_cert = o->tls_cert,
                                       .tls_key = o->tls_key,
                                       .open = o->open,
                                       .connections = 64};
  char why[512];
  int e = ni_http_open(&a->http, &http, answer_request, a, why, sizeof why);
  if (e < 0)
    say(a, "%s", why);
  return e == 0 && watch_fd(a, ni_http_fd(a->http), &a->http);
}

static void close_parts(struct agent *a) {
  if (a->readers)
    ni_readers_close(a->readers);
  if (a->otlp)
    ni_otlp_stop(a->otlp);
  if (a->uplink)
    ni_uplink_stop(a->uplink);
  if (a->sampler)
    ni_sampler_stop(a->sampler);
  a->readers = NULL;
  a->otlp = NULL;
  a->uplink = NULL;
  a->sampler = NULL;
  ni_ras_watch_stop(a->ras);
  a->ras = NULL;
  a->self.ras = (struct ni_agent_ras){0};
  ni_up_free(&a->up);
  ni_running_free(&a->running);
  ni_running_free(&a->before);
}

/* Opens the parts. Only the readers are required. */
static bool open_parts(struct agent *a) {
  const struct ni_agent_options *o = &a->set->o;
  snprintf(a->node, sizeof a->node, "%s", o->node ? o->node : "");
  if (!o->node && gethostname(a->node, sizeof a->node - 1) != 0)
    snprintf(a->node, sizeof a->node, "localhost");
  int e = ni_sampler_start(&a->sampler, o->every_ns, a->ring, o->ring_bytes);
  if (e < 0)
    say(a, "no samples of NICs, GPUs and the host: %s", strerror(-e));
  else
    watch_fd(a, ni_sampler_fd(a->sampler), &a->sampler);
  char why[512];
  char *header = o->otlp_header_file
      ? ni_secret_read("otlp-header-file", o->otlp_header_file, true, why, sizeof why)
      : NULL;
  if (o->otlp_header_file && !header)
    say(a, "nothing is sent by OTLP: %s", why);
  else if (o->otlp && (e = ni_otlp_start(&a->otlp, o->otlp, header ? header : o->otlp_header)) < 0)
    say(a, "--otlp=%s: %s", o->otlp,
        e == -EINVAL ? "want a URL of http or https, and a header of the form NAME: VALUE" : strerror(-e));
  ni_secret_free(header);
  const struct ni_uplink_options head = {
      o->head, o->head_token_file, o->head_ca, o->head_cert, o->head_key, a->node, a->dir};
  if (o->head && ni_uplink_start(&a->uplink, &head, why, sizeof why) < 0)
    say(a, "%s", why);
  if (o->ras && (e = ni_ras_watch_start(&a->ras, o->ras, o->ras_every_ns)) < 0)
    say(a, "--ras: %s", strerror(-e));
  if ((e = ni_readers_open(&a->readers, o, a->node, &a->live, a->epoll)) < 0)
    say(a, "readers: %s", strerror(-e));
  return e == 0;
}

/* Reads the settings anew, with certificate and token. Readers continue where the sums are. */
static void reload_settings(struct agent *a) {
  int code;
  notify_systemd("RELOADING=1");
  struct ni_settings *before = a->set, *next = ni_settings_read(a->argc, a->argv, &code);
  const char *was = before->o.state_dir ? before->o.state_dir : "",
             *is = next && next->o.state_dir ? next->o.state_dir : "";
  if (next && open_http(a, &next->o)) {
    if (strcmp(was, is) != 0)
      say(a, "SIGHUP: the state stays in %s until the agent is begun anew", a->state);
    close_parts(a);
    a->set = next;
    next = before;
    open_parts(a);
    say(a, "SIGHUP: the settings were read; serves %s", ni_http_url(a->http));
  } else
    say(a, "SIGHUP: the settings stay as they were");
  if (next)
    ni_settings_free(next);
  notify_systemd("READY=1");
}

/* ---- the loop ---- */

/* Between two turns both clocks advance equally, except for what is slewed: 0.05 % at most, says NTP. */
static void check_clocks(struct agent *a) {
  uint64_t unix_ns = a->turns ? a->unix_ns + SECOND : ni_now_ns(CLOCK_REALTIME);
  uint64_t mono_ns = a->turns ? a->mono_ns + SECOND : ni_now_ns(CLOCK_MONOTONIC);
  int64_t went = (int64_t)(mono_ns - a->mono_ns), step = (int64_t)(unix_ns - a->unix_ns) - went;
  a->unix_ns = unix_ns;
  a->mono_ns = mono_ns;
  if (llabs(step) <= (int64_t)SECOND / 10 + went / 1000)
    return;
  a->self.clock_steps++;
  say(a, "the clock was set by %.3f s", (double)step / 1e9);
}

/* Asks each second what the head wants: the first sample may be long ago. */
static void check_head(struct agent *a) {
  int64_t tick_ns;
  uint64_t period_ns;
  bool bandwidth;
  const struct ni_uplink_totals t = ni_uplink_totals(a->uplink);
  if (strcmp(t.error, a->away) != 0)
    say(a, "--head=%s: %s", a->set->o.head, *strcpy(a->away, t.error) ? t.error : "connected");
  if (a->sampler && ni_uplink_wants(a->uplink, &tick_ns, &period_ns, &bandwidth))
    ni_sampler_follow(a->sampler, tick_ns, period_ns, bandwidth);
}

static void send_sample(struct agent *a) {
  const struct ni_metrics_in in = {.live = &a->live, .running = &a->running, .unix_ns = a->unix_ns};
  struct ni_sample *s = ni_up_sample(&a->up, &in);
  if (s)
    ni_uplink_put(a->uplink, s, a->samples.at_mono_ns);
}

static void run_tick(struct agent *a) {
  const struct ni_agent_options *o = &a->set->o;
  if (a->readers)
    ni_readers_tick(a->readers, a->mono_ns);
  a->changed |= ni_live_tick(&a->live, a->mono_ns, o->keep_ended_ns);
  a->settled |= !a->readers || ni_readers_settled(a->readers);
  ni_hooks_turn(&a->hooks, o->on_hang.word, &a->live, a->node, a->mono_ns);
  if ((a->changed || a->unsaved) && a->mono_ns - a->saved_ns >= 5 * SECOND)
    save_state(a);
  if (a->uplink)
    check_head(a);
  if (a->ras)
    ni_ras_watch_turn(a->ras, a->mono_ns, &a->self.ras);
  if (a->otlp && a->mono_ns - a->sent_ns >= o->otlp_every_ns)
    send_otlp(a);
  ni_http_turn(a->http, &a->self.scrapes, &a->self.requests_refused);
  if (!a->set->o.foreground)
    ni_background_bound(a->dir, "agent.log");
  if (a->mono_ns - a->trimmed_ns < 60 * SECOND)
    return;
  (void)malloc_trim(0); /* buffers of all sizes come and go for weeks: what lies free between them */
  a->trimmed_ns = a->mono_ns;
}

static void take_sample(struct agent *a) {
  struct ni_running older = a->before;
  bool was = a->samples.ring.degraded;
  int64_t at_ns = a->samples.at_mono_ns;
  if (a->running.at_ns - older.at_ns >= 5 * (int64_t)SECOND) {
    a->before = a->running;
    a->running = older;
  }
  (void)ni_sampler_copy(a->sampler, &a->running, &a->samples);
  if (a->uplink && a->samples.at_mono_ns != at_ns)
    send_sample(a);
  if (a->samples.ring.degraded != was)
    say(a, "%s: %s", a->ring, was ? "takes samples again" : a->samples.ring.why);
}

/* true: other things that had an event may be gone by now. */
static bool handle_event(struct agent *a, void *from) {
  struct signalfd_siginfo s;
  uint64_t times;
  if (from == &a->timer && read(a->timer, &times, sizeof times) == sizeof times)
    run_tick(a);
  if (from == &a->signals && read(a->signals, &s, sizeof s) == sizeof s) {
    if (s.ssi_signo == SIGHUP)
      reload_settings(a);
    else
      a->ended = true;
  }
  if (from == &a->timer || from == &a->signals)
    return true;
  if (from == &a->http)
    ni_http_turn(a->http, &a->self.scrapes, &a->self.requests_refused);
  else if (from == &a->sampler)
    take_sample(a);
  else
    a->changed |= ni_readers_ready(a->readers, from, a->unix_ns, a->mono_ns);
  return false;
}

static void run_loop(struct agent *a) {
  struct epoll_event event[32];
  while (!a->ended) {
    int n = epoll_wait(a->epoll, event, 32, a->turns ? 1 : -1);
    check_clocks(a);
    for (int i = 0; i < n && !handle_event(a, event[i].data.ptr); i++)
      continue;
    if (a->turns) {
      run_tick(a);
      a->ended |= --a->turns == 0;
    }
  }
}

static bool begin_agent(struct agent *a) {
  sigset_t set;
  const char *turns = getenv("NI_AGENT_TURNS");
  a->turns = turns ? strtoull(turns, NULL, 10) : 0;
  const struct itimerspec every = {{!a->turns, 0}, {!a->turns, 0}};
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  a->unix_ns = ni_now_ns(CLOCK_REALTIME);
  a->mono_ns = a->began_ns = a->saved_ns = ni_now_ns(CLOCK_MONOTONIC);
  a->self = (struct ni_agent_self){.node = a->node, .version = NI_VERSION, .began_ns = a->unix_ns};
  a->changed = true; /* a disk that is full is told soon */
  a->epoll = epoll_create1(EPOLL_CLOEXEC);
  a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (!watch_fd(a, a->signals, &a->signals) || !watch_fd(a, a->timer, &a->timer) ||
      timerfd_settime(a->timer, 0, &every, NULL) != 0) {
    say(a, "%s", strerror(errno));
    return false;
  }
  (void)gethostname(a->node, sizeof a->node - 1);
  choose_state_path(a);
  if (!open_state(a) || !open_http(a, &a->set->o) || !open_parts(a))
    return false;
  ni_hooks_turn(&a->hooks, NULL, &a->live, a->node, a->mono_ns); /* what was told before */
  return true;
}

static void end_agent(struct agent *a, bool served) {
  notify_systemd("STOPPING=1");
  if (served && a->otlp)
    send_otlp(a);
  close_parts(a);
  if (served)
    save_state(a);
  if (a->http)
    ni_http_close(a->http);
  ni_live_free(&a->live);
  ni_settings_free(a->set);
}

/* Tells whoever waits that the agent serves. In the background, messages go to agent.log from here on. */
static void report_serving(struct agent *a, int waiting) {
  char line[256];
  snprintf(line, sizeof line, "%s: serves %s (pid %d)", a->argv[0], ni_http_url(a->http), (int)getpid());
  if (waiting < 0)
    ni_say(stderr, "%s\n", line);
  else
    ni_background_done(waiting, line, a->dir, "agent.log");
  notify_systemd("READY=1");
}

int ni_agent_main(int argc, char **argv) {
  static struct agent a;
  int code = 0, waiting = -1;
  a.argc = argc;
  a.argv = argv;
  if (!(a.set = ni_settings_read(argc, argv, &code)))
    return code;
  if (!a.set->o.foreground)
    waiting = ni_background(argv[0]);
  bool served = begin_agent(&a);
  if (served) {
    report_serving(&a, waiting);
    run_loop(&a);
  }
  end_agent(&a, served);
  return served ? NI_EXIT_FINE : NI_EXIT_COULD_NOT_RUN;
}
