/*
 * One clock for all commands: how far the clock of each host is off, from the operations that hosts did
 * together.
 *
 *   ni_clocks_seat()   for each rank of each communicator, with what it knows of completion times
 *                      (ledger/anchors.h)
 *   ni_clocks_find()   once: steps, then lines
 *   ni_host_clock of each host, which is NULL where its times are right as they are
 *
 * or ni_clocks_of_ledger(), which does all of it from the account of the logs. trace has more operations than
 * that and asks straight.h itself, with the steps and the reference of these.
 *
 * States of a host: alone in its run (nothing to compare); the reference; within what can be known (nothing
 * is changed: its own times stay, to the byte: no more off than the bounds leave open, and, where they are
 * wide, than NI_CLOCKS_LEAST_NS or the scatter of the ends); off (line and steps count); unaligned (it shares
 * no communicator with the reference's hosts, also not by way of others). Hosts of one run that are joined
 * among themselves and not with the most have a reference of their own.
 *
 * The reference is the host whose clock is in the middle of those joined, of two in the middle the first by
 * name: the clock of most hosts, the same whatever order logs were read in. Clocks are those of one run: what
 * runs of one folder have in common is a name, no moment.
 *
 * Steps (set by hand, NTP after a sleep): along the numbers of one communicator's operations all hosts
 * measure the same time from end to end. Who measures NI_CLOCKS_STEP_NS more or less than the middle one, and
 * stays so for the operations around it, has stepped between these two. Where two hosts are alone, that one
 * has stepped of which communicators of more hosts say so, or several pairs; else the one whose times between
 * operations are less usual in that communicator. If nothing says that, the one that measures less is
 * believed, unless that is less than nothing.
 *
 * Which life of a communicator a rank's completion times are of, where a hash came back: ranks with as many
 * lives are laid beside each other, each with the other's same one.
 *
 * Units: Unix ns, by the clock of the host where nothing else is said. Threads: one; found ones are
 * read-only. Ownership: ni_clocks_free(); anchors are borrowed until ni_clocks_find(). Failure: -ENOMEM. More
 * than NI_STRAIGHT_HOSTS hosts in a run are not compared, and that is said.
 */
#ifndef NI_CLOCKS_HOSTS_H
#define NI_CLOCKS_HOSTS_H

#include <stddef.h>

#include "exporter/base/index.h"
#include "exporter/base/text/json_write.h"
#include "exporter/model/ledger/ledger.h"
#include "host_clock.h"

#define NI_CLOCKS_SAID_NS INT64_C(10000000) /* hosts that are further apart are worth a line */
#define NI_CLOCKS_STEP_NS INT64_C(10000000)
#define NI_CLOCKS_LEAST_NS INT64_C(1000000)

struct ni_clocks_host {
  char *name;
  uint32_t run, reference; /* reference: number of the host whose clock is that of this one's times */
  bool joined;             /* with the most of its run's hosts */
  bool off;                /* its times are corrected */
  struct ni_host_clock clock;
};

struct ni_clocks_seat { /* a rank of a communicator */
  uint64_t hash;
  int64_t since_ns; /* when it began, by whatever tells its lives apart */
  int32_t n_ranks, rank;
  uint32_t host, lives, life; /* life: which of them, from 0 */
  const struct ni_anchors *anchors;
};

struct ni_clocks {             /* all 0: empty; also a result: nothing is off */
  struct ni_clocks_host *host; /* by their numbers */
  uint32_t n_hosts, *order;    /* order: these by run and name, once found */
  bool any;                    /* some host is off */
  bool too_many;               /* a run has more hosts than are compared */
  int64_t noise_ns;            /* set before: ends are known to within that, and nothing less is a step */
  size_t cap_hosts;
  struct ni_clocks_seat *seat; /* until found */
  size_t n_seats, cap_seats;
  struct ni_index at_hash;
};

/* The number of a host, which is new where it is met first, or -ENOMEM. Before ni_clocks_find(). */
int64_t ni_clocks_host(struct ni_clocks *c, uint32_t run, const char *name);
/* Takes a rank of a communicator: all but lives and life are set. 0 or -ENOMEM. */
int ni_clocks_seat(struct ni_clocks *c, const struct ni_clocks_seat *s);
/* 0 or -ENOMEM. */
int ni_clocks_find(struct ni_clocks *c);
/* All of it from a ledger, judged or not, into an empty one. 0 or -ENOMEM. */
int ni_clocks_of_ledger(struct ni_clocks *c, const struct ni_ledger *l);
void ni_clocks_free(struct ni_clocks *c);

/* Found ones as bytes, or back into an empty one. The wire is bad where that fails. */
void ni_clocks_wire(struct ni_wire *w, struct ni_clocks *c);

/* The clock by which times of that host are to be corrected; NULL: they are right. */
const struct ni_host_clock *ni_clocks_of(const struct ni_clocks *c, uint32_t run, const char *host);
/* The largest |correction| of any host, ns: so much wider a choice by time has to look. */
int64_t ni_clocks_widest(const struct ni_clocks *c);

/*
 * The lines that a user has to know: whose clock is off by more than NI_CLOCKS_SAID_NS, and who cannot be
 * compared. Each is handed over without an end of line. corrected: the caller puts times right.
 */
void ni_clocks_say(const struct ni_clocks *c, bool corrected, void (*line)(void *arg, const char *text),
                   void *arg);
/* Member "clocks" of an object; none where there is one host alone. */
void ni_clocks_json(struct ni_json *j, const struct ni_clocks *c);

#endif
