/* Pool, arena and done list: sequential rules, and many threads against one returning thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "plugin/slots/done_list.h"
#include "plugin/slots/slot_pool.h"

static struct ni_arena arena;

static void fresh(uint64_t cap, uint32_t step) {
  if (arena.base)
    munmap(arena.base, arena.map_bytes);
  assert_int_equal(ni_arena_open(&arena, cap, step, step, NULL), 0);
}

static void put_one(struct ni_pool *p, uint32_t slot) { ni_pool_put_chain(&arena, p, slot, slot); }

static void grows_until_the_cap(void **state) {
  (void)state;
  fresh(1 << 20, 256);
  struct ni_pool p;
  assert_int_equal(ni_pool_open(&arena, &p, NI_CHUNK_OP_COLL, 1, 0), 0);
  assert_int_equal(ni_pool_capacity(&p), NI_SLOTS_PER_PAGE);
  uint32_t n = 0, why = 9;
  unsigned char *seen = calloc(1 << 20, 1);
  for (uint32_t slot; (slot = ni_pool_get(&arena, &p, (int *)&why)) != 0; n++) {
    assert_false(seen[slot]); /* never the same slot twice */
    seen[slot] = 1;
    assert_non_null(ni_arena_op_checked(&arena, slot));
    memset(ni_arena_op(&arena, slot), 0xff, 8); /* and writable */
  }
  assert_int_equal(why, 1);
  /* All pages behind header and table went into slots, but for less than a step. */
  uint32_t pages = arena.hdr->budget_pages;
  assert_in_range(n, (pages - 8) * NI_SLOTS_PER_PAGE, pages * NI_SLOTS_PER_PAGE);
  assert_int_equal(ni_pool_high_water(&p), n);
  free(seen);
}

static void fixed_has_exactly_its_size(void **state) {
  (void)state;
  fresh(1 << 20, 10);
  struct ni_pool p;
  assert_int_equal(ni_pool_open(&arena, &p, NI_CHUNK_OP_P2P, 0, 10), 0);
  uint32_t slot[10];
  int why = 9;
  for (int i = 0; i < 10; i++)
    assert_int_not_equal(slot[i] = ni_pool_get(&arena, &p, &why), 0);
  assert_int_equal(ni_pool_get(&arena, &p, &why), 0);
  assert_int_equal(why, 0);
  put_one(&p, slot[3]);
  assert_int_equal(ni_pool_get(&arena, &p, &why), slot[3]); /* last in, first out */
  assert_int_equal(ni_pool_high_water(&p), 10);
}

static void chunks_come_back_as_the_same_class(void **state) {
  (void)state;
  fresh(1 << 20, 64);
  struct ni_pool p;
  int why;
  uint64_t used = ni_arena_used_bytes(&arena);
  assert_int_equal(ni_pool_open(&arena, &p, NI_CHUNK_OP_COLL, 1, 0), 0);
  for (int i = 0; i < 500; i++)
    assert_int_not_equal(ni_pool_get(&arena, &p, &why), 0);
  uint64_t high = ni_arena_high_bytes(&arena);
  ni_pool_close(&arena, &p);
  assert_int_equal(ni_arena_used_bytes(&arena), used);
  for (int round = 0; round < 20; round++) {
    assert_int_equal(ni_pool_open(&arena, &p, NI_CHUNK_OP_COLL, 1, 0), 0);
    for (int i = 0; i < 500; i++)
      assert_int_not_equal(ni_pool_get(&arena, &p, &why), 0);
    ni_pool_close(&arena, &p);
  }
  assert_int_equal(ni_arena_high_bytes(&arena), high); /* reuse, no growth */
}

static void out_of_range_is_refused(void **state) {
  (void)state;
  fresh(1 << 20, 64);
  assert_null(ni_arena_op_checked(&arena, 0));
  assert_null(ni_arena_op_checked(&arena, arena.n_pages * NI_SLOTS_PER_PAGE));
  assert_null(ni_arena_op_checked(&arena, UINT32_MAX));
  assert_null(ni_arena_op_checked(&arena, (arena.n_pages - 1) * NI_SLOTS_PER_PAGE)); /* not handed out yet */
}

/*
 * The limit is read without an order to the watermark: a thread may see the one raised and not yet the other.
 */
static void nothing_is_taken_beyond_an_old_limit(void **state) {
  (void)state;
  fresh(1 << 20, 64);
  struct ni_region *g = &arena.hdr->region[NI_REGION_PLAIN];
  assert_int_not_equal(ni_arena_take(&arena, NI_CHUNK_COMM), 0);
  uint32_t mark = g->watermark, limit = g->limit;
  g->limit = mark - 1;
  assert_int_equal(ni_arena_take(&arena, NI_CHUNK_OP_FIRST), 0);
  assert_int_equal(g->watermark, mark);
  g->limit = limit;
  assert_int_equal(ni_arena_take(&arena, NI_CHUNK_OP_FIRST), mark);
}

/* Nothing in the arena is an address: the same bytes read elsewhere mean the same. */
static void arena_can_be_read_at_another_address(void **state) {
  (void)state;
  fresh(1 << 20, 64);
  struct ni_pool *p = ni_arena_page(&arena, ni_arena_take(&arena, NI_CHUNK_COMM));
  int why;
  assert_int_equal(ni_pool_open(&arena, p, NI_CHUNK_OP_COLL, 1, 0), 0);
  for (int i = 0; i < 100; i++) {
    uint32_t slot = ni_pool_get(&arena, p, &why);
    ni_arena_op(&arena, slot)->rec_sn = (uint64_t)i;
    ni_store_rlx(&ni_arena_op(&arena, slot)->state, ni_state_make(7, NI_OP_LIVE, 8));
  }
  unsigned char *copy =
      mmap(NULL, arena.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, arena.base, arena.map_bytes);
  struct ni_arena other = arena;
  other.base = copy;
  other.hdr = (struct ni_arena_words *)(copy + ((unsigned char *)arena.hdr - arena.base));
  other.page = (struct ni_page *)(copy + ((unsigned char *)arena.page - arena.base));
  struct ni_pool *q = (struct ni_pool *)(copy + ((unsigned char *)p - arena.base));
  memset(arena.base, 0xee, arena.map_bytes); /* the first one is gone */
  uint64_t sum = 0;
  uint32_t live = 0;
  for (uint32_t page = q->chunks; page; page = other.page[page].next) {
    uint32_t n = other.hdr->chunk_pages[other.page[page].cls] * NI_SLOTS_PER_PAGE;
    for (uint32_t i = 0; i < n; i++) {
      struct ni_op *op = ni_arena_op(&other, page * NI_SLOTS_PER_PAGE + i);
      if (ni_state_flags(op->state) & NI_OP_LIVE) {
        live++;
        sum += op->rec_sn;
      }
    }
  }
  assert_int_equal(live, 100);
  assert_int_equal(sum, 4950);
  munmap(copy, arena.map_bytes);
}

/* ---- threads: takers get slots, finish them over the done list; one thread returns them ---- */

enum { TAKERS = 3, ROUNDS = 60000 };
static struct ni_pool shared;
static struct ni_done_list done;
static _Atomic uint32_t left;
static _Atomic uint64_t pushed, failed;

static void *taker(void *arg) {
  uint32_t mine = (uint32_t)(uintptr_t)arg;
  for (int i = 0; i < ROUNDS; i++) {
    int why;
    uint32_t slot = ni_pool_get(&arena, &shared, &why);
    if (!slot) {
      failed++;
      continue;
    }
    struct ni_op *op = ni_arena_op(&arena, slot);
    /* Somebody else's number here would mean that a slot has two owners. */
    if (op->group_ord != 0)
      abort();
    op->group_ord = mine;
    op->rec_sn = pushed;
    if (op->group_ord != mine)
      abort();
    pushed++;
    ni_done_push(&arena, &done, slot);
  }
  left--;
  return NULL;
}

static void many_takers_one_returner(void **state) {
  (void)state;
  fresh(4 << 20, 64);
  assert_int_equal(ni_pool_open(&arena, &shared, NI_CHUNK_OP_COLL, 1, 0), 0);
  memset(&done, 0, sizeof done);
  left = TAKERS;
  pushed = failed = 0;
  pthread_t t[TAKERS];
  for (int i = 0; i < TAKERS; i++)
    pthread_create(&t[i], NULL, taker, (void *)(uintptr_t)(i + 1));
  uint64_t drained = 0;
  for (;;) {
    int last = left == 0;
    uint32_t n, slot = ni_done_drain(&arena, &done, &n), first = slot, end = 0, counted = 0;
    for (; slot; slot = ni_load_rlx(&ni_arena_op(&arena, slot)->next)) {
      ni_arena_op(&arena, slot)->group_ord = 0;
      end = slot;
      counted++;
    }
    assert_int_equal(counted, n);
    drained += n;
    if (first)
      ni_pool_put_chain(&arena, &shared, first, end);
    else if (last)
      break;
  }
  for (int i = 0; i < TAKERS; i++)
    pthread_join(t[i], NULL);
  assert_int_equal(drained, pushed);
  assert_int_equal(drained + failed, (uint64_t)TAKERS * ROUNDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(grows_until_the_cap),
      cmocka_unit_test(fixed_has_exactly_its_size),
      cmocka_unit_test(chunks_come_back_as_the_same_class),
      cmocka_unit_test(out_of_range_is_refused),
      cmocka_unit_test(nothing_is_taken_beyond_an_old_limit),
      cmocka_unit_test(arena_can_be_read_at_another_address),
      cmocka_unit_test(many_takers_one_returner),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
