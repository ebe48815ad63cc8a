/*
 * A black box read from its file: checked, decoded, never trusted. Layout: ni_box.h; how to decide: docs/blackbox.md.
 *
 * The file is read (never mapped, never written): what matters of it is copied into an image of ours, so a file that is
 * cut or changed while we look cannot hurt us. Of a process that lives, every page is read three times: the state words
 * before and after must agree around the copy that is used; slots that move all the time are left out.
 *
 * A copy made by `nccl-inspector snapshot` is the same file with one page behind it (struct ni_box_copy): when it was
 * taken, and whether the process was alive then. Every offset, count and text from a file is checked here; callers see
 * decoded values and texts that end.
 *
 * Threads: a box belongs to one thread; different boxes are independent. Ownership: ni_box_close() frees all; strings
 * live as long. Failure: ni_box_open() gives -errno, and for a file that is no sound box -EBADMSG with the reason as text.
 */
#ifndef NI_BOX_READ_H
#define NI_BOX_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ni_box.h"
#include "format/names.h"
#include "format/record.h"
#include "format/schema.h"

/* What a box can be at most, docs/security.md. */
#define NI_BOX_MAX_BYTES (UINT64_C(16) << 30) /* its length; the plugin's arena is at most 8 GiB */
#define NI_BOX_ROOT_BYTES (UINT64_C(1) << 30) /* what is in it, of another user's box when root reads it: pages that are not 0 */
#define NI_BOX_PIECE_MAX (8u << 20)           /* a piece that the header names */
#define NI_BOX_MIN_SLOT 64u                   /* bytes of an operation; the plugin's has 128 */
#define NI_BOX_COMMS_MAX 65536u               /* NI_MAX_COMMS of the plugin */
#define NI_BOX_COPY_MAGIC "NIBOXCPY"

enum ni_life { NI_LIFE_UNKNOWN = 0, NI_LIFE_ALIVE, NI_LIFE_DEAD };

/* The page behind a copy. Byte order of the machine that copied, as the box's own. */
struct ni_box_copy {
  char magic[8];
  uint32_t version, life; /* 1; enum ni_life when it was taken */
  uint64_t taken_unix_ns;
  uint64_t box_bytes;     /* of the box before this page */
};

struct ni_box;

/* One communicator's life, as in its header. */
struct ni_box_comm {
  uint32_t page;
  uint32_t phase;       /* 1 live, 2 being closed */
  uint64_t init_ticks, init_ns;
  struct ni_ident id;   /* comm_name NULL: none */
  int32_t gpu_index;    /* -1 */
  const char *gpu_uuid, *gpu_pci; /* NULL: not known */
  uint32_t group_ord, newest_group;
  uint64_t stray[NI_STRAY_COUNT];
  int64_t fit_offset_ns;
  uint64_t fit_at_ns, fit_samples;
  bool poisoned;
  uint64_t api_sn[NI_FUNC_COUNT]; /* the next sn of collectives without a Coll event */
  struct {
    uint64_t calls; /* API calls; 0 where the interface has none */
    uint64_t started, late, written, judged_out, incomplete, lost_write;
    uint64_t filtered[NI_FILTER_COUNT], dropped[NI_DROP_COUNT], fallback[NI_FALLBACK_COUNT];
  } kind[NI_KIND_COUNT];
};

enum ni_box_slot_is {
  NI_BOX_SLOT_FREE = 0, /* its last life is over: what it held was finished and settled */
  NI_BOX_SLOT_IN_FLIGHT,
  NI_BOX_SLOT_FINISHED, /* DONE, RETIRED, or unknown count with nothing open: perhaps in the log */
  NI_BOX_SLOT_GIVEN_UP,
  NI_BOX_SLOT_RESTING,  /* in the log or counted */
  NI_BOX_SLOT_CALLED,   /* a call that had no kernel yet when its group was over: a collective known by its call, perhaps */
};

/* One slot of an operation. Ticks are the writer's counter. */
struct ni_box_op {
  uint32_t slot, comm_page, gen, flags, want, group_ord;
  enum ni_box_slot_is is;
  enum ni_src src;      /* not NI_SRC_EVENT: sn is the plugin's own number; rec_sn and sn of CALLED: none yet */
  enum ni_kind kind;
  uint32_t started, stopped;
  uint64_t gpu_start_ns, gpu_stop_ns, ticks_first, ticks_done, ticks_start, ticks_stop;
  uint64_t sn, count, rec_sn, bytes; /* bytes: count x element size */
  int32_t root;
  uint32_t bad, mask_doubt, nchannels;
  uint32_t origin, call_low;
  const char *func, *datatype, *algo, *proto;
};

/* The network transfer of an operation that has waited longest. */
struct ni_box_net {
  int32_t peer, channel;
  const char *waits_for; /* gpu_produce, peer_credit, wire, flush, gpu_consume: as in proxy lines */
  bool on_network;       /* for a peer, the wire or the flush: not for the own GPU */
  uint64_t since_ns;     /* Unix ns */
};

/*
 * most: bytes in it that are not 0, 0: NI_BOX_MAX_BYTES. The memory that is taken is that and little more, however long the file.
 * 0; -EBADMSG with *why filled; -ENOMEM; -errno of open and read. why is a sentence without the path.
 */
int ni_box_open(struct ni_box **out, const char *path, uint64_t most, char *why, size_t why_bytes);
void ni_box_close(struct ni_box *b);

/* A checked copy of the header, valid while the box is open; texts in it end. */
const struct ni_box_header *ni_box_header(const struct ni_box *b);
bool ni_box_is_copy(const struct ni_box *b);
/* Of the process: of a copy as it was when it was taken, else as it is now. */
enum ni_life ni_box_life(const struct ni_box *b);
uint64_t ni_box_taken_ns(const struct ni_box *b);    /* Unix ns of this look at it */
uint64_t ni_box_held(const struct ni_box *b);        /* bytes of its pages that are not 0 */
uint32_t ni_box_owner(const struct ni_box *b);       /* uid of the file */
uint32_t ni_box_outside(const struct ni_box *b);     /* pages lost with the process */

/* The session that is whole; false: none yet. Texts end. */
struct ni_box_log {
  uint64_t start_ns;
  const char *dir, *file, *line;
};
bool ni_box_session(const struct ni_box *b, struct ni_box_log *out);

/* The communicators' pages in order, those whose life is over included (phase 0). i from 0; false: no more. */
bool ni_box_comm_at(const struct ni_box *b, size_t i, struct ni_box_comm *out);
/* Index of the communicator that lives or is being closed and whose life this slot belongs to, or -1. */
int64_t ni_box_comm_of(const struct ni_box *b, const struct ni_box_op *op);
/* Calls fn for every slot of every page of operations, free ones included, until it returns a number below 0: that. */
int ni_box_each_op(const struct ni_box *b, int (*fn)(const struct ni_box_op *op, void *arg), void *arg);
/* One of those again, by its slot. */
void ni_box_op_at(const struct ni_box *b, uint32_t slot, struct ni_box_op *out);
/* Channels on which the operation is between start and stop, a bit each. comm: its index. */
uint64_t ni_box_open_channels(const struct ni_box *b, size_t comm, const struct ni_box_op *op);

/* False: no transfer of it is under way, or network events are off. */
bool ni_box_net_of(const struct ni_box *b, const struct ni_box_op *op, struct ni_box_net *out);
/* The number of its API call; false: not known. */
bool ni_box_call_of(const struct ni_box_comm *c, const struct ni_box_op *op, uint64_t *call_sn);

/* Clocks of the box. */
uint64_t ni_box_monotonic_ns(const struct ni_box *b, uint64_t ticks);
uint64_t ni_box_unix_ns(const struct ni_box *b, uint64_t ticks);
uint64_t ni_box_span_ns(const struct ni_box *b, uint64_t ticks);
/* The newest moment the box speaks of, Unix ns: when it was looked at if its process was alive, else its last heartbeat. */
uint64_t ni_box_seen_ns(const struct ni_box *b);

/* Writes the box and a copy's page to fd, holes where nothing is in use. 0 or -errno. */
int ni_box_write_copy(const struct ni_box *b, int fd);

#endif
