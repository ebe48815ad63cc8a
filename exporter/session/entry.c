#include "entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/process/as_user.h"
#include "exporter/base/text/json_fields.h"
#include "recover.h"

enum { MAGIC = 128 }; /* bytes of how a file begins */

/* ---- state.json ---- */

static int put_state(const struct ni_entry *e, FILE *f) {
  const struct ni_session *s = &e->state.session;
  static const struct ni_json_field fields[] = {
      NI_JSON_AS(ni_session, id, "session_id"),
      NI_JSON(ni_session, name),
      NI_JSON_FROM(ni_json_member_utc, ni_session, start_ns, "start_time"),
      NI_JSON_FROM(ni_json_member_utc, ni_session, end_ns, "end_time"),
      NI_JSON(ni_session, start_ns),
      NI_JSON(ni_session, end_ns),
      NI_JSON_AS(ni_session, active, "is_active"),
      NI_JSON_AS(ni_session, frames, "frame_count"),
      NI_JSON(ni_session, frames_lost),
      NI_JSON(ni_session, late),
      NI_JSON_AS(ni_session, file, "output_filename")};
  struct ni_json j;
  ni_json_open(&j, f, NULL);
  NI_JSON_ALL(&j, fields, s, NULL);
  ni_json_bool(&j, "finishing", s->finishing || e->unsynced);
  ni_json_bool(&j, "gsprof", e->state.gsprof);
  ni_json_bool(&j, "named", e->state.named);
  ni_json_i64(&j, "period_ns", e->state.period_ns);
  ni_json_text(&j, "error", s->error);
  ni_json_close(&j);
  return fflush(f) ? -errno : fsync(fileno(f)) ? -errno : 0;
}

int ni_entry_save(struct ni_entry *e) {
  struct ni_out_file o;
  int dir = ni_session_folder(e->place->dir, e->state.session.id);
  int err = dir < 0 ? dir : ni_out_begin(&o, dir, 0600);
  FILE *f = err ? NULL : fdopen(dup(o.fd), "w");
  if (err == 0 && !f) {
    err = -errno;
    ni_out_drop(&o);
  }
  if (f) {
    err = put_state(e, f);
    if (fclose(f) && err == 0)
      err = -errno;
    if (err)
      ni_out_drop(&o);
    else
      err = ni_out_commit(&o, "state.json", true);
  }
  if (err == 0 && fsync(dir) < 0)
    err = -errno;
  if (dir >= 0)
    close(dir);
  if (err == 0)
    e->lost_told = e->state.session.frames_lost;
  e->unsaved = err < 0;
  return err;
}

/* ---- files of a session that runs ---- */

static void begin_build(struct ni_entry *e);

void ni_entry_close(struct ni_entry *e) {
  if (e->to.fd[NI_FRAMES] >= 0)
    close(e->to.fd[NI_FRAMES]);
  ni_out_drop(&e->part);
  e->to.fd[NI_FRAMES] = e->to.fd[NI_PART] = -1;
}

/*
 * What hidden files of a session's have in their names, so that the next head knows them, be they empty: a
 * part of its id.
 */
enum { WHO = 18 };
static const char *who(const struct ni_session *of, char text[WHO + 1]) {
  snprintf(text, WHO + 1, "%.*s", WHO, of->id);
  return text;
}

/*
 * Without room on the disk there is none, and the finisher makes the file: frames wait for the disk, as in a
 * session that runs.
 */
static int begin_part(struct ni_entry *e, const struct ni_buffer *head) {
  char name[WHO + 1];
  int err = ni_out_begin_for(&e->part, e->place->out, who(&e->state.session, name), 0666);
  if (err == 0 && (err = ni_write_all(e->part.fd, head->text, head->n, 0)) != 0)
    ni_out_drop(&e->part);
  if (err)
    e->part = (struct ni_out_file){.dir = -1, .fd = -1};
  return err == -ENOSPC || err == -EDQUOT ? 0 : err;
}

int ni_entry_open(struct ni_entry *e, struct ni_past *p) {
  const struct ni_place *s = e->place;
  struct ni_session *of = &e->state.session;
  struct ni_buffer head = {0};
  char path[64];
  struct stat late = {0};
  e->to = (struct ni_written){.store = s->dir, .fd = {-1, -1, -1}};
  e->gone_told = 0;
  e->late_ns = 0;
  e->mixed = false;
  memcpy(e->to.id, of->id, sizeof of->id);
  memcpy(e->to.name, of->name, sizeof of->name);
  const int frames = ni_session_file(s->dir, of->id, "frames.jsonl", O_RDWR | O_CREAT);
  e->to.fd[NI_FRAMES] = frames < 0 ? -1 : frames;
  int err = frames < 0 ? frames : ni_past_last(p, s->dir, of->id, false);
  ni_file_head(&head, &e->state);
  if (err == 0)
    err = head.failed ? -ENOMEM : begin_part(e, &head);
  if (err == 0 && ftruncate(e->to.fd[NI_FRAMES], p->good) < 0)
    err = -errno;
  if (err == 0) {
    snprintf(path, sizeof path, "%s/late.jsonl", of->id);
    (void)fstatat(s->dir, path, &late, AT_SYMLINK_NOFOLLOW);
    e->past = (struct ni_past){.quit = &e->leave, .until = p->good, .late_until = late.st_size};
    e->to.at[NI_FRAMES] = p->good;
    e->to.head = e->to.part_at = (off_t)head.n;
    e->to.part = e->part.fd;
    atomic_store(&e->to.whole, p->good);
    if (!p->good && e->part.fd >= 0) {
      e->to.at[NI_PART] = e->to.head;
      e->to.fd[NI_PART] = e->part.fd;
    }
    of->frames = p->last;
    of->late = 0; /* the builder counts them */
    e->tick_ns = p->tick_ns;
  }
  free(head.text);
  if (err)
    ni_entry_close(e);
  return err;
}

void ni_entry_adopt(struct ni_entry *e, struct ni_past *p, struct ni_frame_text *text, bool alone) {
  if (alone) {
    ni_frame_text_free(text);
    memcpy(text->of, p->of, sizeof p->of);
    memset(p->of, 0, sizeof p->of);
    for (int g = 0; g < NI_GROUPS; g++)
      ni_columns_release(&text->of[g]);
  }
  for (int g = 0; g < NI_GROUPS; g++)
    for (size_t i = 0; i < p->of[g].n; i++)
      e->mixed |= i >= text->of[g].n || strcmp(p->of[g].at[i].id, text->of[g].at[i].id);
  if (e->to.fd[NI_PART] < 0)
    begin_build(e);
}

/* ---- the builder: NAME.json of a session that goes on ---- */

enum { NEAR = 4 << 20 }; /* so many bytes the writer puts in itself */

/*
 * First what was there when it went on, line by line; then what came meanwhile, in larger and larger steps
 * behind the writer.
 */
static void *build(void *arg) {
  struct ni_entry *e = arg;
  off_t from = e->past.until;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 10); /* frames come first */
  int fd = e->build_fd, err = 0;
  FILE *f = err || lseek(fd, e->to.head, SEEK_SET) < 0 ? NULL : fdopen(fd, "w");
  if (err == 0 && !f)
    err = -errno;
  if (err == 0)
    err = ni_past_read(&e->past, e->place->dir, e->to.id, false, f);
  if (err == 0 && fflush(f))
    err = -errno;
  off_t at = f ? ftello(f) : 0;
  for (bool near = false; err == 0 && !near && !atomic_load(&e->leave);) {
    off_t whole = atomic_load(&e->to.whole); /* pairs with write_batch() of writer.c */
    near = whole - from < NEAR;
    err = ni_past_copy(e->place->dir, e->to.id, from, whole, fd, &at);
    from = whole;
  }
  if (err == 0) {
    e->to.part_at = at;
    atomic_store(&e->to.joins, from);
  } /* pairs with ni_written_join() */
  if (f)
    fclose(f);
  else if (fd >= 0)
    close(fd);
  atomic_store(&e->built, err ? err : 1);
  return NULL;
}

static void begin_build(struct ni_entry *e) {
  atomic_store(&e->leave, false);
  atomic_store(&e->built, 0);
  e->build_fd = dup(e->to.part); /* its own: a stop closes the other one, maybe before the thread runs */
  e->builder = e->state.session.resuming =
      e->build_fd >= 0 && pthread_create(&e->builds, NULL, build, e) == 0;
  if (!e->builder && e->build_fd >= 0)
    close(e->build_fd); /* the finisher makes the file */
}

void ni_entry_built(struct ni_entry *e) {
  struct ni_past *p = &e->past;
  struct ni_session *of = &e->state.session;
  pthread_join(e->builds, NULL);
  e->builder = of->resuming = false;
  of->late += p->late;
  e->mixed |= p->mixed; /* then the finisher counts */
  int err = atomic_load(&e->built);
  if (err < 0 && err != -EINTR)
    snprintf(of->error, sizeof of->error, "its file will be made when it ends: %s", strerror(-err));
  for (int g = 0; g < 2; g++) {
    if (!ni_sums_room(&e->sums, g, p->sums.cap[g]))
      e->mixed = true;
    else
      ni_sums_add(&e->sums, &p->sums, g);
  }
  ni_past_free(p);
}

/* ---- the end, and the finisher ---- */

/* How NAME.json begins: with the session's id. */
static size_t beginning(const struct ni_state *state, char text[MAGIC]) {
  struct ni_buffer head = {0};
  char id[64];
  ni_file_head(&head, state);
  snprintf(id, sizeof id, "\"%s\"", state->session.id);
  const char *end = head.failed ? NULL : strstr(head.text, id);
  size_t n = end ? (size_t)(end - head.text) + strlen(id) : 0;
  if (n >= MAGIC)
    n = 0;
  if (n)
    memcpy(text, head.text, n);
  free(head.text);
  return n;
}

/*
 * Is the file that has its name this session's? A head may have been killed between the name and the state
 * that says so.
 */
static bool has_named(int out, const struct ni_state *state) {
  char want[MAGIC], is[MAGIC];
  struct stat st;
  size_t n = beginning(state, want);
  int fd = n ? ni_plain_open(out, state->session.file, &st) : -1;
  bool same = fd >= 0 && st.st_uid == geteuid() && ni_read_at(fd, is, n, 0) == 0 && memcmp(want, is, n) == 0;
  if (fd >= 0)
    close(fd);
  return same;
}

void ni_entry_sweep(struct ni_entry *e) {
  char name[WHO + 1];
  int dir = ni_session_folder(e->place->dir, e->state.session.id);
  if (dir >= 0) {
    ni_out_sweep(dir, "", "", 0);
    close(dir);
  }
  ni_out_sweep_for(e->place->out, who(&e->state.session, name));
}

/* Gives the file its name, which may have become another one's meanwhile. 0 or -errno: the file is gone. */
static int put_in_place(struct ni_state *state, struct ni_out_file *o) {
  char *file = state->session.file;
  int err = ni_out_commit(o, file, state->named || has_named(o->dir, state));
  for (int k = 2; err == -EEXIST && k < 10000; k++) {
    snprintf(file, sizeof state->session.file, "%s-%d.json", state->session.name, k);
    err = ni_out_commit(o, file, false);
  }
  if (err == -EEXIST)
    ni_out_drop(o);
  if (err == 0)
    state->named = true;
  return err;
}

int ni_entry_end(struct ni_entry *e, int64_t now_ns, const struct ni_columns of[NI_GROUPS]) {
  struct ni_session *is = &e->state.session;
  struct ni_buffer tail = {0};
  if (e->builder && atomic_load(&e->built))
    ni_entry_built(e);
  int err = ni_written_join(&e->to);
  bool whole = err == 0 && e->to.fd[NI_PART] >= 0 && !e->builder;
  is->end_ns = now_ns;
  ni_file_tail(&tail, &e->state, of, &e->sums);
  if (err == 0 && tail.failed)
    err = -ENOMEM;
  off_t at = e->to.at[NI_PART];
  if (err == 0 && whole)
    err = ni_write_all(e->part.fd, tail.text, tail.n, at);
  if (err == 0 && whole && ftruncate(e->part.fd, at + (off_t)tail.n) < 0)
    err = -errno;
  free(tail.text);
  is->active = false;
  e->unsynced = true;
  if (err == 0)
    err = ni_entry_save(e);
  if (err) {
    is->active = true;
    e->unsynced = false;
    is->end_ns = 0;
    return err;
  }
  ni_sums_free(&e->sums);
  is->resuming = false;
  atomic_store(&e->leave, true);
  if (whole) { /* the finisher syncs it */
    e->to.fd[NI_PART] = -1;
    if (e->state.named)
      e->replaced = openat(e->place->out, is->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    err = put_in_place(&e->state, &e->part);
    if (err)
      snprintf(is->error, sizeof is->error, "the file was not put in its place, and is made again: %s",
               strerror(-err));
  }
  ni_entry_close(e);
  ni_entry_finish(e, !whole || err || is->late || e->mixed);
  return 0;
}

static int sync_named(const struct ni_place *s, const char *file) {
  int fd = openat(s->out, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  int err = fd < 0 || fsync(fd) < 0 ? -errno : 0;
  if (fd >= 0)
    close(fd);
  return err == -ENOENT ? 0 : err; /* somebody has taken it away already */
}

static int make_anew(struct ni_entry *e) {
  struct ni_out_file o;
  char name[WHO + 1];
  int err = ni_out_begin_for(&o, e->place->out, who(&e->told.session, name), 0666);
  FILE *f = err ? NULL : fdopen(dup(o.fd), "w");
  if (err)
    return err;
  if (!f)
    err = -errno;
  if (f)
    err = ni_file_write(e->place->dir, &e->told, f, &e->undo);
  if (err == 0 && fsync(o.fd) < 0)
    err = -errno;
  if (f && fclose(f) && err == 0)
    err = -errno;
  if (err) {
    ni_out_drop(&o);
    return err;
  }
  return put_in_place(&e->told, &o);
}

static void *finish(void *arg) {
  struct ni_entry *e = arg;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 10); /* frames come first */
  if (e->builder) {
    pthread_join(e->builds, NULL);
    ni_past_free(&e->past);
  }
  if (e->replaced >= 0)
    close(e->replaced);
  e->replaced = -1;
  int err = e->anew ? make_anew(e) : sync_named(e->place, e->told.session.file);
  if (err == 0 && fsync(e->place->out) < 0)
    err = -errno;
  atomic_store(&e->finished, err ? err : 1);
  return NULL;
}

void ni_entry_finish(struct ni_entry *e, bool anew) {
  e->told = e->state;
  e->anew = anew;
  e->late_ns = 0;
  atomic_store(&e->finished, 0);
  atomic_store(&e->undo, false);
  e->state.session.finishing = anew;
  e->unsynced = true;
  e->finisher = pthread_create(&e->finishes, NULL, finish, e) == 0;
  if (!e->finisher)
    snprintf(e->state.session.error, sizeof e->state.session.error, "the file is not finished: no thread");
}

void ni_entry_finished(struct ni_entry *e) {
  struct ni_session *of = &e->state.session;
  pthread_join(e->finishes, NULL);
  e->finisher = e->builder = false;
  int err = atomic_load(&e->finished);
  /* made again in a while, if nothing comes of it; or by the next head */
  if (err == -EINTR)
    return (void)(e->late_ns = ni_now_ns(CLOCK_MONOTONIC));
  of->finishing = e->late_ns; /* more has come */
  e->unsynced = false;
  if (err < 0)
    snprintf(of->error, sizeof of->error, "the file is not whole: %s", strerror(-err));
  else {
    memcpy(of->file, e->told.session.file, sizeof of->file);
    e->state.named = e->told.named;
  }
  if (e->anew && err >= 0 && of->late < e->told.session.late)
    of->late = e->told.session.late;
  (void)ni_entry_save(e);
}
