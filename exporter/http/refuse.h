/*
 * Which requests are refused by what their headers say, before a body is read or the owner is asked.
 *
 * The rules stand in one table; the first one that is broken decides. In this order:
 *
 *   400  another program on the way could take it for another request, or for two: a NUL, bytes that steer, a
 *        header that is none, two hosts, a length more than once
 *   405  another method than the owner takes
 *   403  no certificate of a client, where one is wanted
 *   401  no token, where one is wanted, but for `anyone`
 *   403  without a token: a name that can be made to lead here, a POST that a page of another site sends
 *   413  a body that is too long, or that nobody wants
 *
 * Threads: one, inside the library's callbacks. Pure, but for what is noted of a connection's certificate.
 */
#ifndef NI_REFUSE_H
#define NI_REFUSE_H

#include <microhttpd.h>

#include "http.h"

enum { NI_HTTP_HEADER_BYTES = 16 << 10, NI_HTTP_BODY_BYTES = 64 << 10 };
#define NI_HTTP_LONG_BODY "64 KiB are taken at most" /* that */

struct ni_refuse_request {
  const struct ni_http_options *options;
  const char *token; /* that is wanted; NULL: none */
  struct MHD_Connection *c;
  const char *path, *method;
  bool has_nul;    /* its path as it was sent has a NUL, or what is behind it */
  bool *certified; /* the connection's: it has shown its certificate; kept from request to request */
};

/* True: it is refused with *a. */
bool ni_refuse(const struct ni_refuse_request *q, struct ni_http_answer *a);

/* The methods that the owner takes, as a header lists them. */
const char *ni_refuse_methods(const struct ni_http_options *o);
/* The origin of the request where the owner lists it, else NULL. */
const char *ni_refuse_listed_origin(const struct ni_http_options *o, struct MHD_Connection *c);
/*
 * Was a NUL sent in the text, which the library takes for its end? next: where the next text of the request
 * begins. line: of a header.
 */
bool ni_refuse_has_nul(const char *text, size_t len, const char *next, bool line);

/* A header of the request; NULL: it is not there. */
static inline const char *ni_http_header(struct MHD_Connection *c, const char *name) {
  return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

#endif
