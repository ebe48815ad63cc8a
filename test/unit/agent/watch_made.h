/*
 * A reader of logs and black boxes in a folder of its own, and what its batches add up to: for test_watch.c
 * and test_watch_bare.c.
 */
#ifndef NI_WATCH_MADE_H
#define NI_WATCH_MADE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "exporter/agent/reader/boxes.h"
#include "exporter/agent/reader/rows.h"
#include "exporter/agent/reader/watch.h"
#include "exporter/base/now.h"
#include "exporter/input/discover.h"
#include "exporter/input/scan.h"
#include "exporter/model/hang/model.h"

static char top[] = "/tmp/ni-watch.XXXXXX", boxes[64], build[PATH_MAX], node[256], own_node[256];

static void sh(const char *format, ...) {
  char line[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  int rc = system(line);
  if (rc != 0)
    fail_msg("%s: %d", line, rc);
}

/*
 * NVIDIA's logs of v4.4: 36,000 records, each record of the two ranks' 3,000 calls in two communicators and
 * of their P2P.
 */
static void make_bare(bool more) {
  sh("mkdir %s/bare && %s/test/host/loggen %s/bare --ranks 2 --node 2 --ops 3000 --verbose --p2p 400 "
     "--format v4.4 >/dev/null 2>&1",
     top, build, top);
  if (!more)
    return;
  sh("mkdir %s/bare-gz && cd %s/bare && for i in *; do split -l 1000 --filter gzip $i >../bare-gz/$i.gz || "
     "exit 1; done && "
     "cp -r . ../bare-more && sed -i 2501p ../bare-more/node-0-pid4000.log",
     top, top);
}

static void begin(void) {
  ssize_t n = readlink("/proc/self/exe", build, sizeof build - 1);
  for (int i = 0; i < 3 && n > 0; i++) {
    build[n] = 0;
    n = strrchr(build, '/') - build;
  }
  build[n] = 0;
  assert_non_null(mkdtemp(top));
  snprintf(boxes, sizeof boxes, "%s/ni-watch-test.%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
           (int)getpid());
  sh("mkdir %s", boxes);
  gethostname(own_node, sizeof own_node);
}

static int teardown(void **ctx) {
  (void)ctx;
  sh("rm -rf %s %s", top, boxes);
  return 0;
}

/* ---- what was applied, as the agent has it ---- */

struct state {
  struct ni_live known;
  struct ni_live_counts *row;
  size_t n;
  struct ni_live_totals totals;
  uint64_t begins, logs;
  int stop_after; /* batches; below 0: never */
  bool apply_last;
  struct ni_live_batch look;
  void *look_bytes;
};

static void free_state(struct state *s) {
  ni_live_free(&s->known);
  free(s->row);
  free(s->look_bytes);
  *s = (struct state){0};
}

static void apply_rows(struct state *s, const struct ni_live_batch *b) {
  for (uint32_t i = 0; i < b->n_counts; i++) {
    const struct ni_live_counts *c = &b->counts[i];
    size_t k = 0;
    while (k < s->n &&
           (memcmp(&s->row[k].who, &c->who, sizeof c->who) != 0 || strcmp(s->row[k].func, c->func) != 0 ||
            s->row[k].size_class != c->size_class))
      k++;
    if (k == s->n) {
      s->row = realloc(s->row, ++s->n * sizeof *s->row);
      s->row[k] = *c;
      continue;
    }
    uint64_t *to = &s->row[k].n;
    const uint64_t *from = &c->n;
    for (int j = 0; j < 7; j++)
      to[j] += from[j];
    s->row[k].late_n += c->late_n;
    s->row[k].late_ns += c->late_ns;
    for (int j = 0; j <= NI_LIVE_TOOK; j++)
      s->row[k].took[j] += c->took[j];
    for (int j = 0; j <= NI_LIVE_BUS; j++)
      s->row[k].bus[j] += c->bus[j];
  }
}

/* Through bytes and back, as in the pipe. */
static int emit(void *arg, const struct ni_live_batch *in) {
  struct state *s = arg;
  struct ni_live_batch b;
  size_t bytes, took;
  if (s->stop_after == 0 && !s->apply_last)
    return 1;
  void *p = ni_live_encode(in, &bytes);
  assert_non_null(p);
  assert_int_equal(ni_live_decode(&b, p, bytes - 1, &took), 0);
  assert_int_equal(ni_live_decode(&b, p, bytes, &took), 1);
  assert_int_equal(took, bytes);
  if (b.kind == NI_LIVE_LOOK) {
    free(s->look_bytes);
    s->look = b;
    s->look_bytes = p;
  } else {
    const struct ni_live_file *at = ni_live_file_of(&s->known, b.file.dev, b.file.ino);
    assert_true(b.file.from == 0 || (at && at->to == b.file.from));
    s->logs++;
    for (uint32_t i = 0; i < b.n_accounts; i++)
      s->begins += b.accounts[i].begins;
    assert_int_equal(ni_live_apply(&s->known, &b, 1, 1), 0);
    apply_rows(s, &b);
    free(p);
    for (size_t i = 0; i < sizeof b.totals / 8; i++)
      ((uint64_t *)&s->totals)[i] += ((uint64_t *)&b.totals)[i];
  }
  return s->stop_after >= 0 && s->stop_after-- == 0;
}

static struct ni_watch *watch(const struct state *s, char **dir, size_t n) {
  struct ni_watch *w;
  struct ni_watch_settings set = {
      .uid = getuid(), .box_dir = boxes, .node = node, .log_dir = dir, .n_log_dirs = n, .stuck_ns = 50000000};
  assert_int_equal(ni_watch_open(&w, &set, &s->known), 0);
  return w;
}

/* Turns until all is read; the reader is thrown away after some batches, and begun again. */
static void read_all(struct state *s, char *dir, unsigned seed) {
  bool more = true;
  while (more) {
    struct ni_watch *w = watch(s, &dir, 1);
    s->stop_after = seed ? rand_r(&seed) % 4 : -1;
    s->apply_last = rand_r(&seed) % 2;
    int e = 0;
    for (more = true; e == 0 && more;)
      e = ni_watch_turn(w, emit, s, &more);
    assert_in_range(e, 0, 1);
    more |= e == 1;
    ni_watch_close(w);
    if (seed && rand_r(&seed) % 16 == 0)
      seed = 0; /* or it might never come to the end */
  }
}

/* ---- what there is ---- */

struct truth {
  uint64_t n, bytes, timed;
};

static int take(void *arg, struct ni_line *l, uint64_t line_no) {
  struct truth *t = arg;
  (void)line_no;
  if (l->kind != NI_LINE_OP)
    return 0;
  t->n++;
  t->bytes += l->op.msg_bytes;
  t->timed += l->op.timing == NI_TIMING_KERNEL_GPU || l->op.timing == NI_TIMING_KERNEL_CPU;
  return 0;
}

static struct truth truth_of(char *dir) {
  struct truth t = {0};
  struct ni_files f = {0};
  struct ni_scan *s;
  assert_int_equal(ni_discover(&f, &dir, 1), 0);
  assert_int_equal(ni_scan_new(&s), 0);
  for (size_t i = 0; i < f.n; i++)
    if (strncmp(ni_path_name(f.file[i].path), node, strlen(node)) == 0)
      assert_int_equal(
          ni_scan_file(s, f.file[i].path, NULL, &(struct ni_scan_to){.arg = &t, .take = take}, NULL), 0);
  ni_scan_free(s);
  ni_files_free(&f);
  return t;
}

static void path_of(char *out, const char *name) { snprintf(out, 256, "%s/%s", top, name); }

#endif
