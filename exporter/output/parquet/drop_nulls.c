#include "drop_nulls.h"

#include "writer.h"

/* Each loop keeps the values whose byte is set; always storing and sometimes advancing has no branch to mispredict. */
#define NI_DENSE(TYPE)                      \
  do {                                      \
    const TYPE *src = (const TYPE *)values; \
    TYPE *dst = (TYPE *)out;                \
    for (uint32_t i = 0; i < n; i++) {      \
      dst[k] = src[i];                      \
      k += valid[i] != 0;                   \
    }                                       \
  } while (0)

void ni_drop_nulls(void *out, const void *values, const uint8_t *valid, uint32_t n, size_t width) {
  uint32_t k = 0;
  switch (width) {
    case 1: NI_DENSE(uint8_t); break;
    case 4: NI_DENSE(uint32_t); break;
    case 8: NI_DENSE(uint64_t); break;
    default: NI_DENSE(struct ni_str); break;
  }
}

uint32_t ni_count_valid(const uint8_t *valid, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += valid[i] != 0;
  return sum;
}
