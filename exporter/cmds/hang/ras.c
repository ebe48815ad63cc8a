#include "ras.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/now.h"

#define ASK_EVERY UINT64_C(10000000000)

int ni_hang_ras_add_place(struct ni_hang_ras *r, const char *where) {
  bool other = r->n && !(ni_ras_is_file(where) && ni_ras_is_file(r->where[0]));
  if (r->n == NI_HANG_RAS_MOST || other)
    return -EINVAL;
  r->where[r->n++] = where;
  return 0;
}

int ni_hang_ras_load(struct ni_hang_ras *r) {
  for (size_t i = 0; i < r->n; i++) {
    if (!ni_ras_is_file(r->where[i]))
      continue;
    r->text[i] = ni_ras_ask(r->where[i], 0, &r->len[i], r->why, sizeof r->why);
    if (!r->text[i])
      return -EINVAL;
  }
  return 0;
}

/* "2026-11-28 10:00:00", local time of the job: for what lies between two looks. 0: none. */
static uint64_t parse_stamp(const char *text) {
  struct tm t = {0};
  const char *end = strptime(text, "%Y-%m-%d %H:%M:%S", &t);
  time_t s = end && !*end ? timegm(&t) : 0;
  return s > 0 ? (uint64_t)s * 1000000000u : 0;
}

/* Parses one answer, whose place is where[i], into a look. */
static int parse_answer(struct ni_hang_ras *r, size_t i, struct ni_ras_look *look, char *text, size_t len) {
  char why[400];
  *look = (struct ni_ras_look){0};
  int e = ni_ras_parse(&look->ras, text, len, why, sizeof why);
  if (e == 0 || e == -ENOMEM)
    return e;
  snprintf(r->why, sizeof r->why, "%s: %s", *r->where[i] ? r->where[i] : "localhost:" NI_RAS_PORT, why);
  return e;
}

/* The texts go: they were read once. */
static int read_saved_answers(struct ni_hang_ras *r) {
  for (size_t i = 0; i < r->n; i++) {
    struct ni_ras_look look;
    int e = parse_answer(r, i, &look, r->text[i], r->len[i]);
    if (e < 0)
      return e;
    look.ns = parse_stamp(look.ras.timestamp);
    if (i && look.ns < r->now.ns) {
      r->before = look;
      continue;
    }
    ni_ras_look_free(&r->before);
    r->before = r->now;
    r->now = look;
    r->newest = i;
  }
  return 0;
}

static int ask_daemon(struct ni_hang_ras *r) {
  struct ni_ras_look look;
  size_t len;
  r->asked_mono_ns = ni_now_ns(CLOCK_MONOTONIC);
  uint64_t asked = ni_now_ns(CLOCK_REALTIME);
  char *text = ni_ras_ask(r->where[0], r->timeout_s, &len, r->why, sizeof r->why);
  int e = text ? parse_answer(r, 0, &look, text, len) : -EBADMSG;
  free(text);
  if (e < 0)
    return e;
  r->asked_ns = asked;
  r->answered_ns = ni_now_ns(CLOCK_REALTIME);
  look.ns = ni_now_ns(CLOCK_MONOTONIC);
  ni_ras_look_free(&r->before);
  r->before = r->now;
  r->now = look;
  return 0;
}

int ni_hang_ras_ask(struct ni_hang_ras *r, uint64_t limit_ns) {
  bool file = r->text[0] != NULL, first = r->asked_mono_ns == 0;
  if (r->n == 0)
    return 0;
  if (file ? r->answered : !first && ni_now_ns(CLOCK_MONOTONIC) < r->asked_mono_ns + ASK_EVERY)
    return 0;
  struct ni_ras_verdict first_look = {0};
  ni_ras_verdict_free(&r->v);
  r->answered = r->compared = false;
  int e = file ? read_saved_answers(r) : ask_daemon(r);
  if (e == -ENOMEM)
    return e;
  r->failed = e < 0 ? r->failed + 1 : 0;
  if (e < 0)
    return 0;
  if (r->before.ns && !r->before.still_since)
    e = ni_ras_judge(&first_look, &r->before, NULL, limit_ns); /* a file's */
  ni_ras_verdict_free(&first_look);
  if (e == 0)
    e = ni_ras_judge(&r->v, &r->now, r->before.ns ? &r->before : NULL, limit_ns);
  r->answered = e == 0;
  return e;
}

int ni_hang_ras_compare(struct ni_hang_ras *r, const struct ni_hang_verdict *v) {
  if (!r->answered || !v->model || v->model->n_processes == 0)
    return 0;
  int e = ni_ras_agree(&r->agreement, &r->now.ras, v, r->asked_ns, r->answered_ns);
  r->compared = e == 0;
  return e;
}

void ni_hang_ras_free(struct ni_hang_ras *r) {
  for (size_t i = 0; i < NI_HANG_RAS_MOST; i++)
    free(r->text[i]);
  ni_ras_verdict_free(&r->v);
  ni_ras_look_free(&r->now);
  ni_ras_look_free(&r->before);
}
