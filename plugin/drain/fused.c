#include "fused.h"

#include "plugin/slots/state.h"

static struct ni_op *op_at(uint32_t slot) { return ni_arena_op(&ni_g.arena, slot); }

const struct ni_fused_span *ni_fused_span_of(const struct ni_comm_writer *s, uint32_t group) {
  for (uint32_t i = 0; i < NI_FUSED_SPANS; i++)
    if (s->fused.span[i].known && s->fused.span[i].group == group)
      return &s->fused.span[i];
  return NULL;
}

bool ni_fused_set_aside(struct ni_comm_writer *s) {
  struct ni_chain *todo = &s->kind[NI_KIND_COLL].todo;
  const struct ni_op *op = op_at(todo->first);
  if (!(op->origin & NI_OP_TAIL) || s->fused.ended)
    return false;
  if (ni_fused_span_of(s, op->group_ord))
    return false;
  ni_chain_append(&s->fused.waiting, ni_chain_take(todo));
  return true;
}

/* Lets those of one kernel, or all, go on. */
static void let_go(struct ni_drain *d, struct ni_comm_writer *s, uint32_t group, bool all) {
  struct ni_chain stay = {0};
  if (!s->fused.waiting.n)
    return;
  for (uint32_t slot; (slot = ni_chain_take(&s->fused.waiting)) != 0;) {
    bool goes = all || op_at(slot)->group_ord == group;
    ni_chain_append(goes ? &s->kind[NI_KIND_COLL].todo : &stay, slot);
  }
  s->fused.waiting = stay;
  ni_drain_busy(d, s);
}

static void keep(struct ni_comm_writer *s, uint32_t group, struct ni_fused_span span) {
  /* formatted again: the block was full */
  struct ni_fused_span *at = (struct ni_fused_span *)ni_fused_span_of(s, group);
  if (!at)
    at = &s->fused.span[s->fused.next++ % NI_FUSED_SPANS];
  *at = span;
  at->known = true;
  at->group = group;
}

void ni_fused_head(struct ni_drain *d, struct ni_comm_writer *s, uint32_t group, const struct ni_timing_in *t,
                   int64_t gpu_start_ns) {
  keep(s, group,
       (struct ni_fused_span){.gpu_ok = t->gpu_ok,
                              .has_kernel = t->has_kernel,
                              .gpu_ns = t->gpu_ns,
                              .kernel_cpu_ns = t->kernel_cpu_ns,
                              .gpu_start_ns = gpu_start_ns});
  let_go(d, s, group, false);
}

void ni_fused_give_up(struct ni_drain *d, struct ni_comm_writer *s, uint32_t group) {
  keep(s, group, (struct ni_fused_span){0});
  let_go(d, s, group, false);
}

bool ni_fused_end(struct ni_drain *d, struct ni_comm_writer *s) {
  bool waited = s->fused.waiting.n != 0;
  s->fused.ended = true;
  let_go(d, s, 0, true);
  return waited;
}
