#include "collector.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "exporter/base/threads.h"
#include "nearest.h"

struct ni_collector {
  struct ni_set set;
  struct ni_find find;
  struct ni_reading *out; /* of the sweep that goes on */
  atomic_size_t next;     /* the reader whose turn it is: each thread takes one; the threads' start and end order the rest */
};

int ni_collector_open(struct ni_collector **out, const struct ni_wanted *wanted) {
  static void (*const sources[])(struct ni_find *) = {ni_cxi_find, ni_ib_find, ni_eth_find, ni_gpu_find, ni_host_find};
  struct ni_collector *c = calloc(1, sizeof *c);
  *out = NULL;
  if (!c) return -ENOMEM;
  c->find = (struct ni_find){.set = &c->set, .wanted = wanted};
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) sources[i](&c->find);
  struct ni_nearest *near = calloc(c->set.n_entities + 1, sizeof *near);
  if (!near || ni_nearest_find(&c->set, near) < 0) c->set.failed = true;
  for (size_t i = 0; !c->set.failed && i < c->set.n_entities; i++)
    if (*near[i].all) c->set.entity[i].nearest = ni_set_text(&c->set, near[i].all);
  free(near);
  if (c->set.failed) {
    ni_collector_close(c);
    return -ENOMEM;
  }
  *out = c;
  return 0;
}

void ni_collector_close(struct ni_collector *c) {
  if (!c) return;
  for (size_t i = 0; i < c->find.n_readers; i++) c->find.reader[i]->close(c->find.reader[i]);
  free(c->find.reader);
  ni_set_free(&c->set);
  free(c);
}

const struct ni_set *ni_collector_set(const struct ni_collector *c) { return &c->set; }

static void *work(void *arg) {
  struct ni_collector *c = arg;
  for (size_t i; (i = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed)) < c->find.n_readers;) {
    struct ni_reader *r = c->find.reader[i];
    r->read(r, c->out + r->first);
  }
  return NULL;
}

size_t ni_collector_read(struct ni_collector *c, struct ni_reading *out, unsigned threads) {
  size_t bad = 0;
  c->out = out;
  atomic_store_explicit(&c->next, 0, memory_order_relaxed);
  if (threads > c->find.n_readers) threads = (unsigned)c->find.n_readers;
  ni_threads(threads ? threads : 1, work, c, 0);
  for (size_t i = 0; i < c->set.n_counters; i++) bad += out[i].state != NI_READ_OK;
  return bad;
}

bool ni_collector_changed(const struct ni_collector *c) {
  for (size_t i = 0; i < c->find.n_readers; i++)
    if (c->find.reader[i]->changed) return true;
  return false;
}

void ni_collector_raise_limit(void) {
  struct rlimit r;
  if (getrlimit(RLIMIT_NOFILE, &r) != 0) return;
  r.rlim_cur = r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
}
