#include "page_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/out_file.h"

/*
 * The pieces of the pages, [x, x_end), taken into the binary as they are: the data go between. Empty when the
 * build had no npm.
 */
extern const char ni_report_head[], ni_report_head_end[];
extern const char ni_counters_head[], ni_counters_head_end[];
extern const char ni_diff_head[], ni_diff_head_end[];
extern const char ni_head_head[], ni_head_head_end[];
extern const char ni_report_tail[], ni_report_tail_end[];
#ifndef NI_REPORT_DIR
#error "NI_REPORT_DIR: the folder of the pieces (exporter/output/report/report.mk)"
#endif

#define EMBED(symbol, file) \
  __asm__( \
      ".pushsection .rodata\n" \
      ".global " #symbol "\n" #symbol \
      ":\n" \
      ".incbin \"" file \
      "\"\n" \
      ".global " #symbol "_end\n" #symbol \
      "_end:\n" \
      ".byte 0\n" \
      ".popsection\n")

EMBED(ni_report_head, NI_REPORT_DIR "/report_assets.head");
EMBED(ni_counters_head, NI_REPORT_DIR "/counters_assets.head");
EMBED(ni_diff_head, NI_REPORT_DIR "/diff_assets.head");
EMBED(ni_head_head, NI_REPORT_DIR "/head_assets.head");
EMBED(ni_report_tail, NI_REPORT_DIR "/report_assets.tail");

bool ni_report_available(void) { return &ni_report_tail_end[0] > &ni_report_tail[0]; }

/*
 * The data stand in a script element: "</script" or "<!--" inside would end or change it. '<' occurs in JSON
 * only within strings, where \u003c means the same.
 */
static void write_escaped(FILE *f, const char *json, size_t n) {
  for (const char *end = json + n; json < end;) {
    const char *sign = memchr(json, '<', (size_t)(end - json));
    const char *stop = sign ? sign : end;
    fwrite(json, 1, (size_t)(stop - json), f);
    if (sign)
      fputs("\\u003c", f);
    json = stop + (sign != NULL);
  }
}

void ni_report_text(enum ni_page page, const char *json, size_t n, FILE *f) {
  const struct {
    const char *from, *to;
  } head[] = {{ni_report_head, ni_report_head_end},
              {ni_counters_head, ni_counters_head_end},
              {ni_diff_head, ni_diff_head_end},
              {ni_head_head, ni_head_head_end}};
  fwrite(head[page].from, 1, (size_t)(head[page].to - head[page].from), f);
  write_escaped(f, json, n);
  fwrite(ni_report_tail, 1, (size_t)(ni_report_tail_end - ni_report_tail), f);
}

/*
 * The report's folder is open. The other pages are where a user says, which may be a link or a folder of
 * somebody else.
 */
int ni_report_put(enum ni_page page, const char *json, size_t n, const char *path) {
  struct ni_out_stream o;
  if (page != NI_PAGE_REPORT) {
    int e = ni_out_open(&o, path);
    if (e == 0)
      ni_report_text(page, json, n, o.f);
    return ni_out_close(&o, e, true);
  }
  FILE *f = fopen(path, "we");
  if (!f)
    return -errno;
  errno = 0;
  ni_report_text(page, json, n, f);
  int e = ni_out_end(f);
  if (e < 0)
    unlink(path);
  return e;
}
