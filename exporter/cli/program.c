#include "program.h"

#include <string.h>

static const char *program = "nccl-inspector";

void ni_program_called(const char *argv0) {
  if (strchr(argv0, '/'))
    program = argv0;
}

const char *ni_program_text(void) { return program; }
