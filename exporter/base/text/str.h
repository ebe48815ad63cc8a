/* Text with its length, which need not be terminated. Borrowed. */
#ifndef NI_STR_H
#define NI_STR_H

#include <stdint.h>

struct ni_str {
  const char *p;
  uint32_t len;
};

#endif
