/*
 * The words that all parts of a verdict have in common (say.h), and the names that JSON has for them. One
 * thread.
 */
#ifndef NI_HANG_WORDS_H
#define NI_HANG_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/model/hang/verdict.h"

/*
 * What an answer is called, at the beginning of the sentence and in JSON, and its exit code: the one list of
 * them.
 */
struct ni_hang_answer_words {
  const char *head;             /* "HANG (certain)" */
  const char *answer, *verdict; /* in JSON */
  int exit_code;
};
const struct ni_hang_answer_words *ni_hang_words_of(enum ni_hang_answer answer);

/* "2026-11-21T22:41:07Z (95 s ago)" */
void ni_hang_say_when(FILE *f, const struct ni_hang_verdict *v, uint64_t ns);
/* "312 s", "14 min", "3 h", "2 days" */
void ni_hang_say_span(FILE *f, uint64_t ns);
/* "dp0" or "0x5d1c..." */
void ni_hang_say_comm(FILE *f, const struct ni_hang_member *x);
/* "AllReduce 1204", "Recv from rank 3" */
void ni_hang_say_op(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_op *op);
/* Global rank of a view, or -1. */
int32_t ni_hang_global(const struct ni_hang_verdict *v, const struct ni_hang_view *w);
/* NULL: a dump of PyTorch's does not say. */
static inline const char *ni_hang_host(const struct ni_hang_process *p) {
  return *p->who->host ? p->who->host : NULL;
}
const char *ni_hang_where_name(enum ni_hang_where where); /* as in JSON */
const char *ni_hang_state_name(uint8_t state);

/*
 * Lists of ranks as text: "rank 3 (node-a) and rank 17 (node-c)", "12 ranks (0-7, 9-12) on node-a, node-b and
 * 3 more hosts". The caller fills who[]; the names stay its own.
 */
struct ni_hang_who {
  int64_t number;   /* rank or pid */
  const char *host; /* NULL: not known */
};

struct ni_hang_crowd {
  struct ni_hang_who *who;
  size_t n;
  const char *one, *many; /* "rank", "ranks" */
  const char *of;         /* what the numbers count in, when that is no matter of course: " of dp0"; NULL */
};

/* Room for n, nobody in it; who is NULL without memory. Freed with free(c.who). */
struct ni_hang_crowd ni_hang_crowd_new(size_t n, const char *one, const char *many);
/* Ascending by number from here on. */
void ni_hang_say_crowd(FILE *f, struct ni_hang_crowd *c);

#endif
