#include "refuse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/rpc/rpc.h"

struct framing { /* what a request's headers say of where it ends */
  unsigned lengths, encodings, hosts;
  bool odd;
};

struct request {
  const struct ni_refuse_request *as;
  struct framing framing;
};

/* ---- tokens and origins ---- */

/* Takes as long whatever is wrong with what was sent. */
static bool is_token(const char *token, const char *sent) {
  size_t want = strlen(token), n = sent && strncasecmp(sent, "Bearer ", 7) == 0 ? strlen(sent += 7) : 0;
  volatile unsigned char differs = want != n || !want; /* nobody knows an empty token */
  for (size_t i = 0; want && i < n; i++)
    differs |= (unsigned char)(sent[i] ^ token[i % want]);
  return !differs;
}

const char *ni_refuse_listed_origin(const struct ni_http_options *o, struct MHD_Connection *c) {
  const char *sent = ni_http_header(c, MHD_HTTP_HEADER_ORIGIN), *const *listed = o->origin;
  if (!sent || !listed)
    return NULL;
  while (*listed && strcmp(*listed, sent) != 0)
    listed++;
  return *listed;
}

/*
 * By number, or localhost: other names can be made to lead here, so that a page of theirs reads what only
 * this machine may.
 */
static bool is_number_or_localhost(const char *host) {
  bool is_localhost = strcmp(host, "localhost") == 0 || strncmp(host, "localhost:", 10) == 0;
  return *host == '[' || !host[strspn(host, "0123456789.:")] || is_localhost;
}

/*
 * Does it come from a page of another site? Browsers say so in Origin. A page of ours has the host that was
 * asked.
 */
static bool is_from_foreign_page(const struct ni_http_options *o, struct MHD_Connection *c) {
  const char *sent = ni_http_header(c, MHD_HTTP_HEADER_ORIGIN),
             *host = ni_http_header(c, MHD_HTTP_HEADER_HOST), *own = sent ? strstr(sent, "://") : NULL;
  bool is_own_host = own && host && strcmp(own + 3, host) == 0;
  return sent && !(is_own_host && is_number_or_localhost(host)) && !ni_refuse_listed_origin(o, c);
}

/* ---- where a request ends ---- */

/*
 * Releases of the library before 1.0, which refuses a NUL itself, take it for the end of a text. Their texts
 * are pieces of what was sent, with a NUL in place of what ended each: a blank, or both bytes of a line's
 * end. Where anything else follows that NUL it was sent.
 */
bool ni_refuse_has_nul(const char *text, size_t len, const char *next, bool line) {
  const uintptr_t from = (uintptr_t)text + len + 1, to = (uintptr_t)next;
  static int old = -1;
  if (old < 0)
    old = strncmp(MHD_get_version(), "0.", 2) == 0;
  if (!old || to <= from || to - from > NI_HTTP_HEADER_BYTES)
    return false; /* one of them was moved */
  for (const char *c = text + len + 1; c < next; c++) {
    bool is_blank = *c == ' ' || *c == '\t', ends_line = *c == 0 || *c == '\r' || *c == '\n';
    if (!is_blank && !(line && ends_line))
      return true;
  }
  return false;
}

static enum MHD_Result inspect_header(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                      const char *value, size_t len) {
  static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  struct framing *f = arg;
  bool encoding = strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
  f->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
  f->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
  f->encodings += encoding;
  f->odd |= value && ni_refuse_has_nul(value, len, value + len + 2, true);
  f->odd |= !name_len || strspn(name, token) != name_len || (encoding && strcasecmp(value, "chunked") != 0);
  for (size_t i = 0; value && i < len; i++)
    f->odd |= (unsigned char)value[i] < ' ' && value[i] != '\t';
  return MHD_YES;
}

/* ---- the rules ---- */

static const char methods[] = "GET, HEAD", methods_and_post[] = "GET, HEAD, POST";

const char *ni_refuse_methods(const struct ni_http_options *o) {
  return o->posts ? methods_and_post : methods;
}

static bool is_method(const struct request *q, const char *method) {
  return strcmp(q->as->method, method) == 0;
}

static const char *find_header(const struct request *q, const char *name) {
  return ni_http_header(q->as->c, name);
}

static bool is_get_or_head(const struct request *q) { return is_method(q, "GET") || is_method(q, "HEAD"); }

static bool is_post(const struct request *q) { return q->as->options->posts && is_method(q, "POST"); }

static bool is_preflight(const struct request *q) {
  return is_method(q, "OPTIONS") && ni_refuse_listed_origin(q->as->options, q->as->c);
}

/* Is it for the page that everybody may see? */
static bool is_for_anyone(const struct request *q) {
  return is_get_or_head(q) && q->as->options->anyone && strcmp(q->as->path, q->as->options->anyone) == 0;
}

/* The first four: somebody on the way could take the request for another one, or for two. */
static bool has_nul_in_path(const struct request *q) { return q->as->has_nul; }

static bool has_malformed_header(const struct request *q) { return q->framing.odd; }

static bool has_two_hosts(const struct request *q) { return q->framing.hosts > 1; }

static bool has_two_lengths(const struct request *q) { return q->framing.lengths + q->framing.encodings > 1; }

static bool has_unknown_method(const struct request *q) {
  return !is_get_or_head(q) && !is_post(q) && !is_preflight(q);
}

static bool has_unknown_method_beside_post(const struct request *q) {
  return q->as->options->posts && has_unknown_method(q);
}

/* The library is asked once: a connection keeps its certificate. */
static bool lacks_certificate(const struct request *q) {
  if (!q->as->options->client_ca || *q->as->certified)
    return false;
  const union MHD_ConnectionInfo *tls = MHD_get_connection_info(q->as->c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  *q->as->certified = tls && ni_rpc_certified(tls->tls_session);
  return !*q->as->certified;
}

static bool lacks_token(const struct request *q) {
  const char *token = q->as->token;
  bool knows_token = token && is_token(token, find_header(q, MHD_HTTP_HEADER_AUTHORIZATION));
  return token && !knows_token && !is_preflight(q) && !is_for_anyone(q);
}

static bool names_host_without_token(const struct request *q) {
  const char *host = find_header(q, MHD_HTTP_HEADER_HOST);
  bool is_guarded = q->as->token || q->as->options->open;
  return !is_guarded && host && !is_number_or_localhost(host);
}

static bool is_post_of_foreign_page(const struct request *q) {
  return is_post(q) && !q->as->token && is_from_foreign_page(q->as->options, q->as->c);
}

static bool has_long_body(const struct request *q) {
  const char *length = find_header(q, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return is_post(q) && length && strtoull(length, NULL, 10) > NI_HTTP_BODY_BYTES;
}

static bool has_unwanted_body(const struct request *q) {
  const char *length = find_header(q, MHD_HTTP_HEADER_CONTENT_LENGTH);
  bool has_body =
      (length && strcmp(length, "0") != 0) || find_header(q, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
  return has_body && !is_post(q);
}

/* The first one that is broken decides. */
static const struct header_rule {
  bool (*is_broken)(const struct request *);
  unsigned status;
  const char *why, *header, *header_value;
} rules[] = {
    {has_nul_in_path, MHD_HTTP_BAD_REQUEST, "a NUL", MHD_HTTP_HEADER_CONNECTION, "close"},
    {has_malformed_header, MHD_HTTP_BAD_REQUEST, "a header that is none", MHD_HTTP_HEADER_CONNECTION,
     "close"},
    {has_two_hosts, MHD_HTTP_BAD_REQUEST, "two hosts", MHD_HTTP_HEADER_CONNECTION, "close"},
    {has_two_lengths, MHD_HTTP_BAD_REQUEST, "a length more than once", MHD_HTTP_HEADER_CONNECTION, "close"},
    {has_unknown_method_beside_post, MHD_HTTP_METHOD_NOT_ALLOWED, "GET, HEAD and POST alone",
     MHD_HTTP_HEADER_ALLOW, methods_and_post},
    {has_unknown_method, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD alone", MHD_HTTP_HEADER_ALLOW, methods},
    {lacks_certificate, MHD_HTTP_FORBIDDEN,
     "a client certificate is wanted that --client-ca of the head signed", NULL, NULL},
    {lacks_token, MHD_HTTP_UNAUTHORIZED, "a token is wanted", MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer"},
    {names_host_without_token, MHD_HTTP_FORBIDDEN, "without a token ask by number, or localhost", NULL, NULL},
    {is_post_of_foreign_page, MHD_HTTP_FORBIDDEN, "pages of other sites may not do that", NULL, NULL},
    {has_long_body, MHD_HTTP_CONTENT_TOO_LARGE, NI_HTTP_LONG_BODY, NULL, NULL},
    {has_unwanted_body, MHD_HTTP_CONTENT_TOO_LARGE, "no body is taken", NULL, NULL},
};

bool ni_refuse(const struct ni_refuse_request *as, struct ni_http_answer *a) {
  struct request q = {.as = as};
  (void)MHD_get_connection_values_n(as->c, MHD_HEADER_KIND, inspect_header, &q.framing);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const struct header_rule *r = &rules[i];
    if (!r->is_broken(&q))
      continue;
    *a = (struct ni_http_answer){
        .status = r->status, .why = r->why, .header = r->header, .header_value = r->header_value};
    return true;
  }
  return false;
}
