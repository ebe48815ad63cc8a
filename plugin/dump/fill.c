#include "fill.h"

#include <errno.h>

#include "plugin/drain/event_drain.h"
#include "session.h"

int ni_fill(struct ni_dump *d) {
  int rc;
  while ((rc = ni_drain_format(&d->drain)) == -EFBIG)
    if (ni_session_flush(d))
      return -EBUSY;
  while (rc == 0 && (rc = ni_events_format(&d->drain)) == -EFBIG) {
    if (ni_session_flush(d))
      return -EBUSY;
    rc = 0;
  }
  return rc;
}
