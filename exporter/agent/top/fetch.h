/*
 * Asks many servers at once over HTTP, again and again, by libcurl's multi interface; connections stay open between looks. An answer
 * has 2 s and 16 MiB. One thread, none of its own but libcurl's for names.
 */
#ifndef NI_FETCH_H
#define NI_FETCH_H

#include <stdbool.h>
#include <stddef.h>

struct ni_fetch;
/* Answer i, which stays ours; error: a sentence where there is none, else NULL. */
typedef void ni_fetch_take(void *arg, size_t i, const char *text, size_t bytes, const char *error);

/* token: sent as a bearer token; ca: PEM of who is trusted; NULL: none, the system's. direct: past the environment's proxy. All is
 * copied. NULL: no memory. */
struct ni_fetch *ni_fetch_open(char *const *url, size_t n, const char *token, const char *ca, bool direct);
/* A request to each that has none in flight. */
void ni_fetch_ask(struct ni_fetch *f);
/* Takes what answers; waits for that, for one of the descriptors (-1: none), ms at most. How many requests are in flight. */
size_t ni_fetch_wait(struct ni_fetch *f, const int fd[3], int ms, ni_fetch_take *take, void *arg);
void ni_fetch_close(struct ni_fetch *f);

#endif
