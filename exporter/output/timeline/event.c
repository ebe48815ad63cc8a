#include "event.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"

static const struct {
  const char *name;
  enum ni_tr_value form;
} keys[NI_TR_KEY_COUNT] = {
#define X(id, name, form) [NI_TR_K_##id] = {name, NI_TR_##form},
    NI_TR_KEYS(X)
#undef X
};

static const char *const categories[NI_TR_C_COUNT] = {"coll", "p2p",   "channel", "enqueue", "unfinished",
                                                      "loss", "life",  "mark",    "api",     "launch",
                                                      "net",  "proxy", "counter", "pytorch", "phase"};

const char *ni_tr_key_name(unsigned key) { return keys[key].name; }
enum ni_tr_value ni_tr_key_form(unsigned key) { return keys[key].form; }
const char *ni_tr_category_name(unsigned category) { return categories[category]; }

void ni_tr_f64(struct ni_tr_event *e, enum ni_tr_key_id k, double v) {
  uint64_t bits;
  if (!isfinite(v))
    return;
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
  if (err == 0 && code)
    ni_tr_u64(e, k, code);
  return err;
}

int ni_tr_tag(struct ni_tr *r, struct ni_tr_event *e, uint64_t user_tag) {
  if (!user_tag)
    return 0;
  ni_tr_u64(e, NI_TR_K_USER_TAG, user_tag);
  return ni_tr_text(r, e, NI_TR_K_TAG, ni_tag_name(&r->tags, user_tag));
}

/* An item of the sort has the head, the values, the arrows and the keys. */
enum { HEAD = offsetof(struct ni_tr_event, key) };
_Static_assert(HEAD + sizeof((struct ni_tr_event *)0)->key + sizeof((struct ni_tr_event *)0)->value +
                       sizeof((struct ni_tr_event *)0)->arrow <=
                   NI_SORT_ITEM_MAX,
               "events fit into the sort");

int ni_tr_by_time(const void *a, const void *b, void *unused) {
  const struct ni_tr_event *x = a, *y = b; /* their heads */
  if (x->ts != y->ts)
    return x->ts < y->ts ? -1 : 1;
  return x->dur > y->dur ? -1 : x->dur < y->dur;
}

int ni_tr_put(struct ni_tr *r, const struct ni_tr_event *e) {
  /* One event of 1970 would leave a timeline of which nothing can be seen. */
  int64_t end;
  const bool has_end = e->dur >= 0 && !__builtin_add_overflow(e->ts, e->dur, &end);
  if (!has_end || !ni_time_of_a_job(e->ts) || !ni_time_of_a_job(end)) {
    r->count.no_time++;
    return 0;
  }
  if (e->ts > r->until_ns || end < r->since_ns)
    return 0;
  char item[NI_SORT_ITEM_MAX], *p = mempcpy(item, e, HEAD);
  p = mempcpy(p, e->value, e->n_args * sizeof *e->value);
  p = mempcpy(p, e->arrow, e->n_arrows * sizeof *e->arrow);
  p = mempcpy(p, e->key, e->n_args);
  r->count.events++;
  r->count.open += e->category == NI_TR_C_OPEN && e->phase == NI_TR_SLICE;
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

int ni_tr_track(struct ni_tr *r, uint32_t unit, uint32_t member, enum ni_tr_class class, uint32_t sub,
                uint32_t *out) {
  uint32_t *cached =
      member != NI_TR_NONE && sub == 0 && (size_t)class < sizeof r->member->track / sizeof *r->member->track
      ? &r->member[member].track[class]
      : NULL;
  if (cached && *cached) {
    *out = *cached - 1;
    return 0;
  }
  struct ni_tr_track want = {.unit = unit, /* instances of a hash follow each other on the same tracks */
                             .member = member == NI_TR_NONE ? NI_TR_NONE : r->member[member].first,
                             .class = (uint8_t)class,
                             .sub = sub};
  const uint64_t hash = ni_hash((uint64_t)want.member << 32 | unit, (uint64_t)class << 32 | sub);
  for (size_t at = 0; (*out = ni_index_next(&r->track_at_hash, hash, &at)) != NI_INDEX_NONE;) {
    const struct ni_tr_track *x = &r->track[*out];
    const bool is_same_class = x->class == want.class && x->sub == sub;
    if (x->unit == unit && x->member == want.member && is_same_class)
      break;
  }
  if (*out == NI_INDEX_NONE) {
    if (!ni_array_room(r->track, r->n_tracks, r->cap_tracks) ||
        ni_index_add(&r->track_at_hash, hash, r->n_tracks) < 0)
      return -ENOMEM;
    *out = r->n_tracks++;
    r->track[*out] = want;
  }
  if (cached)
    *cached = *out + 1;
  return 0;
}

/* A communicator's name, with its hash where the unit has another of that name. */
static void name_communicator(const struct ni_tr *r, const struct ni_tr_track *t, char *out, size_t size) {
  const struct ni_tr_member *m = &r->member[t->member];
  const char *name = ni_tr_comm_name(r, m);
  bool alone = *name && !m->ambiguous;
  char hash[48] = "", rank[32] = "";
  if (!alone)
    snprintf(hash, sizeof hash, "%s0x%llx", *name ? " " : "", (unsigned long long)ni_tr_who(r, m)->hash);
  if (m->doubled)
    snprintf(rank, sizeof rank, " rank %d", ni_tr_who(r, m)->rank);
  snprintf(out, size, "%.100s%s%s", name, hash, rank);
}

void ni_tr_track_name(const struct ni_tr *r, const struct ni_tr_track *t, uint32_t lane, char *out,
                      size_t size) {
  static const char *const texts[NI_TR_T_COUNT] = {
      "marks, losses", "API calls",       "enqueue",       "collectives",    "send, receive", "channel",
      "network send",  "network receive", "network steps", "network plugin", "proxy thread"};
  char comm[160] = "", sub[16] = "", suffix[32] = "";
  if (lane)
    snprintf(suffix, sizeof suffix, " (%u)", lane + 1);
  if (t->class == NI_TR_T_OTHER) {
    snprintf(out, size, "%.200s%s", ni_name_text(&r->names, t->sub), suffix);
    return;
  }
  if (t->member != NI_TR_NONE)
    name_communicator(r, t, comm, sizeof comm);
  else if (t->class >= NI_TR_T_COLL && t->class != NI_TR_T_PROXY)
    snprintf(comm, sizeof comm, "other processes");
  if (t->class >= NI_TR_T_CHANNEL && t->class <= NI_TR_T_STEPS)
    snprintf(sub, sizeof sub, " %02u", t->sub);
  snprintf(out, size, "%s%s%s%s%s", comm, *comm ? ": " : "", texts[t->class], sub, suffix);
}

void ni_tr_unit_name(const struct ni_tr *r, uint32_t unit, char *out, size_t size) {
  const struct ni_tr_unit *u = &r->unit[unit];
  char gpu[24] = "", rank[32] = "";
  if (u->gpu >= 0)
    snprintf(gpu, sizeof gpu, ", GPU %d", u->gpu);
  if (u->rank >= 0)
    snprintf(rank, sizeof rank, "rank %d, ", u->rank);
  snprintf(out, size, "%s%s%s", rank, r->who.process[u->process].host, gpu);
}

const char *ni_tr_host_name(const struct ni_tr *r, uint32_t host) {
  return ni_name_text(&r->names, r->host[host].name);
}

void ni_tr_clock_text(const struct ni_tr *r, uint32_t host, char *out, size_t size) {
  const struct ni_host_clock *h = &r->host[host].clock;
  char offset[32], error[32], shared[96] = "";
  if (host == r->reference) {
    snprintf(out, size, "clock: the reference");
  } else if (!h->aligned) {
    snprintf(out, size, "clock: its own, unaligned (no collective in common with %s)",
             ni_tr_host_name(r, r->reference));
  } else {
    if (h->matched || !h->messages)
      snprintf(shared, sizeof shared, "%" PRIu64 " %s%s", h->matched,
               ni_plural(h->matched, "collective", "collectives"), h->messages ? " and " : "");
    if (h->messages)
      snprintf(shared + strlen(shared), 48, "%" PRIu64 " %s", h->messages,
               ni_plural(h->messages, "message", "messages"));
    int n = snprintf(out, size, "clock: %s%s to the reference, error below %s, drift %.3f ppm (%s with %s)",
                     h->offset_ns < 0 ? "" : "+", ni_span_text((int64_t)h->offset_ns, offset),
                     ni_span_text(h->error_ns, error), h->drift * 1e6, shared, ni_tr_host_name(r, h->via));
    if (n > 0 && (size_t)n < size && h->contradiction)
      snprintf(out + n, size - (size_t)n, "; CONTRADICTORY: no straight line fits, see --since, --until");
  }
}

void ni_tr_tracks_free(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_tracks; i++) {
    for (uint32_t k = 0; k < r->track[i].n_lanes; k++)
      free(r->track[i].lane[k].end);
    free(r->track[i].lane);
  }
  free(r->track);
  ni_index_free(&r->track_at_hash);
}
