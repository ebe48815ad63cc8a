/*
 * Symmetric kernels and tags, as NCCL 2.31 and later raise them (docs/nccl-callbacks.md 3.9): what is waited
 * for, whose time counts, and that what they hold beside their slot (plugin/slots/beside/annex.h) comes back.
 */
#include "test/unit/plugin/core_child.h"

#include "plugin/callbacks/callbacks_call.h"
#include "plugin/slots/beside/annex.h"

static const char *const no_thread[] = {"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL};

static void *open_v7(void) {
  void *ctx = NULL;
  struct ni_init_args a = {.comm_hash = 1, .comm_name = "core", .n_nodes = 1, .n_ranks = 2};
  ni_init(7, &ctx, &mask, &a);
  ni_g.mask_shifts_counts = ni_g.polls_in_any_order = 1; /* as NCCL 2.31, whose number nobody tells here */
  return ctx;
}

/* A Coll as v7 announces it. call: its CollApi's handle. */
static void *symmetric(void *ctx, uint64_t sn, unsigned channels, uint64_t tag, void *group, void *call) {
  struct ni_start d = {.sn = sn,
                       .func = "AllReduce",
                       .datatype = "ncclFloat32",
                       .algo = "RSxLD_AGxST",
                       .proto = "",
                       .count = 1024,
                       .nchannels = (uint8_t)channels,
                       .group = group,
                       .call = call};
  struct ni_start_v7 v7 = {true, "AllReduce_RSxLD_AGxST", tag};
  return ni_cb_op_start_v7(ctx, NI_KIND_COLL, &d, &v7);
}

static void *api_call(void *ctx, bool captured) {
  if (!captured)
    return ni_cb_call_note(ctx, NULL, "AllReduce", "ncclFloat32", 1024, 0, 0);
  struct ni_event_start s = {.func = "AllReduce", .datatype = "ncclFloat32", .count = 1024, .graph = true};
  return ni_cb_event_start(ctx, NI_EVENT_COLL_API, &s);
}

/*
 * A KernelCh of the three parts that NCCL raises: [from, a] initial_sync, [a, b] compute, [b, to] final_sync.
 */
static void channel_of_parts(void *op, uint32_t ch, uint64_t from, uint64_t a, uint64_t b, uint64_t to) {
  void *h = ni_cb_channel_start(op, ch, from), *part;
  const uint64_t at[] = {from, a, b, to};
  for (uint32_t i = 0; i < 3; i++) {
    if (at[i] == at[i + 1])
      continue; /* NCCL leaves out what has no length */
    part = ni_cb_phase_start(h, i, at[i]);
    ni_cb_phase_stamp(part, at[i + 1]);
    ni_cb_stop(part);
  }
  ni_cb_channel_stamp(h, to);
  ni_cb_stop(h);
}

/* ---- replays ---- */

static void replays(void) {
  void *ctx = open_v7(), *call = api_call(ctx, true);
  ni_cb_stop(call);
  for (uint64_t i = 0; i < 300; i++) {
    void *op = symmetric(ctx, i, 8, 5, ni_cb_group_start(ctx), call);
    ni_cb_stop(op);
    CHECK(ni_state_flags(ni_load_acq(&slot_of(op)->state)) & NI_OP_DONE);
    (void)ni_tick(ni_g.dump, 1, NI_END_NONE);
  }
  CHECK(ni_pool_high_water(&comm_at(ctx)->kind[NI_KIND_COLL].pool) < 20); /* slots and annexes go round */
  CHECK(ni_pool_high_water(&comm_at(ctx)->annexes) < 20);
  ni_finalize(ctx);
  char *text = log_text();
  CHECK(lines_with(text, "\"symmetric\":true", "\"graph\":true") == 300);
  CHECK(lines_with(text, "\"coll_busbw_gbs\":null", "\"collective_cpu\"") == 300);
  CHECK(lines_with(text, "\"user_tag\":5", "\"coll_nchannels\":8") == 300);
  CHECK(lines_with(text, "\"prev_replay_ns\":", "\"coll_kernel\":\"AllReduce_RSxLD_AGxST\"") == 299);
  CHECK(lines_with(text, "\"initial_sync_ns\"", "coll_perf") == 0);
}
static void a_replay_is_over_with_its_bracket(void **state) {
  (void)state;
  in_child(replays, no_thread);
}

/* ---- parts ---- */

static void parts(void) {
  void *ctx = open_v7();
  CHECK(mask & NI_EV_KERNEL_PHASE);
  uint64_t t = ni_monotonic_ns() - 1000000000;
  void *a = symmetric(ctx, 0, 2, 0, ni_cb_group_start(ctx), api_call(ctx, false));
  channel_of_parts(a, 0, t, t + 300, t + 900, t + 1000);
  channel_of_parts(a, 1, t + 100, t + 400, t + 700, t + 800);
  ni_cb_stop(a);
  /* No wait, no end: the whole is compute. */
  void *b = symmetric(ctx, 1, 1, 0, ni_cb_group_start(ctx), api_call(ctx, false));
  channel_of_parts(b, 0, t + 2000, t + 2000, t + 2500, t + 2500);
  ni_cb_stop(b);
  /* Stamps that an earlier work has left: no parts, and the time stays. */
  void *c = symmetric(ctx, 2, 1, 0, ni_cb_group_start(ctx), api_call(ctx, false));
  channel_of_parts(c, 0, t + 3000, t + 300, t + 900, t + 3100);
  ni_cb_stop(c);
  /* A classic kernel's parts say nothing: NCCL is told so with no handle. */
  void *d = start_op(ctx, 3, 1), *h = ni_cb_channel_start(d, 0, t + 4000);
  CHECK(ni_cb_phase_start(h, 0, t + 4000) == NULL);
  ni_cb_channel_stamp(h, t + 4100);
  ni_cb_stop(h);
  ni_cb_stop(d);
  /* Foreign, forged and outdated handles change nothing. */
  CHECK(ni_cb_phase_start(a, 0, t) == NULL && ni_cb_phase_start(NULL, 1, t) == NULL &&
        ni_cb_phase_start(h, 7, t) == NULL);
  ni_cb_phase_stamp(h, t);
  ni_cb_phase_stamp((void *)(uintptr_t)UINT64_C(0xe123456789abcdef), t);
  ni_cb_phase_stamp((void *)(uintptr_t)UINT64_C(0xf123456789abcdef), t);
  ni_finalize(ctx);
  char *text = log_text();
  CHECK(lines_with(text, "\"coll_exec_time_ns\":1000,",
                   "\"initial_sync_ns\":400,\"compute_ns\":500,\"final_sync_ns\":100") == 1);
  CHECK(lines_with(text, "\"coll_exec_time_ns\":500,",
                   "\"initial_sync_ns\":0,\"compute_ns\":500,\"final_sync_ns\":0") == 1);
  CHECK(lines_with(text, "coll_perf", "\"initial_sync_ns\"") == 2);
  CHECK(lines_with(text, "coll_perf", "\"kernel_gpu\"") == 4);
}
static void parts_add_up(void **state) {
  (void)state;
  in_child(parts,
           (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", "NCCL_INSPECTOR_EVENTS",
                                 "standard,kernelphase", NULL});
}

/* ---- several calls in one kernel ---- */

static void fused(void) {
  void *ctx = open_v7(), *group = ni_cb_group_start(ctx);
  uint64_t t = ni_monotonic_ns() - 1000000000;
  void *head = symmetric(ctx, 0, 2, 1, group, api_call(ctx, false));
  void *tail = symmetric(ctx, 1, 0, 2, group, api_call(ctx, false));
  void *alone = symmetric(ctx, 2, 1, 3, ni_cb_group_start(ctx), api_call(ctx, false));
  ni_cb_stop(head);
  ni_cb_stop(tail);
  ni_cb_stop(alone);
  (void)ni_tick(ni_g.dump, 1, NI_END_NONE);
  CHECK(lines_with(log_text(), "coll_perf", "symmetric") == 0); /* the tail waits for its head */
  channel(alone, 0, t + 5000);
  (void)ni_tick(ni_g.dump, 1, NI_END_NONE);
  CHECK(lines_with(log_text(), "coll_perf", "\"user_tag\":3") == 1); /* and keeps nobody else */
  channel(head, 0, t);
  channel(head, 1, t + 50);
  /* A head that never ends: its tail ends with the communicator, by its own bracket. */
  group = ni_cb_group_start(ctx);
  void *lost = symmetric(ctx, 3, 2, 4, group, api_call(ctx, false)),
       *left = symmetric(ctx, 4, 0, 5, group, api_call(ctx, false));
  ni_cb_stop(lost);
  ni_cb_stop(left);
  ni_finalize(ctx);
  char *text = log_text();
  CHECK(lines_with(text, "\"user_tag\":1", "\"coll_exec_time_ns\":150,") == 1);
  CHECK(lines_with(text, "\"user_tag\":2", "\"coll_exec_time_ns\":150,") == 1);
  CHECK(lines_with(text, "\"shared_span\":true", "\"coll_busbw_gbs\":null") == 2);
  CHECK(lines_with(text, "\"user_tag\":3", "shared_span") == 0);
  CHECK(lines_with(text, "\"incomplete\"", "\"user_tag\":4") == 1);
  CHECK(lines_with(text, "\"user_tag\":5", "\"collective_cpu\"") == 1 &&
        lines_with(text, "\"user_tag\":5", "shared_span") == 0);
}
static void calls_of_one_kernel_share_its_time(void **state) {
  (void)state;
  in_child(fused, no_thread);
}

/* ---- what nobody knows ---- */

/* Through v4 no call tells whether it was captured: neither hanging nor lost. */
static void unknown(void) {
  void *ctx = open_comm(1);
  ni_g.shows_symmetric = 1;
  struct ni_start d = {.func = "AllReduce",
                       .datatype = "ncclFloat32",
                       .algo = "LL",
                       .proto = "",
                       .count = 1024,
                       .nchannels = 8};
  void *op = ni_cb_op_start(ctx, NI_KIND_COLL, &d);
  ni_cb_stop(op);
  CHECK(ni_state_want(ni_load_acq(&slot_of(op)->state)) == NI_WANT_UNKNOWN &&
        slot_of(op)->mask_doubt == NI_MASK_OFF);
  CHECK(slot_of(op)->origin & NI_OP_SYMMETRIC);
  ni_finalize(ctx);
  CHECK(lines_with(log_text(), "\"symmetric\":true", "\"collective_cpu\"") == 1);
}
static void an_unknown_one_is_over_when_it_is_quiet(void **state) {
  (void)state;
  in_child(unknown, no_thread);
}

/* ---- NCCL's mask ---- */

static void kernel_ch_stays(void) {
  void *ctx = open_v7();
  int before = mask, found, asked;
  CHECK(!ni_masks_set(NI_KINDS_STANDARD & ~NI_KINDS(NI_EVENT_KERNEL_CH)) && mask == before);
  CHECK(ni_masks_set(NI_KINDS_STANDARD | NI_KINDS(NI_EVENT_GROUP)) && mask != before); /* all else is free */
  before = mask;
  CHECK(!ni_masks_changed(&found, &asked));
  mask = 1; /* as RAS does */
  CHECK(ni_masks_changed(&found, &asked) && found == 1 && asked == before &&
        !ni_masks_changed(&found, &asked));
  mask = before;
  CHECK(ni_masks_changed(&found, &asked));
  /* From here on the communicator's times are not believed, and nothing is expected of it for sure. */
  struct ni_op *op = slot_of(start_op(ctx, 0, 2));
  CHECK(ni_state_want(ni_load_acq(&op->state)) == NI_WANT_UNKNOWN &&
        ni_load_rlx(&op->bad) == 1u << NI_BAD_COUNTERS_APART);
  /* A symmetric kernel has counts of its own. */
  op = slot_of(symmetric(ctx, 1, 2, 0, NULL, api_call(ctx, false)));
  CHECK(ni_state_want(ni_load_acq(&op->state)) == 2 && ni_load_rlx(&op->bad) == 0);
  /* A communicator that is made now is as good as new. */
  void *other = open_comm(2);
  CHECK(ni_state_want(ni_load_acq(&slot_of(start_op(other, 0, 2))->state)) == 2);
  ni_finalize(other);
  ni_finalize(ctx);
  CHECK(ni_masks_set(NI_KINDS_STANDARD & ~NI_KINDS(NI_EVENT_KERNEL_CH))); /* nobody lives */
}
static void kernel_ch_is_fixed_while_one_lives(void **state) {
  (void)state;
  in_child(kernel_ch_stays, no_thread);
}

/* ---- tags without memory for them ---- */

static void no_annex(void) {
  void *ctx = open_v7();
  comm_at(ctx)->annexes.fixed = 1;
  void *op = symmetric(ctx, 0, 0, 9, NULL, api_call(ctx, false));
  ni_cb_stop(op);
  ni_finalize(ctx);
  CHECK(lines_with(log_text(), "coll_perf", "user_tag") == 0 &&
        lines_with(log_text(), "dump_stats", "\"no_annex\":1") >= 1);
}
static void a_tag_that_found_no_memory_is_counted(void **state) {
  (void)state;
  in_child(no_annex, no_thread);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_replay_is_over_with_its_bracket),
                                     cmocka_unit_test(parts_add_up),
                                     cmocka_unit_test(calls_of_one_kernel_share_its_time),
                                     cmocka_unit_test(an_unknown_one_is_over_when_it_is_quiet),
                                     cmocka_unit_test(kernel_ch_is_fixed_while_one_lives),
                                     cmocka_unit_test(a_tag_that_found_no_memory_is_counted)};
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
