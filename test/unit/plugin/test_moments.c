/*
 * What happens at a moment that comes once in years: a mask that changes between two callbacks, a counter
 * that goes back, a thread that does not run between two instructions.
 */
#include "core_child.h"

#include "plugin/dump/closing.h"
#include "plugin/dump/thread.h"

/*
 * ---- a mask without KernelCh between two that have it: a task made then has no channels, whatever it looks
 * like ----
 */

static void mask_was_off(void) {
  void *ctx = open_comm(1);
  struct ni_op *op = slot_of(start_op(ctx, 0, 2));
  CHECK((mask & NI_EV_KERNEL_CH) && op->mask_doubt == NI_MASK_SURE);
  ni_masks_set(NI_KINDS_STANDARD & ~NI_KINDS(NI_EVENT_KERNEL_CH)); /* no operation starts meanwhile */
  ni_masks_set(NI_KINDS_STANDARD);
  CHECK(mask & NI_EV_KERNEL_CH);
  CHECK(slot_of(start_op(ctx, 1, 2))->mask_doubt == NI_MASK_MAYBE_NONE);
  ni_finalize(ctx);
}
static void a_mask_that_was_off_is_remembered(void **state) {
  (void)state;
  in_child(mask_was_off, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* ---- an unknown count is never reached: 255 stops say nothing ---- */

static void many_stops(void) {
  void *ctx = open_comm(1), *op = start_op(ctx, 0, 0);
  ni_cb_stop(op);
  for (uint64_t i = 0; i < NI_WANT_UNKNOWN + 1u; i++) {
    void *h = ni_cb_channel_start(op, (uint32_t)i % NI_CHANNELS, 1000 * (i + 1));
    ni_cb_channel_stamp(h, 1000 * (i + 1) + 100);
    ni_cb_stop(h);
    CHECK(ni_op_in_flight(slot_of(op)->state));
  }
  CHECK(ni_load_rlx(&comm_at(ctx)->done.head) == 0); /* on the watch list, and on no other */
  ni_finalize(ctx);
}
static void an_unknown_count_is_never_reached(void **state) {
  (void)state;
  in_child(many_stops, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* ---- a counter that goes back in the middle of an operation (a VM that was moved) ---- */

static void counter_went_back(void) {
  void *ctx = open_comm(1), *op = start_op(ctx, 0, 1), *ch = ni_cb_channel_start(op, 0, 0);
  struct ni_op *slot = slot_of(op);
  ni_store_rlx(&slot->ticks_first, ni_load_rlx(&slot->ticks_first) + (UINT64_C(1) << 40));
  ni_cb_stop(ch);
  ni_cb_stop(op);
  void *self = start_op(ctx, 1, 0); /* timed by its bracket */
  slot_of(self)->ticks_start += UINT64_C(1) << 40;
  ni_cb_stop(self);
  ni_finalize(ctx);
  char *text = log_text();
  CHECK(lines_with(text, "\"coll_sn\":0,", "\"coll_exec_time_ns\":0,") == 1);
  CHECK(lines_with(text, "\"coll_sn\":1,", "\"coll_exec_time_ns\":0,") == 1);
}
static void no_time_runs_backwards(void **state) {
  (void)state;
  in_child(counter_went_back, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* One that seems to end in the future, because the counter went back since, is not waited for until then. */
static void ended_in_the_future(void) {
  void *ctx = open_comm(1), *op = start_op(ctx, 0, 1);
  struct ni_dump *d = ni_g.dump;
  ni_cb_stop(op);
  (void)ni_collect(&d->drain);
  struct ni_kind_writer *k = &d->w.comms->kind[NI_KIND_COLL];
  d->drain.patient = 1;
  d->w.now_ns = ni_monotonic_ns();
  /* waits for its network operations */
  CHECK(k->todo.n == 1 && ni_drain_format(&d->drain) == 0 && k->todo.n == 1);
  slot_of(op)->ticks_stop += UINT64_C(1) << 40;
  CHECK(ni_drain_format(&d->drain) == 0 && k->todo.n == 0 && k->held.n == 1);
}
static void patience_has_an_end(void **state) {
  (void)state;
  in_child(ended_in_the_future,
           (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", "NCCL_INSPECTOR_EVENTS", "light",
                                 NULL});
}

/* From 2.31 on KernelChs come from a thread of their own: all may be over before the progress thread takes
 * the network operations over. Up to 2.30 they come after those, from the same thread. */
static void finished_before_its_network(void) {
  struct ni_dump *d = NULL;
  static const int releases[] = {23007, 23100};
  for (int i = 0; i < 2; i++) {
    void *ctx = open_comm((uint64_t)i + 1), *op = start_op(ctx, 0, 1), *ch = ni_cb_channel_start(op, 0, 1000);
    d = ni_g.dump;
    ni_g.nccl_version = releases[i];
    ni_cb_channel_stamp(ch, 1100);
    ni_cb_stop(ch);
    ni_cb_stop(op);
    (void)ni_tick(d, 0, NI_END_NONE);
    struct ni_kind_writer *k = &d->w.comms->kind[NI_KIND_COLL];
    CHECK(k->todo.n + k->account->written + k->in_block == 1 && k->todo.n == (uint32_t)i);
    if (i) {
      void *net = ni_cb_proxy_start(ctx, &(struct ni_proxy_start){.parent = op, .pid = getpid()});
      struct ni_proxy_slot *x =
          ni_arena_proxy(&ni_g.arena, ni_payload_index(ni_handle_payload(net, ni_g.nonce)));
      CHECK(ni_load_rlx(&x->flags) & NI_EVF_PARENT);
      ni_cb_stop(net);
      sleep_ms(NI_PATIENCE_MS);
      (void)ni_tick(d, 0, NI_END_NONE);
      CHECK(k->todo.n == 0);
    }
    ni_finalize(ctx);
  }
}
static void network_operations_find_their_operation(void **state) {
  (void)state;
  in_child(finished_before_its_network,
           (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", "NCCL_INSPECTOR_EVENTS",
                                 "coll,kernelch,proxyop", NULL});
}

/*
 * Its progress thread is another's, too, and has not come to the last channel when the communicator is
 * finalized.
 */
static void finalized_before_its_last_channel(void) {
  void *ctx = open_comm(1), *other = open_comm(2), *op = start_op(ctx, 0, 2), *unknown = start_op(ctx, 1, 0);
  void *first = ni_cb_channel_start(op, 0, 1000);
  ni_cb_stop(op);
  ni_cb_stop(unknown);
  ni_cb_channel_stamp(first, 2000);
  ni_cb_stop(first);
  uint64_t at = now_ms();
  ni_finalize(ctx);
  CHECK(now_ms() - at < 20); /* nobody waits */
  for (int i = 0; i < 2; i++) {
    sleep_ms(25);
    void *ch = ni_cb_channel_start(i ? unknown : op, 1, 3000 + 2000 * (uint64_t)i);
    ni_cb_channel_stamp(ch, 4000 + 2000 * (uint64_t)i);
    ni_cb_stop(ch);
  }
  sleep_ms(3 * NI_SETTLE_MS);
  /*
   * And one whose last channel never comes: not for ever, and not at all when nobody is left who could raise
   * it.
   */
  void *third = open_comm(3);
  ni_cb_stop(start_op(third, 0, 1));
  ni_finalize(third);
  sleep_ms(3 * NI_SETTLE_MS);
  ni_cb_stop(start_op(other, 0, 1));
  at = now_ms();
  ni_finalize(other);
  CHECK(now_ms() - at < NI_SETTLE_MS - 20);
  char *text = log_text();
  CHECK(lines_with(text, "\"id\":\"0x1\"", "\"coll_perf\"") == 2 &&
        lines_with(text, "\"coll_sn\":0,", "kernel_gpu") == 1);
  CHECK(lines_with(text, "\"id\":\"0x1\"", "\"incomplete\":{") == 0 &&
        lines_with(text, "\"late\"", "stop_gpu") == 0);
  CHECK(lines_with(text, "\"id\":\"0x3\"", "\"incomplete\":{") == 1);
  CHECK(lines_with(text, "\"id\":\"0x2\"", "\"incomplete\":{") == 1);
}
static void a_shared_thread_may_finish_it(void **state) {
  (void)state;
  in_child(finalized_before_its_last_channel, NULL);
}

/* ---- rare moments, made at the point between two effects (stress builds) ---- */

#ifdef NI_STRESS
/* Between the exchange that finished an operation and its push, the poller does not run for longer than the
 * last lines wait for it. */
static _Atomic int held;
static pthread_t slow;
static void hold_up(void) {
  static int n;
  if (!pthread_equal(pthread_self(), slow) || n++ == 0)
    return; /* the first point lies before the exchange */
  ni_testpoint_hook = NULL;
  ni_store_rel(&held, 1);
  sleep_ms(4 * NI_SETTLE_MS);
}
static void *stop_slowly(void *ch) {
  slow = pthread_self();
  ni_testpoint_hook = hold_up;
  ni_cb_stop(ch);
  return NULL;
}
static void push_after_finalize(void) {
  pthread_t t;
  void *ctx = open_comm(1), *op = start_op(ctx, 0, 1), *ch = ni_cb_channel_start(op, 0, 1000);
  uint32_t slot = ni_payload_index(ni_handle_payload(op, ni_g.nonce));
  ni_cb_stop(op);
  ni_cb_channel_stamp(ch, 1100);
  CHECK(pthread_create(&t, NULL, stop_slowly, ch) == 0);
  while (!ni_load_acq(&held))
    sleep_ms(1);
  ni_finalize(ctx);
  void *next = open_comm(2), *other = start_op(next, 0, 1);
  CHECK(slot != ni_payload_index(ni_handle_payload(other, ni_g.nonce)));
  pthread_join(t, NULL);
  CHECK(ni_op_in_flight(slot_of(other)->state) && ni_load_rlx(&comm_at(next)->done.head) == 0);
}
static void a_late_push_meets_no_other_communicator(void **state) {
  (void)state;
  in_child(push_after_finalize, NULL);
}

/* Two operations find no slot at once, and the later one is the first to say so: the gap has both. */
static void *full;
static void another_is_lost(void) {
  ni_testpoint_hook = NULL;
  start_op(full, 1001, 1);
}
static void lost_at_once(void) {
  full = open_comm(1);
  struct ni_comm *c = comm_at(full);
  struct ni_pool *p = &c->kind[NI_KIND_COLL].pool;
  for (uint64_t i = 0; ni_load_rlx(&p->bump) >> 32; i++)
    run_op(full, i, 0);
  uint64_t n = ni_load_rlx(&c->kind[NI_KIND_COLL].started);
  ni_testpoint_hook = another_is_lost;
  start_op(full, 1000, 1);
  CHECK(ni_testpoint_hook == NULL);
  ni_finalize(full);
  char range[96];
  snprintf(range, sizeof range, "\"count\":2,\"cause\":\"pool_full\",\"rec_sn_from\":%d,\"rec_sn_to\":%d",
           (int)n, (int)n + 1);
  CHECK(lines_with(log_text(), "\"gap\":{", range) == 1);
}
static void a_gap_has_all_that_are_counted(void **state) {
  (void)state;
  in_child(lost_at_once,
           (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", "NCCL_INSPECTOR_POOL_GROW", "0",
                                 "NCCL_INSPECTOR_COLL_POOL_SIZE", "64", NULL});
}

/* While the last lines of one communicator are made, another calls a collective that NCCL shows by its call
 * alone, and is finalized. */
static void *leaving;
static void call_and_leave(void) {
  ni_testpoint_hook = NULL;
  ni_cb_stop(
      ni_cb_event_start(leaving, NI_EVENT_COLL_API,
                        &(struct ni_event_start){.func = "AllGather", .datatype = "ncclInt8", .count = 8}));
  struct ni_comm *c = comm_at(leaving);
  ni_store_rel(&c->state, ni_comm_state((uint32_t)ni_load_acq(&c->state), NI_COMM_CLOSING));
}
static void leaves_meanwhile(void) {
  void *ctx = open_comm(1);
  leaving = open_comm(2);
  run_op(ctx, 0, 1000);
  run_op(leaving, 0, 1000);
  ni_testpoint_hook = call_and_leave;
  ni_finalize(ctx);
  CHECK(ni_testpoint_hook == NULL);
  ni_dump_finalize(ni_g.dump, 1);
  char *text = log_text();
  CHECK(lines_with(text, "\"coll_perf\"", "\"coll_src\":\"api\"") == 1);
  CHECK(lines_with(text, "\"comm_end\"", "destroy") == 2);
}
static void one_that_leaves_meanwhile_loses_nothing(void **state) {
  (void)state;
  in_child(leaves_meanwhile, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}
#endif

int main(int argc, char **argv) {
  if (argc > 1)
    cmocka_set_test_filter(argv[1]); /* "*" is any text */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_mask_that_was_off_is_remembered),
      cmocka_unit_test(an_unknown_count_is_never_reached),
      cmocka_unit_test(no_time_runs_backwards),
      cmocka_unit_test(patience_has_an_end),
      cmocka_unit_test(network_operations_find_their_operation),
      cmocka_unit_test(a_shared_thread_may_finish_it),
#ifdef NI_STRESS
      cmocka_unit_test(a_late_push_meets_no_other_communicator),
      cmocka_unit_test(a_gap_has_all_that_are_counted),
      cmocka_unit_test(one_that_leaves_meanwhile_loses_nothing),
#endif
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
