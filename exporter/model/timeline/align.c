#include "align.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/clocks/hosts.h"
#include "exporter/model/clocks/straight.h"

static uint32_t host_of(void *arg, uint32_t member) {
  const struct ni_tr *r = arg;
  const struct ni_tr_member *m = &r->member[member];
  return r->unit[m->unit].shown ? ni_tr_host_of(r, m) : NI_CLOCK_NONE;
}

static int64_t correct_match_time(void *arg, const struct ni_match_entry *e) {
  const struct ni_tr *r = arg;
  const struct ni_host_clock *c = &r->host[ni_tr_host_of(r, &r->member[e->member])].clock;
  const struct ni_gpu_clock *gpu = &r->unit[r->member[e->member].unit].clock;
  const int64_t add = ni_gpu_clock_correction(gpu, e->stated_ns, e->start_ns), end = e->end_ns + add;
  return ni_clock_unset(c, ni_clock_steps_before(c, NULL, 0, end), end) - e->end_ns;
}

/* The host of the lowest rank that is shown. */
static uint32_t lowest_shown(const struct ni_tr *r) {
  uint32_t best = NI_TR_NONE;
  for (uint32_t i = 0; i < r->n_units; i++)
    if (r->unit[i].shown && (best == NI_TR_NONE || r->unit[i].rank < r->unit[best].rank))
      best = i;
  return best == NI_TR_NONE ? NI_TR_NONE : r->process[r->unit[best].process].host;
}

static bool is_shown(const struct ni_tr *r, uint32_t host) {
  for (uint32_t i = 0; i < r->n_units; i++)
    if (r->unit[i].shown && r->process[r->unit[i].process].host == host)
      return true;
  return false;
}

/* What all commands know of the host, where one run has it; NULL. */
static const struct ni_clocks_host *find_known_host(const struct ni_clocks *c, const char *name) {
  const struct ni_clocks_host *found = NULL;
  for (uint32_t i = 0; i < c->n_hosts; i++) {
    if (strcmp(c->host[i].name, name) != 0)
      continue;
    if (found)
      return NULL;
    found = &c->host[i];
  }
  return found;
}

static const char *name_host(const struct ni_tr *r, uint32_t host) {
  return ni_name_text(&r->names, r->host[host].name);
}

/* Steps, and the reference: the known one of the lowest rank's host, if it is shown. */
static int use_known_clocks(struct ni_tr *r) {
  struct ni_clocks c = {0};
  int e = ni_clocks_of_ledger(&c, &r->ledger);
  const uint32_t lowest = r->reference;
  const struct ni_clocks_host *of_lowest = e == 0 ? find_known_host(&c, name_host(r, lowest)) : NULL;
  for (uint32_t i = 0; e == 0 && i < r->n_hosts; i++) {
    const struct ni_clocks_host *h = find_known_host(&c, name_host(r, i));
    struct ni_host_clock *to = &r->host[i].clock;
    to->n_steps = h ? h->clock.n_steps : 0;
    if (h)
      memcpy(to->step, h->clock.step, sizeof to->step);
    const bool is_reference = h && of_lowest && h == &c.host[of_lowest->reference];
    if (is_reference && r->reference == lowest && is_shown(r, i))
      r->reference = i;
  }
  ni_clocks_free(&c);
  return e;
}

static void set_gpu_errors(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_hosts; i++)
    r->host[i].clock.gpu_ns = 0;
  for (uint32_t i = 0; i < r->n_units; i++) {
    struct ni_host_clock *c = &r->host[r->process[r->unit[i].process].host].clock;
    if (r->unit[i].shown && r->unit[i].clock.spread_ns > c->gpu_ns)
      c->gpu_ns = r->unit[i].clock.spread_ns;
  }
}

static int fit_clocks(struct ni_tr *r, int64_t since_ns, int64_t until_ns) {
  struct ni_host_clock *clock = calloc(r->n_hosts, sizeof *clock);
  struct ni_straight s = {.clock = clock,
                          .n_hosts = r->n_hosts,
                          .reference = r->reference,
                          .match = &r->match,
                          .messages = &r->messages,
                          .host_of = host_of,
                          .better = correct_match_time,
                          .arg = r,
                          .epoch_ns = r->first_ns == INT64_MAX ? 0 : r->first_ns / 2 + r->last_ns / 2,
                          .since_ns = since_ns,
                          .until_ns = until_ns};
  if (!clock)
    return -ENOMEM;
  set_gpu_errors(r);
  for (uint32_t i = 0; i < r->n_hosts; i++) {
    clock[i] = r->host[i].clock;
    clock[i].first_ns = r->host[i].first_ns;
    clock[i].last_ns = r->host[i].last_ns;
  }
  int e = ni_straight_fit(&s);
  for (uint32_t i = 0; e == 0 && i < r->n_hosts; i++)
    r->host[i].clock = clock[i];
  r->contradiction_ns = s.contradiction_ns;
  free(clock);
  return e;
}

int ni_tr_align(struct ni_tr *r) {
  r->reference = lowest_shown(r);
  if (r->reference == NI_TR_NONE)
    return 0;
  if (r->n_hosts > NI_STRAIGHT_HOSTS)
    return ni_tr_fail(r, -E2BIG, "%u hosts: clocks can be aligned for %d; choose some with --node or --rank",
                      r->n_hosts, NI_STRAIGHT_HOSTS);
  const bool windowed = r->since_ns != INT64_MIN || r->until_ns != INT64_MAX;
  int e = use_known_clocks(r);
  if (e == 0)
    e = fit_clocks(r, r->since_ns, r->until_ns);
  /* A short window may hold nothing that joins all hosts: then the whole run has to do. */
  bool all = true;
  for (uint32_t i = 0; i < r->n_units; i++)
    all &= !r->unit[i].shown || r->host[r->process[r->unit[i].process].host].clock.aligned;
  const bool may_widen = windowed && !r->windowed;
  if (e == 0 && may_widen && !all)
    e = fit_clocks(r, INT64_MIN, INT64_MAX);
  ni_match_free(&r->match);
  ni_match_free(&r->messages);
  return e < 0 ? ni_tr_fail(r, e, "%s", strerror(-e)) : 0;
}
