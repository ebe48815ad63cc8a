/*
 * Times of day as text, the one place for it. Pure, any thread; each returns out, "" for a time no calendar
 * has.
 */
#ifndef NI_TIME_TEXT_H
#define NI_TIME_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * "2026-11-21 08:00:00" of a second since 1970; between stands before the hour. local: in the zone of TZ,
 * else UTC.
 */
const char *ni_second_text(int64_t second, char between, bool local, char out[32]);
/* "2026-11-21T08:00:00Z" of us since 1970; with decimals 6 "2026-11-21T08:00:00.000001Z". */
const char *ni_utc_text(int64_t us, char between, unsigned decimals, char out[40]);

#endif
