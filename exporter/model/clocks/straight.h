/*
 * Straight lines between the clocks of hosts: from what several of them did together to an offset and a drift
 * for each.
 *
 * Every host is compared with one that leads to the reference, on the way whose errors add up to least. How
 * tight a pair of hosts can be is first guessed from the shortest operations they share; the pairs on the
 * best ways are fitted (line_fit.h), which makes them what they are, until the best ways hold fitted ones
 * only. Two hosts with messages in one direction only are no pair; nor do messages around a ring of hosts
 * make pairs of them. Over the ranks of a host the latest start and the earliest end of a collective count;
 * where even these contradict each other, the GPUs' clocks are off by so much.
 *
 * Threads: one. Ownership: the caller's. Memory: 4 bytes a pair of hosts, 24 an operation and host. Failure:
 * -ENOMEM; -E2BIG: more than NI_STRAIGHT_HOSTS hosts.
 */
#ifndef NI_STRAIGHT_H
#define NI_STRAIGHT_H

#include "host_clock.h"
#include "match.h"

enum { NI_STRAIGHT_HOSTS = 2048 };

struct ni_straight {
  struct ni_host_clock *clock; /* in: gpu_ns, first_ns, last_ns; out: all else but the steps */
  uint32_t n_hosts, reference;
  const struct ni_match *match, *messages; /* messages: NULL: none */
  /* The host of an entry's member; NI_CLOCK_NONE: it does not count. */
  uint32_t (*host_of)(void *arg, uint32_t member);
  /* What to add to an entry's times to put its GPU's clock right; NULL: nothing. */
  int64_t (*better)(void *arg, const struct ni_match_entry *e);
  void *arg;
  int64_t epoch_ns; /* around which drift is counted */
  /* only what the reference did between these counts: clocks are straight for a short time */
  int64_t since_ns, until_ns;
  int64_t contradiction_ns; /* out: the largest between GPUs of one host */
};

/* Reads match and messages, frees neither. 0 or -errno. */
int ni_straight_fit(struct ni_straight *s);

#endif
