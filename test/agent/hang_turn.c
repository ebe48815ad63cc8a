/*
 * The part of a reader that hang_turn.h is asked by, without an agent around it: looks at the black boxes of
 * a folder, ten times a second, until it is ended, and prints what it is to tell.
 *
 *   hang_turn BOX_DIR NODE STUCK_SECONDS SPEED [py-spy|gdb]     SPEED: its clock goes so much faster, so that
 *                                                               tests do not wait
 *
 * nccl-inspector is looked for beside it.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/agent/reader/hang_turn.h"
#include "exporter/base/now.h"
#include "exporter/input/box/box_decode.h"

enum { MOST = 64 };
struct look {
  struct ni_live_process process[MOST];
  struct ni_live_open open[MOST];
  char dirs[MOST][4096];
  const char *dir[MOST];
  uint32_t n, n_open;
  uint64_t stuck_ns;
  const struct ni_box *b;
  struct ni_live_open *at; /* of the communicators of the box that is read now */
};

static volatile sig_atomic_t ended;
static void end(int signal) {
  (void)signal;
  ended = 1;
}

static int take(const struct ni_box_op *op, void *arg) {
  struct look *l = arg;
  int64_t comm = ni_box_comm_of(l->b, op);
  if (comm < 0 || op->is != NI_BOX_SLOT_IN_FLIGHT)
    return 0;
  struct ni_live_open *o = &l->at[comm];
  uint64_t since = ni_box_unix_ns(l->b, op->ticks_start), now = ni_now_ns(CLOCK_REALTIME);
  o->in_flight++;
  o->stuck += now > since + l->stuck_ns;
  if (!o->since_ns || since < o->since_ns)
    o->since_ns = since;
  return 0;
}

static void take_box(struct look *l, const char *path) {
  char why[256];
  struct ni_box *b;
  struct ni_box_log log;
  struct ni_box_comm c;
  if (l->n == MOST || ni_box_open(&b, path, 0, why, sizeof why) < 0)
    return;
  if (ni_box_session(b, &log)) {
    const struct ni_box_header *h = ni_box_header(b);
    struct ni_live_process *p = &l->process[l->n];
    *p = (struct ni_live_process){.job = "77",
                                  .attempt = "0",
                                  .pid = h->pid,
                                  .rank = (int32_t)h->rank,
                                  .life = (uint8_t)ni_box_life(b)};
    snprintf(p->host, sizeof p->host, "%.63s", h->hostname);
    snprintf(l->dirs[l->n], sizeof l->dirs[l->n], "%s", log.dir);
    l->dir[l->n] = l->dirs[l->n];
    l->n++;
    l->b = b;
    l->at = &l->open[l->n_open];
    for (size_t i = 0; l->n_open < MOST && ni_box_comm_at(b, i, &c); i++) {
      struct ni_live_open *o = &l->open[l->n_open++];
      *o = (struct ni_live_open){.pid = h->pid, .who.job = "77", .who.attempt = "0", .comm_rank = c.id.rank};
    }
    (void)ni_box_each_op(b, take, l);
  }
  ni_box_close(b);
}

int main(int argc, char **argv) {
  static struct look l;
  struct ni_hang_watch *h;
  struct ni_live_hang said;
  if (argc < 5)
    return 64;
  l.stuck_ns = (uint64_t)(atof(argv[3]) * 1e9);
  if (ni_hang_watch_open(
          &h, &(struct ni_hang_settings){argv[1], argv[2], argc > 5 ? argv[5] : NULL, l.stuck_ns}) < 0)
    return 1;
  signal(SIGTERM, end);
  while (!ended) {
    DIR *d = opendir(argv[1]);
    l.n = l.n_open = 0;
    for (const struct dirent *e; d && (e = readdir(d));) {
      char path[4096];
      snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
      if (e->d_name[0] != '.')
        take_box(&l, path);
    }
    if (d)
      closedir(d);
    struct ni_live_batch b = {
        .kind = NI_LIVE_LOOK, .n_processes = l.n, .n_open = l.n_open, .processes = l.process, .open = l.open};
    if (ni_hang_watch_turn(h, &b, l.dir, ni_now_ns(CLOCK_MONOTONIC) * strtoull(argv[4], NULL, 10), &said)) {
      printf("%s %s %s\n", said.certain ? "certain" : "likely", said.path, said.sentence);
      fflush(stdout);
    }
    usleep(100000);
  }
  ni_hang_watch_close(h);
  return 0;
}
