/* Bodies of requests: JSON from anybody, 64 KiB at most (http.h). Pure; any thread. */
#ifndef NI_BODY_H
#define NI_BODY_H

#include <stdbool.h>
#include <stddef.h>

struct ni_body {
  char name[4096]; /* as given, longer ones cut: then no name is right any more */
  bool given;      /* "name" is a text, and not empty */
  /*
   * What is wrong, as FastAPI says it: type, place, sentence. NULL: nothing. place: of the body; NULL: all of
   * it, "": its text.
   */
  const char *type, *place, *message;
  char *input; /* what stands there, as JSON, for free(); NULL: nothing */
};
/* {"name": text or null}: needed says whether a body must be there; one that is there must be right. */
void ni_body_name(struct ni_body *b, const char *text, size_t len, const char *content_type, bool needed);

#endif
