/* Which names are of one kind, and which are nearly the same. Pure, any thread. */
#ifndef NI_NAMES_ALIKE_H
#define NI_NAMES_ALIKE_H

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Do two names differ in digits alone ("tp0", "tp1"; also when nobody gave any)? Then they are likely groups
 * of one kind, side by side, with no rank in common. */
static inline bool ni_names_alike(const char *a, const char *b) {
  for (a = a ? a : "", b = b ? b : "";; a++, b++) {
    a += strspn(a, "0123456789");
    b += strspn(b, "0123456789");
    if (*a != *b || !*a)
      return *a == *b;
  }
}

#define NI_EDITS_MAX 127 /* bytes of a text, at most */

/*
 * Letters to change, add or take away to get from the n bytes of a to the m bytes of b. any_case: 'a' is 'A'.
 */
static inline unsigned ni_edits(const char *a, size_t n, const char *b, size_t m, bool any_case) {
  unsigned row[NI_EDITS_MAX + 1];
  for (unsigned k = 0; k <= m; k++)
    row[k] = k;
  for (size_t i = 0; i < n; i++) {
    unsigned corner = row[0]++;
    for (size_t k = 0; k < m; k++) {
      bool is_same =
          a[i] == b[k] || (any_case && tolower((unsigned char)a[i]) == tolower((unsigned char)b[k]));
      unsigned best = corner + !is_same;
      corner = row[k + 1];
      if (row[k + 1] + 1 < best)
        best = row[k + 1] + 1;
      if (row[k] + 1 < best)
        best = row[k] + 1;
      row[k + 1] = best;
    }
  }
  return row[m];
}

#endif
