#include "secret.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
