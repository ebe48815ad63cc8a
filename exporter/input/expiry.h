/*
 * Which settings let files of a process expire, in the words that all commands use.
 *
 * The log counts the records that went (`expired` on the process's last line); why they went is in its settings. Pure
 * functions.
 */
#ifndef NI_EXPIRY_H
#define NI_EXPIRY_H

#include "format/line.h"

enum { NI_EXPIRES_BY_SIZE = 1, NI_EXPIRES_BY_AGE = 2 };

/* NI_EXPIRES_*, or'ed; 0: nothing of this process expires. */
unsigned ni_expiry_limits(const struct ni_process_line *p);
/* The settings by name; of 0: that its process line is not there. */
const char *ni_expiry_text(unsigned limits);

#endif
