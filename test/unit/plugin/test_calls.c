/*
 * The application's calls where no line of theirs is asked for: what they take, which of them become records,
 * and in what order.
 */
#include "core_child.h"

#include "plugin/drain/call_drain.h"

static void quietly(void (*fn)(void)) { /* without a dump thread: the looks and their clock are ours */
  in_child(fn, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", NULL});
}

/* As NCCL raises it: through the table of its interface. */
extern const struct ni_prof_vtable_v6 ncclProfiler_v6;
static void *start(void *ctx, struct ni_prof_descr_v6 d) {
  void *h = NULL;
  (void)ncclProfiler_v6.startEvent(ctx, &h, &d);
  return h;
}
static void *group_start(void *ctx) {
  return start(ctx, (struct ni_prof_descr_v6){.type = NI_EV_GROUP_API, .groupApi.groupDepth = 1});
}
static void state(void *h, enum ni_prof_state st) { (void)ncclProfiler_v6.recordEventState(h, st, NULL); }

static void *call_of(void *ctx, void *group, bool graph) {
  void *h = start(ctx,
                  (struct ni_prof_descr_v6){.type = NI_EV_COLL_API,
                                            .parentObj = group,
                                            .collApi.func = "AllReduce",
                                            .collApi.datatype = "ncclFloat32",
                                            .collApi.count = 256,
                                            .collApi.graphCaptured = graph});
  ni_cb_stop(h);
  return h;
}
static void *call(void *ctx, void *group) { return call_of(ctx, group, false); }

/* Its Coll, on no channel: it stays in flight. Its slot. */
static struct ni_op *coll(void *ctx, void *of) {
  static uint64_t sn;
  return slot_of(ni_cb_op_start(ctx, NI_KIND_COLL,
                                &(struct ni_start){.sn = sn++,
                                                   .func = "AllReduce",
                                                   .datatype = "ncclFloat32",
                                                   .count = 256,
                                                   .nchannels = 1,
                                                   .call = of}));
}

static struct ni_comm_writer *look(uint32_t at_ms) {
  struct ni_drain *d = &ni_g.dump->drain;
  d->judge_ms = at_ms;
  (void)ni_collect(d);
  (void)ni_events_collect(d);
  CHECK(ni_events_format(d) == 0);
  ni_events_judge(d, d->w->comms, NI_END_NONE);
  return d->w->comms;
}

static uint64_t recorded(const struct ni_comm_writer *s) {
  return s->comm->events.api_sn[ni_func_from_name("AllReduce")];
}
static uint64_t stray(enum ni_stray why) { return ni_load_rlx(&ni_g.stray[why]); }

static void followed(void) {
  void *ctx = open_comm(1);
  struct ni_event_store *st = &comm_at(ctx)->events;
  for (uint32_t i = 0; i < 100; i++) {
    void *group = group_start(ctx), *h = call(ctx, group);
    state(group, NI_ST_GROUP_API_START_END);
    state(group, NI_ST_GROUP_API_END_BEGIN);
    struct ni_op *op = coll(ctx, h);
    CHECK(op->call_sn == i && op->origin == NI_OP_CALLED);
    ni_cb_stop(group);
  }
  struct ni_comm_writer *s = look(1);
  (void)look(100000);
  CHECK(ni_pool_capacity(&st->events) == 0 && recorded(s) == 0 && s->ev.wait.n == 0);
  CHECK(ni_load_rlx(&st->launches) == NI_LAUNCHES_IN_GROUP);
  ni_cb_stop(start(ctx,
                   (struct ni_prof_descr_v6){
                       .type = NI_EV_P2P_API, .p2pApi.func = "Send", .p2pApi.datatype = "ncclInt8"}));
  void *captured = call_of(ctx, NULL, true);
  CHECK(ni_pool_capacity(&st->events) == 0 && coll(ctx, captured)->origin == (NI_OP_CALLED | NI_OP_REPLAYED));
  CHECK(coll(ctx, captured)->call_sn == 100); /* at every replay */
  for (int why = 0; why < NI_STRAY_COUNT; why++)
    CHECK(stray((enum ni_stray)why) == 0 && ni_load_rlx(&comm_at(ctx)->stray[why]) == 0);
}
static void a_call_with_a_coll_takes_no_memory(void **st) {
  (void)st;
  quietly(followed);
}

static void hidden(void) {
  void *ctx = open_comm(1), *group = group_start(ctx), *h = call(ctx, group);
  struct ni_comm_writer *s = look(1);
  /* NCCL may be connecting: its group is open */
  CHECK(look(5000) && look(9000) && recorded(s) == 0 && s->ev.wait.n == 0);
  /* shows that this communicator launches in its groups */
  coll(ctx, call(ctx, group));
  ni_cb_stop(group);
  (void)look(10000);
  CHECK(s->ev.wait.n == 1 && ni_pool_high_water(&s->comm->kind[NI_KIND_COLL].pool) == 2); /* the box has it */
  (void)look(10999);
  CHECK(recorded(s) == 0);
  (void)look(11000);
  CHECK(recorded(s) == 1 && s->ev.wait.n == 0);
  (void)look(20000);
  CHECK(recorded(s) == 1 && ni_load_rlx(&s->comm->stray[NI_STRAY_LATE_CALL]) == 0);
  /* premature, and told */
  CHECK(coll(ctx, h)->call_sn == 0 && ni_load_rlx(&s->comm->stray[NI_STRAY_LATE_CALL]) == 1);
}
static void a_call_without_one_is_a_record_after_a_second(void **st) {
  (void)st;
  quietly(hidden);
}

/*
 * Launched after its group's stop: only a later call of another group makes it certain that a call has no
 * Coll.
 */
static void launched_later(void) {
  void *ctx = open_comm(1), *group = group_start(ctx), *h = call(ctx, group);
  ni_cb_stop(group);
  struct ni_comm_writer *s = look(1);
  CHECK(look(30000) && recorded(s) == 0);
  coll(ctx, h);
  CHECK(look(100000) && recorded(s) == 0 && ni_load_rlx(&s->comm->events.launches) == NI_LAUNCHES_LATER);
  group = group_start(ctx);
  call(ctx, group);
  ni_cb_stop(group);
  CHECK(look(100100) && look(130000) && recorded(s) == 0);
  group = group_start(ctx);
  call(ctx, group);
  CHECK(look(130001) && recorded(s) == 1);
}
static void the_newest_call_may_be_launched_later(void **st) {
  (void)st;
  quietly(launched_later);
}

/*
 * More calls than cells, none with a Coll but two, whose cells later calls take: records are in the order of
 * the calls.
 */
static void crowded(void) {
  void *ctx = open_comm(1), *h[40];
  for (uint32_t i = 0; i < 40; i++) {
    void *group = group_start(ctx);
    h[i] = call(ctx, group);
    if (i == NI_CALL_CELLS) {
      coll(ctx, h[1]);
      coll(ctx, h[3]);
    }
    ni_cb_stop(group);
  }
  CHECK(ni_pool_high_water(&comm_at(ctx)->events.events) == 40 - NI_CALL_CELLS - 2);
  (void)look(1);
  ni_finalize(ctx);
  char *text = log_text();
  CHECK(lines_with(text, "\"coll_src\":\"api\"", "") == 38);
  for (int sn = 0, of = 0; sn < 38; sn++, of++) {
    char number[40], its_call[40];
    while (of == 1 || of == 3)
      of++;
    snprintf(number, sizeof number, "\"coll_sn\":%d,", sn);
    snprintf(its_call, sizeof its_call, "\"call_sn\":%d,\"coll_src\":\"api\"", of);
    CHECK(lines_with(text, number, its_call) == 1);
  }
}
static void records_are_in_the_order_of_the_calls(void **st) {
  (void)st;
  quietly(crowded);
}

/*
 * A call that is being judged gets its Coll, and its cell has the next call before the judge has looked
 * again.
 */
static void cell_of_the_next(void) {
  void *ctx = open_comm(1), *group = group_start(ctx);
  void *old = call(ctx, group);
  ni_cb_stop(group);
  struct ni_comm_writer *s = look(1);
  CHECK(s->ev.wait.n == 1);
  coll(ctx, old);
  for (uint32_t i = 1; i < NI_CALL_CELLS; i++)
    coll(ctx, call(ctx, NULL));
  void *next = call(ctx, NULL), *after; /* in the cell of the first */
  coll(ctx, next);
  (void)look(2000);
  CHECK(s->ev.wait.n == 0 && recorded(s) == 0);
  (void)look(10000);
  CHECK(s->ev.wait.n == 0 && recorded(s) == 0); /* the next one was settled, and still is */
  /* The same, and the next one has no Coll. */
  group = group_start(ctx);
  old = call(ctx, group);
  ni_cb_stop(group);
  CHECK(look(11000)->ev.wait.n == 1);
  coll(ctx, old);
  for (uint32_t i = 1; i < NI_CALL_CELLS; i++)
    coll(ctx, call(ctx, NULL));
  after = call(ctx, NULL);
  (void)after;
  (void)look(12000);
  CHECK(look(12001)->ev.wait.n == 1);
  CHECK(look(20000) && recorded(s) == 1);
}
static void a_cell_serves_the_next_call_at_once(void **st) {
  (void)st;
  quietly(cell_of_the_next);
}

static void odd(void) {
  void *ctx = open_comm(1), *other = open_comm(2), *group = group_start(ctx), *h = call(ctx, group);
  ni_cb_stop(h); /* NCCL does so when its mask was cleared */
  CHECK(coll(other, h)->origin == 0 && stray(NI_STRAY_FOREIGN_HANDLE) == 1);
  /* a call that never was */
  CHECK(coll(ctx, (void *)((uintptr_t)h ^ 2))->origin == 0 && stray(NI_STRAY_FOREIGN_HANDLE) == 2);
  state(group, 5);
  CHECK(stray(NI_STRAY_UNKNOWN_STATE) == 1);
  void *next = group_start(ctx); /* the first one was left open by an error of NCCL's */
  ni_cb_stop(group);
  CHECK(stray(NI_STRAY_STALE_HANDLE) == 1);
  ni_cb_stop(next);
  ni_cb_stop(next);
  CHECK(stray(NI_STRAY_DOUBLE_STOP) == 1);
  /* No slot for a call without a Coll: a loss that is told. */
  struct ni_event_store *st = &comm_at(ctx)->events;
  st->events.fixed = 1;
  (void)look(1);
  CHECK(ni_load_rlx(&st->started[NI_EVENT_COLL_API]) == 1 &&
        ni_load_rlx(&st->dropped[NI_EVENT_COLL_API]) == 1);
  CHECK(look(90000) && ni_load_rlx(&st->dropped[NI_EVENT_COLL_API]) == 1); /* once */
}
static void what_is_odd_is_counted(void **st) {
  (void)st;
  quietly(odd);
}

#ifdef NI_STRESS
static void *racing, *its_call;
static void coll_comes(void) {
  ni_testpoint_hook = NULL;
  coll(racing, its_call);
  for (uint32_t i = 1; i < NI_CALL_CELLS; i++)
    coll(racing, call(racing, NULL));
  its_call = call(racing, NULL); /* writes the cell that is being copied */
}
static void copied_while_settled(void) {
  racing = open_comm(1);
  (void)look(1);
  void *group = group_start(racing);
  its_call = call(racing, group);
  ni_cb_stop(group);
  ni_testpoint_hook = coll_comes;
  struct ni_comm_writer *s = ni_g.dump->w.comms;
  CHECK(ni_calls_take(s) == 0 && ni_testpoint_hook == NULL && s->ev.todo.n == 0);
}
static void a_copy_of_two_calls_is_thrown_away(void **st) {
  (void)st;
  quietly(copied_while_settled);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_call_with_a_coll_takes_no_memory),
      cmocka_unit_test(a_call_without_one_is_a_record_after_a_second),
      cmocka_unit_test(the_newest_call_may_be_launched_later),
      cmocka_unit_test(records_are_in_the_order_of_the_calls),
      cmocka_unit_test(a_cell_serves_the_next_call_at_once),
      cmocka_unit_test(what_is_odd_is_counted),
#ifdef NI_STRESS
      cmocka_unit_test(a_copy_of_two_calls_is_thrown_away),
#endif
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
