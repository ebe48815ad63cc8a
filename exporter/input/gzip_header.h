/*
 * What the first ten bytes of a gzip member look like (RFC 1952), for finding members in the middle of a
 * file. Strict in the bytes that writers leave constant, so that compressed data is rarely taken for a
 * header.
 */
#ifndef NI_GZIP_HEADER_H
#define NI_GZIP_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#define NI_GZIP_HEADER_BYTES 10

static inline bool ni_gzip_header(const uint8_t *p) {
  const bool has_magic = p[0] == 0x1f && p[1] == 0x8b && p[2] == 8;
  const bool has_level = p[8] == 0 || p[8] == 2 || p[8] == 4, has_system = p[9] <= 13 || p[9] == 255;
  return has_magic && (p[3] & 0xe0) == 0 && has_level && has_system;
}

#endif
