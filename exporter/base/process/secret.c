#include "secret.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "as_user.h"

enum { FILE_BYTES = 256 << 10 };

struct pages {
  size_t bytes; /* of all of it */
  char text[];
};

char *ni_secret_keep(const char *text) {
  const size_t n = strlen(text) + 1, bytes = sizeof(struct pages) + n;
  struct pages *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  (void)madvise(p, bytes, MADV_WIPEONFORK); /* since Linux 4.14 */
  (void)madvise(p, bytes, MADV_DONTDUMP);
  p->bytes = bytes;
  return memcpy(p->text, text, n);
}

static bool ends_in(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_one_line(const char *option) {
  return ends_in(option, "token-file") || ends_in(option, "header-file");
}

/*
 * Into text, of FILE_BYTES + 1 zeros. *bytes: what was read, also of what is refused. NULL, or what is wrong.
 */
static const char *read_file(const char *path, bool is_private, bool one_line, char *text, size_t *bytes) {
  struct stat st;
  const char *wrong = NULL;
  const int fd = ni_named_open(path);
  if (fd < 0)
    return strerror(-fd);
  if (fstat(fd, &st) != 0)
    wrong = strerror(errno);
  ssize_t got = 1;
  while (!wrong && got > 0 && *bytes < FILE_BYTES) {
    got = read(fd, text + *bytes, FILE_BYTES - *bytes);
    if (got < 0)
      wrong = strerror(errno);
    else
      *bytes += (size_t)got;
  }
  close(fd);
  if (wrong)
    return wrong;
  if (one_line)
    text[strcspn(text, "\r\n")] = 0;
  if (is_private && (st.st_mode & S_IRWXO))
    return "others can read it: chmod o= it";
  const bool is_empty = !*text || *text == '\n';
  return is_empty || *bytes == FILE_BYTES ? "it is empty, or larger than 256 KiB" : NULL;
}

char *ni_secret_read(const char *option, const char *path, bool is_private, char *why, size_t cap) {
  size_t bytes = 0;
  char *text = calloc(1, FILE_BYTES + 1), *kept = NULL;
  const char *wrong =
      text ? read_file(path, is_private, is_one_line(option), text, &bytes) : strerror(ENOMEM);
  if (!wrong && !(kept = ni_secret_keep(text)))
    wrong = strerror(ENOMEM);
  if (wrong)
    snprintf(why, cap, "--%s=%s: %s", option, path, wrong);
  if (text)
    explicit_bzero(text, bytes);
  free(text);
  return kept;
}

void ni_secret_free(char *secret) {
  if (!secret)
    return;
  struct pages *p = (struct pages *)(void *)(secret - offsetof(struct pages, text));
  const size_t bytes = p->bytes;
  explicit_bzero(p, bytes);
  munmap(p, bytes);
}

void ni_wiping_free(void *p) {
  if (p)
    explicit_bzero(p, malloc_usable_size(p));
  free(p);
}

void *ni_wiping_realloc(void *p, size_t n) {
  void *to = malloc(n ? n : 1);
  size_t had = p ? malloc_usable_size(p) : 0;
  if (!to)
    return NULL;
  if (p)
    memcpy(to, p, had < n ? had : n);
  ni_wiping_free(p);
  return to;
}
