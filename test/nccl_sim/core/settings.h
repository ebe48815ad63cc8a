/*
 * Reading one setting or number of a scenario. Pure functions on the caller's memory; errors as text for the
 * caller to prefix with file and line.
 */
#ifndef NI_SIM_SETTINGS_H
#define NI_SIM_SETTINGS_H

#include "scenario.h"

void ni_settings_default(struct ni_settings *s);
/* False: no such setting. True with an empty `why`: stored; else `why` says what is accepted. */
bool ni_settings_set(struct ni_settings *s, const char *name, const char *value, char *why, size_t cap);
/* A word of --set: its value, and its name in `name`. Ends the program where it is not key=value. */
#define NI_SET_NAME_BYTES 32
const char *ni_set_split(const char *word, char name[NI_SET_NAME_BYTES]);
/* Decimal, with k, m, g for powers of 1024. */
bool ni_number(const char *text, double *out);
/* Index of value in names, -1 when absent. */
int ni_pick(const char *value, const char *const *names, int n);

#endif
