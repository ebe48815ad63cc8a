/* A text put together piece by piece, cut where its array is full. Pure; any thread. */
#ifndef NI_PUT_H
#define NI_PUT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

struct ni_put_text { /* at: where the end of the text is; left: room from there on, 1 at least */
  char *at;
  size_t left;
};

static inline void __attribute__((format(printf, 2, 3))) ni_put(struct ni_put_text *w, const char *format,
                                                                ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(w->at, w->left, format, args);
  va_end(args);
  size_t took = n < 0 ? 0 : (size_t)n < w->left ? (size_t)n : w->left - 1;
  w->at += took;
  w->left -= took;
}

#endif
