/*
 * Streams, events and graphs; see no_device.h. One lock for all: what is queued is small and what runs does
 * so without it. A stream's thread begins with its first work. An event that was never recorded is done, as
 * CUDA has it.
 */
#include "no_device.h"

#include <pthread.h>
#include <stdlib.h>

struct node {
  struct node *next;
  void (*run)(void *);
  void *arg;
  bool freed;
};
struct stream {
  struct node *first, **last;
  uint64_t queued, done;
  bool running, ending;
};
struct event {
  uint64_t recorded, reached, at; /* how often; when it was reached last */
};
struct nd_graph {
  struct {
    void (*run)(void *);
    void *arg;
  } nodes[256], ends[256]; /* ends: called when the graph goes, NCCL frees its plans there */
  int n, n_ends;
};
struct mark { /* an event's recording in a stream, or a stream's waiting for one */
  struct event *event;
  uint64_t turn;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static struct stream default_stream;
static struct stream *streams[4096];
static int n_streams;
static _Thread_local struct nd_graph *capturing; /* gpu_drive captures thread-local */

static struct stream *of(void *s) { return s ? s : &default_stream; }

static void *work(void *arg) {
  struct stream *s = arg;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!s->first && !s->ending)
      pthread_cond_wait(&moved, &lock);
    struct node *n = s->first;
    if (!n)
      break;
    pthread_mutex_unlock(&lock);
    n->run(n->arg);
    if (n->freed)
      free(n->arg);
    pthread_mutex_lock(&lock);
    s->first = n->next;
    if (!s->first)
      s->last = NULL;
    s->done++;
    pthread_cond_broadcast(&moved);
    free(n);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static int append(struct stream *s, void (*run)(void *), void *arg, bool freed) {
  struct node *n = malloc(sizeof *n);
  pthread_t thread;
  int rc = 0;
  if (!n)
    return ND_OUT_OF_MEMORY;
  *n = (struct node){NULL, run, arg, freed};
  pthread_mutex_lock(&lock);
  *(s->last ? s->last : &s->first) = n;
  s->last = &n->next;
  s->queued++;
  if (!s->running && pthread_create(&thread, NULL, work, s) == 0) {
    pthread_detach(thread);
    s->running = true;
  }
  if (!s->running)
    rc = ND_OUT_OF_MEMORY;
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
  return rc;
}

int nd_enqueue(void *stream, void (*run)(void *), void *arg, bool freed) {
  if (!capturing)
    return append(of(stream), run, arg, freed);
  if (capturing->n == 256)
    return ND_OUT_OF_MEMORY;
  capturing->nodes[capturing->n].run = run;
  capturing->nodes[capturing->n++].arg = arg; /* belongs to the graph from here on, for all replays */
  return 0;
}

int nd_stream_create(void **s) {
  struct stream *n = calloc(1, sizeof *n);
  if (!n)
    return ND_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  if (n_streams < 4096)
    streams[n_streams++] = n;
  pthread_mutex_unlock(&lock);
  return *s = n, 0;
}
int nd_stream_destroy(void *s) {
  pthread_mutex_lock(&lock);
  of(s)->ending = true; /* when it has done what is there */
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
  return 0;
}
int nd_stream_sync(void *s) {
  pthread_mutex_lock(&lock);
  for (uint64_t all = of(s)->queued; of(s)->done < all;)
    pthread_cond_wait(&moved, &lock);
  pthread_mutex_unlock(&lock);
  return 0;
}
int nd_stream_query(void *s) {
  pthread_mutex_lock(&lock);
  bool idle = of(s)->done == of(s)->queued;
  pthread_mutex_unlock(&lock);
  return idle ? 0 : ND_NOT_READY;
}
int nd_device_sync(void) {
  pthread_mutex_lock(&lock);
  int n = n_streams;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < n; i++)
    nd_stream_sync(streams[i]);
  return nd_stream_sync(NULL);
}

/* ---- events -------------------------------------------------------------------------------------------- */

int nd_event_create(void **e) { return (*e = calloc(1, sizeof(struct event))) ? 0 : ND_OUT_OF_MEMORY; }

static void reach(void *arg) {
  struct mark *m = arg;
  pthread_mutex_lock(&lock);
  m->event->reached = m->turn;
  m->event->at = nd_now();
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
}
static void wait_until_reached(void *arg) {
  struct mark *m = arg;
  pthread_mutex_lock(&lock);
  while (m->event->reached < m->turn)
    pthread_cond_wait(&moved, &lock);
  pthread_mutex_unlock(&lock);
}
static struct mark *mark(struct event *e, bool record) {
  struct mark *m = malloc(sizeof *m);
  if (!m)
    return NULL;
  pthread_mutex_lock(&lock);
  if (record)
    e->recorded++;
  *m = (struct mark){e, e->recorded};
  pthread_mutex_unlock(&lock);
  return m;
}
/* What a thread captures is one chain: order between its streams needs no events there. */
int nd_event_record(void *e, void *s) {
  struct mark *m = capturing ? NULL : mark(e, true);
  return m ? append(of(s), reach, m, true) : capturing ? 0 : ND_OUT_OF_MEMORY;
}
int nd_event_wait(void *s, void *e) {
  struct mark *m = capturing ? NULL : mark(e, false);
  return m ? append(of(s), wait_until_reached, m, true) : capturing ? 0 : ND_OUT_OF_MEMORY;
}
int nd_event_query(void *p) {
  struct event *e = p;
  pthread_mutex_lock(&lock);
  bool done = e->reached == e->recorded;
  pthread_mutex_unlock(&lock);
  return done ? 0 : ND_NOT_READY;
}
int nd_event_sync(void *p) {
  struct event *e = p;
  struct mark m = {e, 0};
  pthread_mutex_lock(&lock);
  m.turn = e->recorded;
  pthread_mutex_unlock(&lock);
  return wait_until_reached(&m), 0;
}
int nd_event_elapsed(float *ms, void *from, void *to) {
  const struct event *a = from, *b = to;
  pthread_mutex_lock(&lock);
  *ms = (float)((double)(int64_t)(b->at - a->at) / 1e6);
  pthread_mutex_unlock(&lock);
  return 0;
}

/* ---- graphs -------------------------------------------------------------------------------------------- */

int nd_capture_begin(void) { return (capturing = calloc(1, sizeof *capturing)) ? 0 : ND_OUT_OF_MEMORY; }
struct nd_graph *nd_capturing(void) { return capturing; }
int nd_capture_end(struct nd_graph **g) { return *g = capturing, capturing = NULL, 0; }
int nd_graph_launch(struct nd_graph *g, void *stream) {
  int rc = 0;
  for (int i = 0; i < g->n && rc == 0; i++)
    rc = append(of(stream), g->nodes[i].run, g->nodes[i].arg, false);
  return rc;
}
int nd_graph_at_end(void (*run)(void *), void *arg) {
  if (!capturing || capturing->n_ends == 256)
    return ND_OUT_OF_MEMORY;
  capturing->ends[capturing->n_ends].run = run;
  capturing->ends[capturing->n_ends++].arg = arg;
  return 0;
}
int nd_graph_destroy(struct nd_graph *g) {
  for (int i = 0; i < g->n_ends; i++)
    g->ends[i].run(g->ends[i].arg);
  return free(g), 0;
}
