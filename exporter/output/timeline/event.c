#include "event.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/base/now.h"

static const struct {
  const char *name;
  enum ni_tr_value form;
} keys[NI_TR_KEY_COUNT] = {
#define X(id, name, form) [NI_TR_K_##id] = {name, NI_TR_##form},
    NI_TR_KEYS(X)
#undef X
};

static const char *const categories[NI_TR_C_COUNT] = {"coll", "p2p",  "channel", "enqueue", "unfinished", "loss",
                                                      "life", "mark", "api",     "launch",  "net",        "proxy"};

const char *ni_tr_key_name(unsigned key) { return keys[key].name; }
enum ni_tr_value ni_tr_key_form(unsigned key) { return keys[key].form; }
const char *ni_tr_category_name(unsigned category) { return categories[category]; }

void ni_tr_f64(struct ni_tr_event *e, enum ni_tr_key_id k, double v) {
  uint64_t bits;
  if (!isfinite(v)) return;
  if (keys[k].form == NI_TR_US) { /* kept as ns: three decimals */
    ni_tr_i64(e, k, (int64_t)llround(v * 1000));
    return;
  }
  memcpy(&bits, &v, sizeof bits);
  ni_tr_u64(e, k, bits);
}

int ni_tr_text(struct ni_tr *r, struct ni_tr_event *e, enum ni_tr_key_id k, const char *text) {
  uint32_t code;
  int err = ni_name(&r->names, &r->cache, text, &code);
  if (err == 0 && code) ni_tr_u64(e, k, code);
  return err;
}

/* As it lies in the sort: the head, the values, the arrows, the keys. */
struct packed {
  int64_t ts, dur;
  uint32_t track, name;
  uint8_t phase, category, n_args, n_arrows;
};

int ni_tr_by_time(const void *a, const void *b, void *unused) {
  const struct packed *x = a, *y = b;
  (void)unused;
  if (x->ts != y->ts) return x->ts < y->ts ? -1 : 1;
  return x->dur > y->dur ? -1 : x->dur < y->dur;
}

int ni_tr_put(struct ni_tr *r, const struct ni_tr_event *e) {
  /* One event of 1970 would leave a timeline of which nothing can be seen. */
  int64_t end;
  if (!ni_time_of_a_job(e->ts) || e->dur < 0 || __builtin_add_overflow(e->ts, e->dur, &end) || !ni_time_of_a_job(end)) {
    r->count.no_time++;
    return 0;
  }
  if (e->ts > r->until_ns || end < r->since_ns) return 0;
  union {
    char bytes[NI_SORT_ITEM_MAX];
    struct packed head;
  } item;
  _Static_assert(sizeof(struct packed) + 8 * NI_TR_ARGS_MAX + NI_TR_ARROWS_MAX * sizeof(struct ni_tr_arrow) + NI_TR_ARGS_MAX <=
                     NI_SORT_ITEM_MAX, "events fit into the sort");
  item.head = (struct packed){e->ts, e->dur, e->track, e->name, e->phase, e->category, e->n_args, e->n_arrows};
  char *p = item.bytes + sizeof item.head;
  memcpy(p, e->value, 8u * e->n_args);
  p += 8 * e->n_args;
  memcpy(p, e->arrow, e->n_arrows * sizeof *e->arrow);
  p += e->n_arrows * sizeof *e->arrow;
  memcpy(p, e->key, e->n_args);
  p += e->n_args;
  r->count.events++;
  int err = ni_sort_add(r->sort, item.bytes, (size_t)(p - item.bytes));
  return err < 0 ? ni_tr_fail(r, err, "sorting: %s", strerror(-err)) : 0;
}

void ni_tr_unpack(const void *item, struct ni_tr_event *e) {
  struct packed h;
  const char *p = item;
  memcpy(&h, p, sizeof h);
  p += sizeof h;
  e->ts = h.ts;
  e->dur = h.dur;
  e->track = h.track;
  e->name = h.name;
  e->phase = h.phase;
  e->category = h.category;
  e->n_args = h.n_args;
  e->n_arrows = h.n_arrows;
  memcpy(e->value, p, 8u * h.n_args);
  p += 8 * h.n_args;
  memcpy(e->arrow, p, h.n_arrows * sizeof *e->arrow);
  p += h.n_arrows * sizeof *e->arrow;
  memcpy(e->key, p, h.n_args);
}
