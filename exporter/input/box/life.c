#include "life.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/now.h"

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

enum ni_life ni_life_of(const struct ni_box_header *h) {
  char boot[64];
  struct stat ns;
  if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot)) boot[strcspn(boot, "\n")] = 0;
  if (!*boot || !*h->boot_id) return NI_LIFE_UNKNOWN;
  if (strcmp(boot, h->boot_id) != 0) { /* another machine, or this one was booted since */
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return strcmp(host, h->hostname) != 0 ? NI_LIFE_UNKNOWN : NI_LIFE_DEAD;
  }
  if (h->pid_namespace && h->start_ticks && stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino == h->pid_namespace)
    return h->pid > 0 && start_ticks(h->pid) == h->start_ticks ? NI_LIFE_ALIVE : NI_LIFE_DEAD;
  /* It is in another container: only its heartbeat tells. */
  uint64_t at = ni_now_ns(CLOCK_MONOTONIC);
  return h->heartbeat_ns && (at < h->heartbeat_ns || at - h->heartbeat_ns < FRESH_NS) ? NI_LIFE_ALIVE : NI_LIFE_UNKNOWN;
}
