#include "facts.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"

static uint64_t hash_fact(uint32_t what, uint64_t a, uint64_t b, uint32_t c) {
  return ni_hash(ni_hash(ni_hash(ni_hash(0, what), a), b), c);
}

static struct ni_fact *look_up_fact(struct ni_facts *x, uint64_t hash, uint32_t what, uint64_t a, uint64_t b,
                                    uint32_t c) {
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&x->at_hash, hash, &at)) != NI_INDEX_NONE;) {
    struct ni_fact *s = &x->item[k];
    const bool is_same_key = s->a == a && s->b == b && s->c == c;
    if (is_same_key && s->what == what)
      return s;
  }
  return NULL;
}

static int add_fact(struct ni_facts *x, uint64_t hash, struct ni_fact s) {
  if (!ni_array_room(x->item, x->n, x->cap))
    return -ENOMEM;
  if (ni_index_add(&x->at_hash, hash, (uint32_t)x->n) < 0)
    return -ENOMEM;
  x->item[x->n++] = s;
  return 0;
}

int64_t ni_fact_find(struct ni_facts *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c, bool put,
                     size_t number) {
  uint64_t hash = hash_fact(what, a, b, c);
  const struct ni_fact *s = look_up_fact(x, hash, what, a, b, c);
  if (s)
    return s->number;
  if (!put)
    return UINT32_MAX;
  return add_fact(x, hash, (struct ni_fact){a, b, c, what, (uint32_t)number}) < 0 ? -ENOMEM : (int64_t)number;
}

int ni_fact_set(struct ni_facts *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c, size_t number) {
  uint64_t hash = hash_fact(what, a, b, c);
  struct ni_fact *s = look_up_fact(x, hash, what, a, b, c);
  if (s)
    s->number = (uint32_t)number;
  return s ? 0 : add_fact(x, hash, (struct ni_fact){a, b, c, what, (uint32_t)number});
}

bool ni_fact_is_known(struct ni_facts *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c) {
  return ni_fact_find(x, what, a, b, c, false, 0) != UINT32_MAX;
}

void ni_facts_free(struct ni_facts *x) {
  ni_index_free(&x->at_hash);
  free(x->item);
  *x = (struct ni_facts){.n = 0};
}
