/*
 * What a growing log says from a place on: whole gzip members of a compressed one, whole lines of a plain
 * one.
 *
 * A member is inflated and its checksum compared before its first line is handed out, so lines that are
 * handed out stay. A member that is not whole is a write under way, or cut by a kill: nothing of it is said
 * until it is. What is damaged is passed over to the next header, and so are members that say more than 8
 * MiB, which the plugin never writes.
 *
 * One thread; one of these serves all files of it. Failure: -ENOMEM, -errno of reading.
 */
#ifndef NI_TAIL_H
#define NI_TAIL_H

#include "exporter/model/live/batch.h"

struct ni_tail;
struct ni_tail_at {
  uint64_t at; /* of the file: what is before it was said */
  bool lost;   /* damage that was counted is before it: what comes next is searched for */
};
/*
 * A line without its line feed, with NI_PARSE_PADDING bytes behind it. 0; 1: it is a bad one; below 0: what
 * ends the step.
 */
typedef int ni_tail_line(void *arg, char *text, size_t len);

int ni_tail_open(struct ni_tail **out);
/*
 * One member, or 1 MiB of lines. 1: the place moved; 0: there is nothing whole; else the place is as it was.
 * Adds to sum.
 */
int ni_tail_step(struct ni_tail *t, int fd, bool gzip, struct ni_tail_at *p, ni_tail_line *line, void *arg,
                 struct ni_live_totals *sum);
/*
 * Of a plain log that is gone on with at `at`, where a line begins that has no header: the last line before
 * it that has one, to line(). *behind: so many lines lie between that one and `at`. 1: there was one; 0: none
 * is needed, or none lies within 8 MiB; else what line() said, -errno.
 */
int ni_tail_marker(struct ni_tail *t, int fd, uint64_t at, ni_tail_line *line, void *arg, uint64_t *behind);
void ni_tail_close(struct ni_tail *t);

#endif
