#include "top.h"

#include <locale.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "exporter/agent/reader/readers.h"
#include "exporter/base/now.h"
#include "exporter/base/text/json_write.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/cmds/counters/recorder.h"
#include "exporter/http/fetch.h"
#include "exporter/model/live/live_tick.h"
#include "exporter/output/metrics/now.h"
#include "screen.h"

enum { FIRST_LOOK_S = 10 };
#define S UINT64_C(1000000000)

struct top_looking {
  const struct ni_top_options *o;
  struct ni_top top;
  struct ni_fetch *fetch;
  int fd[3]; /* keys, readers, signals */
  /*
   * This node without an agent: as the agent has it, in this process and with nothing on disk. readers NULL:
   * others are asked.
   */
  struct ni_agent_options agent;
  char node[256];
  struct ni_readers *readers;
  struct ni_live live;
  struct ni_sampling sampling;
  struct ni_running before, running;
  uint64_t ticked_ns;
};

static void take_answer(void *arg, size_t i, const char *text, size_t bytes, const char *error) {
  struct top_looking *t = arg;
  struct ni_top_source *s = t->top.source + i;
  if (error)
    ni_safe_text(error, s->error, sizeof s->error);
  if (error || !ni_top_read(&t->top, s, text, bytes, t->o->prometheus, s->error, sizeof s->error))
    return;
  *s->error = 0;
  s->answered_ns = ni_now_ns(CLOCK_MONOTONIC);
  free(s->document);
  s->document = t->o->json ? strndup(text, bytes) : NULL;
}

/* ---- this node ---- */

static int begin_readers(struct top_looking *t) {
  gethostname(t->node, sizeof t->node - 1);
  t->agent = (struct ni_agent_options){.log_dirs = t->o->log_dirs,
                                       .box_dir = t->o->box_dir,
                                       .node = t->node,
                                       .stuck_ns = 300 * S,
                                       .watch_only = true};
  int e = (t->fd[1] = epoll_create1(EPOLL_CLOEXEC)) < 0
      ? -errno
      : ni_readers_open(&t->readers, &t->agent, t->node, &t->live, t->fd[1]);
  return e < 0 ? e : ni_sampling_open(&t->sampling, NULL);
}

/* true: every reader has looked. */
static bool turn_readers(struct top_looking *t) {
  struct epoll_event got[16];
  uint64_t unix_ns = ni_now_ns(CLOCK_REALTIME), mono_ns = ni_now_ns(CLOCK_MONOTONIC);
  int n = epoll_wait(t->fd[1], got, sizeof got / sizeof *got, 0);
  for (int i = 0; i < n; i++)
    (void)ni_readers_ready(t->readers, got[i].data.ptr, unix_ns, mono_ns);
  if (mono_ns - t->ticked_ns >= S) {
    (void)ni_readers_tick(t->readers, mono_ns);
    (void)ni_live_tick(&t->live, mono_ns, t->agent.stuck_ns);
    t->ticked_ns = mono_ns;
  }
  return ni_readers_settled(t->readers);
}

/* Reads this node as an agent would report it, so that there is only one way to rows. */
static void read_here(struct top_looking *t) {
  const struct ni_agent_self self = {.node = t->node, .version = NI_VERSION};
  const struct ni_set *set = ni_collector_set(t->sampling.c);
  char *text = NULL;
  size_t bytes;
  FILE *f = open_memstream(&text, &bytes);
  int e = !f ||
      (t->sampling.when.real_ns &&
       ni_running_add(&t->before, set, t->sampling.at, t->sampling.when.real_ns) < 0);
  ni_sampling_read(&t->sampling, 1);
  if (!e)
    e = ni_running_add(&t->running, set, t->sampling.at, t->sampling.when.real_ns);
  if (!e)
    ni_now_json(f,
                &(struct ni_metrics_in){.live = &t->live,
                                        .running = &t->running,
                                        .before = &t->before,
                                        .self = &self,
                                        .unix_ns = ni_now_ns(CLOCK_REALTIME),
                                        .mono_ns = ni_now_ns(CLOCK_MONOTONIC)});
  if (f)
    fclose(f);
  take_answer(t, 0, text, bytes, e ? "no memory" : NULL);
  free(text);
}

/* ---- all sources ---- */

static char *make_url(const char *agent, const char *prometheus) {
  char query[8192] = "/api/v1/query?query=";
  struct ni_put_text w = {query + strlen(query), sizeof query - strlen(query)};
  if (!agent)
    ni_fetch_query(&w, ni_top_query);
  return ni_fetch_url(agent ? agent : prometheus, false, agent ? 9777 : 9090, agent ? "/v1/now" : query);
}

/* NULL, or what is wrong. */
static const char *begin_source(struct top_looking *t) {
  const struct ni_top_options *o = t->o;
  bool far = o->agents.n || o->prometheus;
  size_t n = o->agents.n ? o->agents.n : 1;
  char token[NI_FETCH_TOKEN], **url = calloc(n, sizeof *url);
  const char *wrong = ni_fetch_token(o->token_file, token);
  if (wrong)
    return wrong;
  if (!url || !(t->top.source = calloc(n, sizeof *t->top.source)))
    return "no memory";
  for (size_t i = 0; i < n; i++) {
    struct ni_top_source *s = t->top.source + t->top.n_sources++;
    const char *agent = o->agents.n ? o->agents.path[i] : NULL;
    ni_safe_text(agent ? agent : o->prometheus, s->name, sizeof s->name);
    s->answered_ns = ni_now_ns(CLOCK_MONOTONIC);
    if (far && !(url[i] = make_url(agent, o->prometheus)))
      return "no memory";
  }
  for (int k = 0; o->sort && k < NI_TOP_SORTS; k++)
    if (strcmp(o->sort, ni_top_sort_names[k]) == 0)
      t->top.sort = (enum ni_top_sort)k;
  ni_safe_text(o->filter, t->top.filter, sizeof t->top.filter);
  t->fetch = ni_fetch_open(
      url, far ? n : 0,
      &(struct ni_fetch_as){.token = *token ? token : NULL, .ca = o->ca, .direct = !o->prometheus});
  for (size_t i = 0; i < n; i++)
    free(url[i]);
  free(url);
  int e = far || !t->fetch ? 0 : begin_readers(t);
  return !t->fetch ? "no memory" : e < 0 ? strerror(-e) : NULL;
}

/* Waits ms at most. Returns how many answers are still to come. */
static size_t wait_for(struct top_looking *t, int ms) {
  size_t n = ni_fetch_wait(t->fetch, t->fd, ms, take_answer, t);
  return t->readers ? !turn_readers(t) : n;
}

/* ---- once ---- */

/* Prints the document as received, in one line. What could steer a terminal is escaped. */
static void print_document(const char *p) {
  for (size_t n = 0; *p; p += n, n = 0) {
    char one[9] = " ";
    while (p[n] >= ' ' && p[n] < 0x7f)
      n++;
    if (n)
      ni_say(stdout, "%.*s", (int)n, p);
    else if ((unsigned char)*p < ' ') {
      p++;
      ni_say(stdout, " ");
    } else {
      one[ni_json_char(one, &p)] = 0;
      ni_say(stdout, "%s", one);
    }
  }
}

static int print_once(struct top_looking *t, const char *name, const char *nothing) {
  const struct ni_top *top = &t->top;
  size_t answered = 0;
  uint64_t until = ni_now_ns(CLOCK_MONOTONIC) + FIRST_LOOK_S * S;
  ni_fetch_ask(t->fetch);
  if (t->readers)
    read_here(t); /* rates have two ends */
  while (wait_for(t, 100) && ni_now_ns(CLOCK_MONOTONIC) < until)
    continue;
  if (t->readers)
    read_here(t);
  if (ni_top_look(&t->top) < 0)
    return NI_EXIT_COULD_NOT_RUN;
  for (size_t i = 0; i < top->n_sources; i++) {
    const struct ni_top_source *s = top->source + i;
    if (*s->error)
      ni_say(stderr, "%s: %s: %s\n", name, s->name, s->error);
    else if (s->document && top->n_sources > 1)
      ni_say(stdout, answered ? "," : "{\"schema\":\"nccl-inspector-top-1\",\"nodes\":[");
    if (!*s->error && s->document)
      print_document(s->document);
    answered += !*s->error;
  }
  if (t->o->json && answered)
    ni_say(stdout, top->n_sources > 1 ? "]}\n" : "\n");
  else if (!t->o->json && answered)
    ni_top_print(top);
  if (answered && !top->rows)
    ni_say(stderr, "%s: %s\n", name, nothing);
  return !answered ? NI_EXIT_COULD_NOT_RUN : top->rows ? NI_EXIT_FINE : NI_EXIT_INCOMPLETE;
}

/* ---- again and again ---- */

/* Says why there are no rows: an error stands above, nobody has answered yet, or there are none. */
static const char *explain_no_rows(const struct top_looking *t, bool more, const char *nothing) {
  bool failed = false, known = false;
  for (size_t i = 0; i < t->top.n_sources; i++) {
    failed |= *t->top.source[i].error;
    known |= t->top.source[i].known;
  }
  return known && !(t->readers && more) ? nothing : failed ? "" : "looking ...";
}

static int watch_screen(struct top_looking *t, struct ni_screen *s, const char *nothing) {
  struct pollfd signals = {.fd = t->fd[2] = ni_end_signals(0), .events = POLLIN};
  size_t left = 1;
  bool draw = false;
  for (uint64_t due = 0; poll(&signals, 1, 0) == 0 && ni_screen_keys(s, &t->top, &draw);) {
    uint64_t now = ni_now_ns(CLOCK_MONOTONIC), every = ni_screen_every(s);
    if (due > now + every)
      due = now + every; /* a key made it faster */
    if (every && now >= due) {
      draw |= left || t->readers; /* left: one does not answer; what the others said */
      if (t->readers)
        read_here(t);
      ni_fetch_ask(t->fetch);
      due = now + every;
      left = 1;
    }
    if (draw && ni_top_look(&t->top) < 0)
      return NI_EXIT_COULD_NOT_RUN;
    if (draw)
      ni_screen_draw(s, &t->top, explain_no_rows(t, left, nothing));
    size_t before = left;
    left = wait_for(t, every ? (int)((due - now) / 1000000) + 1 : 1000);
    draw = before && !left && !t->readers;
  }
  close(t->fd[2]);
  return NI_EXIT_FINE;
}

int ni_top(const struct ni_top_options *o, const char *name) {
  struct top_looking t = {.o = o, .fd = {STDIN_FILENO, -1, -1}};
  struct ni_screen *s = NULL;
  const char *none = getenv("NO_COLOR"),
             *nothing = o->agents.n ? "nothing to show: no job runs where these agents are"
      : o->prometheus
      ? "nothing to show: this Prometheus has no metrics of ranks; does it scrape the agents (nccl-inspector "
        "agent)?"
      : "nothing to show: no job with the plugin runs here; --agent HOST:PORT shows other nodes";
  bool text = o->once || o->json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
  int code = NI_EXIT_COULD_NOT_RUN;
  setlocale(LC_CTYPE, "C.UTF-8"); /* how wide are characters? All text is UTF-8. */
  const char *why = begin_source(&t);
  if (!why && !text)
    why = ni_screen_open(&s, !o->no_colour && !(none && *none), o->every_ns);
  if (why)
    ni_say(stderr, "%s: %s\n", name, why);
  else if (text) {
    t.fd[0] = -1;
    code = print_once(&t, name, nothing);
  } else
    code = watch_screen(&t, s, nothing);
  ni_screen_close(s);
  ni_fetch_close(t.fetch);
  if (t.readers)
    ni_readers_close(t.readers);
  if (t.fd[1] >= 0)
    close(t.fd[1]);
  ni_sampling_close(&t.sampling);
  ni_running_free(&t.before);
  ni_running_free(&t.running);
  ni_live_free(&t.live);
  ni_top_free(&t.top);
  return code;
}
