#include "render.h"

#include <stdio.h>

#include "exporter/base/text/safe_text.h"

void ni_render_say(const struct ni_render_options *o, const char *line) {
  if (o->say)
    o->say(o->say_context, line);
  else
    ni_say(stderr, "%s\n", line);
}
