#include "heat_bins.h"

void ni_heat_sources(const struct ni_summary *s, uint32_t *source) {
  const struct ni_heat *h = &s->heat;
  uint32_t next = h->bins;
  for (uint32_t b = h->bins; b-- > 0;) {
    bool any = s->time_from == NI_TIME_START;
    for (uint32_t r = 0; r < h->rows && !any; r++) any = h->count[(size_t)r * h->bins + b] > 0;
    if (any) next = b;
    source[b] = next;
  }
}
