/*
 * Invariants: (1) a page's class is written before the chunk is handed out for the first time and never again;
 * (2) a chunk is on one free stack or owned by one taker; (3) the watermark only rises.
 * The stacks are Treiber stacks with a tag raised at each pop, so a page that was popped and given back between a
 * reader's load and its exchange is noticed; a page's `next` may be read while another thread owns it, which is
 * harmless (the exchange then fails) and defined (atomic).
 */
#include "arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_MAGIC UINT64_C(0x314152414e494e49) /* "INI" "NARA1", little endian */
#define TOUCH_MIN_PAGES 32u                        /* 128 KiB: what a new job of a few communicators takes at once */
#define TOUCH_MAX_PAGES 512u                       /* 2 MiB: 16,000 operations between two ticks of 10 ms */

static uint32_t pages_of(uint64_t bytes) { return (uint32_t)((bytes + NI_PAGE_BYTES - 1) / NI_PAGE_BYTES); }

int ni_arena_open(struct ni_arena *a, uint64_t cap_bytes, uint32_t coll_slots, uint32_t p2p_slots) {
  uint32_t n = (uint32_t)(cap_bytes / NI_PAGE_BYTES);
  uint32_t table = pages_of((uint64_t)n * sizeof(struct ni_page));
  if (cap_bytes > UINT64_C(8) << 30 || n < table + 8) return -EINVAL;
  void *p = mmap(NULL, (uint64_t)n * NI_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
  if (p == MAP_FAILED) return -ENOMEM;
  /* A huge page would be zeroed inside a callback, 100 us long, and count 2 MiB for the first slot. Both calls are
   * advice: an old kernel without them works too, at that cost. */
  (void)madvise(p, (uint64_t)n * NI_PAGE_BYTES, MADV_NOHUGEPAGE);
  (void)madvise(p, (uint64_t)n * NI_PAGE_BYTES, MADV_DONTFORK);

  memset(a, 0, sizeof *a);
  a->base = p;
  a->hdr = p;
  a->page = (struct ni_page *)(void *)(a->base + NI_PAGE_BYTES);
  a->n_pages = n;
  a->cap_bytes = (uint64_t)n * NI_PAGE_BYTES;
  struct ni_arena_header *h = a->hdr;
  h->magic = ARENA_MAGIC;
  h->version = 1;
  h->header_bytes = sizeof *h;
  h->page_bytes = NI_PAGE_BYTES;
  h->slot_bytes = NI_SLOT_BYTES;
  h->n_pages = n;
  h->first_page = 1 + table;
  h->chunk_pages[NI_CHUNK_COMM] = 2;
  h->chunk_pages[NI_CHUNK_OP_FIRST] = 1;
  h->chunk_pages[NI_CHUNK_OP_COLL] = pages_of((uint64_t)coll_slots * NI_SLOT_BYTES);
  h->chunk_pages[NI_CHUNK_OP_P2P] = pages_of((uint64_t)p2p_slots * NI_SLOT_BYTES);
  ni_store_rlx(&h->watermark, h->first_page);
  a->touched = a->seen_mark = h->first_page;
  ni_arena_touch_ahead(a);
  return 0;
}

uint32_t ni_arena_take(struct ni_arena *a, enum ni_chunk_class cls) {
  struct ni_arena_header *h = a->hdr;
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
  /* Relaxed: a fresh chunk carries nobody's stores. The class goes in before the chunk leaves here; whoever learns of
   * a slot in it does so through a handle, which the taker passes on. */
  uint32_t mark = ni_load_rlx(&h->watermark);
  do {
    if (a->n_pages - mark < n) return 0;
  } while (!ni_cas_rlx(&h->watermark, &mark, mark + n));
  for (uint32_t i = 0; i < n; i++) ni_store_rlx(&a->page[mark + i].cls, (uint8_t)cls);
  return mark;
}

void ni_arena_give(struct ni_arena *a, enum ni_chunk_class cls, uint32_t page) {
  struct ni_arena_header *h = a->hdr;
  ni_add_rlx(&h->free_pages, h->chunk_pages[cls]);
  uint64_t head = ni_load_rlx(&h->free_stack[cls]), mine;
  do {
    ni_store_rlx(&a->page[page].next, (uint32_t)head);
    mine = page | (head & ~UINT64_C(0xffffffff));
  } while (!ni_cas_rel(&h->free_stack[cls], &head, mine)); /* release: pairs with ni_arena_take */
}

void ni_arena_touch_ahead(struct ni_arena *a) {
  uint32_t mark = ni_load_rlx(&a->hdr->watermark);
  uint32_t ahead = 2 * (mark - a->seen_mark);
  if (ahead < TOUCH_MIN_PAGES) ahead = TOUCH_MIN_PAGES;
  if (ahead > TOUCH_MAX_PAGES) ahead = TOUCH_MAX_PAGES;
  a->seen_mark = mark;
  if (a->touched < mark) a->touched = mark; /* the callbacks were faster and took the faults themselves */
  uint64_t want = (uint64_t)mark + ahead;
  if (want > a->n_pages) want = a->n_pages;
  for (; a->touched < want; a->touched++) {
    /* A write is needed (a read maps the shared zero page), and the page may be taken and in use by now: or-ing
     * nothing into its first word disturbs nobody. */
    _Atomic uint64_t *w = ni_arena_page(a, a->touched);
    (void)atomic_fetch_or_explicit(w, 0, memory_order_relaxed);
    /* The page table's own page for it, likewise. */
    if (a->touched % (NI_PAGE_BYTES / sizeof(struct ni_page)) == 0)
      (void)atomic_fetch_or_explicit(&a->page[a->touched].next, 0, memory_order_relaxed);
  }
}

uint64_t ni_arena_used_bytes(const struct ni_arena *a) {
  uint32_t used = ni_load_rlx(&a->hdr->watermark) - ni_load_rlx(&a->hdr->free_pages);
  return (uint64_t)used * NI_PAGE_BYTES;
}

uint64_t ni_arena_high_bytes(const struct ni_arena *a) {
  return (uint64_t)ni_load_rlx(&a->hdr->watermark) * NI_PAGE_BYTES;
}
