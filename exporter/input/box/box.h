/*
 * A black box read from its file: checked, decoded, never trusted. Layout: ni_box.h; how to decide:
 * docs/internals/blackbox.md.
 *
 * The file is read (never mapped, never written): what matters of it is copied into an image of ours, so a
 * file that is cut or changed while we look cannot hurt us. Of a process that lives, every page is read three
 * times: the state words before and after must agree around the copy that is used; slots that move all the
 * time are left out.
 *
 * A copy made by `nccl-inspector snapshot` is the same file with one page behind it (struct ni_box_copy):
 * when it was taken, and whether the process was alive then (life.h). Every offset, count and text from a
 * file is checked here; callers see decoded values and texts that end.
 *
 * Threads: a box belongs to one thread; different boxes are independent. Ownership: ni_box_close() frees all;
 * strings live as long. Failure: ni_box_open() gives -errno, and for a file that is no sound box -EBADMSG
 * with the reason as text.
 */
#ifndef NI_BOX_READ_H
#define NI_BOX_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "life.h"
#include "ni_box.h"
#include "format/record.h"

/* What a box can be at most, docs/security.md. */
/* its length; the plugin's arena is at most 8 GiB */
#define NI_BOX_MAX_BYTES (UINT64_C(16) << 30)
/* what is in it, of another user's box when root reads it: pages that are not 0 */
#define NI_BOX_ROOT_BYTES (UINT64_C(1) << 30)
#define NI_BOX_PIECE_MAX (8u << 20) /* a piece that the header names */
#define NI_BOX_MIN_SLOT 64u         /* bytes of an operation; the plugin's has 128 */
#define NI_BOX_COMMS_MAX 65536u     /* NI_MAX_COMMS of the plugin */
#define NI_BOX_COPY_MAGIC "NIBOXCPY"

/* The page behind a copy. Byte order of the machine that copied, as the box's own. */
struct ni_box_copy {
  char magic[8];
  uint32_t version; /* 1 */
  uint32_t life;    /* when it was taken: ALIVE, DEAD (gone, however it ended) or UNKNOWN of enum ni_life */
  uint64_t taken_unix_ns;
  uint64_t box_bytes; /* of the box before this page */
};

struct ni_box;

/* One communicator's life, as in its header. */
struct ni_box_comm {
  uint32_t page;
  uint32_t phase; /* 1 live, 2 being closed */
  uint64_t init_ticks, init_ns;
  struct ni_ident id;             /* comm_name NULL: none */
  int32_t gpu_index;              /* -1 */
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
  NI_BOX_SLOT_RESTING, /* in the log or counted */
  /* a call that had no kernel yet when its group was over: a collective known by its call, perhaps */
  NI_BOX_SLOT_CALLED,
};

/* One slot of an operation. Ticks are the writer's counter. */
struct ni_box_op {
  uint32_t slot, comm_page, gen, flags, want, group_ord;
  enum ni_box_slot_is is;
  /* not NI_SRC_EVENT: sn is the plugin's own number; rec_sn and sn of CALLED: none yet */
  enum ni_src src;
  enum ni_kind kind;
  uint32_t started, stopped;
  uint64_t gpu_start_ns, gpu_stop_ns, ticks_first, ticks_done, ticks_start, ticks_stop;
  uint64_t sn, count, rec_sn, bytes; /* bytes: count x element size */
  int32_t root;
  uint32_t bad, mask_doubt, nchannels;
  uint32_t origin, call_low;
  const char *func, *datatype, *algo, *proto;
  const char *kernel;                      /* of a symmetric kernel, "": none */
  uint64_t user_tag;                       /* as NCCL gave it; 0: untagged */
  uint64_t compute_from_ns, compute_to_ns; /* phases of a symmetric kernel, for ni_phases_of; 0: none */
};

/*
 * most: bytes in it that are not 0, 0: NI_BOX_MAX_BYTES. The memory that is taken is that and little more,
 * however long the file. 0; -EBADMSG with *why filled; -ENOMEM; -errno of open and read. why is a sentence
 * without the path.
 */
int ni_box_open(struct ni_box **out, const char *path, uint64_t most, char *why, size_t why_bytes);
void ni_box_close(struct ni_box *b);

/* Writes the box and a copy's page to fd, holes where nothing is in use. 0 or -errno. */
int ni_box_write_copy(const struct ni_box *b, int fd);

#endif
