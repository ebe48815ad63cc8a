/*
 * Lines for a person at a terminal: none wider than it.
 *
 * Sentences are broken between words; what goes on stands under the text behind the line's label, such as
 * "problem". A line that begins with '{' is data and stays whole, and so does a command to paste. Where
 * standard output is a file or a pipe nothing changes, so that scripts see the same text whatever the
 * terminal. Threads: main, which writes; stdio's lock guards the rest.
 */
#ifndef NI_TERMINAL_H
#define NI_TERMINAL_H

#include <stdio.h>

/*
 * From here on standard output wraps, when it is a terminal. Once, by main(). Without memory nothing wraps.
 */
void ni_terminal_begin(void);
/*
 * Columns of the terminal behind f: $COLUMNS, else what it says of itself, else 80. 0: f goes to no terminal.
 */
int ni_terminal_columns(FILE *f);
/*
 * Whole lines to a descriptor that is no stream, such as standard error: likewise, where it is a terminal.
 * 0 or -errno.
 */
int ni_terminal_write(int fd, const char *text, size_t n);
/*
 * How many columns text takes, of UTF-8: a character one, or what the locale says of it, where the program
 * has set one.
 */
int ni_text_columns(const char *text, size_t bytes);

#endif
