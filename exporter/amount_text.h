/*
 * Sizes and times as people read them: "418 kB", "2.55 s". One place, so that all messages say them alike.
 */
#ifndef NI_AMOUNT_TEXT_H
#define NI_AMOUNT_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* Three digits or fewer, decimal units. */
static inline const char *ni_bytes_text(uint64_t bytes, char out[32]) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double v = (double)bytes;
  unsigned u = 0;
  while (v >= 999.5 && u + 1 < sizeof units / sizeof *units) v /= 1000, u++;
  snprintf(out, 32, "%.*f %s", u > 0 && v < 99.95 ? 1 : 0, v, units[u]);
  return out;
}

/* The units and borders of the page's durations: "950 us", "13.0 ms", "2.20 s", "3.50 min", "12.5 h". */
static inline const char *ni_duration_text(double us, char out[32]) {
  static const struct { double below, unit; const char *name; } steps[] = {
      {999.95, 1, "us"}, {999950, 1e3, "ms"}, {120e6, 1e6, "s"}, {7200e6, 60e6, "min"}};
  double unit = 3600e6;
  const char *name = "h";
  for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
    if (us < steps[i].below) {
      unit = steps[i].unit, name = steps[i].name;
      break;
    }
  double v = us / unit;
  snprintf(out, 32, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, name);
  return out;
}

#endif
