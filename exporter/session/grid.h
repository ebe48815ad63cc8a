/*
 * Clients and their samples on a steady grid: a frame at each whole multiple of the period, of Unix time,
 * with every known GPU in it.
 *
 *   samples, as they come ─▶ ni_grid_put() ─▶ what each client said, by tick ─▶ ni_grid_next()
 *       ─▶ a frame: views of samples, ages, states
 *                                                 └─ of a tick whose frame is out
 *                                                     ─▶ late: the store keeps it beside (store.h)
 *
 * A sample belongs to the tick that it is nearest to. The frame of a tick is due when each connected client
 * that is not stale has said something of it or of a later one, or NI_GRID_HOLD_NS after the tick; where a
 * head goes on that was killed (ni_grid_from()), not before NI_GRID_BACK_NS after its start, so that clients
 * come back with what they kept. A client's newest sample of that tick or before stands in the frame, with
 * its age. It is `stale` when it is older than three of the client's own intervals and than three periods:
 * its numbers are not shown then. `gone`: the client is not connected, and it is stale.
 *
 * Clients are told apart by uuid (ours) or by their connection (gsprof's): two of one host are two. One of
 * gsprof's that comes to a host of which another one is not connected any more is that one, and keeps its id:
 * a client that connects again has no new columns. The order of clients and GPUs is that in which they came
 * first; who comes later stands behind. A client that is gone stays while a session runs that saw it.
 *
 * Bounds: NI_GRID_CLIENTS_MAX clients, NI_GRID_AHEAD samples of a client that wait for their frame: the
 * oldest is then told as a late one, and counted as let go. Times: now_ns is Unix time that never steps; the
 * head counts on from its start by the monotonic clock. One thread. Ownership: samples given to ni_grid_put()
 * are the grid's; a frame's views hold until the next call.
 */
#ifndef NI_GRID_H
#define NI_GRID_H

#include "exporter/session/rates.h"

#define NI_GRID_HOLD_NS INT64_C(2000000000)
#define NI_GRID_BACK_NS INT64_C(8000000000)
enum { NI_GRID_CLIENTS_MAX = 16384, NI_GRID_AHEAD = 256 };

enum ni_client_state { NI_CLIENT_OK = 0, NI_CLIENT_STALE, NI_CLIENT_GONE };
struct ni_client {
  uint32_t number; /* its place in the order */
  /* "host_ipv4:1.2.3.4:5678", as gsprof's head calls it; ours: "host_<8 digits of uuid>" */
  char id[NI_SAMPLE_GPUS_MAX * 5];
  char host[256], uuid[40]; /* uuid "": one of gsprof's */
  char version[32];         /* the head's: of our agents */
  char from[64];            /* the head's: the connection that it came by first */
  bool connected;
  enum ni_client_state state; /* as of the newest frame */
  /* samples; superseded: another of the same tick came later, or sent twice; lost: by seq */
  uint64_t taken, late, superseded, let_go, lost;
  /* the newest that was put; older ones are not taken again. The head may set it for one that comes back */
  uint64_t seq;
  /* all up to this one are in frames that are out, late, or superseded */
  uint64_t safe;
  uint64_t durable; /* the head's: of `safe`, what is on the disk */
  uint64_t epoch;   /* the head's: of its numbers (messages.h) */
  /* of its samples: time, and how far apart they are (a median of the last) */
  int64_t newest_ns, interval_ns;
  /* the head's: its clock against ours; as it says, or as the smallest delay of the last minutes shows */
  int64_t skew_ns;
  /* the newest, or, with time_ns 0, what it said of its GPUs; NULL: none yet */
  struct ni_sample *last;
  struct ni_grid_pending *pending; /* grid.c's */
};

struct ni_frame_client {
  const struct ni_client *client;
  const struct ni_sample *sample; /* NULL: none that may be shown */
  /* of the newest one of that tick or before, shown or not; INT64_MAX: it never said anything */
  int64_t age_ns;
  uint64_t seq; /* its number */
  enum ni_client_state state;
};
struct ni_frame {
  int64_t tick_ns;
  size_t n; /* clients known, in their order */
  struct ni_frame_client *of;
};

struct ni_grid;
struct ni_grid *ni_grid_new(int64_t period_ns, int64_t now_ns); /* NULL without memory */
void ni_grid_free(struct ni_grid *g);
/*
 * A client comes, or comes back. gpus: what it has, or NULL; the grid's from now on. NULL: there are too
 * many, or no memory.
 */
struct ni_client *ni_grid_connect(struct ni_grid *g, const char *uuid, const char *host, const char *id,
                                  struct ni_sample *gpus);
/*
 * One that was there before this head was: it is gone, with what it had, and what is safe of its samples. The
 * same by any way that leads to ni_grid_connect(). NULL: as there.
 */
struct ni_client *ni_grid_remember(struct ni_grid *g, const char *uuid, const char *host, const char *id,
                                   struct ni_sample *gpus, uint64_t seq);
/* Its numbers begin anew: none of them is here. */
void ni_grid_anew(struct ni_client *c);
void ni_grid_disconnect(struct ni_grid *g, struct ni_client *c);
/* Gets a sample that will be in no frame: that of its tick is out, or too many wait. */
typedef void ni_grid_late(void *arg, const struct ni_client *c, const struct ni_sample *s, int64_t tick_ns);
/*
 * The sample is the grid's from now on. A time beyond now + a second is taken as now, one before the client's
 * newest (a clock that went back) as an interval after that. 0 or -ENOMEM.
 */
int ni_grid_put(struct ni_grid *g, struct ni_client *c, struct ni_sample *s, int64_t now_ns,
                ni_grid_late *late, void *arg);
/* The next frame that is due by now; false: none is. */
bool ni_grid_next(struct ni_grid *g, int64_t now_ns, struct ni_frame *f);
/* When to ask again at the latest, Unix ns. */
int64_t ni_grid_due(struct ni_grid *g);
/* Frames before this tick are not made: where a head goes on that was killed. */
void ni_grid_from(struct ni_grid *g, int64_t tick_ns);
/* Forgets clients that are gone; called where no session runs. */
void ni_grid_tidy(struct ni_grid *g);
size_t ni_grid_clients(const struct ni_grid *g, struct ni_client *const **list); /* in their order */

#endif
