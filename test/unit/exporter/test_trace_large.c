/*
 * `trace` with a viewer that opens 100 kB only: test/cases/trace/trace.sh runs it. Without arguments there is
 * nothing to do.
 */
#define NI_TR_VIEWER_BYTES 100000
#include "exporter/output/timeline/write.c"

#include "exporter/cli/command.h"

int main(int argc, char **argv) { return argc > 1 ? ni_trace_run(argc, argv) : 0; }
