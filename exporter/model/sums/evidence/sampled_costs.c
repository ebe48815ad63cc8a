#include "sampled_costs.h"

#include <math.h>
#include <string.h>

#define SEEN_MIN 8u  /* operations of a sample: of fewer nobody knows how many there are */
#define STEPS_MIN 4u /* the same of what comes once a step: a rough number is better than one of all layers */
#define AS_OFTEN 2.0 /* times as often as the rarest: operations that come once a step differ by chance */
#define SMALL_PART 1000u /* of the largest size: less is no work, such as a loss each so many steps */
#define HIDDEN_PART 0.5  /* what others waited for while they computed costs between nothing and all of it */
#define DOUBT 0.3        /* ranks have some work left while they wait, and a sample has its chance */

static uint64_t get_bytes(const struct ni_summary *s, const struct ni_slice *x) {
  return s->group[x->group].msg_bytes;
}

double ni_estimate_sampled_steps(const struct ni_summary *s, uint32_t comm) {
  uint64_t least = UINT64_MAX, sum = 0, n = 0, largest = 0;
  for (size_t i = 0; i < s->n_by_comm; i++)
    if (s->by_comm[i].of == comm && get_bytes(s, &s->by_comm[i]) > largest)
      largest = get_bytes(s, &s->by_comm[i]);
  for (size_t i = 0; i < s->n_by_comm; i++) {
    const struct ni_slice *x = &s->by_comm[i];
    const bool is_work = x->of == comm && get_bytes(s, x) >= largest / SMALL_PART;
    if (is_work && x->met >= STEPS_MIN && x->met < least)
      least = x->met;
  }
  for (size_t i = 0; i < s->n_by_comm; i++) {
    const struct ni_slice *x = &s->by_comm[i];
    const bool is_work = x->of == comm && get_bytes(s, x) >= largest / SMALL_PART;
    if (!is_work || x->met < least || (double)x->met > AS_OFTEN * (double)least)
      continue;
    sum += x->met;
    n++;
  }
  return n ? (double)sum / (double)n * s->one_in : 0;
}

/* All that it exchanges is added up: gradients. */
static bool has_gradients_alone(const struct ni_summary *s, uint32_t comm) {
  bool any = false;
  for (size_t i = 0; i < s->n_by_comm; i++) {
    if (s->by_comm[i].of != comm || !s->by_comm[i].met)
      continue;
    any = true;
    if (strcmp(s->group[s->by_comm[i].group].func, "AllReduce") != 0)
      return false;
  }
  return any;
}

/* The longest wait for the process in an operation of one size, in the mean over these. */
static double find_longest_wait(const struct ni_summary *s, uint32_t process) {
  double most = 0;
  for (size_t i = 0; i < s->n_by_process; i++) {
    const struct ni_slice *x = &s->by_process[i];
    if (x->of == process && x->met >= SEEN_MIN)
      most = fmax(most, x->alone_us / (double)x->met);
  }
  return most;
}

static bool has_one_comm(const struct ni_summary *s, uint32_t process) {
  uint32_t n = 0;
  for (size_t i = 0; i < s->n_seats; i++)
    n += s->seat[i].process == process;
  return n == 1;
}

struct ni_sampled_cost ni_find_sampled_cost(const struct ni_summary *s, uint32_t process, uint32_t comm,
                                            double waited_us) {
  struct ni_sampled_cost x = {.us = waited_us};
  const bool is_alone = has_one_comm(s, process);
  const double of_gradients = is_alone && has_gradients_alone(s, comm)
      ? find_longest_wait(s, process) * ni_estimate_sampled_steps(s, comm)
      : 0;
  if (is_alone && s->comm[comm].one_host < 0) {
    x.halved = true;
    x.us = HIDDEN_PART * waited_us;
  }
  if (of_gradients > 0 && of_gradients < x.us) {
    x.of_gradients = true;
    x.halved = false;
    x.us = of_gradients;
  }
  x.low_us = x.halved ? 0 : (1 - DOUBT) * x.us;
  x.high_us = x.halved ? waited_us : (1 + DOUBT) * x.us;
  return x;
}

uint32_t ni_find_rolled_comm(const struct ni_summary *s, uint32_t process) {
  uint64_t most = 0;
  uint32_t comm = UINT32_MAX;
  for (size_t i = 0; i < s->n_seats; i++) {
    const uint64_t n = s->long_waits ? s->long_waits[i].alike.count : s->seat[i].met;
    if (s->seat[i].process != process || n <= most)
      continue;
    most = n;
    comm = s->seat[i].comm;
  }
  return comm;
}

double ni_find_rolled_wait_us(const struct ni_summary *s, uint32_t process, uint32_t comm) {
  uint64_t least = UINT64_MAX, own = UINT64_MAX;
  for (size_t i = 0; s->long_waits && i < s->n_seats; i++) {
    const uint64_t ns = s->long_waits[i].alike.ns;
    if (s->seat[i].comm != comm || !s->long_waits[i].alike.count)
      continue;
    if (s->seat[i].process == process)
      own = ns;
    else if (ns < least)
      least = ns;
  }
  return own < least && least < UINT64_MAX ? (double)(least - own) / 1e3 : 0;
}
