/*
 * What is said of a command's table: in a refusal, as help, as a man page. Main thread only.
 */
#ifndef NI_CLI_PAGE_H
#define NI_CLI_PAGE_H

#include "words.h"

/*
 * "a number from 1 to 1024": what a row accepts; in_help: short, and "" where the help itself says it.
 * Returns out.
 */
const char *ni_words_accepted(const struct ni_opt *o, bool in_help, char *out, size_t size);
/* What every command has, told apart by `at`. Ends with an empty row. */
enum { NI_COMMON_HELP = 1, NI_COMMON_VERSION };
extern const struct ni_opt ni_words_common[];

void ni_words_help(FILE *f, const char *name, const struct ni_command *c);
/* roff; section 1 or 7. Blanks of the name become '-'. */
void ni_words_man(FILE *f, const char *name, int section, const struct ni_command *c);
/*
 * For extra(): a heading ("Settings") and the column of the meanings beneath it; a word and its meaning; a
 * paragraph.
 */
void ni_help_head(struct ni_help_page *p, const char *head, int column);
void ni_help_pair(struct ni_help_page *p, const char *word, const char *meaning);
void ni_help_text(struct ni_help_page *p, const char *text);

#endif
