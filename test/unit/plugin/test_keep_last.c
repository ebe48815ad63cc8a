/* NCCL_INSPECTOR_POOL_KEEP=last: a consumer of the queue is held up for more than a round of it, with one place reserved. */
#include "core_child.h"

#include "plugin/slots/done_ring.h"

static void held_up(void) {
  void *ctx = open_comm(1);
  struct ni_done_ring *ring = ni_g.ring[comm_at(ctx)->index];
  run_op(ctx, 0, 0);
  /* What ni_done_ring_pop does up to the point at which its thread loses the processor. */
  uint64_t place = ni_load_rlx(&ring->out);
  uint32_t slot = ring->cell[place & ring->mask].slot;
  ni_store_rlx(&ring->out, place + 1);
  for (uint64_t i = 1; i < 500; i++) run_op(ctx, i, 0);
  CHECK(ni_load_rlx(&ring->in) == place + ring->mask + 1); /* a whole round: the queue takes no more */
  ni_store_rel(&ring->cell[place & ring->mask].turn, place + ring->mask + 1); /* it goes on */
  CHECK(ni_done_ring_push(ring, slot) == 0); /* for the dump thread after all */
  for (uint64_t i = 500; i < 520; i++) run_op(ctx, i, 0); /* no slot has gone astray */
  ni_finalize(ctx);
  char *text = log_text();
  int records = lines_with(text, "\"coll_perf\"", "coll_sn");
  char dropped[64];
  snprintf(dropped, sizeof dropped, "\"dropped_by\":{\"overwritten\":%d}", 520 - records);
  CHECK(records == 8);
  CHECK(lines_with(text, "\"final\":true,\"coll\":{\"started\":520,\"written\":8,", dropped) == 1);
}
static void what_finds_no_place_is_counted(void **state) {
  (void)state;
  in_child(held_up, (const char *const[]){"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0", "NCCL_INSPECTOR_POOL_GROW", "0",
                                          "NCCL_INSPECTOR_POOL_KEEP", "last", "NCCL_INSPECTOR_COLL_POOL_SIZE", "8",
                                          "NCCL_INSPECTOR_P2P_POOL_SIZE", "8", NULL});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_finds_no_place_is_counted)};
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
