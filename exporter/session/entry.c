#include "entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exporter/base/text/json_write.h"
#include "exporter/base/text/time_text.h"
#include "recover.h"

/* ---- state.json ---- */

static int put_state(const struct ni_entry *e, FILE *f) {
  const struct ni_session *s = &e->state.session;
  char text[40];
  struct ni_json j;
  ni_json_begin(&j, f);
  ni_json_object(&j, NULL);
  ni_json_text(&j, "session_id", s->id);
  ni_json_text(&j, "name", s->name);
  ni_json_text(&j, "start_time", ni_utc_text(s->start_ns / 1000, 'T', 6, text));
  ni_json_text(&j, "end_time", s->end_ns ? ni_utc_text(s->end_ns / 1000, 'T', 6, text) : NULL);
  ni_json_i64(&j, "start_ns", s->start_ns);
  ni_json_i64(&j, "end_ns", s->end_ns);
  ni_json_bool(&j, "is_active", s->active);
  ni_json_u64(&j, "frame_count", s->frames);
  ni_json_u64(&j, "frames_lost", s->frames_lost);
  ni_json_u64(&j, "late", s->late);
  ni_json_text(&j, "output_filename", s->file);
  ni_json_bool(&j, "finishing", s->finishing);
  ni_json_bool(&j, "gsprof", e->state.gsprof);
  ni_json_bool(&j, "named", e->state.named);
  ni_json_i64(&j, "period_ns", e->state.period_ns);
  ni_json_text(&j, "part", e->part.tmp);
  ni_json_text(&j, "error", s->error);
  ni_json_close(&j);
  return fflush(f) ? -errno : fsync(fileno(f)) ? -errno : 0;
}

int ni_entry_save(struct ni_entry *e) {
  struct ni_out_file o;
  int dir = openat(e->place->dir, e->state.session.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int err = dir < 0 ? -errno : ni_out_begin(&o, dir, 0666);
  FILE *f = err ? NULL : fdopen(dup(o.fd), "w");
  if (err == 0 && !f) err = -errno, ni_out_drop(&o);
  if (f) {
    err = put_state(e, f);
    if (fclose(f) && err == 0) err = -errno;
    if (err) ni_out_drop(&o);
    else err = ni_out_commit(&o, "state.json", true);
  }
  if (err == 0 && fsync(dir) < 0) err = -errno;
  if (dir >= 0) close(dir);
  if (err == 0) e->lost_told = e->state.session.frames_lost;
  return err;
}

/* ---- files of a session that runs ---- */

void ni_entry_close(struct ni_entry *e) {
  if (e->to.fd[NI_FRAMES] >= 0) close(e->to.fd[NI_FRAMES]);
  ni_out_drop(&e->part);
  e->to.fd[NI_FRAMES] = e->to.fd[NI_PART] = -1;
}

int ni_entry_open(struct ni_entry *e, struct ni_past *p) {
  const struct ni_place *s = e->place;
  struct ni_session *of = &e->state.session;
  struct ni_buffer head = {0};
  char path[64];
  snprintf(path, sizeof path, "%s/frames.jsonl", of->id);
  e->to = (struct ni_written){.store = s->dir, .fd = {-1, -1, -1}};
  memcpy(e->to.id, of->id, sizeof of->id);
  memcpy(e->to.name, of->name, sizeof of->name);
  e->to.fd[NI_FRAMES] = openat(s->dir, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  int err = e->to.fd[NI_FRAMES] < 0 ? -errno : ni_out_begin(&e->part, s->out, 0666);
  FILE *f = err ? NULL : fdopen(dup(e->to.fd[NI_PART] = e->part.fd), "w");
  ni_file_head(&head, &e->state);
  if (err == 0 && (!f || head.failed)) err = -ENOMEM;
  if (err == 0) {
    fwrite(head.text, 1, head.n, f);
    err = ni_past_read(p, s->dir, of->id, false, f);
    if (err == 0 && fflush(f)) err = -errno;
  }
  if (err == 0) {
    e->to.head = (off_t)head.n;
    e->to.at[NI_PART] = ftello(f);
    e->to.at[NI_FRAMES] = p->good;
    if (ftruncate(e->to.fd[NI_FRAMES], p->good) < 0) err = -errno;
    of->frames = p->last;
    of->late = p->late;
    e->tick_ns = p->tick_ns;
    e->mixed = p->mixed;
  }
  if (f) fclose(f);
  free(head.text);
  if (err) ni_entry_close(e);
  return err;
}

void ni_entry_adopt(struct ni_entry *e, struct ni_past *p, struct ni_frame_text *text, bool alone) {
  if (alone) {
    ni_frame_text_free(text);
    memcpy(text->of, p->of, sizeof p->of);
    memset(p->of, 0, sizeof p->of);
    for (int g = 0; g < NI_GROUPS; g++) ni_columns_release(&text->of[g]);
  }
  for (int g = 0; g < NI_GROUPS; g++)
    for (size_t i = 0; i < p->of[g].n; i++) e->mixed |= i >= text->of[g].n || strcmp(p->of[g].at[i].id, text->of[g].at[i].id);
  if (!e->mixed) e->sums = p->sums, p->sums = (struct ni_sums){0}; /* else the finisher counts */
}

/* ---- the finisher: a session's file with late samples in their frames ---- */

int ni_entry_name(const struct ni_place *s, struct ni_state *state, struct ni_out_file *o) {
  char *file = state->session.file;
  int err = ni_out_commit(o, file, state->named);
  for (int k = 2; err == -EEXIST && k < 10000; k++) {
    snprintf(file, sizeof state->session.file, "%s-%d.json", state->session.name, k);
    err = ni_out_commit(o, file, false);
  }
  if (err == -EEXIST) ni_out_drop(o);
  return err ? err : fsync(s->out) < 0 ? -errno : 0;
}

static void *finish(void *arg) {
  struct ni_entry *e = arg;
  struct ni_out_file o;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 10); /* frames come first */
  int err = ni_out_begin(&o, e->place->out, 0666);
  FILE *f = err ? NULL : fdopen(dup(o.fd), "w");
  if (err == 0 && !f) err = -errno;
  if (f) err = ni_file_write(e->place->dir, &e->told, f, &e->place->quit);
  if (err == 0 && fsync(o.fd) < 0) err = -errno;
  if (f && fclose(f) && err == 0) err = -errno;
  if (err) ni_out_drop(&o);
  else err = ni_entry_name(e->place, &e->told, &o);
  atomic_store(&e->finished, err ? err : 1);
  return NULL;
}

void ni_entry_finish(struct ni_entry *e) {
  e->told = e->state;
  atomic_store(&e->finished, 0);
  e->finisher = pthread_create(&e->thread, NULL, finish, e) == 0;
  if (!e->finisher) snprintf(e->state.session.error, sizeof e->state.session.error, "late samples are not put in: no thread");
}

void ni_entry_finished(struct ni_entry *e) {
  struct ni_session *of = &e->state.session;
  pthread_join(e->thread, NULL);
  e->finisher = false;
  int err = atomic_load(&e->finished);
  if (err == -EINTR) return; /* the next head does it */
  of->finishing = false;
  if (err < 0) snprintf(of->error, sizeof of->error, "the file was not written with what came late: %s", strerror(-err));
  else memcpy(of->file, e->told.session.file, sizeof of->file), e->state.named = true;
  (void)ni_entry_save(e);
}
