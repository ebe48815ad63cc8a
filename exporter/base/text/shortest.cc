#include <charconv>
#include <cmath>
#include <cstring>

extern "C" {
#include "shortest.h"
}

/* repr() writes 1e-4 up to below 1e16 without exponent, always with a point. */
unsigned ni_shortest(double value, char *out) {
  if (!std::isfinite(value))
    return 0;
  double a = std::fabs(value);
  bool plain = a == 0 || (a >= 1e-4 && a < 1e16);
  std::to_chars_result r = std::to_chars(out, out + NI_SHORTEST_BYTES - 2, value,
                                         plain ? std::chars_format::fixed : std::chars_format::scientific);
  unsigned n = static_cast<unsigned>(r.ptr - out);
  if (plain && !memchr(out, '.', n)) {
    out[n++] = '.';
    out[n++] = '0';
  }
  return n;
}
