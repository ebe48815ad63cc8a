/*
 * NICs of several GPUs. Two, four or all GPUs of a host can share a NIC, or the way to it. Where that is slow
 * the transfers of each of these ranks are, and each of them alone costs nothing, for the job would wait for
 * the others. So ranks of one host whose NICs are slow at the same time, and about as much, are one cause. So
 * are pairs of ranks between the same two hosts. What comes and goes is counted by the clock, and stays.
 *
 * Ranks that share a NIC take as many times as long as they are where all send at once, and others that share
 * one may send one by one. So what is slower by no more than that is not joined: it can be the order of work.
 *
 * Main thread. Failure: -ENOMEM.
 */
#ifndef NI_LINKS_SHARED_NIC_H
#define NI_LINKS_SHARED_NIC_H

#include "exporter/model/sums/blame/causes.h"

/* Of the causes from `first` on. The other ranks go to `beside` of the one that is left. */
int ni_join_shared_nics(const struct ni_blame *b, struct ni_causes *causes, uint32_t first);

#endif
