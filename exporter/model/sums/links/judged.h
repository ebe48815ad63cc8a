/*
 * Which links are slow, each by itself: since when, and by how much. What makes them slow is links.c's.
 *
 * A link's state is UNKNOWN until it is compared with links that are like it, or with itself at other times
 * where single operations of it stop. Then it is FINE or SLOW; links.c makes a slow one EXPLAINED when a
 * cause has it. Bins in which the whole network is slow (fabric.c) say nothing.
 *
 * Threads: the main one. Ownership: the caller's. Nothing fails.
 */
#ifndef NI_LINKS_JUDGED_H
#define NI_LINKS_JUDGED_H

#include "exporter/model/sums/blame/causes.h"

enum ni_link_judgement { NI_JUDGED_UNKNOWN, NI_JUDGED_FINE, NI_JUDGED_SLOW, NI_JUDGED_EXPLAINED };

struct ni_judged_link {
  uint8_t state; /* enum ni_link_judgement */
  float noise;   /* from bin to bin */
  bool stops;    /* single operations of it stop (ni_link_stopped()) */
  uint32_t from, to;
  float ratio; /* in those of from..to in which it is slow */
};

struct ni_link_judge {
  const struct ni_blame *b;
  struct ni_causes *out; /* crowded bins, and ranks that are late */
  struct ni_judged_link *link;
  float *x; /* scratch: [2][bins], links */
  double step_us;
};

/* Fills w->link, which is all 0. */
void ni_judge_links(struct ni_link_judge *w);
/*
 * An operation of a link across hosts stopped in this bin, and hardly any of what is like it did. A link that
 * is down for a second stops what is under way, one operation of a communicator, and the next ones are as
 * quick as ever. The mean of the bin would hide it, and its shortest operation shows nothing of it. What has
 * no like, as the one communicator of all ranks, is compared with itself at other times: that says no less,
 * as nobody came late.
 */
bool ni_link_stopped(const struct ni_link_judge *w, const struct ni_blame_link *l, uint32_t bin);

#endif
