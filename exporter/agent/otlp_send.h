/*
 * Sends metrics by OTLP over HTTP, in a thread of its own: names are looked up and servers waited for there.
 * One request waits, and a newer one replaces it: sums are cumulative, so what is given up costs points in
 * time and no amounts.
 *
 * As the specification has it: 429, 502, 503, 504 and no connection are tried again, after Retry-After (an
 * hour at most) or 1, 2, 4 ... 60 s with jitter, for five minutes; 200 with a partial success and other codes
 * are not. Redirects are not followed; proxies are those of the environment. The caller has blocked his
 * signals, and ignores SIGPIPE.
 */
#ifndef NI_OTLP_SEND_H
#define NI_OTLP_SEND_H

#include <stddef.h>
#include <stdint.h>

struct ni_otlp;
struct ni_otlp_totals {
  uint64_t sent, retried, dropped, refused; /* requests; refused: data points, by partial success */
  char error[256];                          /* the newest one; "" */
};

/*
 * url: as --otlp has it; /v1/metrics is added where it has no path. header: one more, or NULL. 0; -EINVAL;
 * -errno.
 */
int ni_otlp_start(struct ni_otlp **out, const char *url, const char *header);
/* Takes the request, which it packs and frees. Never waits. */
void ni_otlp_put(struct ni_otlp *o, void *request, size_t bytes);
struct ni_otlp_totals ni_otlp_totals(struct ni_otlp *o);
/* Sends what waits, unless the server has to be left alone. Takes 2 s at most. */
void ni_otlp_stop(struct ni_otlp *o);

#endif
