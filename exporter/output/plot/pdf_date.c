#include "pdf_date.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void take(char *text, size_t n, const char *key) {
  static const char none[] = "19700101000000";
  size_t len = strlen(key);
  for (char *at = text; (at = memmem(at, n - (size_t)(at - text), key, len));) {
    at += len;
    if (n - (size_t)(at - text) < sizeof none - 1) return;
    memcpy(at, none, sizeof none - 1);
  }
}

void ni_pdf_take_date(const char *path) {
  struct stat st;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  if (fstat(fd, &st) == 0 && st.st_size > 0) {
    size_t n = (size_t)st.st_size;
    char *text = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (text != MAP_FAILED) {
      take(text, n, "/CreationDate (D:");
      take(text, n, "/ModDate (D:");
      munmap(text, n);
    }
  }
  close(fd);
}
