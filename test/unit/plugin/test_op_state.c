/* The state word's rules, the expected channel count, handles: pure parts of the completion rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>

#include "plugin/slots/op.h"
#include "format/library.h"
#include "plugin/callbacks/want.h"

static struct ni_op op;

static void live(uint32_t gen, uint32_t want) {
  ni_store_rlx(&op.state, ni_state_make(gen, NI_OP_LIVE, want));
}
static int done(uint64_t s) { return (ni_state_flags(s) & NI_OP_DONE) != 0; }

static void both_orders_complete_once(void **state) {
  (void)state;
  live(5, 8);
  assert_false(done(ni_op_set(&op, 5, NI_OP_CLOSED)));
  assert_true(done(ni_op_set(&op, 5, NI_OP_KDONE)));
  live(6, 8);
  assert_false(done(ni_op_set(&op, 6, NI_OP_KDONE)));
  assert_true(done(ni_op_set(&op, 6, NI_OP_CLOSED)));
  live(7, 0); /* nothing to wait for: finished at its stop */
  assert_true(done(ni_op_set(&op, 7, NI_OP_CLOSED)));
  live(8, NI_WANT_UNKNOWN); /* no callback completes it */
  assert_false(done(ni_op_set(&op, 8, NI_OP_CLOSED)));
}

static void stale_and_double_change_nothing(void **state) {
  (void)state;
  live(5, 8);
  assert_int_equal(ni_op_set(&op, 4, NI_OP_CLOSED), 0); /* another life */
  assert_int_equal(ni_op_set(&op, 5, NI_OP_CLOSED) != 0, 1);
  uint64_t before = op.state;
  assert_int_equal(ni_op_set(&op, 5, NI_OP_CLOSED), 0);
  assert_int_equal(op.state, before);
  ni_store_rlx(&op.state, ni_state_make(5, NI_OP_LIVE | NI_OP_RETIRED, 8));
  assert_int_equal(ni_op_set(&op, 5, NI_OP_KDONE), 0); /* the dump thread's */
  ni_store_rlx(&op.state, ni_state_make(5, 0, 0));
  assert_int_equal(ni_op_set(&op, 5, NI_OP_CLOSED), 0); /* free */
  /* The handle carries 28 bits of the generation: a life 2^28 later looks alike, one in between does not. */
  live(0x1234567 + 0x10000000, 8);
  assert_int_not_equal(ni_op_set(&op, 0x1234567, NI_OP_CLOSED), 0);
}

static pthread_barrier_t barrier;
static int completed[2];
static void *set_flag(void *arg) {
  int who = (int)(uintptr_t)arg;
  for (uint32_t gen = 1; gen <= 20000; gen++) {
    pthread_barrier_wait(&barrier);
    completed[who] = done(ni_op_set(&op, gen, who ? NI_OP_CLOSED : NI_OP_KDONE));
    pthread_barrier_wait(&barrier);
    if (completed[0] + completed[1] != 1)
      return (void *)1;
    pthread_barrier_wait(&barrier);
    if (who == 0)
      live(gen + 1, 8);
  }
  return NULL;
}
static void race_has_one_winner(void **state) {
  (void)state;
  pthread_t t;
  void *other;
  pthread_barrier_init(&barrier, NULL, 2);
  live(1, 8);
  pthread_create(&t, NULL, set_flag, (void *)1);
  void *mine = set_flag((void *)0);
  pthread_join(t, &other);
  assert_null(mine);
  assert_null(other);
}

#define NCCL_MOST ni_most_channels(NI_LIBRARY_NCCL)

static void expected_channels(void **state) {
  (void)state;
  struct ni_want coll = {.kind = NI_KIND_COLL, .nchannels = 8, .most_channels = NCCL_MOST, .kernel_ch = true};
  struct ni_want p2p = {.kind = NI_KIND_P2P,
                        .nchannels = 4,
                        .most_channels = NCCL_MOST,
                        .p2p_channels_valid = true,
                        .kernel_ch = true};
  assert_int_equal(ni_want_channels(&coll), 8);
  coll.nchannels = 64;
  assert_int_equal(ni_want_channels(&coll), 64);
  coll.nchannels = 0; /* CollNet */
  assert_int_equal(ni_want_channels(&coll), NI_WANT_UNKNOWN);
  coll.nchannels = 65;
  assert_int_equal(ni_want_channels(&coll), NI_WANT_UNKNOWN);
  coll.most_channels = ni_most_channels(NI_LIBRARY_RCCL);
  assert_int_equal(ni_want_channels(&coll), 65);
  coll.nchannels = 254;
  assert_int_equal(ni_want_channels(&coll), 254);
  coll.nchannels = 255; /* the mark of an unknown number */
  assert_int_equal(ni_want_channels(&coll), NI_WANT_UNKNOWN);
  coll.nchannels = 0; /* 256 */
  assert_int_equal(ni_want_channels(&coll), NI_WANT_UNKNOWN);
  coll.nchannels = 8;
  coll.kernel_ch = false;
  assert_int_equal(ni_want_channels(&coll), NI_WANT_UNKNOWN);
  coll.never = true; /* not asked for since the process began: nothing to wait for */
  assert_int_equal(ni_want_channels(&coll), 0);
  assert_int_equal(ni_want_channels(&p2p), 4);
  p2p.p2p_channels_valid = false; /* plausible garbage of the v4 translation */
  assert_int_equal(ni_want_channels(&p2p), NI_WANT_UNKNOWN);
  p2p.self = true;
  assert_int_equal(ni_want_channels(&p2p), 0);
}

/* A symmetric kernel that was captured announces channels and raises none. */
static void channels_of_symmetric_kernels(void **state) {
  (void)state;
  struct ni_want head = {.kind = NI_KIND_COLL,
                         .nchannels = 8,
                         .most_channels = NCCL_MOST,
                         .kernel_ch = true,
                         .symmetric = true,
                         .call_known = true},
                 w = head;
  assert_int_equal(ni_want_channels(&w), 8);
  w.nchannels = 0; /* a tail, or a head without KernelCh in its mask */
  assert_int_equal(ni_want_channels(&w), 0);
  w = head;
  w.kernel_ch = false; /* now; perhaps it was on when the task was made */
  assert_int_equal(ni_want_channels(&w), NI_WANT_UNKNOWN);
  w.never = true; /* NCCL 2.32.3 announces channels all the same, real 2.31.2 does not */
  assert_int_equal(ni_want_channels(&w), 0);
  w = head;
  w.captured = true;
  assert_int_equal(ni_want_channels(&w), 0);
  w = head;
  w.call_known = false; /* perhaps captured */
  assert_int_equal(ni_want_channels(&w), NI_WANT_UNKNOWN);
  w = head;
  w.nchannels = 65;
  assert_int_equal(ni_want_channels(&w), NI_WANT_UNKNOWN);
}

static void channel_counts_by_release(void **state) {
  (void)state;
  assert_true(ni_self_is_silent(6, 0));
  assert_true(ni_self_is_silent(6, 23007));
  assert_false(ni_self_is_silent(6, 23102)); /* seen in its own callbacks */
  assert_false(ni_self_is_silent(7, 0));     /* no earlier release speaks v7 */
  assert_true(!ni_mask_shifts_counts(6, 0) && !ni_mask_shifts_counts(6, 23007) &&
              ni_mask_shifts_counts(5, 23102));
  assert_true(ni_mask_shifts_counts(7, 0));
  assert_true(ni_shows_symmetric(0) && !ni_shows_symmetric(23007) && ni_shows_symmetric(23102));
  assert_true(ni_p2p_channels_valid(6, 0));
  assert_true(ni_p2p_channels_valid(5, 22803));
  assert_true(ni_p2p_channels_valid(4, 22703));
  assert_true(ni_p2p_channels_valid(4, 22707));
  assert_false(ni_p2p_channels_valid(4, 22800));
  assert_false(ni_p2p_channels_valid(4, 23007));
  assert_false(ni_p2p_channels_valid(4, 0)); /* not found counts as "other" */
  assert_false(ni_p2p_channels_valid(3, 22703));
}

static void handles_round_trip_and_reject(void **state) {
  (void)state;
  const uint64_t mine = 0x123456789abcdefULL, other = 0xfedcba987654321ULL;
  uint32_t slot = 0x2abcdef, gen = 0xdeadbee;
  void *h = ni_handle_pack(NI_H_OP, ni_payload_slot(slot, gen), mine);
  assert_non_null(h);
  assert_int_equal(ni_handle_kind(h), NI_H_OP);
  uint64_t p = ni_handle_payload(h, mine);
  assert_int_equal(ni_payload_index(p), slot);
  assert_int_equal(ni_payload_gen(p), gen);
  uint64_t q = ni_handle_payload(h, other); /* the same tag in another process is noise */
  assert_false(ni_payload_index(q) == slot && ni_payload_gen(q) == gen);
  for (uint32_t ch = 0; ch < 64; ch += 21) {
    p = ni_handle_payload(
        ni_handle_pack(NI_H_CHANNEL, ni_payload_cell(ch, ch & 1, 0x2abcdef, 0x87654321), mine), mine);
    assert_int_equal(ni_payload_cell_index(p), 2 * ch + (ch & 1));
    assert_int_equal(ni_payload_cell_page(p), 0x2abcdef);
    assert_int_equal(ni_payload_cell_number(p), 0x7654321);
  }
  assert_int_equal(ni_handle_kind(NULL), NI_H_NONE);
  assert_int_equal(ni_handle_kind((void *)0x00007fffdeadbeefULL), NI_H_NONE); /* a pointer is no tag */
  void *g = ni_handle_pack(NI_H_GROUP, ni_payload_group(12345, 0xffffffff), mine);
  assert_int_equal(ni_payload_group_page(ni_handle_payload(g, mine)), 12345);
  assert_int_equal(ni_payload_group_ordinal(ni_handle_payload(g, mine)), 0xffffffff);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_orders_complete_once),     cmocka_unit_test(stale_and_double_change_nothing),
      cmocka_unit_test(race_has_one_winner),           cmocka_unit_test(expected_channels),
      cmocka_unit_test(channels_of_symmetric_kernels), cmocka_unit_test(channel_counts_by_release),
      cmocka_unit_test(handles_round_trip_and_reject),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
