/* What RAS says, in words and as the `ras` part of the JSON (say.h, print.h). One thread. */
#ifndef NI_HANG_SAY_RAS_H
#define NI_HANG_SAY_RAS_H

#include <stdio.h>

#include "exporter/base/text/json_write.h"
#include "ras.h"

/* Where it was asked: "localhost:28028", "answer.json". */
const char *ni_hang_ras_place(const struct ni_hang_ras *r);
/*
 * "HANG (likely): communicator 0xa1 (8 ranks): rank 3 (10.0.0.1, pid 1234) is behind: ..."; r has an answer.
 * Without line feed.
 */
void ni_hang_ras_say(FILE *f, const struct ni_hang_ras *r);
/*
 * The lines on a terminal: of RAS alone its verdict, else what it adds to the plugin's, and whether the two
 * agree.
 */
void ni_hang_ras_print(const struct ni_hang_ras *r, bool alone, bool all);
/* The object `ras`. */
void ni_hang_ras_json(struct ni_json *j, const struct ni_hang_ras *r);

#endif
