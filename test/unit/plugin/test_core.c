/*
 * The whole plugin, driven through its callbacks and looked at from inside: what needs an odd moment or an
 * odd setting. Each test runs in a forked child, whose state is empty (state.h), so each has settings of its
 * own.
 */
#include "core_child.h"

/* ---- operations that leave no line give their slots back all the same ---- */

static void filtered_slots(void) {
  void *ctx = open_comm(1);
  struct ni_comm *c = comm_at(ctx);
  for (uint64_t i = 0; i < 1000; i++) {
    run_op(ctx, i, 0);
    /*
     * On a busy machine the dump thread comes late: the next hundred find all slots free once these are
     * settled.
     */
    for (int ms = 0; i % 100 == 99 && ms < 20000 && ni_load_rlx(&c->done.head); ms++)
      sleep_ms(1);
    if (i % 100 == 99)
      sleep_ms(100);
  }
  uint64_t at = now_ms();
  ni_finalize(ctx);
  CHECK(now_ms() - at < 10000);
  CHECK(ni_load_rlx(&c->kind[NI_KIND_COLL].started) == 1000);
  CHECK(ni_load_rlx(&c->kind[NI_KIND_COLL].dropped[NI_DROP_POOL_FULL]) == 0);
}
static void operations_without_a_line_give_their_slots_back(void **state) {
  (void)state;
  in_child(
      filtered_slots,
      (const char *const[]){"NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "1", "NCCL_INSPECTOR_DUMP_CONTROL_LINES",
                            "0", "NCCL_INSPECTOR_POOL_GROW", "0", "NCCL_INSPECTOR_COLL_POOL_SIZE", "256",
                            "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "1000", NULL});
}

/* ---- the page of a communicator in its next life ---- */

static void next_life(void) {
  void *first = open_comm(1), *old = run_op(first, 0, 1000000);
  ni_finalize(first);
  void *second = open_comm(2);
  struct ni_comm *c = comm_at(second);
  CHECK(comm_at(first) == c && first != second);
  void *op = start_op(second, 0, 1), *ch = ni_cb_channel_start(op, 0, 2000000);
  CHECK(ch != old);
  ni_cb_stop(old); /* comes late: it is not the KernelCh that is open now */
  CHECK(ni_load_rlx(&c->stray[NI_STRAY_DOUBLE_STOP]) == 1);
  CHECK(ni_load_rlx(&c->done.head) == 0);
  ni_cb_stop(op);
  ni_cb_channel_stamp(ch, 2001000);
  ni_cb_stop(ch);
  CHECK(ni_load_rlx(&c->done.head) != 0);
  /* A start with the old context is refused; with the old one's pool nothing could be taken either. */
  CHECK(start_op(first, 1, 1) == NULL);
  ni_finalize(second);
}
static void a_stale_channel_is_not_taken_for_one_of_the_next_life(void **state) {
  (void)state;
  in_child(next_life, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

static void closed_pool(void) {
  void *ctx = open_comm(1);
  struct ni_comm *c = comm_at(ctx);
  run_op(ctx, 0, 1000);
  ni_finalize(ctx);
  CHECK(ni_comm_phase_of(ni_load_acq(&c->state)) == NI_COMM_FREE);
  uint64_t high = ni_arena_high_bytes(&ni_g.arena), used = ni_arena_used_bytes(&ni_g.arena);
  int why = 9; /* a starter that passed the check of its context before finalize and goes on after it */
  CHECK(ni_pool_get(&ni_g.arena, &c->kind[NI_KIND_COLL].pool, &why) == 0);
  CHECK(ni_arena_high_bytes(&ni_g.arena) == high && ni_arena_used_bytes(&ni_g.arena) == used);
}
static void a_closed_pool_gives_nothing(void **state) {
  (void)state;
  in_child(closed_pool, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* ---- interval 0 ---- */

/*
 * A bit of a communicator that is gone by the time its bit comes. Whoever put it back would find it again and
 * again. The bit is looked at often, since a busy machine may give a thread that never sleeps little CPU
 * time.
 */
static void stray_bit(void) {
  const uint64_t bit = UINT64_C(1) << 7;
  void *ctx = open_comm(1);
  run_op(ctx, 0, 1000);
  sleep_ms(300);
  ni_or_sc(&ni_g.dirty[0], bit);
  ni_futex_wake_one(&ni_g.wake_word);
  for (int i = 0; i < 10000 && ni_load_rlx(&ni_g.dirty[0]) & bit; i++)
    sleep_ms(1);
  clock_t before = clock();
  for (int i = 0; i < 250; i++) {
    CHECK((ni_load_rlx(&ni_g.dirty[0]) & bit) == 0);
    sleep_ms(2);
  }
  CHECK(clock() - before < CLOCKS_PER_SEC / 10); /* CPU time of the process: it sleeps */
  ni_finalize(ctx);
}
/* A push wakes the sleeping thread; without that it would look again after a second, never sooner than 750 ms
 * from here. A busy machine may make it late once and again, not each time. */
static void woken(void) {
  void *ctx = open_comm(1);
  struct ni_comm *c = comm_at(ctx);
  uint64_t soonest = UINT64_MAX;
  for (uint64_t i = 0; i < 4; i++) {
    sleep_ms(250); /* asleep by now, for a second */
    uint64_t at = now_ms();
    run_op(ctx, i, 1000 * (i + 1));
    while (ni_load_rlx(&c->done.head))
      sleep_ms(1);
    if (now_ms() - at < soonest)
      soonest = now_ms() - at;
  }
  CHECK(soonest < 400);
  ni_finalize(ctx);
}
static void interval_0_wakes_at_once(void **state) {
  (void)state;
  in_child(woken, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "0", NULL});
}
static void a_bit_of_nobody_does_not_keep_the_thread_awake(void **state) {
  (void)state;
  in_child(stray_bit, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "0", NULL});
}

/* ---- the last lines wait for a callback that is on its way ---- */

/* A callback that has counted its operation, is held up for 40 ms, and only then takes its slot. */
static void *held_up(void *arg) {
  sleep_ms(40);
  (void)atomic_fetch_sub_explicit(&((struct ni_comm *)arg)->kind[NI_KIND_COLL].started, 1,
                                  memory_order_relaxed);
  return NULL;
}
static void on_its_way(void) {
  void *ctx = open_comm(1);
  struct ni_comm *c = comm_at(ctx);
  pthread_t t;
  run_op(ctx, 0, 1000);
  ni_add_rlx(&c->kind[NI_KIND_COLL].started, 1);
  uint64_t at = now_ms(); /* before the other thread's 40 ms begin: this one may have to wait in between */
  CHECK(pthread_create(&t, NULL, held_up, c) == 0);
  ni_finalize(ctx);
  uint64_t took = now_ms() - at;
  CHECK(took >= 35 && took < 10000);
  pthread_join(t, NULL);
  ctx = open_comm(2); /* and not for ever */
  c = comm_at(ctx);
  ni_add_rlx(&c->kind[NI_KIND_COLL].started, 1);
  at = now_ms();
  ni_finalize(ctx);
  took = now_ms() - at;
  CHECK(took >= NI_SETTLE_MS / 2 && took < 10000); /* counted from when the pass began that closes it */
  /*
   * The last lines are said, but whoever comes that late still meets the communicator's own memory, not
   * another's.
   */
  int why;
  uint32_t slot = ni_pool_get(&ni_g.arena, &c->kind[NI_KIND_COLL].pool, &why);
  struct ni_op *op = ni_arena_op(&ni_g.arena, slot);
  CHECK(slot && ni_comm_phase_of(ni_load_acq(&c->state)) == NI_COMM_CLOSING);
  uint32_t gen = ni_state_gen(ni_load_rlx(&op->state));
  ni_store_rel(&op->state, ni_state_make(gen, NI_OP_LIVE, 1));
  CHECK(comm_at(open_comm(3)) != c);
  pthread_mutex_lock(&ni_g.dump->role);
  ni_g.dump->drain.judge_ms += NI_REST_MS;
  ni_g.dump->drain.ticks += NI_REST_TICKS;
  pthread_mutex_unlock(&ni_g.dump->role);
  for (int i = 0; i < 100 && ni_comm_phase_of(ni_load_acq(&c->state)) != NI_COMM_FREE; i++)
    sleep_ms(50);
  CHECK(ni_comm_phase_of(ni_load_acq(&c->state)) == NI_COMM_FREE); /* and not for ever */
  /* the page's next owner finds nothing alive */
  CHECK(ni_load_acq(&op->state) == ni_state_make(gen + 1, 0, 0));
}
static void last_lines_wait_for_a_callback_on_its_way(void **state) {
  (void)state;
  in_child(on_its_way, NULL);
}

/* ---- rare moments, made at the point between two effects (stress builds) ---- */

#ifdef NI_STRESS
static struct ni_pool hooked_pool;
static struct ni_arena hooked_arena;
static uint32_t taken[3];

static uint32_t get_hooked(void) {
  int why;
  return ni_pool_get(&hooked_arena, &hooked_pool, &why);
}
/* ABA: the head is what it was, and its successor is not */
static void others_take_both_and_one_comes_back(void) {
  ni_testpoint_hook = NULL;
  taken[0] = get_hooked();
  taken[1] = get_hooked();
  ni_pool_put_chain(&hooked_arena, &hooked_pool, taken[0], taken[0]);
}
static void the_free_list_notices_a_slot_that_came_back(void **state) {
  (void)state;
  assert_int_equal(ni_arena_open(&hooked_arena, 1 << 20, 64, 64, NULL), 0);
  assert_int_equal(ni_pool_open(&hooked_arena, &hooked_pool, NI_CHUNK_OP_COLL, 1, 0), 0);
  for (int i = 0; i < 2; i++)
    taken[i] = get_hooked();
  for (int i = 0; i < 2; i++)
    ni_pool_put_chain(&hooked_arena, &hooked_pool, taken[i], taken[i]);
  ni_testpoint_hook = others_take_both_and_one_comes_back;
  uint32_t first = get_hooked(), second = get_hooked();
  assert_true(first == taken[0]);
  assert_true(second != taken[1]); /* that one is somebody's */
}

static void another_grows_first(void) {
  ni_testpoint_hook = NULL;
  taken[0] = get_hooked();
}
static void the_chunk_of_the_loser_comes_back(void **state) {
  (void)state;
  assert_int_equal(ni_arena_open(&hooked_arena, 1 << 20, 64, 64, NULL), 0);
  assert_int_equal(ni_pool_open(&hooked_arena, &hooked_pool, NI_CHUNK_OP_COLL, 1, 0), 0);
  for (uint32_t i = 0; i < NI_SLOTS_PER_PAGE; i++)
    assert_int_not_equal(get_hooked(), 0);
  ni_testpoint_hook = another_grows_first;
  uint32_t mine = get_hooked();
  assert_true(mine && taken[0] && mine != taken[0]);
  assert_int_equal(ni_pool_capacity(&hooked_pool), NI_SLOTS_PER_PAGE + 64);
  uint64_t used =
      ni_arena_used_bytes(&hooked_arena) - (uint64_t)hooked_arena.hdr->overhead_pages * NI_PAGE_BYTES;
  assert_int_equal(used, ni_pool_capacity(&hooked_pool) * NI_SLOT_BYTES);
}

static void seen_one(struct ni_op *op, uint32_t slot, void *arg) {
  (void)op;
  *(uint32_t *)arg += slot == taken[1];
}
static void a_walk_meets_all_while_the_pool_grows(void **state) {
  (void)state;
  uint32_t n = 0;
  assert_int_equal(ni_arena_open(&hooked_arena, 1 << 20, 64, 64, NULL), 0);
  assert_int_equal(ni_pool_open(&hooked_arena, &hooked_pool, NI_CHUNK_OP_COLL, 1, 0), 0);
  taken[1] = get_hooked();
  for (uint32_t i = 1; i < NI_SLOTS_PER_PAGE; i++)
    assert_int_not_equal(get_hooked(), 0);
  ni_testpoint_hook = another_grows_first;
  ni_pool_walk(&hooked_arena, &hooked_pool, seen_one, &n);
  assert_null(ni_testpoint_hook);
  assert_int_equal(n, 1);
}
#endif

/* ---- stamps of a chain ---- */

static void chain_order(void) {
  void *ctx = open_comm(1), *op = start_op(ctx, 0, 2);
  channel(op, 0, 1000); /* 1000 .. 1100 */
  struct ni_op *first = slot_of(op);
  CHECK(first->bad == 0);
  op = start_op(ctx, 1, 2); /* another Group: cannot have started before the one before it stopped */
  channel(op, 1, 1050);     /* another channel: may */
  CHECK(slot_of(op)->bad == 0);
  channel(op, 0, 1050);
  CHECK(slot_of(op)->bad == 1u << NI_BAD_BEFORE_PREVIOUS);
  op = start_op(ctx, 2, 2);
  channel(op, 0, 1150);
  CHECK(slot_of(op)->bad == 0);
  ni_finalize(ctx);
}
static void a_chain_is_first_in_first_out(void **state) {
  (void)state;
  in_child(chain_order, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

static void unknown_bytes(void **state) {
  (void)state;
  static struct ni_intern t;
  static struct ni_interned text[NI_INTERN_TEXTS];
  ni_intern_reset(&t, text);
  assert_int_equal(ni_intern_elem_bytes(&t, ni_intern_id(&t, "ncclFloat64")), 8);
  assert_int_equal(ni_intern_elem_bytes(&t, ni_intern_id(&t, "of tomorrow")), 1);
  /* no string, or none that found a place: the count is the size */
  assert_int_equal(ni_intern_elem_bytes(&t, 0), 1);
}

/* ---- room in the block ---- */

static void room_that_was_reserved_is_there(void **state) {
  (void)state;
  static uint64_t noise[512], x = 1;
  for (int plain = 0; plain < 2; plain++) {
    struct ni_gz *gz = ni_gz_create(!plain, NI_CODEC_LEVEL);
    const void *block;
    size_t n, text = 0;
    assert_non_null(gz);
    while (ni_gz_reserve(gz, NI_ROOM_BYTES) == 0) {
      for (size_t i = 0; i < NI_ROOM_BYTES / sizeof noise; i++) {
        for (size_t j = 0; j < sizeof noise / sizeof *noise; j++)
          noise[j] = x = x * 6364136223846793005u + 1442695040888963407u;
        assert_int_equal(ni_gz_append(gz, noise, sizeof noise), 0);
      }
      text += NI_ROOM_BYTES;
    }
    assert_int_equal(ni_gz_reserve(gz, NI_ROOM_BYTES), -EFBIG);
    assert_in_range(text, NI_GZ_MAX_BYTES / 2, NI_GZ_MAX_BYTES);
    assert_int_equal(ni_gz_finish(gz, &block, &n), 0);
    assert_int_equal(ni_gz_reserve(gz, 1), -EBUSY);
    ni_gz_free(gz);
  }
}

int main(int argc, char **argv) {
  if (argc > 1)
    cmocka_set_test_filter(argv[1]); /* "*" is any text */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operations_without_a_line_give_their_slots_back),
      cmocka_unit_test(a_stale_channel_is_not_taken_for_one_of_the_next_life),
      cmocka_unit_test(a_closed_pool_gives_nothing),
      cmocka_unit_test(a_bit_of_nobody_does_not_keep_the_thread_awake),
      cmocka_unit_test(last_lines_wait_for_a_callback_on_its_way),
      cmocka_unit_test(interval_0_wakes_at_once),
      cmocka_unit_test(a_chain_is_first_in_first_out),
      cmocka_unit_test(unknown_bytes),
#ifdef NI_STRESS
      cmocka_unit_test(the_free_list_notices_a_slot_that_came_back),
      cmocka_unit_test(the_chunk_of_the_loser_comes_back),
      cmocka_unit_test(a_walk_meets_all_while_the_pool_grows),
#endif
      cmocka_unit_test(room_that_was_reserved_is_there),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
