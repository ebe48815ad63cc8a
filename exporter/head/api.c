#include "api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api_json.h"
#include "body.h"
#include "exporter/cmds/head.h"
#include "exporter/http/http.h"
#include "exporter/output/report/page_file.h"
#include "history.h"
#include "log.h"

#define SECOND INT64_C(1000000000)

struct ni_api {
  struct ni_core *core;
  struct ni_http *http;
  const char **origin; /* the server's, too */
  uint64_t told;       /* changes that streams know */
  int64_t told_ns;     /* and since when */
  int64_t frame_ns;    /* of the newest frame that they know */
  struct ni_history history;
  uint64_t refused; /* requests since the log said so */
  int64_t refused_ns;
};

/* ---- answers ---- */

static void text(struct ni_http_answer *a, unsigned status, const char *type, const char *body) {
  a->status = status;
  a->type = type;
  a->body = strdup(body);
  a->len = a->body ? strlen(body) : 0;
}

static void refuse(struct ni_http_answer *a, unsigned status, const char *why) {
  a->status = status;
  a->why = why;
}

/* An object between two texts, for free(); NULL without memory. json_write.h makes no line feeds inside. */
static char *object(const char *before, ni_api_members *members, const void *of, const char *behind,
                    size_t *len) {
  struct ni_json j;
  char *out = NULL;
  FILE *f = open_memstream(&out, len);
  if (!f)
    return NULL;
  fputs(before, f);
  ni_json_open(&j, f, NULL);
  members(&j, of);
  ni_json_end_object(&j);
  fputs(behind, f);
  return fclose(f) == 0 ? out : (free(out), *len = 0, NULL);
}

static void json(struct ni_http_answer *a, unsigned status, ni_api_members *members, const void *of) {
  a->status = status;
  a->type = "application/json";
  a->body = object("", members, of, "", &a->len);
}

static void unfit_members(struct ni_json *j, const void *of) {
  const struct ni_body *b = of;
  ni_json_array(j, "detail");
  ni_json_object(j, NULL);
  ni_json_text(j, "type", b->type);
  ni_json_array(j, "loc");
  ni_json_text(j, NULL, "body");
  if (b->place && *b->place)
    ni_json_text(j, NULL, b->place);
  else if (b->place)
    ni_json_u64(j, NULL, 0);
  ni_json_end_array(j);
  ni_json_text(j, "msg", b->message);
  fputs(",\"input\":", j->f);
  /* it is JSON that body.cc wrote */
  fwrite(b->input ? b->input : "null", 1, b->input ? strlen(b->input) : 4, j->f);
  ni_json_end_object(j);
  ni_json_end_array(j);
}

/* Numbers may be those of a moment ago; that a session runs or has ended is said at once. */
static void made(struct ni_http_answer *a, const struct ni_core *c, ni_api_members *members) {
  json(a, 200, members, c);
  a->shared = members == ni_api_latest || members == ni_api_clients;
}

struct told {
  bool success, file; /* file: the answer names the session's file */
  const char *message;
  const struct ni_session *session;
};
static void told_members(struct ni_json *j, const void *of) {
  const struct told *t = of;
  ni_json_bool(j, "success", t->success);
  ni_json_text(j, "message", t->message);
  ni_json_text(j, "output_file", !t->file ? NULL : t->success ? t->session->file : "");
  ni_json_text(j, "session_id", t->success ? t->session->id : NULL);
  ni_json_text(j, "name", t->success ? t->session->name : NULL);
}

/* ---- routes ---- */

typedef void route(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a);

static void root(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  text(a, 200, "application/json",
       "{\"message\":\"GSwarm Profiler HTTP "
       "API\",\"version\":\"0.1.0\",\"server\":\"nccl-inspector " NI_VERSION "\"}");
}
static void status(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  (void)q;
  made(a, api->core, ni_api_status);
}
static void sessions(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  (void)q;
  made(a, api->core, ni_api_sessions);
}
static void clients(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  (void)q;
  made(a, api->core, ni_api_clients);
}
static void latest(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  (void)q;
  made(a, api->core, ni_api_latest);
}

/* What start, stop and resume have in common. */
enum act { START, STOP, RESUME };
static void act(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a,
                enum act what) {
  struct ni_body b;
  struct ni_session s;
  char message[512] = "";
  ni_body_name(&b, q->body, q->len, q->content_type, what != STOP);
  if (b.type) {
    json(a, 422, unfit_members, &b);
    return free(b.input);
  }
  const char *name = b.given ? b.name : NULL;
  int64_t asked_ns = api->core->ahead_ns + (int64_t)q->asked_ns;
  int e = what == START ? ni_core_start(api->core, name, &s, message, sizeof message)
      : what == STOP    ? ni_core_stop(api->core, name, asked_ns, &s, message, sizeof message)
                        : ni_core_resume(api->core, b.name, asked_ns, &s, message, sizeof message);
  if ((a->later = e == -EAGAIN))
    return;
  ni_head_log("%s%s%s by %s: %s", (const char *[]){"start", "stop", "resume"}[what], name ? " " : "",
              name ? name : "", q->peer, message);
  json(a, 200, told_members,
       &(struct told){.success = e == 0, .file = what != STOP, .message = message, .session = &s});
}
static void start(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  act(api, q, a, START);
}
static void stop(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  act(api, q, a, STOP);
}
static void resume(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  act(api, q, a, RESUME);
}

static void health_members(struct ni_json *j, const void *of) {
  const char *degraded = of;
  ni_json_text(j, "status", *degraded ? "degraded" : "ok");
  if (*degraded)
    ni_json_text(j, "why", degraded);
}
static void health(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  (void)q;
  json(a, *api->core->degraded ? 503 : 200, health_members, api->core->degraded);
}

/* Events of server-sent events, each a line of JSON, for free(). */
static char *state_event(const struct ni_core *c) {
  size_t len;
  return object("event: state\ndata: ", ni_api_status, c, "\n\n", &len);
}
static char *frame_event(const struct ni_api *api, size_t points) {
  size_t len;
  char *frame = object("event: frame\ndata: ", ni_api_frame, api->core, "\n\n", &len), *out = NULL;
  FILE *f = frame ? open_memstream(&out, &len) : NULL;
  if (f) {
    fprintf(f, "event: points\ndata: [");
    ni_history_put(&api->history, points, f);
    fprintf(f, "]\n\n%s", frame);
    if (fclose(f) != 0) {
      free(out);
      out = NULL;
    }
  }
  free(frame);
  return out;
}

/* A new stream begins with all there is. */
static void events(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  char *state = state_event(api->core), *frame = frame_event(api, NI_HISTORY_POINTS);
  a->status = 200;
  a->type = "text/event-stream";
  a->stream = true;
  if (state && frame && asprintf(&a->body, "%s%s", state, frame) < 0)
    a->body = NULL;
  a->len = a->body ? strlen(a->body) : 0;
  free(state);
  free(frame);
}

static void page(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  if (!ni_report_available())
    return refuse(a, 404, "this build has no page: it was built without npm");
  FILE *f = open_memstream(&a->body, &a->len);
  a->status = 200;
  a->type = "text/html; charset=utf-8";
  if (!f)
    return;
  ni_report_text(NI_PAGE_HEAD, "null", 4, f);
  fclose(f);
}

static void end(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  ni_head_log("exit by %s", q->peer);
  api->core->ended = true;
  text(a, 200, "application/json",
       "{\"success\":true,\"message\":\"The head ends; sessions that run can be resumed.\"}");
}

/* The description of all this, a file of its own; head_http.sh holds answers to it. */
extern const char ni_openapi[];
__asm__(
    ".pushsection .rodata\n.global ni_openapi\nni_openapi:\n.incbin \"exporter/head/openapi.json\"\n.byte "
    "0\n.popsection\n");
static void describe(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  (void)api;
  (void)q;
  text(a, 200, "application/json", ni_openapi);
}

/* FastAPI has two pages there that load programs from elsewhere. What they show is the description. */
static void docs(struct ni_api *api, const struct ni_http_request *q, struct ni_http_answer *a) {
  (void)api;
  (void)q;
  refuse(a, 307, "see /openapi.json");
  a->header = "Location";
  a->header_value = "/openapi.json";
}

static const struct {
  const char *method, *path;
  route *run;
} routes[] = {
    {"GET", "/", root},
    {"GET", "/status", status},
    {"GET", "/health", health},
    {"GET", "/clients", clients},
    {"GET", "/metrics/latest", latest},
    {"GET", "/profiling/sessions", sessions},
    {"POST", "/profiling/start", start},
    {"POST", "/profiling/stop", stop},
    {"POST", "/profiling/resume", resume},
    {"POST", "/exit", end},
    {"GET", "/events", events},
    {"GET", "/openapi.json", describe},
    {"GET", "/page", page},
    {"GET", "/docs", docs},
    {"GET", "/redoc", docs},
};
enum { ROUTES = sizeof routes / sizeof *routes };

static void handle(void *arg, const struct ni_http_request *q, struct ni_http_answer *a) {
  size_t n = strlen(q->path);
  const char *method = strcmp(q->method, "HEAD") == 0 ? "GET" : q->method, *other = NULL;
  char path[256];
  snprintf(path, sizeof path, "%s", q->path);
  if (n > 1 && n < sizeof path && path[n - 1] == '/')
    path[n - 1] = 0;
  for (size_t i = 0; i < ROUTES; i++) {
    if (strcmp(routes[i].path, path) != 0)
      continue;
    if (strlen(path) != n) { /* FastAPI's redirect */
      refuse(a, 307, "without the slash");
      a->header = "Location";
      a->header_value = routes[i].path;
      return;
    }
    if (strcmp(routes[i].method, method) == 0)
      return routes[i].run(arg, q, a);
    other = routes[i].method;
  }
  refuse(a, other ? 405 : 404, other ? "Method Not Allowed" : "Not Found");
  if (other) {
    a->header = "Allow";
    a->header_value = other;
  }
}

/* ---- begin, turn, end ---- */

int ni_api_open(struct ni_api **out, struct ni_core *core, const struct ni_head_options *o, char *why,
                size_t cap) {
  struct ni_api *api = calloc(1, sizeof *api);
  if (api)
    api->origin = calloc(o->origins.n + 1, sizeof *api->origin);
  char listen[300];
  /* Without token and TLS it stays here; only gsprof's clients may come from elsewhere then. */
  bool here = o->insecure_gsprof && !o->open && !(o->token_file && o->tls_cert);
  int e = -ENOMEM;
  snprintf(why, cap, "%s", strerror(ENOMEM));
  if (api && api->origin) {
    api->core = core;
    for (size_t i = 0; i < o->origins.n; i++)
      api->origin[i] = o->origins.path[i];
    snprintf(listen, sizeof listen, strchr(o->host, ':') && !here ? "[%s]:%u" : "%s:%u",
             here ? "127.0.0.1" : o->host, (unsigned)o->http_port);
    const struct ni_http_options h = {.option = "--http-port",
                                      .listen = listen,
                                      .token_file = o->token_file,
                                      .tls_cert = o->tls_cert,
                                      .tls_key = o->tls_key,
                                      .client_ca = o->client_ca,
                                      .open = o->open,
                                      .posts = true,
                                      .json = true,
                                      .connections = 256,
                                      .anyone = "/page" /* it has no figures */,
                                      .origin = api->origin};
    e = ni_http_open(&api->http, &h, handle, api, why, cap);
  }
  if (e == 0)
    *out = api;
  else if (api) {
    free(api->origin);
    free(api);
  }
  return e;
}

void ni_api_close(struct ni_api *api) {
  ni_http_close(api->http);
  ni_history_free(&api->history);
  free(api->origin);
  free(api);
}

const char *ni_api_url(const struct ni_api *api) { return ni_http_url(api->http); }
int ni_api_fd(const struct ni_api *api) { return ni_http_fd(api->http); }

void ni_api_turn(struct ni_api *api) {
  uint64_t answered = 0, refused = 0;
  struct ni_core *c = api->core;
  bool heard = ni_http_streams(api->http);
  char *text = NULL;
  if (heard && api->told != c->changes && c->now_ns - api->told_ns >= SECOND && (text = state_event(c))) {
    ni_http_event(api->http, text);
    api->told = c->changes;
    api->told_ns = c->now_ns;
  }
  free(text);
  if (c->frame_ns - api->frame_ns >= SECOND) {
    api->frame_ns = c->frame_ns;
    ni_history_take(&api->history, c);
    if (heard && (text = frame_event(api, 1))) {
      ni_http_event(api->http, text);
      free(text);
    }
  }
  ni_http_turn(api->http, &answered, &refused);
  api->refused += refused;
  if (!api->refused || c->now_ns - api->refused_ns < 10 * SECOND)
    return;
  ni_head_log("HTTP refused %llu requests", (unsigned long long)api->refused);
  api->refused = 0;
  api->refused_ns = c->now_ns;
}
