#include "late.h"

#include <errno.h>
#include <stdlib.h>

enum { COMMS = 64, OPS = 2048, RANKS = 16 };

struct op {
  uint64_t sn;
  uint8_t func, size_class, n; /* n: arrivals; 0: free */
  uint64_t arrival[RANKS];     /* 0: did not come */
};
struct comm {
  uint64_t hash, used;         /* used: 0: free; the least one gives way */
  int32_t rank[RANKS];
  struct ni_live_who who[RANKS];
  uint8_t n;
  struct op *op;               /* where two ranks are here */
};
struct ni_late {
  struct comm comm[COMMS];
  struct comm *newest;         /* most lines are of the communicator of the line before */
  uint64_t now;
};

int ni_late_open(struct ni_late **out) { return (*out = calloc(1, sizeof **out)) ? 0 : -ENOMEM; }

void ni_late_close(struct ni_late *l) {
  for (int i = 0; l && i < COMMS; i++) free(l->comm[i].op);
  free(l);
}

static struct comm *comm_of(struct ni_late *l, uint64_t hash) {
  struct comm *c = l->newest ? l->newest : l->comm;
  for (int i = 0; i < COMMS && (!c->used || c->hash != hash); i++)
    if (l->comm[i].used < c->used || (l->comm[i].used && l->comm[i].hash == hash)) c = &l->comm[i];
  if (!c->used || c->hash != hash) {
    free(c->op);
    *c = (struct comm){.hash = hash};
  }
  c->used = ++l->now;
  return l->newest = c;
}

/* Of an operation that leaves the ring. */
static bool tell(const struct comm *c, struct op *o, struct ni_late_one *one) {
  uint64_t sorted[RANKS];
  int n = 0, last = 0;
  for (int i = 0; i < c->n; i++) {
    if (!o->arrival[i]) continue;
    if (o->arrival[i] > o->arrival[last]) last = i;
    int k = n++;
    for (; k && sorted[k - 1] > o->arrival[i]; k--) sorted[k] = sorted[k - 1];
    sorted[k] = o->arrival[i];
  }
  o->n = 0;
  if (n < 2 || 2 * n < c->n) return false;
  *one = (struct ni_late_one){c->who[last], (enum ni_func)o->func, o->size_class, sorted[n - 1] - sorted[(n - 1) / 2]};
  return true;
}

bool ni_late_arrive(struct ni_late *l, uint64_t hash, int32_t rank, const struct ni_live_who *who, enum ni_func func, uint64_t sn,
                    uint32_t size_class, uint64_t ns, struct ni_late_one *one) {
  struct comm *c = comm_of(l, hash);
  int k = 0;
  bool told = false;
  while (k < c->n && c->rank[k] != rank) k++;
  if (k == RANKS) return false;
  if (k == c->n || func == NI_FUNC_OTHER) c->who[k] = *who;
  if (k == c->n) c->n++;
  c->rank[k] = rank;
  if (func == NI_FUNC_OTHER || !ns || c->n < 2 || (!c->op && !(c->op = calloc(OPS, sizeof *c->op)))) return false;
  struct op *o = &c->op[(sn + 683 * (uint64_t)func) % OPS]; /* one behind the other in memory; three functions apart */
  if (o->n && (o->sn != sn || o->func != func)) {
    if (o->func == func && o->sn > sn) return false; /* long past */
    told = tell(c, o, one);
  }
  if (!o->n) *o = (struct op){.sn = sn, .func = (uint8_t)func, .size_class = (uint8_t)size_class};
  o->n += !o->arrival[k];
  o->arrival[k] = ns;
  return told || (o->n == c->n && tell(c, o, one));
}
