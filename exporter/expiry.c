#include "expiry.h"

#include <string.h>

unsigned ni_expiry_limits(const struct ni_process_line *p) {
  unsigned limits = 0;
  for (uint32_t i = 0; i < p->settings.n; i++) {
    if (strcmp(p->settings.item[i].key, "NCCL_INSPECTOR_DIR_MAX_BYTES") == 0) limits |= NI_EXPIRES_BY_SIZE;
    if (strcmp(p->settings.item[i].key, "NCCL_INSPECTOR_KEEP_SECONDS") == 0) limits |= NI_EXPIRES_BY_AGE;
  }
  return limits;
}

const char *ni_expiry_text(unsigned limits) {
  static const char *const text[] = {"a limit of its settings, whose line is not there", "NCCL_INSPECTOR_DIR_MAX_BYTES",
                                     "NCCL_INSPECTOR_KEEP_SECONDS",
                                     "NCCL_INSPECTOR_DIR_MAX_BYTES or NCCL_INSPECTOR_KEEP_SECONDS"};
  return text[limits & 3];
}
