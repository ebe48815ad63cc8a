/*
 * Proxy operations and steps from the inside: where each phase's time goes, what a repeated start does, what
 * is refused. In a forked child, whose state is empty (state.h).
 */
#include "core_child.h"

/* A child whose callbacks have proxies; nothing is taken away while we look. */
static void with_proxies(void (*fn)(void)) {
  in_child(fn,
           (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", "NCCL_INSPECTOR_EVENTS",
                                 "proxyop,proxystep", NULL});
}

static struct ni_proxy_slot *proxy_of(void *op) {
  return ni_arena_proxy(&ni_g.arena, ni_payload_index(ni_handle_payload(op, ni_g.nonce)));
}

static uint64_t sum(const struct ni_proxy_slot *x, int phase) { return ni_load_rlx(&x->sum[phase - 1]); }

static void *proxy(void *ctx, bool send) {
  return ni_cb_proxy_start(ctx,
                           &(struct ni_proxy_start){.pid = getpid(), .peer = 1, .n_steps = 2, .send = send});
}

static void state(void *h, uint32_t st, uint64_t bytes) { ni_cb_state(h, st, &bytes); }

/* Sleeps are told apart by their phase: 3 ms in one of them, next to nothing in the others. */
static void phases(void) {
  void *ctx = open_comm(1);
  CHECK(mask == (NI_EV_PROXY_OP | NI_EV_PROXY_STEP));
  static const struct {
    bool send;
    uint32_t before, after; /* states around the sleep; 0: the start, 99: the stop */
    int phase;
  } cases[] = {
      {true, 8, 20, NI_PH_GPU_PRODUCE},   {true, 20, 9, NI_PH_PEER_CREDIT}, {true, 9, 99, NI_PH_WIRE},
      {false, 0, 10, NI_PH_PEER_CREDIT},  {false, 10, 11, NI_PH_WIRE},      {false, 11, 12, NI_PH_FLUSH},
      {false, 12, 99, NI_PH_GPU_CONSUME},
  };
  static const uint32_t sending[] = {8, 20, 20, 9}, receiving[] = {10, 11, 12};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    void *op = proxy(ctx, cases[i].send), *step = ni_cb_step_start(op, 0);
    struct ni_proxy_slot *x = proxy_of(op);
    CHECK(ni_cb_step_start(op, 0) == step); /* asked again: the same transfer */
    if (cases[i].before == 0)
      usleep(3000);
    const uint32_t *states = cases[i].send ? sending : receiving;
    int n = cases[i].send ? 4 : 3;
    for (int k = 0; k < n; k++) {
      state(step, states[k], 1000);
      if (states[k] == cases[i].before && (k + 1 == n || states[k + 1] != states[k]))
        usleep(3000);
    }
    ni_cb_stop(step);
    uint64_t all = 0;
    for (int ph = 1; ph < NI_PH_COUNT; ph++)
      all += sum(x, ph);
    CHECK(ni_clock_span_ns(&ni_g.clock, sum(x, cases[i].phase)) >= 2900000);
    CHECK(all == ni_load_rlx(&x->max_step)); /* of one step all phases together are its time */
    CHECK(ni_load_rlx(&x->bytes) == 1000 && ni_load_rlx(&x->n_started) == 1 &&
          ni_load_rlx(&x->n_completed) == 1);
    ni_cb_stop(op);
    CHECK(ni_load_rlx(&ni_g.stray[NI_STRAY_STALE_HANDLE]) == 0);
  }
  ni_finalize(ctx);
}
static void time_goes_to_its_phase(void **st) {
  (void)st;
  with_proxies(phases);
}

static uint64_t strays(enum ni_stray why) { return ni_load_rlx(&ni_g.stray[why]); }

static void odd(void) {
  void *ctx = open_comm(1), *op = proxy(ctx, true);
  struct ni_proxy_slot *x = proxy_of(op);
  /* takes the place of one that never stopped */
  void *first = ni_cb_step_start(op, 0), *last = ni_cb_step_start(op, 8);
  CHECK(ni_load_rlx(&x->n_started) == 2 && ni_load_rlx(&x->n_dropped) == 1);
  ni_cb_stop(first);
  CHECK(strays(NI_STRAY_DOUBLE_STOP) == 1 && ni_load_rlx(&x->n_completed) == 0);
  state(last, 77, 0);
  state(last, 3, 0);
  CHECK(strays(NI_STRAY_UNKNOWN_STATE) == 2);
  ni_cb_state(last, NI_ST_PROXY_STEP_SEND_WAIT, NULL); /* 2.23 to 2.25 hand no arguments over */
  ni_cb_stop(last);
  ni_cb_stop(last);
  CHECK(ni_load_rlx(&x->n_completed) == 1 && ni_load_rlx(&x->bytes) == 0 &&
        strays(NI_STRAY_DOUBLE_STOP) == 2);
  ni_cb_stop(op);
  CHECK(ni_cb_step_start(op, 1) == NULL && strays(NI_STRAY_STALE_HANDLE) == 1);
  /* Another process's: its context is noise, whatever the pid says; its line belongs to the process. */
  void *foreign =
      ni_cb_proxy_start((void *)0x600000001234567,
                        &(struct ni_proxy_start){.parent = (void *)0x2222222222222222, .pid = getpid()});
  CHECK(foreign && proxy_of(foreign)->comm_page == 0 &&
        (ni_load_rlx(&proxy_of(foreign)->flags) & NI_EVF_FOREIGN));
  ni_cb_stop(foreign);
  /* Switched off: nothing new, and what is open goes on. */
  void *open = proxy(ctx, false), *step = ni_cb_step_start(open, 0);
  ni_masks_set(NI_KINDS_STANDARD);
  CHECK(proxy(ctx, false) == NULL && mask == 0x46);
  state(step, NI_ST_PROXY_STEP_RECV_WAIT, 0);
  ni_cb_stop(step);
  CHECK(ni_load_rlx(&proxy_of(open)->n_completed) == 1);
  ni_cb_stop(open);
  ni_finalize(ctx);
}
static void what_does_not_fit_is_counted(void **st) {
  (void)st;
  with_proxies(odd);
}

/*
 * A counter that goes back in the middle of a transfer (a VM that was moved): no time, rather than centuries.
 */
static void counter_went_back(void) {
  void *ctx = open_comm(1), *op = proxy(ctx, true), *step = ni_cb_step_start(op, 0);
  struct ni_proxy_slot *x = proxy_of(op);
  x->step_last[0] += UINT64_C(1) << 40;
  ni_store_rlx(&x->step_start[0], x->step_last[0]);
  ni_cb_stop(step);
  CHECK(sum(x, NI_PH_GPU_PRODUCE) == 0 && ni_load_rlx(&x->max_step) == 0 &&
        ni_load_rlx(&x->n_completed) == 1);
}
static void no_time_runs_backwards(void **st) {
  (void)st;
  with_proxies(counter_went_back);
}

/* Its place is taken by the step eight later: the line of one that never stopped has no duration, whatever ends it. */
static void step_out_of_its_place(void) {
  void *ctx = open_comm(1);
  ni_masks_set(NI_KINDS(NI_EVENT_PROXY_OP) | NI_KINDS(NI_EVENT_PROXY_STEP) | NI_KINDS(NI_EVENT_STEPS));
  void *op = proxy(ctx, true);
  (void)ni_cb_step_start(op, 0);
  struct ni_event_slot *line = ni_arena_event(&ni_g.arena, proxy_of(op)->step_slot[0]);
  (void)ni_cb_step_start(op, 8);
  CHECK(ni_state_flags(line->state) & NI_EVS_CLOSED);
  CHECK(line->ticks_start && line->ticks_stop == 0);
  ni_cb_stop(op);
  ni_finalize(ctx);
}
static void a_step_that_never_stopped_says_so(void **st) {
  (void)st;
  with_proxies(step_out_of_its_place);
}

/* ---- a communicator that ends while its progress thread, which others share, goes on ---- */

static void step_of_the_closed(void) {
  void *ctx = open_comm(1);
  ni_masks_set(NI_KINDS(NI_EVENT_PROXY_OP) | NI_KINDS(NI_EVENT_PROXY_STEP) | NI_KINDS(NI_EVENT_STEPS));
  void *op = proxy(ctx, true), *step = ni_cb_step_start(op, 0);
  struct ni_event_slot *line = ni_arena_event(&ni_g.arena, proxy_of(op)->step_slot[0]);
  /* by the dump thread, which has it on a chain of its own now */
  line->state |= NI_STATE_FLAG(NI_EVS_CLOSED);
  uint64_t before = line->ticks_stop;
  ni_cb_stop(step);
  CHECK(ni_load_rlx(&comm_at(ctx)->events.done.head) == 0 && line->ticks_stop == before);
}
static void a_step_is_handed_over_once(void **st) {
  (void)st;
  with_proxies(step_of_the_closed);
}

#ifdef NI_STRESS
static struct ni_comm_writer *side;
static struct ni_op *parent;
static struct ni_event_slot *call;

static void close_now(void) { /* the dump thread, between this stop's look at the state and its exchange */
  ni_testpoint_hook = NULL;
  ni_events_close(&side->comm->events, &side->ev);
}
static void stop_meets_closing(void) {
  void *ctx = open_comm(1), *op = proxy(ctx, true);
  (void)ni_collect(&ni_g.dump->drain);
  side = ni_g.dump->w.comms;
  ni_testpoint_hook = close_now;
  ni_cb_stop(op);
  CHECK(ni_testpoint_hook == NULL && side->ev.todo.n == 1 &&
        ni_load_rlx(&comm_at(ctx)->events.done.head) == 0);
}
static void an_operation_is_handed_over_once(void **st) {
  (void)st;
  with_proxies(stop_meets_closing);
}

static void mark_now(void) { /* an operation names its call at the moment its communicator is closed */
  ni_testpoint_hook = NULL;
  call->state |= NI_STATE_FLAG(NI_EVS_SEEN_KERNEL);
}
/*
 * The communicator is over, its memory given back, and another begins, while a shared progress thread is
 * inside a stop.
 */
static struct ni_proxy_slot *held_slot;
static void *resting;
static void others_turn(void) {
  ni_testpoint_hook = NULL;
  ni_finalize(resting);
  void *op = proxy(open_comm(2), true);
  CHECK(proxy_of(op) != held_slot);
}
static void stop_meets_the_next(void) {
  resting = open_comm(1);
  void *op = proxy(resting, true);
  held_slot = proxy_of(op);
  ni_testpoint_hook = others_turn;
  ni_cb_stop(op);
  CHECK(ni_testpoint_hook == NULL);
}
static void what_was_open_rests(void **st) {
  (void)st;
  with_proxies(stop_meets_the_next);
}

static void closing_meets_a_mark(void) {
  void *ctx = open_comm(1);
  (void)ni_collect(&ni_g.dump->drain);
  side = ni_g.dump->w.comms;
  ni_masks_set(NI_KINDS(NI_EVENT_COLL_API)); /* so that it has a slot */
  void *h = ni_cb_event_start(ctx, NI_EVENT_COLL_API, &(struct ni_event_start){.func = "AllReduce"});
  call = ni_arena_event(&ni_g.arena, ni_payload_call_slot(ni_handle_payload(h, ni_g.nonce)));
  ni_testpoint_hook = mark_now;
  ni_events_close(&side->comm->events, &side->ev);
  CHECK(ni_testpoint_hook == NULL && side->ev.todo.n == 1);
}
static void a_mark_does_not_keep_a_call_open(void **st) {
  (void)st;
  with_proxies(closing_meets_a_mark);
}

static void recycle_now(void) { /* written, and its slot another operation's */
  ni_testpoint_hook = NULL;
  ni_store_rel(&parent->state, ni_state_make(ni_state_gen(parent->state) + 1, NI_OP_LIVE, 1));
  parent->rec_sn = 77;
}
static void parent_goes(void) {
  void *ctx = open_comm(1);
  void *of = ni_cb_op_start(ctx, NI_KIND_COLL, &(struct ni_start){.func = "AllReduce", .nchannels = 1});
  parent = slot_of(of);
  struct ni_proxy_start d = {.parent = of, .pid = getpid()};
  CHECK(ni_load_rlx(&proxy_of(ni_cb_proxy_start(ctx, &d))->flags) & NI_EVF_PARENT);
  ni_testpoint_hook = recycle_now;
  void *op = ni_cb_proxy_start(ctx, &d);
  CHECK(ni_testpoint_hook == NULL && !(ni_load_rlx(&proxy_of(op)->flags) & NI_EVF_PARENT));
}
static void a_parent_is_the_one_that_was_named(void **st) {
  (void)st;
  with_proxies(parent_goes);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(time_goes_to_its_phase),
      cmocka_unit_test(what_does_not_fit_is_counted),
      cmocka_unit_test(no_time_runs_backwards),
      cmocka_unit_test(a_step_that_never_stopped_says_so),
      cmocka_unit_test(a_step_is_handed_over_once),
#ifdef NI_STRESS
      cmocka_unit_test(an_operation_is_handed_over_once),
      cmocka_unit_test(what_was_open_rests),
      cmocka_unit_test(a_mark_does_not_keep_a_call_open),
      cmocka_unit_test(a_parent_is_the_one_that_was_named),
#endif
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
