#include "live.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/text/safe_text.h"
#include "tables.h"

/* Keys as the items begin (tables.h), whole: what is not text is 0. */
struct job_key {
  char job[64], attempt[16];
  uint32_t uid;
};
struct class_key {
  uint32_t job;
  char func[24];
  uint32_t size_class;
};
struct member_key {
  struct ni_live_who who;
  uint32_t job;
};
struct func_key {
  uint32_t member;
  char func[24];
};
_Static_assert(offsetof(struct job_key, uid) == offsetof(struct ni_live_job, uid), "the key of a job is how it begins");
_Static_assert(offsetof(struct class_key, size_class) == offsetof(struct ni_live_class, size_class), "the key of a class");
_Static_assert(offsetof(struct member_key, job) == offsetof(struct ni_live_member, job), "the key of a member");
_Static_assert(offsetof(struct func_key, func) == offsetof(struct ni_live_func, func), "the key of a function");

#define SAFE(to, from) ((void)ni_safe_text((from), (to), sizeof(to)))

static struct job_key job_key(const char *job, const char *attempt, uint32_t uid) {
  struct job_key k = {.uid = uid};
  SAFE(k.job, job);
  SAFE(k.attempt, attempt);
  return k;
}

/* The job that a log or a living process tells of. */
static uint32_t add_job(struct ni_live *l, const char *job, const char *attempt, uint32_t uid, uint64_t unix_ns) {
  struct job_key key = job_key(job, attempt, uid);
  uint32_t j = ni_live_add(l, NI_LIVE_JOBS, &key);
  if (j == NI_INDEX_NONE) return j;
  if (!l->job[j].first_ns) l->job[j].first_ns = unix_ns;
  if (unix_ns > l->job[j].last_ns) l->job[j].last_ns = unix_ns;
  if (!l->job[j].looked) l->job[j].ended_ns = 0; /* nobody but its logs says that it lives */
  return j;
}

static struct ni_live_who safe_who(const struct ni_live_who *from) {
  struct ni_live_who w = {.rank = from->rank, .gpu = from->gpu};
  SAFE(w.job, from->job);
  SAFE(w.attempt, from->attempt);
  SAFE(w.comm, from->comm);
  SAFE(w.gpu_pci, from->gpu_pci);
  return w;
}

static uint32_t add_member(struct ni_live *l, const struct ni_live_who *who, uint32_t job) {
  struct member_key key = {safe_who(who), job};
  return ni_live_add(l, NI_LIVE_MEMBERS, &key);
}

static void add_counts(struct ni_live *l, const struct ni_live_counts *c, uint32_t uid, uint64_t unix_ns) {
  uint32_t job = add_job(l, c->who.job, c->who.attempt, uid, unix_ns);
  if (job == NI_INDEX_NONE) return;
  struct class_key ck = {.job = job, .size_class = c->size_class};
  struct func_key fk = {.member = add_member(l, &c->who, job)};
  SAFE(ck.func, c->func);
  SAFE(fk.func, c->func);
  uint32_t at = ni_live_add(l, NI_LIVE_CLASSES, &ck);
  if (at != NI_INDEX_NONE) {
    struct ni_live_class *to = &l->class[at];
    to->timed += c->timed, to->ns += c->ns, to->bus_n += c->bus_n;
    if (isfinite(c->bus_sum)) to->bus_sum += c->bus_sum;
    ni_add_counts(to->took, c->took);
    ni_add_counts(to->bus, c->bus);
  }
  at = fk.member == NI_INDEX_NONE ? fk.member : ni_live_add(l, NI_LIVE_FUNCS, &fk);
  if (at == NI_INDEX_NONE) return;
  struct ni_live_func *to = &l->func[at];
  to->n += c->n, to->bytes += c->bytes, to->timed += c->timed, to->ns += c->ns;
  to->bus_n += c->bus_n, to->bus_bytes += c->bus_bytes, to->bus_ns += c->bus_ns;
  to->late_n += c->late_n, to->late_ns += c->late_ns;
}

static void add_nvidia(struct ni_live *l, const struct ni_live_nvidia *n) {
  struct ni_live_nvidia key;
  memset(&key, 0, sizeof key); /* also what lies between its fields */
  key.who = safe_who(&n->who);
  SAFE(key.func, n->func);
  SAFE(key.algo_proto, n->algo_proto);
  key.p2p = n->p2p, key.size_log2 = n->size_log2, key.n_ranks = n->n_ranks, key.nnodes = n->nnodes;
  uint32_t at = ni_live_add(l, NI_LIVE_NVIDIAS, &key);
  if (at == NI_INDEX_NONE) return;
  struct ni_live_nvidia *to = &l->nvidia[at];
  to->n += n->n, to->bus_n += n->bus_n;
  if (isfinite(n->log_bus_gbs)) to->log_bus_gbs += n->log_bus_gbs;
  if (isfinite(n->us)) to->us += n->us;
}

/* An account has whole numbers of a life; the member gets by how much they rose. They begin again with a new life. */
static void add_account(struct ni_live *l, const struct ni_live_account *a, const struct ni_live_file *f, uint64_t unix_ns) {
  uint32_t job = add_job(l, a->who.job, a->who.attempt, f->uid, unix_ns);
  if (job == NI_INDEX_NONE) return;
  struct ni_live_life now = {.pid = f->pid, .start_ns = f->start_ns, .hash = a->hash, .comm_rank = a->comm_rank, .job = job};
  uint32_t at = ni_live_add(l, NI_LIVE_LIVES, &now), member = add_member(l, &a->who, job);
  if (at == NI_INDEX_NONE || member == NI_INDEX_NONE) return;
  now.started = a->started, now.written = a->written, now.incomplete = a->incomplete;
  memcpy(now.filtered, a->filtered, sizeof now.filtered);
  memcpy(now.dropped, a->dropped, sizeof now.dropped);
  struct ni_live_life *last = &l->life[at];
  if (a->begins || now.started < last->started || now.written < last->written) memset(last->went, 0, sizeof last->went);
  for (size_t i = 0; i < sizeof now.went / sizeof *now.went; i++) {
    if (now.went[i] <= last->went[i]) continue;
    l->member[member].went[i] += now.went[i] - last->went[i];
    last->went[i] = now.went[i];
  }
}

static int apply_logs(struct ni_live *l, const struct ni_live_batch *b, uint64_t unix_ns) {
  const struct ni_live_file *known = ni_live_file_of(l, b->file.dev, b->file.ino);
  bool other = known && b->file.from == 0 && (known->head_bytes != b->file.head_bytes || known->head_hash != b->file.head_hash);
  if (known && !other && known->to != b->file.from) return -ESTALE;
  size_t keys = (size_t)b->n_counts + b->n_accounts;
  if (!ni_live_room(l, NI_LIVE_FILES, 1) || !ni_live_room(l, NI_LIVE_JOBS, keys) || !ni_live_room(l, NI_LIVE_MEMBERS, keys) ||
      !ni_live_room(l, NI_LIVE_CLASSES, b->n_counts) || !ni_live_room(l, NI_LIVE_FUNCS, b->n_counts) ||
      !ni_live_room(l, NI_LIVE_NVIDIAS, b->n_nvidia) || !ni_live_room(l, NI_LIVE_LIVES, b->n_accounts))
    return -ENOMEM;
  uint32_t at = ni_live_add(l, NI_LIVE_FILES, &b->file);
  if (at == NI_INDEX_NONE) return 0; /* without its place it would count twice */
  struct ni_live_file *f = &l->file[at];
  *f = b->file;
  f->from = unix_ns;
  struct job_key key = job_key(b->file.job, b->file.attempt, b->file.uid);
  memcpy(f->job, key.job, sizeof f->job);
  memcpy(f->attempt, key.attempt, sizeof f->attempt);
  for (uint32_t i = 0; i < b->n_counts; i++) add_counts(l, &b->counts[i], b->file.uid, unix_ns);
  for (uint32_t i = 0; i < b->n_accounts; i++) add_account(l, &b->accounts[i], &b->file, unix_ns);
  for (uint32_t i = 0; i < b->n_nvidia; i++) add_nvidia(l, &b->nvidia[i]);
  return 0;
}

/* What all looks together say of the jobs. A dead process makes no job: its box may lie there for days. */
static void judge_jobs(struct ni_live *l, uint64_t unix_ns) {
  uint32_t was[NI_LIVE_JOBS_MAX];
  size_t n_before = l->n_jobs;
  for (size_t i = 0; i < l->n_jobs; i++) was[i] = l->job[i].alive, l->job[i].alive = 0, l->job[i].stuck = false;
  for (const struct ni_live_looked *k = l->look; k < l->look + l->n_looks; k++) {
    for (const struct ni_live_process *p = k->process; p < k->process + k->n_processes; p++) {
      bool up = ni_live_up(p, unix_ns);
      struct job_key key = job_key(p->job, p->attempt, k->uid);
      uint64_t sign = p->sign_ns < unix_ns ? p->sign_ns : unix_ns;
      uint32_t j = up ? add_job(l, p->job, p->attempt, k->uid, sign) : ni_live_find(l, NI_LIVE_JOBS, &key);
      if (j == NI_INDEX_NONE) continue;
      l->job[j].looked = true;
      l->job[j].alive += up;
    }
    for (const struct ni_live_open *o = k->open; o < k->open + k->n_open; o++) {
      struct job_key key = job_key(o->who.job, o->who.attempt, k->uid);
      uint32_t j = o->stuck ? ni_live_find(l, NI_LIVE_JOBS, &key) : NI_INDEX_NONE;
      if (j != NI_INDEX_NONE && l->job[j].alive) l->job[j].stuck = true;
    }
  }
  for (size_t i = 0; i < l->n_jobs; i++) {
    struct ni_live_job *j = &l->job[i];
    if (j->alive) j->ended_ns = 0;
    else if (i < n_before && was[i] && !j->ended_ns) j->ended_ns = unix_ns;
    if (j->alive && !j->stuck) j->hang = (struct ni_live_hang){0}; /* it has moved on */
  }
}

static int apply_look(struct ni_live *l, const struct ni_live_batch *b, uint64_t unix_ns, uint64_t mono_ns) {
  struct ni_live_process *process = calloc(b->n_processes + 1, sizeof *process);
  struct ni_live_open *open = calloc(b->n_open + 1, sizeof *open);
  size_t at = 0;
  while (at < l->n_looks && l->look[at].uid != b->uid) at++;
  bool full = at >= NI_LIVE_USERS_MAX, room = process && open && ni_live_room(l, NI_LIVE_JOBS, b->n_processes);
  if (full || !room || !ni_array_room(l->look, at, l->cap_looks)) {
    free(process);
    free(open);
    l->left_out += full;
    return full ? 0 : -ENOMEM;
  }
  for (uint32_t i = 0; i < b->n_processes; i++) {
    const struct ni_live_process *from = &b->processes[i];
    process[i] = *from;
    SAFE(process[i].job, from->job);
    SAFE(process[i].attempt, from->attempt);
    SAFE(process[i].host, from->host);
    SAFE(process[i].exe, from->exe);
  }
  for (uint32_t i = 0; i < b->n_open; i++) {
    open[i] = b->open[i];
    open[i].who = safe_who(&b->open[i].who);
    SAFE(open[i].func, b->open[i].func);
  }
  if (at < l->n_looks) {
    free(l->look[at].process);
    free(l->look[at].open);
  } else {
    l->n_looks++;
  }
  l->look[at] = (struct ni_live_looked){b->uid,   b->logs,     b->boxes, b->unread,      mono_ns,
                                        b->behind, process, open,     b->n_processes, b->n_open};
  judge_jobs(l, unix_ns);
  for (uint32_t i = 0; i < b->n_hangs; i++) {
    struct job_key key = job_key(b->hangs[i].job, b->hangs[i].attempt, b->uid);
    uint32_t j = ni_live_find(l, NI_LIVE_JOBS, &key);
    if (j == NI_INDEX_NONE) continue;
    l->job[j].hang = b->hangs[i];
    l->job[j].hang_ns = unix_ns;
  }
  return 0;
}

int ni_live_apply(struct ni_live *l, const struct ni_live_batch *b, uint64_t unix_ns, uint64_t mono_ns) {
  int e = b->kind == NI_LIVE_LOGS ? apply_logs(l, b, unix_ns) : apply_look(l, b, unix_ns, mono_ns);
  if (e) return e;
  struct ni_live_totals *to = &l->totals;
  const struct ni_live_totals *t = &b->totals;
  to->lines += t->lines, to->bad_lines += t->bad_lines, to->damages += t->damages, to->bytes += t->bytes;
  to->keys_left_out += t->keys_left_out;
  if (!l->began_ns) l->began_ns = unix_ns;
  return 0;
}

const struct ni_live_file *ni_live_file_of(const struct ni_live *l, uint64_t dev, uint64_t ino) {
  uint32_t at = ni_live_find(l, NI_LIVE_FILES, (uint64_t[]){dev, ino});
  return at == NI_INDEX_NONE ? NULL : &l->file[at];
}

const struct ni_live_job *ni_live_job_of(const struct ni_live *l, const char *job, const char *attempt, uint32_t uid) {
  struct job_key key = job_key(job, attempt, uid);
  uint32_t at = ni_live_find(l, NI_LIVE_JOBS, &key);
  return at == NI_INDEX_NONE ? NULL : &l->job[at];
}

void ni_live_free(struct ni_live *l) {
  for (size_t i = 0; i < l->n_looks; i++) {
    free(l->look[i].process);
    free(l->look[i].open);
  }
  free(l->look);
  free(l->nvidia_shown);
  for (enum ni_live_table t = 0; t < NI_LIVE_TABLES; t++) {
    free(ni_live_items(l, t));
    ni_index_free((struct ni_index *)((char *)l + ni_live_shapes[t].index));
  }
  *l = (struct ni_live){0};
}
