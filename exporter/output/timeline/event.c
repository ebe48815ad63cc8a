#include "event.h"

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
                                                      "life", "mark", "api",     "launch",  "net",        "proxy", "counter",
                                                      "pytorch"};

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

/* In the sort lie the head, the values, the arrows and the keys. */
enum { HEAD = offsetof(struct ni_tr_event, key) };
_Static_assert(HEAD + sizeof ((struct ni_tr_event *)0)->key + sizeof ((struct ni_tr_event *)0)->value +
                   sizeof ((struct ni_tr_event *)0)->arrow <= NI_SORT_ITEM_MAX, "events fit into the sort");

int ni_tr_by_time(const void *a, const void *b, void *unused) {
  const struct ni_tr_event *x = a, *y = b; /* their heads */
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
  char item[NI_SORT_ITEM_MAX], *p = mempcpy(item, e, HEAD);
  p = mempcpy(p, e->value, e->n_args * sizeof *e->value);
  p = mempcpy(p, e->arrow, e->n_arrows * sizeof *e->arrow);
  p = mempcpy(p, e->key, e->n_args);
  r->count.events++;
  int err = ni_sort_add(r->sort, item, (size_t)(p - item));
  return err < 0 ? ni_tr_fail(r, err, "sorting: %s", strerror(-err)) : 0;
}

void ni_tr_unpack(const void *item, struct ni_tr_event *e) {
  const char *p = item;
  memcpy(e, p, HEAD);
  p += HEAD;
  memcpy(e->value, p, e->n_args * sizeof *e->value);
  p += e->n_args * sizeof *e->value;
  memcpy(e->arrow, p, e->n_arrows * sizeof *e->arrow);
  p += e->n_arrows * sizeof *e->arrow;
  memcpy(e->key, p, e->n_args);
}
