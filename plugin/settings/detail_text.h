/*
 * Texts of the settings that are about how much is recorded: "1/10", "1s/60s", "2.5". Shared by the settings table and the
 * control file. Pure functions, any thread; strict, without the locale: what is not exactly the form is refused.
 */
#ifndef NI_DETAIL_TEXT_H
#define NI_DETAIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/events.h"

#define NI_DUTY_ON_MIN_MS 100u         /* the dump thread looks every 10 to 100 ms */
#define NI_DUTY_PERIOD_MAX_MS 86400000u
#define NI_PERCENT_ONE 1000u           /* percents are counted in thousandths */

/* A number at *s of at most max; moves *s behind its digits. False: there is none, or it is larger. */
bool ni_digits(const char **s, uint64_t max, uint64_t *out);

/* "1/N", N from 1 to NI_SAMPLE_MAX. */
bool ni_sample_parse(const char *s, uint64_t *n);

/*
 * KernelCh in slices: ON of every PERIOD, in ms. "1s/60s", "500ms/1m", or "0": always on, both 0. ON at least
 * NI_DUTY_ON_MIN_MS and below PERIOD, PERIOD at most a day. Units ms, s, m, h.
 */
struct ni_duty {
  uint32_t on_ms, period_ms;
};
bool ni_duty_parse(const char *s, struct ni_duty *d);
/* The shortest form that parses to the same; at most 31 characters. */
void ni_duty_text(struct ni_duty d, char *out, size_t cap);

/*
 * Is KernelCh on at this moment? Slices begin at whole multiples of the period since 1970, so all ranks whose clocks are
 * set measure the same operations, without talking to each other. *next_ms: when that changes. Duty 0: always on,
 * *next_ms = UINT64_MAX.
 */
bool ni_duty_on(struct ni_duty d, uint64_t realtime_ms, uint64_t *next_ms);

/* "0" to "100" with at most three decimals -> thousandths. */
bool ni_percent_parse(const char *s, uint64_t *thousandths);
void ni_percent_text(uint64_t thousandths, char *out, size_t cap);

#endif
