/*
 * A block of the sample as a graph: operations of ranks (nodes), which meet in operations of their
 * communicators (joins). It is run as recorded, or with own time and transfers as somebody wants them
 * (scenario.h); how delays spread is replay.h's text.
 *
 * The baselines of what lies before an operation (spots) and of a transfer (peers) are looked up here, since
 * loading knows the operation. scenario.c fills and reads them.
 *
 * Usage: ni_graph_begin(); for each block ni_graph_load(), then ni_graph_run() as often as is wanted;
 * ni_graph_free(). Ownership: all arrays are the graph's, and b is the caller's. Units: microseconds since
 * the begin of the block. One thread. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_GRAPH_H
#define NI_BLAME_GRAPH_H

#include "exporter/base/index.h"
#include "exporter/model/sums/ranks/blame.h"

enum { NI_GRAPH_PEERS_MIN = 8 }; /* operations: so many have a baseline */

/*
 * Own time before an operation of one place in the step: on ranks whose CPU is not slow (usual), and, where
 * it is slow, before what is launched late. A slow CPU does not make own time longer by one factor: the GPU
 * idles where it would not idle else, and computes as before elsewhere. Where ranks have one communicator
 * only, others compute what comes next while they wait in it for the slow ones: what is left of their own
 * time behind the operation before says nothing, if that took longer (ni_graph_hides()).
 */
struct ni_graph_spot {
  uint64_t key;
  double usual_us, late_us; /* sums */
  double beside_us;         /* of the usual ones: what the operation before took */
  uint32_t n_usual, n_late;
  uint32_t n_slow; /* of ranks whose CPU is slow, launched late or not */
};

/*
 * A spot of one late rank. What makes it late may lie in one place of the step, as what is loaded before its
 * first operation does, and another rank may be late elsewhere: the two delays add up. One factor for all own
 * time would hide one behind the other.
 */
struct ni_graph_late_spot {
  uint64_t key;
  uint32_t rank, spot;
  uint32_t n;    /* of its operations there, while the cause is at work */
  double own_us; /* sum of the own time before them */
  float less;    /* without the cause own time is shorter by this part */
};

struct ni_graph_node { /* an operation of one rank */
  /* own time before it, and what of that is a pause; where it waited for nothing: its start */
  float gap, pause;
  /* gap without what stamps are off by (stamps.h); as recorded, since the block's begin */
  float denoised, end;
  /*
   * Of a rank with one communicator: how long the operation that it waited for took there; and, of what was
   * launched late, since the last one before that was launched late began: so long the CPU took. 0: none.
   */
  float beside, since_launch;
  uint32_t join;
  uint32_t main, slot; /* joins: what it waited for; the one before on its slot */
  uint32_t ready;      /* join: it was not ready before ready_gap after that; NI_BLAME_NONE */
  float ready_gap;
  uint32_t bin : 31, launched_late : 1;
  uint32_t spot;      /* NI_BLAME_NONE: not asked */
  uint32_t late_spot; /* NI_BLAME_NONE: its rank is not late, or has no like */
};

struct ni_graph_join { /* an operation of all its ranks */
  double start, end;
  float us; /* its transfer in the scenario */
  uint32_t n, arrived;
  uint32_t waiting; /* rank + 1, a chain */
};

/* Operations of the same function and size on peer links, without those in which a cause is at work. */
struct ni_graph_peers {
  uint64_t key;
  /* sum of ln(transfer): a few that took ten times as long do not count for ten */
  double log_us;
  uint32_t n;
};

struct ni_graph_op { /* what the operation of a join is */
  uint64_t key;
  float transfer;
  uint32_t link, bin;
  uint32_t peers;      /* NI_BLAME_NONE: not asked */
  uint32_t last, rank; /* the node that came last, and its rank */
};

struct ni_graph_change { /* of a rank's own time in the scenario */
  float factor;
  uint32_t from, to;        /* bins */
  const bool *at;           /* in these of them; NULL: in all */
  const bool *pauses_at;    /* pauses go in these bins; NULL: in none */
  bool no_pauses, launches; /* launches: factor is of own time before what was launched late */
  bool by_spot;             /* it is each late spot's own; factor: where there is none */
};

struct ni_graph_part {   /* what of the block is a rank's */
  size_t from, to;       /* of its sample */
  double start_us;       /* of the last operation of its sample that was looked at, since sample_ns */
  double took;           /* as recorded */
  uint32_t first, n, at; /* nodes */
  uint32_t next, waits;  /* chain; for this join */
  double launched;       /* in this run: when the last node so far that was launched late began */
  struct ni_graph_change change;
};

struct ni_graph {
  const struct ni_blame *b;
  struct ni_graph_node *node;
  struct ni_graph_join *join;
  struct ni_graph_op *op;     /* by join */
  struct ni_graph_part *part; /* by rank */
  double *begin_us;           /* of the block, on a host (find_host_begins()) */
  uint32_t *stack, n_nodes, n_joins, n_stack;
  /* the block's ranks state orders that contradict each other: its times mean nothing */
  bool torn;
  size_t cap_nodes, cap_joins, cap_ops;
  struct ni_index at;
  /* in the scenario transfers are quicker: what queued up begins no earlier than it is ready */
  bool quicker;
  bool denoised; /* in the scenario own time is the nodes' `denoised` */
  bool compares; /* causes of links are replayed: baselines of transfers are looked up */
  struct ni_graph_peers *peers;
  uint32_t n_peer_sets;
  size_t cap_peers;
  struct ni_index peers_at;
  /* a slow CPU is replayed: baselines of what lies before operations are looked up */
  bool launches;
  bool *has_peers; /* of a class: a rank of it is not slow */
  /* How much less a CPU that is not slow takes, where nothing hides that; 0: not known. */
  float launch_factor;
  struct ni_graph_spot *spot;
  uint32_t n_spots;
  size_t cap_spots;
  struct ni_index spot_at;
  bool *is_late; /* of a rank: it has late spots */
  bool any_late;
  struct ni_graph_late_spot *late_spot;
  uint32_t n_late_spots;
  size_t cap_late_spots;
  struct ni_index late_spot_at;
};

/* 0 or -ENOMEM; ni_graph_free() is due all the same. */
int ni_graph_begin(struct ni_graph *g, const struct ni_blame *b);
/* All ranks' operations of a block: the next ones of their samples. 1, 0: no more, or -ENOMEM. */
int ni_graph_load(struct ni_graph *g, uint32_t block);
/* In this place others may compute while they wait in the operation before. */
static inline bool ni_graph_hides(const struct ni_graph_spot *p) { return p->usual_us < p->beside_us; }
/* The next block to load is the first one again. */
void ni_graph_rewind(struct ni_graph *g);
/* Runs the block; returns when its last operation ends. */
double ni_graph_run(struct ni_graph *g);
/* Own time before a node, including a pause. */
static inline float ni_graph_own_time(const struct ni_graph *g, const struct ni_graph_node *n) {
  return g->denoised ? n->denoised : n->gap;
}
/* The same, with the change of the scenario. */
float ni_graph_changed_gap(const struct ni_graph *g, const struct ni_graph_change *s,
                           const struct ni_graph_node *n);
/* When the node begins, and the join that it waited for. */
double ni_graph_find_start(const struct ni_graph *g, const struct ni_graph_part *s,
                           const struct ni_graph_node *n, uint32_t *by);
void ni_graph_free(struct ni_graph *g);

#endif
