/*
 * What the head knows and does, whoever asks: gRPC (service.h) and HTTP (api.h) are two ways to the same.
 *
 *   service ─┐                    ┌─▶ grid: frames ─▶ store: sessions on disk ─▶ what is safe ─▶ acknowledged
 *            ├─▶ ni_core_...() ───┤
 *   api ─────┘                    └─▶ events for the page
 *
 * One thread, that of the loop (head.c). Ownership: ni_core_close().
 */
#ifndef NI_CORE_H
#define NI_CORE_H

#include "exporter/session/store.h"

struct ni_core_out { /* a frame that is out, and what of each client was in it or before */
  int64_t tick_ns;
  size_t n;
  uint64_t *safe; /* by the client's place */
};

struct ni_core {
  struct ni_grid *grid;
  struct ni_store *store;
  int64_t now_ns;   /* of this turn of the loop: ni_core_now() */
  int64_t ahead_ns; /* Unix time at the start less the monotonic clock */
  uint64_t period_ns;
  bool bandwidth, nvlink, gsprof;
  bool ended;       /* somebody asked for the end */
  bool holds;       /* frames are not made in the next turn: a stop waits */
  bool acknowledge; /* more is safe than was said: the service says it, and sets this back */
  /* the newest frame; the newest one that is on the disk, or wanted by nobody */
  int64_t frame_ns, safe_tick_ns;
  struct ni_core_out *out; /* frames that are not on the disk yet */
  size_t n_out, cap_out;
  uint64_t noted; /* changes that the store has noted (roster.h) */
  int64_t noted_ns;
  uint64_t changes;   /* grows when what /status says may be another: clients, sessions */
  char degraded[256]; /* "": all is fine */
};

struct ni_head_options; /* exporter/cmds/head.h */
/* 0, or -errno with a sentence in why. What ran when the last head ended goes on. */
int ni_core_open(struct ni_core *c, const struct ni_head_options *o, char *why, size_t cap);
void ni_core_close(struct ni_core *c);
/* Unix ns, counted on from the start by the clock that nobody sets. */
int64_t ni_core_now(const struct ni_core *c);
/*
 * Once a turn: frames that are due go to the store; what is on the disk by now. The time at which to turn
 * again at the latest.
 */
int64_t ni_core_turn(struct ni_core *c);

/* The client's numbers begin anew: nothing of it that waits for the disk is acknowledged. */
void ni_core_anew(struct ni_core *c, struct ni_client *of);
/* A client's sample; it is the core's then. */
void ni_core_take(struct ni_core *c, struct ni_client *from, struct ni_sample *s);
/*
 * Sessions, as both ways call them: name NULL or "" as in store.h, but that a stop without a name ends all
 * that run. 0 or -errno of the store; message is gsprof's text, or what went wrong.
 *
 * A stop or a resume may have to wait for the disk: -EAGAIN, at most NI_CORE_STOP_NS or NI_CORE_RESUME_NS
 * after asked_ns, which is now_ns of when somebody asked. Whoever asked is to call it again in each turn,
 * with the same asked_ns; others are served meanwhile. Until then a stop holds frames back, which are made
 * behind it: those of the session end where it was asked for.
 */
#define NI_CORE_STOP_NS INT64_C(2000000000)
#define NI_CORE_RESUME_NS INT64_C(15000000000)
int ni_core_start(struct ni_core *c, const char *name, struct ni_session *out, char *message, size_t cap);
int ni_core_stop(struct ni_core *c, const char *name, int64_t asked_ns, struct ni_session *last,
                 char *message, size_t cap);
int ni_core_resume(struct ni_core *c, const char *id_or_name, int64_t asked_ns, struct ni_session *out,
                   char *message, size_t cap);

#endif
