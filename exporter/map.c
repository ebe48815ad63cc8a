#include "map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

uint64_t ni_map_name(uint64_t name, uint64_t part) {
  uint64_t seed;
  memcpy(&seed, (const void *)(uintptr_t)getauxval(AT_RANDOM), sizeof seed); /* 16 bytes, other ones in each process */
  uint64_t h = (name ^ seed) * 0x9e3779b97f4a7c15ULL ^ part;
  h = (h ^ h >> 32 ^ seed >> 7) * 0xff51afd7ed558ccdULL;
  h = (h ^ h >> 29) * 0xc4ceb9fe1a85ec53ULL;
  return h ^ h >> 32;
}

uint64_t ni_map_name_text(uint64_t name, const char *part) {
  uint64_t word;
  name = ni_map_name(name, 0);
  for (size_t left = strlen(part), n; left; left -= n, part += n) {
    n = left < sizeof word ? left : sizeof word;
    word = 0;
    memcpy(&word, part, n);
    name = ni_map_name(name, word);
  }
  return name;
}

/* The place of a name, or the empty one where it belongs. */
static struct ni_map_place *place_of(const struct ni_map *m, uint64_t name) {
  size_t i = (size_t)name & (m->cap - 1);
  while (m->place[i].number && m->place[i].name != name) i = (i + 1) & (m->cap - 1);
  return &m->place[i];
}

static int grow(struct ni_map *m) {
  struct ni_map more = {.cap = m->cap ? 2 * m->cap : 64, .n = m->n};
  more.place = calloc(more.cap, sizeof *more.place);
  if (!more.place) return -ENOMEM;
  for (size_t i = 0; i < m->cap; i++)
    if (m->place[i].number) *place_of(&more, m->place[i].name) = m->place[i];
  free(m->place);
  *m = more;
  return 0;
}

static void put(struct ni_map *m, struct ni_map_place *p, uint64_t name, uint64_t began, uint32_t number) {
  m->n += p->number == 0;
  *p = (struct ni_map_place){name, began, number};
}

int64_t ni_map_find(struct ni_map *m, uint64_t name, uint64_t began, uint32_t next) {
  if (2 * (m->n + 2) > m->cap && grow(m) < 0) return -ENOMEM;
  struct ni_map_place *newest = place_of(m, name), *exact;
  if (began == 0) {
    if (!newest->number) put(m, newest, name, 0, next + 1);
    return newest->number - 1;
  }
  uint64_t whole = ni_map_name(name, began);
  exact = place_of(m, whole);
  if (exact->number) return exact->number - 1;
  uint32_t number = newest->number && newest->began == 0 ? newest->number : next + 1;
  if (!newest->number || newest->began <= began) put(m, newest, name, began, number);
  put(m, place_of(m, whole), whole, began, number);
  return number - 1;
}

int64_t ni_map_get(const struct ni_map *m, uint64_t name) { return m->cap ? (int64_t)place_of(m, name)->number - 1 : -1; }

void *ni_room(void *array, size_t n, size_t *cap, size_t size) {
  if (n < *cap) return array;
  size_t more = *cap ? 2 * *cap : 4;
  void *p = realloc(array, more * size);
  if (p) *cap = more;
  return p;
}

void ni_map_free(struct ni_map *m) {
  free(m->place);
  *m = (struct ni_map){0};
}
