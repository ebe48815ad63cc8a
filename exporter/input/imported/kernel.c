#include "kernel.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* "ncclAllReduceRingLLKernel_sum_f16": the function ends where the algorithm begins;
 * "ncclSendRecvKernel_copy_i8" has none. */
static size_t measure_old_function(const char *name) {
  static const char *const behind[] = {"Ring", "Tree", "CollNet", "Kernel"};
  const char *kernel = strstr(name, "Kernel");
  size_t least = 0;
  for (size_t i = 0; kernel && kernel < name + 64 && i < sizeof behind / sizeof *behind; i++) {
    const char *at = strstr(name, behind[i]);
    if (at && at <= kernel && (!least || (size_t)(at - name) < least))
      least = (size_t)(at - name);
  }
  return least;
}

bool ni_imported_kernel(const char *name, char func[32]) {
  static const char *const prefix[] = {"ncclDevKernel_", "ncclKernel_", "ncclSymkDevKernel_",
                                       "ncclSymDevKernel_", "rcclDevKernel_"};
  size_t n = 0;
  if (strncmp(name, "void ", 5) == 0)
    name += 5;
  for (size_t i = 0; n == 0 && i < sizeof prefix / sizeof *prefix; i++) {
    const size_t length = strlen(prefix[i]);
    if (strncmp(name, prefix[i], length) != 0)
      continue;
    name += length;
    n = strcspn(name, "_(<");
    if (n == 0)
      return false;
  }
  if (n == 0 && strncmp(name, "nccl", 4) == 0)
    n = measure_old_function(name += 4);
  if (n == 0)
    return false;
  snprintf(func, 32, "%.*s", (int)(n < 31 ? n : 31), name);
  return true;
}
