/*
 * Why a GPU's clocks are lower than they could be, in words: nvmlDeviceGetCurrentClocksEventReasons() (nvml.h
 * of NVIDIA). Idle, application clocks and the display's setting are what somebody asked for: no reason to
 * worry. Pure; any thread.
 */
#ifndef NI_THROTTLE_H
#define NI_THROTTLE_H

#include <stdint.h>
#include <string.h>

enum { NI_THROTTLE_TEXT = 128 };
#define NI_THROTTLE_WISHED (UINT64_C(1) | 2 | 0x100) /* idle, application clocks, display */

/* "HW thermal, power brake"; "no". Returns out. */
static inline const char *ni_throttle_text(uint64_t bits, char out[NI_THROTTLE_TEXT]) {
  static const struct {
    uint64_t bit;
    const char *text;
  } reasons[] = {{0x40, "HW thermal"}, {0x20, "SW thermal"}, {0x80, "power brake"},
                 {4, "power cap"},     {8, "HW slowdown"},   {0x10, "sync boost"}};
  size_t n = 0;
  strcpy(out, "no");
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
    if (!(bits & reasons[i].bit))
      continue;
    if (n)
      n = (size_t)(stpcpy(out + n, ", ") - out);
    n = (size_t)(stpcpy(out + n, reasons[i].text) - out);
  }
  return out;
}

#endif
