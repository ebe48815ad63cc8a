#include "trace.h"

#include <stdarg.h>
#include <stdio.h>

int ni_tr_fail(struct ni_tr *r, int e, const char *text, ...) {
  va_list ap;
  if (!*r->error_text) {
    va_start(ap, text);
    vsnprintf(r->error_text, sizeof r->error_text, text, ap);
    va_end(ap);
  }
  return e;
}
