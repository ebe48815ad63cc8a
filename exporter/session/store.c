#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "entry.h"
#include "recover.h"
#include "roster.h"

struct ni_store {
  struct ni_store_options o;
  struct ni_place place;
  int lock; /* the lock's file */
  struct ni_writer *writer;
  struct ni_frame_text text, late;
  struct ni_entry **entry; /* by the time of their start */
  size_t n, cap, running;
  /* of what ran before, the session with the fewest frames: its newest; and who was in it */
  int64_t resumed_ns;
  /* when states that could not be saved were tried again, CLOCK_MONOTONIC */
  uint64_t tried_ns;
  struct {
    char *id;
    uint64_t seq;
  } *back;
  size_t n_back;
};

static int fail(int e, char *why, size_t cap, const char *what) {
  snprintf(why, cap, "%s: %s", what, strerror(-e));
  return e;
}

/* ---- the store ---- */

static struct ni_entry *add(struct ni_store *s) {
  struct ni_entry *e = ni_array_room(s->entry, s->n, s->cap) ? calloc(1, sizeof *e) : NULL;
  if (!e)
    return NULL;
  e->place = &s->place;
  e->part.fd = e->replaced = -1;
  e->to = (struct ni_written){.store = s->place.dir, .fd = {-1, -1, -1}};
  return s->entry[s->n++] = e;
}

static void drop(struct ni_entry *e) {
  ni_entry_close(e);
  ni_sums_free(&e->sums);
  free(e);
}

static void forget_resumed(struct ni_store *s) {
  for (size_t i = 0; i < s->n_back; i++)
    free(s->back[i].id);
  free(s->back);
  s->back = NULL;
  s->n_back = 0;
}

static void note_resumed(struct ni_store *s, const struct ni_past *p, int64_t start_ns) {
  const struct ni_columns *c = &p->of[NI_CLIENTS];
  int64_t tick = p->tick_ns ? p->tick_ns : start_ns;
  if (s->resumed_ns && (s->resumed_ns < tick || (s->resumed_ns == tick && s->n_back >= c->n)))
    return;
  forget_resumed(s);
  s->resumed_ns = tick;
  s->back = calloc(c->n + 1, sizeof *s->back); /* without memory samples come twice, which is no harm */
  for (size_t i = 0; s->back && i < c->n && i < p->cap_seq; i++, s->n_back++)
    if ((s->back[i].id = strdup(c->at[i].id)))
      s->back[i].seq = p->seq[i];
    else
      break;
}

/* What is there; what ran runs on, from where the one ended that has the fewest frames. */
static int load(struct ni_store *s, char *why, size_t cap) {
  struct ni_state *states;
  int n = ni_states_read(s->place.dir, &states), err = n < 0 ? n : 0;
  for (int i = 0; i < n && err == 0; i++) {
    struct ni_entry *e = add(s);
    struct ni_past p = {0};
    if (!e && (err = -ENOMEM, fail(err, why, cap, "sessions")))
      break;
    e->state = states[i];
    struct ni_session *of = &e->state.session;
    memcpy(e->to.id, of->id, sizeof of->id);
    if (of->active || of->finishing)
      ni_entry_sweep(e);
    of->active = of->active && e->state.gsprof == s->o.gsprof;
    if (of->active && s->running >= NI_STORE_SESSIONS_MAX) {
      fail(-ENOSPC, of->error, sizeof of->error, "it does not go on");
      of->active = false;
    }
    int bad = of->active ? ni_entry_open(e, &p) : 0;
    if (bad) { /* others go on */
      fail(bad, of->error, sizeof of->error, "it does not go on");
      of->active = false;
      e->stalled = true;
    } else if (of->active) {
      note_resumed(s, &p, of->start_ns);
      ni_entry_adopt(e, &p, &s->text, s->running == 0);
      s->running++;
      (void)ni_entry_save(e); /* a disk that is full takes it later */
    } else if (of->finishing) {
      ni_entry_finish(e, true);
    }
    ni_past_free(&p);
  }
  free(states);
  return err;
}

int ni_store_open(struct ni_store **out, const struct ni_store_options *o, char *why, size_t cap) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  const char *data = o->data ? o->data : o->gsprof ? ".gswarm_profiler_data" : ".nccl-inspector-sessions";
  struct ni_store *s = *out = calloc(1, sizeof *s);
  char said[256] = "";
  if (!s)
    return fail(-ENOMEM, why, cap, data);
  *why = 0;
  *s = (struct ni_store){.o = *o, .place = {.dir = -1, .out = -1}, .lock = -1};
  ni_store_flags(s, o->bandwidth, o->nvlink);
  mode_t mask = umask(077);
  s->place.dir = ni_out_dir(data, true, why, cap);
  umask(mask);
  const int own = s->place.dir < 0 ? 0 : ni_out_own(s->place.dir, said, sizeof said);
  if (s->place.dir >= 0)
    s->place.out = ni_out_dir(o->output ? o->output : ".", true, why, cap);
  int err = s->place.dir < 0 ? s->place.dir : s->place.out < 0 ? s->place.out : own;
  if (own < 0)
    snprintf(why, cap, "--data-dir=%s: %s", data, said);
  if (err == 0 &&
      (s->lock = openat(s->place.dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
    err = -errno;
  if (err == 0 && fcntl(s->lock, F_SETLK, &lock) != 0) {
    err = -EBUSY;
    if (fcntl(s->lock, F_GETLK, &lock) != 0)
      lock.l_pid = -1;
    snprintf(why, cap, "%s: the head with pid %d has it. One folder, one head", data, (int)lock.l_pid);
  }
  if (err == 0)
    err = ni_writer_new(&s->writer);
  /* what is hidden there is the roster's, of a head that was killed */
  if (err == 0)
    ni_out_sweep(s->place.dir, "", "", 0);
  if (err == 0)
    err = load(s, why, cap);
  if (err && !*why)
    fail(err, why, cap, data);
  if (err) {
    ni_store_close(s);
    *out = NULL;
  }
  return err;
}

void ni_store_close(struct ni_store *s) {
  if (!s)
    return;
  for (size_t i = 0; i < s->n; i++) {
    atomic_store(&s->entry[i]->leave, true);
    atomic_store(&s->entry[i]->undo, true);
  }
  ni_writer_free(s->writer);
  for (size_t i = 0; i < s->n; i++) {
    struct ni_entry *e = s->entry[i];
    if (e->finisher)
      ni_entry_finished(e);
    if (e->builder)
      ni_entry_built(e);
    if (e->state.session.active) {
      ni_entry_close(e);
      (void)ni_entry_save(e);
    }
    drop(e);
  }
  free(s->entry);
  ni_frame_text_free(&s->text);
  ni_frame_text_free(&s->late);
  forget_resumed(s);
  if (s->lock >= 0)
    close(s->lock);
  if (s->place.out >= 0)
    close(s->place.out);
  if (s->place.dir >= 0)
    close(s->place.dir);
  free(s);
}

int ni_store_dir(const struct ni_store *s) { return s->place.dir; }

void ni_store_flags(struct ni_store *s, bool bandwidth, bool nvlink) {
  s->text.gsprof = s->late.gsprof = s->o.gsprof;
  s->text.bandwidth = s->late.bandwidth = bandwidth;
  s->text.nvlink = s->late.nvlink = nvlink;
}

int64_t ni_store_resumed(const struct ni_store *s) { return s->resumed_ns; }

uint64_t ni_store_resumed_seq(const struct ni_store *s, const char *uuid) {
  char end[16]; /* of a client's id, "host_<8 digits of uuid>" */
  size_t n = (size_t)snprintf(end, sizeof end, "_%.8s\"", uuid);
  for (size_t i = 0; i < s->n_back; i++) {
    size_t len = strlen(s->back[i].id);
    if (len > n && !strcmp(s->back[i].id + len - n, end))
      return s->back[i].seq;
  }
  return 0;
}

int ni_store_roster(const struct ni_store *s, void (*each)(void *arg, struct ni_rostered *r), void *arg) {
  return ni_roster_read(s->place.dir, each, arg);
}

void ni_store_note(struct ni_store *s, const struct ni_grid *g) {
  struct ni_buffer text;
  ni_roster_text(g, &text);
  ni_writer_file(s->writer, s->place.dir, NI_ROSTER, &text);
}

/* ---- start, stop, resume ---- */

#define TRY_NS UINT64_C(1000000000)
/* of no late sample, before a file that is whole is made anew for those that came */
#define LATE_NS INT64_C(2000000000)

/* What the writer let go is lost. */
static void count_gone(struct ni_entry *e) {
  uint64_t gone = atomic_load(&e->to.gone);
  e->state.session.frames_lost += gone - e->gone_told;
  e->gone_told = gone;
}

size_t ni_store_running(const struct ni_store *s) { return s->running; }

static struct ni_entry *find(const struct ni_store *s, const char *name, bool active) { /* the newest */
  for (size_t i = s->n; i-- > 0;)
    if (s->entry[i]->state.session.active == active &&
        (!strcmp(s->entry[i]->state.session.name, name) || !strcmp(s->entry[i]->state.session.id, name)))
      return s->entry[i];
  return NULL;
}

static bool taken(const struct ni_store *s, const struct ni_entry *but, const char *file) {
  struct stat st;
  if (fstatat(s->place.out, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
    return true;
  for (size_t i = 0; i < s->n; i++)
    if (s->entry[i] != but && s->entry[i]->state.session.active &&
        !strcmp(s->entry[i]->state.session.file, file))
      return true;
  return false;
}

static int make_uuid(char id[40]) {
  uint8_t b[16];
  if (getrandom(b, sizeof b, 0) != sizeof b)
    return -errno;
  b[6] = (uint8_t)(b[6] & 0x0f) | 0x40;
  b[8] = (uint8_t)(b[8] & 0x3f) | 0x80;
  for (int i = 0, at = 0; i < 16; i++)
    at += sprintf(id + at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
  return 0;
}

static int refuse(int e, char *why, size_t cap, const char *sentence) {
  snprintf(why, cap, "%s", sentence);
  return e;
}

/* It runs: files, columns, state. In an error all is as before. */
static int begin(struct ni_store *s, struct ni_entry *e) {
  struct ni_past p = {0};
  struct ni_session was = e->state.session;
  e->state.session.active = true;
  e->state.session.end_ns = 0;
  e->state.session.finishing = e->unsynced = false;
  *e->state.session.error = 0;
  int err = ni_entry_open(e, &p);
  if (err == 0 && (err = ni_entry_save(e)) != 0)
    ni_entry_close(e);
  if (err == 0) {
    ni_entry_adopt(e, &p, &s->text, s->running == 0);
    s->running++;
    e->stalled = false;
  } else
    e->state.session = was;
  ni_past_free(&p);
  return err;
}

int ni_store_start(struct ni_store *s, const char *name, int64_t now_ns, struct ni_session *out, char *why,
                   size_t cap) {
  char made[64];
  struct tm tm;
  time_t second = (time_t)(now_ns / 1000000000);
  if (!name || !*name) {
    if (!localtime_r(&second, &tm) ||
        !strftime(made, sizeof made, s->o.gsprof ? "gswarm_profiler_%Y%m%d_%H%M%S" : "session_%Y%m%d_%H%M%S",
                  &tm))
      return refuse(-EINVAL, why, cap, "no such time");
    name = made;
  }
  if (!ni_session_name(name))
    return refuse(
        -EINVAL, why, cap,
        "a name has 1 to 128 of A-Z a-z 0-9 . _ - and space, and begins with neither . nor a space");
  if (find(s, name, true))
    return refuse(-EEXIST, why, cap, "a session of that name runs");
  if (s->running >= NI_STORE_SESSIONS_MAX)
    return refuse(-ENOSPC, why, cap, "256 sessions run already");
  struct ni_entry *e = add(s);
  if (!e)
    return fail(-ENOMEM, why, cap, name);
  struct ni_session *of = &e->state.session;
  e->state.gsprof = s->o.gsprof;
  e->state.period_ns = s->o.period_ns;
  snprintf(of->name, sizeof of->name, "%s", name);
  snprintf(of->file, sizeof of->file, "%s.json", name);
  for (int k = 2; taken(s, e, of->file) && k < 10000; k++)
    snprintf(of->file, sizeof of->file, "%s-%d.json", name, k);
  of->start_ns = now_ns;
  int err = make_uuid(of->id);
  if (err == 0 && mkdirat(s->place.dir, of->id, 0700) < 0)
    err = -errno;
  if (err == 0) {
    if ((err = begin(s, e)) == 0 && fsync(s->place.dir) < 0)
      err = -errno;
    if (err) { /* nothing of it stays; of what was written only these can be there */
      char path[64];
      s->running -= of->active;
      for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", of->id, i ? "state.json" : "frames.jsonl");
        unlinkat(s->place.dir, path, 0);
      }
      unlinkat(s->place.dir, of->id, AT_REMOVEDIR);
    }
  }
  if (err == 0) {
    *out = *of;
    return 0;
  }
  s->n--;
  drop(e);
  return fail(err, why, cap, name);
}

bool ni_store_flushed(struct ni_store *s, const char *name) {
  for (size_t i = 0; i < s->n; i++) {
    const struct ni_session *of = &s->entry[i]->state.session;
    bool meant = !name || !*name || !strcmp(of->name, name) || !strcmp(of->id, name);
    if (of->active && meant && ni_writer_flushed(s->writer, &s->entry[i]->to) == -EAGAIN)
      return false;
  }
  return true;
}

int ni_store_stop(struct ni_store *s, const char *name, int64_t now_ns, struct ni_session *out, char *why,
                  size_t cap) {
  struct ni_entry *e = NULL;
  if (name && *name)
    e = find(s, name, true);
  else if (s->running > 1)
    return refuse(-EINVAL, why, cap, "several sessions run: say which");
  for (size_t i = 0; !e && !(name && *name) && i < s->n; i++)
    if (s->entry[i]->state.session.active)
      e = s->entry[i];
  if (!e)
    return refuse(-ENOENT, why, cap, name && *name ? "no session of that name runs" : "no session runs");
  int err = ni_writer_flushed(s->writer, &e->to);
  count_gone(e);
  if (err == 0)
    err = ni_entry_end(e, now_ns, s->text.of);
  if (err == -EAGAIN)
    return refuse(err, why, cap,
                  "the session goes on, since the disk has not taken all of it yet: ask again");
  if (err)
    return fail(err, why, cap, "the session goes on, since it cannot be written");
  s->running--;
  *out = e->state.session;
  return 0;
}

int ni_store_resume(struct ni_store *s, const char *id_or_name, int64_t now_ns, struct ni_session *out,
                    char *why, size_t cap) {
  struct ni_entry *e = find(s, id_or_name, false);
  if (!e)
    return refuse(-ENOENT, why, cap,
                  find(s, id_or_name, true) ? "it runs already" : "no session of that name or id");
  if (find(s, e->state.session.name, true))
    return refuse(-EEXIST, why, cap, "a session of that name runs");
  if (e->finisher && !atomic_load(&e->finished)) {
    atomic_store(&e->undo, true); /* the file will be made when the session ends again */
    return refuse(-EAGAIN, why, cap, "its file is being written to the disk: ask again");
  }
  if (e->finisher)
    ni_entry_finished(e);
  if (e->state.gsprof != s->o.gsprof)
    return refuse(-EINVAL, why, cap, "it was recorded in the other form (gsprof's, or native)");
  if (s->running >= NI_STORE_SESSIONS_MAX)
    return refuse(-ENOSPC, why, cap, "256 sessions run already");
  int err = ni_writer_flushed(s->writer, &e->to); /* late samples of it may be on their way */
  if (err == -EAGAIN)
    return refuse(err, why, cap, "the disk has not taken all of it yet: ask again");
  uint64_t late_ns = e->late_ns;
  if (err == 0)
    err = begin(s, e);
  if (err) {
    e->late_ns = late_ns;
    return fail(err, why, cap, id_or_name);
  }
  *out = e->state.session;
  return 0;
}

int ni_store_list(const struct ni_store *s, struct ni_session **list) {
  *list = calloc(s->n + 1, sizeof **list);
  for (size_t i = 0; *list && i < s->n; i++)
    (*list)[i] = s->entry[s->n - 1 - i]->state.session;
  return *list ? (int)s->n : -ENOMEM;
}

bool ni_store_current(const struct ni_store *s, struct ni_session *out) {
  const struct ni_entry *e = s->n ? s->entry[s->n - 1] : NULL;
  for (size_t i = s->n; i-- > 0 && !e->state.session.active;)
    if (s->entry[i]->state.session.active)
      e = s->entry[i];
  if (e)
    *out = e->state.session;
  return e;
}

/* ---- frames ---- */

void ni_store_frame(struct ni_store *s, const struct ni_frame *f) {
  struct ni_written *to[NI_STORE_SESSIONS_MAX];
  uint64_t id[NI_STORE_SESSIONS_MAX];
  struct ni_entry *of[NI_STORE_SESSIONS_MAX];
  size_t n = 0;
  struct ni_buffer text = {0};
  for (size_t i = 0; s->running && i < s->n; i++) {
    struct ni_entry *e = s->entry[i];
    if (!e->state.session.active || f->tick_ns < e->state.session.start_ns || f->tick_ns <= e->tick_ns)
      continue;
    of[n] = e;
    to[n] = &e->to;
    id[n++] = e->state.session.frames + 1;
  }
  if (n)
    ni_frame_put(&s->text, f, &text);
  bool put = ni_writer_put(s->writer, to, id, n, f->tick_ns, false, &text) == 0;
  for (size_t i = 0; i < n; i++) {
    of[i]->tick_ns = f->tick_ns;
    if (!put)
      of[i]->state.session.frames_lost++;
    else if (of[i]->state.session.frames++, !of[i]->mixed && !ni_frame_sum(&s->text, &of[i]->sums))
      of[i]->mixed = true;
  }
}

void ni_store_late(struct ni_store *s, const struct ni_client *c, const struct ni_sample *sample,
                   int64_t tick_ns) {
  struct ni_written *to[NI_STORE_SESSIONS_MAX];
  struct ni_frame_client of = {.client = c, .sample = sample, .age_ns = 0, .seq = sample->seq};
  struct ni_buffer text = {0};
  size_t n = 0;
  if (tick_ns > sample->time_ns)
    of.age_ns = tick_ns - sample->time_ns;
  for (size_t i = s->n; i-- > 0 && n < NI_STORE_SESSIONS_MAX;) {
    struct ni_session *e = &s->entry[i]->state.session;
    if (tick_ns >= e->start_ns && (e->active || tick_ns <= e->end_ns) &&
        s->entry[i]->state.gsprof == s->o.gsprof)
      to[n++] = &s->entry[i]->to;
  }
  if (!n)
    return;
  ni_frame_text_free(&s->late);
  ni_late_put(&s->late, &s->text, &of, tick_ns, &text);
  bool put = ni_writer_put(s->writer, to, NULL, n, tick_ns, true, &text) == 0;
  for (size_t i = 0; i < s->n; i++)
    for (size_t k = 0; k < n; k++) {
      struct ni_entry *e = s->entry[i];
      if (to[k] != &e->to)
        continue;
      *(put ? &e->state.session.late : &e->state.session.frames_lost) += 1;
      if (e->state.session.active || !put)
        continue;
      bool first = !e->late_ns && !e->state.session.finishing;
      e->late_ns = ni_now_ns(CLOCK_MONOTONIC);
      e->state.session.finishing = true; /* its file will have it; a head that is killed now does that, too */
      if (first)
        (void)ni_entry_save(e);
    }
}

/* Threads that are done; files that late samples came for. */
static void look_at(struct ni_store *s, struct ni_entry *e, uint64_t now) {
  if (e->finisher && atomic_load(&e->finished))
    ni_entry_finished(e);
  if (e->builder && !e->finisher && atomic_load(&e->built))
    ni_entry_built(e);
  bool quiet = e->late_ns && (int64_t)(now - e->late_ns) > LATE_NS;
  if (quiet && !e->finisher && !e->state.session.active && ni_writer_flushed(s->writer, &e->to) == 0)
    ni_entry_finish(e, true);
}

int64_t ni_store_safe(struct ni_store *s, char degraded[256]) {
  int64_t safe = ni_writer_safe(s->writer, degraded);
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  for (size_t i = 0; i < s->n; i++) {
    struct ni_entry *e = s->entry[i];
    struct ni_session *of = &e->state.session;
    int refused = of->active ? atomic_load(&e->to.refused) : 0;
    look_at(s, e, now);
    count_gone(e);
    if (of->active && refused)
      fail(refused, of->error, sizeof of->error, "it is not written");
    else if (of->active && !refused && strncmp(of->error, "it is not written", 17) == 0)
      *of->error = 0;
    bool again = e->unsaved && now - s->tried_ns > TRY_NS;
    const bool lost_more = !refused && of->frames_lost != e->lost_told && !e->unsaved;
    if (of->active && (lost_more || again))
      (void)ni_entry_save(e);
    if (!*degraded && of->active && e->unsaved)
      snprintf(degraded, 256, "the state of session %.128s is not saved", of->name);
    if (!*degraded && e->stalled)
      snprintf(degraded, 256, "session %.60s: %.100s. Mend that, then: session resume", of->name, of->error);
  }
  if (now - s->tried_ns > TRY_NS)
    s->tried_ns = now;
  return safe;
}

bool ni_store_keeps_up(const struct ni_store *s) { return ni_writer_held(s->writer) < NI_STORE_HELD_MAX / 2; }
int ni_store_fd(const struct ni_store *s) { return ni_writer_fd(s->writer); }
