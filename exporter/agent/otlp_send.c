#include "otlp_send.h"

#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporter/base/index.h"
#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "exporter/base/process/secret.h"
#include "exporter/output/metrics/otlp.h"

#define SECOND UINT64_C(1000000000)
#define NEVER UINT64_MAX
#define SET(option, value) curl_easy_setopt(o->curl, CURLOPT_##option, value)
enum { ANSWER_MAX = 64 << 10, KEEP_S = 300, AFTER_MAX_S = 3600 };

struct ni_otlp {
  CURL *curl;
  /* own: the last of them, which is not the library's to keep: it may hold a token */
  struct curl_slist *headers, own;
  char *url, said[CURL_ERROR_SIZE], answer[ANSWER_MAX];
  size_t answered;
  pthread_t thread;
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t news;  /* of waits and end_ns */
  struct {
    FILE *body;      /* a gzip member; NULL: nothing waits */
    uint64_t put_ns; /* CLOCK_MONOTONIC, as all times here */
    bool tried;
  } waits;
  /* until when it goes on, 0: for ever; stored by ni_otlp_stop(), loaded by the thread, also as it sends */
  _Atomic uint64_t end_ns;
  struct ni_otlp_totals totals;
};

/* Nothing beyond the bound is read: then only the status counts. */
static size_t collect_answer(char *p, size_t one, size_t n, void *arg) {
  struct ni_otlp *o = arg;
  if (n > ANSWER_MAX - o->answered)
    return 0;
  memcpy(o->answer + o->answered, p, one * n);
  o->answered += n;
  return n;
}

/* How long a request may still take. */
static long time_left_ms(struct ni_otlp *o) {
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC), end = o->end_ns ? o->end_ns : now + 30 * SECOND;
  return now < end ? (long)((end - now) / 1000000) : 0;
}

/* Called once a second while a server is waited for. */
static int is_stopped(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  return time_left_ms(arg) == 0;
}

/*
 * Posts once; `failed` tries came before. 0: it has arrived; else the time until the next try, or NEVER.
 * said: why, or "".
 */
static uint64_t post_once(struct ni_otlp *o, FILE *body, unsigned failed, uint64_t *refused, char said[256]) {
  curl_off_t after = 0;
  long code = 0;
  *said = *o->said = 0;
  o->answered = *refused = 0;
  SET(POSTFIELDSIZE, fseek(body, 0, SEEK_END) == 0 ? ftell(body) : 0L);
  SET(READDATA, body);
  SET(TIMEOUT_MS, time_left_ms(o) + 1);
  rewind(body);
  CURLcode e = curl_easy_perform(o->curl);
  curl_easy_getinfo(o->curl, CURLINFO_RESPONSE_CODE, &code);
  if (e == CURLE_WRITE_ERROR && code)
    e = CURLE_OK;
  if (e == CURLE_OK && code / 100 == 2) {
    (void)ni_otlp_refused(o->answer, o->answered, refused, said, 256);
    return 0;
  }
  if (e == CURLE_OK)
    snprintf(said, 256, "the server answers %ld", code);
  else
    snprintf(said, 256, "%s", *o->said ? o->said : curl_easy_strerror(e));
  const bool is_temporary = code == 429 || code == 502 || code == 503 || code == 504;
  if (e == CURLE_OK && !is_temporary)
    return NEVER;
  curl_easy_getinfo(o->curl, CURLINFO_RETRY_AFTER, &after);
  if (after > 0)
    return (uint64_t)(after < AFTER_MAX_S ? after : AFTER_MAX_S) * SECOND;
  uint64_t pause = failed < 6 ? SECOND << failed : 60 * SECOND;
  return pause / 2 + ni_hash(0, ni_now_ns(CLOCK_MONOTONIC)) % (pause / 2);
}

static void *send_in_thread(void *arg) {
  struct ni_otlp *o = arg;
  uint64_t now, due = 0, refused;
  unsigned failed = 0; /* one after the other */
  char said[256];
  pthread_mutex_lock(&o->lock);
  /* At the end there is no time for a server that is away or that has asked for a pause. */
  for (;;) {
    now = ni_now_ns(CLOCK_MONOTONIC);
    const bool is_due = o->waits.body && now >= due;
    if (o->end_ns && (!is_due || now >= o->end_ns))
      break;
    if (!o->waits.body) {
      pthread_cond_wait(&o->news, &o->lock);
    } else if (now < due) {
      pthread_cond_timedwait(&o->news, &o->lock,
                             &(struct timespec){(time_t)(due / SECOND), (long)(due % SECOND)});
    } else {
      __typeof__(o->waits) r = o->waits;
      o->waits.body = NULL;
      o->totals.retried += r.tried;
      r.tried = true;
      pthread_mutex_unlock(&o->lock);
      uint64_t pause = post_once(o, r.body, failed, &refused, said);
      pthread_mutex_lock(&o->lock);
      failed = pause && pause != NEVER ? failed + 1 : 0;
      due = failed ? ni_now_ns(CLOCK_MONOTONIC) + pause : 0;
      o->totals.sent += !pause;
      o->totals.refused += refused;
      if (*said)
        memcpy(o->totals.error, said, sizeof said);
      bool again = failed && due <= r.put_ns + KEEP_S * SECOND && !o->waits.body;
      o->totals.dropped += pause && !again;
      if (again)
        o->waits = r;
      else
        fclose(r.body);
    }
  }
  o->totals.dropped += !!o->waits.body;
  pthread_mutex_unlock(&o->lock);
  curl_easy_cleanup(o->curl); /* here: it may wait for a name server */
  return o->curl = NULL;
}

static void free_otlp(struct ni_otlp *o) {
  curl_easy_cleanup(o->curl);
  for (struct curl_slist *h = o->headers; h; h = h->next)
    if (h->next == &o->own)
      h->next = NULL;
  curl_slist_free_all(o->headers);
  ni_secret_free(o->own.data);
  if (o->waits.body)
    fclose(o->waits.body);
  free(o->url);
  free(o);
}

static int prepare_curl(struct ni_otlp *o, const char *url, const char *header) {
  static const char *const lines[] = {"Content-Type: application/x-protobuf", "Content-Encoding: gzip",
                                      "Expect:"};
  const char *host = strstr(url, "://"), *path = host ? strpbrk(host + 3, "/?#") : NULL;
  if (!host || (strncasecmp(url, "http:", 5) != 0 && strncasecmp(url, "https:", 6) != 0))
    return -EINVAL;
  if (header && (!strchr(header, ':') || strpbrk(header, "\r\n")))
    return -EINVAL;
  bool bare = !path || strcmp(path, "/") == 0;
  int of = path && bare ? (int)(path - url) : INT_MAX;
  if (asprintf(&o->url, "%.*s%s", of, url, bare ? "/v1/metrics" : "") < 0) {
    o->url = NULL;
    return -ENOMEM;
  }
  for (size_t i = 0; i < 3; i++) {
    struct curl_slist *more = curl_slist_append(o->headers, lines[i]);
    if (!more)
      return -ENOMEM;
    o->headers = more;
  }
  if (header && !(o->own.data = ni_secret_keep(header)))
    return -ENOMEM;
  struct curl_slist *last = o->headers;
  while (last->next)
    last = last->next;
  if (header)
    last->next = &o->own;
  if (!(o->curl = curl_easy_init()))
    return -ENOMEM;
  SET(HTTPHEADER, o->headers);
  SET(USERAGENT, "nccl-inspector/" NI_VERSION);
  SET(ERRORBUFFER, o->said);
  SET(POST, 1L);
  SET(NOSIGNAL, 1L);
  SET(NOPROGRESS, 0L);
  SET(XFERINFOFUNCTION, is_stopped);
  SET(XFERINFODATA, o);
  SET(CONNECTTIMEOUT, 10L);
  SET(FORBID_REUSE, 1L); /* one that the server closed meanwhile would be tried again at once */
  SET(WRITEFUNCTION, collect_answer);
  SET(WRITEDATA, o);
  return SET(URL, o->url) == CURLE_OK ? 0 : -ENOMEM;
}

int ni_otlp_start(struct ni_otlp **out, const char *url, const char *header) {
  pthread_condattr_t monotonic;
  struct ni_otlp *o = *out = calloc(1, sizeof *o);
  if (!o)
    return -ENOMEM;
  pthread_mutex_init(&o->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&o->news, &monotonic);
  int e = curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, ni_wiping_free, ni_wiping_realloc, strdup,
                               calloc) == CURLE_OK
      ? prepare_curl(o, url, header)
      : -ENOMEM;
  if (e == 0 && (e = -pthread_create(&o->thread, NULL, send_in_thread, o)) == 0)
    return 0;
  free_otlp(o);
  *out = NULL;
  return e;
}

void ni_otlp_put(struct ni_otlp *o, void *request, size_t bytes) {
  int fd = memfd_create("otlp", MFD_CLOEXEC);
  FILE *body = fd >= 0 && ni_write_member(fd, request, bytes) == 0 ? fdopen(fd, "r") : NULL;
  if (!body && fd >= 0)
    close(fd);
  free(request);
  pthread_mutex_lock(&o->lock);
  o->totals.dropped += !body || o->waits.body;
  if (body && o->waits.body)
    fclose(o->waits.body);
  if (body) {
    o->waits.body = body;
    o->waits.put_ns = ni_now_ns(CLOCK_MONOTONIC);
    o->waits.tried = false;
  }
  pthread_cond_signal(&o->news);
  pthread_mutex_unlock(&o->lock);
}

struct ni_otlp_totals ni_otlp_totals(struct ni_otlp *o) {
  pthread_mutex_lock(&o->lock);
  struct ni_otlp_totals t = o->totals;
  pthread_mutex_unlock(&o->lock);
  return t;
}

void ni_otlp_stop(struct ni_otlp *o) {
  struct timespec until;
  if (!o)
    return;
  pthread_mutex_lock(&o->lock);
  o->end_ns = ni_now_ns(CLOCK_MONOTONIC) + SECOND * 9 / 10; /* it may see that a second later */
  pthread_cond_signal(&o->news);
  pthread_mutex_unlock(&o->lock);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 2;
  if (pthread_timedjoin_np(o->thread, NULL, &until) == 0)
    free_otlp(o);
  else
    pthread_detach(o->thread); /* in a library that does not come back: it keeps what it uses */
}
