#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ni_comm_type_words[NI_TYPE_COUNT] = {"one rank", "one node", "one rank per node", "mixed", "unknown"};
const char *const ni_comm_type_names[NI_TYPE_COUNT] = {"single-rank", "nvlink-only", "hca-only", "mixed", "unknown"};

uint32_t *ni_order(uint32_t n, int (*compare)(const void *, const void *, void *), void *context) {
  uint32_t *order = malloc((n + 1) * sizeof *order);
  for (uint32_t i = 0; order && i < n; i++) order[i] = i;
  if (order) qsort_r(order, n, sizeof *order, compare, context);
  return order;
}

void ni_human_bytes(uint64_t bytes, char *out) {
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes == 0) {
    memcpy(out, "0B", 3);
    return;
  }
  unsigned u = 0;
  double divisor = 1;
  for (uint64_t n = bytes; n >= 1000; n /= 1000) {
    u++;
    divisor *= 1000;
  }
  snprintf(out, 32, "%.2f%s", (double)bytes / divisor, units[u]);
}

const char *ni_ranks_text(const struct ni_process *p, char out[48]) {
  if (p->ranks < 2) snprintf(out, 48, "rank %d", p->rank);
  else if ((uint32_t)(p->last - p->first) + 1 == p->ranks) snprintf(out, 48, "ranks %d-%d", p->first, p->last);
  else snprintf(out, 48, "%u of ranks %d-%d", p->ranks, p->first, p->last);
  return out;
}

void ni_size_dir(uint64_t bytes, char *out) {
  char human[32];
  ni_human_bytes(bytes, human);
  snprintf(out, 80, "msg_size_%llu_%s", (unsigned long long)bytes, human);
}

void ni_file_word(const char *name, char *out, size_t size) {
  size_t n = 0;
  for (const unsigned char *p = (const unsigned char *)name; *p && n + 4 < size && n < 160; p++) {
    unsigned c = *p;
    if ((c - '0' < 10) || ((c | 32) - 'a' < 26) || c == '-' || c == '_') out[n++] = (char)c;
    else n += (size_t)snprintf(out + n, size - n, "%%%02X", c);
  }
  out[n] = 0;
}
