#include "left_out.h"

#include <stdlib.h>
#include <string.h>

uint64_t ni_sampling_of(const struct ni_line *l) {
  if (l->kind == NI_LINE_CONTROL) return l->control.sample;
  const char *value = l->kind == NI_LINE_PROCESS ? ni_pairs_value(&l->process.settings, "NCCL_INSPECTOR_SAMPLE") : NULL;
  return value && strncmp(value, "1/", 2) == 0 ? strtoull(value + 2, NULL, 10) : 0;
}

unsigned ni_expiry_limits(const struct ni_process_line *p) {
  return (ni_pairs_value(&p->settings, "NCCL_INSPECTOR_DIR_MAX_BYTES") ? NI_EXPIRES_BY_SIZE : 0u) |
         (ni_pairs_value(&p->settings, "NCCL_INSPECTOR_KEEP_SECONDS") ? NI_EXPIRES_BY_AGE : 0u);
}

const char *ni_expiry_text(unsigned limits) {
  static const char *const text[] = {"a limit of its settings, whose line is not there", "NCCL_INSPECTOR_DIR_MAX_BYTES",
                                     "NCCL_INSPECTOR_KEEP_SECONDS",
                                     "NCCL_INSPECTOR_DIR_MAX_BYTES or NCCL_INSPECTOR_KEEP_SECONDS"};
  return text[limits & 3];
}
