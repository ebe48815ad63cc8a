#include "service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/process/secret.h"
#include "exporter/cmds/head.h"
#include "exporter/rpc/messages.h"
#include "exporter/rpc/rpc.h"
#include "log.h"

#define SECOND INT64_C(1000000000)
#define WAIT_NS (30 * SECOND)   /* between Connect and the stream */
#define WINDOW_NS (30 * SECOND) /* in which a client's shortest way is looked for */

enum method {
  /* gsprof's */
  CONNECT,
  STREAM,
  STATUS,
  START,
  STOP,
  EXIT,
  READ_CLUSTER,
  READ_NODE,
  SET_BANDWIDTH,
  SET_NVLINK,
  AGENT,
  METHODS
};
static const char *const path_of[METHODS] = {NI_GSPROF "Connect",
                                             NI_GSPROF "StreamMetrics",
                                             NI_GSPROF "GetStatus",
                                             NI_GSPROF "StartProfiling",
                                             NI_GSPROF "StopProfiling",
                                             NI_GSPROF "Exit",
                                             NI_GSPROF "ReadClusterStatus",
                                             NI_GSPROF "ReadNodeStatus",
                                             NI_GSPROF "SetBandwidthProfiling",
                                             NI_GSPROF "SetNVLinkProfiling",
                                             NI_HEAD_STREAM};

struct call {
  enum method method;
  struct ni_rpc_call *rpc;
  struct ni_client *client; /* of a stream: whose it is; NULL: nobody has said */
  char peer[64];
  bool here;                    /* from this machine */
  bool answered;                /* a unary call has its answer, */
  char *name;                   /* or waits for it: a stop; for free() */
  int64_t asked_ns;             /* since then */
  uint64_t said;                /* AGENT: acknowledged up to this one */
  int64_t said_ns;              /* AGENT: when it was told something */
  int64_t echo_ns, received_ns; /* AGENT */
  /* STREAM: since when the shortest way is looked for; of this window and of the one before */
  int64_t window_ns, way[2];
  struct call *next; /* open streams of agents, and of gsprof's clients */
};
struct waiting { /* called Connect, and streams nothing yet */
  struct ni_client *client;
  char peer[64];
  int64_t until_ns;
  struct waiting *next;
};
struct ni_service {
  struct ni_core *core;
  struct ni_rpc *rpc;
  struct call *calls;
  struct waiting *waiting;
  char *token, *cert, *key, *ca;
  bool open, insecure;
};

/* ---- who may do what ---- */

static enum ni_rpc_status begin(void *arg, struct ni_rpc_call *rpc, const char *path,
                                const struct ni_rpc_peer *peer, void **data) {
  struct ni_service *s = arg;
  enum method m = 0;
  while (m < METHODS && strcmp(path, path_of[m]) != 0)
    m++;
  if (m == METHODS)
    return NI_RPC_UNIMPLEMENTED;
  bool may = s->token ? peer->trusted : s->open || peer->loopback;
  if (!may && !(s->insecure && m <= STATUS))
    ni_head_log("refused %s to %s", strrchr(path, '/') + 1, peer->name);
  if (!may && !(s->insecure && m <= STATUS))
    return s->token ? NI_RPC_UNAUTHENTICATED : NI_RPC_DENIED;
  struct call *c = calloc(1, sizeof *c);
  if (!c)
    return NI_RPC_EXHAUSTED;
  c->method = m;
  c->rpc = rpc;
  c->here = peer->loopback;
  c->next = s->calls;
  snprintf(c->peer, sizeof c->peer, "%s", peer->name);
  s->calls = c;
  *data = c;
  return NI_RPC_OK;
}

/* ---- clients of gsprof ---- */

static struct waiting **waits(struct ni_service *s, const char *host, const char *peer) {
  struct waiting **w = &s->waiting;
  while (*w && (strcmp((*w)->peer, peer) != 0 || strcmp((*w)->client->host, host) != 0))
    w = &(*w)->next;
  return w;
}

/* the latter beyond this machine */
enum { NAMES_A_CONNECTION = 64, NAMES_AN_ADDRESS = NI_GRID_CLIENTS_MAX / 4 };

/*
 * How many clients came by this connection, or from its address, and are not forgotten: nobody fills the
 * table alone.
 */
static bool too_many(const struct ni_service *s, const struct call *c, const char *uuid, const char *host) {
  struct ni_client *const *list;
  bool known = false;
  size_t n = ni_grid_clients(s->core->grid, &list), own = 0, all = 0,
         address = (size_t)(strrchr(c->peer, ':') + 1 - c->peer);
  for (size_t i = 0; i < n; i++) {
    own += strcmp(list[i]->from, c->peer) == 0;
    all += strncmp(list[i]->from, c->peer, address) == 0;
  }
  for (size_t i = 0; i < n && !known; i++)
    known = *uuid ? strcmp(list[i]->uuid, uuid) == 0
                  : !*list[i]->uuid && !list[i]->connected && strcmp(list[i]->host, host) == 0;
  return !known && (own >= NAMES_A_CONNECTION || (!c->here && all >= NAMES_AN_ADDRESS));
}

/* NULL: too many clients. */
static struct ni_client *come(struct ni_service *s, const struct call *from, const char *uuid,
                              const char *host, struct ni_sample *gpus) {
  char id[sizeof s->calls->client->id];
  if (too_many(s, from, uuid, host)) {
    free(gpus);
    return NULL;
  }
  if (*uuid)
    snprintf(id, sizeof id, "%.200s_%.8s", host, uuid);
  else
    snprintf(id, sizeof id, "%.200s_%.63s", host, from->peer);
  s->core->changes++;
  ni_head_log("client %s came", id);
  struct ni_client *c = ni_grid_connect(s->core->grid, uuid, host, id, gpus);
  if (c && !*c->from)
    snprintf(c->from, sizeof c->from, "%s", from->peer);
  return c;
}

/* One of a client's streams ended, or none came. It stays while it has another one. */
static void go(struct ni_service *s, struct ni_client *client) {
  bool other = !client;
  for (struct call *c = s->calls; c && !other; c = c->next)
    other = c->client == client;
  for (struct waiting *w = s->waiting; w && !other; w = w->next)
    other = w->client == client;
  if (other)
    return;
  ni_head_log("client %s went", client->id);
  ni_grid_disconnect(s->core->grid, client);
  s->core->changes++;
}

static void connect_client(struct ni_service *s, struct call *c, const void *bytes, size_t len,
                           struct ni_reply *r) {
  char host[NI_HOST_MAX];
  struct ni_sample *gpus = NULL;
  if (!ni_initial_decode(bytes, len, host, &gpus)) {
    snprintf(r->message, sizeof r->message, "InitialInfo is no sound message");
    return;
  }
  uint32_t n = gpus->n_gpus;
  struct waiting **was = waits(s, host, c->peer), *w = *was;
  struct ni_client *client = w ? w->client : come(s, c, "", host, gpus);
  if (w)
    free(gpus);
  else if (client && (w = malloc(sizeof *w))) {
    *w = (struct waiting){.client = client, .until_ns = s->core->now_ns + WAIT_NS, .next = s->waiting};
    memcpy(w->peer, c->peer, sizeof w->peer);
    s->waiting = w;
  }
  r->success = client;
  snprintf(r->message, sizeof r->message,
           client ? "Connected successfully. Registered %u GPUs." : "There are too many clients (%u GPUs).",
           n);
}

/*
 * gsprof's clients say their own time, if any: how far it is from ours is the shortest way of the last 30 to
 * 60 s, so that what a client kept while it was cut off gets the time when it was taken, and a clock that was
 * set is followed.
 */
static void our_time(struct ni_service *s, struct call *c, struct ni_sample *sample) {
  int64_t now = ni_core_now(s->core), way = now - sample->time_ns;
  if (!sample->time_ns) {
    sample->time_ns = now;
    return;
  }
  /* as its stream before said */
  if (!c->window_ns && c->client->taken)
    c->way[0] = c->way[1] = -c->client->skew_ns;
  else if (!c->window_ns)
    c->way[0] = c->way[1] = way;
  if (now - c->window_ns > WINDOW_NS) {
    if (c->window_ns) {
      c->way[1] = c->way[0];
      c->way[0] = way;
    }
    c->window_ns = now;
  }
  if (way < c->way[0])
    c->way[0] = way;
  c->client->skew_ns = -(c->way[0] < c->way[1] ? c->way[0] : c->way[1]);
  sample->time_ns -= c->client->skew_ns;
}

/* The stream takes the client that called Connect on the same connection. */
static void update(struct ni_service *s, struct call *c, const void *bytes, size_t len) {
  char host[NI_HOST_MAX];
  struct ni_sample *sample = NULL;
  if (!ni_update_decode(bytes, len, host, &sample))
    return ni_rpc_finish(c->rpc, NI_RPC_INVALID, "MetricsUpdate is no sound message");
  if (!c->client) {
    struct waiting **w = waits(s, host, c->peer), *was = *w;
    c->client = was ? was->client : come(s, c, "", host, NULL);
    if (was) {
      *w = was->next;
      free(was);
    }
  }
  if (c->client) {
    our_time(s, c, sample);
    return ni_core_take(s->core, c->client, sample);
  }
  free(sample);
  ni_rpc_finish(c->rpc, NI_RPC_EXHAUSTED, "there are too many clients");
}

/* ---- our agents ---- */

static void say(struct ni_service *s, struct call *c, bool welcome) {
  struct ni_pb_writer w = {0};
  const struct ni_from_head m = {.welcome = welcome,
                                 .protocol = NI_PROTOCOL,
                                 .version = NI_VERSION,
                                 .have = c->said,
                                 .period_ns = s->core->period_ns,
                                 .bandwidth = s->core->bandwidth,
                                 .echo_ns = c->echo_ns,
                                 .received_ns = c->received_ns,
                                 .now_ns = ni_core_now(s->core)};
  ni_head_encode(&w, &m);
  c->said_ns = s->core->now_ns;
  if (w.failed || ni_rpc_send(c->rpc, w.bytes, w.n) < 0)
    c->said = 0; /* again with the next one */
  ni_pb_free(&w);
}

static void hello(struct ni_service *s, struct call *c, const struct ni_hello *h) {
  struct ni_client *client = c->client;
  if (!client) {
    for (struct call *o = s->calls; o; o = o->next) /* the connection before, which nobody has missed yet */
      if (o != c && o->method == AGENT && o->client && strcmp(o->client->uuid, h->uuid) == 0) {
        struct ni_client *was = o->client;
        o->client = NULL;
        go(s, was);
        ni_rpc_finish(o->rpc, NI_RPC_UNAVAILABLE, "the agent has come by another connection");
      }
    client = c->client = *h->uuid ? come(s, c, h->uuid, h->host, NULL) : NULL;
    if (!client)
      return ni_rpc_finish(c->rpc, *h->uuid ? NI_RPC_EXHAUSTED : NI_RPC_INVALID,
                           *h->uuid ? "too many clients" : "no uuid");
    uint64_t have = client->durable ? client->durable : ni_store_resumed_seq(s->core->store, h->uuid);
    bool other = client->epoch && h->epoch && client->epoch != h->epoch;
    if (other || have >= h->next) {
      ni_core_anew(s->core, client);
      have = 0;
    } /* its numbers began anew */
    client->epoch = h->epoch;
    client->durable = have;
    memcpy(client->version, h->version, sizeof client->version);
    if (client->seq < have)
      client->seq = client->safe = have;
    c->said = have;
    say(s, c, true);
  }
  client->skew_ns = h->skew_ns;
}

static void from_agent(struct ni_service *s, struct call *c, const void *bytes, size_t len) {
  struct ni_from_agent m = {0};
  if (!ni_agent_decode(bytes, len, &m))
    return ni_rpc_finish(c->rpc, NI_RPC_INVALID, "no sound message");
  if (m.hello)
    hello(s, c, m.hello);
  free(m.hello);
  if (!m.sample)
    return;
  c->echo_ns = m.sent_ns;
  c->received_ns = ni_core_now(s->core);
  if (c->client && m.sample->seq > c->client->seq)
    ni_core_take(s->core, c->client, m.sample);
  else
    free(m.sample); /* it is here already */
}

/* Also without news each 10 s: an agent that hears nothing takes the head for gone. */
void ni_service_acknowledge(struct ni_service *s) {
  for (struct call *c = s->calls; c; c = c->next) {
    bool news = c->method == AGENT && c->client && c->client->durable > c->said;
    if (!news && (c->method != AGENT || !c->client || s->core->now_ns - c->said_ns < 10 * SECOND))
      continue;
    if (news)
      c->said = c->client->durable;
    say(s, c, false);
  }
}

/* ---- calls with one answer ---- */

static void status(struct ni_service *s, struct ni_pb_writer *w) {
  struct ni_client *const *list;
  struct ni_session session;
  size_t n = ni_grid_clients(s->core->grid, &list), at = 0;
  const char **id = calloc(n + 1, sizeof *id);
  struct ni_status is = {.freq_ms = (uint32_t)(s->core->period_ns / 1000000),
                         .bandwidth = s->core->bandwidth,
                         .nvlink = s->core->nvlink,
                         .profiling = ni_store_running(s->core->store) > 0,
                         .output = "",
                         .client = id};
  for (size_t i = 0; id && i < n; i++)
    if (list[i]->connected)
      id[at++] = list[i]->id;
  is.n_clients = at;
  if (ni_store_current(s->core->store, &session)) {
    is.output = session.file;
    is.frames = (uint32_t)session.frames;
  }
  ni_status_encode(w, &is);
  free(id);
}

static bool is_called(const struct ni_client *c, const char *name) {
  return strcmp(c->host, name) == 0 || strcmp(c->id, name) == 0;
}

static void nodes(struct ni_service *s, struct ni_pb_writer *w, const char *only) {
  struct ni_client *const *list;
  size_t n = ni_grid_clients(s->core->grid, &list), told = 0;
  const struct ni_reply r = {.success = true, .message = "Cluster status retrieved successfully"};
  ni_reply_encode(w, &r);
  for (size_t i = 0; i < n; i++)
    if (list[i]->connected && list[i]->last && (!only || is_called(list[i], only))) {
      ni_node_encode(w, only ? 3 : 4, list[i]->id, list[i]->last);
      if (told++, only)
        break;
    }
}

/* It may have to wait for the disk; ni_service_turn() asks again. False: it does. */
static bool stop(struct ni_service *s, struct call *c, struct ni_reply *r) {
  struct ni_session last;
  int e = ni_core_stop(s->core, c->name, c->asked_ns, &last, r->message, sizeof r->message);
  r->success = e == 0;
  return e != -EAGAIN;
}

static void finish(struct ni_service *s, struct call *c, struct ni_pb_writer *w, const struct ni_reply *r);

static void answer(struct ni_service *s, struct call *c, const void *bytes, size_t len) {
  struct ni_core *core = s->core;
  struct ni_pb_writer w = {0};
  struct ni_reply r = {0};
  struct ni_session session;
  char name[NI_HOST_MAX] = "";
  bool given = false, flag = false, sound = true;
  if (c->answered)
    return;
  c->answered = true;
  if (c->method == START || c->method == STOP || c->method == READ_NODE)
    sound = ni_name_decode(bytes, len, name, &given);
  if (c->method == SET_BANDWIDTH || c->method == SET_NVLINK)
    sound = ni_enable_decode(bytes, len, &flag);
  if (!sound)
    return ni_rpc_finish(c->rpc, NI_RPC_INVALID, "no sound message");
  if (given && !(c->name = strdup(name)))
    return ni_rpc_finish(c->rpc, NI_RPC_EXHAUSTED, "no memory");
  switch (c->method) {
    case CONNECT:
      connect_client(s, c, bytes, len, &r);
      break;
    case STATUS:
      status(s, &w);
      break;
    case START:
      r.success = ni_core_start(core, c->name, &session, r.message, sizeof r.message) == 0;
      if (r.success)
        snprintf(r.output, sizeof r.output, "%s", session.file);
      break;
    case STOP:
      c->asked_ns = core->now_ns;
      if (!stop(s, c, &r))
        return;
      break;
    case EXIT:
      core->ended = true;
      break;
    case READ_CLUSTER:
    case READ_NODE:
      nodes(s, &w, c->method == READ_NODE ? name : NULL);
      break;
    default:
      if (c->method == SET_BANDWIDTH)
        core->bandwidth = flag;
      else
        core->nvlink = flag;
      ni_store_flags(core->store, core->bandwidth, core->nvlink);
      core->changes++;
      r.success = true;
      snprintf(r.message, sizeof r.message, "%s profiling %s",
               c->method == SET_BANDWIDTH ? "Bandwidth" : "NVLink", flag ? "enabled" : "disabled");
  }
  finish(s, c, &w, &r);
}

/* The call is the library's from here on, and may end at once. */
static void finish(struct ni_service *s, struct call *c, struct ni_pb_writer *w, const struct ni_reply *r) {
  c->asked_ns = 0;
  if (c->method >= START && c->method != READ_CLUSTER && c->method != READ_NODE)
    ni_head_log("%s%s%s by %s: %s", strrchr(path_of[c->method], '/') + 1, c->name ? " " : "",
                c->name ? c->name : "", c->peer, r->message);
  if (c->method != STATUS && c->method != EXIT && c->method != READ_CLUSTER && c->method != READ_NODE)
    ni_reply_encode(w, r);
  if (!w->failed && ni_rpc_send(c->rpc, w->bytes, w->n) == 0)
    ni_rpc_finish(c->rpc, NI_RPC_OK, "");
  else
    ni_rpc_finish(c->rpc, NI_RPC_EXHAUSTED, "no memory");
  ni_pb_free(w);
}

static void message(void *arg, struct ni_rpc_call *rpc, void *data, const void *bytes, size_t len) {
  struct call *c = data;
  if (c->method == STREAM)
    update(arg, c, bytes, len);
  else if (c->method == AGENT)
    from_agent(arg, c, bytes, len);
  else
    answer(arg, c, bytes, len);
}

/* half: a stream of metrics is answered at its end, with an empty message. */
static void end(void *arg, struct ni_rpc_call *rpc, void *data, bool half, enum ni_rpc_status code,
                const char *text) {
  struct ni_service *s = arg;
  struct call *c = data, **at = &s->calls;
  if (half) {
    if (c->method == STREAM)
      (void)ni_rpc_send(rpc, "", 0);
    if (c->method == STREAM || c->method == AGENT)
      ni_rpc_finish(rpc, NI_RPC_OK, "");
    else if (!c->answered)
      ni_rpc_finish(rpc, NI_RPC_INVALID, "a message is missing");
    return;
  }
  while (*at && *at != c)
    at = &(*at)->next;
  if (*at)
    *at = c->next;
  go(s, c->client);
  free(c->name);
  free(c);
}

/* ---- begin and end ---- */

static bool beyond(const char *host) {
  return strncmp(host, "127.", 4) != 0 && strcmp(host, "localhost") != 0 && strcmp(host, "::1") != 0;
}

int ni_service_open(struct ni_service **out, struct ni_core *core, const struct ni_head_options *o, char *why,
                    size_t cap) {
  static const struct ni_rpc_handler handler = {begin, message, end};
  struct ni_service *s = calloc(1, sizeof *s);
  char at[300];
  bool fine = s;
  snprintf(why, cap, "%s", strerror(ENOMEM));
  const bool is_guarded = o->token_file && o->tls_cert, is_meant_so = o->open || o->insecure_gsprof;
  if (fine && beyond(o->host) && !is_guarded && !is_meant_so) {
    fine = false;
    snprintf(why, cap,
             "--host=%s: others reach that. Give --token-file, --tls-cert and --tls-key, or --open to let "
             "everybody do everything, or --insecure-gsprof to take metrics from everybody",
             o->host);
  }
  if (fine && o->token_file)
    fine = (s->token = ni_secret_read("token-file", o->token_file, true, why, cap));
  bool tls = o->tls_cert && !o->insecure_gsprof; /* gsprof's clients know no TLS */
  if (fine && tls)
    fine = (s->cert = ni_secret_read("tls-cert", o->tls_cert, false, why, cap)) &&
        (s->key = ni_secret_read("tls-key", o->tls_key, true, why, cap));
  if (fine && tls && o->client_ca)
    fine = (s->ca = ni_secret_read("client-ca", o->client_ca, false, why, cap));
  int e = -EINVAL;
  if (fine) {
    s->core = core;
    s->open = o->open;
    s->insecure = o->insecure_gsprof;
    const struct ni_rpc_options ro = {
        .token = s->token, .cert = s->cert, .key = s->key, .ca = s->ca, .need_client_cert = s->ca};
    snprintf(at, sizeof at, strchr(o->host, ':') ? "[%s]:%u" : "%s:%u",
             strcmp(o->host, "localhost") == 0 ? "127.0.0.1" : o->host, (unsigned)o->port);
    char said[300];
    e = ni_rpc_listen(&s->rpc, at, &ro, &handler, s, said, sizeof said);
    if (e < 0)
      snprintf(why, cap, "--port=%u: %s", (unsigned)o->port, said);
  }
  if (e < 0 && s)
    ni_service_close(s);
  else if (e == 0)
    *out = s;
  return e;
}

void ni_service_close(struct ni_service *s) {
  if (s->rpc)
    ni_rpc_close(s->rpc); /* ends all calls */
  for (struct waiting *w; (w = s->waiting); free(w))
    s->waiting = w->next;
  ni_secret_free(s->token);
  ni_secret_free(s->cert);
  ni_secret_free(s->key);
  ni_secret_free(s->ca);
  free(s);
}

uint16_t ni_service_port(const struct ni_service *s) { return ni_rpc_port(s->rpc); }
int ni_service_fd(const struct ni_service *s) { return ni_rpc_fd(s->rpc); }

void ni_service_turn(struct ni_service *s) {
  ni_rpc_turn(s->rpc);
  for (struct call *c = s->calls, *next; c; c = next) {
    struct ni_pb_writer w = {0};
    struct ni_reply r = {0};
    next = c->next;
    if (c->asked_ns && stop(s, c, &r))
      finish(s, c, &w, &r);
  }
  for (struct waiting **w = &s->waiting, *was; (was = *w);)
    if (s->core->now_ns > was->until_ns) {
      *w = was->next;
      go(s, was->client);
      free(was);
    } else {
      w = &was->next;
    }
}
