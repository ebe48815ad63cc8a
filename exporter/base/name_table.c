#include "name_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "array.h"
#include "bytes/wire.h"

enum { BLOCK_BYTES = 64 << 10 };

int ni_names_init(struct ni_names *t) {
  *t = (struct ni_names){0};
  void *p = mmap(NULL, NI_NAMES_MAX * sizeof *t->text, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return -ENOMEM;
  t->text = p;
  t->text[0] = (struct ni_str){"", 0};
  t->n = 1;
  pthread_mutex_init(&t->lock, NULL);
  return 0;
}

void ni_names_free(struct ni_names *t) {
  if (!t->text)
    return;
  munmap(t->text, NI_NAMES_MAX * sizeof *t->text);
  for (size_t i = 0; i < t->n_blocks; i++)
    free(t->block[i]);
  free(t->block);
  ni_index_free(&t->at_hash);
  pthread_mutex_destroy(&t->lock);
  *t = (struct ni_names){0};
}

static char *copy_text(struct ni_names *t, const char *text, size_t len) {
  if (len + 1 > t->block_left) {
    size_t size = len + 1 > BLOCK_BYTES ? len + 1 : BLOCK_BYTES;
    char *more = ni_array_room(t->block, t->n_blocks, t->cap_blocks) ? malloc(size) : NULL;
    if (!more)
      return NULL;
    t->block[t->n_blocks++] = t->block_at = more;
    t->block_left = size;
  }
  char *p = t->block_at;
  memcpy(p, text, len);
  p[len] = 0;
  t->block_at += len + 1;
  t->block_left -= len + 1;
  return p;
}

static int find_or_add_name(struct ni_names *t, const char *text, size_t len, uint32_t *code) {
  const uint64_t hash = ni_hash_text(0, text);
  for (size_t at = 0; (*code = ni_index_next(&t->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (t->text[*code].len == len && memcmp(t->text[*code].p, text, len) == 0)
      return 0;
  if (t->n == NI_NAMES_MAX)
    return -ENOSPC;
  char *p = copy_text(t, text, len);
  if (!p || ni_index_add(&t->at_hash, hash, t->n) < 0)
    return -ENOMEM;
  t->text[t->n] = (struct ni_str){p, (uint32_t)len};
  *code = t->n++;
  return 0;
}

int ni_name(struct ni_names *t, struct ni_name_cache *cache, const char *text, uint32_t *code) {
  *code = 0;
  if (!text || !*text)
    return 0;
  size_t len = strlen(text);
  unsigned at =
      ((unsigned char)text[0] * 31u + (unsigned char)text[len - 1] * 7u + (unsigned)len) % NI_NAME_CACHE;
  bool may_match = cache && cache->slot[at].text && cache->slot[at].len == len;
  if (may_match && memcmp(cache->slot[at].text, text, len) == 0) {
    *code = cache->slot[at].code;
    return 0;
  }
  pthread_mutex_lock(&t->lock);
  int e = find_or_add_name(t, text, len, code);
  pthread_mutex_unlock(&t->lock);
  if (e == 0 && cache) {
    cache->slot[at].text = t->text[*code].p;
    cache->slot[at].len = (uint32_t)len;
    cache->slot[at].code = *code;
  }
  return e;
}

void ni_wire_name(struct ni_wire *w, struct ni_names *t, uint32_t *code) {
  char *text = w->load ? NULL : (char *)(uintptr_t)ni_name_text(t, *code);
  ni_wire_text(w, &text);
  if (!w->load)
    return;
  *code = 0;
  if (!w->bad && ni_name(t, NULL, text, code) < 0)
    w->bad = true;
  free(text);
}

void ni_wire_kept(struct ni_wire *w, struct ni_names *t, const char **text) {
  char *x = (char *)(uintptr_t)*text;
  uint32_t code = 0;
  ni_wire_text(w, &x);
  if (!w->load)
    return;
  if (x && ni_name(t, NULL, x, &code) < 0)
    w->bad = true;
  *text = x && !w->bad ? ni_name_text(t, code) : NULL;
  free(x);
}
