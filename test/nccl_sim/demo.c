/*
 * --job NxG: a training job as a scenario text: tensor-parallel groups inside a node, data-parallel groups
 * across nodes, pipeline neighbours when there are four nodes or more. Sizes are those of a model of some ten
 * billion parameters in bfloat16. Pure: the text goes through the same reader as a file, so every setting can
 * be changed with --set.
 */
#include <string.h>

#include "modes.h"

struct text {
  char *at;
  size_t n, cap;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...) {
  va_list ap;
  if (t->cap - t->n < 512) {
    t->cap = t->cap ? 2 * t->cap : 4096;
    t->at = realloc(t->at, t->cap);
    if (!t->at)
      ni_die(NI_SIM_FAILED, "out of memory");
  }
  va_start(ap, fmt);
  t->n += (size_t)vsnprintf(t->at + t->n, t->cap - t->n, fmt, ap);
  va_end(ap);
}

struct ni_scn *ni_job_scenario(const char *shape, const struct ni_options *o) {
  int nodes, gpus;
  if (sscanf(shape, "%dx%d", &nodes, &gpus) != 2 || nodes < 1 || gpus < 1 || nodes > 512 || gpus > 64)
    ni_die(NI_SIM_USAGE, "--job %s: accepted is NODESxGPUS, as 2x8", shape);
  int ranks = nodes * gpus, stages = nodes >= 4 && nodes % 2 == 0 ? 2 : 1;
  struct text t = {0};
  add(&t, "set ranks=%d nodes=%d rate=200 net_steps=4\n", ranks, nodes);
  for (int n = 0; n < nodes; n++)
    add(&t, "comm tp%d ranks=%d-%d\n", n, n * gpus, n * gpus + gpus - 1);
  int per_stage = nodes / stages;
  for (int s = 0; s < stages && per_stage > 1; s++)
    for (int g = 0; g < gpus; g++)
      add(&t, "comm dp%d ranks=%d-%d/%d\n", s * gpus + g, s * per_stage * gpus + g,
          (s * per_stage + per_stage - 1) * gpus + g, gpus);
  int pipes = stages == 2 ? per_stage * gpus : 0;
  for (int p = 0; p < pipes; p++)
    add(&t, "comm pp%d ranks=%d,%d\n", p, p, p + pipes);
  add(&t, "loop times=%d\n", o->iterations < 1 ? 1 : o->iterations);
  for (int layer = 0; layer < 4; layer++)
    for (int n = 0; n < nodes && gpus > 1; n++) {
      add(&t, "coll tp%d func=AllGather bytes=8m dtype=ncclBfloat16 channels=16\n", n);
      add(&t, "coll tp%d func=ReduceScatter bytes=8m dtype=ncclBfloat16 channels=16\n", n);
    }
  for (int p = 0; p < pipes; p++)
    add(&t, "p2p pp%d from=0 to=1 bytes=32m dtype=ncclBfloat16 channels=4\n", p);
  for (int p = 0; p < pipes; p++)
    add(&t, "p2p pp%d from=1 to=0 bytes=32m dtype=ncclBfloat16 channels=4\n", p);
  for (int d = 0; d < stages * gpus && per_stage > 1; d++) {
    add(&t, "coll dp%d func=ReduceScatter bytes=100m dtype=ncclFloat32 channels=16\n", d);
    add(&t, "coll dp%d func=AllGather bytes=50m dtype=ncclBfloat16 channels=16\n", d);
    add(&t, "coll dp%d func=AllReduce bytes=4 dtype=ncclFloat32\n", d);
  }
  add(&t, "end\n");
  char name[64];
  snprintf(name, sizeof name, "--job %.32s", shape);
  struct ni_scn *s = ni_scn_parse(t.at, name, o->sets, o->n_sets);
  free(t.at);
  return s;
}
