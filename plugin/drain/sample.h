/*
 * Which operations keep their record when only one in N is written.
 *
 * Decided by the communicator's hash and the operation's number, which all ranks share for a collective: so
 * the same operations stay on all ranks and can be compared. A P2P's number is the rank's own, so its two
 * sides are kept or left out apart. The numbers are mixed: a job that repeats every N operations would else
 * always show the same layer. test/host/verify.py computes the same. Pure; dump role.
 */
#ifndef NI_SAMPLE_H
#define NI_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

static inline bool ni_sample_keeps(uint64_t n, uint64_t comm_hash, uint64_t sn) {
  if (n <= 1)
    return true;
  uint64_t x = comm_hash + sn * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return (x ^ x >> 31) % n == 0;
}

#endif
