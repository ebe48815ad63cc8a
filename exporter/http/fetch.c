#include "fetch.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/process/as_user.h"
#include "exporter/base/text/put.h"

enum { ANSWER_MS = 2000, ONCE_MS = 60000, ANSWER_MAX = 16 << 20, ONCE_MAX = 256 << 20 };

struct ni_fetch {
  CURLM *all;
  size_t n, in_flight;
  struct transfer {
    CURL *curl;
    char *text, error[CURL_ERROR_SIZE];
    size_t bytes, cap, most;
    bool asked;
  } transfer[];
};

static size_t append_answer(char *text, size_t one, size_t n, void *arg) {
  struct transfer *r = arg;
  const size_t bytes = r->bytes + n;
  if (bytes > r->most || (bytes >= r->cap && !ni_array_more(&r->text, &r->cap, bytes + 1, one)))
    return 0;
  memcpy(r->text + r->bytes, text, n);
  r->bytes = bytes;
  return n;
}

struct ni_fetch *ni_fetch_open(char *const *url, size_t n, const struct ni_fetch_as *as) {
  struct ni_fetch *f = calloc(1, sizeof *f + n * sizeof *f->transfer);
  bool is_ready = f && (f->all = curl_multi_init());
  if (is_ready)
    curl_multi_setopt(f->all, CURLMOPT_MAXCONNECTS, (long)n + 1);
  while (is_ready && f->n < n) {
    struct transfer *r = f->transfer + f->n;
    CURL *c = r->curl = curl_easy_init();
    r->most = ANSWER_MAX;
    is_ready = c && !curl_easy_setopt(c, CURLOPT_URL, url[f->n++]) &&
        !curl_easy_setopt(c, CURLOPT_XOAUTH2_BEARER, as->token);
    if (as->token)
      curl_easy_setopt(c, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    if (as->ca)
      curl_easy_setopt(c, CURLOPT_CAINFO, as->ca);
    if (as->cert)
      curl_easy_setopt(c, CURLOPT_SSLCERT, as->cert);
    if (as->cert)
      curl_easy_setopt(c, CURLOPT_SSLKEY, as->key);
    if (as->direct)
      curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, r->error);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, append_answer);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(c, CURLOPT_PRIVATE, (char *)r);
  }
  if (!is_ready)
    ni_fetch_close(f);
  return is_ready ? f : NULL;
}

void ni_fetch_ask(struct ni_fetch *f) {
  NI_EACH(struct transfer, r, f->transfer, f->n) {
    if (r->asked || curl_multi_add_handle(f->all, r->curl) != CURLM_OK)
      continue;
    r->asked = true;
    r->bytes = *r->error = 0;
    f->in_flight++;
  }
}

/* The mistakes that people make with ports, and what curl says of them. */
static const struct {
  CURLcode code;
  const char *text;
} hints[] = {
    {CURLE_COULDNT_CONNECT, "does it run there?"},
    {CURLE_SSL_CONNECT_ERROR, "does it speak TLS there?"},
    {CURLE_GOT_NOTHING, "does it want TLS (--ca FILE), or is it another port?"},
    {CURLE_RECV_ERROR, "does it want TLS (--ca FILE), or is it another port?"},
    {CURLE_UNSUPPORTED_PROTOCOL, "what answers there is not HTTP: another port?"},
    {CURLE_WEIRD_SERVER_REPLY, "what answers there is not HTTP: another port?"},
};

/* Writes what curl says of the failure, and a hint at what is behind it. */
static void explain_failure(struct transfer *r, CURLcode code) {
  const char *hint = NULL;
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (hints[i].code == code)
      hint = hints[i].text;
  char said[CURL_ERROR_SIZE];
  snprintf(said, sizeof said, "%s", *r->error ? r->error : curl_easy_strerror(code));
  snprintf(r->error, sizeof r->error, "%.*s%s%s", (int)sizeof r->error - 80, said, hint ? "; " : "",
           hint ? hint : "");
}

size_t ni_fetch_wait(struct ni_fetch *f, const int fd[3], int ms, ni_fetch_take *take, void *arg) {
  struct curl_waitfd extra[3];
  unsigned n = 0;
  int left;
  for (int i = 0; i < 3; i++)
    if (fd[i] >= 0)
      extra[n++] = (struct curl_waitfd){.fd = fd[i], .events = CURL_WAIT_POLLIN};
  curl_multi_perform(f->all, &left);
  curl_multi_poll(f->all, extra, n, ms, NULL);
  curl_multi_perform(f->all, &left);
  for (CURLMsg *m; (m = curl_multi_info_read(f->all, &left));) {
    CURLcode code = m->data.result;
    struct transfer *r = NULL;
    long status = 0;
    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&r);
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_WRITE_ERROR)
      snprintf(r->error, sizeof r->error,
               "its answer is larger than %zu MiB: what answers there is something else?", r->most >> 20);
    else if (code)
      explain_failure(r, code);
    else if (!code && status != 200)
      snprintf(r->error, sizeof r->error, "HTTP status %ld%s", status,
               status == 401 ? ": it wants a token (--token-file)" : "");
    curl_multi_remove_handle(f->all, r->curl);
    r->asked = false;
    f->in_flight--;
    take(arg, (size_t)(r - f->transfer), r->text, r->bytes, code || status != 200 ? r->error : NULL);
  }
  return f->in_flight;
}

void ni_fetch_close(struct ni_fetch *f) {
  for (struct transfer *r = f ? f->transfer : NULL; f && r < f->transfer + f->n; r++) {
    if (r->asked)
      curl_multi_remove_handle(f->all, r->curl);
    curl_easy_cleanup(r->curl);
    free(r->text);
  }
  if (f)
    curl_multi_cleanup(f->all);
  free(f);
}

int ni_fetch_once(const char *url, const char *body, const struct ni_fetch_as *as, ni_fetch_take *take,
                  void *arg) {
  struct ni_fetch *f = ni_fetch_open((char *[]){(char *)url}, 1, as);
  struct curl_slist *headers = body ? curl_slist_append(NULL, "Content-Type: application/json") : NULL;
  int e = !f || (body && !headers) ? -ENOMEM : 0;
  if (!e) {
    CURL *c = f->transfer->curl;
    f->transfer->most = as->most ? as->most : ONCE_MAX;
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)ONCE_MS);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)ANSWER_MS * 2);
    if (body)
      curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
    if (body)
      curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    ni_fetch_ask(f);
    while (ni_fetch_wait(f, (int[]){-1, -1, -1}, 1000, take, arg))
      continue;
  }
  ni_fetch_close(f);
  curl_slist_free_all(headers);
  return e;
}

char *ni_fetch_url(const char *at, bool tls, unsigned port, const char *path) {
  const char *colon = strrchr(at, ':'), *address = strrchr(at, ']');
  bool is_url = strncmp(at, "http://", 7) == 0 || strncmp(at, "https://", 8) == 0;
  const char *scheme = is_url ? "" : tls ? "https://" : "http://";
  int n = (int)strlen(at) - (*at && at[strlen(at) - 1] == '/');
  char number[16] = "", *url;
  if (!is_url && !(colon && colon > address))
    snprintf(number, sizeof number, ":%u", port);
  return asprintf(&url, "%s%.*s%s%s", scheme, n, at, number, path) < 0 ? NULL : url;
}

void ni_fetch_query(struct ni_put_text *w, const char *text) {
  for (const char *c = text; *c; c++)
    ni_put(w, isalnum((unsigned char)*c) ? "%c" : "%%%02X", (unsigned char)*c);
}

const char *ni_fetch_token(const char *path, char token[NI_FETCH_TOKEN]) {
  int fd = path ? ni_named_open(path) : -1;
  memset(token, 0, NI_FETCH_TOKEN);
  size_t n = 0;
  for (ssize_t got = 1; fd >= 0 && got > 0 && n < NI_FETCH_TOKEN - 1; n += got > 0 ? (size_t)got : 0)
    got = read(fd, token + n, NI_FETCH_TOKEN - 1 - n);
  const size_t line = strcspn(token, "\r\n");
  explicit_bzero(token + line, NI_FETCH_TOKEN - line);
  if (fd >= 0)
    close(fd);
  return path && !*token ? "--token-file: want a file that can be read, with the token in its first line"
                         : NULL;
}
