/*
 * The file of a page: head, data, and the tail with the script that all pages share. The script chooses by
 * the head.
 *
 * Threads: one call at a time. Ownership: everything stays with the caller.
 */
#ifndef NI_PAGE_FILE_H
#define NI_PAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* false: the build had no npm, so there is no page. */
bool ni_report_available(void);

enum ni_page { NI_PAGE_REPORT, NI_PAGE_COUNTERS, NI_PAGE_DIFF, NI_PAGE_HEAD };

/*
 * To a stream, which keeps what goes wrong. json: of summary, of counters, of diff; the head's page asks for
 * what it shows: "null".
 */
void ni_report_text(enum ni_page page, const char *json, size_t n, FILE *f);
/* To a file. 0, or -errno of open or write: then no file is left. Whoever calls looks whether it is
 * available before. */
int ni_report_put(enum ni_page page, const char *json, size_t n, const char *path);

#endif
