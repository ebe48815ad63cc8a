#include "process_id.h"

#include <string.h>
#include <unistd.h>

#include "file_facts.h"

void ni_process_boot_id(char *out, size_t cap) {
  ni_file_text("/proc/sys/kernel/random/boot_id", out, cap);
  out[strcspn(out, "\n")] = 0;
}

void ni_process_exe(char *out, size_t cap) {
  char path[4096];
  out[0] = 0;
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return;
  path[n] = 0;
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  size_t len = strnlen(base, cap - 1);
  memcpy(out, base, len);
  out[len] = 0;
}
