#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"

static uint64_t hash_track(const struct ni_tr_track *t) {
  uint64_t h = ((uint64_t)t->unit << 32 ^ t->member) * 0x9e3779b97f4a7c15ULL;
  return (h ^ (h >> 31) ^ (uint64_t)t->class << 40 ^ t->sub) * 0xbf58476d1ce4e5b9ULL;
}

int ni_tr_track(struct ni_tr *r, uint32_t unit, uint32_t member, enum ni_tr_class class, uint32_t sub, uint32_t *out) {
  uint32_t *cached = member != NI_TR_NONE && sub == 0 && (size_t)class < sizeof r->member->track / sizeof *r->member->track
                         ? &r->member[member].track[class] : NULL;
  if (cached && *cached) {
    *out = *cached - 1;
    return 0;
  }
  struct ni_tr_track want = {.unit = unit, /* instances of a hash follow each other on the same tracks */
                             .member = member == NI_TR_NONE ? NI_TR_NONE : r->member[member].oldest,
                             .class = (uint8_t)class, .sub = sub};
  if (2 * r->n_tracks >= r->track_mask) {
    uint32_t size = r->track_mask ? 2 * (r->track_mask + 1) : 1024, *b = calloc(size, sizeof *b);
    if (!b) return -ENOMEM;
    for (uint32_t i = 0; i < r->n_tracks; i++) {
      uint32_t k = (uint32_t)(hash_track(&r->track[i]) >> 32) & (size - 1);
      while (b[k]) k = (k + 1) & (size - 1);
      b[k] = i + 1;
    }
    free(r->track_bucket);
    r->track_bucket = b;
    r->track_mask = size - 1;
  }
  uint32_t k = (uint32_t)(hash_track(&want) >> 32) & r->track_mask;
  for (; r->track_bucket[k]; k = (k + 1) & r->track_mask) {
    const struct ni_tr_track *x = &r->track[r->track_bucket[k] - 1];
    if (x->unit == unit && x->member == want.member && x->class == want.class && x->sub == sub) break;
  }
  if (!r->track_bucket[k]) {
    if (r->n_tracks == r->cap_tracks) {
      uint32_t cap = r->cap_tracks ? 2 * r->cap_tracks : 256;
      struct ni_tr_track *p = realloc(r->track, cap * sizeof *p);
      if (!p) return -ENOMEM;
      r->track = p;
      r->cap_tracks = cap;
    }
    r->track[r->n_tracks] = want;
    r->track_bucket[k] = ++r->n_tracks;
  }
  *out = r->track_bucket[k] - 1;
  if (cached) *cached = *out + 1;
  return 0;
}

/* A communicator's name, with its hash where the unit has another of that name. */
static void comm_name(const struct ni_tr *r, const struct ni_tr_track *t, char *out, size_t size) {
  const struct ni_tr_member *m = &r->member[t->member];
  bool alone = m->name != 0 && !m->ambiguous;
  char hash[48] = "", rank[32] = "";
  if (!alone) snprintf(hash, sizeof hash, "%s0x%llx", m->name ? " " : "", (unsigned long long)m->hash);
  if (m->doubled) snprintf(rank, sizeof rank, " rank %d", m->rank);
  snprintf(out, size, "%.100s%s%s", m->name ? ni_name_text(&r->names, m->name) : "", hash, rank);
}

void ni_tr_track_name(const struct ni_tr *r, const struct ni_tr_track *t, uint32_t lane, char *out, size_t size) {
  char comm[160] = "", suffix[32] = "";
  if (t->member != NI_TR_NONE) comm_name(r, t, comm, sizeof comm);
  else if (t->class >= NI_TR_T_COLL && t->class != NI_TR_T_PROXY) snprintf(comm, sizeof comm, "other processes");
  if (lane) snprintf(suffix, sizeof suffix, " (%u)", lane + 1);
  switch (t->class) {
    case NI_TR_T_MARKS: snprintf(out, size, "marks, losses%s", suffix); break;
    case NI_TR_T_CALLS: snprintf(out, size, "API calls%s", suffix); break;
    case NI_TR_T_ENQUEUE: snprintf(out, size, "%s: enqueue%s", comm, suffix); break;
    case NI_TR_T_COLL: snprintf(out, size, "%s: collectives%s", comm, suffix); break;
    case NI_TR_T_P2P: snprintf(out, size, "%s: send, receive%s", comm, suffix); break;
    case NI_TR_T_CHANNEL: snprintf(out, size, "%s: channel %02u%s", comm, t->sub, suffix); break;
    case NI_TR_T_NET_SEND: snprintf(out, size, "%s: network send %02u%s", comm, t->sub, suffix); break;
    case NI_TR_T_NET_RECV: snprintf(out, size, "%s: network receive %02u%s", comm, t->sub, suffix); break;
    case NI_TR_T_STEPS: snprintf(out, size, "%s: network steps %02u%s", comm, t->sub, suffix); break;
    case NI_TR_T_NET_PLUGIN: snprintf(out, size, "%s: network plugin%s", comm, suffix); break;
    default: snprintf(out, size, "%s%sproxy thread%s", comm, *comm ? ": " : "", suffix); break;
  }
}

void ni_tr_unit_name(const struct ni_tr *r, uint32_t unit, char *out, size_t size) {
  const struct ni_tr_unit *u = &r->unit[unit];
  const struct ni_tr_process *p = &r->process[u->process];
  const char *host = ni_name_text(&r->names, r->host[p->host].name);
  char gpu[24] = "", rank[32] = "";
  if (u->gpu >= 0) snprintf(gpu, sizeof gpu, ", GPU %d", u->gpu);
  if (u->rank >= 0) snprintf(rank, sizeof rank, "rank %d, ", u->rank);
  snprintf(out, size, "%s%s%s", rank, host, gpu);
}

void ni_tr_tracks_free(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_tracks; i++) free(r->track[i].lane);
  free(r->track);
  free(r->track_bucket);
}
