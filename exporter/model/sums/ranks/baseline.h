/*
 * What an operation in one place of the step waits for, and how long the rank normally computes before it:
 * its baseline.
 *
 * An operation's own time begins after the last end of what it waits for: the operation before on its own
 * slot, perhaps a message, perhaps the last gradients. Ends that are not waited for (overlapped gradients)
 * fall anywhere. How the start moves with the end of another slot tells whether that slot is waited for. It
 * moves one to one where it is (slope 1), and not at all where it is not (slope 0), over the samples in which
 * the other slot ended after its own. Where that end moves too little to tell, the middle 60 % of the times
 * tell: they become clearly narrower. What begins as soon as another slot has ended, as far as stamps can
 * tell, waits for it if it does so in nearly all samples, whatever the line says: where stamps are off by as
 * much as the times vary there is no line. The first operation of a step waits for what ended the one before:
 * where that is nearly always the same slot, nothing else can have been waited for. Slots are added one at a
 * time.
 *
 * Pure; any thread.
 */
#ifndef NI_BLAME_BASELINE_H
#define NI_BLAME_BASELINE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define NI_BASELINE_SAMPLES 192u

struct ni_baseline {
  uint64_t waits_for; /* slots, a bit each; at first 0: not known */
  float us, width;    /* median; NAN: not known. Of the middle 60 % */
  uint32_t samples;
  /*
   * Another slot nearly always ends in it, and nothing tells whether it is waited for: the baseline if it
   * were. NAN: no such slot.
   */
  float alternative_us;
  uint32_t alternative_slot;
  bool steady; /* it varies little enough to be compared, */
  /* and hardly ever anything else ends in it: nothing else can have been waited for */
  bool alone;
};

/*
 * gap: [n][slots], us since the last end on each slot, INFINITY: none. slot: its own. first: its first
 * operation in a step. off_us: by so much stamps are off.
 */
void ni_baseline_find(struct ni_baseline *u, const float *gap, uint32_t n, uint32_t slots, uint32_t slot,
                      bool first, float off_us);

/*
 * A gap much longer than the baseline: the rank waited for something that its place rarely waits for, if
 * anything else ended early enough to leave it most of its own time. Returns how much of it has to be left,
 * in us; NAN: the gap is not that long.
 */
static inline float ni_baseline_least_own(float baseline, float gap) {
  return gap > 1.25f * baseline + 200 ? 0.7f * baseline : NAN;
}

#endif
