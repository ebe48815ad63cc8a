/*
 * Who is slow, since when, what it costs: the tables that the judge of `summary` works with.
 *
 * Model. What a rank does itself lies between the end of one operation and the start of the next: its *own
 * time*. That gap needs no common clock, and nobody else's delay is in it. Waiting lies inside kernels; the
 * *transfer* of an operation is the least duration over its ranks, since the last to arrive waits for nobody.
 * So a late rank shows in its own time and in nobody else's, a slow link in the transfers of what crosses it
 * and in no own time.
 *
 * A *link* is what transfers are judged by: a communicator's collectives, or the messages from one rank of it
 * to another. A *slot* is one rank's part in a link. Slots whose operations run while other communicators'
 * operations begin are *overlapped* with the computing (gradients); the others are *in line*: computing
 * goes on when they have ended. A *step* is one period of the training loop (steps.h). A *bin* is so many
 * steps in a row (a power of two, mostly 1).
 *
 * Phases, all after reading and before the join frees the segments: pass.h fills a struct ni_blame_rank for
 * each process from its own records alone (threads take processes); steps of all ranks get the same numbers
 * (steps.h); peer_groups.h says who does the same work; late_ranks.c and links.c name causes (causes.h);
 * replay.h says what they cost; describe.h puts it in words. All that is judged comes from tables of one rank
 * each, so tables of shards can be put side by side and judged as one.
 *
 * Bounds: NI_BLAME_CELLS bytes for all bins, NI_BLAME_SLOTS slots and NI_BLAME_KEYS places of a step per
 * rank, NI_BLAME_SAMPLE operations for the replay; what goes beyond is left out of the judgement and counted
 * in `left_out`. Times in tables are µs in float: what they add up from one rank's records is always in the
 * same order. Ownership: ni_blame_free(). Failure: -ENOMEM, -errno of the spill file.
 */
#ifndef NI_BLAME_H
#define NI_BLAME_H

#include "exporter/model/sums/state.h"
#include "exporter/model/sums/steps/step_mark.h"

#define NI_BLAME_CELLS (7u << 20)
#define NI_BLAME_BINS_MIN 64u
#define NI_BLAME_BINS_MAX 4096u
#define NI_BLAME_SLOTS 48u
#define NI_BLAME_KEYS 1024u
#define NI_BLAME_SAMPLE (1u << 16)
#define NI_BLAME_BLOCK 8u /* steps in a row that the replay takes as one */
/* own time beyond the baseline by more is a pause: a collection, a loader, a checkpoint */
#define NI_BLAME_BURST_US 3000.0f
/* times the width of a place: what is longer by more than that is no chance */
#define NI_BLAME_FAR 3.0f
#define NI_BLAME_INCIDENTS 256u /* pauses of a rank that are kept: the longest */
/* kinds of links that are compared; links of further kinds are not judged */
#define NI_BLAME_LINK_CLASSES 256u
#define NI_BLAME_NONE UINT32_MAX
#define NI_BLAME_LONG 2 /* operations of a bin that took far longer than their size does: so many are kept */
#define NI_BLAME_MESSAGE UINT64_C(2) /* what anchors of messages are of, on both sides */

/* A kernel that had to wait for others in its stream begins later than this after its launch. */
#define NI_BLAME_LAUNCH_NEAR_US 60

enum ni_blame_kind { NI_BLAME_COLL, NI_BLAME_SEND, NI_BLAME_RECV };

/* An operation of a slot: its number, its step, and so many of the rank before it in that step (number.h). */
struct ni_blame_anchor {
  uint64_t sn;
  uint32_t step, in_step;
};

struct ni_blame_slot {
  uint32_t comm;      /* in the result */
  int32_t rank, peer; /* in the communicator; peer: of messages, else -1 */
  uint8_t kind;       /* enum ni_blame_kind */
  bool overlapped;    /* its operations run while the rank computes */
  bool paired;        /* messages whose numbers the log states, the same on both sides */
  uint32_t link;      /* peer_groups.h */
  uint64_t shape;     /* what it is, the same on ranks with the same work */
  uint64_t ops, bytes;
  double exec_us;
  uint64_t anchor_of;               /* what the anchors are; 0: there are none */
  struct ni_blame_anchor anchor[2]; /* of the first steps, the last */
};
/* Amounts that differ by no more than this share count as equal: bytes, operations of a step. */
#define NI_BLAME_EQUAL 0.02

/* One rank in one bin. */
struct ni_blame_cell {
  int64_t start_ns; /* of its first step, by the clock of the rank's host; 0: nothing happened */
  /* own time beyond the baseline of those places of the step, pauses left out; that baseline */
  float dev, baseline;
  float burst; /* pauses */
  /* since anything ended or started, before all operations, and before those that were launched late */
  float idle, late_idle;
  float exposed, hidden; /* time in operations in line; in overlapped ones, while it computed */
  /*
   * From one call to the next on a communicator: the lower quartile, since many calls wait for something
   * else than the CPU. 0: not known.
   */
  float call_us;
  uint32_t places; /* of own time */
};

/* A place of the step: slot and number in it, and what is waited for there. */
struct ni_blame_place {
  uint64_t name;  /* the same on ranks with the same work that wait for the same there */
  uint64_t at;    /* the same whatever they wait for */
  uint64_t waits; /* what is waited for: a bit for each slot, the same on ranks with the same work */
  uint32_t order; /* number in the step on its slot */
  bool message;   /* before what is sent to another stage */
  /* mean_us: over the run, without what is longer by NI_BLAME_BURST_US or more */
  float usual_us, mean_us;
};

/*
 * One slot in one bin. least: the shortest of its operations of each size, times their number. longest: of
 * the collectives that took far longer than their size does, 0: none did; longest_of: which of them took half
 * of that or more, as numbers that are the same on all ranks of their communicator. The least of these
 * numbers are kept, in order: so ranks that saw the same ones keep the same ones. alike: of that size which
 * is most of `least` there were so many in each step of the bin, or more; 0: not known.
 */
struct ni_blame_link_cell {
  float exec, least;
  uint32_t n : 26, alike : 6;
  float longest;
  uint32_t longest_of[NI_BLAME_LONG]; /* 0: there is no other */
};

/*
 * The rank did something else, or took longer, before it began the operation that started at end_ns: a pause
 * where that is half of the baseline and more, else what is far beyond the spread of that place.
 */
struct ni_blame_incident {
  int64_t end_ns;
  float us;
  uint32_t step;
  uint32_t in_step; /* that operation is so many of the rank in its step, from 1 on */
  /* 0 or 1; with no room between, since shards pass it on as it lies in memory */
  uint16_t is_pause, is_own; /* is_own: it put off the rank's operations, too */
};

struct ni_blame_op {
  int64_t start_ns, end_ns;
  uint64_t sn;    /* of messages that were taken: their number on the slot */
  uint32_t token; /* of the rank: what and how large */
  /* what ends steps is told by this: the token, but one of all sizes of a function that has many of them */
  uint32_t what;
  uint16_t slot;
  bool launched_late;  /* the CPU was what it waited for last */
  int64_t called_ns;   /* by the host's clock, uncorrected; NI_NO_START: not known */
  bool paired;         /* a message whose sn is the same on both sides as the log has it */
  uint8_t timing, mix; /* as of struct ni_entry */
};

/* Between two neighbours of a function and size the rank computes for so long (paces.h). */
struct ni_blame_pace {
  uint64_t function; /* the same on all ranks, on communicators as large */
  uint32_t comm;     /* in the result */
  int32_t size;      /* class: larger ones have larger numbers */
  uint64_t ops;      /* all of that function and size */
  uint64_t firsts;   /* of these: behind another operation, where that is known */
  float us;          /* between neighbours, the mean */
  float first_us;    /* before the first ones, the median */
};

/* An operation for the replay. */
struct ni_blame_sampled {
  float after_us; /* its start, since that of the one before in the sample */
  float exec_us;
  float gap_us, pause_us; /* own time before it, and what of that is a pause */
  uint32_t sn;            /* its lower half */
  uint32_t step : 25, slot : 6, launched_late : 1;
  uint16_t token;
  uint16_t main; /* what it waited for: so many before it in the sample; 0: it is not there */
};

struct ni_blame_rank {
  uint32_t process;      /* in the result */
  bool judged, no_start; /* has start times, steps and own time; some operations state no start */
  bool gaps_unknown; /* many of its records are missing, and what it did then: nobody is named by its gaps */
  bool sizes_differ; /* what it does in one step it does not in another, as by requests of inference */
  /*
   * Most of its steps have collectives of one communicator, and nothing else: what it computes beside them is
   * not seen. Others may come each so many steps.
   */
  bool one_comm;
  bool ops_vary; /* of a communicator each step has as many operations as it happens to have (places.h) */
  const char *why_not; /* else; a constant */
  struct ni_blame_slot *slot;
  uint32_t n_slots;
  const char **token_func;            /* of each token: what it is, */
  uint64_t *token_hash, *token_bytes; /* with its size as a number that is the same on all ranks, its size */
  uint32_t n_tokens;
  /* of its work in a step: the same for ranks with the same work, however large it is */
  uint64_t signature;
  float colls;                          /* collectives of a step */
  struct ni_blame_cell *cell;           /* n_bins */
  struct ni_blame_link_cell *link_cell; /* [bin][max_slots] */
  /* stamps of back-to-back kernels overlap by so much and less (places.h) */
  float overlap_us;
  /* those that the first operations show; messages to further peers are left out */
  uint32_t max_slots;
  uint32_t n_bins, bin_steps, n_steps;
  uint32_t whole_steps;         /* of n_steps; what the last mark leaves may be less than half of one */
  int32_t shift;                /* its step 0 is this step of the job */
  struct ni_blame_place *place; /* by name */
  uint32_t n_places;
  struct ni_blame_pace *pace;
  uint32_t n_paces;
  struct ni_blame_incident *incident;
  uint32_t n_incidents;
  uint64_t incidents;              /* all */
  struct ni_blame_sampled *sample; /* in order of start, from sample_ns on; given back after the replay */
  size_t n_sample;
  int64_t sample_ns;
  /* ranks with the same number do the same work (peer_groups.h); NI_BLAME_NONE: nobody else */
  uint32_t cls;
  /*
   * the communicator with most of its collectives (experts: its messages): its ranks wait alike;
   * NI_BLAME_NONE
   */
  uint32_t team;
  int64_t first_ns, last_ns;
  /*
   * Time since anything ended or started, of all operations, and before those that were launched late; own
   * time of inner slots.
   */
  double idle_us, late_idle_us, own_us;
  uint64_t ops, late_ops, left_out;
  uint32_t run;                     /* whose logs the folder holds (who.h); 0: one alone */
  double usual_steps, usual_span_s; /* of most ranks of its run: steps, from first to last operation */
  /* it is gone through once more, for as many steps as most ranks have; 0: for the first time */
  uint64_t ops_before;
  /* Also operations that state no time of a kernel, and calls that share another's: for patterns alone. */
  bool all_ops;
  struct ni_step_mark mark; /* as it was found; found false: there are no steps */
  uint64_t usual_mark;      /* what marks on most ranks of its run, where it is gone through once more; 0 */
  /* What ends its steps (steps.h): an operation of mark_func in slot mark_slot; NULL: a gap before one. */
  const char *mark_func;
  uint16_t mark_slot;
};

/* A communicator's collectives, or messages from one rank to another. */
struct ni_blame_link {
  uint32_t comm;
  int32_t from, to; /* ranks of the communicator; -1: collectives */
  uint32_t *rank;   /* of blame.rank, those that take part */
  uint32_t n_ranks;
  uint32_t cls; /* links with the same number do the same work */
  int32_t host; /* all of it on this host; -1: it crosses hosts */
  float *us;    /* of a bin: transfer of one operation, mean; NAN: none */
  uint8_t *ops; /* of a bin: it is the shortest of so many operations, on each rank; 0: not known */
  /* collectives, of a bin: what was long on all ranks, else 0; which ones these are */
  float *longest;
  uint32_t (*longest_of)[NI_BLAME_LONG];
  float *within;                  /* collectives, of a bin: some rank was in them no longer than that */
  float usual_longest;            /* no transfer takes longer than that in the quieter bins */
  uint32_t first_bin, last_begin; /* the first bin of its ranks, and of the one whose log begins last */
  double bytes, per_step;         /* of one operation; operations in a step */
  uint64_t shape;                 /* of its slot on the first of its ranks */
  float mean_us, quiet_us;        /* over its bins: mean, lower quartile */
  float baseline_us;              /* of its peers: lower quartile of their means, for as many bytes */
  float ratio;                    /* mean_us / baseline_us */
  float apart;                    /* one standard deviation of that, by its peers that are not slow; 0: few */
  uint32_t alike;                 /* so many, it among them */
};

struct ni_blame {
  struct ni_run *r;
  struct ni_summary *s;
  struct ni_blame_rank *rank; /* by process in the result */
  uint32_t n_ranks;
  struct ni_blame_link *link;
  uint32_t n_links, n_classes;
  uint32_t bins, bin_steps, steps; /* of the job: common to all ranks that are judged */
  uint32_t whole_steps;            /* of most ranks: what is told */
  uint32_t run;                    /* the one at hand; 0: one alone */
  /* of most ranks of the run with the most; above 0: ranks with others are gone through once more */
  double usual_steps;
  uint32_t sample_every;                        /* of the blocks of the replay: one of so many */
  bool stages;                                  /* classes are stages of a pipeline */
  bool messages_left_out, collectives_left_out; /* by settings */
  /*
   * A gap can hold an operation that is not in the logs, and what was waited for in it: messages of stages,
   * or a communicator, where nothing that is recorded joins all ranks.
   */
  bool waits_unseen;
  /*
   * The same of small collectives that settings left out, such as a norm of all ranks: whole teams wait alike
   * in these, while all else is recorded, without stages. Ranks are then compared with their team, too.
   */
  bool teams_wait_unseen;
  /*
   * [rank][bin], of a step, in us: own time beyond that of its like, as causes are judged by it; NAN: not
   * compared.
   */
  float *beyond_us;
  /*
   * Of ranks that go on by themselves and meet in some steps alone (work/islands.h): the island, by rank,
   * and by bin what joins islands there, as a number that is the same where it is the same; 0: nothing does.
   * NULL: all ranks meet in each step.
   */
  uint32_t *island, n_islands;
  uint64_t *exchange;
};

/*
 * An operation of the slot; what: its function and size as a number, not 0. in_step: so many of the rank in
 * its step before it.
 */
static inline void ni_anchor_update(struct ni_blame_slot *s, uint64_t what, uint64_t sn, uint32_t step,
                                    uint32_t in_step) {
  if (s->anchor_of == 0)
    s->anchor_of = what;
  if (s->anchor_of != what)
    return;
  /* the first step can have begun before the log */
  if (step <= 1)
    s->anchor[0] = (struct ni_blame_anchor){sn, step, in_step};
  s->anchor[1] = (struct ni_blame_anchor){sn, step, in_step};
}

/* A rank's bin of the job's bin k; NULL: nothing happened. */
static inline const struct ni_blame_cell *ni_blame_cell_at(const struct ni_blame *b, uint32_t rank,
                                                           uint32_t k) {
  const struct ni_blame_rank *o = &b->rank[rank];
  const int64_t at = (int64_t)k - o->shift / (int32_t)b->bin_steps;
  return at < 0 || at >= o->n_bins || !o->cell[at].start_ns ? NULL : &o->cell[at];
}

/* Global rank of a rank of the tables, for sorting and texts. */
static inline int32_t ni_blame_global(const struct ni_blame *b, uint32_t rank) {
  return b->s->process[b->rank[rank].process].rank;
}
static inline uint32_t ni_blame_host(const struct ni_blame *b, uint32_t rank) {
  return b->s->process[b->rank[rank].process].host;
}

#endif
