/*
 * Foreign text on its way to a terminal, a text log or a message.
 *
 * Names, paths and ids come out of files that anybody may have written. '?' takes the place of what would
 * steer a terminal or make text look like other text: control characters (C0, DEL, C1), marks of writing
 * direction, characters without width, line and paragraph separators, and bytes that are no UTF-8.
 *
 * The rule of the exporter: nothing but ni_say() and ni_put_text() writes text to a terminal or a log (the
 * test text_one_place looks for other calls). Files for machines have writers of their own: json_write.h,
 * exporter/output/tables/out_tables.h, exporter/output/plot/figure.h. Pure functions, any thread; write
 * errors stay in the FILE.
 */
#ifndef NI_SAFE_TEXT_H
#define NI_SAFE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* 1: this character may stand in text for a person; 0: '?' or an escape takes its place. */
int ni_text_is_printable(uint32_t code);

void ni_put_text(FILE *f, const char *text);
/* Copies what fits into size bytes (1 or more), cut between characters. NULL is "". Returns out. */
const char *ni_safe_text(const char *text, char *out, size_t size);

/*
 * fprintf() with every argument made safe; control characters of the format itself stay. Returns the bytes
 * written, as fprintf() does. Without memory it writes the format. To stderr in one write(), so that nobody
 * reads half of it.
 */
int ni_say(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ni_vsay(FILE *f, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

#endif
