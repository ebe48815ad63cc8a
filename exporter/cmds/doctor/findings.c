#include "findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exporter/base/array.h"

void ni_doctor_add(struct ni_doctor *d, const char *check, enum ni_status status, const char *advice,
                   const char *text, ...) {
  va_list ap;
  if (!ni_array_room(d->finding, d->n, d->cap))
    return;
  struct ni_doctor_finding *f = &d->finding[d->n];
  *f = (struct ni_doctor_finding){check, status, NULL, advice ? strdup(advice) : NULL};
  va_start(ap, text);
  if (vasprintf(&f->text, text, ap) < 0)
    f->text = NULL;
  va_end(ap);
  if (f->text)
    d->n++;
}
