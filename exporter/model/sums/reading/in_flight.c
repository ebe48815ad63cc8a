#include "in_flight.h"

#include <string.h>

/* What was gathered of the process before goes to it. */
static int merge_into_process(struct ni_sum_range *x) {
  struct ni_run *r = x->r;
  int e = 0;
  if (!x->cover.busy && !x->sent_bytes[0] && !x->sent_bytes[1])
    return 0;
  pthread_mutex_lock(&r->lock);
  struct ni_sum_process *p = &r->process[x->cover_of];
  e = ni_cover_merge(&p->cover, &x->cover, false);
  for (int i = 0; i < 2; i++)
    p->sent_bytes[i] += x->sent_bytes[i];
  pthread_mutex_unlock(&r->lock);
  ni_cover_free(&x->cover);
  memset(x->sent_bytes, 0, sizeof x->sent_bytes);
  return e;
}

static int switch_process(struct ni_sum_range *x, uint32_t process) {
  int e = process == x->cover_of ? 0 : merge_into_process(x);
  x->cover_of = process;
  return e;
}

int ni_in_flight_add_operation(struct ni_sum_range *x, uint32_t process, int64_t start_ns, uint64_t exec_ns) {
  if (!x->r->has_counters || start_ns == NI_NO_START || exec_ns > INT64_MAX / 4)
    return 0;
  int e = switch_process(x, process);
  return e < 0 ? e : ni_cover_add(&x->cover, start_ns, start_ns + (int64_t)exec_ns);
}

int ni_in_flight_add_proxy(struct ni_sum_range *x, uint32_t process, const struct ni_proxy_line *p) {
  if (!x->r->has_counters || strcmp(p->direction, "send") != 0)
    return 0;
  int e = switch_process(x, process), step = strcmp(p->record_type, "proxy_step") == 0;
  x->sent_bytes[step] += ni_proxy_has_figures(p) ? p->trans_size_bytes : 0;
  return e;
}

int ni_in_flight_hand_over(struct ni_sum_range *x) { return merge_into_process(x); }
