#include "live.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/process/listen.h"
#include "exporter/cmds/counters/recorder.h"
#include "exporter/input/box/sources.h"

int ni_argv_add(struct ni_argv *a, const char *word) {
  if (!ni_array_room(a->word, a->n + 1, a->cap) || !(a->word[a->n] = strdup(word)))
    return -ENOMEM;
  a->word[++a->n] = NULL;
  return 0;
}

static int collect_word(const struct ni_opt *o, void *into, const char *arg) {
  return ni_argv_add((struct ni_argv *)((char *)into + o->at), arg);
}

static int take_listen(const struct ni_opt *o, void *into, const char *arg) {
  struct addrinfo *at = ni_listen_address(arg);
  if (!at)
    return -EINVAL;
  freeaddrinfo(at);
  *(const char **)((char *)into + o->at) = arg;
  return 0;
}

void ni_argv_free(struct ni_argv *a) {
  for (size_t i = 0; i < a->n; i++)
    free(a->word[i]);
  free(a->word);
}

/* A time of 10 ms or more without an end of an hour. */
#define ROW_TIME(option, meaning, member) \
  {option, \
   0, \
   NI_OPT_TAKE, \
   "TIME", \
   meaning, \
   AGENT(member), \
   .take = ni_parse_period, \
   .want = "a time of 10ms or more, such as 30s or 5m"}
#define AGENT(member) NI_INTO(struct ni_agent_options, member)
#define TOP(member) NI_INTO(struct ni_top_options, member)

/* ---- agent ---- */

static const char *refuse_agent(void *into) {
  const struct ni_agent_options *o = into;
  if (!o->tls_cert != !o->tls_key)
    return "--tls-cert and --tls-key go together";
  if (o->otlp && strncmp(o->otlp, "http://", 7) != 0 && strncmp(o->otlp, "https://", 8) != 0)
    return "--otlp: want a URL that begins with http:// or https://, such as http://collector:4318";
  if (o->otlp_header && o->otlp_header_file)
    return "--otlp-header and --otlp-header-file: one of the two";
  if ((o->head_token_file || o->head_ca) && !o->head)
    return "--head-token-file and --head-ca go with --head";
  if (o->ras_every_ns < 15 * UINT64_C(1000000000))
    return "--ras-every: want 15s or more: each answer is gathered from all of the job";
  if (o->ras && strchr(o->ras, '/'))
    return "--ras: want HOST:PORT, such as localhost:28028";
  if (!o->head_cert != !o->head_key || (o->head_cert && !o->head_ca))
    return "--head-cert and --head-key go together, and with --head-ca";
  if (o->head && !(strchr(o->head, ':') > o->head))
    return "--head: want HOST:PORT, such as n0:8090";
  if (o->on_hang.n && o->on_hang.word[0][0] != '/')
    return "--on-hang: the program is named by its whole path, such as /usr/local/bin/page";
  return NULL;
}

static const struct ni_opt agent_opt[] = {
    {"foreground", 0, NI_OPT_FLAG, NULL,
     "Stay in the foreground and say what happens on standard error, as systemd wants it", AGENT(foreground)},
    {"config", 'c', NI_OPT_TEXT, "FILE",
     "Settings: a line for each option, `listen = 127.0.0.1:9777`; read again on SIGHUP. "
     "What stands on the command line goes before. -FILE: where there is no FILE, the defaults",
     AGENT(config), .min = 1},
    {"listen", 0, NI_OPT_TAKE, "ADDRESS:PORT", "Where to serve; port 0: any that is free, which is said",
     AGENT(listen), .def = NI_AGENT_LISTEN, .want = NI_LISTEN_WANT, .take = take_listen},
    {"token-file", 0, NI_OPT_TEXT, "FILE",
     "Serve only who sends `Authorization: Bearer` and the first line of FILE", AGENT(token_file), .min = 1},
    {"tls-cert", 0, NI_OPT_TEXT, "FILE", "Certificate (PEM): serve by TLS", AGENT(tls_cert), .min = 1},
    {"tls-key", 0, NI_OPT_TEXT, "FILE", "Its private key (PEM)", AGENT(tls_key), .min = 1},
    {"open", 0, NI_OPT_FLAG, NULL, "Serve beyond this machine also without a token and TLS", AGENT(open)},
    {"log-dir", 0, NI_OPT_INPUTS, "DIR",
     "Logs of this node's jobs also lie here (repeatable); without it where the black boxes say",
     AGENT(log_dirs)},
    NI_ROW_BOX_DIR(struct ni_agent_options),
    {"state-dir", 0, NI_OPT_TEXT, "DIR",
     "What outlives the agent: counters, samples (default $STATE_DIRECTORY, /var/lib/nccl-inspector "
     "as root, else ~/.local/state/nccl-inspector/HOST)",
     AGENT(state_dir), .min = 1},
    {"node", 0, NI_OPT_TEXT, "NAME", "Name of this node in labels and in names of logs (default: the host's)",
     AGENT(node), .min = 1},
    {"every", 0, NI_OPT_TAKE, "TIME", "Between samples of NICs, GPUs and the host", AGENT(every_ns),
     .def = "1s", .take = ni_parse_period, .want = "a time from 10ms to 1h, such as 1s or 100ms"},
    {"ring-bytes", 0, NI_OPT_SIZE, "SIZE", "Disk space for samples, in the state's folder; the oldest go",
     AGENT(ring_bytes), .def = "256M", .min = 1 << 20},
    ROW_TIME("keep-ended", "Series of a job stay so long after its end (10m)", keep_ended_ns),
    ROW_TIME("stuck-after", "An operation that has not moved for so long hangs (300s)", stuck_ns),
    {"on-hang", 0, NI_OPT_TAKE, "WORD",
     "Run this program on a hang, with the verdict as JSON on standard input; again for each of its "
     "arguments",
     AGENT(on_hang), .take = collect_word, .want = "a program's path, then its arguments"},
    {"stacks", 0, NI_OPT_CHOICE, "py-spy|gdb",
     "Take stacks of ranks that a hang waits for, where this program is found", AGENT(stacks),
     .want = "py-spy|gdb"},
    {"ras", 0, NI_OPT_TEXT, "[=HOST:PORT]",
     "Ask NCCL's RAS of this node, too; without a place localhost:28028. An answer is gathered over the "
     "job's network, so it is off unless it is said",
     AGENT(ras)},
    ROW_TIME("ras-every", "How often, 15s or more (30s)", ras_every_ns),
    {"nvidia-names", 0, NI_OPT_FLAG, NULL, "Also the metrics of NVIDIA's inspector, by its names and labels",
     AGENT(nvidia_names)},
    {"otlp", 0, NI_OPT_TEXT, "URL",
     "Send metrics there by OTLP (HTTP, protobuf), such as http://collector:4318", AGENT(otlp), .min = 1},
    {"otlp-header", 0, NI_OPT_TEXT, "LINE",
     "One more header for it, such as 'X-Scope-OrgID: 7'. Everybody on the machine can read a command line",
     AGENT(otlp_header), .min = 1},
    {"otlp-header-file", 0, NI_OPT_TEXT, "FILE",
     "The same from the first line of FILE, such as 'Authorization: Bearer ...'", AGENT(otlp_header_file),
     .min = 1},
    ROW_TIME("otlp-every", "How often (15s)", otlp_every_ns),
    {"head", 0, NI_OPT_TEXT, "HOST:PORT",
     "Send samples to a head (nccl-inspector head, or gsprof's), such as n0:8090", AGENT(head), .min = 1},
    {"head-token-file", 0, NI_OPT_TEXT, "FILE", "Its first line is sent to the head as a token",
     AGENT(head_token_file), .min = 1},
    {"head-ca", 0, NI_OPT_TEXT, "FILE",
     "Speak TLS with the head, and trust these certificates (PEM); `system`: those of this machine",
     AGENT(head_ca), .min = 1},
    {"head-cert", 0, NI_OPT_TEXT, "FILE", "Certificate (PEM) of this agent, for a head that asks for one",
     AGENT(head_cert), .min = 1},
    {"head-key", 0, NI_OPT_TEXT, "FILE", "Its private key (PEM)", AGENT(head_key), .min = 1},
    {0}};

const struct ni_command ni_agent_command = {
    .name = "agent",
    .need = NI_NEED_DURING,
    .purpose = "metrics of all jobs of this node for Prometheus, OTLP and `top`",
    .about =
        "Watches the jobs of this node by their logs and black boxes, samples NICs, GPUs and the host, and "
        "serves what it knows: /metrics for Prometheus, /v1/now for `top`. The jobs notice nothing.",
    .synopsis = "[OPTION...]",
    .refuse = refuse_agent,
    .run = ni_agent_run,
    .opt = agent_opt,
    .more =
        "Without --foreground it goes to the background once it serves. SIGTERM ends it, SIGHUP reads the "
        "settings again. As root it sees the jobs of all users, each with that user's rights; else one's "
        "own.",
    .exits = {{"0", "ended as asked for"}, {"1", "could not run: the message says why"}},
    .examples = {{"--foreground", "what is served, on http://" NI_AGENT_LISTEN "/metrics"},
                 {"-c FILE --listen 0.0.0.0:9777",
                  "for a Prometheus elsewhere: FILE names token, certificate and key"}},
    .files = {{"/etc/nccl-inspector/agent.conf", "settings of the systemd unit; without it the defaults"}}};

int ni_agent_options_parse(struct ni_agent_options *o, int argc, char **argv, int *done) {
  *o = (struct ni_agent_options){.keep_ended_ns = 600 * UINT64_C(1000000000),
                                 .stuck_ns = 300 * UINT64_C(1000000000),
                                 .otlp_every_ns = 15 * UINT64_C(1000000000),
                                 .ras_every_ns = 30 * UINT64_C(1000000000)};
  return ni_words_parse(&ni_agent_command, argc, argv, o, done);
}

void ni_agent_options_free(struct ni_agent_options *o) {
  ni_inputs_free(&o->log_dirs);
  ni_argv_free(&o->on_hang);
}

/* ---- top ---- */

static const char *refuse_top(void *into) {
  const struct ni_top_options *o = into;
  if (o->prometheus && o->json)
    return "--json and --prometheus: one of them; a Prometheus answers in JSON by itself (URL/api/v1/query)";
  return o->prometheus && o->agents.n ? "--agent and --prometheus: one of them" : NULL;
}

static const struct ni_opt top_opt[] = {
    {"agent", 'a', NI_OPT_INPUTS, "HOST:PORT",
     "Ask the agent there (repeatable); without it this node's logs and black boxes", TOP(agents)},
    {"prometheus", 0, NI_OPT_TEXT, "URL", "Ask a Prometheus that scrapes the agents", TOP(prometheus),
     .min = 1},
    {"token-file", 0, NI_OPT_TEXT, "FILE", "Its first line is sent as a bearer token", TOP(token_file),
     .min = 1},
    {"ca", 0, NI_OPT_TEXT, "FILE", "Certificates (PEM) that are trusted", TOP(ca), .min = 1},
    {"log-dir", 0, NI_OPT_INPUTS, "DIR", "Logs of this node's jobs also lie here (repeatable)",
     TOP(log_dirs)},
    NI_ROW_BOX_DIR(struct ni_top_options),
    {"every", 'd', NI_OPT_TAKE, "TIME", "Between looks", TOP(every_ns), .def = "1s", .take = ni_parse_period,
     .want = "a time from 10ms to 1h, such as 1s or 500ms"},
    {"once", '1', NI_OPT_FLAG, NULL, "Print one screen as text and end", TOP(once)},
    NI_ROW_JSON(struct ni_top_options, "now"),
    {"sort", 's', NI_OPT_CHOICE, "rank|age|bandwidth|late", "Order of the ranks", TOP(sort),
     .want = "rank|age|bandwidth|late"},
    {"filter", 'f', NI_OPT_TEXT, "TEXT", "Only ranks with TEXT in their job, host, communicator or function",
     TOP(filter)},
    {"no-color", 0, NI_OPT_FLAG, NULL, "No colours", TOP(no_colour)},
    {0}};

const struct ni_command ni_top_command = {.name = "top",
                                          .need = NI_NEED_DURING,
                                          .purpose = "what every rank does now, on a screen",
                                          .about =
                                              "One screen: jobs, ranks, the operation that each is in and "
                                              "for how long, bandwidth, who is waited for, GPUs and NICs.",
                                          .synopsis = "[OPTION...]",
                                          .refuse = refuse_top,
                                          .run = ni_top_run,
                                          .opt = top_opt,
                                          .exits = {{"0", "ended as asked for"},
                                                    {"1", "could not run: the message says why"},
                                                    {"2", "nothing to show: no job here"}},
                                          .examples = {{"", "this node, as root all users' jobs"},
                                                       {"-a n1:9777 -a n2:9777", "two nodes with agents"},
                                                       {"--once", "for a script or a mail"}}};

int ni_top_options_parse(struct ni_top_options *o, int argc, char **argv, int *done) {
  *o = (struct ni_top_options){0};
  return ni_words_parse(&ni_top_command, argc, argv, o, done);
}

void ni_top_options_free(struct ni_top_options *o) {
  ni_inputs_free(&o->log_dirs);
  ni_inputs_free(&o->agents);
}

/* ---- nccl-inspector becomes the program beside it ---- */

int ni_live_become(const char *name, int argc, char **argv) {
  enum { WORDS = 4096 };
  char path[PATH_MAX], *word[WORDS + 3] = {path, (char *)name};
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof NI_LIVE_PROGRAM);
  char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
  if (!slash || argc > WORDS) {
    ni_say(stderr, "%s: %s\n", argv[0], strerror(slash ? E2BIG : errno));
    return NI_EXIT_COULD_NOT_RUN;
  }
  memcpy(slash + 1, NI_LIVE_PROGRAM, sizeof NI_LIVE_PROGRAM);
  for (int i = 1; i < argc; i++)
    word[i + 1] = argv[i];
  execv(path, word);
  if (errno == ENOENT)
    ni_say(stderr,
           "%s: %s is not there: it is built where libmicrohttpd-dev, libcurl4-gnutls-dev and libncurses-dev "
           "are installed\n",
           argv[0], path);
  else
    ni_say(stderr, "%s: %s: %s\n", argv[0], path, strerror(errno));
  return NI_EXIT_COULD_NOT_RUN;
}

int ni_agent_run(int argc, char **argv) {
  struct ni_agent_options o;
  int done, code = ni_agent_options_parse(&o, argc, argv, &done);
  ni_agent_options_free(&o);
  return done ? code : ni_live_become(ni_agent_command.name, argc, argv);
}

int ni_top_run(int argc, char **argv) {
  struct ni_top_options o;
  int done, code = ni_top_options_parse(&o, argc, argv, &done);
  ni_top_options_free(&o);
  return done ? code : ni_live_become(ni_top_command.name, argc, argv);
}
