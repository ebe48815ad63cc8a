#include "host.h"

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "file_facts.h"

void ni_path_component(char *out, size_t cap, const char *text, const char *empty) {
  size_t n = 0;
  if (!*text)
    text = empty;
  for (; *text && n < cap - 1; text++) {
    char ch = *text;
    bool safe = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
        ch == '-' || ch == '_' || (ch == '.' && n > 0);
    out[n++] = safe ? ch : '_';
  }
  out[n] = 0;
}

void ni_host_name(char *out, size_t cap) {
  char host[256];
  if (gethostname(host, sizeof host) != 0)
    host[0] = 0;
  host[sizeof host - 1] = 0;
  ni_path_component(out, cap, host, "unknown-host");
}

uint64_t ni_file_size_limit(void) {
  struct rlimit lim;
  return getrlimit(RLIMIT_FSIZE, &lim) || lim.rlim_cur == RLIM_INFINITY ? UINT64_MAX : lim.rlim_cur;
}

void ni_process_boot_id(char *out, size_t cap) {
  ni_file_text("/proc/sys/kernel/random/boot_id", out, cap);
  out[strcspn(out, "\n")] = 0;
}

void ni_process_exe(char *out, size_t cap) {
  char path[4096];
  out[0] = 0;
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0)
    return;
  path[n] = 0;
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  size_t len = strnlen(base, cap - 1);
  memcpy(out, base, len);
  out[len] = 0;
}
