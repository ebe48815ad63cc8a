#include "words.h"

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/time_text.h"

#include <inttypes.h>
#include <string.h>

#include "exporter/base/text/safe_text.h"

const char *ni_hang_where_name(enum ni_hang_where where) {
  static const char *const names[NI_HANG_WHERE_COUNT] = {"finished",   "inside", "queued",  "called",  "never_called",
                                                         "other_call", "gone",   "left",    "no_data", "not_involved"};
  return names[where];
}

const char *ni_hang_state_name(uint8_t state) {
  static const char *const names[NI_HANG_STATE_COUNT] = {"called", "launched", "kernel", "network", "finishing", "in_flight"};
  return names[state < NI_HANG_STATE_COUNT ? state : NI_HANG_UNSTATED];
}

int32_t ni_hang_global(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  const struct ni_hang_process *p = ni_hang_process_at(v, w);
  return p->several ? -1 : p->rank;
}

void ni_hang_say_comm(FILE *f, const struct ni_hang_member *x) {
  if (x->who->name && *x->who->name) ni_put_text(f, x->who->name);
  else ni_say(f, "0x%" PRIx64, x->who->hash);
}

void ni_hang_say_op(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_op *op) {
  const char *func = ni_hang_text(v->model, op->func);
  ni_put_text(f, *func ? func : "an operation");
  if (op->kind == NI_KIND_COLL) ni_say(f, " %" PRIu64, op->sn);
  else if (op->root >= 0) ni_say(f, " %s rank %d", strcmp(func, "Send") == 0 ? "to" : "from", op->root);
}

void ni_hang_say_span(FILE *f, uint64_t ns) {
  char text[32];
  ni_say(f, "%s", ni_age_text(ns, text));
}

void ni_hang_say_when(FILE *f, const struct ni_hang_verdict *v, uint64_t ns) {
  char text[40];
  ni_say(f, "%s (", ni_utc_text((int64_t)(ns / 1000), 'T', 0, text));
  ni_hang_say_span(f, v->wall_ns > ns ? v->wall_ns - ns : 0);
  fputs(" ago)", f);
}
