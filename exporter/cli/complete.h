/*
 * A script that completes commands and options in a shell, made from the tables that the parser has
 * (words.h). Main thread only.
 */
#ifndef NI_CLI_COMPLETE_H
#define NI_CLI_COMPLETE_H

#include "words.h"

/* What ni_words_complete() knows, as the want of a row of NI_OPT_CHOICE. */
#define NI_SHELLS "bash|zsh|fish"

/*
 * For a program with n commands, or, with n = 0, for one whose options are only's. Bash is what an unknown
 * shell gets.
 */
void ni_words_complete(FILE *f, const char *shell, const char *program,
                       const struct ni_command *const *command, size_t n, const struct ni_command *only);

#endif
