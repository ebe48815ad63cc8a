/*
 * libFuzzer: any bytes as a trace of torch.profiler for `import`. What is gathered is in order and within its
 * bounds, and each rank's numbers of one function rise.
 *
 *   test/fuzz/run.sh 60 kineto
 */
#include <stdlib.h>
#include <string.h>

#include "exporter/cmds/import/align.h"
#include "exporter/input/kineto/gather.h"
#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static void look(const struct ni_imported *m) {
  for (size_t i = 0; i < m->n; i++) {
    const struct ni_imported_op *op = &m->op[i];
    need(op->comm < m->n_comms && op->func < m->n_funcs && op->kind < NI_KIND_COUNT &&
         (i == 0 || op[-1].start_ns <= op->start_ns));
    need(op->start_ns >= m->first_ns && op->start_ns + (int64_t)op->dur_ns <= m->last_ns);
    need(*m->funcs[op->func] && memchr(m->funcs[op->func], 0, sizeof m->funcs[0]) &&
         (op->sized || op->bytes == 0));
  }
  for (size_t i = 0; i < m->n_comms; i++)
    need(m->comm[i].rank >= 0 && (m->comm[i].n_ranks == 0 || m->comm[i].rank < m->comm[i].n_ranks));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct ni_imported m[2];
  struct ni_align a = {0};
  char path[512];
  static const char *dir;
  if (!dir)
    dir = fuzz_dir("kineto");
  snprintf(path, sizeof path, "%s/rank0.json", dir);
  FILE *f = fopen(path, "w");
  need(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
  for (uint32_t i = 0; i < 2; i++) {
    ni_imported_init(&m[i], path);
    if (ni_kineto_gather(&m[i], NULL) == 0)
      look(&m[i]);
    if (m[i].n)
      need(ni_align_add(&a, i, &m[i]) == 0);
  }
  need(ni_align_find(&a) == 0);
  for (size_t i = 0; i < a.n; i++)
    need(a.seat[i].n > 0 && (i == 0 || a.seat[i - 1].file <= a.seat[i].file));
  ni_align_free(&a);
  for (int i = 0; i < 2; i++)
    ni_imported_free(&m[i]);
  return 0;
}
