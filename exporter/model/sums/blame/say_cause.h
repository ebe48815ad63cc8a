/*
 * The sentence of a finding that is judged by own time and transfers: who, what, how much, since when, and
 * what it costs. What is said of which cause stands here alone; which causes are told, and in which order,
 * describe.c says.
 *
 * Names come from logs and are hostile: they go through ni_safe_text(). A sentence that is longer than its
 * room is cut. Pure; any thread. Nothing fails.
 */
#ifndef NI_BLAME_SAY_CAUSE_H
#define NI_BLAME_SAY_CAUSE_H

#include "causes.h"
#include "exporter/base/text/put.h"

/* Fills f->text. f: the finding of c, all but its texts. */
void ni_say_cause(const struct ni_blame *b, const struct ni_cause *c, struct ni_finding *f);
/* Of a pause, or of what comes with a period: how long one is; 0: the cause is neither. */
double ni_cause_pause_us(const struct ni_cause *c);
/* A communicator by its name and number, "world (0x5d1c, 64 ranks)". */
void ni_put_comm(struct ni_put_text *w, const struct ni_blame *b, uint32_t comm);

#endif
