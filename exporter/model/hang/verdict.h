/*
 * From what is known of every rank to a verdict: does the job hang, where, and who is missing?
 *
 * A *knot* is a communicator with an operation that some rank has called and not all have finished: all its
 * collectives in one, all its sends and receives in another. For each rank the judge decides where it is
 * (enum ni_hang_where); ranks that others wait for are its blockers. A blocker may itself wait in another
 * knot: knots form a graph, and what hangs is where the graph ends: a knot whose blockers wait nowhere, or a
 * ring of knots (a deadlock). A rank that never called may wait on its host for what its GPU does not start
 * in another knot; never the reverse.
 *
 *   pending of a knot = newest moment that all who matter are known at - the last time anything moved:
 *                       the newest call of the operation, any start or end of an operation of a blocker, in
 *                       whatever communicator, and those of the one of the waiting ranks that has stood
 *                       still for longest
 *
 * An end of the graph is a hang when it is pending for the limit (limit.h); when calls disagree, which no
 * patience mends, for NI_HANG_GRACE_NS; when a process is gone for NI_HANG_DEAD_NS. What leads to it hangs
 * when it does. So a rank that checkpoints, evaluates or compiles is late, not hung, until the limit is over,
 * and a rank that works elsewhere is never called hung.
 *
 * docs/hang.md has all rules as a table. What comes out is one of enum ni_hang_answer: sentence, JSON and
 * exit code follow from it. "No hang" needs every process's state: a box, or its own last line. Else nobody
 * can tell, unless what was seen hangs.
 *
 * Of a symmetric kernel that a graph replayed NCCL does not tell that it ends. Ranks *in* one wait only for
 * peers that are known not to have come to it; that none of them moves is no wait.
 *
 * A rank without data, or whose data is older than the call, is "no data": never "never called". What a dead
 * process left is as old as its death, whenever that was.
 *
 * Processes that ended before others began are an earlier run in the same folder: what they left hanging is
 * no hang now.
 *
 * Threads: one. Ownership: ni_hang_verdict_free(); the model must live as long. Failure: -ENOMEM.
 */
#ifndef NI_HANG_VERDICT_H
#define NI_HANG_VERDICT_H

#include "limit.h"
#include "model.h"

#define NI_HANG_AFTER_S "300"                /* text, for the table of options */
#define NI_HANG_TELL_NS UINT64_C(5000000000) /* a wait that long is told; or half the limit */
/* a dead process counts as the cause when others lived so much longer */
#define NI_HANG_OUTLIVED_NS UINT64_C(5000000000)

enum ni_hang_where {
  NI_HANG_FINISHED = 0,
  NI_HANG_INSIDE,     /* in the kernel, on the network, finishing: op->state says */
  NI_HANG_IN_REPLAY,  /* its graph came to it: in the kernel, as far as anybody knows (replays.h) */
  NI_HANG_QUEUED,     /* launched, no channel has started */
  NI_HANG_API_ONLY,   /* called, not launched */
  NI_HANG_NEVER,      /* never called it, as of a look that is newer than the first call */
  NI_HANG_OTHER_CALL, /* called something else of the same communicator instead */
  NI_HANG_GONE,       /* its process is dead, and others lived on */
  NI_HANG_HAS_LEFT,   /* destroyed the communicator, or its process ended in order */
  NI_HANG_ELSEWHERE,  /* nothing says whether it called it: it waits in what hangs elsewhere */
  NI_HANG_NO_DATA,
  NI_HANG_NOT_INVOLVED, /* sends and receives: neither waits nor is waited for */
  NI_HANG_WHERE_COUNT
};

/* One rank of a knot. */
struct ni_hang_view {
  const struct ni_hang_member *member;
  /* what it does there; for FINISHED and OTHER_CALL, what it did instead; NULL: nothing is known */
  const struct ni_hang_op *op;
  int32_t rank;
  enum ni_hang_where where;
  int32_t waits_for;              /* sends and receives: rank whose counterpart is missing; -1 */
  bool awaited;                   /* sends and receives: somebody inside is waiting for it */
  const struct ni_hang_op *later; /* of FINISHED: what it has in flight behind it; NULL */
  bool unlike;                    /* sends and receives: it and its counterpart are of unlike sizes */
  bool went_on;                   /* it has it in flight, and has gone on elsewhere: nobody is held up */
  uint64_t seat;                  /* who: the same in all communicators */
};

struct ni_hang_knot {
  const struct ni_hang_member *any; /* for name, hash, ranks */
  enum ni_kind kind;
  struct ni_hang_op op; /* the first one not finished by all; of P2P one that waits */
  bool has_last;
  struct ni_hang_op last; /* the last collective that everybody finished */
  /* if ranks disagree on sizes, types or roots: a call of most ranks, and one of the fewest; else NULL */
  const struct ni_hang_op *majority, *odd;
  struct ni_hang_view *view;
  size_t n;                                         /* members known, one a rank, ascending */
  uint64_t unseen;                                  /* ranks of the communicator without any member */
  size_t count[NI_HANG_WHERE_COUNT];                /* unseen ranks count as NO_DATA */
  bool call_mismatch;                               /* some called another function */
  bool size_mismatch, type_mismatch, root_mismatch; /* of the same call */
  bool unsure;                                      /* numbers of the ranks could not be compared */
  /* ranks missing from it that run operations here whose kernels NCCL does not show */
  size_t blind;
  /* the replay that was before it on those who are queued, where nobody is inside; NULL: none */
  const struct ni_hang_op *behind_replay;
  uint64_t first_ns, newest_ns; /* first and newest call */
  uint64_t waited_ns;           /* since the first one waits in it */
  /* for how long it is pending, and until when that is known; 0: not known of anybody who matters */
  uint64_t pending_ns, until_ns;
  /* from when on that is a hang, if nothing else explains it */
  uint64_t limit_ns;
  size_t missing; /* ranks that others wait for */
  /* ranks that have finished it, and wait in a later one for those that have not */
  size_t behind_it;
  bool needed; /* a rank that is inside is waited for elsewhere */
  bool hangs;
  uint32_t id;      /* its place when it was found */
  int32_t leads_to; /* a knot in which a blocker waits; -1: none */
  /* a rank has called it and waits elsewhere before that; in a ring the others come first */
  bool behind;
  /* time from its first call until a rank called what it waits in instead; the largest comes first */
  uint64_t went_on_ns;
  uint64_t weight; /* ranks inside; of a cause, or a ring, also those inside what leads to it */
  uint32_t cause;  /* roots that miss the same rank have one number */
  uint64_t owed_ns,
      cause_ns;     /* since when somebody waits in it; the earliest of its cause. UINT64_MAX: not known */
  uint32_t ring;    /* knots of one deadlock have one number; 0: none */
  bool root;        /* nothing explains it but itself, or its ring */
  bool comes_first; /* of the roots of its cause */
  bool past;        /* of an earlier run: never a hang of this one */
};

/*
 * The job stands still, and the newest operation of a communicator is a replay that all of its ranks have
 * come to. Either it hangs in its kernel, or the job is idle. If there are several such communicators, this
 * is the one with the last replay.
 */
struct ni_hang_quiet {
  const struct ni_hang_member *any; /* NULL: that is not so */
  struct ni_hang_op op;
  size_t ranks;
  uint64_t since_ns;
  uint64_t every_ns; /* its call was replayed so often before; 0: not known */
};

/*
 * What became of the processes. Those of an earlier run, which began and ended before others began, are
 * counted separately.
 */
struct ni_hang_fate {
  size_t processes, in[NI_HANG_LIFE_COUNT]; /* all; by enum ni_hang_life */
  size_t ranks;
  /* at least: processes with several ranks do not say which ranks of two communicators are the same */
  bool more_ranks;
  bool over;           /* there are some, and none of them runs: each is dead or has ended */
  uint64_t learnt_ns;  /* what the job's longest operation and pause make of the limit; 0: nothing */
  uint64_t first_ns;   /* the first last sign of life of a dead one; UINT64_MAX: nobody is dead */
  uint64_t last_ns;    /* newest sign of life of anybody */
  uint64_t moved_ns;   /* newest start or end of an operation; 0: none */
  size_t dark;         /* processes that may run, and of which neither a box nor a last line was read */
  size_t dark_foreign; /* of those such as have NVIDIA's logs alone, or imported ones */
  size_t dead_boxes;   /* dead ones whose box was read */
  size_t unseen;       /* ranks that the communicator with most of them has, and of which nothing was read */
  const struct ni_hang_member *unseen_in;
  /* processes without a log that was read: a box does not tell of kernels that NCCL does not show */
  size_t boxes_alone;
  size_t earlier;
  uint64_t earlier_ns; /* last sign of life of those */
};

enum ni_hang_answer {
  NI_HANG_NO_DATA_AT_ALL = 0,
  NI_HANG_CERTAIN,
  NI_HANG_LIKELY,
  NI_HANG_NOT_YET, /* somebody waits, and the limit is not over */
  NI_HANG_NO_HANG,
  NI_HANG_CANNOT_TELL, /* no hang was seen, and not all ranks were: that it does not hang nobody can say */
  NI_HANG_ALL_DEAD,    /* no process is left, and one or more did not end themselves */
  NI_HANG_ALL_ENDED,
  NI_HANG_ANSWER_COUNT
};

struct ni_hang_verdict {
  const struct ni_hang_model *model;
  enum ni_hang_answer answer;
  bool second_look;          /* an earlier look at all agrees */
  struct ni_hang_knot *knot; /* hangs first, roots of them first, most ranks waiting first */
  size_t n, n_hangs, n_roots;
  uint64_t after_ns; /* what the user set */
  uint64_t limit_ns; /* that, or what was learnt, whichever is less */
  uint64_t now_ns;   /* newest moment any source speaks of */
  uint64_t wall_ns;  /* when it was judged; 0: the sentence does not say how long ago things were */
  struct ni_hang_fate fate;
  bool *earlier;          /* by process number: of an earlier run */
  size_t n_communicators; /* of this run */
  /* communicators with operations whose kernels NCCL does not show: hangs in those are not seen */
  size_t blind;
  struct ni_hang_quiet quiet;
};

/* m is settled. after_ns: --stuck-after. now_ns: the time that ages in words count from; 0: no ages. */
int ni_hang_judge(struct ni_hang_verdict *v, const struct ni_hang_model *m, uint64_t after_ns,
                  uint64_t now_ns);
void ni_hang_verdict_free(struct ni_hang_verdict *v);

static inline bool ni_hang_is_hang(const struct ni_hang_verdict *v) {
  return v->answer == NI_HANG_CERTAIN || v->answer == NI_HANG_LIKELY;
}

/* Has it been quiet for long since a replay? */
bool ni_hang_is_quiet(const struct ni_hang_verdict *v);
/*
 * Is everything known that the hang needs? Every rank was read, none is without data, numbers are comparable.
 */
bool ni_hang_is_complete(const struct ni_hang_verdict *v);
/*
 * Is one look enough? It is if somebody waits for a process that is dead or has ended: it does not come back.
 */
bool ni_hang_is_final(const struct ni_hang_verdict *v);
/* Sets the answer: certain if it is complete, and final or seen in two looks. */
void ni_hang_make_certain(struct ni_hang_verdict *v);
/* The knot that is told first; NULL: nobody waits. */
const struct ni_hang_knot *ni_hang_first(const struct ni_hang_verdict *v);
/* Do both say that the same operation hangs for the same ranks? */
bool ni_hang_verdicts_agree(const struct ni_hang_verdict *a, const struct ni_hang_verdict *b);

/* Until when this rank is known to be where it is. */
uint64_t ni_hang_known_until(const struct ni_hang_verdict *v, const struct ni_hang_view *w);
static inline const struct ni_hang_process *ni_hang_process_at(const struct ni_hang_verdict *v,
                                                               const struct ni_hang_view *w) {
  return &v->model->process[w->member->who->process];
}

#endif
