/*
 * nccl-inspector snapshot: copies black boxes to shared storage, for a scheduler's epilog or an on-call
 * engineer.
 *
 * A copy is the box with one page behind it that says when it was taken and whether the process was alive
 * (box.h). Each is written under a hidden name and renamed, so a reader never meets half of one. The boxes
 * are only read, each with its owner's rights, and the copy is his, too. 30 s in all: what was not copied by
 * then is named and left out, since an epilog must not hold its node.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/process/as_user.h"
#include "exporter/cli/command.h"
#include "exporter/base/out_file.h"
#include "exporter/input/box/box_decode.h"
#include "exporter/input/box/sources.h"

#define LIMIT_S 30

/*
 * What is found out with the owner's rights: the copy's name, "" when the box was not asked for; where its
 * log is.
 */
struct copy_answer {
  bool placed, elsewhere;
  char name[300], said[4096];
};

struct snapshot_run {
  struct ni_inputs inputs;
  struct ni_box_sources sources;
  struct ni_box_passed passed;
  const char *output, *box_dir;
  int out_dir; /* --output; -1: a folder that root leaves to its owner */
  bool exit_zero, quiet;
  uint64_t most, bytes; /* --most, 0: any; what was copied so far */
  size_t copied, failed;
  time_t until;
  struct copy_answer *answer;
};

/* One box on its way. */
struct copy_task {
  const struct snapshot_run *s;
  const char *path;
  struct ni_out_file file;
};

static int late_code = NI_EXIT_COULD_NOT_RUN;

/* A file system hangs: nothing can be said or cleaned up any more. */
static void exit_too_late(int signal) { _exit(late_code); }

static void report_copy_failure(struct snapshot_run *s, const char *path, const char *why) {
  s->failed++;
  ni_say(stderr, "%s: not copied: %s\n", path, why);
}

/* Creates the file with our rights, for whoever owns the box. 0 or -errno. */
static int create_copy(struct ni_out_file *o, int dir, uid_t owner) {
  int e = ni_out_begin(o, dir, 0600);
  if (e == 0 && geteuid() == 0 && fchown(o->fd, owner, (gid_t)-1) != 0)
    e = -errno;
  return e;
}

/* <name without .box>.<Unix ns>.box. A copy of a copy keeps the first one's time, and so its name. */
static void name_copy(const struct ni_box *b, const char *path, char *out, size_t size) {
  char name[256], stamp[32];
  snprintf(name, sizeof name, "%s", ni_path_name(path));
  size_t n = strlen(name), k = sizeof NI_BOX_SUFFIX - 1;
  if (n > k && strcmp(name + n - k, NI_BOX_SUFFIX) == 0)
    name[n - k] = 0;
  snprintf(stamp, sizeof stamp, ".%" PRIu64, ni_box_taken_ns(b));
  snprintf(out, size, "%s%s" NI_BOX_SUFFIX, name, ni_box_is_copy(b) && strstr(name, stamp) ? "" : stamp);
}

/*
 * Names the file. A copy of a copy has the name that its file had, which its owner chose: it replaces no copy
 * of another owner. 0 or -errno.
 */
static int name_file(struct ni_out_file *o, const char *name, uid_t owner) {
  struct stat st;
  int e = ni_out_commit(o, name, false);
  if (e == -EEXIST && fstatat(o->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == owner)
    e = ni_out_commit(o, name, true);
  return e;
}

/* Copies with the rights of the owner: into the file that we were given, or into one of his own. */
static int copy_as_owner(const struct ni_box *b, void *arg) {
  struct copy_task *j = arg;
  const struct snapshot_run *s = j->s;
  struct copy_answer *a = s->answer;
  struct ni_box_log session;
  char why[512];
  int e = 0, dir = -1;
  if (ni_box_header(b)->state != NI_BOX_LIVE)
    return 0;
  a->placed = ni_box_session(b, &session);
  a->elsewhere = !ni_box_asked_for(&s->sources, &s->inputs, a->placed ? session.dir : "");
  if (a->elsewhere)
    return 0;
  if (a->placed)
    snprintf(a->said, sizeof a->said, "%s", session.dir);
  if (j->file.fd < 0) {
    dir = ni_out_dir(s->output, false, why, sizeof why);
    e = dir < 0 ? dir : create_copy(&j->file, dir, geteuid());
  }
  if (e == 0)
    e = ni_box_write_copy(b, j->file.fd);
  if (e == 0 && fsync(j->file.fd) != 0)
    e = -errno;
  if (e == 0)
    name_copy(b, j->path, a->name, sizeof a->name);
  if (e == 0 && dir >= 0)
    e = name_file(&j->file, a->name, geteuid());
  /* nothing is left of what failed; after its name nothing is under way */
  if (dir >= 0)
    ni_out_drop(&j->file);
  return e;
}

static void copy_one(struct snapshot_run *s, const char *path) {
  struct copy_task j = {s, path, {.dir = -1, .fd = -1}};
  struct copy_answer *a = s->answer;
  unsigned left = (unsigned)(s->until - time(NULL)) + 1;
  struct ni_box_visit v = {
      .path = path, .named = s->sources.named, .seconds = left, .work = copy_as_owner, .arg = &j};
  struct stat st;
  char why[512] = "";
  int e = lstat(path, &st) == 0 ? 0 : -errno;
  *a = (struct copy_answer){0};
  if (e == 0 && s->most && s->bytes + (uint64_t)st.st_blocks * 512 > s->most) {
    e = -EFBIG;
    snprintf(why, sizeof why, "beyond --most");
  }
  if (e == 0 && s->out_dir >= 0)
    e = create_copy(&j.file, s->out_dir, st.st_uid);
  v.keep = j.file.fd;
  if (e == 0)
    e = ni_box_visit(&v, why, sizeof why);
  a->name[sizeof a->name - 1] = a->said[sizeof a->said - 1] = 0;
  if (e == 0 && *a->name && *j.file.tmp)
    e = *a->name == '.' ? -EINVAL : name_file(&j.file, a->name, st.st_uid);
  ni_out_drop(&j.file);
  s->passed.elsewhere += a->elsewhere;
  if (*a->said)
    ni_box_sources_led(&s->sources, a->said);
  if (e < 0) {
    if (s->sources.named || ni_box_passes(&s->passed, path, e))
      report_copy_failure(s, path, *why ? why : strerror(-e));
  } else if (*a->name) {
    s->copied++;
    s->bytes += (uint64_t)st.st_blocks * 512;
    if (!s->quiet)
      ni_say(stdout, "%s/%s\n", s->output, a->name);
  }
}

static void copy_all(struct snapshot_run *s) {
  const struct ni_files *boxes = &s->sources.boxes;
  for (size_t i = 0; i < boxes->n_bad; i++)
    if (ni_box_name(boxes->bad[i].path))
      report_copy_failure(s, boxes->bad[i].path, ni_unreadable_why(&boxes->bad[i]));
  for (size_t i = 0; i < boxes->n; i++) {
    if (time(NULL) < s->until)
      copy_one(s, boxes->file[i].path);
    else
      report_copy_failure(s, boxes->file[i].path, "the 30 s are over");
  }
}

/*
 * Reports that there is nothing to copy. That is fine if the job has ended and everything is in its log; a
 * wrong path is not.
 */
static void report_nothing(struct snapshot_run *s, const char *name) {
  bool bad = ni_box_sources_bad(&s->sources);
  s->failed += bad;
  if (!s->quiet && !bad && !s->passed.foreign)
    ni_say(stdout, "nothing to copy: no black box%s\n", s->inputs.n ? " there" : " of this machine");
  const bool is_asked = s->inputs.n || s->passed.foreign;
  if (bad || is_asked || s->sources.box_dir_error)
    ni_box_sources_explain(stderr, name, &s->sources, &s->inputs, &s->passed, false);
}

static int take_snapshots(struct snapshot_run *s, const char *name) {
  char why[512];
  struct stat st;
  if (ni_box_dir_check(name, s->box_dir) < 0)
    return NI_EXIT_COULD_NOT_RUN;
  s->answer = ni_shared(sizeof *s->answer);
  int e = s->answer ? ni_box_sources_find(&s->sources, &s->inputs, s->box_dir, s->output) : -ENOMEM;
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", name, strerror(-e));
    return NI_EXIT_COULD_NOT_RUN;
  }
  s->out_dir = ni_out_dir(s->output, true, why, sizeof why);
  bool theirs = s->out_dir == -EPERM && geteuid() == 0 && stat(s->output, &st) == 0;
  /* said once and not for every box */
  if (s->out_dir < 0 ? !theirs : faccessat(s->out_dir, ".", W_OK | X_OK, 0) != 0) {
    ni_say(stderr, "%s: --output %s: %s\n", name, s->output, s->out_dir < 0 ? why : strerror(EACCES));
    return NI_EXIT_COULD_NOT_RUN;
  }
  s->until = time(NULL) + LIMIT_S;
  copy_all(s);
  if (s->copied + s->failed == 0) {
    report_nothing(s, name);
  } else if (ni_box_sources_bad(&s->sources)) {
    ni_box_sources_say_bad(stderr, name, &s->sources);
    s->failed++;
  }
  return s->failed ? NI_EXIT_COULD_NOT_RUN : NI_EXIT_FINE;
}

static const char *refuse_snapshot(void *into) {
  return ((struct snapshot_run *)into)->output ? NULL
                                               : "where to? --output DIR, a directory that all nodes share";
}

const struct ni_command ni_snapshot_command = {
    .name = "snapshot",
    .need = NI_NEED_DURING,
    .purpose = "copies of black boxes, of running processes too",
    .about =
        "Copies black boxes, of running processes too, to where `recover` and `hang` can read them from any "
        "machine.",
    .synopsis = "[OPTION...] [DIR|BOX...] --output DIR",
    .refuse = refuse_snapshot,
    .run = ni_snapshot_run,
    .opt =
        (const struct ni_opt[]){
            NI_ROW_BOXES(struct snapshot_run),
            {"output", 0, NI_OPT_TEXT, "DIR", "Where the copies go; made when it is not there",
             NI_INTO(struct snapshot_run, output)},
            NI_ROW_BOX_DIR(struct snapshot_run),
            {"most", 0, NI_OPT_SIZE, "SIZE", "Boxes that take more in all are left out, and named",
             NI_INTO(struct snapshot_run, most), .min = 1},
            {"exit-zero", 0, NI_OPT_FLAG, NULL, "Exit code 0 whatever happens: for an epilog",
             NI_INTO(struct snapshot_run, exit_zero)},
            {"quiet", 'q', NI_OPT_FLAG, NULL, "Only what went wrong", NI_INTO(struct snapshot_run, quiet)},
            {0}},
    .more =
        "Where there are no boxes in DIR, those of this machine whose log lies there; without DIR all "
        "boxes of this machine that can be read. Takes 30 s at most.",
    .exits = {{"0", "done"},
              {"1", "one or more could not be copied, or DIR or that of --box-dir is not there"}},
    .examples = {{"--output /shared/boxes", "all boxes of this node, before it is taken away"},
                 {"--quiet --exit-zero --output /shared/boxes", "in a scheduler's epilog"}}};

int ni_snapshot_run(int argc, char **argv) {
  struct snapshot_run s = {0};
  int done, code = ni_words_parse(&ni_snapshot_command, argc, argv, &s, &done);
  if (!done) {
    if (s.exit_zero)
      late_code = NI_EXIT_FINE;
    signal(SIGALRM, exit_too_late);
    alarm(LIMIT_S + 2);
    code = take_snapshots(&s, argv[0]);
    alarm(0);
  }
  ni_box_sources_free(&s.sources);
  ni_inputs_free(&s.inputs);
  return s.exit_zero && !done ? NI_EXIT_FINE : code;
}
