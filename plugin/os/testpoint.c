/* Yields at random where a test build is to hold a thread between two visible effects (atomics.h). */
#include "atomics.h"

#ifdef NI_STRESS
#include <sched.h>

void (*ni_testpoint_hook)(void); /* a test's own thread at such a point: it makes the rare moment itself */
void ni_testpoint(void) {
  if (ni_testpoint_hook)
    ni_testpoint_hook();
  static _Thread_local uint32_t x;
  if (!x)
    x = (uint32_t)(uintptr_t)&x | 1;
  x ^= x << 13, x ^= x >> 17, x ^= x << 5;
  if (x % 64 == 0)
    sched_yield();
}
#endif
