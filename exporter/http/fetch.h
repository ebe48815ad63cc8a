/*
 * Asks many servers at once over HTTP, again and again, by libcurl's multi interface; connections stay open
 * between looks. An answer has 2 s and 16 MiB. Or one of them once. One thread, none of its own but libcurl's
 * for names.
 */
#ifndef NI_FETCH_H
#define NI_FETCH_H

#include <stdbool.h>
#include <stddef.h>

struct ni_fetch;
/* Answer i, which stays ours; error: a sentence where there is none, else NULL. */
typedef void ni_fetch_take(void *arg, size_t i, const char *text, size_t bytes, const char *error);

struct ni_fetch_as {
  /* sent as a bearer token; PEM file of who is trusted; NULL: none, the system's */
  const char *token, *ca;
  const char *cert, *key; /* PEM files of who asks; NULL: none */
  bool direct;            /* past the environment's proxy */
  size_t most;            /* of ni_fetch_once(): bytes of an answer; 0: 256 MiB */
};
/* All is copied. NULL: no memory. */
struct ni_fetch *ni_fetch_open(char *const *url, size_t n, const struct ni_fetch_as *as);
/* A request to each that has none in flight. */
void ni_fetch_ask(struct ni_fetch *f);
/*
 * Takes what answers; waits for that, for one of the descriptors (-1: none), ms at most. How many requests
 * are in flight.
 */
size_t ni_fetch_wait(struct ni_fetch *f, const int fd[3], int ms, ni_fetch_take *take, void *arg);
void ni_fetch_close(struct ni_fetch *f);

/* One request, waited for: body NULL: GET, else it is POSTed as JSON. take() is called once, with what a
 * server says to an error beside that. The answer has 60 s and 256 MiB. 0, or -ENOMEM: nothing was asked. */
int ni_fetch_once(const char *url, const char *body, const struct ni_fetch_as *as, ni_fetch_take *take,
                  void *arg);

enum { NI_FETCH_TOKEN = 4096 };
struct ni_put_text;
/*
 * HOST, HOST:PORT, [ADDRESS]:PORT or a URL, with the path behind. port: where none is given. For free();
 * NULL: no memory.
 */
char *ni_fetch_url(const char *at, bool tls, unsigned port, const char *path);
/* The text as it stands in a URL's query. */
void ni_fetch_query(struct ni_put_text *w, const char *text);
/*
 * The first line of a file; path NULL: "". NULL, or what is wrong, naming --token-file. Who has used it wipes
 * it (explicit_bzero).
 */
const char *ni_fetch_token(const char *path, char token[NI_FETCH_TOKEN]);

#endif
