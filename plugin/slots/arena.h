/*
 * The arena: one address range per process, reserved once, from which communicators take chunks of pages.
 *
 *   front        what has a fixed place: box header, arena words, texts, session blocks, class map
 *                (NI_FRONT_*)
 *   box pages    only with a black box: front and these are a file in tmpfs (box.h), taken below `limit` only
 *   page table   8 bytes a page (class, owner link)
 *   plain pages  ordinary memory: all there is without a box, else what does not fit or comes faster than the
 *                file grows
 *
 * A page here is 4 KiB whatever the machine's. Memory is type-stable: a page that once held operations never
 * holds anything else, so a stale handle always meets a state word. Nothing in the arena is a pointer;
 * everything is an index (page, or slot = 128-byte unit), so the range can be read at another address or from
 * another process.
 *
 * Threads: take and give are lock-free and may be called by anybody, callbacks included; open and close by
 * init with the registry lock held; touch_ahead by the dump thread. A page of the file is handed out only
 * when the file has memory for it (a page that cannot be had would be SIGBUS); plain memory is committed
 * lazily by the kernel. touch_ahead writes into pages beyond the watermark, so that a callback that takes a
 * chunk meets no page fault.
 *
 * The range is never unmapped while the process lives (late callbacks), and a forked child has no copy of it
 * (MADV_DONTFORK): its callbacks are off until its own init, which opens a new one.
 */
#ifndef NI_ARENA_H
#define NI_ARENA_H

#include "ni_box.h"
#include "op.h"

#define NI_PAGE_BYTES 4096u
#define NI_COMM_PAGES 3u
#define NI_SLOTS_PER_PAGE (NI_PAGE_BYTES / NI_SLOT_BYTES)

/* What a chunk is for; each class has one size. */
enum ni_chunk_class {
  NI_CHUNK_NONE = 0,
  NI_CHUNK_COMM,     /* struct ni_comm, NI_COMM_PAGES */
  NI_CHUNK_OP_FIRST, /* one page of operations: all that a quiet communicator needs */
  NI_CHUNK_OP_COLL,  /* growth step of the collective pool */
  NI_CHUNK_OP_P2P,   /* growth step of the P2P pool */
  NI_CHUNK_EVENT,    /* events of other kinds, event_slot.h */
  NI_CHUNK_PROXY,    /* proxy operations, event_slot.h */
  NI_CHUNK_COUNT
};

struct ni_page {
  _Atomic uint32_t next; /* next chunk's first page: of the free stack or of the owning pool; 0 ends */
  _Atomic uint8_t cls;   /* enum ni_chunk_class; set once, never changed */
  uint8_t pad[3];
};

/*
 * Watermarks of the two kinds of pages. limit: pages below may be taken; raised by the dump thread as the
 * file grows.
 */
enum { NI_REGION_BOX = 0, NI_REGION_PLAIN = 1, NI_REGIONS = 2 };
struct ni_region {
  uint32_t first, end;
  _Atomic uint32_t watermark; /* first page never taken */
  _Atomic uint32_t limit;
};

struct ni_arena_words {
  uint32_t chunk_pages[NI_CHUNK_COUNT];
  uint32_t overhead_pages; /* of the cap, for tables */
  uint32_t budget_pages;   /* of the cap, for chunks of both regions together */
  struct ni_region region[NI_REGIONS];
  _Atomic uint32_t outside;                    /* with a box: plain pages ever taken */
  _Atomic uint32_t free_pages;                 /* pages on the free stacks */
  _Atomic uint64_t free_stack[NI_CHUNK_COUNT]; /* page 32 | tag 32 */
};

/* The front, in pages. */
#define NI_FRONT_HEADER 0u
#define NI_FRONT_WORDS 1u
#define NI_FRONT_TEXTS 2u
#define NI_FRONT_SESSIONS 4u
#define NI_FRONT_SESSION_PAGES (NI_BOX_SESSION_BYTES / NI_PAGE_BYTES)
/* a byte per page of the file */
#define NI_FRONT_CLASS_MAP (NI_FRONT_SESSIONS + 2 * NI_FRONT_SESSION_PAGES)

struct ni_box_file; /* box_file.h */

struct ni_arena {
  unsigned char *base;
  struct ni_arena_words *hdr;
  struct ni_page *page;
  _Atomic uint8_t *class_map; /* of the box's readers; NULL without a box */
  uint32_t n_pages;
  uint64_t map_bytes, cap_bytes;
  struct ni_box_file *box; /* NULL: no box */
  uint32_t ahead_pages;    /* the file is kept ahead by so much at least */
  struct {
    uint32_t touched;   /* pages below are mapped */
    uint32_t seen_mark; /* watermark at the last touch_ahead */
  } ahead[NI_REGIONS];  /* dump thread */
};

/*
 * Bytes of file that a box must have at least, and beyond which it is of no use, for an arena of cap_bytes.
 */
uint64_t ni_arena_box_min_bytes(void);
uint64_t ni_arena_box_max_bytes(uint64_t cap_bytes);

/*
 * Reserves what cap_bytes of pages need (rounded down to pages, 1 MiB .. 8 GiB). coll_slots and p2p_slots:
 * growth steps in operations, rounded up to whole pages. box: the file, open and empty, that front and first
 * pages shall be; kept, and only committed further; NULL: none. 0, -ENOMEM (the range cannot be reserved),
 * -EINVAL (cap too small for its own tables), or with a box what mmap and fallocate say: call again without
 * one then.
 */
int ni_arena_open(struct ni_arena *a, uint64_t cap_bytes, uint32_t coll_slots, uint32_t p2p_slots,
                  struct ni_box_file *box);

/*
 * Commits and hands out file pages for `bytes` more, in one go: where no thread will do it later. init only.
 */
void ni_arena_commit(struct ni_arena *a, uint64_t bytes);

/* First page of a chunk, or 0 when the cap is reached (for events, half of it: they never take an operation's
 * place). Lock-free. The chunk's memory is zero or holds an earlier life of the same class. Acquires what the
 * giver of a reused chunk released. */
uint32_t ni_arena_take(struct ni_arena *a, enum ni_chunk_class cls);

/* Returns a chunk for its class to be taken again. Lock-free. */
void ni_arena_give(struct ni_arena *a, enum ni_chunk_class cls, uint32_t page);

/* Dump thread: commits and maps pages ahead of the watermark: twice what was taken since the last call,
 * within bounds. Cheap when nothing was taken. The file may refuse to grow; then callbacks go on with plain
 * pages. */
void ni_arena_touch_ahead(struct ni_arena *a);

/* Pages ever taken: moves when anybody takes a fresh chunk. */
uint32_t ni_arena_taken_pages(const struct ni_arena *a);

/* Bytes taken and not given back, tables included; and the highest the watermark has been. Any thread. */
uint64_t ni_arena_used_bytes(const struct ni_arena *a);
uint64_t ni_arena_high_bytes(const struct ni_arena *a);

static inline struct ni_op *ni_arena_op(const struct ni_arena *a, uint32_t slot) {
  return (struct ni_op *)(void *)(a->base + (uint64_t)slot * NI_SLOT_BYTES);
}

static inline void *ni_arena_page(const struct ni_arena *a, uint32_t page) {
  return a->base + (uint64_t)page * NI_PAGE_BYTES;
}

/* Class of the page a slot lies in; NI_CHUNK_NONE for anything out of range. */
static inline enum ni_chunk_class ni_arena_page_class(const struct ni_arena *a, uint32_t page) {
  return ni_likely(page < a->n_pages) ? (enum ni_chunk_class)ni_load_rlx(&a->page[page].cls) : NI_CHUNK_NONE;
}

/* The operation that a slot number from outside names, or NULL when no operation can live there. */
static inline struct ni_op *ni_arena_op_checked(const struct ni_arena *a, uint32_t slot) {
  uint32_t cls = (uint32_t)ni_arena_page_class(a, slot / NI_SLOTS_PER_PAGE) - NI_CHUNK_OP_FIRST;
  return ni_likely(cls <= NI_CHUNK_OP_P2P - NI_CHUNK_OP_FIRST) ? ni_arena_op(a, slot) : NULL;
}

#endif
