/*
 * Waiting and waking on a 32-bit word of this process. Thin, no state.
 */
#ifndef NI_FUTEX_H
#define NI_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "atomics.h"

/*
 * Raises the word and wakes one waiter, or all. Never blocks. Release: what was stored before is seen by the
 * woken.
 */
static inline void ni_futex_wake_one(_Atomic uint32_t *word) {
  int keep = errno;
  (void)atomic_fetch_add_explicit(word, 1, memory_order_release);
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  errno = keep;
}
static inline void ni_futex_wake_all(_Atomic uint32_t *word) {
  int keep = errno;
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
  errno = keep;
}

/*
 * Sleeps while *word == seen, at most timeout_ns (UINT64_MAX: without limit). May return early for no reason.
 */
static inline void ni_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns) {
  struct timespec t = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
  (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns == UINT64_MAX ? NULL : &t, NULL, 0);
}

#endif
