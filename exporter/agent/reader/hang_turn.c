#include "hang_turn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/process/as_user.h"
#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "exporter/base/process/task.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/input/box/box.h"
#include "exporter/input/discover.h"
#include "exporter/input/flight/tree.h"
#include "exporter/model/hang/limit.h"
#include "exporter/model/live/live.h"

#define S UINT64_C(1000000000)
#define COPIES_BYTES (UINT64_C(1) << 30)
enum { JOBS_MAX = 64, LONGEST = 4096, STACKS_MAX = 8, NUMBERS = 99, STACK_BYTES = 1 << 20 };
enum { SOON = 3, MANY = 20, ENOUGH = 6 }; /* rounds of a hang */

struct hang_job {
  struct ni_live_process who;           /* one of its processes here */
  char logs[LONGEST], at[LONGEST + 32]; /* its log folder, and ours in it */
  bool seen, refused;                   /* refused: that folder is not ours, which was said */
  bool waited;                          /* since_ns was not 0 at the turn before */
  bool dead;                            /* a process of it here was killed, and none has taken its place */
  uint32_t here;                        /* its processes on this node */
  /* Unix: the oldest one that is stuck here; 0: none. tick_ns, and what follows: monotonic */
  uint64_t since_ns, tick_ns;
  int dir; /* of `at`; -1: nothing hangs, and what follows is 0 */
  uint64_t begun_ns, due_ns;
  uint64_t copied_ns; /* Unix: when the newest copies were begun */
  unsigned copies, judged;
  int lease;                                              /* above 0: we lead */
  enum { COPY = 0, JUDGE, AS_JSON, AS_TEXT, STACK } step; /* what is next, or what the child does */
  struct ni_task child;
  struct ni_out_file out;              /* what it writes */
  struct timespec read;                /* the verdict that was read last */
  bool certain, told, fresh;           /* fresh: a verdict was written since the last look at it */
  int64_t stack[STACKS_MAX], n_stacks; /* pids */
};

struct ni_hang_watch {
  struct ni_hang_settings set;
  char program[LONGEST];
  struct hang_job *job;
  size_t n, cap;
};

int ni_hang_watch_open(struct ni_hang_watch **out, const struct ni_hang_settings *s) {
  struct ni_hang_watch *h = *out = calloc(1, sizeof *h);
  if (!h)
    return -ENOMEM;
  h->set = *s;
  if (readlink("/proc/self/exe", h->program, sizeof h->program - sizeof "nccl-inspector") < 0)
    return -errno;
  strcpy((char *)(uintptr_t)ni_path_name(h->program), "nccl-inspector");
  return 0;
}

static uint64_t ns_of(struct timespec t) { return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec; }

/* Unix ns by the clock that files in this folder get. 0: nothing can be written there. */
static uint64_t now_there(int dir) {
  struct ni_out_file o;
  struct stat st = {0};
  if (ni_out_begin(&o, dir, 0600) == 0 && (futimens(o.fd, NULL) != 0 || fstat(o.fd, &st) != 0))
    st.st_mtim.tv_sec = 0;
  ni_out_drop(&o);
  return ns_of(st.st_mtim);
}

static const char *lease_name(int number, char name[24]) {
  snprintf(name, 24, "lease.%d", number);
  return name;
}
/*
 * Returns its number if we lead from now on; 0: another node leads. Below 0: nobody leads, and neither do we.
 */
static int take_or_check_lease(int dir, const char *node, bool take) {
  char name[24];
  struct stat st = {0};
  int fd = 0, number = 1;
  /* open() and fstat(): NFS asks the server then. A name that it does not know of yet is found by O_EXCL. */
  for (; number <= NUMBERS && (fd = ni_plain_open(dir, lease_name(number, name), &st)) >= 0; number++)
    close(fd);
  if (fd != -ENOENT)
    return -EMFILE;
  uint64_t now = number > 1 ? now_there(dir) : 0;
  uint64_t of = ns_of(st.st_mtim); /* of a time to come: it was set */
  const bool is_held = now < of + 60 * S && of < now + 60 * S;
  if (number > 1 && (!now || is_held))
    return now ? 0 : -EACCES;
  fd = take ? openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644) : -1;
  if (fd < 0)
    return -EEXIST;
  (void)dprintf(fd, "%s %d\n", node, (int)getpid());
  close(fd);
  return number;
}

static bool renew_lease(int dir, int number) {
  char name[24];
  return faccessat(dir, lease_name(number + 1, name), F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
      utimensat(dir, lease_name(number, name), NULL, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Removes copies of this node that are older than the newest copies, or than this hang. */
static void remove_old_copies(struct hang_job *j, const struct ni_live_batch *b) {
  char prefix[96], *end;
  uint64_t now = ni_now_ns(CLOCK_REALTIME), until = j->copied_ns ? j->copied_ns : now;
  int dir = openat(j->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = dir < 0 ? NULL : fdopendir(dir);
  for (const struct dirent *e; d && (e = readdir(d));)
    for (uint32_t i = 0; i < b->n_processes; i++) { /* containers have a host's name each */
      int k = snprintf(prefix, sizeof prefix, NI_BOX_PREFIX "%s-pid", b->processes[i].host);
      const char *at = strncmp(e->d_name, prefix, (size_t)k) == 0 ? strchr(e->d_name + k, '.') : NULL;
      const bool is_old = at && strtoull(at + 1, &end, 10) < until;
      if (is_old && end > at + 1 && strcmp(end, ".box") == 0)
        unlinkat(dir, e->d_name, 0);
    }
  if (d)
    closedir(d);
  j->copied_ns = now;
}

/*
 * Does this node have the whole job? Then there are no copies of others to wait for, and the first verdict
 * need not wait for a second look.
 */
static bool is_only_node(const struct hang_job *j) {
  return j->who.world > 0 && j->here >= (uint32_t)j->who.world;
}

static void begin_next_round(struct hang_job *j, uint64_t mono_ns) {
  ni_out_drop(&j->out);
  j->step = COPY;
  bool soon = ++j->judged < SOON && is_only_node(j);
  j->due_ns = mono_ns + (soon ? 10 * S : j->judged < MANY ? 30 * S : 600 * S);
}

/* Starts what j->step says. */
static bool start_child(const struct ni_hang_watch *h, struct hang_job *j, uint64_t mono_ns) {
  char number[24];
  const char *const copy[] = {h->program, "snapshot", "--most", number,    "--box-dir", h->set.box_dir,
                              "--output", j->at,      j->logs,  "--quiet", NULL};
  const char *const judge[] = {h->program, "hang",      "--stuck-after",
                               number,     "--box-dir", h->set.box_dir,
                               j->at,      j->logs,     j->step == AS_JSON ? "--json" : NULL,
                               NULL};
  const char *const python[] = {"py-spy", "dump", "--pid", number, NULL};
  const char *const debugger[] = {"gdb", "-p", number, "-batch", "-ex", "thread apply all bt", NULL};
  const char *const *const stack = h->set.stacks && strcmp(h->set.stacks, "gdb") == 0 ? debugger : python;
  struct statvfs v;
  uint64_t room = fstatvfs(j->dir, &v) == 0 ? (uint64_t)v.f_bavail * v.f_frsize / 2 : 0,
           value = (h->set.stuck_ns + S - 1) / S;
  if (j->step == COPY)
    value = room < COPIES_BYTES ? room : COPIES_BYTES;
  if (j->step == STACK)
    value = (uint64_t)j->stack[j->n_stacks - 1];
  snprintf(number, sizeof number, "%" PRIu64, value);
  if (j->step != COPY && ni_out_begin(&j->out, j->dir, 0644) < 0)
    return false;
  const char *const *argv = j->step == COPY ? copy : j->step == STACK ? stack : judge;
  int out = *j->out.tmp ? j->out.fd : -1;
  bool short_one = j->step == STACK;
  return ni_task_begin(&j->child, (char *const *)(uintptr_t)argv, (int[]){-1, out, short_one ? out : -1},
                       short_one ? STACK_BYTES : 0, false, mono_ns + (short_one ? 30 : 60) * S);
}

static void handle_child_end(const struct ni_hang_watch *h, struct hang_job *j, int code, uint64_t mono_ns) {
  char name[256] = "verdict.txt";
  const bool is_verdict = code == 0 || (code >= 2 && code <= 4);
  if (j->step == AS_JSON)
    strcpy(name, "verdict.json");
  if (j->step == COPY) {
    j->due_ns = is_only_node(j) ? mono_ns : mono_ns + 10 * S;
    j->step = ++j->copies > 1 || is_only_node(j) ? JUDGE : COPY;
  } else if (j->step == STACK) {
    snprintf(name, sizeof name, "stack-%s-pid%" PRId64 ".txt", h->set.node, j->stack[--j->n_stacks]);
    if (*j->out.tmp)
      (void)ni_out_commit(&j->out, name, true);
    j->step = COPY;
  } else if (is_verdict && ni_out_commit(&j->out, name, true) == 0 && j->step == AS_JSON) {
    j->step = AS_TEXT;
  } else {
    j->fresh = j->step == AS_TEXT;
    begin_next_round(j, mono_ns);
  }
}

/* Finds ranks of this node that others wait for, in verdict.json. */
static void find_stacks(struct hang_job *j, const struct ni_live_batch *b) {
  char path[32], why[256], where[32], host[64];
  struct stat st;
  int fd = ni_plain_open(j->dir, "verdict.json", &st);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  struct ni_tree *t = fd >= 0 && st.st_size <= 4 << 20 ? ni_tree_read(path, why) : NULL;
  const struct ni_node *knot = t ? ni_node_at(ni_node_get(ni_tree_root(t), "waits"), 0) : NULL, *rank;
  if (fd >= 0)
    close(fd);
  for (size_t i = 0; j->n_stacks < STACKS_MAX && (rank = ni_node_at(ni_node_get(knot, "ranks"), i)); i++) {
    int64_t pid = ni_node_number(ni_node_get(rank, "pid"), -1);
    ni_node_text(ni_node_get(rank, "where"), where, sizeof where);
    ni_node_text(ni_node_get(rank, "hostname"), host, sizeof host);
    const struct ni_live_process *p = b->processes, *end = p + b->n_processes;
    /* A container's number is another process here: ALIVE is said by boot, number and start. */
    for (; p < end; p++)
      if (p->pid == pid && p->life == NI_LIFE_ALIVE && strcmp(p->host, host) == 0)
        break;
    if (p < end && strstr("never_called other_call called queued", where))
      j->stack[j->n_stacks++] = pid;
  }
  ni_tree_free(t);
}

/* Is there a verdict of this hang that was not reported yet? */
static bool take_verdict(struct hang_job *j, uint64_t mono_ns, struct ni_live_hang *said) {
  char text[sizeof said->sentence] = "";
  struct stat st;
  int fd = ni_plain_open(j->dir, "verdict.txt", &st);
  ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
  if (fd >= 0)
    close(fd);
  if (n <= 0 || ns_of(st.st_mtim) == ns_of(j->read))
    return false;
  uint64_t there = now_there(j->dir), age = there > ns_of(st.st_mtim) ? there - ns_of(st.st_mtim) : 0;
  if (!there)
    return false;
  j->read = st.st_mtim;
  text[strcspn(text, "\n")] = 0;
  uint64_t most = j->since_ns ? ni_now_ns(CLOCK_REALTIME) - j->since_ns : mono_ns - j->begun_ns + 60 * S;
  if (strncmp(text, "HANG (", 6) != 0 || age > most)
    return false;
  *said = (struct ni_live_hang){.certain = j->certain = strncmp(text, "HANG (certain)", 14) == 0};
  memcpy(said->job, j->who.job, sizeof said->job);
  memcpy(said->attempt, j->who.attempt, sizeof said->attempt);
  ni_safe_text(text, said->sentence, sizeof said->sentence);
  snprintf(said->path, sizeof said->path, "%.*s/verdict.json", (int)sizeof said->path - 16, j->at);
  return true;
}

static void end_hang(struct hang_job *j) {
  char name[24];
  ni_task_end(&j->child);
  ni_out_drop(&j->out);
  if (j->lease > 0 && renew_lease(j->dir, j->lease))
    unlinkat(j->dir, lease_name(j->lease, name), 0);
  if (j->dir >= 0)
    close(j->dir);
  memset(&j->dir, 0, sizeof *j - offsetof(struct hang_job, dir));
  j->dir = -1;
}

/* If others may write there, verdicts and leases may be theirs. */
static bool is_folder_ours(struct hang_job *j) {
  struct stat st;
  bool fine = fstat(j->dir, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
  if (!fine && !j->refused)
    ni_say(stderr,
           "nccl-inspector agent: %s: another user made it, or may write there: no verdict on a hang of this "
           "job\n",
           j->at);
  j->refused |= !fine;
  return fine;
}

/* Decides who leads. If nothing is stuck here and nobody leads, the hang is over. */
static void decide_leader(const struct ni_hang_watch *h, struct hang_job *j, uint64_t mono_ns) {
  if (j->dir < 0) {
    char why[256];
    int logs = ni_out_dir(j->logs, false, why, sizeof why);
    if (logs >= 0 && j->since_ns)
      (void)mkdirat(logs, NI_HANG_FOLDER, 0755);
    if (logs >= 0) {
      j->dir = openat(logs, NI_HANG_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      close(logs);
    }
    if (j->dir >= 0 && !is_folder_ours(j)) {
      close(j->dir);
      j->dir = -1;
    }
    j->begun_ns = mono_ns;
  }
  if (j->lease > 0 && !renew_lease(j->dir, j->lease))
    j->lease = 0;
  if (j->dir >= 0 && j->lease <= 0)
    j->lease = take_or_check_lease(j->dir, h->set.node, j->since_ns != 0);
  if (j->dir < 0 || (!j->since_ns && j->lease != 0))
    end_hang(j);
}

static void advance_job(const struct ni_hang_watch *h, struct hang_job *j, const struct ni_live_batch *b,
                        uint64_t mono_ns) {
  int status;
  if (j->child.pid) {
    if (!ni_task_over(&j->child, mono_ns, &status))
      return;
    handle_child_end(h, j, WIFEXITED(status) ? WEXITSTATUS(status) : -1, mono_ns);
  }
  if (j->step == COPY && j->n_stacks) {
    j->step = STACK;
  } else if (j->step != AS_TEXT) {
    const bool is_enough = j->certain || (j->told && j->judged >= ENOUGH);
    if (mono_ns < j->due_ns || (j->step == COPY && is_enough))
      return;
    if (j->step == JUDGE && j->lease <= 0)
      return begin_next_round(j, mono_ns);
    if (j->step == COPY)
      remove_old_copies(j, b);
    else
      j->step = AS_JSON;
  }
  if (!start_child(h, j, mono_ns))
    handle_child_end(h, j, -1, mono_ns);
}

static bool is_process_of(const struct hang_job *j, const struct ni_live_process *p, const char *log_dir) {
  bool same_job = strcmp(j->who.job, p->job) == 0 && strcmp(j->who.attempt, p->attempt) == 0;
  return same_job && strcmp(j->logs, log_dir) == 0;
}

/* Was a process that is gone started again? */
static bool is_replaced(const struct ni_live_batch *b, const struct ni_live_process *p) {
  struct ni_live_process *all = (struct ni_live_process *)(uintptr_t)b->processes;
  const struct ni_live_looked k = {.process = all, .n_processes = b->n_processes};
  return ni_live_replaced(&k, p);
}

/*
 * Finds since when an operation of a living process is stuck. If another process of the job was killed, a
 * wait counts at once.
 */
static void find_waiting(struct hang_job *j, const struct ni_live_batch *b, const struct ni_live_process *p) {
  uint64_t now = ni_now_ns(CLOCK_REALTIME);
  if (ni_life_gone(p->life))
    return;
  NI_EACH(const struct ni_live_open, o, b->open, b->n_open) {
    bool waits = j->dead && *o->func && now > o->since_ns && now - o->since_ns >= NI_HANG_DEAD_NS;
    bool older = o->since_ns - 1 < j->since_ns - 1; /* 0 is the largest */
    const bool hangs = o->stuck || waits;
    if (o->pid == p->pid && hangs && older)
      j->since_ns = o->since_ns;
  }
}

/* Finds the jobs of the look, and since when something of each is stuck here. */
static void find_jobs(struct ni_hang_watch *h, const struct ni_live_batch *b, const char *const *log_dir) {
  for (size_t i = 0; i < h->n; i++) {
    struct hang_job *j = &h->job[i];
    j->waited = j->since_ns != 0;
    j->seen = j->dead = false;
    j->here = 0;
    j->since_ns = 0;
  }
  for (uint32_t i = 0; i < b->n_processes; i++) {
    const struct ni_live_process *p = &b->processes[i];
    size_t k = 0;
    for (struct hang_job *j = h->job; k < h->n; j++, k++)
      if (is_process_of(j, p, log_dir[i]))
        break;
    if (k == h->n) {
      const bool is_path = *log_dir[i] == '/' && strlen(log_dir[i]) < LONGEST;
      if (k == JOBS_MAX || !is_path || !ni_array_room(h->job, k, h->cap))
        continue;
      h->job[h->n++] = (struct hang_job){.who = *p, .dir = -1};
      strcpy(h->job[k].logs, log_dir[i]);
      snprintf(h->job[k].at, sizeof h->job[k].at, "%s/" NI_HANG_FOLDER, log_dir[i]);
    }
    struct hang_job *j = &h->job[k];
    j->seen = true;
    j->here += !is_replaced(b, p);
    j->dead |= p->life == NI_LIFE_DEAD && !is_replaced(b, p);
  }
  for (size_t i = 0; i < h->n; i++)
    for (uint32_t k = 0; k < b->n_processes; k++)
      if (is_process_of(&h->job[i], &b->processes[k], log_dir[k]))
        find_waiting(&h->job[i], b, &b->processes[k]);
}

bool ni_hang_watch_turn(struct ni_hang_watch *h, const struct ni_live_batch *b, const char *const *log_dir,
                        uint64_t mono_ns, struct ni_live_hang *said) {
  bool any = false;
  find_jobs(h, b, log_dir);
  for (size_t i = 0; i < h->n; i++) {
    struct hang_job *j = &h->job[i];
    if (!j->seen) {
      end_hang(j);
      h->job[i--] = h->job[--h->n];
      continue;
    }
    bool tick = mono_ns >= j->tick_ns || (j->since_ns && !j->waited);
    if (tick) {
      j->tick_ns = mono_ns + 10 * S;
      decide_leader(h, j, mono_ns);
    }
    if (j->dir >= 0)
      advance_job(h, j, b, mono_ns);
    const bool is_due = tick || j->fresh;
    if (!is_due || any || j->dir < 0)
      continue;
    any = take_verdict(j, mono_ns, said);
    if (!any)
      continue;
    j->fresh = false;
    if (!j->told && h->set.stacks)
      find_stacks(j, b);
    j->told = true;
  }
  return any;
}

void ni_hang_watch_close(struct ni_hang_watch *h) {
  for (size_t i = 0; i < h->n; i++)
    end_hang(&h->job[i]);
  free(h->job);
  free(h);
}
