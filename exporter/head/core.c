#include "core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/cmds/head.h"
#include "exporter/session/roster.h"
#include "log.h"

#define NOTE_NS INT64_C(1000000000)
enum { FRAMES_A_TURN = 16, WAITING = 1024 /* frames that are not on the disk */ };

int64_t ni_core_now(const struct ni_core *c) { return c->ahead_ns + (int64_t)ni_now_ns(CLOCK_MONOTONIC); }

static void remember_client(void *arg, struct ni_rostered *r) {
  struct ni_core *c = arg;
  uint64_t seq = *r->uuid ? ni_store_resumed_seq(c->store, r->uuid) : 0;
  struct ni_client *k = ni_grid_remember(c->grid, r->uuid, r->host, r->id, r->gpus, seq);
  if (!k)
    return;
  k->epoch = r->epoch;
  memcpy(k->version, r->version, sizeof k->version);
}

int ni_core_open(struct ni_core *c, const struct ni_head_options *o, char *why, size_t cap) {
  *c = (struct ni_core){.period_ns = o->freq_ms * 1000000,
                        .bandwidth = o->bandwidth,
                        .nvlink = o->nvlink,
                        .gsprof = o->gsprof,
                        .ahead_ns = (int64_t)(ni_now_ns(CLOCK_REALTIME) - ni_now_ns(CLOCK_MONOTONIC)),
                        .changes = 1};
  c->now_ns = ni_core_now(c);
  const struct ni_store_options s = {.data = o->data_dir,
                                     .output = o->out_dir,
                                     .gsprof = o->gsprof,
                                     .bandwidth = o->bandwidth,
                                     .nvlink = o->nvlink,
                                     .period_ns = (int64_t)c->period_ns};
  int e = ni_store_open(&c->store, &s, why, cap);
  if (e < 0)
    return e;
  c->grid = ni_grid_new((int64_t)c->period_ns, c->now_ns);
  if (!c->grid) {
    ni_store_close(c->store);
    snprintf(why, cap, "%s", strerror(ENOMEM));
    return -ENOMEM;
  }
  c->safe_tick_ns = ni_store_resumed(c->store);
  /* the clock was set back: time goes on from there */
  if (c->safe_tick_ns > c->now_ns)
    c->ahead_ns += c->safe_tick_ns - c->now_ns;
  if (c->safe_tick_ns)
    ni_grid_from(c->grid, c->safe_tick_ns + (int64_t)c->period_ns);
  /* without it only those who come are known */
  if (ni_store_running(c->store))
    (void)ni_store_roster(c->store, remember_client, c);
  return 0;
}

void ni_core_close(struct ni_core *c) {
  if (c->store)
    ni_store_close(c->store);
  if (c->grid)
    ni_grid_free(c->grid);
  for (size_t i = 0; i < c->n_out; i++)
    free(c->out[i].safe);
  free(c->out);
  *c = (struct ni_core){0};
}

/* What the grid calls safe is acknowledged when the frame is on the disk: until then it is kept here. */
static void remember(struct ni_core *c, int64_t tick_ns) {
  struct ni_client *const *list;
  size_t n = ni_grid_clients(c->grid, &list);
  uint64_t *safe = malloc((n ? n : 1) * sizeof *safe);
  /* numbers only grow: the newest says what the one before said */
  if (c->n_out >= WAITING && safe)
    free(c->out[--c->n_out].safe);
  /* a later frame says it, too */
  if (!safe || !ni_array_room(c->out, c->n_out, c->cap_out))
    return free(safe);
  for (size_t i = 0; i < n; i++)
    safe[i] = list[i]->safe;
  c->out[c->n_out++] = (struct ni_core_out){.tick_ns = tick_ns, .n = n, .safe = safe};
}

static void look_at_disk(struct ni_core *c) {
  char degraded[sizeof c->degraded] = "";
  struct ni_client *const *list;
  size_t done = 0;
  int64_t safe = ni_store_safe(c->store, degraded);
  if (strcmp(degraded, c->degraded) != 0) {
    c->changes++;
    ni_head_log("%s%s", *degraded ? "degraded: " : "not degraded any more", degraded);
  }
  memcpy(c->degraded, degraded, sizeof degraded);
  ni_grid_clients(c->grid, &list);
  while (done < c->n_out && c->out[done].tick_ns <= safe)
    done++;
  for (size_t i = 0; done && i < c->out[done - 1].n; i++)
    list[i]->durable = c->out[done - 1].safe[i];
  if (done) {
    c->safe_tick_ns = c->out[done - 1].tick_ns;
    c->acknowledge = true;
  }
  for (size_t i = 0; i < done; i++)
    free(c->out[i].safe);
  if (!done)
    return;
  c->n_out -= done;
  memmove(c->out, c->out + done, c->n_out * sizeof *c->out);
}

static bool next_frame(struct ni_core *c, int64_t now_ns) {
  struct ni_frame f;
  if (!ni_grid_next(c->grid, now_ns, &f))
    return false;
  ni_store_frame(c->store, &f);
  remember(c, f.tick_ns);
  c->frame_ns = f.tick_ns;
  return true;
}

/* made: so many frames of this turn. */
static bool may_make_frame(const struct ni_core *c, int made) {
  return !c->holds && made < FRAMES_A_TURN && (*c->degraded || ni_store_keeps_up(c->store));
}

int64_t ni_core_turn(struct ni_core *c) {
  c->now_ns = ni_core_now(c);
  int made = 0; /* after a long rest in portions: others are to be answered, and the disk is to take them */
  while (may_make_frame(c, made) && next_frame(c, c->now_ns))
    made++;
  c->holds = false;
  look_at_disk(c);
  if (c->n_out == 0 && ni_store_running(c->store) == 0)
    ni_grid_tidy(c->grid); /* places change */
  if (ni_store_running(c->store) && c->noted != c->changes && c->now_ns - c->noted_ns > NOTE_NS) {
    ni_store_note(c->store, c->grid);
    c->noted = c->changes;
    c->noted_ns = c->now_ns;
  }
  int64_t due = ni_grid_due(c->grid);
  return due > c->now_ns || made ? due : c->now_ns + 10000000; /* the disk is waited for */
}

static void late(void *arg, const struct ni_client *from, const struct ni_sample *s, int64_t tick_ns) {
  ni_store_late(((struct ni_core *)arg)->store, from, s, tick_ns);
}

void ni_core_anew(struct ni_core *c, struct ni_client *of) {
  ni_grid_anew(of);
  for (size_t i = 0; i < c->n_out; i++)
    if (of->number < c->out[i].n)
      c->out[i].safe[of->number] = 0;
}

void ni_core_take(struct ni_core *c, struct ni_client *from, struct ni_sample *s) {
  c->changes += !from->taken; /* its GPUs are known now */
  if (ni_grid_put(c->grid, from, s, c->now_ns, late, c) < 0)
    from->lost++; /* without memory */
}

int ni_core_start(struct ni_core *c, const char *name, struct ni_session *out, char *message, size_t cap) {
  int e = ni_store_start(c->store, name, c->now_ns, out, message, cap);
  if (e == 0)
    snprintf(message, cap, "Profiling started.");
  c->changes++;
  c->noted_ns = 0;
  return e;
}

/* All that run, the oldest first: the message names each file; or which session goes on, and why. */
static int stop_all(struct ni_core *c, int64_t now_ns, struct ni_session *last, char *message, size_t cap) {
  struct ni_session *list, one;
  char why[256], wrong[400] = "";
  int n = ni_store_list(c->store, &list), e = n < 0 ? n : 0;
  unsigned stopped = 0, more = 0;
  size_t at = (size_t)snprintf(message, cap, "Profiling stopped. Data saved to ");
  for (int i = n; i-- > 0;) {
    if (!list[i].active)
      continue;
    int failed = ni_store_stop(c->store, list[i].name, now_ns, &one, why, sizeof why);
    if (failed < 0) {
      e = failed;
      snprintf(wrong, sizeof wrong, "%s: %s", list[i].name, why);
    }
    if (failed < 0)
      continue;
    bool fits = cap - at > strlen(one.file) + 40;
    if (fits)
      at += (size_t)snprintf(message + at, cap - at, "%s%s", stopped ? ", " : "", one.file);
    more += !fits;
    stopped++;
    *last = one;
  }
  if (more)
    snprintf(message + at, cap - at, " and %u more", more);
  if (n >= 0)
    free(list);
  if (!stopped && e == 0) {
    snprintf(message, cap, "Profiling is not active.");
    return -ENOENT;
  }
  if (e && *wrong)
    snprintf(message, cap, "%s. %u others have ended", wrong, stopped);
  else if (e)
    snprintf(message, cap, "%s", strerror(-e));
  return e;
}

int ni_core_stop(struct ni_core *c, const char *name, int64_t asked_ns, struct ni_session *last,
                 char *message, size_t cap) {
  /* Frames that wait for somebody are made now: the session has all that was said before its end. */
  int64_t newest = c->frame_ns ? c->frame_ns : c->safe_tick_ns, held = NI_GRID_HOLD_NS + NI_GRID_BACK_NS;
  while (newest && newest + (int64_t)c->period_ns <= asked_ns && next_frame(c, c->now_ns + held))
    newest = c->frame_ns;
  if (c->now_ns - asked_ns < NI_CORE_STOP_NS && !ni_store_flushed(c->store, name)) {
    c->holds = true;
    return -EAGAIN;
  }
  c->changes++;
  bool all = !name || !*name;
  int e = all ? stop_all(c, asked_ns, last, message, cap)
              : ni_store_stop(c->store, name, asked_ns, last, message, cap);
  if (e == 0 && !all)
    snprintf(message, cap, "Profiling stopped. Data saved to %s", last->file);
  return e == -EAGAIN ? -EBUSY : e; /* it took too long */
}

int ni_core_resume(struct ni_core *c, const char *id_or_name, int64_t asked_ns, struct ni_session *out,
                   char *message, size_t cap) {
  int e = ni_store_resume(c->store, id_or_name, c->now_ns, out, message, cap);
  if (e == 0)
    snprintf(message, cap, "Profiling resumed.");
  if (e == -EAGAIN && c->now_ns - asked_ns >= NI_CORE_RESUME_NS)
    return -EBUSY;
  c->changes += e != -EAGAIN;
  return e;
}
