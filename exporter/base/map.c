#include "map.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"

static struct ni_map_place *find_place(const struct ni_map *m, uint64_t name) {
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&m->index, name, &at)) != NI_INDEX_NONE;)
    if (m->place[k].name == name)
      return &m->place[k];
  return NULL;
}

/* The number, or -ENOMEM. */
static int64_t store_number(struct ni_map *m, uint64_t name, uint64_t began, int64_t number) {
  struct ni_map_place *p = find_place(m, name);
  if (!p) {
    if (!ni_array_room(m->place, m->n, m->cap) || ni_index_add(&m->index, name, (uint32_t)m->n) < 0)
      return -ENOMEM;
    p = &m->place[m->n++];
    p->first = number;
  }
  *p = (struct ni_map_place){name, began, number, p->first};
  return number;
}

int64_t ni_map_find_or_add(struct ni_map *m, uint64_t name, uint64_t began, uint32_t next) {
  const struct ni_map_place *newest = find_place(m, name);
  if (began == 0)
    return newest ? newest->number : store_number(m, name, 0, next);
  uint64_t full_name = ni_hash(name, began);
  const struct ni_map_place *exact = find_place(m, full_name);
  int64_t number = exact ? exact->number : newest && newest->began == 0 ? newest->number : next;
  if ((!newest || newest->began <= began) && store_number(m, name, began, number) < 0)
    return -ENOMEM;
  return store_number(m, full_name, began, number);
}

int64_t ni_map_get(const struct ni_map *m, uint64_t name, uint64_t began) {
  const struct ni_map_place *newest = find_place(m, name),
                            *exact = began ? find_place(m, ni_hash(name, began)) : newest;
  if (exact)
    return exact->number;
  return newest && newest->began == 0 ? newest->number : -1;
}

void ni_map_rewind(struct ni_map *m) {
  for (size_t i = 0; i < m->n; i++) {
    m->place[i].number = m->place[i].first;
    m->place[i].began = 0;
  }
}

void ni_map_free(struct ni_map *m) {
  ni_index_free(&m->index);
  free(m->place);
  *m = (struct ni_map){0};
}
