#include "gsprof.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "exporter/agent/agent.h"
#include "exporter/base/now.h"
#include "exporter/base/process/secret.h"
#include "exporter/base/text/time_text.h"
#include "exporter/head/head.h"
#include "exporter/http/fetch.h"
#include "exporter/rpc/messages.h"
#include "exporter/rpc/rpc.h"
#include "session.h"

enum { CALL_S = 30 };

struct gsprof {
  struct ni_head_options head;
  struct ni_session_options s; /* head: the address */
  const char *data, *word;     /* word: of help */
  bool http, ignored;          /* ignored: accepted, and without effect here */
};

/* ---- its lines ---- */

static const char *function; /* of gsprof's code, in whose name lines stand */

static void say(bool error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(bool error, const char *format, ...) {
  struct timeval now;
  char time[32];
  va_list args;
  gettimeofday(&now, NULL);
  ni_say(stderr, "%s.%03d | %-8s | gsprof:%s:1 - ", ni_second_text(now.tv_sec, ' ', true, time),
         (int)(now.tv_usec / 1000), error ? "ERROR" : "INFO", function);
  va_start(args, format);
  ni_vsay(stderr, format, args);
  va_end(args);
  ni_say(stderr, "\n");
}

/* ---- a call by gRPC ---- */

struct call {
  bool over;
  enum ni_rpc_status status;
  char why[512];
  uint8_t *bytes; /* of the answer; for free() */
  size_t len;
};

static void take_message(void *arg, struct ni_rpc_call *c, void *data, const void *bytes, size_t len) {
  struct call *r = data;
  free(r->bytes);
  if ((r->bytes = malloc(len + 1)))
    memcpy(r->bytes, bytes, r->len = len);
}

static void take_end(void *arg, struct ni_rpc_call *c, void *data, bool half, enum ni_rpc_status status,
                     const char *text) {
  struct call *r = data;
  if (half)
    return;
  r->over = true;
  r->status = status;
  if (status != NI_RPC_OK)
    snprintf(r->why, sizeof r->why, "%s", text && *text ? text : "the call failed");
}

/* Sends what is in w, which is freed. False: why says why not. */
static bool call(const struct gsprof *g, const char *method, struct ni_pb_writer *w, struct call *r) {
  const struct ni_rpc_handler handler = {.message = take_message, .end = take_end};
  char path[128], token[NI_FETCH_TOKEN];
  struct ni_rpc *rpc = NULL;
  *r = (struct call){0};
  const char *wrong = ni_head_trust(&g->s, token);
  char *pem[3] = {0}, *const file[] = {(char *)g->s.ca, (char *)g->s.cert, (char *)g->s.key};
  for (int i = 0; i < 3 && !wrong && !*r->why; i++)
    if (file[i])
      pem[i] =
          ni_secret_read((const char *[]){"ca", "cert", "key"}[i], file[i], i == 2, r->why, sizeof r->why);
  struct ni_rpc_options o = {.token = *token ? token : NULL, .ca = pem[0], .cert = pem[1], .key = pem[2]};
  snprintf(path, sizeof path, NI_GSPROF "%s", method);
  if (wrong)
    snprintf(r->why, sizeof r->why, "%s", wrong);
  bool good = !w->failed && !*r->why &&
      ni_rpc_connect(&rpc, g->s.head, &o, &handler, NULL, r->why, sizeof r->why) == 0;
  if (good)
    *r->why = 0;
  struct ni_rpc_call *c = good ? ni_rpc_begin(rpc, path, r) : NULL;
  if (c && ni_rpc_send(c, w->bytes, w->n) == 0)
    ni_rpc_finish(c, NI_RPC_OK, NULL);
  uint64_t until = ni_now_ns(CLOCK_MONOTONIC) + CALL_S * UINT64_C(1000000000);
  while (c && !r->over && ni_now_ns(CLOCK_MONOTONIC) < until) {
    poll(&(struct pollfd){.fd = ni_rpc_fd(rpc), .events = POLLIN}, 1, 500);
    ni_rpc_turn(rpc);
  }
  if (rpc && ni_rpc_broken(rpc))
    snprintf(r->why, sizeof r->why, "%s", ni_rpc_broken(rpc));
  if (!r->over && !*r->why)
    snprintf(r->why, sizeof r->why, good ? "no answer" : "no memory");
  good = r->over && r->status == NI_RPC_OK;
  r->over = true; /* closing ends the call, too */
  if (rpc)
    ni_rpc_close(rpc);
  ni_pb_free(w);
  for (int i = 0; i < 3; i++)
    ni_secret_free(pem[i]);
  explicit_bzero(token, sizeof token);
  return good;
}

/* ---- its commands ---- */

/* Starts or stops, by either way; *r says what came of it. */
static void control(const struct gsprof *g, const char *method, const char *path, const char *name,
                    struct ni_reply *r) {
  struct ni_pb_writer w = {0};
  struct ni_head_said said = {0};
  struct call c = {0};
  *r = (struct ni_reply){0};
  if (g->http) {
    r->success = ni_head_ask_name(&g->s, path, name, &said);
    ni_head_said_text(&said, "message", r->message, sizeof r->message);
    ni_head_said_text(&said, "output_file", r->output, sizeof r->output);
  } else {
    if (name)
      ni_name_encode(&w, name);
    if (call(g, method, &w, &c) && !ni_reply_decode(c.bytes, c.len, r))
      snprintf(c.why, sizeof c.why, "it is no head");
  }
  if (*said.error || *c.why) {
    snprintf(r->message, sizeof r->message, "%s", *c.why ? c.why : said.error);
    r->success = false;
  }
  free(said.text);
  free(c.bytes);
}

static int run_profile(struct gsprof *g, const char *who) {
  struct ni_reply r;
  char name[64];
  time_t now = time(NULL);
  struct tm t;
  strftime(name, sizeof name, "profiling_%Y%m%d_%H%M%S", localtime_r(&now, &t));
  control(g, "StartProfiling", "/profiling/start", g->s.name ? g->s.name : name, &r);
  if (!r.success) {
    say(true, "Failed to start profiling: %s", r.message);
    return NI_EXIT_COULD_NOT_RUN;
  }
  say(false, "Profiling started: %s", r.message);
  say(false, "Output file: %s", r.output);
  return NI_EXIT_FINE;
}

static int run_stop(struct gsprof *g, const char *who) {
  struct ni_reply r;
  control(g, "StopProfiling", "/profiling/stop", g->s.name, &r);
  say(!r.success, "%s: %s", r.success ? "Profiling stopped" : "Failed to stop profiling", r.message);
  return r.success ? NI_EXIT_FINE : NI_EXIT_COULD_NOT_RUN;
}

enum { FREQ, BANDWIDTH, NVLINK, PROFILING, OUTPUT, FRAMES, GPUS, STATUS_KEYS };
enum { CLIENTS_SHOWN = 256 };
struct status {
  char of[STATUS_KEYS][600], client[CLIENTS_SHOWN][600]; /* of: as JSON has them: "true" */
  size_t clients;
};

static void add_client(void *status, const char *const *cell) {
  struct status *s = status;
  if (s->clients < CLIENTS_SHOWN)
    ni_safe_text(cell[0], s->client[s->clients], sizeof *s->client);
  s->clients++;
}

static void take_status(void *status, const char *const *cell) {
  struct status *s = status;
  for (int k = 0; k < STATUS_KEYS; k++)
    ni_safe_text(cell[k], s->of[k], sizeof s->of[k]);
}

static void read_status(struct status *s, const struct call *r) {
  struct ni_pb_reader in = ni_pb_read(r->bytes, r->len);
  char text[600];
  snprintf(s->of[FREQ], sizeof *s->of, "0");
  snprintf(s->of[FRAMES], sizeof *s->of, "0");
  for (struct ni_pb_field f; ni_pb_next(&in, &f);) {
    if (f.number == 1 || f.number == 6)
      snprintf(s->of[f.number == 1 ? FREQ : FRAMES], sizeof *s->of, "%d", (int)(int32_t)f.value);
    if (f.number >= 2 && f.number <= 4 && f.value)
      snprintf(s->of[f.number - 1], sizeof *s->of, "true");
    if (f.number == 5)
      ni_pb_text(&f, s->of[OUTPUT], sizeof *s->of);
    if (f.number == 7 && (ni_pb_text(&f, text, sizeof text), true))
      add_client(s, (const char *const[]){text});
  }
}

/* NULL, or why there is none; for free() with *c and *said. */
static const char *get_status(struct gsprof *g, struct status *s, struct call *c, struct ni_head_said *said) {
  static const char *const key[STATUS_KEYS] = {"freq",
                                               "enable_bandwidth_profiling",
                                               "enable_nvlink_profiling",
                                               "is_profiling",
                                               "output_filename",
                                               "frame_id_counter",
                                               "total_gpus"};
  struct ni_pb_writer w = {0};
  if (!s)
    return "no memory";
  if (!g->http) {
    if (!call(g, "GetStatus", &w, c))
      return c->why;
    read_status(s, c);
    return NULL;
  }
  if (!ni_head_ask(&g->s, "/status", NULL, said))
    return said->error;
  if (ni_answer_rows(said->text, said->bytes, "", key, STATUS_KEYS, take_status, s) != 1 || !*s->of[GPUS])
    return "it is no head";
  ni_answer_rows(said->text, said->bytes, "/connected_clients", key, 1, add_client, s);
  return NULL;
}

static int run_status(struct gsprof *g, const char *who) {
  struct status *s = calloc(1, sizeof *s);
  struct call c = {0};
  struct ni_head_said said = {0};
  const char *wrong = get_status(g, s, &c, &said);
  if (wrong)
    say(true, "Failed to get status: %s", wrong);
  else {
    say(false, "Head Node Status%s:", g->http ? " (via HTTP)" : "");
    say(false, "  Frequency: %sms", s->of[FREQ]);
    say(false, "  Bandwidth Profiling: %s", *s->of[BANDWIDTH] == 't' ? "Enabled" : "Disabled");
    say(false, "  NVLink Profiling: %s", *s->of[NVLINK] == 't' ? "Enabled" : "Disabled");
    say(false, "  Is Profiling: %s", *s->of[PROFILING] == 't' ? "Yes" : "No");
    say(false, "  Output Filename: %s", s->of[OUTPUT]);
    say(false, "  Frame Counter: %s", s->of[FRAMES]);
    say(false, "  Connected Clients: %zu", s->clients);
    if (g->http)
      say(false, "  Total GPUs: %s", s->of[GPUS]);
    if (s->clients)
      say(false, "  Client List:");
    for (size_t i = 0; i < s->clients && i < CLIENTS_SHOWN; i++)
      say(false, "    - %s", s->client[i]);
  }
  free(c.bytes);
  free(said.text);
  free(s);
  return wrong ? NI_EXIT_COULD_NOT_RUN : NI_EXIT_FINE;
}

static int run_exit(struct gsprof *g, const char *who) {
  struct ni_pb_writer w = {0};
  struct call c;
  bool good = call(g, "Exit", &w, &c);
  if (good)
    say(false, "Head node exit signal sent.");
  else
    say(true, "Failed to send exit signal: %s", c.why);
  free(c.bytes);
  return good ? NI_EXIT_FINE : NI_EXIT_COULD_NOT_RUN;
}

/* As gsprof asks before it begins. 0: nobody asked for that one. */
static bool port_is_free(const struct gsprof *g, uint64_t port, const char *what) {
  char at[300], why[512];
  const struct ni_rpc_handler nobody = {0};
  struct ni_rpc *rpc = NULL;
  snprintf(at, sizeof at, strchr(g->head.host, ':') ? "[%s]:%u" : "%s:%u", g->head.host, (unsigned)port);
  int e = port ? ni_rpc_listen(&rpc, at, &(struct ni_rpc_options){0}, &nobody, NULL, why, sizeof why) : 0;
  if (rpc)
    ni_rpc_close(rpc);
  if (e != -EADDRINUSE)
    return true; /* what else is wrong the head says */
  say(true, "%s %u is already in use on %s", *what ? "HTTP port" : "Port", (unsigned)port, g->head.host);
  say(false, "Please choose a different %sport or stop the process using this port.", what);
  say(false, "You can find the process using: lsof -i :%u or netstat -tulpn | grep :%u", (unsigned)port,
      (unsigned)port);
  return false;
}

static int run_start(struct gsprof *g, const char *who) {
  g->head.gsprof = true;
  if (!port_is_free(g, g->head.port, "") || !port_is_free(g, g->head.http_port, "HTTP "))
    return NI_EXIT_COULD_NOT_RUN;
  return ni_head_main(&g->head, who);
}

static int run_generate(struct gsprof *g, const char *who) {
  say(false, "There is nothing to generate: this gsprof has its protocol built in.");
  return NI_EXIT_FINE;
}

static int run_connect(struct gsprof *g, const char *who) {
  char *word[] = {(char *)who, "--foreground", "--listen", "127.0.0.1:0", "--head", (char *)g->s.head, NULL};
  return ni_agent_main(sizeof word / sizeof *word - 1, word);
}

static int run_stat(struct gsprof *g, const char *who) {
  char plot[4096], *word[] = {(char *)who, "--plot", plot, "--", (char *)g->data, NULL};
  const char *slash = strrchr(g->data, '/'), *end = strrchr(slash ? slash : g->data, '.');
  int stem = end ? (int)(end - g->data) : (int)strlen(g->data);
  if (g->s.plot)
    snprintf(plot, sizeof plot, "%s", g->s.plot);
  else
    snprintf(plot, sizeof plot, "%.*s.pdf", stem, g->data);
  return ni_session_main(NI_SESSION_STAT, sizeof word / sizeof *word - 1, word);
}

/* The value of an option that may stand in a word of its own; NULL: it is not this one, or has none. */
static const char *value_of(char *const *word, const char *name) {
  const size_t n = strlen(name);
  if (strncmp(*word, name, n) != 0)
    return NULL;
  return (*word)[n] == '=' ? *word + n + 1 : (*word)[n] ? NULL : word[1];
}

/*
 * As gsprof's README has them: a name or an id alone goes on with the session, by the head; --export without
 * a file writes NAME.json. With a file, or with --list, it is `session recover`.
 */
static int run_recover(int n, char **word) {
  enum { MORE = 3 };
  char own[300] = "", resume[] = "--resume", **words = calloc((size_t)n + MORE, sizeof *words);
  const char *which = NULL, *value;
  bool says = false, exports = false;
  int k = 0, code = NI_EXIT_COULD_NOT_RUN;
  for (int i = 0; words && i < n; i++) {
    bool bare = strcmp(word[i], "--export") == 0 || strcmp(word[i], "-e") == 0;
    bool alone = bare && (!word[i + 1] || (*word[i + 1] == '-' && word[i + 1][1]));
    if ((value = value_of(word + i, "--name")) || (value = value_of(word + i, "-n")) ||
        (value = value_of(word + i, "--session-id")))
      which = value;
    says |= !alone &&
        (bare || strncmp(word[i], "--export=", 9) == 0 || strcmp(word[i], "--list") == 0 ||
         strcmp(word[i], "-l") == 0 || strcmp(word[i], "--resume") == 0 || strcmp(word[i], "--help") == 0 ||
         strcmp(word[i], "-h") == 0);
    exports |= alone;
    if (!alone)
      words[k++] = word[i];
  }
  if (exports && which && !says)
    snprintf(own, sizeof own, "--export=%s.json", which);
  bool there = *own && access(own + sizeof "--export", F_OK) == 0;
  if (*own && strchr(which, '/'))
    ni_say(stderr, "%s: '%s' is no name of a session\n", *word, which);
  else if (there)
    ni_say(stderr, "%s: %s is there: --export FILE names another\n", *word, own + sizeof "--export");
  else if (exports && !which) {
    code = NI_EXIT_USAGE;
    ni_say(stderr, "%s: --export wants --session-id or --name\n", *word);
  } else if (words) {
    if (*own)
      words[k++] = own;
    else if (which && !says)
      words[k++] = resume;
    code = ni_session_main(NI_SESSION_RECOVER, k, words);
  }
  free(words);
  return code;
}

/* ---- their words ---- */

#define INTO(member) NI_INTO(struct gsprof, member)
static int take_address(const struct ni_opt *o, void *into, const char *arg) {
  struct gsprof *g = into;
  if (g->word || !*arg)
    return -EINVAL;
  g->s.head = g->word = arg;
  return 0;
}
static int take_not(const struct ni_opt *o, void *into, const char *arg) {
  memset((char *)into + o->at, 0, o->size);
  return 0;
}
#define ROW_ADDRESS(called) \
  {NULL, 0, NI_OPT_TAKE, called, NULL, .take = take_address, .want = "one address, HOST:PORT"}
#define ROW_NAME {"name", 0, NI_OPT_TEXT, "NAME", "Of the session", INTO(s.name), .min = 1}
#define ASK(member) INTO(s.member)
#define ROWS_TRUST NI_ROWS_TRUST(ASK)
#define NOT(option, member) \
  {"disable-" option, 0, NI_OPT_TAKE, NULL, "Not that", .take = take_not, INTO(member)}
#define OPTIONS (const struct ni_opt[])

static const struct word {
  struct ni_command command;
  const char *function, *address; /* address: the default */
  int (*run)(struct gsprof *g, const char *who);
} words[] = {
    {{.name = "start",
      .purpose = "the head",
      .about = "Takes what clients say, and keeps sessions of it.",
      .opt = OPTIONS{NI_ROWS_HEAD("localhost", "0"),
                     NOT("bandwidth", head.bandwidth),
                     NOT("nvlink", head.nvlink),
                     {0}}},
     "start",
     NULL,
     run_start},
    {{.name = "connect",
      .purpose = "a client, on each node",
      .about = "Samples this node and sends it to the head, until it is ended.",
      .opt = OPTIONS{ROW_ADDRESS("ADDRESS"),
                     {"resilient", 'r', NI_OPT_FLAG, NULL, "It always is", INTO(ignored)},
                     {"enable-bandwidth", 0, NI_OPT_FLAG, NULL, "As the head says", INTO(ignored)},
                     NOT("bandwidth", ignored),
                     {0}}},
     "connect",
     NULL,
     run_connect},
    {{.name = "profile",
      .purpose = "begins a session",
      .about = "Begins a session.",
      .opt = OPTIONS{ROW_ADDRESS("[ADDRESS]"), ROW_NAME, ROWS_TRUST, {0}}},
     "profile",
     "localhost:8090",
     run_profile},
    {{.name = "status",
      .purpose = "what the head does",
      .about = "What the head does.",
      .opt = OPTIONS{ROW_ADDRESS("[ADDRESS]"), ROWS_TRUST, {0}}},
     "status",
     "localhost:8090",
     run_status},
    {{.name = "stop",
      .purpose = "ends a session, or all",
      .about = "Ends a session, or all that run.",
      .opt = OPTIONS{ROW_ADDRESS("[ADDRESS]"), ROW_NAME, ROWS_TRUST, {0}}},
     "stop",
     "localhost:8090",
     run_stop},
    {{.name = "exit",
      .purpose = "ends the head",
      .about = "Ends the head; `gsprof recover` has what ran.",
      .opt = OPTIONS{ROW_ADDRESS("ADDRESS"), ROWS_TRUST, {0}}},
     "exit",
     NULL,
     run_exit},
    {{.name = "http-profile",
      .purpose = "the same by HTTP",
      .about = "Begins a session, by HTTP.",
      .opt = OPTIONS{ROW_ADDRESS("[ADDRESS]"), ROW_NAME, ROWS_TRUST, {0}}},
     "http_profile",
     "localhost:8080",
     run_profile},
    {{.name = "http-status",
      .purpose = "the same by HTTP",
      .about = "What the head does, by HTTP.",
      .opt = OPTIONS{ROW_ADDRESS("[ADDRESS]"), ROWS_TRUST, {0}}},
     "http_status",
     "localhost:8080",
     run_status},
    {{.name = "http-stop",
      .purpose = "the same by HTTP",
      .about = "Ends a session, or all that run, by HTTP.",
      .opt = OPTIONS{ROW_ADDRESS("[ADDRESS]"), ROW_NAME, ROWS_TRUST, {0}}},
     "http_stop",
     "localhost:8091",
     run_stop},
    {{.name = "generate-grpc",
      .purpose = "nothing: the protocol is built in",
      .about = "Nothing: the protocol is built in.",
      .opt = OPTIONS{{0}}},
     "generate_grpc",
     NULL,
     run_generate},
    {{.name = "stat",
      .purpose = "pictures of a session",
      .about = "Figures and pictures of a session's file.",
      .opt =
          OPTIONS{{"data", 0, NI_OPT_TEXT, "FILE", "The session's file", INTO(data), .def = "result.json",
                   .min = 1},
                  {"plot", 0, NI_OPT_TEXT, "FILE",
                   "The picture: .pdf, .png or .svg (default: that name with .pdf)", INTO(s.plot), .min = 1},
                  {0}}},
     "stat",
     NULL,
     run_stat},
};
enum { N_WORDS = sizeof words / sizeof *words };

static const struct word *find(const char *name) {
  for (int i = 0; i < N_WORDS; i++)
    if (strcmp(words[i].command.name, name) == 0)
      return words + i;
  return NULL;
}

static int list(FILE *f, int code) {
  ni_say(f, "Usage: gsprof COMMAND [OPTION...]; each has a --help of its own:\n");
  for (int i = 0; i < N_WORDS; i++)
    ni_say(f, "  gsprof %-14s %s\n", words[i].command.name, words[i].command.purpose);
  ni_say(f, "  gsprof %-14s %s\n", "recover",
         "goes on with a session; what a head left on the disk, and its file anew");
  ni_say(f,
         "--gsprof-exit-codes (or GSPROF_EXIT_CODES=1): 0 also where a head refuses or cannot be reached\n");
  return code;
}

static int run(int argc, char **argv) {
  char who[80], *help[] = {who, "--help", NULL};
  const char *name = argc > 1 ? argv[1] : "", *asked = argc > 2 ? argv[2] : "";
  bool helps = strcmp(name, "help") == 0 && *asked;
  if (!*name)
    return list(stderr, 2);
  if (strcmp(name, "--help") == 0 || (strcmp(name, "help") == 0 && !*asked))
    return list(stdout, NI_EXIT_FINE);
  const struct word *w = find(helps ? asked : name);
  snprintf(who, sizeof who, "gsprof %s", helps ? asked : name);
  argv[1] = who;
  char **word = helps ? help : argv + 1;
  int n = helps ? 2 : argc - 1, done, code;
  if (strcmp(who, "gsprof recover") == 0)
    return run_recover(n, word);
  if (!w) {
    ni_say(stderr, "gsprof: there is no command '%s'\n", helps ? asked : name);
    return list(stderr, 2);
  }
  struct gsprof g = {0};
  code = ni_words_parse(&w->command, n, word, &g, &done);
  function = w->function;
  if (!done && !g.s.head)
    g.s.head = w->address;
  if (!done && !g.s.head && w->command.opt->take == take_address) {
    done = code = NI_EXIT_USAGE;
    ni_say(stderr, "%s: where is the head? give its address, HOST:PORT\n", who);
  }
  g.http = strncmp(w->command.name, "http-", 5) == 0;
  if (!done)
    code = w->run(&g, who);
  ni_head_options_free(&g.head);
  return code;
}

int ni_gsprof_main(int argc, char **argv) {
  const char *environment = getenv("GSPROF_EXIT_CODES");
  bool theirs = environment && strcmp(environment, "1") == 0;
  int n = 0;
  for (int i = 0; i < argc; i++) {
    if (strcmp(argv[i], "--gsprof-exit-codes") == 0)
      theirs = true;
    else
      argv[n++] = argv[i];
  }
  argv[n] = NULL;
  int code = run(n, argv);
  bool said = function && strcmp(function, "start") != 0 && strcmp(function, "stat") != 0 &&
      strcmp(function, "connect") != 0;
  return code == NI_EXIT_USAGE ? 2 : code == NI_EXIT_COULD_NOT_RUN && theirs && said ? NI_EXIT_FINE : code;
}
