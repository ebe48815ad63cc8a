/*
 * Which operation of one rank is which of another's, where the source does not number them.
 *
 * The ranks of a communicator call the same collectives in the same order, but their recordings begin and end
 * at different ones. So each rank's list is laid upon that of the rank with the longest one (the measure), at
 * each place where functions, sizes and datatypes agree as far as both go. Of several places, since a
 * training step looks like the one before it:
 *
 *   seq     the source numbers them after all: nothing is laid
 *   one     there is one place alone
 *   steps   the one where numbers of steps agree best (ProfilerStep#N)
 *   ends    the one where the differences of the ends scatter least, half as much as at the next: ranks end
 *           together, and how far their clocks are apart does not change a scatter
 *   apart   none of these: it cannot be told. The rank gets numbers that no other has, so nothing of it is
 *           compared
 *
 * The result is how many collectives of each function others have recorded before a rank's first one, so that
 * each function is counted from 0 by whoever recorded from earliest on (before.h, also for communicators side
 * by side). Numbers of the source that have holes are taken as they are instead.
 *
 * Messages: NCCL keeps their order from a sender to a receiver. So what one rank sent to another is laid upon
 * what that one received from it in the same way, as if they were a communicator of two whose one function is
 * the message: sizes and datatypes agree, and a Send and its Recv end together. The source's own numbers
 * count all messages of a rank and say nothing here. Of a pair that is apart each side counts from a number
 * of its own, from NI_PAIR_APART on. A message whose peer is not known has none.
 *
 * Memory: of each rank and communicator the first NI_ALIGN_OPS collectives, 48 bytes each; of each rank's
 * messages the first NI_ALIGN_MESSAGES to, or from, each peer, NI_ALIGN_MESSAGES_ALL in all, of
 * NI_ALIGN_PAIRS peers and directions. Pairs beyond these are apart. One thread. Failure: -ENOMEM.
 */
#ifndef NI_IMPORT_ALIGN_H
#define NI_IMPORT_ALIGN_H

#include "exporter/input/imported/imported.h"

#define NI_ALIGN_OPS 2048u
#define NI_ALIGN_MESSAGES 1024u
#define NI_ALIGN_MESSAGES_ALL (1u << 16)
#define NI_ALIGN_PAIRS 256u

enum ni_align_how {
  NI_ALIGN_ALONE = 0,
  NI_ALIGN_SEQ,
  NI_ALIGN_ONE,
  NI_ALIGN_STEPS,
  NI_ALIGN_ENDS,
  NI_ALIGN_APART
};

struct ni_align_counts { /* of functions */
  struct ni_align_count {
    uint64_t func, n; /* ni_align_func() */
  } *item;
  size_t n, cap;
};

struct ni_align_seat { /* a rank of a communicator, or one side of its messages from one rank to another */
  uint64_t hash;       /* of messages that of both sides, and no communicator's */
  uint32_t file, comm; /* whose: numbers of the caller, and in its struct ni_imported */
  uint64_t of;         /* 0: collectives; else ni_align_messages() */
  int32_t rank;        /* of messages: 0 the sender, 1 the receiver */
  uint64_t n;          /* its collectives, or messages */
  bool seq;            /* the source has numbers of all of them, and they rise */
  enum ni_align_how how;
  bool sparse;                   /* numbers with holes: each is the source's less `ahead` */
  uint64_t ahead;                /* the place of its first collective among all that were recorded */
  struct ni_align_counts before; /* of each function others have recorded so many before its first one */
  struct ni_align_mark {
    int64_t end_ns;
    uint64_t func, token, seq; /* token: function, size, datatype */
    uint32_t step;             /* 0: none */
    bool together;             /* all ranks end it at once */
  } *mark;
  size_t n_marks, cap_marks;
};

struct ni_align { /* all 0: empty */
  struct ni_align_seat *seat;
  size_t n, cap;
};

/* What both sides of a message are called. */
#define NI_ALIGN_MESSAGE "message"

/* A function's name as a number, the same in all files. */
uint64_t ni_align_func(const char *name);
/* The communicators of a rank, in any order of ranks. m: in order; is not kept. */
int ni_align_add(struct ni_align *a, uint32_t file, const struct ni_imported *m);
/* Once, when all are there: sets how and ahead, and orders the seats by file, comm and of. */
int ni_align_find(struct ni_align *a);
/* Which messages of a rank these are: to that peer, or received from it. peer: 0 and more. */
static inline uint64_t ni_align_messages(int32_t peer, bool received) {
  return (uint64_t)peer * 2 + received + 1;
}
/* From where messages are counted of which nobody can tell which they are: by senders, by receivers. */
static inline uint64_t ni_align_apart(bool received) { return received ? 2 * NI_PAIR_APART : NI_PAIR_APART; }
/* A Send or a Recv whose other side is known; *received: a Recv. */
bool ni_align_is_message(const struct ni_imported *m, const struct ni_imported_op *op, bool *received);
/* of: 0, or ni_align_messages(). NULL: it has none of these, or more than were laid. */
const struct ni_align_seat *ni_align_of(const struct ni_align *a, uint32_t file, uint32_t comm, uint64_t of);
/* How many of that function others have recorded before s did. */
uint64_t ni_align_before(const struct ni_align_seat *s, uint64_t func);
void ni_align_free(struct ni_align *a);

#endif
