#include "fetch.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

enum { TOOK_MS = 2000, ANSWER_MAX = 16 << 20 };

struct ni_fetch {
  CURLM *all;
  size_t n, in_flight;
  struct request {
    CURL *curl;
    char *text, error[CURL_ERROR_SIZE];
    size_t bytes, cap;
    bool asked;
  } request[];
};

static size_t put(char *text, size_t one, size_t n, void *arg) {
  struct request *r = arg;
  if (r->bytes + n > ANSWER_MAX || (r->bytes + n >= r->cap && !ni_array_more(&r->text, &r->cap, r->bytes + n + 1, one))) return 0;
  memcpy(r->text + r->bytes, text, n);
  r->bytes += n;
  return n;
}

struct ni_fetch *ni_fetch_open(char *const *url, size_t n, const char *token, const char *ca, bool direct) {
  struct ni_fetch *f = calloc(1, sizeof *f + n * sizeof *f->request);
  bool good = f && (f->all = curl_multi_init());
  if (good) curl_multi_setopt(f->all, CURLMOPT_MAXCONNECTS, (long)n + 1);
  while (good && f->n < n) {
    struct request *r = f->request + f->n;
    CURL *c = r->curl = curl_easy_init();
    good = c && !curl_easy_setopt(c, CURLOPT_URL, url[f->n++]) && !curl_easy_setopt(c, CURLOPT_XOAUTH2_BEARER, token);
    if (token) curl_easy_setopt(c, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    if (ca) curl_easy_setopt(c, CURLOPT_CAINFO, ca);
    if (direct) curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)TOOK_MS);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, r->error);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, put);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(c, CURLOPT_PRIVATE, (char *)r);
  }
  if (!good) ni_fetch_close(f);
  return good ? f : NULL;
}

void ni_fetch_ask(struct ni_fetch *f) {
  for (struct request *r = f->request; r < f->request + f->n; r++) {
    if (r->asked || curl_multi_add_handle(f->all, r->curl) != CURLM_OK) continue;
    r->asked = true;
    r->bytes = *r->error = 0;
    f->in_flight++;
  }
}

size_t ni_fetch_wait(struct ni_fetch *f, const int fd[3], int ms, ni_fetch_take *take, void *arg) {
  struct curl_waitfd extra[3];
  unsigned n = 0;
  int left;
  for (int i = 0; i < 3; i++)
    if (fd[i] >= 0) extra[n++] = (struct curl_waitfd){.fd = fd[i], .events = CURL_WAIT_POLLIN};
  curl_multi_perform(f->all, &left);
  curl_multi_poll(f->all, extra, n, ms, NULL);
  curl_multi_perform(f->all, &left);
  for (CURLMsg *m; (m = curl_multi_info_read(f->all, &left));) {
    CURLcode code = m->data.result;
    struct request *r = NULL;
    long status = 0;
    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&r);
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_WRITE_ERROR) snprintf(r->error, sizeof r->error, "its answer is larger than %d MiB", ANSWER_MAX >> 20);
    else if (code && !*r->error) snprintf(r->error, sizeof r->error, "%s", curl_easy_strerror(code));
    else if (!code && status != 200) snprintf(r->error, sizeof r->error, "HTTP status %ld%s", status, status == 401 ? ": it wants a token (--token-file)" : "");
    curl_multi_remove_handle(f->all, r->curl);
    r->asked = false;
    f->in_flight--;
    take(arg, (size_t)(r - f->request), r->text, r->bytes, code || status != 200 ? r->error : NULL);
  }
  return f->in_flight;
}

void ni_fetch_close(struct ni_fetch *f) {
  for (struct request *r = f ? f->request : NULL; f && r < f->request + f->n; r++) {
    if (r->asked) curl_multi_remove_handle(f->all, r->curl);
    curl_easy_cleanup(r->curl);
    free(r->text);
  }
  if (f) curl_multi_cleanup(f->all);
  free(f);
}
