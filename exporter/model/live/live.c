#include "live.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/text/safe_text.h"
#include "tables.h"

#define MOVED_NS INT64_C(5000000000) /* what a log that is read has of before */
#define TOLD_NS INT64_C(600000000000)
#define SAFE(to, from) ((void)ni_safe_text((from), (to), sizeof(to)))

const char *const ni_live_job_states[] = {"running", "stuck", "ended", "logs_only"};

static struct ni_live_job make_job_key(const char *job, const char *attempt, uint32_t uid) {
  struct ni_live_job key = {.uid = uid};
  SAFE(key.job, job);
  SAFE(key.attempt, attempt);
  return key;
}

/* The job that a log or a living process tells of. */
static uint32_t add_job(struct ni_live *l, const char *job, const char *attempt, uint32_t uid,
                        uint64_t mono_ns) {
  struct ni_live_job key = make_job_key(job, attempt, uid), *to;
  uint32_t j = ni_live_add(l, NI_LIVE_JOBS, &key);
  if (j == NI_INDEX_NONE)
    return j;
  to = &l->job[j];
  if (!to->last_ns || (int64_t)(mono_ns - to->last_ns) > 0)
    to->last_ns = mono_ns;
  if (!to->looked)
    to->ended_ns = 0; /* nobody but its logs says that it lives */
  return j;
}

static struct ni_live_who sanitize_who(const struct ni_live_who *from) {
  struct ni_live_who w = {.rank = from->rank, .gpu = from->gpu};
  SAFE(w.job, from->job);
  SAFE(w.attempt, from->attempt);
  SAFE(w.comm, from->comm);
  SAFE(w.gpu_pci, from->gpu_pci);
  return w;
}

/* false: there is no room (l->full), and nothing was added. */
static bool add_counts(struct ni_live *l, const struct ni_live_counts *c, uint32_t uid, uint64_t mono_ns) {
  uint32_t job = add_job(l, c->who.job, c->who.attempt, uid, mono_ns);
  struct ni_live_class class = {.job = job, .size_class = c->size_class};
  struct ni_live_member member = {.who = sanitize_who(&c->who), .job = job};
  struct ni_live_func func = {0};
  SAFE(class.func, c->func);
  SAFE(func.func, c->func);
  if (job == NI_INDEX_NONE)
    return false;
  uint32_t in_class = ni_live_add(l, NI_LIVE_CLASSES, &class), at;
  if (in_class == NI_INDEX_NONE || (func.member = ni_live_add(l, NI_LIVE_MEMBERS, &member)) == NI_INDEX_NONE)
    return false;
  if ((at = ni_live_add(l, NI_LIVE_FUNCS, &func)) == NI_INDEX_NONE)
    return false;
  struct ni_live_class *sum = &l->class[in_class];
  struct ni_live_func *to = &l->func[at];
  l->job[job].moved_ns = mono_ns;
  sum->timed += c->timed;
  sum->ns += c->ns;
  sum->bus_n += c->bus_n;
  if (isfinite(c->bus_sum))
    sum->bus_sum += c->bus_sum;
  ni_add_counts(sum->took, c->took);
  ni_add_counts(sum->bus, c->bus);
  to->records += c->n;
  to->record_bytes += c->bytes;
  to->rolled += c->rolled;
  to->rolled_bytes += c->rolled_bytes;
  to->n = to->records > to->rolled ? to->records : to->rolled;
  to->bytes = to->record_bytes > to->rolled_bytes ? to->record_bytes : to->rolled_bytes;
  to->timed += c->timed;
  to->ns += c->ns;
  to->bus_n += c->bus_n;
  to->bus_bytes += c->bus_bytes;
  to->bus_ns += c->bus_ns;
  to->late_n += c->late_n;
  to->late_ns += c->late_ns;
  return true;
}

static void add_nvidia(struct ni_live *l, const struct ni_live_nvidia *n) {
  struct ni_live_nvidia key;
  memset(&key, 0, sizeof key); /* also what lies between its fields */
  key.who = sanitize_who(&n->who);
  SAFE(key.func, n->func);
  SAFE(key.algo_proto, n->algo_proto);
  key.p2p = n->p2p;
  key.size_log2 = n->size_log2;
  key.n_ranks = n->n_ranks;
  key.nnodes = n->nnodes;
  uint32_t at = ni_live_add(l, NI_LIVE_NVIDIAS, &key);
  if (at == NI_INDEX_NONE)
    return (void)l->left_out++;
  struct ni_live_nvidia *to = &l->nvidia[at];
  to->n += n->n;
  to->bus_n += n->bus_n;
  if (isfinite(n->log_bus_gbs))
    to->log_bus_gbs += n->log_bus_gbs;
  if (isfinite(n->us))
    to->us += n->us;
}

/*
 * An account has the totals of a life. The member gets by how much they rose; with a new life they begin
 * again. Returns as above.
 */
static bool add_account(struct ni_live *l, const struct ni_live_account *a, const struct ni_live_file *f,
                        uint64_t mono_ns) {
  uint32_t job = add_job(l, a->who.job, a->who.attempt, f->uid, mono_ns);
  struct ni_live_life now = {
      .pid = f->pid, .start_ns = f->start_ns, .hash = a->hash, .comm_rank = a->comm_rank, .job = job};
  struct ni_live_member of = {.who = sanitize_who(&a->who), .job = job};
  if (job == NI_INDEX_NONE)
    return false;
  uint32_t at = ni_live_add(l, NI_LIVE_LIVES, &now), member = ni_live_add(l, NI_LIVE_MEMBERS, &of);
  if (at == NI_INDEX_NONE || member == NI_INDEX_NONE)
    return false;
  struct ni_live_life *last = &l->life[at];
  now.started = a->started;
  now.written = a->written;
  now.incomplete = a->incomplete;
  memcpy(now.filtered, a->filtered, sizeof now.filtered);
  memcpy(now.dropped, a->dropped, sizeof now.dropped);
  last->gpu = a->who.gpu;
  memcpy(last->gpu_pci, a->who.gpu_pci, sizeof last->gpu_pci);
  if (a->begins || now.started < last->started || now.written < last->written)
    memset(last->went, 0, sizeof last->went);
  for (size_t i = 0; i < sizeof now.went / sizeof *now.went; i++) {
    if (now.went[i] <= last->went[i])
      continue;
    l->member[member].went[i] += now.went[i] - last->went[i];
    last->went[i] = now.went[i];
  }
  return true;
}

static int apply_logs(struct ni_live *l, const struct ni_live_batch *b, uint64_t mono_ns) {
  const struct ni_live_file *known = ni_live_file_of(l, b->file.dev, b->file.ino);
  const bool is_same_head =
      known && known->head_bytes == b->file.head_bytes && known->head_hash == b->file.head_hash;
  bool other = known && b->file.from == 0 && !is_same_head;
  if (known && !other && known->to != b->file.from)
    return -ESTALE;
  uint32_t at = ni_live_add(l, NI_LIVE_FILES, &b->file);
  if (at == NI_INDEX_NONE) {
    l->left_out++;
    return 0;
  } /* without its place it would count twice */
  struct ni_live_job key = make_job_key(b->file.job, b->file.attempt, b->file.uid);
  l->file[at] = b->file;
  l->file[at].from = mono_ns;
  memcpy(l->file[at].job, key.job, sizeof key.job);
  memcpy(l->file[at].attempt, key.attempt, sizeof key.attempt);
  l->sated = 0;
  for (uint32_t i = 0; i < b->n_counts; i++)
    while (!add_counts(l, &b->counts[i], b->file.uid, mono_ns) && ni_live_room(l, b->file.uid)) {}
  for (uint32_t i = 0; i < b->n_accounts; i++)
    while (!add_account(l, &b->accounts[i], &b->file, mono_ns) && ni_live_room(l, b->file.uid)) {}
  for (uint32_t i = 0; i < b->n_nvidia; i++)
    add_nvidia(l, &b->nvidia[i]);
  return 0;
}

/*
 * Does its hang still hold? If nothing is stuck here, the missing rank may be here: then it holds until
 * records come that are younger than the verdict, which nobody states again once it is certain.
 */
static bool is_still_hung(const struct ni_live_job *j, bool was_stuck, uint64_t mono_ns) {
  bool moved = j->ended_ns || was_stuck || (int64_t)(j->moved_ns - j->told_ns) > MOVED_NS;
  return j->stuck || (!moved && (int64_t)(mono_ns - j->told_ns) < TOLD_NS);
}

/*
 * Judges the jobs by all looks together. A dead process makes no job, since its box may lie there for days.
 */
static void judge_jobs(struct ni_live *l, uint64_t mono_ns) {
  bool lived[NI_LIVE_JOBS_MAX] = {false}, stuck[NI_LIVE_JOBS_MAX] = {false};
  NI_EACH(const struct ni_live_looked, k, l->look, l->n_looks) {
    l->sated = 0;
    NI_EACH(const struct ni_live_process, p, k->process, k->n_processes) {
      while (ni_live_up(p, mono_ns) && add_job(l, p->job, p->attempt, k->uid, p->seen_ns) == NI_INDEX_NONE)
        if (!ni_live_room(l, k->uid))
          break;
    }
  }
  l->sated = 0;
  NI_EACH(struct ni_live_job, j, l->job, l->n_jobs) {
    lived[j - l->job] = j->alive;
    stuck[j - l->job] = j->stuck;
    j->alive = 0;
    j->stuck = false;
  }
  NI_EACH(const struct ni_live_looked, k, l->look, l->n_looks) {
    NI_EACH(const struct ni_live_process, p, k->process, k->n_processes) {
      struct ni_live_job *j = ni_live_job_of(l, p->job, p->attempt, k->uid);
      if (j) {
        j->looked = true;
        j->alive += ni_live_up(p, mono_ns);
      }
    }
    NI_EACH(const struct ni_live_open, o, k->open, k->n_open) {
      struct ni_live_job *j = o->stuck ? ni_live_job_of(l, o->who.job, o->who.attempt, k->uid) : NULL;
      if (j && j->alive)
        j->stuck = true;
    }
  }
  NI_EACH(struct ni_live_job, j, l->job, l->n_jobs) {
    if (j->alive)
      j->ended_ns = 0;
    else if (lived[j - l->job] && !j->ended_ns)
      j->ended_ns = mono_ns;
    if (!is_still_hung(j, stuck[j - l->job], mono_ns))
      j->hang = (struct ni_live_hang){0};
  }
}

static void free_look(struct ni_live_looked *k) {
  free(k->process);
  free(k->open);
}

/*
 * When its newest sign of life was seen as new. at: its place. For a process that is seen for the first time,
 * its own clock has to tell.
 */
static uint64_t last_seen_ns(const struct ni_live_looked *k, const struct ni_live_process *p, size_t at,
                             uint64_t unix_ns, uint64_t mono_ns) {
  for (size_t i = 0; i < k->n_processes; i++) {
    const struct ni_live_process *was = &k->process[(at + i) % k->n_processes]; /* mostly at the same place */
    if (was->pid == p->pid && was->start_ns == p->start_ns)
      return was->sign_ns == p->sign_ns ? was->seen_ns : mono_ns;
  }
  return p->sign_ns < unix_ns ? mono_ns - (unix_ns - p->sign_ns) : mono_ns;
}

static int apply_look(struct ni_live *l, const struct ni_live_batch *b, uint64_t unix_ns, uint64_t mono_ns) {
  struct ni_live_looked new = {b->uid, b->logs, b->boxes, b->unread, mono_ns, b->behind, NULL, NULL, 0, 0};
  size_t at = 0;
  while (at < l->n_looks && l->look[at].uid != b->uid)
    at++;
  new.process = calloc(b->n_processes + 1, sizeof *new.process);
  new.open = calloc(b->n_open + 1, sizeof *new.open);
  const bool has_memory = new.process &&new.open;
  if (!has_memory || at >= NI_LIVE_USERS_MAX || !ni_array_room(l->look, at, l->cap_looks)) {
    free_look(&new);
    return -ENOMEM;
  }
  const struct ni_live_looked none = {0}, *old = at < l->n_looks ? &l->look[at] : &none;
  for (size_t i = 0; i < b->n_processes; i++, new.n_processes++) {
    new.process[i] = b->processes[i];
    new.process[i].seen_ns = last_seen_ns(old, &b->processes[i], i, unix_ns, mono_ns);
  }
  for (; new.n_open < b->n_open; new.n_open++)
    new.open[new.n_open] = b->open[new.n_open];
  if (at == l->n_looks)
    l->n_looks++;
  else
    free_look(&l->look[at]);
  l->look[at] = new;
  judge_jobs(l, mono_ns);
  for (uint32_t i = 0; i < b->n_hangs; i++) {
    struct ni_live_job *j = ni_live_job_of(l, b->hangs[i].job, b->hangs[i].attempt, b->uid);
    if (j) {
      j->hang = b->hangs[i];
      j->hang_ns = unix_ns;
      j->told_ns = mono_ns;
    }
  }
  const bool has_anything = b->n_processes || b->n_open || b->logs || b->boxes;
  if (has_anything)
    return 0;
  free_look(&new); /* he has nothing here any more */
  l->look[at] = l->look[--l->n_looks];
  return 0;
}

int ni_live_apply(struct ni_live *l, const struct ni_live_batch *b, uint64_t unix_ns, uint64_t mono_ns) {
  if (!ni_live_ready(l))
    return -ENOMEM;
  int e = b->kind == NI_LIVE_LOGS ? apply_logs(l, b, mono_ns) : apply_look(l, b, unix_ns, mono_ns);
  if (e)
    return e;
  l->totals.lines += b->totals.lines;
  l->totals.bad_lines += b->totals.bad_lines;
  l->totals.damages += b->totals.damages;
  l->totals.bytes += b->totals.bytes;
  l->left_out += b->totals.keys_left_out;
  if (!l->began_ns)
    l->began_ns = unix_ns;
  return 0;
}

const struct ni_live_file *ni_live_file_of(const struct ni_live *l, uint64_t dev, uint64_t ino) {
  uint32_t at = ni_live_find(l, NI_LIVE_FILES, (uint64_t[]){dev, ino});
  return at == NI_INDEX_NONE ? NULL : &l->file[at];
}

bool ni_live_replaced(const struct ni_live_looked *k, const struct ni_live_process *p) {
  const struct ni_live_process *end = k->process + k->n_processes;
  for (const struct ni_live_process *q = k->process; ni_life_gone(p->life) && q < end; q++) {
    bool newer = !ni_life_gone(q->life) && q->rank == p->rank && q->start_ns > p->sign_ns;
    if (newer && strcmp(q->job, p->job) == 0 && strcmp(q->attempt, p->attempt) == 0)
      return true;
  }
  return false;
}

struct ni_live_job *ni_live_job_of(const struct ni_live *l, const char *job, const char *attempt,
                                   uint32_t uid) {
  struct ni_live_job key = make_job_key(job, attempt, uid);
  uint32_t at = ni_live_find(l, NI_LIVE_JOBS, &key);
  return at == NI_INDEX_NONE ? NULL : &l->job[at];
}

void ni_live_free(struct ni_live *l) {
  while (l->n_looks)
    free_look(&l->look[--l->n_looks]);
  free(l->look);
  free(l->nvidia_shown);
  for (unsigned t = 0; t < NI_LIVE_TABLES; t++) {
    free(NI_LIVE_ITEMS(l, t));
    ni_index_free(NI_LIVE_AT(l, ni_live_shapes[t].index));
  }
  *l = (struct ni_live){0};
}
