#include "host.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

void ni_path_component(char *out, size_t cap, const char *text, const char *empty) {
  size_t n = 0;
  if (!*text) text = empty;
  for (; *text && n < cap - 1; text++) {
    char ch = *text;
    bool safe = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '-' ||
                ch == '_' || (ch == '.' && n > 0);
    out[n++] = safe ? ch : '_';
  }
  out[n] = 0;
}

void ni_host_name(char *out, size_t cap) {
  char host[256];
  if (gethostname(host, sizeof host) != 0) host[0] = 0;
  host[sizeof host - 1] = 0;
  ni_path_component(out, cap, host, "unknown-host");
}

uint64_t ni_file_size_limit(void) {
  struct rlimit lim;
  return getrlimit(RLIMIT_FSIZE, &lim) || lim.rlim_cur == RLIM_INFINITY ? UINT64_MAX : lim.rlim_cur;
}
