/*
 * The judge of what no callback will complete, driven by its own clock; its race with the poller; what is
 * told of a hang.
 */
#include "core_child.h"

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

static void judge_rules(void) {
  void *ctx = open_comm(1), *open = start_op(ctx, 0, 0); /* 0 channels: CollNet, the count is unknown */
  struct ni_dump *d = ni_g.dump;
  struct ni_comm_writer *s = side_of(d);
  struct ni_comm *c = comm_at(ctx);
  struct ni_late_stop late;
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
  CHECK(ni_late_pop(&ni_g.late, &late) && late.sn == 1 && late.rec_sn == 1 && late.channel == 5 &&
        late.stop_gpu_ns == 5100);
  /*
   * Written, the slots rest, because such a channel may still come; 5 s and 50 ticks later they begin another
   * life.
   */
  struct ni_op *slot = slot_of(second);
  uint32_t gen = ni_state_gen(slot->state);
  CHECK(ni_drain_format(&d->drain) == 0);
  /* the black box has it */
  CHECK((ni_state_flags(slot->state) & (NI_OP_RETIRED | NI_OP_SETTLED)) == NI_OP_RETIRED);
  ni_settle_block(&d->drain);
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
    while (ni_load_acq(&round_no) != i) {}
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
  struct ni_late_stop late;
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
    for (int k = i % 97; k; k--)
      __asm__ volatile("");
    while (judged(d, s, 5000) == 0) {
      slot->seen_prog = ni_load_rlx(&slot->prog);
      slot->seen_ms = 1;
    }
    uint32_t in_record = ni_prog_stopped(ni_load_acq(&slot->prog));
    while (ni_load_acq(&done_no) != i) {}
    uint64_t late_now = ni_load_rlx(&c->kind[NI_KIND_COLL].late) - late_before;
    CHECK(in_record + late_now >= 2);
    (void)ni_late_pop(&ni_g.late, &late);
    CHECK(ni_drain_format(&d->drain) == 0);
    ni_settle_block(&d->drain);
    d->drain.judge_ms += 6000;
    d->drain.ticks += 100;
    ni_settle_release(&d->drain);
  }
  pthread_join(t, NULL);
  ni_finalize(ctx);
}
static void a_channel_is_in_the_record_or_late(void **state) {
  (void)state;
  in_child(retired_meanwhile,
           (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0",
                                 "NCCL_INSPECTOR_DUMP_CONTROL_LINES", "0", NULL});
}

#ifdef NI_STRESS
/* A rare moment, made at the point between two effects. */
static void *hooked_op;

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

#endif

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
  /* from here on nobody can know whether a channel will come */
  __atomic_fetch_and(&mask, ~NI_EV_KERNEL_CH, __ATOMIC_RELAXED);
  void *doubt = start_op(ctx, 5, 1);
  for (int i = 0; i < 100 && lines_with(log_text(), "\"stuck\"", "\"finishing\"") == 0; i++)
    sleep_ms(100);
  sleep_ms(1500); /* twice would be seen by now */
  char *text = log_text();
  CHECK(lines_with(
            text, "\"stuck\":{\"kind\":\"coll\",\"func\":\"AllReduce\",\"sn\":2,",
            "\"state\":\"kernel\",\"datatype\":\"ncclFloat32\",\"root\":0,\"channels_open\":\"0x20\"") == 1);
  CHECK(lines_with(text, "\"stuck\"", "\"sn\":3,") == 1 &&
        lines_with(text, "\"sn\":3,", "\"state\":\"launched\"") == 1);
  CHECK(lines_with(text, "\"stuck\"", "\"sn\":4,") == 1 &&
        lines_with(text, "\"sn\":4,", "\"state\":\"finishing\"") == 1);
  CHECK(lines_with(text, "\"stuck\"", "stuck") == 4);
  /*
   * and how much there is in flight: no other line would say it of a communicator on which nothing has ever
   * finished
   */
  CHECK(lines_with(text, "{\"id\":\"0x2\"", "\"final\":false,\"coll\":{\"started\":1,\"written\":0,") == 1);
  ni_cb_stop(open); /* and a stuck operation that ends after all is a record */
  ni_cb_stop(doubt);
  (void)ch;
  ni_finalize(idle);
  ni_finalize(ctx);
  text = log_text();
  CHECK(lines_with(text, "\"coll_perf\"", "\"coll_sn\":4,") == 1);
  CHECK(ni_state_flags(slot_of(kernel)->state) & NI_OP_GIVEN_UP); /* in the black box it is no record */
  CHECK(lines_with(text, "\"incomplete\"", "\"sn\":2,") == 1 &&
        lines_with(text, "\"incomplete\"", "\"sn\":3,") == 1);
}
static void long_in_flight_is_told_once(void **state) {
  (void)state;
  in_child(stuck_once,
           (const char *const[]){"NCCL_INSPECTOR_STUCK_SECONDS", "1",
                                 "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "-1", NULL});
}

int main(int argc, char **argv) {
  if (argc > 1)
    cmocka_set_test_filter(argv[1]); /* "*" is any text */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_judge_knows_quiet_overtaken_late_and_rest),
      cmocka_unit_test(a_channel_is_in_the_record_or_late),
      cmocka_unit_test(long_in_flight_is_told_once),
#ifdef NI_STRESS
      cmocka_unit_test(a_channel_is_late_when_retired_halfway),
#endif
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
