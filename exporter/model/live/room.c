#include "room.h"

#include "tables.h"

/* Keeps the items that name, at `of`, another one that to[] has a place for: that is what they name then. map: their own. */
static void compact(struct ni_live *l, unsigned table, size_t of, const uint32_t *to, uint32_t *map) {
  size_t size = ni_live_shapes[table].size, kept = 0;
  char *items = NI_LIVE_ITEMS(l, table);
  for (size_t i = 0; i < NI_LIVE_N(l, table); i++) {
    uint32_t number;
    memcpy(&number, items + i * size + of, sizeof number);
    if (map) map[i] = to[number] == NI_INDEX_NONE ? NI_INDEX_NONE : (uint32_t)kept;
    if (to[number] == NI_INDEX_NONE) continue;
    memmove(items + kept * size, items + i * size, size);
    memcpy(items + kept++ * size + of, &to[number], sizeof number);
  }
  NI_LIVE_N(l, table) = kept;
  ni_live_reindex(l, table);
}

bool ni_live_drop(struct ni_live *l, const bool *goes) {
  uint32_t to[NI_LIVE_JOBS_MAX], members[NI_LIVE_MEMBERS_MAX];
  size_t kept = 0, before = l->n_jobs;
  for (size_t i = 0; i < before; i++) {
    if (!goes[i]) l->job[kept] = l->job[i];
    to[i] = goes[i] ? NI_INDEX_NONE : (uint32_t)kept++;
  }
  if (kept == before) return false;
  l->n_jobs = kept;
  ni_live_reindex(l, NI_LIVE_JOBS);
  compact(l, NI_LIVE_CLASSES, offsetof(struct ni_live_class, job), to, NULL);
  compact(l, NI_LIVE_LIVES, offsetof(struct ni_live_life, job), to, NULL);
  compact(l, NI_LIVE_MEMBERS, offsetof(struct ni_live_member, job), to, members);
  compact(l, NI_LIVE_FUNCS, offsetof(struct ni_live_func, member), members, NULL);
  return true;
}

static uint32_t job_of(const struct ni_live *l, unsigned table, uint32_t i) {
  if (table == NI_LIVE_CLASSES) return l->class[i].job;
  if (table == NI_LIVE_LIVES) return l->life[i].job;
  return table == NI_LIVE_JOBS ? i : l->member[table == NI_LIVE_FUNCS ? l->func[i].member : i].job;
}

bool ni_live_room(struct ni_live *l, uint32_t uid) {
  uint32_t has[NI_LIVE_JOBS_MAX] = {0}, of[NI_LIVE_JOBS_MAX] = {0}; /* a job's; its user's, at his first job */
  uint32_t first[NI_LIVE_JOBS_MAX], most = 0, own = 0, users = 1, victim = NI_INDEX_NONE;
  bool goes[NI_LIVE_JOBS_MAX] = {false}, sated = l->sated >> l->full & 1;
  for (uint32_t i = 0; !sated && i < NI_LIVE_N(l, l->full); i++) has[job_of(l, l->full, i)]++;
  for (uint32_t j = 0; !sated && j < l->n_jobs; j++) {
    for (first[j] = 0; l->job[first[j]].uid != l->job[j].uid;) first[j]++;
    users += first[j] == j && l->job[j].uid != uid;
    own += l->job[j].uid == uid ? has[j] : 0;
    of[first[j]] += has[j];
    if (of[first[j]] > of[most]) most = first[j];
  }
  bool may = own < ni_live_shapes[l->full].max / users; /* have what others have */
  for (uint32_t j = 0; !sated && j < l->n_jobs; j++) {
    bool ended = has[j] && l->job[j].ended_ns && (may || l->job[j].uid == uid);
    if (ended && (victim == NI_INDEX_NONE || (int64_t)(l->job[j].ended_ns - l->job[victim].ended_ns) < 0)) victim = j;
  }
  for (uint32_t j = (uint32_t)l->n_jobs; !sated && may && victim == NI_INDEX_NONE && j-- > 0;)
    if (has[j] && first[j] == most) victim = j;
  l->left_out += victim == NI_INDEX_NONE || !l->job[victim].ended_ns;
  if (victim == NI_INDEX_NONE) return l->sated |= 1u << l->full, false;
  goes[victim] = true;
  return ni_live_drop(l, goes);
}
