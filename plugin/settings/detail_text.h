/*
 * Texts of the settings that are about how much is recorded: "1/10". Shared by the settings table and the
 * control file. Pure functions, any thread; strict, without the locale: what is not exactly the form is
 * refused.
 */
#ifndef NI_DETAIL_TEXT_H
#define NI_DETAIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/events.h"

/* A number at *s of at most max; moves *s behind its digits. False: there is none, or it is larger. */
bool ni_digits(const char **s, uint64_t max, uint64_t *out);

/* "1/N", N from 1 to NI_SAMPLE_MAX. */
bool ni_sample_parse(const char *s, uint64_t *n);

#endif
