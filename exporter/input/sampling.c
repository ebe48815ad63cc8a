#include "sampling.h"

#include <stdlib.h>
#include <string.h>

uint64_t ni_sampling_of(const struct ni_line *l) {
  if (l->kind == NI_LINE_CONTROL) return l->control.sample;
  const char *value = l->kind == NI_LINE_PROCESS ? ni_pairs_value(&l->process.settings, "NCCL_INSPECTOR_SAMPLE") : NULL;
  return value && strncmp(value, "1/", 2) == 0 ? strtoull(value + 2, NULL, 10) : 0;
}
