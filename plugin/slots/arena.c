/*
 * Invariants: (1) a page's class is written before the chunk is handed out for the first time and never
 * again; (2) a chunk is on one free stack or owned by one taker; (3) the watermark only rises. The stacks are
 * Treiber stacks with a tag raised at each pop, so a page that was popped and given back between a reader's
 * load and its exchange is noticed; a page's `next` may be read while another thread owns it, which is
 * harmless (the exchange then fails) and defined (atomic).
 */
#include "arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "plugin/slots/box/box_file.h"
#include "intern.h"

#define TOUCH_MIN_PAGES 32u  /* 128 KiB: what a new job of a few communicators takes at once */
#define TOUCH_MAX_PAGES 512u /* 2 MiB: 16,000 operations between two ticks of 10 ms */
/*
 * The file is kept ahead of the callbacks, so that what a burst records is in it when the process is killed.
 * A burst comes at a million operations a second, and the dump thread may be in its pause of 100 ms, or wait
 * for a CPU. So it is kept ahead by 32 MiB, which is 260 ms of that, where the file system has plenty of room
 * (ni_box_file_ahead), and by as much as is taken.
 */
#define COMMIT_FIRST_PAGES 1024u                            /* 4 MiB: by the first init, which waits for it */
#define COMMIT_MAX_PAGES 16384u                             /* 64 MiB */
#define MAX_PAGES ((NI_H_IDX_MASK + 1) / NI_SLOTS_PER_PAGE) /* that handles can name: 8 GiB */
#define MAP_ALIGN_PAGES 16u /* the file's part ends at a page border of any machine: 64 KiB */

_Static_assert(sizeof(struct ni_arena_words) <= NI_PAGE_BYTES, "one page of the front");
_Static_assert(sizeof(struct ni_interned) * NI_INTERN_TEXTS <=
                   (NI_FRONT_SESSIONS - NI_FRONT_TEXTS) * NI_PAGE_BYTES,
               "texts fit");
_Static_assert(NI_BOX_SESSION_BYTES % NI_PAGE_BYTES == 0 && NI_BOX_PAGE_BYTES == NI_PAGE_BYTES,
               "whole pages");

static uint32_t pages_of(uint64_t bytes) { return (uint32_t)((bytes + NI_PAGE_BYTES - 1) / NI_PAGE_BYTES); }

static uint32_t align_up(uint32_t pages) {
  return (pages + MAP_ALIGN_PAGES - 1) / MAP_ALIGN_PAGES * MAP_ALIGN_PAGES;
}

/* Front of an arena whose file has box_pages pages. */
static uint32_t front_pages(uint32_t box_pages) { return NI_FRONT_CLASS_MAP + pages_of(box_pages); }

uint64_t ni_arena_box_min_bytes(void) { return (uint64_t)align_up(front_pages(256) + 256) * NI_PAGE_BYTES; }

uint64_t ni_arena_box_max_bytes(uint64_t cap_bytes) {
  uint32_t n = (uint32_t)(cap_bytes / NI_PAGE_BYTES), half = (uint32_t)MAX_PAGES / 2;
  uint32_t pages = align_up(front_pages(n) + n);
  return (uint64_t)(pages < half ? pages : half) * NI_PAGE_BYTES;
}

/*
 * A range of memory at `at` (NULL: anywhere), or MAP_FAILED. A host that has said mlockall(MCL_FUTURE) would
 * have all of it resident at once, or see it refused by RLIMIT_MEMLOCK: a small piece is mapped, unlocked,
 * and then made as long as wanted.
 */
static void *map_range(void *at, uint64_t bytes, int flags, int fd) {
  size_t first = MAP_ALIGN_PAGES * NI_PAGE_BYTES;
  void *p = mmap(NULL, first, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (p == MAP_FAILED)
    return p;
  (void)munlock(p, first);
  void *all = mremap(p, first, bytes, MREMAP_MAYMOVE | (at ? MREMAP_FIXED : 0), at);
  if (all == MAP_FAILED) {
    int error = errno;
    (void)munmap(p, first);
    errno = error;
  }
  return all;
}

/*
 * Maps the file over the arena's beginning and gives memory to the parts that are used from the first moment.
 */
static int map_box(struct ni_arena *a, struct ni_box_file *box, uint32_t front) {
  uint64_t front_bytes = (uint64_t)front * NI_PAGE_BYTES,
           sessions = (uint64_t)NI_FRONT_SESSIONS * NI_PAGE_BYTES;
  int rc = ni_box_file_commit(box, 0, sessions);
  if (rc == 0)
    rc = ni_box_file_commit(box, (uint64_t)NI_FRONT_CLASS_MAP * NI_PAGE_BYTES, front_bytes);
  if (rc)
    return rc;
  void *p = map_range(a->base, box->bytes, MAP_SHARED, box->fd);
  return p == MAP_FAILED ? -errno : 0;
}

static void open_region(struct ni_arena *a, int which, uint32_t first, uint32_t limit, uint32_t end) {
  struct ni_region *g = &a->hdr->region[which];
  g->first = first;
  g->end = end;
  ni_store_rlx(&g->watermark, first);
  ni_store_rlx(&g->limit, limit);
  a->ahead[which].touched = a->ahead[which].seen_mark = first;
}

int ni_arena_open(struct ni_arena *a, uint64_t cap_bytes, uint32_t coll_slots, uint32_t p2p_slots,
                  struct ni_box_file *box) {
  uint32_t cap = (uint32_t)(cap_bytes / NI_PAGE_BYTES),
           overhead = 1 + pages_of((uint64_t)cap * sizeof(struct ni_page));
  if (cap_bytes > UINT64_C(8) << 30 || cap < overhead + 8)
    return -EINVAL;
  uint32_t budget = cap - overhead, box_pages = box ? (uint32_t)(box->bytes / NI_PAGE_BYTES) : 0;
  uint32_t front = front_pages(box_pages), plain = box ? box_pages : front;
  uint64_t most = (uint64_t)plain + budget;
  uint32_t table = pages_of((most + most / 256 + 8) * sizeof(struct ni_page)); /* its own pages included */
  uint32_t n = (uint32_t)(most + table > MAX_PAGES ? MAX_PAGES : most + table);
  uint64_t bytes = (uint64_t)n * NI_PAGE_BYTES;

  void *p = map_range(NULL, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (p == MAP_FAILED)
    return -ENOMEM;
  memset(a, 0, sizeof *a);
  a->base = p;
  int rc = box ? map_box(a, box, front) : 0;
  if (rc) {
    (void)munmap(p, bytes);
    memset(a, 0, sizeof *a);
    return rc;
  }
  /* A huge page would be zeroed inside a callback, 100 us long, and count 2 MiB for the first slot. Both
   * calls are advice: an old kernel without them works too, at that cost. */
  (void)madvise(p, bytes, MADV_NOHUGEPAGE);
  (void)madvise(p, bytes, MADV_DONTFORK);

  a->hdr = (struct ni_arena_words *)ni_arena_page(a, NI_FRONT_WORDS);
  a->page = (struct ni_page *)ni_arena_page(a, plain);
  a->class_map = box ? (_Atomic uint8_t *)ni_arena_page(a, NI_FRONT_CLASS_MAP) : NULL;
  a->box = box;
  a->n_pages = n;
  a->map_bytes = bytes;
  a->cap_bytes = (uint64_t)cap * NI_PAGE_BYTES;
  struct ni_arena_words *h = a->hdr;
  h->overhead_pages = overhead;
  h->budget_pages = budget;
  h->chunk_pages[NI_CHUNK_COMM] = NI_COMM_PAGES;
  h->chunk_pages[NI_CHUNK_OP_FIRST] = 1;
  h->chunk_pages[NI_CHUNK_OP_COLL] = pages_of((uint64_t)coll_slots * NI_SLOT_BYTES);
  h->chunk_pages[NI_CHUNK_OP_P2P] = pages_of((uint64_t)p2p_slots * NI_SLOT_BYTES);
  h->chunk_pages[NI_CHUNK_EVENT] = 4;  /* 128 events */
  h->chunk_pages[NI_CHUNK_PROXY] = 16; /* 128 proxy operations */
  open_region(a, NI_REGION_BOX, box ? front : 0, box ? front : 0, box_pages);
  open_region(a, NI_REGION_PLAIN, plain + table, n, n);
  a->ahead_pages = COMMIT_FIRST_PAGES;
  ni_arena_touch_ahead(a);
  if (box)
    a->ahead_pages = pages_of(ni_box_file_ahead(box)); /* from the dump thread's first tick on */
  return 0;
}

uint32_t ni_arena_taken_pages(const struct ni_arena *a) {
  const struct ni_region *g = a->hdr->region;
  return ni_load_rlx(&g[0].watermark) - g[0].first + ni_load_rlx(&g[1].watermark) - g[1].first;
}

/*
 * A fresh chunk of n pages of class cls, or 0. Relaxed: a fresh chunk carries nobody's stores, and the memory
 * below `limit` is the kernel's doing. The class goes in before the chunk leaves here; whoever learns of a
 * slot in it does so through a handle, which the taker passes on. Two takers at once, one in each region, may
 * pass the budget by a chunk.
 */
static uint32_t take_fresh(struct ni_arena *a, int which, enum ni_chunk_class cls, uint32_t n) {
  struct ni_region *g = &a->hdr->region[which];
  uint32_t mark = ni_load_rlx(&g->watermark);
  do {
    /* Not `limit - mark < n`: read without an order, an old limit may lie below a new mark. */
    if ((uint64_t)mark + n > ni_load_rlx(&g->limit) || ni_arena_taken_pages(a) + n > a->hdr->budget_pages)
      return 0;
  } while (!ni_cas_rlx(&g->watermark, &mark, mark + n));
  for (uint32_t i = 0; i < n; i++) {
    ni_store_rlx(&a->page[mark + i].cls, (uint8_t)cls);
    if (which == NI_REGION_BOX)
      ni_store_rlx(&a->class_map[mark + i], (uint8_t)cls);
  }
  if (which == NI_REGION_PLAIN && a->class_map && cls < NI_CHUNK_EVENT)
    ni_add_rlx(&a->hdr->outside, n);
  return mark;
}

/* A hint: others take meanwhile. */
static int half_free(const struct ni_region *g) {
  uint32_t mark = ni_load_rlx(&g->watermark);
  return mark - g->first < (g->end - g->first) / 2;
}

uint32_t ni_arena_take(struct ni_arena *a, enum ni_chunk_class cls) {
  struct ni_arena_words *h = a->hdr;
  uint32_t n = h->chunk_pages[cls];
  /* Acquire pairs with the release in ni_arena_give: the last owner's stores to the chunk are seen. */
  uint64_t head = ni_load_acq(&h->free_stack[cls]);
  while ((uint32_t)head) {
    uint32_t page = (uint32_t)head;
    uint64_t next = ni_load_rlx(&a->page[page].next) | ((head >> 32) + 1) << 32;
    NI_TESTPOINT();
    if (ni_cas_acq(&h->free_stack[cls], &head, next)) {
      (void)atomic_fetch_sub_explicit(&h->free_pages, n, memory_order_relaxed);
      return page;
    }
  }
  /* Events never take an operation's place. Of them only network operations are in the black box, as long as
   * half of it is free: which transfer waits for whom is what one wants to know of a job that hangs. */
  uint32_t page = 0;
  if (cls >= NI_CHUNK_EVENT) {
    if (ni_arena_taken_pages(a) + n > h->budget_pages / 2)
      return 0;
    if (cls == NI_CHUNK_PROXY && half_free(&h->region[NI_REGION_BOX]))
      page = take_fresh(a, NI_REGION_BOX, cls, n);
    return page ? page : take_fresh(a, NI_REGION_PLAIN, cls, n);
  }
  page = take_fresh(a, NI_REGION_BOX, cls, n);
  return page ? page : take_fresh(a, NI_REGION_PLAIN, cls, n);
}

void ni_arena_give(struct ni_arena *a, enum ni_chunk_class cls, uint32_t page) {
  struct ni_arena_words *h = a->hdr;
  ni_add_rlx(&h->free_pages, h->chunk_pages[cls]);
  uint64_t head = ni_load_rlx(&h->free_stack[cls]), mine;
  do {
    ni_store_rlx(&a->page[page].next, (uint32_t)head);
    mine = page | (head & ~UINT64_C(0xffffffff));
  } while (!ni_cas_rel(&h->free_stack[cls], &head, mine)); /* release: pairs with ni_arena_take */
}

/* Raises the file's limit by at most `pages`; false: by less. Beyond what the file system grants it stays,
 * and callbacks take plain pages; the next tick asks again. */
static bool commit(struct ni_arena *a, uint32_t pages) {
  struct ni_region *g = &a->hdr->region[NI_REGION_BOX];
  uint32_t limit = ni_load_rlx(&g->limit), left = g->end - limit;
  uint32_t granted = left ? ni_box_file_step(a->box, pages < left ? pages : left) : 0;
  if (!granted)
    return false;
  uint32_t to = limit + granted;
  if (ni_box_file_commit(a->box, (uint64_t)limit * NI_PAGE_BYTES, (uint64_t)to * NI_PAGE_BYTES))
    return false;
  ni_store_rlx(&g->limit, to);
  return granted == pages;
}

/* Keeps the file ahead of the callbacks, in steps that make the calls rare. */
static void commit_ahead(struct ni_arena *a, uint32_t mark) {
  struct ni_region *g = &a->hdr->region[NI_REGION_BOX];
  uint32_t step = mark - g->first, ahead = ni_load_rlx(&g->limit) - mark;
  if (step < a->ahead_pages)
    step = a->ahead_pages;
  if (step > COMMIT_MAX_PAGES)
    step = COMMIT_MAX_PAGES;
  if (ahead >= step / 4 * 3)
    return;
  /* In pieces: callbacks may use the first one while the kernel looks for the memory of the next. */
  for (uint32_t left = step - ahead, some; left; left -= some) {
    some = left < COMMIT_FIRST_PAGES ? left : COMMIT_FIRST_PAGES;
    if (!commit(a, some))
      return;
  }
}

void ni_arena_commit(struct ni_arena *a, uint64_t bytes) { (void)commit(a, pages_of(bytes)); }

static void touch_region(struct ni_arena *a, int which, uint32_t mark, uint32_t taken) {
  uint32_t ahead = 2 * taken, limit = ni_load_rlx(&a->hdr->region[which].limit),
           *touched = &a->ahead[which].touched;
  if (ahead < TOUCH_MIN_PAGES)
    ahead = TOUCH_MIN_PAGES;
  if (ahead > TOUCH_MAX_PAGES)
    ahead = TOUCH_MAX_PAGES;
  if (*touched < mark)
    *touched = mark; /* the callbacks were faster and took the faults themselves */
  uint64_t want = (uint64_t)mark + ahead;
  if (want > limit)
    want = limit;
  for (; *touched < want; ++*touched) {
    /* A write is needed (a read maps the shared zero page), and the page may be taken and in use by now:
     * or-ing nothing into its first word disturbs nobody. */
    _Atomic uint64_t *w = ni_arena_page(a, *touched);
    (void)atomic_fetch_or_explicit(w, 0, memory_order_relaxed);
    /* The page table's own page for it, and the class map's, likewise. */
    if (*touched % (NI_PAGE_BYTES / sizeof(struct ni_page)) == 0)
      (void)atomic_fetch_or_explicit(&a->page[*touched].next, 0, memory_order_relaxed);
    if (which == NI_REGION_BOX && *touched % NI_PAGE_BYTES == 0)
      (void)atomic_fetch_or_explicit(&a->class_map[*touched], 0, memory_order_relaxed);
  }
}

void ni_arena_touch_ahead(struct ni_arena *a) {
  for (int which = 0; which < NI_REGIONS; which++) {
    struct ni_region *g = &a->hdr->region[which];
    uint32_t mark = ni_load_rlx(&g->watermark), taken = mark - a->ahead[which].seen_mark;
    a->ahead[which].seen_mark = mark;
    if (which == NI_REGION_BOX && a->box)
      commit_ahead(a, mark);
    /*
     * Plain pages are the second choice beside a box: nothing is spent on them until the file is at its end.
     */
    if (which == NI_REGION_PLAIN && a->box && !ni_load_rlx(&a->hdr->outside) && ni_box_file_grows(a->box))
      continue;
    touch_region(a, which, mark, taken);
  }
}

uint64_t ni_arena_used_bytes(const struct ni_arena *a) {
  uint32_t used = a->hdr->overhead_pages + ni_arena_taken_pages(a) - ni_load_rlx(&a->hdr->free_pages);
  return (uint64_t)used * NI_PAGE_BYTES;
}

uint64_t ni_arena_high_bytes(const struct ni_arena *a) {
  return (uint64_t)(a->hdr->overhead_pages + ni_arena_taken_pages(a)) * NI_PAGE_BYTES;
}
