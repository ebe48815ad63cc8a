#include "congestion.h"

#include <errno.h>
#include <math.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/model/sums/evidence/crossings.h"

#define CROWDED_OF_RUN 0.003 /* what costs less is not named */

/* Slow from some moment on, to the end: no congestion, which comes and goes. Something broke. */
static int name_broken_way(const struct ni_summary *s, const struct ni_congestion *c, struct ni_found *out) {
  const struct ni_comm_row *of = &s->comm[c->comm];
  char name[81], from[32], lost[32];
  struct ni_finding *f = ni_found_append(out, NI_FIND_SLOW_COMM, c->comm);
  if (!f)
    return -ENOMEM;
  f->value = NAN;
  f->lost_us = f->cost_us = c->lost_us;
  f->run_us = (double)(s->last_us - s->first_us);
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(
      &w,
      "%scommunicator %s%s%s and all others across hosts: from %s after the start on, to the end, transfers "
      "take %.2f times as long as before; the job came as far as before %s later; whether it is a NIC, a way "
      "between two hosts, or the network, cannot be told: counters of NICs would",
      ni_role_words[of->role], ni_safe_text(of->name, name, sizeof name), of->name ? " " : "", of->id,
      ni_duration_text((double)(c->from_us - s->first_us), from), c->ratio,
      ni_duration_text(c->lost_us, lost));
  return 0;
}

int ni_durations_name_congestion(struct ni_summary *s, struct ni_found *out) {
  struct ni_congestion c;
  char crowded[32], from[32], to[32], lost[32], host[81];
  const int e = ni_crossings_find_congestion(s, &c);
  if (e < 0 || !(c.ratio > 0) || c.lost_us < CROWDED_OF_RUN * (double)(s->last_us - s->first_us))
    return e;
  if (c.lasts)
    return name_broken_way(s, &c, out);
  struct ni_finding *f = ni_found_append(out, NI_FIND_CONGESTION, 0);
  if (!f)
    return -ENOMEM;
  f->level = NI_LEVEL_FABRIC;
  f->value = NAN;
  f->lost_us = c.lost_us;
  f->times = c.spells;
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(&w,
         "the network between hosts: for %s in all, %s to %s after the start, all transfers take %.2f times "
         "as long as "
         "otherwise; the job came as far as otherwise %s later",
         ni_duration_text(c.crowded_us, crowded), ni_duration_text((double)(c.from_us - s->first_us), from),
         ni_duration_text((double)(c.to_us - s->first_us), to), c.ratio, ni_duration_text(c.lost_us, lost));
  if (c.hosts == 1)
    ni_put(&w,
           " (or one host: all communicators across hosts have ranks on %s; counters of its NICs would tell)",
           ni_safe_text(s->host[c.host].name, host, sizeof host));
  else if (c.hosts)
    ni_put(&w,
           " (or one host: all communicators across hosts have ranks on each of %s hosts; counters of their "
           "NICs would tell)",
           NI_COUNT(c.hosts));
  return 0;
}
