/*
 * The whole plugin, driven through its callbacks and looked at from inside: what needs an odd moment or an odd setting.
 * Each test runs in a forked child, whose state is empty (state.h), so each has settings of its own.
 */
#include "core_child.h"

/* ---- operations that leave no line give their slots back all the same ---- */

static void filtered_slots(void) {
  void *ctx = open_comm(1);
  struct ni_comm *c = comm_at(ctx);
  for (uint64_t i = 0; i < 1000; i++) {
    run_op(ctx, i, 0);
    if (i % 100 == 99) sleep_ms(100);
  }
  uint64_t at = now_ms();
  ni_finalize(ctx);
  CHECK(now_ms() - at < 1000);
  CHECK(ni_load_rlx(&c->kind[NI_KIND_COLL].started) == 1000);
  CHECK(ni_load_rlx(&c->kind[NI_KIND_COLL].dropped[NI_DROP_POOL_FULL]) == 0);
}
static void operations_without_a_line_give_their_slots_back(void **state) {
  (void)state;
  in_child(filtered_slots, (const char *const[]){"NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "1",
                                                 "NCCL_INSPECTOR_DUMP_CONTROL_LINES", "0", "NCCL_INSPECTOR_POOL_GROW", "0",
                                                 "NCCL_INSPECTOR_COLL_POOL_SIZE", "256",
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

static void stray_bit(void) {
  void *ctx = open_comm(1);
  run_op(ctx, 0, 1000);
  sleep_ms(300);
  ni_or_sc(&ni_g.dirty[0], UINT64_C(1) << 7); /* of a communicator that is gone by the time its bit comes */
  ni_futex_wake_one(&ni_g.wake_word);
  sleep_ms(50);
  clock_t before = clock();
  sleep_ms(500);
  CHECK(clock() - before < CLOCKS_PER_SEC / 10); /* CPU time of the process: it sleeps */
  ni_finalize(ctx);
}
/* A push wakes the sleeping thread; without that it would look again after a second. */
static void woken(void) {
  void *ctx = open_comm(1);
  struct ni_comm *c = comm_at(ctx);
  for (uint64_t i = 0; i < 4; i++) {
    sleep_ms(250); /* asleep by now, for a second */
    run_op(ctx, i, 1000 * (i + 1));
    sleep_ms(100);
    CHECK(ni_load_rlx(&c->done.head) == 0);
  }
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
  (void)atomic_fetch_sub_explicit(&((struct ni_comm *)arg)->kind[NI_KIND_COLL].started, 1, memory_order_relaxed);
  return NULL;
}
static void on_its_way(void) {
  void *ctx = open_comm(1);
  struct ni_comm *c = comm_at(ctx);
  pthread_t t;
  run_op(ctx, 0, 1000);
  ni_add_rlx(&c->kind[NI_KIND_COLL].started, 1);
  CHECK(pthread_create(&t, NULL, held_up, c) == 0);
  uint64_t at = now_ms();
  ni_finalize(ctx);
  uint64_t took = now_ms() - at;
  CHECK(took >= 35 && took < 1000);
  pthread_join(t, NULL);
  ctx = open_comm(2); /* and not for ever */
  c = comm_at(ctx);
  ni_add_rlx(&c->kind[NI_KIND_COLL].started, 1);
  at = now_ms();
  ni_finalize(ctx);
  took = now_ms() - at;
  CHECK(took >= NI_SETTLE_MS - 10 && took < 1000);
  /* The last lines are said, but whoever comes that late still meets the communicator's own memory, not another's. */
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
  for (int i = 0; i < 100 && ni_comm_phase_of(ni_load_acq(&c->state)) != NI_COMM_FREE; i++) sleep_ms(50);
  CHECK(ni_comm_phase_of(ni_load_acq(&c->state)) == NI_COMM_FREE); /* and not for ever */
  CHECK(ni_load_acq(&op->state) == ni_state_make(gen + 1, 0, 0));   /* the page's next owner finds nothing alive */
}
static void last_lines_wait_for_a_callback_on_its_way(void **state) {
  (void)state;
  in_child(on_its_way, NULL);
}

/* ---- the judge, with its clock in our hands: without a dump thread nobody else calls it ---- */

static struct ni_comm_writer *side_of(struct ni_dump *d) {
  (void)ni_collect(&d->drain);
  return d->w.comms;
}
static uint32_t judged(struct ni_dump *d, struct ni_comm_writer *s, uint32_t at_ms) {
  d->drain.judge_ms = at_ms;
  ni_judge(&d->drain, s, NI_END_NONE);
  return s->kind[NI_KIND_COLL].todo.n;
}
static void channel(void *op, uint32_t ch, uint64_t gpu_ns) {
  void *h = ni_cb_channel_start(op, ch, gpu_ns);
  ni_cb_channel_stamp(h, gpu_ns + 100);
  ni_cb_stop(h);
}

static void judge_rules(void) {
  void *ctx = open_comm(1), *open = start_op(ctx, 0, 0); /* 0 channels: CollNet, the count is unknown */
  struct ni_dump *d = ni_g.dump;
  struct ni_comm_writer *s = side_of(d);
  struct ni_comm *c = comm_at(ctx);
  struct ni_late late;
  channel(open, 0, 1000);
  CHECK(judged(d, s, 1) == 0 && judged(d, s, 20000) == 0); /* its bracket is open */
  void *running = ni_cb_channel_start(open, 1, 2000);
  ni_cb_stop(open);
  CHECK(judged(d, s, 40000) == 0 && judged(d, s, 60000) == 0); /* a channel runs */
  ni_cb_channel_stamp(running, 2100);
  ni_cb_stop(running);
  CHECK(judged(d, s, 60001) == 0 && judged(d, s, 61000) == 0); /* quiet for 999 ms, overtaken by nobody */
  CHECK(judged(d, s, 61001) == 1);
  /* Overtaken by an operation of a later Group: 50 ms. */
  void *second = start_op(ctx, 1, 0), *third = start_op(ctx, 2, 0);
  channel(second, 0, 3000);
  ni_cb_stop(second);
  ni_cb_stop(third);
  CHECK(judged(d, s, 70000) == 1 && judged(d, s, 70060) == 1);
  running = ni_cb_channel_start(third, 0, 4000);
  CHECK(judged(d, s, 70061) == 2);
  /* A channel that comes now is late, and says which. */
  CHECK(!ni_late_pop(&ni_g.late, &late));
  channel(second, 5, 5000);
  CHECK(ni_load_rlx(&c->kind[NI_KIND_COLL].late) == 1);
  CHECK(ni_late_pop(&ni_g.late, &late) && late.sn == 1 && late.rec_sn == 1 && late.channel == 5 && late.stop_gpu_ns == 5100);
  /* Written, the slots rest, because such a channel may still come; 5 s and 50 ticks later they begin another life. */
  struct ni_op *slot = slot_of(second);
  uint32_t gen = ni_state_gen(slot->state);
  CHECK(ni_drain_format(&d->drain) == 0);
  CHECK((ni_state_flags(slot->state) & (NI_OP_RETIRED | NI_OP_SETTLED)) == NI_OP_RETIRED); /* the black box has it */
  ni_settle_block(&d->drain, 1);
  CHECK(ni_state_flags(slot->state) & NI_OP_SETTLED); /* and the log has it */
  CHECK(s->kind[NI_KIND_COLL].account->written == 2 && s->kind[NI_KIND_COLL].rest.n == 2);
  d->drain.judge_ms += 4900;
  d->drain.ticks += 100;
  ni_settle_release(&d->drain);
  CHECK(s->kind[NI_KIND_COLL].rest.n == 2 && ni_state_gen(slot->state) == gen);
  channel(second, 6, 6000);
  CHECK(ni_late_pop(&ni_g.late, &late) && late.channel == 6);
  d->drain.judge_ms += 200;
  ni_settle_release(&d->drain);
  CHECK(s->kind[NI_KIND_COLL].rest.n == 0 && ni_state_gen(slot->state) == gen + 1);
  uint64_t stale = ni_load_rlx(&ni_g.stray[NI_STRAY_STALE_HANDLE]);
  channel(second, 7, 7000);
  CHECK(!ni_late_pop(&ni_g.late, &late) && ni_load_rlx(&ni_g.stray[NI_STRAY_STALE_HANDLE]) == stale + 1);
  ni_cb_stop(running);
  ni_finalize(ctx);
}
static void the_judge_knows_quiet_overtaken_late_and_rest(void **state) {
  (void)state;
  in_child(judge_rules, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* A channel that starts and stops while its operation is being retired is in the record, or late, or both. */
enum { ROUNDS = 4000 };
static void *volatile racing_op;
static _Atomic int round_no, done_no;
static void *racing_poller(void *arg) {
  (void)arg;
  for (int i = 1; i <= ROUNDS; i++) {
    while (ni_load_acq(&round_no) != i) {
    }
    channel(racing_op, 1, (uint64_t)i * 1000);
    ni_store_rel(&done_no, i);
  }
  return NULL;
}
static void retired_meanwhile(void) {
  void *ctx = open_comm(1);
  struct ni_dump *d = ni_g.dump;
  struct ni_comm_writer *s = side_of(d);
  struct ni_comm *c = comm_at(ctx);
  struct ni_late late;
  pthread_t t;
  CHECK(pthread_create(&t, NULL, racing_poller, NULL) == 0);
  for (int i = 1; i <= ROUNDS; i++) {
    void *op = racing_op = start_op(ctx, (uint64_t)i, 0);
    ni_cb_stop(op);
    channel(op, 0, (uint64_t)i * 1000 - 500);
    struct ni_op *slot = slot_of(op);
    slot->poller = 0; /* another thread serves it from here on, by agreement */
    uint64_t late_before = ni_load_rlx(&c->kind[NI_KIND_COLL].late);
    slot->seen_prog = ni_load_rlx(&slot->prog);
    slot->seen_ms = 1;
    ni_store_rel(&round_no, i);
    for (int k = i % 97; k; k--) __asm__ volatile("");
    while (judged(d, s, 5000) == 0) slot->seen_prog = ni_load_rlx(&slot->prog), slot->seen_ms = 1;
    uint32_t in_record = ni_prog_stopped(ni_load_acq(&slot->prog));
    while (ni_load_acq(&done_no) != i) {
    }
    uint64_t late_now = ni_load_rlx(&c->kind[NI_KIND_COLL].late) - late_before;
    CHECK(in_record + late_now >= 2);
    (void)ni_late_pop(&ni_g.late, &late);
    CHECK(ni_drain_format(&d->drain) == 0);
    ni_settle_block(&d->drain, 1);
    d->drain.judge_ms += 6000;
    d->drain.ticks += 100;
    ni_settle_release(&d->drain);
  }
  pthread_join(t, NULL);
  ni_finalize(ctx);
}
static void a_channel_is_in_the_record_or_late(void **state) {
  (void)state;
  in_child(retired_meanwhile, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0",
                                                    "NCCL_INSPECTOR_DUMP_CONTROL_LINES", "0", NULL});
}

/* ---- rare moments, made at the point between two effects (stress builds) ---- */

#ifdef NI_STRESS
static void *hooked_op;
static struct ni_pool hooked_pool;
static struct ni_arena hooked_arena;
static uint32_t taken[3];

static void retire_now(void) { /* the dump thread, between this stop's look at the state and its count */
  ni_testpoint_hook = NULL;
  struct ni_op *op = slot_of(hooked_op);
  ni_store_rel(&op->state, ni_load_acq(&op->state) | NI_STATE_FLAG(NI_OP_RETIRED));
}
static void stop_meets_retiring(void) {
  void *ctx = open_comm(1), *ch = ni_cb_channel_start(hooked_op = start_op(ctx, 0, 0), 0, 1000);
  struct ni_comm *c = comm_at(ctx);
  ni_cb_stop(hooked_op);
  ni_cb_channel_stamp(ch, 1100);
  ni_testpoint_hook = retire_now;
  ni_cb_stop(ch);
  CHECK(ni_testpoint_hook == NULL && ni_load_rlx(&c->kind[NI_KIND_COLL].late) == 1);
}
static void a_channel_is_late_when_retired_halfway(void **state) {
  (void)state;
  in_child(stop_meets_retiring, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

static uint32_t get_hooked(void) {
  int why;
  return ni_pool_get(&hooked_arena, &hooked_pool, &why);
}
static void others_take_both_and_one_comes_back(void) { /* ABA: the head is what it was, and its successor is not */
  ni_testpoint_hook = NULL;
  taken[0] = get_hooked();
  taken[1] = get_hooked();
  ni_pool_put_chain(&hooked_arena, &hooked_pool, taken[0], taken[0]);
}
static void the_free_list_notices_a_slot_that_came_back(void **state) {
  (void)state;
  assert_int_equal(ni_arena_open(&hooked_arena, 1 << 20, 64, 64, NULL), 0);
  assert_int_equal(ni_pool_open(&hooked_arena, &hooked_pool, NI_CHUNK_OP_COLL, 1, 0), 0);
  for (int i = 0; i < 2; i++) taken[i] = get_hooked();
  for (int i = 0; i < 2; i++) ni_pool_put_chain(&hooked_arena, &hooked_pool, taken[i], taken[i]);
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
  for (uint32_t i = 0; i < NI_SLOTS_PER_PAGE; i++) assert_int_not_equal(get_hooked(), 0);
  ni_testpoint_hook = another_grows_first;
  uint32_t mine = get_hooked();
  assert_true(mine && taken[0] && mine != taken[0]);
  assert_int_equal(ni_pool_capacity(&hooked_pool), NI_SLOTS_PER_PAGE + 64);
  uint64_t used = ni_arena_used_bytes(&hooked_arena) - (uint64_t)hooked_arena.hdr->overhead_pages * NI_PAGE_BYTES;
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
  for (uint32_t i = 1; i < NI_SLOTS_PER_PAGE; i++) assert_int_not_equal(get_hooked(), 0);
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
  assert_int_equal(ni_intern_elem_bytes(&t, 0), 1); /* no string, or none that found a place: the count is the size */
}

/* ---- stuck ---- */

static void stuck_once(void) {
  void *ctx = open_comm(1), *idle = open_comm(2);
  void *alone = start_op(idle, 0, 1);
  ni_cb_stop(alone);
  run_op(ctx, 1, 1000);
  void *kernel = start_op(ctx, 2, 2), *ch = ni_cb_channel_start(kernel, 5, 2000);
  ni_cb_stop(kernel);
  ni_cb_stop(start_op(ctx, 3, 2));
  void *open = start_op(ctx, 4, 1), *ch2 = ni_cb_channel_start(open, 6, 3000);
  ni_cb_channel_stamp(ch2, 4000);
  ni_cb_stop(ch2);
  mask &= ~NI_EV_KERNEL_CH; /* from here on nobody can know whether a channel will come */
  void *doubt = start_op(ctx, 5, 1);
  for (int i = 0; i < 100 && lines_with(log_text(), "\"stuck\"", "\"finishing\"") == 0; i++) sleep_ms(100);
  sleep_ms(1500); /* twice would be seen by now */
  char *text = log_text();
  CHECK(lines_with(text, "\"stuck\":{\"kind\":\"coll\",\"func\":\"AllReduce\",\"sn\":2,", "\"state\":\"kernel\",\"datatype\":\"ncclFloat32\",\"root\":0,\"channels_open\":\"0x20\"") == 1);
  CHECK(lines_with(text, "\"stuck\"", "\"sn\":3,") == 1 && lines_with(text, "\"sn\":3,", "\"state\":\"launched\"") == 1);
  CHECK(lines_with(text, "\"stuck\"", "\"sn\":4,") == 1 && lines_with(text, "\"sn\":4,", "\"state\":\"finishing\"") == 1);
  CHECK(lines_with(text, "\"stuck\"", "stuck") == 4);
  /* and how much there is in flight: no other line would say it of a communicator on which nothing has ever finished */
  CHECK(lines_with(text, "{\"id\":\"0x2\"", "\"final\":false,\"coll\":{\"started\":1,\"written\":0,") == 1);
  ni_cb_stop(open); /* and a stuck operation that ends after all is a record */
  ni_cb_stop(doubt);
  (void)ch;
  ni_finalize(idle);
  ni_finalize(ctx);
  text = log_text();
  CHECK(lines_with(text, "\"coll_perf\"", "\"coll_sn\":4,") == 1);
  CHECK(ni_state_flags(slot_of(kernel)->state) & NI_OP_GIVEN_UP); /* in the black box it is no record */
  CHECK(lines_with(text, "\"incomplete\"", "\"sn\":2,") == 1 && lines_with(text, "\"incomplete\"", "\"sn\":3,") == 1);
}
static void long_in_flight_is_told_once(void **state) {
  (void)state;
  in_child(stuck_once, (const char *const[]){"NCCL_INSPECTOR_STUCK_SECONDS", "1",
                                             "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "-1", NULL});
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
        for (size_t j = 0; j < sizeof noise / sizeof *noise; j++) noise[j] = x = x * 6364136223846793005u + 1442695040888963407u;
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
  if (argc > 1) cmocka_set_test_filter(argv[1]); /* "*" is any text */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operations_without_a_line_give_their_slots_back),
      cmocka_unit_test(a_stale_channel_is_not_taken_for_one_of_the_next_life),
      cmocka_unit_test(a_closed_pool_gives_nothing),
      cmocka_unit_test(a_bit_of_nobody_does_not_keep_the_thread_awake),
      cmocka_unit_test(last_lines_wait_for_a_callback_on_its_way),
      cmocka_unit_test(interval_0_wakes_at_once),
      cmocka_unit_test(the_judge_knows_quiet_overtaken_late_and_rest),
      cmocka_unit_test(a_channel_is_in_the_record_or_late),
      cmocka_unit_test(a_chain_is_first_in_first_out),
      cmocka_unit_test(unknown_bytes),
      cmocka_unit_test(long_in_flight_is_told_once),
#ifdef NI_STRESS
      cmocka_unit_test(a_channel_is_late_when_retired_halfway),
      cmocka_unit_test(the_free_list_notices_a_slot_that_came_back),
      cmocka_unit_test(the_chunk_of_the_loser_comes_back),
      cmocka_unit_test(a_walk_meets_all_while_the_pool_grows),
#endif
      cmocka_unit_test(room_that_was_reserved_is_there),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
