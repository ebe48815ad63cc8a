#include "life.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FRESH_NS UINT64_C(10000000000)

static size_t read_small(const char *path, char *buf, size_t cap) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, buf, cap - 1);
  if (fd >= 0) close(fd);
  buf[n > 0 ? n : 0] = 0;
  return n > 0 ? (size_t)n : 0;
}

/* Field 22 of /proc/PID/stat; 0: there is no such process, or it is dead and its parent has not taken note (state Z, X). The
 * name in field 2 may hold anything, so from its last ')'. */
static uint64_t start_ticks(int64_t pid) {
  char path[64], text[2048];
  snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  if (!read_small(path, text, sizeof text)) return 0;
  char *p = strrchr(text, ')');
  if (p && p[1] == ' ' && strchr("ZXx", p[2])) return 0;
  for (int field = 2; p && field < 22; field++) p = strchr(p + 1, ' ');
  return p ? strtoull(p + 1, NULL, 10) : 0;
}

enum ni_life ni_life_of(const struct ni_box_header *h, const char **why) {
  char boot[64];
  struct stat ns;
  struct timespec now;
  if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot)) boot[strcspn(boot, "\n")] = 0;
  if (!*boot || !*h->boot_id) {
    *why = "the boot id is not known";
    return NI_LIFE_UNKNOWN;
  }
  if (strcmp(boot, h->boot_id) != 0) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (strcmp(host, h->hostname) != 0) {
      *why = "it belongs to another machine";
      return NI_LIFE_UNKNOWN;
    }
    *why = "the machine was booted since";
    return NI_LIFE_DEAD;
  }
  if (h->pid_namespace && h->start_ticks && stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino == h->pid_namespace) {
    bool alive = h->pid > 0 && start_ticks(h->pid) == h->start_ticks;
    *why = alive ? "its process runs" : "its process is gone";
    return alive ? NI_LIFE_ALIVE : NI_LIFE_DEAD;
  }
  clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t at = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  if (h->heartbeat_ns && (at < h->heartbeat_ns || at - h->heartbeat_ns < FRESH_NS)) {
    *why = "it is in another container, its heartbeat is fresh";
    return NI_LIFE_ALIVE;
  }
  *why = "it is in another container, its heartbeat is old";
  return NI_LIFE_UNKNOWN;
}
