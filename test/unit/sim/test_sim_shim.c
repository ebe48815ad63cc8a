/* nccl-sim's translations: what a plugin of each version is called with, by each release. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/nccl_sim/core/loader.c"
#include "test/nccl_sim/core/shim.c"

void ni_sim_say(const char *fmt, ...) { (void)fmt; }
void ni_die(int status, const char *fmt, ...) {
  (void)status;
  (void)fmt;
  fail_msg("ni_die called");
  abort();
}

static struct {
  union {
    struct ni_prof_descr_v4 v4;
    struct ni_prof_descr_v5 v5;
    struct ni_prof_descr_v6 v6;
    struct ni_prof_descr_v7 v7;
  } d;
  uint64_t hash;
  char name[32];
  int nodes, ranks, rank, starts, stops, records, finals, state, init_rc;
  bool null_args;
  uint64_t args;
} got;

static int asks = 0x7fff;

static enum ni_result init4(void **c, int *m, const char *n, uint64_t h, int nodes, int ranks, int rank,
                            ni_logger_fn l) {
  (void)l;
  *c = &got;
  *m = asks;
  got.hash = h;
  got.nodes = nodes;
  got.ranks = ranks;
  got.rank = rank;
  strcpy(got.name, n);
  return (enum ni_result)got.init_rc;
}
static enum ni_result init5(void **c, uint64_t h, int *m, const char *n, int nodes, int ranks, int rank,
                            ni_logger_fn l) {
  return init4(c, m, n, h, nodes, ranks, rank, l);
}
#define START(v) \
  static enum ni_result start_##v##_got(void *c, void **h, struct ni_prof_descr_##v *d) { \
    (void)c; \
    got.starts++, got.d.v = *d, *h = &got.starts; \
    return NI_RES_SUCCESS; \
  }
START(v4)
START(v5)
START(v6)
START(v7)
static enum ni_result stop(void *h) {
  got.stops += h == &got.starts;
  return NI_RES_SUCCESS;
}
static enum ni_result finalize(void *c) {
  (void)c;
  got.finals++;
  return NI_RES_SUCCESS;
}
static enum ni_result record(void *h, enum ni_prof_state s, union ni_prof_state_v4 *a) {
  (void)h;
  got.records++;
  got.state = (int)s;
  got.null_args = !a;
  if (a)
    memcpy(&got.args, a, 8);
  return NI_RES_SUCCESS;
}
static const struct ni_prof_vtable_v4 v4 = {"t", init4, start_v4_got, stop, record, finalize};
static const struct ni_prof_vtable_v5 v5 = {"t", init5, start_v5_got, stop, record, finalize};
static const struct ni_prof_vtable_v6 v6 = {"t", init5, start_v6_got, stop, record, finalize};
static const struct ni_prof_vtable_v7 v7 = {"t", init5, start_v7_got, stop, record, finalize};

/* A core of this release with a plugin of this version, after an init. */
static void *core(int release, int interface) {
  memset(&got, 0, sizeof got);
  memset(&counts, 0, sizeof counts);
  ni_core.release = release;
  ni_core.interface = interface;
  ni_core.vtable = interface == 4 ? (const void *)&v4
      : interface == 5            ? (const void *)&v5
      : interface == 6            ? (const void *)&v6
                                  : (const void *)&v7;
  ni_core.filled = ni_core.gone = false;
  atomic_store(ni_core.mask, 0);
  struct ni_comm_ident id = {"tp0", 0x1122334455667788, 2, 16, 5};
  void *ctx = NULL;
  assert_int_equal(ni_core_init(&ctx, &id), 0);
  assert_ptr_equal(ctx, &got);
  return ctx;
}

static struct ni_prof_descr_v7 coll(void) {
  struct ni_prof_descr_v7 d;
  memset(&d, 0, sizeof d);
  d.type = NI_EV_COLL;
  d.parentObj = (void *)0x11;
  d.rank = 5;
  d.coll.seqNumber = 7;
  d.coll.func = "AllReduce";
  d.coll.count = 1000;
  d.coll.root = 3;

  d.coll.datatype = "ncclFloat32";
  d.coll.nChannels = 8;
  d.coll.nWarps = 16;
  d.coll.algo = "RING";
  d.coll.proto = "LL";

  d.coll.parentGroup = (void *)0x22;
  return d;
}

static void init_gets_every_argument_in_its_place(void **state) {
  (void)state;
  static const int pairs[][2] = {{22707, 4}, {23007, 4}, {22809, 5}, {22907, 5}, {23007, 6}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    core(pairs[i][0], pairs[i][1]);
    assert_true(got.hash == 0x1122334455667788);
    assert_string_equal(got.name, "tp0");
    assert_int_equal(got.nodes, 2);
    assert_int_equal(got.ranks, 16);
    assert_int_equal(got.rank, 5);
  }
}

static void v4_parent_is_the_group(void **state) {
  (void)state;
  for (int release = 22707; release <= 23007; release += 300) {
    void *ctx = core(release, 4), *h = NULL;
    struct ni_prof_descr_v7 d = coll();
    ni_core_start(ctx, &h, &d);
    assert_int_equal(got.d.v4.type, NI_EV_COLL);
    assert_ptr_equal(got.d.v4.parentObj, (void *)0x22);
    assert_int_equal(got.d.v4.coll.seqNumber, 7);
    assert_string_equal(got.d.v4.coll.func, "AllReduce");
    assert_int_equal(got.d.v4.coll.nChannels, 8);
    assert_string_equal(got.d.v4.coll.proto, "LL");
    assert_int_equal(got.d.v4.coll.root, 3);
  }
}

static void v5_and_v6_keep_both_parents(void **state) {
  (void)state;
  struct ni_prof_descr_v7 d = coll();
  void *h = NULL, *ctx = core(22907, 5);
  ni_core_start(ctx, &h, &d);
  assert_ptr_equal(got.d.v5.parentObj, (void *)0x11);
  assert_ptr_equal(got.d.v5.coll.parentGroup, (void *)0x22);
  ctx = core(23007, 6);
  ni_core_start(ctx, &h, &d);
  assert_ptr_equal(got.d.v6.parentObj, (void *)0x11);
  assert_ptr_equal(got.d.v6.coll.parentGroup, (void *)0x22);
}

static void p2p_channels(void **state) {
  (void)state;
  struct ni_prof_descr_v7 d;
  memset(&d, 0, sizeof d);
  d.type = NI_EV_P2P;
  d.p2p.func = "Send";
  d.p2p.nChannels = 63;
  d.p2p.peer = 4;
  d.p2p.parentGroup = (void *)0x22;
  void *h = NULL, *ctx = core(22707, 4);
  ni_core_start(ctx, &h, &d);
  assert_int_equal(got.d.v4.p2p.nChannels, 63); /* 2.27 fills it */
  ctx = core(23007, 4);
  ni_core.poison = NI_POISON_AA;
  ni_core_start(ctx, &h, &d);
  assert_int_equal(got.d.v4.p2p.nChannels, 0xAA);
  assert_int_equal(got.d.v4.p2p.peer, 4);
  ni_core.poison = NI_POISON_PLAUSIBLE;
  int seen = 0;
  for (int i = 0; i < 200; i++) {
    ni_core_start(ctx, &h, &d);
    assert_in_range(got.d.v4.p2p.nChannels, 1, 8);
    seen |= 1 << got.d.v4.p2p.nChannels;
  }
  assert_int_equal(seen, 0x1fe); /* each of 1 to 8 */
}

static void padding_is_poison_only_in_translations(void **state) {
  (void)state;
  struct ni_prof_descr_v7 d = coll();
  void *h = NULL, *ctx = core(23007, 4);
  ni_core_start(ctx, &h, &d);
  assert_int_equal(((unsigned char *)&got.d.v4)[4], 0xAA); /* between type and parentObj */
  ctx = core(22707, 4);
  ni_core_start(ctx, &h, &d);
  assert_int_equal(((unsigned char *)&got.d.v4)[4], 0);
}

static void events_a_version_does_not_have_leave_the_handle(void **state) {
  (void)state;
  static const uint64_t api[] = {NI_EV_GROUP_API, NI_EV_COLL_API, NI_EV_P2P_API, NI_EV_KERNEL_LAUNCH};
  static const uint64_t ce[] = {NI_EV_CE_COLL, NI_EV_CE_SYNC, NI_EV_CE_BATCH};
  struct ni_prof_descr_v7 d;
  memset(&d, 0, sizeof d);
  for (int v = 4; v <= 6; v++)
    for (int i = 0; i < 7; i++) {
      void *ctx = core(23007, v), *h = (void *)0x77;
      d.type = i < 4 ? api[i] : ce[i - 4];
      ni_core_start(ctx, &h, &d);
      bool there = i < 4 ? v >= 5 : v >= 6;
      assert_int_equal(got.starts, there);
      if (!there)
        assert_ptr_equal(h, (void *)0x77);
    }
}

static void states_and_their_arguments(void **state) {
  (void)state;
  union ni_prof_state_v4 a = {.kernelCh = {12345}};
  core(23007, 4);
  ni_core_record(&got, NI_ST_KERNEL_CH_STOP, &a);
  assert_int_equal(got.records, 1);
  assert_int_equal(got.args, 12345);
  ni_core_record(&got, NI_ST_GROUP_API_END_BEGIN, NULL); /* v4 has no 24 */
  assert_int_equal(got.records, 1);
  ni_core_record(&got, NI_ST_PROXY_OP_IN_PROGRESS, &a); /* forwarded with garbage */
  assert_int_equal(got.records, 2);
  assert_true(got.args == 0xAAAAAAAAAAAAAAAA);
  core(23007, 6);
  ni_core_record(&got, NI_ST_GROUP_API_START_END, NULL);
  assert_true(got.null_args);
  core(22907, 5);
  ni_core_record(&got, NI_ST_GROUP_API_START_END, NULL);
  assert_false(got.null_args);
  ni_core_record(NULL, NI_ST_KERNEL_CH_STOP, &a); /* no handle, no call */
  assert_int_equal(got.records, 1);
}

static void stop_and_finalize_with_null(void **state) {
  (void)state;
  core(23007, 6);
  ni_core_stop(NULL);
  assert_int_equal(got.stops, 0);
  ni_core_finalize(NULL);
  assert_int_equal(got.finals, 0);
  core(22707, 4);
  ni_core_finalize(NULL); /* 2.27 calls */
  assert_int_equal(got.finals, 1);
}

static void v5_translation_clears_the_copy_engine_bits(void **state) {
  (void)state;
  core(22907, 5);
  assert_int_equal(ni_core_mask(), 0xfff);
  core(22809, 5);
  assert_int_equal(ni_core_mask(), 0x7fff);
}

static void what_2_31_clears_and_adds(void **state) {
  (void)state;
  static const struct {
    int interface, asks, gets;
  } cases[] = {{7, 0xffff, 0xffff}, {7, 0x8002, 0x8042}, {6, 0xffff, 0x7fff},
               {6, 0x8002, 0x0002}, {5, 0xffff, 0x0fff}, {4, 0x7002, 0x7002}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    asks = cases[i].asks;
    core(23102, cases[i].interface);
    assert_int_equal(ni_core_mask(), cases[i].gets);
  }
  asks = 0x7fff;
  core(23007, 6); /* its own interface */
  assert_int_equal(ni_core_mask(), 0x7fff);
}

static void ras_writes_again_after_each_init(void **state) {
  (void)state;
  core(23102, 7);
  ni_core_ras(0x8002);
  assert_int_equal(ni_core_mask(), 0x8042); /* phases hang on KernelCh */
  atomic_store(ni_core.mask, 0x46);         /* the plugin's own write wins until the next init */
  assert_int_equal(ni_core_mask(), 0x46);
  core(23102, 7);
  assert_int_equal(ni_core_mask(), 0x8042);
  ni_core.ras = 0;
}

static void v7_has_the_tails_and_older_ones_do_not(void **state) {
  (void)state;
  struct ni_prof_descr_v7 d = coll();
  d.coll.kernelVariant = "AllReduce_AGxLL_R";
  d.coll.isSymColl = 1;
  d.coll.userTag = 0x8000000000000007;
  void *h = NULL, *ctx = core(23203, 7);
  ni_core_start(ctx, &h, &d);
  assert_string_equal(got.d.v7.coll.kernelVariant, "AllReduce_AGxLL_R");
  assert_int_equal(got.d.v7.coll.isSymColl, 1);
  assert_true(got.d.v7.coll.userTag == 0x8000000000000007);
  ctx = core(23203, 6);
  memset(&got.d, 0x55, sizeof got.d);
  ni_core_start(ctx, &h, &d);
  assert_string_equal(got.d.v6.coll.proto, "LL");
  assert_ptr_equal(got.d.v6.coll.parentGroup, (void *)0x22);
  assert_int_equal(((unsigned char *)&got.d.v6)[22], 0); /* padding: the translation to v6 clears first */
  ctx = core(23203, 5);
  ni_core_start(ctx, &h, &d);
  assert_int_equal(((unsigned char *)&got.d.v5)[22], 0xAA); /* and that to v5 does not */
}

static void handles_of_what_2_31_takes_away(void **state) {
  (void)state;
  struct ni_prof_descr_v7 d;
  union ni_prof_state_v4 a = {.kernelCh = {77}};
  memset(&d, 0, sizeof d);
  for (int v = 4; v <= 7; v++) {
    void *ctx = core(23102, v), *phase = (void *)0x77, *ce = (void *)0x77;
    d.type = NI_EV_KERNEL_PHASE;
    ni_core_start(ctx, &phase, &d);
    assert_int_equal(got.starts, v == 7);
    assert_ptr_equal(phase, v == 7 ? (void *)&got.starts : v == 6 ? NULL : (void *)0x77);
    ni_core_record(&got, NI_ST_KERNEL_PHASE_STOP, &a);
    assert_int_equal(got.records, v == 7);
    d.type = NI_EV_CE_COLL;
    ni_core_start(ctx, &ce, &d);
    assert_ptr_equal(ce, v >= 6 ? (void *)&got.starts : v == 5 ? NULL : (void *)0x77);
  }
  core(23102, 6);
  ni_core_record(&got, NI_ST_GROUP_API_START_END, NULL);
  assert_false(got.null_args); /* the translation always passes some */
  core(23102, 7);
  ni_core_record(&got, NI_ST_GROUP_API_START_END, NULL);
  assert_true(got.null_args);
}

static void a_failed_init(void **state) {
  (void)state;
  struct ni_comm_ident id = {"x", 1, 1, 2, 0};
  struct ni_prof_descr_v7 d = coll();
  void *ctx = core(22707, 4), *h = NULL;
  got.init_rc = 3;
  assert_int_equal(ni_core_init(&ctx, &id), 3);
  ni_core_start(ctx, &h, &d); /* up to 2.27: the whole process is done with profiling */
  assert_int_equal(got.starts, 0);
  ctx = core(22809, 5);
  got.init_rc = 3;
  ni_core_init(&ctx, &id);
  ni_core_start(ctx, &h, &d); /* 2.28: events go on */
  assert_int_equal(got.starts, 1);
}

static void releases(void **state) {
  (void)state;
  assert_int_equal(ni_core_release("2.27"), 22707);
  assert_int_equal(ni_core_release("2.30.4"), 23004);
  assert_int_equal(ni_core_release("23007"), 23007);
  assert_int_equal(ni_core_release("2.33"), 0);
  assert_int_equal(ni_core_release("x"), 0);
  assert_int_equal(ni_core_newest(22304), 1);
  assert_int_equal(ni_core_newest(22501), 2);
  assert_int_equal(ni_core_newest(22606), 3);
  assert_int_equal(ni_core_newest(22703), 4);
  assert_int_equal(ni_core_newest(22803), 5);
  assert_int_equal(ni_core_newest(22902), 6);
  assert_int_equal(ni_core_newest(23007), 6);
  assert_int_equal(ni_core_newest(23102), 7);
  assert_int_equal(ni_core_newest(23203), 7);
}

static void what_a_mask_implies(void **state) {
  (void)state;
  assert_true(ni_wants_group(NI_EV_KERNEL_CH) && ni_wants_coll(NI_EV_KERNEL_CH) &&
              ni_wants_p2p(NI_EV_KERNEL_CH, 23007));
  assert_false(ni_wants_coll(NI_EV_GROUP) || ni_wants_coll(NI_EV_PROXY_CTRL) ||
               ni_wants_group(NI_EV_PROXY_CTRL));
  assert_true(ni_wants_p2p(NI_EV_NET_PLUGIN, 22803));
  assert_false(ni_wants_p2p(NI_EV_NET_PLUGIN, 22707));
  assert_true(ni_wants_proxy_op(NI_EV_PROXY_STEP) && ni_wants_proxy_step(NI_EV_NET_PLUGIN));
  assert_false(ni_wants_proxy_op(NI_EV_KERNEL_CH));
  assert_true(ni_wants_group_api(NI_EV_KERNEL_LAUNCH) && ni_wants_coll_api(NI_EV_CE_SYNC));
  assert_false(ni_wants_group_api(NI_EV_KERNEL_PHASE));
  assert_false(ni_wants_group_api(NI_EV_PROXY_CTRL) || ni_wants_p2p_api(NI_EV_CE_COLL) ||
               ni_wants_coll_api(NI_EV_P2P));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(init_gets_every_argument_in_its_place),
      cmocka_unit_test(v4_parent_is_the_group),
      cmocka_unit_test(v5_and_v6_keep_both_parents),
      cmocka_unit_test(p2p_channels),
      cmocka_unit_test(padding_is_poison_only_in_translations),
      cmocka_unit_test(events_a_version_does_not_have_leave_the_handle),
      cmocka_unit_test(states_and_their_arguments),
      cmocka_unit_test(stop_and_finalize_with_null),
      cmocka_unit_test(v5_translation_clears_the_copy_engine_bits),
      cmocka_unit_test(what_2_31_clears_and_adds),
      cmocka_unit_test(ras_writes_again_after_each_init),
      cmocka_unit_test(v7_has_the_tails_and_older_ones_do_not),
      cmocka_unit_test(handles_of_what_2_31_takes_away),
      cmocka_unit_test(a_failed_init),
      cmocka_unit_test(releases),
      cmocka_unit_test(what_a_mask_implies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
