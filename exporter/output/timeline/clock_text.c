#include "clock_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "exporter/base/text/plural.h"
#include "exporter/base/text/amount_text.h"

static const char *host_name(const struct ni_tr *r, uint32_t host) { return ni_name_text(&r->names, r->host[host].name); }

void ni_tr_clock_text(const struct ni_tr *r, uint32_t host, char *out, size_t size) {
  const struct ni_tr_host *h = &r->host[host];
  char offset[32], error[32];
  if (host == r->reference) {
    snprintf(out, size, "clock: the reference");
  } else if (!h->aligned) {
    snprintf(out, size, "clock: its own, unaligned (no collective in common with %s)", host_name(r, r->reference));
  } else {
    int n = snprintf(out, size, "clock: %s%s to the reference, error below %s, drift %.3f ppm (%" PRIu64 " %s with %s)",
                     h->offset_ns < 0 ? "" : "+", ni_span_text((int64_t)h->offset_ns, offset),
                     ni_span_text(h->error_ns, error), h->drift * 1e6, h->matched,
                     ni_plural(h->matched, "collective", "collectives"), host_name(r, h->via));
    if (n > 0 && (size_t)n < size && h->contradiction)
      snprintf(out + n, size - (size_t)n, "; CONTRADICTORY: no straight line fits, see --since, --until");
  }
}
