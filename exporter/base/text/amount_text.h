/*
 * Sizes and times as people read them: "418 kB", "2.55 s". One place, so that all messages say them alike.
 */
#ifndef NI_AMOUNT_TEXT_H
#define NI_AMOUNT_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Decimal units; what rounds to 1000 of one is 1 of the next. below: that bound. */
static inline const char *ni_decimal_unit(double *v, double below) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  unsigned u = 0;
  while (*v >= below && u + 1 < sizeof units / sizeof *units) {
    *v /= 1000;
    u++;
  }
  return units[u];
}

/* An amount of data, in three digits or fewer: "418 kB", "21.0 MB". */
static inline const char *ni_bytes_text(uint64_t bytes, char out[32]) {
  double v = (double)bytes;
  const char *unit = ni_decimal_unit(&v, 999.5);
  snprintf(out, 32, "%.*f %s", bytes >= 1000 && v < 99.95 ? 1 : 0, v, unit);
  return out;
}

/* A number of anything but bytes, a rate or a mean, in three digits with the prefix of its thousands:
 * "0.0227", "538", "12.2 k", "204 M". Below 0 with its sign. */
static inline const char *ni_number_text(double v, char out[32]) {
  static const char *const prefix[] = {"", " k", " M", " G", " T", " P", " E"};
  unsigned p = 0;
  while ((v >= 999.5 || v <= -999.5) && p + 1 < sizeof prefix / sizeof *prefix) {
    v /= 1000;
    p++;
  }
  const double size = v < 0 ? -v : v;
  if (p)
    snprintf(out, 32, "%.*f%s", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, v, prefix[p]);
  else
    snprintf(out, 32, "%.3g", v);
  return out;
}

/* A part of a whole: "0 %", "< 0.1 %", "85.6 %". */
static inline const char *ni_share_text(double share, char out[32]) {
  const bool little = share > 0 && share < 0.0005;
  snprintf(out, 32, little ? "< 0.1 %%" : share == 0 ? "0 %%" : "%.1f %%", 100 * share);
  return out;
}

/* A number in groups of three, as all text for people has them: "3,000,000,000", "-22". */
static inline const char *ni_count_text(int64_t n, char out[32]) {
  char digits[24];
  int len =
      snprintf(digits, sizeof digits, "%llu", n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n);
  char *at = out;
  if (n < 0)
    *at++ = '-';
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0)
      *at++ = ',';
    *at++ = digits[i];
  }
  *at = 0;
  return out;
}
/* The same where it is printed at once: a text that lasts as long as the block in which this stands. */
#define NI_COUNT(n) ni_count_text((int64_t)(n), (char[32]){0})

/* The size of a message, with two decimals, so that 1 MiB is not 1 MB: "1.05 MB", "4 B". NVIDIA's form, of
 * its files, folders and pictures, is ni_human_bytes. */
static inline const char *ni_size_text(uint64_t bytes, char out[32]) {
  double v = (double)bytes;
  const char *unit = ni_decimal_unit(&v, bytes < 1000 ? 1000 : 999.995);
  snprintf(out, 32, "%.*f %s", bytes < 1000 ? 0 : 2, v, unit);
  return out;
}

/* The units and borders of the page's durations: "950 us", "13.0 ms", "2.20 s", "3.50 min", "12.5 h". */
static inline const char *ni_duration_text(double us, char out[32]) {
  static const struct {
    double below, unit;
    const char *name;
  } steps[] = {{999.95, 1, "us"}, {999950, 1e3, "ms"}, {120e6, 1e6, "s"}, {7200e6, 60e6, "min"}};
  double unit = 3600e6;
  const char *name = "h";
  for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
    if (us < steps[i].below) {
      unit = steps[i].unit;
      name = steps[i].name;
      break;
    }
  double v = us / unit;
  snprintf(out, 32, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, name);
  return out;
}

/* A span as clocks are compared, with a sign, in the unit that leaves one to three digits: "-1.23 us". */
static inline const char *ni_span_text(int64_t ns, char out[32]) {
  double v = (double)(ns < 0 ? -ns : ns);
  const char *sign = ns < 0 ? "-" : "";
  if (v < 1e3)
    snprintf(out, 32, "%s%.0f ns", sign, v);
  else if (v < 1e6)
    snprintf(out, 32, "%s%.3g us", sign, v / 1e3);
  else if (v < 1e9)
    snprintf(out, 32, "%s%.4g ms", sign, v / 1e6);
  else
    snprintf(out, 32, "%s%.6g s", sign, v / 1e9);
  return out;
}

/* How old something is, in whole units: "599 s", "119 min", "47 h", "3 days". */
static inline const char *ni_age_text(uint64_t ns, char out[32]) {
  static const struct {
    uint64_t below_s, unit_s;
    const char *name;
  } units[] = {{600, 1, "s"}, {7200, 60, "min"}, {172800, 3600, "h"}, {UINT64_MAX, 86400, "days"}};
  const uint64_t s = ns / 1000000000u;
  size_t i = 0;
  while (s >= units[i].below_s)
    i++;
  snprintf(out, 32, "%llu %s", (unsigned long long)(s / units[i].unit_s), units[i].name);
  return out;
}

#endif
