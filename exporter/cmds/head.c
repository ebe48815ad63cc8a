#include "head.h"

#include <string.h>

#include "exporter/cmds/counters/recorder.h"
#include "live.h"

/* ---- head ---- */

const char *ni_head_refuse(void *options) {
  const struct ni_head_options *o = options;
  if (!o->tls_cert != !o->tls_key)
    return "--tls-cert and --tls-key go together";
  if (o->client_ca && !o->tls_cert)
    return "--client-ca: wants --tls-cert and --tls-key";
  return !o->port && !o->http_port ? "--port and --http-port: one of them at least" : NULL;
}

static const struct ni_opt head_opt[] = {
    NI_ROWS_HEAD("127.0.0.1", "8091"),
    {"data-dir", 0, NI_OPT_TEXT, "DIR",
     "What it knows of sessions (default: .nccl-inspector-sessions in the working folder)",
     NI_HEAD_INTO(data_dir), .min = 1},
    {"out-dir", 0, NI_OPT_TEXT, "DIR", "Where sessions' files go, NAME.json (default: the working folder)",
     NI_HEAD_INTO(out_dir), .min = 1},
    {"client-ca", 0, NI_OPT_TEXT, "FILE", "Clients need a certificate that one of these (PEM) signed",
     NI_HEAD_INTO(client_ca), .min = 1},
    {"cors", 0, NI_OPT_INPUTS, "ORIGIN",
     "Pages from there may ask, such as http://localhost:3000 (repeatable)", NI_HEAD_INTO(origins)},
    {0}};

const struct ni_command ni_head_command = {
    .name = "head",
    .need = NI_NEED_DURING,
    .purpose = "takes what the agents of a cluster say, for sessions",
    .about =
        "One process for a cluster: agents and gsprof's clients send to it. Sessions are begun and ended "
        "with `session`; each becomes a file of frames on a steady grid.",
    .synopsis = "[OPTION...]",
    .opt = head_opt,
    .refuse = ni_head_refuse,
    .run = ni_head_run,
    .more =
        "It stays in the foreground. SIGTERM ends it; what runs then goes on when it is begun again in the "
        "same folder.",
    .exits = {{"0", "ended as asked for"}, {"1", "could not run: the message says why"}},
    .examples = {{"", "on this machine alone: gRPC on 127.0.0.1:8090, HTTP on " NI_HEAD_HTTP},
                 {"--host 0.0.0.0 --token-file FILE --tls-cert C --tls-key K", "for a cluster"}},
    .files = {{".nccl-inspector-sessions/", "frames and states of sessions"},
              {"NAME.json", "a session's file"}}};

int ni_head_options_parse(struct ni_head_options *o, int argc, char **argv, int *done) {
  *o = (struct ni_head_options){0};
  return ni_words_parse(&ni_head_command, argc, argv, o, done);
}

void ni_head_options_free(struct ni_head_options *o) { ni_inputs_free(&o->origins); }

int ni_head_run(int argc, char **argv) {
  struct ni_head_options o;
  int done, code = ni_head_options_parse(&o, argc, argv, &done);
  ni_head_options_free(&o);
  return done ? code : ni_live_become(ni_head_command.name, argc, argv);
}

/* ---- session ---- */

#define SESSION(member) NI_INTO(struct ni_session_options, member)
#define ROWS_HEAD \
  {"head", 0, NI_OPT_TEXT, "HOST:PORT", "HTTP of the head", SESSION(head), .def = NI_HEAD_HTTP, .min = 1}, \
      NI_ROWS_TRUST(SESSION)
#define ROW_NAME(called) {NULL, 0, NI_OPT_TAKE, called, NULL, .take = parse_name, .want = "one name"}
#define ROW_DATA \
  {"data-dir", \
   0, \
   NI_OPT_TEXT, \
   "DIR", \
   "The head's folder (default: .nccl-inspector-sessions, or gsprof's .gswarm_profiler_data)", \
   SESSION(data_dir), \
   .min = 1}
#define ROW_RAW(request) \
  {"json", 0, NI_OPT_FLAG, NULL, "What the head says to " request ", as JSON", SESSION(json)}
#define EXITS {{"0", "done"}, {"1", "the head refused, or cannot be reached"}}

static int parse_name(const struct ni_opt *opt, void *into, const char *arg) {
  struct ni_session_options *o = into;
  if (o->name || !*arg)
    return -EINVAL;
  o->name = arg;
  return 0;
}

static const char *refuse_stop(void *into) {
  const struct ni_session_options *o = into;
  return o->all && o->name ? "--all and a name: one of them" : NULL;
}

static const char *refuse_resume(void *into) {
  return ((struct ni_session_options *)into)->name ? NULL : "which session? give its name or id";
}

static const char *refuse_recover(void *into) {
  const struct ni_session_options *o = into;
  if (o->id && o->name)
    return "--session-id and --name: one of them";
  const bool wants_one = o->file || o->resume;
  return wants_one && !o->id && !o->name ? "--export and --resume want --session-id or --name" : NULL;
}

static const char *refuse_export(void *into) {
  const struct ni_session_options *o = into;
  if (!o->name)
    return "which session? give its name";
  if (o->prometheus && !o->since.base)
    return "--from-prometheus wants --since (and --until, else until now)";
  if (o->prometheus && (o->since.base == NI_WHEN_AFTER_START || o->until.base == NI_WHEN_AFTER_START))
    return "--since and --until: a time, or -10m: before now";
  return !o->prometheus && (o->since.base || o->until.base) ? "--since and --until go with --from-prometheus"
                                                            : NULL;
}

static const char *refuse_stat(void *into) {
  const struct ni_session_options *o = into;
  const char *end = o->plot ? strrchr(o->plot, '.') : NULL;
  const bool is_drawn =
      end && (strcmp(end, ".pdf") == 0 || strcmp(end, ".png") == 0 || strcmp(end, ".svg") == 0);
  if (o->plot && !is_drawn)
    return "--plot: want a file that ends with .pdf, .png or .svg";
  return NULL;
}

#define NAMED(word_) .name = "session " #word_, .need = NI_NEED_DURING, .run = ni_session_##word_##_run
const struct ni_command ni_session_start_command = {
    NAMED(start),
    .purpose = "begins a session at the head",
    .about = "Begins a session; prints its name and file.",
    .opt = (const struct ni_opt[]){ROW_NAME("[NAME]"), ROWS_HEAD, {0}},
    .more =
        "A name has 1 to 128 of A-Z a-z 0-9 . _ - and space; it is never a path. Without one it is made of "
        "the time. Any number of sessions may run at once, of a name one.",
    .exits = EXITS,
    .examples = {{"warm-up", "until `session stop warm-up`"}}};
const struct ni_command ni_session_stop_command = {
    NAMED(stop),
    .purpose = "ends a session",
    .about = "Ends a session; without a name the only one that runs.",
    .refuse = refuse_stop,
    .opt =
        (const struct ni_opt[]){
            ROW_NAME("[NAME]"), {"all", 0, NI_OPT_FLAG, NULL, "All that run", SESSION(all)}, ROWS_HEAD, {0}},
    .exits = EXITS,
    .examples = {{"warm-up", "warm-up.json is whole then, in the folder of the head"}}};
const struct ni_command ni_session_resume_command = {
    NAMED(resume),
    .purpose = "goes on with a session that ended",
    .about = "Goes on with a session that ended, with its next frame number.",
    .refuse = refuse_resume,
    .opt = (const struct ni_opt[]){ROW_NAME("NAME"), ROWS_HEAD, {0}},
    .more = "Of sessions of one name the newest; an id, as `session recover` lists them, names any.",
    .exits = EXITS,
    .examples = {{"warm-up", "until `session stop warm-up`"}}};
const struct ni_command ni_session_status_command = {
    NAMED(status),
    .purpose = "the head, its nodes and what runs",
    .about = "What the head does, who sends to it, and which sessions run.",
    .opt = (const struct ni_opt[]){ROWS_HEAD, ROW_RAW("GET /status"), {0}},
    .exits = EXITS,
    .examples = {{"", "of the head on this machine"}}};
const struct ni_command ni_session_list_command = {
    NAMED(list),
    .purpose = "all sessions of the head",
    .about = "All sessions that the head knows, those that ended as well.",
    .opt = (const struct ni_opt[]){ROWS_HEAD, ROW_RAW("GET /profiling/sessions"), {0}},
    .exits = EXITS,
    .examples = {{"--head n0:8091", "of a head elsewhere"}}};
const struct ni_command ni_session_recover_command = {
    NAMED(recover),
    .purpose = "what a head left on the disk",
    .refuse = refuse_recover,
    .about =
        "Sessions in a head's folder, also without a head: how many frames there are, and their files anew.",
    .opt =
        (const struct ni_opt[]){
            {"list", 'l', NI_OPT_FLAG, NULL, "Only say what is there, as without any option", SESSION(list)},
            {"session-id", 0, NI_OPT_TEXT, "ID", "This session", SESSION(id), .min = 1},
            {"name", 'n', NI_OPT_TEXT, "NAME", "The newest session of this name", SESSION(name), .min = 1},
            {"export", 'e', NI_OPT_TEXT, "FILE", "Write its file anew; -: to standard output", SESSION(file),
             .min = 1},
            {"resume", 0, NI_OPT_FLAG, NULL, "Ask the head to go on with it", SESSION(resume)},
            ROW_DATA,
            ROWS_HEAD,
            {0}},
    .exits = {{"0", "done"}, {"1", "there is no such session, or it cannot be read or resumed"}},
    .examples = {{"", "what is there"}, {"--name warm-up --export warm-up.json", "after a crash"}}};
const struct ni_command ni_session_export_command = {
    NAMED(export),
    .purpose = "a session's file anew, also from a Prometheus",
    .refuse = refuse_export,
    .about =
        "Writes a session's file anew from a head's folder, or makes one of what a Prometheus has of the "
        "agents.",
    .opt =
        (const struct ni_opt[]){
            ROW_NAME("NAME"),
            {"out", 'o', NI_OPT_TEXT, "FILE", "Where to (default NAME.json); -: to standard output",
             SESSION(file), .min = 1},
            {"from-prometheus", 0, NI_OPT_TEXT, "URL", "Ask this Prometheus, which scrapes agents",
             SESSION(prometheus), .min = 1},
            {"since", 0, NI_OPT_WHEN, "TIME",
             "From then on: 2026-11-21T08:00:00Z, seconds since 1970, -10m before now", SESSION(since)},
            {"until", 0, NI_OPT_WHEN, "TIME", "Until then (now)", SESSION(until)},
            {"every", 0, NI_OPT_TAKE, "TIME", "A frame each so often", SESSION(every_ns), .def = "5s",
             .take = ni_parse_period, .want = "a time from 10ms to 1h, such as 5s"},
            {"token-file", 0, NI_OPT_TEXT, "FILE",
             "Its first line is sent to the Prometheus as a bearer token", SESSION(token_file), .min = 1},
            {"ca", 0, NI_OPT_TEXT, "FILE", "Certificates (PEM) that are trusted", SESSION(ca), .min = 1},
            ROW_DATA,
            {0}},
    .exits = {{"0", "done"}, {"1", "there is nothing, or it cannot be read or written"}},
    .examples = {{"--from-prometheus http://p:9090 --since -1h n", "n.json, of the last hour"}}};
const struct ni_command ni_session_stat_command = {
    NAMED(stat),
    .purpose = "figures and pictures of sessions' files",
    .refuse = refuse_stat,
    .about =
        "Means, percentiles and extremes of each GPU, client, NIC and job in sessions' files, ours and "
        "gsprof's; several files beside each other.",
    .opt = (const struct ni_opt[]){{NULL, 0, NI_OPT_INPUTS, "FILE...", NULL, SESSION(files), .min = 1,
                                    .want = "which sessions? give their files"},
                                   {"plot", 'p', NI_OPT_TEXT, "FILE",
                                    "Draw them over time: FILE ends with .pdf, .png or .svg", SESSION(plot),
                                    .min = 1},
                                   {"all", 0, NI_OPT_FLAG, NULL,
                                    "All GPUs, clients, NICs and jobs, not the lowest and highest alone "
                                    "where there are more than four",
                                    SESSION(all)},
                                   NI_ROW_JSON(struct ni_session_options, "session-stat"),
                                   {0}},
    .exits = {{"0", "done"},
              {"1", "a file cannot be read, or a picture not drawn"},
              {"2", "a file is torn or has damaged frames"}},
    .examples = {{"warm-up.json --plot warm-up.pdf", "a session"},
                 {"before.json after.json", "what became different"}}};

#define ENTRY(word_) &ni_session_##word_##_command
const struct ni_command *const ni_session_commands[NI_SESSION_WORDS] = {
    ENTRY(start), ENTRY(stop),    ENTRY(resume), ENTRY(status),
    ENTRY(list),  ENTRY(recover), ENTRY(export), ENTRY(stat)};

int ni_session_options_parse(enum ni_session_word which, struct ni_session_options *o, int argc, char **argv,
                             int *done) {
  *o = (struct ni_session_options){0};
  return ni_words_parse(ni_session_commands[which], argc, argv, o, done);
}

void ni_session_options_free(struct ni_session_options *o) { ni_inputs_free(&o->files); }

static int exec_session(enum ni_session_word which, int argc, char **argv) {
  struct ni_session_options o;
  int done, code = ni_session_options_parse(which, &o, argc, argv, &done);
  ni_session_options_free(&o);
  return done ? code : ni_live_become(ni_session_commands[which]->name, argc, argv);
}
int ni_session_start_run(int argc, char **argv) { return exec_session(NI_SESSION_START, argc, argv); }
int ni_session_stop_run(int argc, char **argv) { return exec_session(NI_SESSION_STOP, argc, argv); }
int ni_session_resume_run(int argc, char **argv) { return exec_session(NI_SESSION_RESUME, argc, argv); }
int ni_session_status_run(int argc, char **argv) { return exec_session(NI_SESSION_STATUS, argc, argv); }
int ni_session_list_run(int argc, char **argv) { return exec_session(NI_SESSION_LIST, argc, argv); }
int ni_session_recover_run(int argc, char **argv) { return exec_session(NI_SESSION_RECOVER, argc, argv); }
int ni_session_export_run(int argc, char **argv) { return exec_session(NI_SESSION_EXPORT, argc, argv); }
int ni_session_stat_run(int argc, char **argv) { return exec_session(NI_SESSION_STAT, argc, argv); }
