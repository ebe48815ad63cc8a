/*
 * nccl-inspector snapshot: copies black boxes to shared storage, for a scheduler's epilog or an on-call engineer.
 *
 * A copy is the box with one page behind it that says when it was taken and whether the process was alive (box.h). Each is
 * written under a hidden name and renamed, so a reader never meets half of one. The boxes are only read. 30 s in all: what
 * was not copied by then is named and left out, since an epilog must not hold its node.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../command.h"
#include "../json_out.h"
#include "sources.h"

#define LIMIT_S 30

struct snapshot {
  struct ni_inputs inputs;
  struct ni_box_sources sources;
  struct ni_box_passed passed;
  const char *output, *box_dir;
  bool exit_zero, quiet;
  size_t copied, failed;
};

static int late_code = NI_EXIT_COULD_NOT_RUN;

/* A file system that hangs: nothing can be said or cleaned up any more. */
static void too_late(int signal) {
  (void)signal;
  _exit(late_code);
}

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void complain(struct snapshot *s, const char *path, const char *why) {
  s->failed++;
  fprintf(stderr, "%s: not copied: %s\n", path, why);
}

static int write_copy(const struct ni_box *b, const char *hidden, const char *path) {
  int fd = open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), e = fd < 0 ? -errno : 0;
  if (e < 0) return e;
  e = ni_box_write_copy(b, fd);
  if (e == 0 && fsync(fd) != 0) e = -errno;
  if (close(fd) != 0 && e == 0) e = -errno;
  if (e == 0 && rename(hidden, path) != 0) e = -errno;
  if (e < 0) unlink(hidden);
  return e;
}

/* Of the boxes of this machine those whose log lies where the command line says; all without a path. */
static bool asked_for(struct snapshot *s, const struct ni_box *b) {
  struct ni_box_log session;
  bool placed = ni_box_session(b, &session);
  bool is = s->sources.named || !s->inputs.n || (placed && ni_box_under(&s->inputs, session.dir));
  if (is && placed) ni_box_sources_led(&s->sources, session.dir);
  s->passed.elsewhere += !is;
  return is;
}

/* DIR/<name without .box>.<Unix ns>.box. A copy of a copy keeps the first one's time, and so its name. */
static void copy_one(struct snapshot *s, const char *path) {
  struct ni_box *b = NULL;
  char why[256], name[300], *to = NULL, *hidden = NULL;
  int e = ni_box_open(&b, path, 0, why, sizeof why);
  if (e < 0) {
    if (s->sources.named || ni_box_passes(&s->passed, path, e)) complain(s, path, *why ? why : strerror(-e));
    return;
  }
  if (ni_box_header(b)->state == NI_BOX_LIVE && asked_for(s, b)) {
    snprintf(name, sizeof name, "%s", base_of(path));
    size_t n = strlen(name), k = sizeof NI_BOX_SUFFIX - 1;
    if (n > k && strcmp(name + n - k, NI_BOX_SUFFIX) == 0) name[n - k] = 0;
    char stamp[32];
    snprintf(stamp, sizeof stamp, ".%" PRIu64, ni_box_taken_ns(b));
    if (ni_box_is_copy(b) && strstr(name, stamp)) *stamp = 0;
    if (asprintf(&to, "%s/%s%s%s", s->output, name, stamp, NI_BOX_SUFFIX) < 0) to = NULL;
    if (asprintf(&hidden, "%s/.%s%s-%ld", s->output, name, stamp, (long)getpid()) < 0) hidden = NULL;
    e = to && hidden ? write_copy(b, hidden, to) : -ENOMEM;
    if (e < 0) complain(s, path, strerror(-e));
    else s->copied++;
    if (e == 0 && !s->quiet) printf("%s\n", to);
  }
  free(to);
  free(hidden);
  ni_box_close(b);
}

/* Said once and not for every box. 0 or -errno. */
static int make_output(const char *dir) {
  struct stat st;
  if (mkdir(dir, 0755) != 0 && errno != EEXIST) return -errno;
  if (stat(dir, &st) != 0) return -errno;
  if (!S_ISDIR(st.st_mode)) return -ENOTDIR;
  return access(dir, W_OK | X_OK) == 0 ? 0 : -errno;
}

static void copy_all(struct snapshot *s) {
  time_t until = time(NULL) + LIMIT_S;
  const struct ni_files *boxes = &s->sources.boxes;
  for (size_t i = 0; i < boxes->n_bad; i++)
    if (ni_box_name(boxes->bad[i].path)) complain(s, boxes->bad[i].path, ni_unreadable_why(&boxes->bad[i]));
  for (size_t i = 0; i < boxes->n; i++) {
    if (time(NULL) < until) copy_one(s, boxes->file[i].path);
    else complain(s, boxes->file[i].path, "the 30 s are over");
  }
}

/* Nothing to copy is as it should be where the job has ended and everything is in its log; a wrong path is not. */
static void say_nothing(struct snapshot *s, const char *name) {
  bool bad = ni_box_sources_bad(&s->sources);
  s->failed += bad;
  if (!s->quiet && !bad && !s->passed.foreign)
    printf("nothing to copy: no black box%s\n", s->inputs.n ? " there" : " of this machine");
  if (bad || s->inputs.n || s->passed.foreign || s->sources.box_dir_error)
    ni_box_sources_explain(stderr, name, &s->sources, &s->inputs, &s->passed, false);
}

static int run(struct snapshot *s, const char *name) {
  static const char *const advice[] = {": its parent is not there", ": it is no folder", ": no right to write there",
                                       ""};
  if (ni_box_dir_check(name, s->box_dir) < 0) return NI_EXIT_COULD_NOT_RUN;
  int e = ni_box_sources_find(&s->sources, &s->inputs, s->box_dir, s->output);
  if (e < 0) {
    fprintf(stderr, "%s: %s\n", name, strerror(-e));
    return NI_EXIT_COULD_NOT_RUN;
  }
  if ((e = make_output(s->output)) < 0) {
    fprintf(stderr, "%s: --output %s: %s%s\n", name, s->output, strerror(-e),
            advice[e == -ENOENT    ? 0
                   : e == -ENOTDIR ? 1
                   : e == -EACCES  ? 2
                                   : 3]);
    return NI_EXIT_COULD_NOT_RUN;
  }
  copy_all(s);
  if (s->copied + s->failed == 0) {
    say_nothing(s, name);
  } else if (ni_box_sources_bad(&s->sources)) {
    ni_box_sources_say_bad(stderr, name, &s->sources);
    s->failed++;
  }
  return s->failed ? NI_EXIT_COULD_NOT_RUN : NI_EXIT_FINE;
}

enum { OPT_OUTPUT = NI_OPT_OWN, OPT_BOX_DIR, OPT_EXIT_ZERO };

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  struct snapshot *s = state->input;
  switch (key) {
    case NI_OPT_INPUT_DIR:
    case ARGP_KEY_ARG: return ni_inputs_add(&s->inputs, arg) < 0 ? ENOMEM : 0;
    case OPT_OUTPUT: s->output = arg; return 0;
    case OPT_BOX_DIR: s->box_dir = arg; return 0;
    case OPT_EXIT_ZERO: s->exit_zero = true; return 0;
    case 'q': s->quiet = true; return 0;
    case ARGP_KEY_END:
      if (!s->output) argp_error(state, "where to? --output DIR, a directory that all nodes share");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

int ni_snapshot_run(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"output", OPT_OUTPUT, "DIR", 0, "Where the copies go; made when it is not there", 0},
      {"box-dir", OPT_BOX_DIR, "DIR", 0, "Where the black boxes of this machine lie (default " NI_BOX_DIR ")", 0},
      {"exit-zero", OPT_EXIT_ZERO, NULL, 0, "Exit code 0 whatever happens: for an epilog", 0},
      {"quiet", 'q', NULL, 0, "Only what went wrong", 0},
      {0}};
  static const struct argp argp = {
      options, parse_option, "[DIR|BOX...] --output DIR",
      "Copies black boxes, of running processes too, to where `recover` and `hang` can read them from any machine."
      "\vWhere there are no boxes in DIR, those of this machine whose log lies there; without DIR all boxes of this machine "
      "that can be read. Takes 30 s at most. Exit codes: 0 done, 1 one or more could not be copied, or DIR or that of "
      "--box-dir is not there, "
      "64 wrong usage.", NULL, NULL, NULL};
  struct snapshot s = {0};
  int done, code = ni_options_parse(&argp, argc, argv, &s, &done);
  if (!done) {
    if (s.exit_zero) late_code = NI_EXIT_FINE;
    signal(SIGALRM, too_late);
    alarm(LIMIT_S + 2);
    code = run(&s, argv[0]);
    alarm(0);
  }
  ni_box_sources_free(&s.sources);
  ni_inputs_free(&s.inputs);
  return s.exit_zero ? NI_EXIT_FINE : code;
}
