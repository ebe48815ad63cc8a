#include "top.h"

int ni_top(const struct ni_top_options *o, const char *name) {
  (void)o, (void)name;
  return NI_EXIT_COULD_NOT_RUN;
}
