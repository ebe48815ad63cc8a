#include "sampling.h"

#include <stdlib.h>
#include <string.h>

uint64_t ni_sampling_of(const struct ni_line *l) {
  if (l->kind == NI_LINE_CONTROL) return l->control.sample;
  for (uint32_t i = 0; l->kind == NI_LINE_PROCESS && i < l->process.settings.n; i++) {
    const char *value = l->process.settings.item[i].value;
    if (strcmp(l->process.settings.item[i].key, "NCCL_INSPECTOR_SAMPLE") != 0) continue;
    return strncmp(value, "1/", 2) == 0 ? strtoull(value + 2, NULL, 10) : 0;
  }
  return 0;
}
