/*
 * The operations on which two threads meet, each in a function of its own, for orders.sh: it looks at the
 * instructions that a compiler for aarch64 makes of them. x86 orders nearly everything by itself, and an
 * emulator on x86 does too, so a memory order that is too weak shows in no run there; in the instructions it
 * does.
 *
 * expect: NAME  mnemonics that must occur ("a/b": either)
 */
#include "plugin/slots/done_list.h"
#include "plugin/slots/slot_pool.h"
#include "plugin/slots/late.h"
#include "plugin/slots/state.h"

#define KEEP __attribute__((noinline, used))

/* expect: op_set         ldar/ldapr casal              -- the exchange that may add DONE */
KEEP uint64_t op_set(struct ni_op *op, uint32_t gen, uint32_t flag) { return ni_op_set(op, gen, flag); }

/* expect: done_push      casl/casal */
KEEP int done_push(struct ni_arena *a, struct ni_done_list *l, uint32_t slot) {
  return ni_done_push(a, l, slot);
}

/* expect: done_drain     swpa/swpal */
KEEP uint32_t done_drain(struct ni_arena *a, struct ni_done_list *l, uint32_t *n) {
  return ni_done_drain(a, l, n);
}

/* expect: late_push      ldar/ldapr stlr */
KEEP void late_push(struct ni_late_ring *r, const struct ni_late_stop *l) { ni_late_push(r, l); }

/* expect: late_pop       ldar/ldapr stlr */
KEEP int late_pop(struct ni_late_ring *r, struct ni_late_stop *l) { return ni_late_pop(r, l); }

/* expect: intern_id      ldar/ldapr */
KEEP uint8_t intern_id(struct ni_intern *t, const char *s) { return ni_intern_id(t, s); }
