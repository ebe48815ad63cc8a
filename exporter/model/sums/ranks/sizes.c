#include "sizes.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/order.h"

struct size_ops { /* operations of one size */
  uint64_t bytes, ops;
};
static NI_ORDER_BY(by_bytes, struct size_ops, bytes, ops);

/* `share` of the operations are smaller. */
static double find_size(const struct size_ops *size, size_t n, uint64_t ops, double share) {
  uint64_t below = 0;
  size_t i = 0;
  while (i + 1 < n && (double)(below + size[i].ops) <= share * (double)ops)
    below += size[i++].ops;
  return n ? (double)size[i].bytes : 0;
}

int ni_sizes_differ(const struct ni_blame_rank *o, const uint16_t *function, uint32_t main,
                    const uint64_t *ops, struct ni_size_bounds bounds, bool *out) {
  struct size_ops *size = malloc((o->n_tokens + 1) * sizeof *size);
  size_t n = 0;
  uint64_t all = 0, rare = 0;
  if (!size)
    return -ENOMEM;
  for (uint32_t i = 0; i < o->n_tokens; i++) {
    if (function[i] != main || !ops[i])
      continue;
    size[n++] = (struct size_ops){o->token_bytes[i], ops[i]};
    all += ops[i];
    rare += (double)ops[i] < bounds.seldom ? ops[i] : 0;
  }
  qsort(size, n, sizeof *size, by_bytes);
  const double smaller = find_size(size, n, all, 0.25), larger = find_size(size, n, all, 0.75);
  *out = rare * 2 > all && larger >= bounds.times * smaller;
  free(size);
  return 0;
}
