/*
 * Texts that nobody else is to read: tokens, headers with them, private keys. Each has pages of its own,
 * which are not in a core file, and which a child that is forked finds empty: a reader of the agent runs with
 * a user's rights (as_user.h). They are wiped when they are given back. Any thread.
 */
#ifndef NI_SECRET_H
#define NI_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* A copy, for ni_secret_free(). NULL: no memory. */
char *ni_secret_keep(const char *text);
/*
 * The file that --option names: a PEM file, or the first line of one with a token or a header (the option
 * ends in token-file or header-file); 256 KiB at most. Read now, not again; for ni_secret_free().
 * is_private: others may not read it. NULL: why says it, and names --option.
 */
char *ni_secret_read(const char *option, const char *path, bool is_private, char *why, size_t cap);
/* NULL is nothing. Not in a child of the process that made it. */
void ni_secret_free(char *secret);

/*
 * The allocator of a library that is given a secret, as its interface wants these: what it gives back is
 * wiped. So what is left of a request is not in a child that is forked later.
 */
void ni_wiping_free(void *p);
void *ni_wiping_realloc(void *p, size_t n);

#endif
