/*
 * What was read, and of whom: the entities (a NIC, a port, a GPU, the host) and their counters. Readings lie
 * in an array of their own, parallel to the counters, so that one set serves many sweeps.
 *
 *   set.entity[]   {source, name, link, ...}
 *   set.counter[]  {entity, name, what it is}     an entity's counters lie together, in their source's order
 *   reading[]      one a counter, of one sweep
 *
 * A source and a name make an entity; "cxi0" of the retry handler is another than "cxi0" of telemetry, and
 * the same NIC. Texts belong to the set. One thread fills it; then any may read.
 */
#ifndef NI_SET_H
#define NI_SET_H

#include <stdio.h>

#include "metric.h"

enum ni_link_state {
  NI_LINK_UNKNOWN = 0,
  NI_LINK_UP,
  NI_LINK_DOWN,
  NI_LINK_OFF, /* down, as it must be: its interface was not set up on this host */
};

struct ni_entity {
  uint8_t source;      /* enum ni_metric_source */
  const char *name;    /* "cxi0", "mlx5_0:1", "eth0", "gpu0", "host" */
  uint32_t first, n;   /* its counters in the set */
  double link_bytes_s; /* what its link carries in one direction; 0: not known */
  const char *pci;     /* "0000:c1:00.0", lower case; NULL: none */
  const char *nearest; /* of a NIC: addresses of the GPUs nearest to it, ',' between; NULL: not known */
  const char *link;    /* state and speed as people read them: "up, 200 Gb/s"; NULL: not known */
  uint8_t state;       /* of its link: enum ni_link_state */
  /*
   * ports that should be alike have the same: "InfiniBand, 15b3:1021, port 1 of 1, beside a GPU"; NULL: not
   * known
   */
  const char *kind;
  const char *about;   /* a model, a GPU's UUID; NULL: nothing */
  const char *warning; /* what is wrong with it at rest: "PCIe link x8 of x16"; NULL: nothing */
  int numa;            /* -1: not known */
};

struct ni_counter {
  uint32_t entity;
  const char *name;
  struct ni_metric what;
};

/* What could not be read: which file or device, and why. */
struct ni_unread {
  const char *path, *why;
  bool skipped; /* as it is with such a driver or kernel: nothing is missing that could be had */
};

struct ni_set {
  struct ni_entity *entity;
  struct ni_counter *counter;
  struct ni_unread *unread;
  size_t n_entities, cap_entities, n_counters, cap_counters, n_unread, cap_unread;
  char **block; /* texts */
  size_t n_blocks, cap_blocks, left;
  bool failed; /* without memory: something is missing here */
};

/* A set of zeros is an empty one. */
void ni_set_free(struct ni_set *s);
/* Copies a text into the set; "" without memory, and failed is set. NULL stays NULL. */
const char *ni_set_text(struct ni_set *s, const char *text);
/*
 * Begins an entity; counters that are added from then on are its. NULL without memory. Valid until the next
 * one.
 */
struct ni_entity *ni_set_entity(struct ni_set *s, enum ni_metric_source source, const char *name);
/* Adds a counter to the last entity. What it is comes from metrics.def. false without memory. */
bool ni_set_counter(struct ni_set *s, const char *name);
void ni_set_unread(struct ni_set *s, const char *path, const char *why);
void ni_set_skipped(struct ni_set *s, const char *path, const char *why);
/* How much is there that could not be read, what is left out (skipped) aside. */
size_t ni_set_n_unread(const struct ni_set *s);

/* "up", "down", "off"; NULL: not known. */
const char *ni_link_state_name(unsigned state);

/* "cxi", "rh", ...: the source's name, as options and files have it; NULL behind the last. */
const char *ni_source_name(unsigned source);

#endif
