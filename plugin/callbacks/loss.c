#include "loss.h"

#include "plugin/slots/state.h"

void ni_stray(enum ni_stray why) { ni_add_rlx(&ni_g.stray[why], 1); }

/*
 * The mark: the lowest of those that are lost and not told. Release pairs with the exchange in ni_lines_gaps.
 */
static void mark_first(struct ni_gap_mark *m, uint64_t mark) {
  uint64_t first = ni_load_rlx(&m->first);
  while ((first == 0 || first > mark) && !ni_cas_rel(&m->first, &first, mark)) {}
}

/* The range first, then the count (release, pairs with ni_lines_gaps' acquire), so that a range reported with
 * a count covers it; and the mark once more, because ni_lines_gaps may have taken the first before there was
 * a count. */
void ni_lose(struct ni_comm_kind *k, enum ni_drop why, uint64_t rec_sn) {
  struct ni_gap_mark *m = &k->gap[why];
  NI_TESTPOINT();
  uint64_t last = ni_load_rlx(&m->last);
  while (last < rec_sn + 1 && !ni_cas_rlx(&m->last, &last, rec_sn + 1)) {}
  mark_first(m, rec_sn + 1);
  NI_TESTPOINT();
  (void)atomic_fetch_add_explicit(&k->dropped[why], 1, memory_order_release);
  mark_first(m, rec_sn + 1);
}
