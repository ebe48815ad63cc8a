/*
 * The second pass: every line that is shown becomes events in aligned time.
 */
#include "emit.h"

#include <string.h>

#include "emit_counters.h"
#include "emit_events.h"
#include "emit_marks.h"
#include "emit_op.h"
#include "emit_with.h"

static int take(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l) {
  switch (l->kind) {
    case NI_LINE_OP: return ni_tr_emit_op(r, w, l);
    case NI_LINE_PROXY: return ni_tr_emit_proxy(r, w, l);
    case NI_LINE_API:
    case NI_LINE_LAUNCH:
    case NI_LINE_GROUP:
    case NI_LINE_CE:
    case NI_LINE_SYNC:
    case NI_LINE_BATCH:
    case NI_LINE_PROXY_CTRL:
    case NI_LINE_NET: return ni_tr_emit_event(r, w, l);
    default: return ni_tr_emit_mark(r, w, l);
  }
}

int ni_tr_emit(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_members; i++) {
    r->member[i].gpu_offset_ns = NI_NO_OFFSET;
    ni_tr_sort_gaps(&r->member[i]);
  }
  int e = ni_tr_pass(r, false, take);
  if (e == 0) e = ni_tr_emit_kept(r);
  if (e == 0) e = ni_tr_emit_counters(r);
  if (e == 0) e = ni_tr_emit_with(r);
  return e < 0 ? ni_tr_fail(r, e, "%s", strerror(-e)) : 0;
}
