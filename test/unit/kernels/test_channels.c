/*
 * KernelChs of which several are open on one channel and direction at once, as NCCL raises them from 2.31 on
 * for works that it has fused into one batch of a kernel (plugin/slots/beside/chan_more.h).
 */
#include "test/unit/plugin/core_child.h"

#include "plugin/slots/beside/chan_more.h"

static void end_channel(void *ch, uint64_t gpu_ns) {
  ni_cb_channel_stamp(ch, gpu_ns);
  ni_cb_stop(ch);
}

/*
 * A device's clock, in step with the host's and a second behind it, once it has passed `ns`. A stamp taken
 * before its operation began contradicts the host where the thread had to wait in between (format/apart.h);
 * one ahead of the clock lies before the last stop on its channel where the host was fast
 * (callbacks_channel.c).
 */
static uint64_t device_past(uint64_t ns) {
  uint64_t now;
  while ((now = ni_monotonic_ns() - 1000000000) <= ns)
    continue;
  return now;
}

static void several(void) {
  void *ctx = open_comm(1), *op[4], *ch[4][2];
  struct ni_comm *c = comm_at(ctx);
  for (int i = 0; i < 4; i++)
    op[i] = start_op(ctx, (uint64_t)i, 2);
  uint64_t gpu = device_past(0);
  for (int i = 0; i < 4; i++)
    for (unsigned k = 0; k < 2; k++)
      CHECK((ch[i][k] = ni_cb_channel_start(op[i], k, gpu + (uint64_t)i)) != NULL);
  CHECK(ni_handle_kind(ch[0][0]) == NI_H_CHANNEL && ni_handle_kind(ch[1][0]) == NI_H_MORE &&
        ch[2][1] != ch[3][1]);
  uint64_t who = ni_handle_payload(op[2], ni_g.nonce);
  int32_t above;
  CHECK(ni_more_channels(c, who, &above) == 3 && above == 0);
  for (int i = 0; i < 4; i++)
    ni_cb_stop(op[i]);
  /* In another order than they began: a pass of NCCL's thread may meet the later work's end first. */
  static const int order[] = {2, 0, 3, 1};
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 4; i++)
      end_channel(ch[order[i]][k], gpu + 5000 + (uint64_t)order[i]);
  for (int i = 0; i < 4; i++) {
    struct ni_op *o = slot_of(op[i]);
    CHECK((ni_state_flags(ni_load_acq(&o->state)) & NI_OP_DONE) && ni_load_rlx(&o->bad) == 0);
    CHECK(ni_load_rlx(&o->gpu_start_ns) == gpu + (uint64_t)i &&
          ni_load_rlx(&o->gpu_stop_ns) == gpu + 5000 + (uint64_t)i);
  }
  CHECK(ni_more_channels(c, who, &above) == 0 && ni_load_rlx(&ni_g.stray[NI_STRAY_DOUBLE_STOP]) == 0);
  end_channel(ch[2][0], gpu + 9000); /* once more: stamp and stop */
  CHECK(ni_load_rlx(&ni_g.stray[NI_STRAY_DOUBLE_STOP]) == 2);
  uint32_t slots = ni_pool_high_water(&c->more);
  uint64_t over = gpu + 5003;
  for (uint64_t i = 4; i < 200; i++) { /* the slots go round */
    void *a = start_op(ctx, i, 1), *b = start_op(ctx, i, 1);
    uint64_t at = device_past(over);
    void *x = ni_cb_channel_start(a, 0, at), *y = ni_cb_channel_start(b, 0, at);
    ni_cb_stop(a);
    ni_cb_stop(b);
    over = at + 20;
    end_channel(x, over);
    end_channel(y, over);
  }
  CHECK(ni_pool_high_water(&c->more) == slots);
  ni_finalize(ctx);
  char *text = log_text();
  CHECK(lines_with(text, "\"coll_perf\"", "kernel_gpu") == 2 * 196 + 4);
  CHECK(lines_with(text, "\"strays\":{\"double_stop\":2}", "0x0") == 1);
}
static void several_are_open_on_one_channel(void **state) {
  (void)state;
  in_child(several, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* Verbose records have all channels, wherever they were open. */
static void traced(void) {
  void *ctx = open_comm(1), *a = start_op(ctx, 0, 1), *b = start_op(ctx, 1, 1);
  ni_trace_started(a);
  ni_trace_started(b); /* abi_body.h, the long way */
  void *x = ni_cb_channel_start(a, 7, 1000), *y = ni_cb_channel_start(b, 7, 1000);
  ni_trace_started(x);
  ni_trace_started(y);
  ni_cb_stop(a);
  ni_cb_stop(b);
  ni_cb_channel_stamp(y, 2000);
  ni_trace_stamped(y);
  ni_cb_stop(y);
  end_channel(x, 2000);
  ni_finalize(ctx);
  CHECK(lines_with(log_text(), "\"coll_sn\":1,",
                   "\"channel_id\":7,\"kernel_start_sn\":2,\"kernel_stop_sn\":5,\"kernel_record_sn\":4") ==
        1);
}
static void a_trace_has_them(void **state) {
  (void)state;
  in_child(traced,
           (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", "NCCL_INSPECTOR_DUMP_VERBOSE", "1",
                                 NULL});
}

/* The arena has no slot: the operation is a record all the same, without a GPU time, and says why. */
static void no_slot(void) {
  void *ctx = open_comm(1), *a = start_op(ctx, 0, 1), *b = start_op(ctx, 1, 1);
  comm_at(ctx)->more.fixed = 1;
  void *x = ni_cb_channel_start(a, 0, 1000), *y = ni_cb_channel_start(b, 0, 1000);
  CHECK(ni_handle_kind(y) == NI_H_DROPPED);
  ni_cb_stop(a);
  ni_cb_stop(b);
  end_channel(y, 2000);
  end_channel(x, 2000);
  CHECK(ni_load_rlx(&slot_of(b)->bad) == 1u << NI_BAD_NO_STOP_STAMP && ni_load_rlx(&slot_of(a)->bad) == 0);
  ni_finalize(ctx);
  char *text = log_text();
  CHECK(lines_with(text, "\"coll_perf\"", "kernel_gpu") == 1 &&
        lines_with(text, "\"coll_perf\"", "kernel_cpu") == 1);
}
static void without_a_slot_there_is_no_gpu_time(void **state) {
  (void)state;
  in_child(no_slot, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* A KernelCh that never stops, of an operation that was given up, does not keep its place. */
static void given_up(void) {
  void *ctx = open_comm(1), *a = start_op(ctx, 0, 1);
  void *x = ni_cb_channel_start(a, 0, 1000);
  ni_cb_stop(a);
  CHECK(ni_handle_kind(ni_cb_channel_start(start_op(ctx, 1, 1), 0, 2000)) == NI_H_MORE);
  struct ni_op *o = slot_of(a);
  /* its rest is over */
  ni_store_rel(&o->state, ni_state_make(ni_state_gen(ni_load_acq(&o->state)) + 1, 0, 0));
  CHECK(ni_handle_kind(ni_cb_channel_start(start_op(ctx, 2, 1), 0, 3000)) == NI_H_CHANNEL);
  ni_cb_stop(x);
  CHECK(ni_load_rlx(&comm_at(ctx)->stray[NI_STRAY_DOUBLE_STOP]) == 1);
}
static void one_that_never_stops_gives_its_place(void **state) {
  (void)state;
  in_child(given_up, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* A network operation looks at its parent while that is finished, written, and its slot another operation's.
 * What it takes over is of one operation, or nothing. For the thread sanitizer, too. */
static void *_Atomic looked_at;
static _Atomic int looking = 1;
static void *look(void *ctx) {
  for (int i = 0; i < 3000 && ni_load_rlx(&looking); i++) {
    void *net =
        ni_cb_proxy_start(ctx, &(struct ni_proxy_start){.parent = ni_load_rlx(&looked_at), .pid = getpid()});
    if (!net) { /* none is free until their lines are made */
      sleep_ms(1);
      continue;
    }
    struct ni_proxy_slot *x =
        ni_arena_proxy(&ni_g.arena, ni_payload_index(ni_handle_payload(net, ni_g.nonce)));
    if (ni_load_rlx(&x->flags) & NI_EVF_PARENT)
      CHECK(x->parent_sn == x->parent_rec_sn && x->parent_kind == NI_KIND_COLL);
    ni_cb_stop(net);
  }
  return NULL;
}
static void recycled_under_its_eyes(void) {
  void *ctx = open_comm(1);
  struct ni_dump *d = ni_g.dump;
  pthread_t t;
  CHECK(pthread_create(&t, NULL, look, ctx) == 0);
  for (uint64_t i = 0; i < 500; i++) {
    void *op = start_op(ctx, i, 1);
    ni_store_rlx(&looked_at, op);
    ni_cb_stop(op);
    (void)ni_collect(&d->drain);
    if (i == 0)
      (void)ni_session_open(d);
    ni_gz_release(d->w.gz); /* nobody reads it */
    CHECK(ni_drain_format(&d->drain) == 0);
    ni_settle_block(&d->drain);
    (void)ni_events_collect(&d->drain);
    (void)ni_events_format(&d->drain);
  }
  ni_store_rlx(&looking, 0);
  pthread_join(t, NULL);
}
static void a_parent_is_one_operation(void **state) {
  (void)state;
  in_child(recycled_under_its_eyes,
           (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", "NCCL_INSPECTOR_EVENTS",
                                 "coll,proxyop", NULL});
}

/* RCCL's: channels from 64 on have no cell, and no bit among those that are open. */
static void wide(void) {
  void *ctx = open_comm(1), *ch[200];
  ni_g.most_channels = ni_most_channels(NI_LIBRARY_RCCL);
  struct ni_comm *c = comm_at(ctx);
  ni_store_rlx(&c->apart, UINT64_C(1) << 6); /* of channel 6, not of 70 */
  void *op = start_op(ctx, 0, 200);
  uint64_t who = ni_handle_payload(op, ni_g.nonce), gpu = device_past(0);
  int32_t above;
  for (uint32_t i = 0; i < 200; i++)
    CHECK((ch[i] = ni_cb_channel_start(op, i, gpu + i)) != NULL);
  CHECK(ni_handle_kind(ch[63]) == NI_H_CHANNEL && ni_handle_kind(ch[64]) == NI_H_MORE);
  CHECK(ni_more_channels(c, who, &above) == 0 && above == 136);
  ni_cb_stop(op);
  for (uint32_t i = 0; i < 200; i++)
    end_channel(ch[i], gpu + 5000 + i);
  struct ni_op *o = slot_of(op);
  CHECK((ni_state_flags(ni_load_acq(&o->state)) & NI_OP_DONE) && ni_load_rlx(&o->gpu_stop_ns) == gpu + 5199);
  CHECK(ni_load_rlx(&o->bad) == 1u << NI_BAD_COUNTERS_APART && ni_load_rlx(&o->gpu_start_ns) == gpu);
  op = start_op(ctx, 1, 0); /* 256 */
  for (uint32_t i = 0; i < 256; i++)
    end_channel(ni_cb_channel_start(op, i, gpu + 9000), gpu + 9100);
  CHECK(ni_prog_stopped(ni_load_rlx(&slot_of(op)->prog)) == 256 &&
        ni_load_rlx(&c->stray[NI_STRAY_BAD_CHANNEL]) == 0);
  ni_g.most_channels = ni_most_channels(NI_LIBRARY_NCCL); /* there it is a number that cannot be */
  CHECK(ni_cb_channel_start(op, 64, gpu) == NULL && ni_load_rlx(&c->stray[NI_STRAY_BAD_CHANNEL]) == 1);
}
static void channels_without_a_cell(void **state) {
  (void)state;
  in_child(wide, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channels_without_a_cell),
      cmocka_unit_test(several_are_open_on_one_channel),
      cmocka_unit_test(a_trace_has_them),
      cmocka_unit_test(without_a_slot_there_is_no_gpu_time),
      cmocka_unit_test(one_that_never_stops_gives_its_place),
      cmocka_unit_test(a_parent_is_one_operation),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
