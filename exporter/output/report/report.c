#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "page_data.h"

/* The two pieces of the page, [x, x_end), taken into the binary as they are: the data goes between. Empty when the build had no npm. */
extern const char ni_report_head[], ni_report_head_end[];
extern const char ni_report_tail[], ni_report_tail_end[];
#ifndef NI_REPORT_DIR
#error "NI_REPORT_DIR: the folder of the pieces (exporter/output/report/report.mk)"
#endif

#define EMBED(symbol, file)                                                                                            \
  __asm__(".pushsection .rodata\n"                                                                                     \
          ".global " #symbol "\n" #symbol ":\n"                                                                        \
          ".incbin \"" file "\"\n"                                                                                     \
          ".global " #symbol "_end\n" #symbol "_end:\n"                                                                \
          ".byte 0\n"                                                                                                  \
          ".popsection\n")

EMBED(ni_report_head, NI_REPORT_DIR "/report_assets.head");
EMBED(ni_report_tail, NI_REPORT_DIR "/report_assets.tail");

bool ni_report_available(void) { return &ni_report_tail_end[0] > &ni_report_tail[0]; }

/*
 * The data stand in a script element: "</script" or "<!--" inside would end or change it. '<' occurs in JSON only
 * within strings, where \u003c means the same.
 */
static void write_escaped(FILE *f, const char *json, size_t n) {
  for (const char *end = json + n; json < end;) {
    const char *sign = memchr(json, '<', (size_t)(end - json));
    const char *stop = sign ? sign : end;
    fwrite(json, 1, (size_t)(stop - json), f);
    if (sign) fputs("\\u003c", f);
    json = stop + (sign != NULL);
  }
}

int ni_report_render(const struct ni_summary *summary, const struct ni_render_options *options, const char *path) {
  int rc = 0;
  char *json = NULL;
  size_t n = 0;
  FILE *memory, *f;
  if (!ni_report_available()) {
    ni_render_say(options, "report.html: not made, the page was not built in for want of npm and node (--no-html silences this)");
    return -ENOTSUP;
  }
  if (!(memory = open_memstream(&json, &n))) return -errno;
  rc = ni_page_data_write(memory, summary, options);
  if (fclose(memory) != 0 && !rc) rc = -ENOMEM;
  if (rc) goto free_json;
  if (!(f = fopen(path, "we"))) {
    rc = -errno;
    goto free_json;
  }
  errno = 0;
  fwrite(ni_report_head, 1, (size_t)(ni_report_head_end - ni_report_head), f);
  write_escaped(f, json, n);
  fwrite(ni_report_tail, 1, (size_t)(ni_report_tail_end - ni_report_tail), f);
  if ((rc = ni_out_end(f)) < 0) unlink(path);
free_json:
  free(json);
  return rc;
}
