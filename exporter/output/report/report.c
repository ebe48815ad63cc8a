#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "page_data.h"

int ni_report_render(const struct ni_summary *summary, const struct ni_render_options *options,
                     const char *path) {
  int rc = 0;
  char *json = NULL;
  size_t n = 0;
  FILE *memory;
  if (!ni_report_available()) {
    ni_render_say(options,
                  "report.html: not made, the page was not built in for want of npm and node (--only without "
                  "page silences this)");
    return -ENOTSUP;
  }
  if (!(memory = open_memstream(&json, &n)))
    return -errno;
  rc = ni_page_data_write(memory, summary, options);
  if (fclose(memory) != 0 && !rc)
    rc = -ENOMEM;
  if (!rc)
    rc = ni_report_put(NI_PAGE_REPORT, json, n, path);
  free(json);
  return rc;
}
