/* Bytes of an element by c10's name of its type ("BFloat16", "Float8_e4m3fn"), without a NUL; 0: not known. Pure. */
#ifndef NI_TORCH_DTYPE_H
#define NI_TORCH_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t ni_torch_dtype_bytes(const char *name, size_t len) {
  static const struct { const char *name; uint64_t bytes; } types[] = {
      {"BFloat16", 2}, {"Half", 2}, {"Short", 2}, {"Float8", 1}, {"Float", 4}, {"Int", 4}, {"Double", 8}, {"Long", 8},
      {"Byte", 1}, {"Char", 1}, {"Bool", 1}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strlen(types[i].name) <= len && memcmp(name, types[i].name, strlen(types[i].name)) == 0) return types[i].bytes;
  return 0;
}

#endif
