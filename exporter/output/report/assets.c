/*
 * The two pieces of the page, taken into the binary as they are. Empty when the build had no npm.
 */
#include "assets.h"

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
