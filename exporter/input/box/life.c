#include "life.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/process/as_user.h"

#define TMPFS 0x01021994 /* statfs: TMPFS_MAGIC of linux/magic.h */
#define FRESH_NS UINT64_C(10000000000)

/* ---- the kernel's word ---- */

enum word { SILENT = 0, RUNS, GONE };

static size_t read_small(const char *path, char *buf, size_t cap) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, buf, cap - 1);
  if (fd >= 0)
    close(fd);
  buf[n > 0 ? n : 0] = 0;
  return n > 0 ? (size_t)n : 0;
}

/* Field 22 of /proc/PID/stat; 0: there is no such process, or it is dead and its parent has not taken note
 * (state Z, X). The name in field 2 may hold anything, so from its last ')'. */
static uint64_t read_start_ticks(int64_t pid) {
  char path[64], text[2048];
  snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  if (!read_small(path, text, sizeof text))
    return 0;
  char *p = strrchr(text, ')');
  if (p && p[1] == ' ' && strchr("ZXx", p[2]))
    return 0;
  for (int field = 2; p && field < 22; field++)
    p = strchr(p + 1, ' ');
  return p ? strtoull(p + 1, NULL, 10) : 0;
}

/* Is one of its uids (real, effective, saved, of files) this one? Where that cannot be read, yes. */
static bool has_uid(int64_t pid, uint32_t uid) {
  char path[64], text[4096];
  unsigned of[4];
  snprintf(path, sizeof path, "/proc/%lld/status", (long long)pid);
  const char *line = read_small(path, text, sizeof text) ? strstr(text, "\nUid:") : NULL;
  if (!line || sscanf(line, "\nUid: %u %u %u %u", &of[0], &of[1], &of[2], &of[3]) != 4)
    return true;
  return of[0] == uid || of[1] == uid || of[2] == uid || of[3] == uid;
}

/* A box of root's is nobody's forgery, and its process may have given up its rights since. */
static enum word ask_pid(const struct ni_box_header *h, uint32_t owner) {
  if (h->pid <= 0 || read_start_ticks(h->pid) != h->start_ticks)
    return GONE;
  return owner == 0 || has_uid(h->pid, owner) ? RUNS : GONE;
}

/* Has nobody the box open for writing, and so nobody has it mapped? The kernel grants a read lease only
 * then, whichever pid namespace the others are in. Only in a tmpfs: elsewhere it is no box but somebody's
 * copy of one, which nobody maps. */
static enum word ask_lease(int fd) {
  struct statfs s;
  if (fstatfs(fd, &s) != 0 || (uint32_t)s.f_type != TMPFS)
    return SILENT;
  /* Whoever opens the file for writing in this moment has us signalled: not by SIGIO, which would end us. */
  if (fcntl(fd, F_SETSIG, SIGURG) != 0)
    return SILENT;
  if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
    return errno == EAGAIN ? RUNS : SILENT;
  (void)fcntl(fd, F_SETLEASE, F_UNLCK);
  return GONE;
}

/* *here: it is a box of this kernel, since its boot: its monotonic clock is ours. */
static enum word ask_kernel(const struct ni_box_header *h, int fd, uint32_t owner, enum ni_life_why *why,
                            bool *here) {
  static _Thread_local char boot[64]; /* it stays */
  struct stat ns;
  *why = NI_LIFE_NOBODY;
  *here = false;
  if (!*boot)
    (void)read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
  boot[strcspn(boot, "\n")] = 0;
  if (!*boot || !*h->boot_id)
    return SILENT;
  if (strcmp(boot, h->boot_id) != 0) { /* another machine, or this one was booted since */
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (strcmp(host, h->hostname) != 0)
      return SILENT;
    *why = NI_LIFE_BY_BOOT;
    return GONE;
  }
  *here = true;
  bool same_table = h->pid_namespace && stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino == h->pid_namespace;
  if (same_table && h->start_ticks) {
    *why = NI_LIFE_BY_PID;
    return ask_pid(h, owner);
  }
  enum word word = ask_lease(fd);
  if (word != SILENT)
    *why = NI_LIFE_BY_LEASE;
  return word;
}

/* ---- with the box's own ---- */

static enum ni_box_end convert_end(uint32_t end) {
  return end <= NI_BOX_END_EXITED ? (enum ni_box_end)end : NI_BOX_END_UNKNOWN;
}

static bool ended_by_itself(enum ni_box_end end) {
  return end == NI_BOX_END_FINALIZED || end == NI_BOX_END_EXITED;
}

/* What the box says now. A process may have said its last word after h was read and before it was gone. */
static enum ni_box_end read_newest_end(const struct ni_box_header *h, int fd) {
  const off_t at = offsetof(struct ni_box_header, end);
  uint32_t end = h->end;
  bool has = h->header_bytes >= (size_t)at + sizeof end;
  if (has && pread(fd, &end, sizeof end, at) != (ssize_t)sizeof end)
    end = h->end;
  return convert_end(has ? end : NI_BOX_END_UNKNOWN);
}

struct ni_life_fact ni_life_ask(const struct ni_box_header *h, int fd, uint32_t owner) {
  struct ni_life_fact f = {0};
  bool here;
  enum word word = ask_kernel(h, fd, owner, &f.why, &here);
  f.end = read_newest_end(h, fd);
  f.at_ns = ni_now_ns(CLOCK_REALTIME);
  if (word == GONE)
    f.life = ended_by_itself(f.end) ? NI_LIFE_ENDED : NI_LIFE_DEAD;
  if (word == RUNS)
    f.life = NI_LIFE_ALIVE;
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC), since = now > h->heartbeat_ns ? now - h->heartbeat_ns : 0;
  const bool has_heartbeat = here && h->heartbeat_ns && since < FRESH_NS;
  if (word == SILENT && has_heartbeat) {
    f.life = NI_LIFE_ALIVE;
    f.why = NI_LIFE_BY_HEARTBEAT;
  }
  return f;
}

struct ni_life_fact ni_life_of_copy(const struct ni_box_header *h, uint32_t life, uint64_t taken_ns) {
  struct ni_life_fact f = {.why = NI_LIFE_BY_COPY, .end = convert_end(h->end), .at_ns = taken_ns};
  if (life == NI_LIFE_ALIVE)
    f.life = NI_LIFE_ALIVE;
  if (life == NI_LIFE_DEAD)
    f.life = ended_by_itself(f.end) ? NI_LIFE_ENDED : NI_LIFE_DEAD;
  return f;
}

/* The header as the writer's release has it: what that does not have is 0, and texts end. */
static bool read_header(int fd, struct ni_box_header *h) {
  bool sound = pread(fd, h, sizeof *h, 0) == (ssize_t)sizeof *h &&
      memcmp(h->magic, NI_BOX_MAGIC, sizeof h->magic) == 0 && h->byte_order == NI_BOX_BYTE_ORDER;
  h->boot_id[sizeof h->boot_id - 1] = h->hostname[sizeof h->hostname - 1] = 0;
  if (h->header_bytes < sizeof *h)
    memset((char *)h + h->header_bytes, 0, sizeof *h - h->header_bytes);
  return sound && h->version && h->version <= NI_BOX_VERSION;
}

struct ni_life_fact ni_life_of_file(int fd, uint32_t owner) {
  struct ni_life_fact f = {0};
  struct ni_box_header h = {0};
  return read_header(fd, &h) ? ni_life_ask(&h, fd, owner) : f;
}

struct ni_life_fact ni_life_of_path(const char *path, uint32_t owner, int64_t pid) {
  struct ni_life_fact f = {0};
  struct ni_box_header h = {0};
  struct stat st;
  int fd = ni_plain_open(AT_FDCWD, path, &st);
  if (fd < 0)
    return f;
  if (st.st_uid == owner && read_header(fd, &h) && h.pid == pid)
    f = ni_life_ask(&h, fd, owner);
  close(fd);
  return f;
}

/* ---- in words ---- */

const char *ni_life_name(enum ni_life life) {
  static const char *const names[NI_LIFE_COUNT] = {"unknown", "alive", "dead", "ended"};
  return names[(unsigned)life < NI_LIFE_COUNT ? life : NI_LIFE_UNKNOWN];
}

const char *ni_life_end_name(enum ni_box_end end) {
  static const char *const names[] = {"unknown", "not_yet", "finalized", "exited"};
  return names[convert_end((uint32_t)end)];
}

/* Says how a process that is gone ended. */
static const char *describe_end(enum ni_box_end end) {
  static const char *const words[] = {"how it ended its plugin does not say", "it had not ended by itself",
                                      "every communicator had been closed in order",
                                      "it had left by exit or return"};
  return words[convert_end((uint32_t)end)];
}

const char *ni_life_reason(const struct ni_life_fact *f, char *out, size_t size) {
  static const char *const lives[NI_LIFE_WHYS] = {
      [NI_LIFE_BY_PID] = "a process with its pid and start time runs",
      [NI_LIFE_BY_LEASE] = "the kernel says that somebody has its box mapped",
      [NI_LIFE_BY_HEARTBEAT] = "a heartbeat of less than 10 s ago",
      [NI_LIFE_BY_COPY] = "it ran when the copy was taken"};
  static const char *const is_gone[NI_LIFE_WHYS] = {
      [NI_LIFE_BY_PID] = "no process of its user has its pid and start time",
      [NI_LIFE_BY_LEASE] = "the kernel says that nobody has its box mapped",
      [NI_LIFE_BY_BOOT] = "this machine was booted since",
      [NI_LIFE_BY_COPY] = "it was gone when the copy was taken"};
  unsigned why = f->why < NI_LIFE_WHYS ? f->why : NI_LIFE_NOBODY;
  const char *elsewhere =
      "it ran in another container or on another machine, and the kernel here does not say";
  snprintf(out, size, "%s", f->life == NI_LIFE_ALIVE && lives[why] ? lives[why] : elsewhere);
  if (ni_life_gone(f->life) && is_gone[why])
    snprintf(out, size, "%s, and %s", is_gone[why], describe_end(f->end));
  return out;
}
