#include "session.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "exporter/base/array.h"
#include "exporter/base/out_file.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/json_write.h"
#include "exporter/base/text/table.h"
#include "exporter/base/text/time_text.h"
#include "exporter/http/fetch.h"
#include "exporter/session/stat/stat.h"
#include "exporter/session/recover.h"
#include "prometheus.h"

/* ---- asking the head ---- */

struct one {
  char *out;
  size_t cap;
};
static void take_one(void *arg, const char *const *cell) {
  struct one *t = arg;
  ni_safe_text(cell[0], t->out, t->cap);
}

const char *ni_head_said_text(const struct ni_head_said *said, const char *key, char *out, size_t cap) {
  *out = 0;
  ni_answer_rows(said->text, said->bytes, "", &key, 1, take_one, &(struct one){out, cap});
  return out;
}

/* Of an answer to a request, and of a list: 16,384 clients of 8 GPUs are 30 MB. */
enum { TOLD_MAX = 1 << 20, ASKED_MAX = 128 << 20 };

static void take_answer(void *arg, size_t i, const char *text, size_t bytes, const char *error) {
  struct ni_head_said *said = arg;
  if (bytes && (said->text = malloc(bytes + 1))) {
    memcpy(said->text, text, bytes);
    said->text[said->bytes = bytes] = 0;
  }
  char detail[300], refused[8];
  ni_head_said_text(said, error ? "detail" : "message", detail, sizeof detail);
  if (error)
    snprintf(said->error, sizeof said->error, "%s%s%s", error, *detail ? ": " : "", detail);
  else if (strcmp(ni_head_said_text(said, "success", refused, sizeof refused), "false") == 0)
    snprintf(said->error, sizeof said->error, "%s", *detail ? detail : "the head refused");
}

const char *ni_head_trust(const struct ni_session_options *o, char token[NI_FETCH_TOKEN]) {
  const char *wrong = ni_fetch_token(o->token_file, token);
  if (!o->cert != !o->key)
    return "--cert and --key go together";
  return o->cert && !o->ca ? "--cert and --key want --ca" : wrong;
}

/*
 * Is it what a head says, ours or gsprof's? Whatever else answers there would be believed to have begun a
 * session. A head says of each request whether it did it, and of what is only asked a number.
 */
static bool of_a_head(const char *path, const char *body, const struct ni_head_said *said) {
  const char *key = body              ? "success"
      : strcmp(path, "/status") == 0  ? "freq"
      : strcmp(path, "/clients") == 0 ? "total_clients"
                                      : "total_sessions";
  char value[64];
  ni_head_said_text(said, key, value, sizeof value);
  if (!said->text || said->text[strspn(said->text, " \t\r\n")] != '{')
    return false;
  return body ? strcmp(value, "true") == 0 : *value && !value[strspn(value, "0123456789")];
}

bool ni_head_ask(const struct ni_session_options *o, const char *path, const char *body,
                 struct ni_head_said *said) {
  char token[NI_FETCH_TOKEN];
  *said = (struct ni_head_said){0};
  const char *wrong = ni_head_trust(o, token);
  char *url = wrong ? NULL : ni_fetch_url(o->head, o->ca != NULL, NI_HEAD_HTTP_PORT, path);
  const struct ni_fetch_as as = {.token = *token ? token : NULL,
                                 .ca = o->ca,
                                 .cert = o->cert,
                                 .key = o->key,
                                 .direct = true,
                                 .most = body ? TOLD_MAX : ASKED_MAX};
  if (wrong)
    snprintf(said->error, sizeof said->error, "%s", wrong);
  else if (!url || ni_fetch_once(url, body, &as, take_answer, said) < 0)
    snprintf(said->error, sizeof said->error, "no memory");
  if (!*said->error && !of_a_head(path, body, said))
    snprintf(said->error, sizeof said->error,
             "what answers at %s is no head: name the HTTP port of one (%u) by --head", o->head,
             NI_HEAD_HTTP_PORT);
  free(url);
  explicit_bzero(token, sizeof token);
  return !*said->error;
}

bool ni_head_ask_name(const struct ni_session_options *o, const char *path, const char *name,
                      struct ni_head_said *said) {
  struct ni_json j;
  char *body = NULL;
  size_t n;
  FILE *f = open_memstream(&body, &n);
  if (f) {
    ni_json_open(&j, f, NULL);
    ni_json_text(&j, "name", name);
    ni_json_end_object(&j);
  }
  *said = (struct ni_head_said){.error = "no memory"};
  bool good = f && fclose(f) == 0 && ni_head_ask(o, path, body, said);
  free(body);
  return good;
}

/* ---- tables ---- */

/* What a head says, as people read it: "true" is yes, 0.362287 seconds are 362 ms, 1234567 is 1,234,567. */
static const char *for_people(const struct ni_column *column, const char *said, char out[32]) {
  char *end;
  if (column->left || column->below)
    return said;
  if (strcmp(column->head, "runs") == 0)
    return *said == 't' ? "yes" : "no";
  const double v = strtod(said, &end);
  if (end == said || *end || !(fabs(v) < 9e9))
    return said;
  if (strcmp(column->head, "age") == 0)
    return ni_duration_text(v * 1e6, out);
  if (strcmp(column->head, "skew") == 0)
    return ni_span_text((int64_t)(v * 1e9), out);
  return ni_count_text((int64_t)v, out);
}

static void add_row(void *table, const char *const *cell) {
  struct ni_table *t = table;
  char text[32];
  for (size_t k = 0; k < t->n_columns; k++)
    ni_table_cell(t, "%s", for_people(&t->column[k], cell[k], text));
}

/* The objects of an array, a column a key. False: it is no such answer. */
static bool print_rows(const struct ni_head_said *said, const char *at, const struct ni_column *column,
                       const char *const *key, size_t n, const char *none) {
  struct ni_table t;
  ni_table_begin(&t, column, n);
  long rows = ni_answer_rows(said->text, said->bytes, at, key, n, add_row, &t);
  ni_table_print(&t, stdout);
  if (rows == 0)
    ni_say(stdout, "%s\n", none);
  return rows >= 0;
}

enum { SESSION_COLUMNS = 9 };
static const struct ni_column session_column[SESSION_COLUMNS] = {
    {"session", .left = true}, {.head = "runs"},
    {"begun", .left = true},   {"ended", .left = true, .drop = 1},
    {.head = "frames"},        {"lost", .drop = 2},
    {"late", .drop = 3},       {"file", .left = true},
    {"", .below = true}};
static const char *const session_key[SESSION_COLUMNS] = {
    "name", "active", "start_time", "end_time", "frames", "frames_lost", "late", "output_file", "error"};
static bool print_sessions(const struct ni_head_said *said, const char *none) {
  return print_rows(said, "/sessions", session_column, session_key, SESSION_COLUMNS, none);
}

/*
 * Who sends to the head is called by its node, as everywhere else; by its id at the head, which begins with
 * that name, only where several send from one node.
 */
enum { NODE_COLUMNS = 9, NODE_ID = NODE_COLUMNS, NODE_KEYS };
struct nodes {
  struct ni_table table;
  char **host;
  size_t n, cap;
};

static void take_node(void *arg, const char *const *cell) {
  struct nodes *x = arg;
  char *copy = ni_array_room(x->host, x->n, x->cap) ? strdup(cell[0]) : NULL;
  if (copy)
    x->host[x->n++] = copy;
}

static void add_node_row(void *arg, const char *const *cell) {
  struct nodes *x = arg;
  size_t same = 0;
  for (size_t i = 0; i < x->n; i++)
    same += strcmp(x->host[i], cell[0]) == 0;
  ni_table_cell(&x->table, "%s", same == 1 && *cell[0] ? cell[0] : cell[NODE_ID]);
  for (size_t k = 1; k < NODE_COLUMNS; k++) {
    char text[32];
    ni_table_cell(&x->table, "%s", for_people(&x->table.column[k], cell[k], text));
  }
}

static bool print_nodes(const struct ni_head_said *said) {
  static const struct ni_column column[NODE_COLUMNS] = {
      {"node", .left = true}, {"state", .left = true}, {.head = "GPUs"},
      {.head = "age"},        {"skew", .drop = 1},     {"taken", .drop = 2},
      {"late", .drop = 3},    {.head = "lost"},        {"version", .left = true, .drop = 4}};
  static const char *const key[NODE_KEYS] = {"hostname", "state", "gpu_count", "age_s",   "skew_s",
                                             "taken",    "late",  "lost",      "version", "client_id"};
  struct nodes x = {0};
  ni_answer_rows(said->text, said->bytes, "/clients", key, 1, take_node, &x);
  ni_table_begin(&x.table, column, NODE_COLUMNS);
  long rows = ni_answer_rows(said->text, said->bytes, "/clients", key, NODE_KEYS, add_node_row, &x);
  ni_table_print(&x.table, stdout);
  if (rows == 0)
    ni_say(stdout, "no node is connected\n");
  for (size_t i = 0; i < x.n; i++)
    free(x.host[i]);
  free(x.host);
  return rows >= 0;
}

static void take_none(void *arg, const char *const *cell) {
  (void)arg;
  (void)cell;
}

/* As it came, in one line. False: nothing is there, it is no head. */
static bool print_raw(const struct ni_head_said *said, const char *at) {
  return ni_answer_rows(said->text, said->bytes, at, NULL, 0, take_none, NULL) >= 0 &&
      ni_say(stdout, "%s\n", said->text) > 0;
}

static bool print_status(const struct ni_session_options *o, struct ni_head_said *said) {
  char freq[32], bandwidth[8], nvlink[8], gpus[32];
  if (!*ni_head_said_text(said, "freq", freq, sizeof freq))
    return false;
  ni_say(stdout, "head %s: a frame each %s ms, bandwidth %s, NVLink %s, %s GPUs\n\n", o->head, freq,
         *ni_head_said_text(said, "enable_bandwidth_profiling", bandwidth, sizeof bandwidth) == 't' ? "on"
                                                                                                    : "off",
         *ni_head_said_text(said, "enable_nvlink_profiling", nvlink, sizeof nvlink) == 't' ? "on" : "off",
         NI_COUNT(strtoll(ni_head_said_text(said, "total_gpus", gpus, sizeof gpus), NULL, 10)));
  struct ni_head_said clients;
  bool good = ni_head_ask(o, "/clients", NULL, &clients);
  if (!good)
    snprintf(said->error, sizeof said->error, "%s", clients.error);
  else
    good = print_nodes(&clients);
  free(clients.text);
  if (good)
    ni_say(stdout, "\n");
  return good && print_sessions(said, "no session runs");
}

/* ---- the commands ---- */

struct running {
  unsigned n;
  char name[256];
};
static void count_running(void *arg, const char *const *cell) {
  struct running *r = arg;
  if (strcmp(cell[1], "true") == 0 && r->n++ == 0)
    snprintf(r->name, sizeof r->name, "%s", cell[0]);
}

/* Without a name: the only one that runs. */
static bool stop(const struct ni_session_options *o, struct ni_head_said *said) {
  struct running running = {0};
  if (o->name || o->all)
    return ni_head_ask_name(o, "/profiling/stop", o->name, said);
  if (!ni_head_ask(o, "/profiling/sessions", NULL, said))
    return false;
  ni_answer_rows(said->text, said->bytes, "/sessions", session_key, 2, count_running, &running);
  free(said->text);
  if (running.n == 1)
    return ni_head_ask_name(o, "/profiling/stop", running.name, said);
  *said = (struct ni_head_said){0};
  if (running.n)
    snprintf(said->error, sizeof said->error, "%u sessions run: which one? --all ends all", running.n);
  else
    snprintf(said->error, sizeof said->error, "no session runs");
  return false;
}

static bool ask(enum ni_session_word which, const struct ni_session_options *o, struct ni_head_said *said) {
  char text[512], file[512];
  bool good;
  switch (which) {
    case NI_SESSION_START:
      if (!(good = ni_head_ask_name(o, "/profiling/start", o->name, said)))
        return false;
      ni_head_said_text(said, "output_file", text, sizeof text);
      ni_say(stdout, "%.*s runs; its file will be %s\n",
             (int)(o->name ? strlen(o->name) : strcspn(text, ".")), o->name ? o->name : text, text);
      return true;
    case NI_SESSION_STOP:
      if ((good = stop(o, said)))
        ni_say(stdout, "%s\n", ni_head_said_text(said, "message", text, sizeof text));
      return good;
    case NI_SESSION_RESUME:
      if (!(good = ni_head_ask_name(o, "/profiling/resume", o->name, said)))
        return false;
      ni_head_said_text(said, "name", text, sizeof text);
      return ni_say(stdout, "%s goes on; its file will be %s\n", text,
                    ni_head_said_text(said, "output_file", file, sizeof file)) > 0;
    case NI_SESSION_STATUS:
      return ni_head_ask(o, "/status", NULL, said) &&
          (o->json ? print_raw(said, "/freq") : print_status(o, said));
    default: /* list */
      if (!ni_head_ask(o, "/profiling/sessions", NULL, said))
        return false;
      return o->json ? print_raw(said, "/sessions") : print_sessions(said, "the head knows no session");
  }
}

static bool to_head(enum ni_session_word which, const struct ni_session_options *o, const char *who) {
  struct ni_head_said said = {0};
  bool good = ask(which, o, &said);
  if (!good)
    ni_say(stderr, "%s: %s: %s\n", who, o->head, *said.error ? said.error : "it is no head");
  free(said.text);
  return good;
}

/* ---- without a head ---- */

static const char *folder_of(const struct ni_session_options *o) {
  static const char *const usual[] = {".nccl-inspector-sessions", ".gswarm_profiler_data"};
  return o->data_dir ? o->data_dir : usual[access(usual[0], F_OK) != 0 && access(usual[1], F_OK) == 0];
}

static bool list_store(const struct ni_session_options *o, char *why, size_t cap) {
  static const struct ni_column column[] = {{"session", .left = true}, {"id", .left = true}, {.head = "runs"},
                                            {"begun", .left = true},   {.head = "frames"},   {.head = "lost"},
                                            {.head = "late"},          {"", .below = true}};
  struct ni_session *list = NULL;
  struct ni_table t;
  char begun[40];
  int n = ni_store_read(folder_of(o), &list, why, cap);
  ni_table_begin(&t, column, sizeof column / sizeof *column);
  for (int i = 0; i < n; i++) {
    const struct ni_session *s = list + i;
    const char *cell[] = {s->name, s->id, s->active ? "yes" : "no",
                          ni_utc_text(s->start_ns / 1000, 'T', 0, begun)};
    for (size_t k = 0; k < sizeof cell / sizeof *cell; k++)
      ni_table_cell(&t, "%s", cell[k]);
    ni_table_cell(&t, "%s", NI_COUNT(s->frames));
    ni_table_cell(&t, "%s", NI_COUNT(s->frames_lost));
    ni_table_cell(&t, "%s", NI_COUNT(s->late));
    ni_table_cell(&t, "%s", s->error);
  }
  ni_table_print(&t, stdout);
  if (n == 0)
    ni_say(stdout, "no session is there\n");
  free(list);
  return n >= 0;
}

/* The session's file, whole or not at all; a file that is there is only replaced where it was named. */
static bool write_file(const struct ni_session_options *o, char *why, size_t cap) {
  const char *which = o->id ? o->id : o->name;
  struct ni_out_stream out;
  char own[300];
  snprintf(own, sizeof own, "%s.json", which);
  if (!o->file && strchr(own, '/')) {
    snprintf(why, cap, "'%s' is no name of a session", which);
    return false;
  }
  const char *path = o->file ? o->file : own;
  int e = ni_out_open(&out, strcmp(path, "-") != 0 ? path : NULL);
  if (e == 0 && o->prometheus)
    e = ni_prometheus_export(o, out.f, out.why, sizeof out.why);
  else if (e == 0)
    e = ni_store_export(folder_of(o), which, out.f, out.why, sizeof out.why);
  const bool said = *out.why;
  e = ni_out_close(&out, e, o->file != NULL);
  if (e == -EEXIST)
    snprintf(why, cap, "%s is there: --out names another", own);
  else if (e && said)
    snprintf(why, cap, "%s", out.why);
  else if (e)
    snprintf(why, cap, "%s: %s", path, strerror(-e));
  return e == 0;
}

static int run_stat(const struct ni_session_options *o, const char *who) {
  struct ni_stat_files all = {0};
  char why[512] = "";
  int code = NI_EXIT_FINE;
  for (size_t i = 0; i < o->files.n && code != NI_EXIT_COULD_NOT_RUN; i++) {
    int e = ni_stat_add(&all, o->files.path[i], why, sizeof why);
    if (e || *why)
      ni_say(stderr, "%s: %s: %s\n", who, o->files.path[i], why);
    if (e || *why)
      code = e ? NI_EXIT_COULD_NOT_RUN : NI_EXIT_INCOMPLETE;
    *why = 0;
  }
  if (code != NI_EXIT_COULD_NOT_RUN) {
    if (o->json)
      ni_stat_json(&all, stdout);
    else
      ni_stat_print(&all, o->all, stdout);
    if (o->plot && ni_stat_plot(&all, o->plot, why, sizeof why) != 0) {
      ni_say(stderr, "%s: %s\n", who, why);
      code = NI_EXIT_COULD_NOT_RUN;
    }
  }
  ni_stat_free(&all);
  return code;
}

int ni_session_main(enum ni_session_word which, int argc, char **argv) {
  struct ni_session_options o;
  char why[512] = "";
  int done, code = ni_session_options_parse(which, &o, argc, argv, &done);
  bool offline = which == NI_SESSION_EXPORT || (which == NI_SESSION_RECOVER && o.file), good = true;
  if (done || which == NI_SESSION_STAT) {
    code = done ? code : run_stat(&o, argv[0]);
  } else if (which == NI_SESSION_RECOVER && o.resume) {
    struct ni_head_said said;
    char name[300], file[512];
    good = ni_head_ask_name(&o, "/profiling/resume", o.id ? o.id : o.name, &said);
    if (!good)
      snprintf(why, sizeof why, "%s", said.error);
    else
      ni_say(stdout, "%s goes on; its file will be %s\n", ni_head_said_text(&said, "name", name, sizeof name),
             ni_head_said_text(&said, "output_file", file, sizeof file));
    free(said.text);
  } else if (offline) {
    good = write_file(&o, why, sizeof why);
  } else if (which == NI_SESSION_RECOVER) {
    good = list_store(&o, why, sizeof why);
  } else if (!to_head(which, &o, argv[0])) {
    code = NI_EXIT_COULD_NOT_RUN;
  }
  if (!good)
    ni_say(stderr, "%s: %s: %s\n", argv[0],
           o.resume           ? o.head
               : o.prometheus ? o.prometheus
                              : folder_of(&o),
           why);
  ni_session_options_free(&o);
  return good ? code : NI_EXIT_COULD_NOT_RUN;
}
