/*
 * Which processes of logs belong together: they meet in a communicator. What belongs together is a group, the
 * least that can be of one run; which run each group is of, runs.c says.
 *
 * Logs of several jobs may use the same ranks, one job after the other or side by side. So each rank of a
 * communicator, and of a launcher's world, is a *slot* of a *space*; each process that is that rank claims
 * the slot. A space in which two processes are one rank is there several times: it holds nothing together.
 *
 *   ni_together_find()   from the heads of all files to groups, in the order of their begin
 *
 * One thread. Ownership: ni_together_free(). Failure: -ENOMEM.
 */
#ifndef NI_WHO_TOGETHER_H
#define NI_WHO_TOGETHER_H

#include "facts.h"
#include "heads.h"
#include "who.h"

struct ni_log_process {
  struct ni_process_head *head; /* the first of its files; what later ones know is put there, too */
  uint32_t host, identity;
  uint32_t group;
};

/*
 * Where each rank is there once: a communicator, or the launcher's numbers of a job (hash 0). Of one batch
 * job alone.
 */
struct ni_rank_space {
  uint64_t hash;
  int32_t n_ranks;
  uint32_t first, processes; /* first: the process it was seen in first */
  bool several;              /* two processes are one rank of it: it is there several times */
};

/* A rank of a space. */
struct ni_rank_slot {
  uint32_t space, process, group; /* process: that claimed it first; group: that claimed it last */
  int32_t rank;
  uint32_t claims, host;    /* claims: by how many groups; host: of all of them, else UINT32_MAX */
  uint64_t last_ns, gap_ns; /* when the last claimant began; the least time between two */
};

struct ni_comm_seat {
  uint32_t process, slot, turn; /* turn: how many groups claimed the slot before */
};

/* Processes that belong together by their communicators. */
struct ni_joined_processes {
  uint32_t *process;
  struct ni_comm_seat *seat;
  uint32_t n, n_seats, number;
  uint32_t lives, slot, turn; /* of its most contended slot */
  uint64_t start_ns;
  bool whole; /* two or more, all in one communicator: they need no others to be a job */
};

struct ni_together {
  struct ni_files *files;
  struct ni_process_head *head; /* by file */
  uint32_t *process_of;         /* of each file, + 1; 0: it says nothing of its process */
  struct ni_facts facts;
  struct ni_log_process *process;
  struct ni_rank_space *space;
  struct ni_rank_slot *slot;
  struct ni_comm_seat *seat;
  struct ni_joined_processes *group;
  uint32_t *member; /* processes, those of one group beside each other; NULL: there is one group */
  size_t n_processes, cap_processes, n_spaces, cap_spaces, n_slots, cap_slots, n_seats, cap_seats, n_groups;
};

/* x: all 0 but for files and head. */
int ni_together_find(struct ni_together *x);
/* All but files and head, which stay. */
void ni_together_free(struct ni_together *x);

static inline uint64_t ni_pack_rank(int32_t n_ranks, int32_t rank) {
  return (uint64_t)(uint32_t)n_ranks << 32 | (uint32_t)rank;
}

static inline uint64_t ni_apart_ns(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static inline uint64_t ni_process_start(const struct ni_log_process *p) {
  return p->head->at_ns > 0 ? (uint64_t)p->head->at_ns : 0;
}

#endif
