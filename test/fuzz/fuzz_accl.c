/*
 * libFuzzer: any bytes as a log of ACCL for `import`, and as the name of one. What is gathered is within its
 * bounds.
 *
 *   test/fuzz/run.sh 60 accl
 */
#include <stdlib.h>
#include <string.h>

#include "exporter/cmds/import/settle.h"
#include "exporter/input/accl/accl.h"
#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static int look(void *arg, struct ni_imported *m) {
  struct ni_settled settled;
  need(m->n > 0 && m->numbered && m->first_ns == m->last_ns);
  for (size_t i = 0; i < m->n; i++) {
    const struct ni_imported_op *op = &m->op[i];
    need(op->comm < m->n_comms && op->func < m->n_funcs && op->algo <= m->n_funcs &&
         op->proto <= m->n_funcs && op->timing < NI_TIMING_COUNT);
    need(*m->funcs[op->func] && memchr(m->funcs[op->func], 0, sizeof m->funcs[0]) &&
         (op->sized || op->bytes == 0));
  }
  for (size_t i = 0; i < m->n_comms; i++)
    need(m->comm[i].hash && (m->comm[i].n_ranks == 0 || m->comm[i].rank < m->comm[i].n_ranks));
  need(ni_import_settle(&m, 1, &settled) == 0);
  ni_imported_free(m);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[2][512];
  const char *const both[] = {path[0], path[1]};
  static const char *dir;
  struct ni_accl_name name;
  if (!dir)
    dir = fuzz_dir("accl");
  snprintf(path[0], sizeof path[0], "%s/accl_profiler_rank0_h_pid5_0xabc.jsonl", dir);
  snprintf(path[1], sizeof path[1], "%s/accl_profiler_rank1_h_pid5_0xdef.jsonl", dir);
  for (int i = 0; i < 2; i++) {
    FILE *f = fopen(path[i], "w");
    need(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
  }
  ni_accl_read(both, 2, look, NULL, NULL);
  char *text = malloc(size + 64);
  need(text != NULL);
  sprintf(text, "accl_profiler_rank%.*s.jsonl", (int)size, (const char *)data);
  if (ni_accl_parse_name(text, &name))
    need(name.rank >= 0 && memchr(name.host, 0, sizeof name.host));
  need(ni_accl_same_process(text, text) == (name.pid >= 0) && ni_accl_by_process(text, text) == 0);
  free(text);
  return 0;
}
