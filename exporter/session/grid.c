#include "grid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

enum { GAPS = 5, STALE_AFTER = 3 };

struct ni_grid_pending {
  struct ni_sample **at; /* of ticks whose frame is not out, by time */
  size_t n, cap;
  struct ni_sample *shown; /* the newest of ticks whose frame is out */
  struct ni_rates rates;
  int64_t gap[GAPS]; /* between the last samples */
  unsigned n_gaps;
};

struct ni_grid {
  int64_t period_ns, out_ns, start_ns, not_before_ns; /* out: tick of the newest frame */
  struct ni_client **client;
  size_t n, cap, cap_of, waits_for; /* the client that was waited for when it was last looked */
  struct ni_frame_client *of;
};

struct ni_grid *ni_grid_new(int64_t period_ns, int64_t now_ns) {
  struct ni_grid *g = calloc(1, sizeof *g);
  if (g)
    *g = (struct ni_grid){
        .period_ns = period_ns, .start_ns = now_ns, .out_ns = now_ns / period_ns * period_ns};
  return g;
}

static void free_client(struct ni_client *c) {
  struct ni_grid_pending *p = c->pending;
  for (size_t i = 0; i < p->n; i++)
    free(p->at[i]);
  free(p->at);
  free(p->shown);
  ni_rates_free(&p->rates);
  free(p);
  free(c);
}

void ni_grid_free(struct ni_grid *g) {
  if (!g)
    return;
  for (size_t i = 0; i < g->n; i++)
    free_client(g->client[i]);
  free(g->client);
  free(g->of);
  free(g);
}

static int64_t tick_of(const struct ni_grid *g, int64_t ns) {
  return (ns + g->period_ns / 2) / g->period_ns * g->period_ns;
}

static struct ni_client *find(const struct ni_grid *g, const char *uuid, const char *host, const char *id) {
  struct ni_client *back = NULL;
  for (size_t i = 0; i < g->n; i++) {
    struct ni_client *c = g->client[i];
    if (*uuid ? !strcmp(c->uuid, uuid) : !*c->uuid && !strcmp(c->id, id))
      return c;
    const bool may_be_back = !*uuid && !*c->uuid && !c->connected;
    if (may_be_back && !back && !strcmp(c->host, host))
      back = c;
  }
  return back;
}

struct ni_client *ni_grid_connect(struct ni_grid *g, const char *uuid, const char *host, const char *id,
                                  struct ni_sample *gpus) {
  struct ni_client *c = find(g, uuid ? uuid : "", host, id);
  if (!c && g->n < NI_GRID_CLIENTS_MAX && ni_array_room(g->client, g->n, g->cap) &&
      (c = calloc(1, sizeof *c))) {
    if (!(c->pending = calloc(1, sizeof *c->pending))) {
      free(c);
      free(gpus);
      return NULL;
    }
    c->number = (uint32_t)g->n;
    snprintf(c->uuid, sizeof c->uuid, "%s", uuid ? uuid : "");
    snprintf(c->host, sizeof c->host, "%s", host);
    snprintf(c->id, sizeof c->id, "%s", id);
    c->interval_ns = g->period_ns;
    g->client[g->n++] = c;
  }
  if (c && gpus && !c->last) {
    gpus->time_ns = 0; /* it says what there is, and no numbers */
    c->last = c->pending->shown = gpus;
  } else {
    free(gpus);
  }
  if (c)
    c->connected = true;
  return c;
}

struct ni_client *ni_grid_remember(struct ni_grid *g, const char *uuid, const char *host, const char *id,
                                   struct ni_sample *gpus, uint64_t seq) {
  struct ni_client *c = ni_grid_connect(g, uuid, host, id, gpus);
  if (!c)
    return NULL;
  c->connected = false;
  c->state = NI_CLIENT_GONE;
  c->seq = c->safe = c->durable = seq;
  if (c->pending->shown)
    c->pending->shown->seq = seq;
  return c;
}

void ni_grid_anew(struct ni_client *c) {
  for (size_t i = 0; i < c->pending->n; i++)
    c->pending->at[i]->seq = 0;
  c->seq = c->safe = c->durable = 0;
}

void ni_grid_disconnect(struct ni_grid *g, struct ni_client *c) { c->connected = false; }

/* How far apart the client's samples are: the middle one of the last gaps, so that a cut is none. */
static void note_gap(struct ni_client *c, int64_t gap) {
  struct ni_grid_pending *p = c->pending;
  int64_t sorted[GAPS];
  p->gap[p->n_gaps++ % GAPS] = gap;
  unsigned n = 0;
  for (unsigned i = 0; i < p->n_gaps && i < GAPS; i++, n++) {
    unsigned k = n;
    for (; k > 0 && sorted[k - 1] > p->gap[i]; k--)
      sorted[k] = sorted[k - 1];
    sorted[k] = p->gap[i];
  }
  c->interval_ns = sorted[n / 2];
}

static void show(struct ni_grid_pending *p, struct ni_sample *s) {
  free(p->shown);
  p->shown = s;
}

static void note_safe(struct ni_client *c) {
  c->safe = c->pending->n ? c->pending->at[0]->seq - (c->pending->at[0]->seq > 0) : c->seq;
}

int ni_grid_put(struct ni_grid *g, struct ni_client *c, struct ni_sample *s, int64_t now_ns,
                ni_grid_late *late, void *arg) {
  struct ni_grid_pending *p = c->pending;
  if (s->seq && s->seq <= c->seq) { /* sent again after a cut */
    c->superseded++;
    free(s);
    return 0;
  }
  if (!ni_array_room(p->at, p->n, p->cap)) {
    free(s);
    return -ENOMEM;
  }
  if (s->time_ns > now_ns + INT64_C(1000000000))
    s->time_ns = now_ns;
  if (s->time_ns < c->newest_ns) { /* its clock went back: it goes on from where it was */
    int64_t most = now_ns > c->newest_ns ? now_ns : c->newest_ns;
    s->time_ns = c->newest_ns + c->interval_ns < most ? c->newest_ns + c->interval_ns : most;
  }
  if (c->newest_ns && s->time_ns > c->newest_ns)
    note_gap(c, s->time_ns - c->newest_ns);
  if (s->seq && c->seq)
    c->lost += s->seq - c->seq - 1;
  c->taken++;
  c->newest_ns = s->time_ns;
  if (s->seq)
    c->seq = s->seq;
  ni_rates_take(&p->rates, s);
  int64_t tick = tick_of(g, s->time_ns);
  if (tick <= g->out_ns) { /* none that waits is older */
    c->late++;
    late(arg, c, s, tick);
    show(p, s);
  } else if (p->n && tick_of(g, p->at[p->n - 1]->time_ns) == tick) {
    c->superseded++;
    free(p->at[p->n - 1]);
    p->at[p->n - 1] = s;
  } else {
    if (p->n == NI_GRID_AHEAD) {
      c->let_go++;
      late(arg, c, p->at[0], tick_of(g, p->at[0]->time_ns));
      free(p->at[0]);
      memmove(p->at, p->at + 1, --p->n * sizeof *p->at);
    }
    p->at[p->n++] = s;
  }
  c->last = s;
  note_safe(c);
  return 0;
}

/*
 * Is there somebody who should have said something of the tick, and has not? Mostly it is still the one of
 * the last look.
 */
static bool waits(struct ni_grid *g, int64_t tick) {
  for (size_t k = 0; k < g->n; k++) {
    size_t i = k ? k - (k <= g->waits_for) : g->waits_for;
    const struct ni_client *c = i < g->n ? g->client[i] : NULL;
    if (!c || !c->connected || c->state != NI_CLIENT_OK || tick_of(g, c->newest_ns) >= tick)
      continue;
    g->waits_for = i;
    return true;
  }
  return false;
}

int64_t ni_grid_due(struct ni_grid *g) {
  int64_t tick = g->out_ns + g->period_ns, due = tick + (waits(g, tick) ? NI_GRID_HOLD_NS : 0);
  return due > g->not_before_ns ? due : g->not_before_ns;
}

static void fill(const struct ni_grid *g, struct ni_client *c, struct ni_frame_client *of) {
  struct ni_grid_pending *p = c->pending;
  size_t n = 0;
  for (; n < p->n && tick_of(g, p->at[n]->time_ns) <= g->out_ns; n++)
    show(p, p->at[n]);
  if (n)
    memmove(p->at, p->at + n, (p->n -= n) * sizeof *p->at);
  note_safe(c);
  int64_t after = c->interval_ns > g->period_ns ? c->interval_ns : g->period_ns, age = INT64_MAX;
  if (p->shown && p->shown->time_ns)
    age = g->out_ns > p->shown->time_ns ? g->out_ns - p->shown->time_ns : 0;
  c->state = age <= STALE_AFTER * after ? NI_CLIENT_OK : c->connected ? NI_CLIENT_STALE : NI_CLIENT_GONE;
  *of = (struct ni_frame_client){
      .client = c, .age_ns = age, .state = c->state, .seq = p->shown ? p->shown->seq : 0};
  if (c->state == NI_CLIENT_OK)
    of->sample = p->shown;
}

bool ni_grid_next(struct ni_grid *g, int64_t now_ns, struct ni_frame *f) {
  if (now_ns < g->out_ns + g->period_ns || now_ns < ni_grid_due(g))
    return false;
  if (g->n && !ni_array_room(g->of, g->n - 1, g->cap_of))
    return false;
  g->out_ns += g->period_ns;
  for (size_t i = 0; i < g->n; i++)
    fill(g, g->client[i], &g->of[i]);
  *f = (struct ni_frame){.tick_ns = g->out_ns, .n = g->n, .of = g->of};
  return true;
}

void ni_grid_from(struct ni_grid *g, int64_t tick_ns) {
  g->out_ns = (tick_ns + g->period_ns - 1) / g->period_ns * g->period_ns - g->period_ns;
  g->not_before_ns = g->start_ns + NI_GRID_BACK_NS;
}

void ni_grid_tidy(struct ni_grid *g) {
  size_t n = 0;
  for (size_t i = 0; i < g->n; i++) {
    struct ni_client *c = g->client[i];
    if (!c->connected && c->state == NI_CLIENT_GONE) {
      free_client(c);
      continue;
    }
    c->number = (uint32_t)n;
    g->client[n++] = c;
  }
  g->n = n;
  g->waits_for = 0;
}

size_t ni_grid_clients(const struct ni_grid *g, struct ni_client *const **list) {
  *list = g->client;
  return g->n;
}
