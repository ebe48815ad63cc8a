/*
 * JSON text primitives: integers, fixed-point doubles and hostile strings, written at a pointer that moves
 * on.
 *
 * Each function writes at p and returns the first byte behind; none terminates, allocates or looks at the
 * locale. The caller has made room: the bound stands at each function. Pure, any thread.
 */
#ifndef NI_JSON_TEXT_H
#define NI_JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* of a string that is taken over; the rest is cut and an ellipsis put in its place */
#define NI_TEXT_MAX_BYTES 1024
#define NI_JSON_STRING_MAX_BYTES (6 * NI_TEXT_MAX_BYTES + 8) /* worst case of ni_json_string */

/* Decimal; at most 20 bytes. */
char *ni_json_put_u64(char *p, uint64_t v);
/* Decimal with sign; at most 20 bytes. */
char *ni_json_put_i64(char *p, int64_t v);
/* "0x" and lower-case hex digits without leading zeros; at most 18 bytes. */
char *ni_json_hex(char *p, uint64_t v);
/* Exactly as printf's %.<decimals>f in the C locale, decimals 1..12; the word null for NaN, infinities and
 * magnitudes of 1e15 and more. At most 30 bytes. */
char *ni_json_fixed(char *p, double v, int decimals);
/*
 * A quoted string. Control characters, '"', '\\' and '/' are escaped ('/' as NVIDIA's writer does); bytes
 * that are not UTF-8 (overlong forms and surrogates included) become U+FFFD one by one. NULL is written as
 * null.
 */
char *ni_json_string(char *p, const char *s);

/*
 * Bytes of the UTF-8 character that begins at s, which is 0x80 or more; 0: it is none. Overlong forms and
 * surrogates are none.
 */
int ni_utf8_length(const unsigned char *s);

/* A constant text without terminator. */
static inline char *ni_json_put(char *p, const char *text, size_t n) {
  memcpy(p, text, n);
  return p + n;
}
#define NI_JSON_LIT(p, lit) ni_json_put((p), (lit), sizeof(lit) - 1)

#endif
