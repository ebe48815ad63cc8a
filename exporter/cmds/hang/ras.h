/*
 * `hang --ras`: what NCCL's RAS says, asked for or read from files, judged, and compared with what the
 * plugin left.
 *
 *   ni_hang_ras_load(): files, with the rights of who calls ─▶ as_owners
 *     ─▶ ni_hang_ras_ask(), once a round ─▶ verdict of RAS alone
 *     ─▶ ni_hang_ras_compare(), where the plugin left anything ─▶ agreement
 *
 * Two files are two looks, the one whose timestamp is earlier first. A server is asked once in ASK_EVERY at
 * most: each answer is gathered from all processes of the job. Main thread. Ownership: ni_hang_ras_free().
 */
#ifndef NI_HANG_RAS_H
#define NI_HANG_RAS_H

#include "exporter/model/ras/agree.h"

enum { NI_HANG_RAS_MOST = 2 };

struct ni_hang_ras {
  const char *where[NI_HANG_RAS_MOST]; /* --ras: HOST:PORT, "" or files */
  size_t n, newest;                    /* newest: which of them is `now` */
  unsigned timeout_s;
  char *text[NI_HANG_RAS_MOST]; /* of files, by ni_hang_ras_load() */
  size_t len[NI_HANG_RAS_MOST];
  struct ni_ras_look now, before; /* before: an earlier look; comm NULL and ns 0: none */
  struct ni_ras_verdict v;
  struct ni_ras_agreement agreement;
  uint64_t asked_ns, answered_ns; /* Unix; of files 0 */
  uint64_t asked_mono_ns;
  unsigned failed; /* questions in a row without an answer */
  bool answered;   /* there is a verdict */
  bool compared;   /* there is an agreement */
  char why[512];   /* where there is no verdict */
};

/* --ras, each time that it is given. */
int ni_hang_ras_add_place(struct ni_hang_ras *r, const char *where);
/* 0, or -EINVAL: a file cannot be read; why says it. */
int ni_hang_ras_load(struct ni_hang_ras *r);
/*
 * Asks once more, or reads what was loaded, and judges. Without an answer `answered` is false. 0 or -ENOMEM.
 */
int ni_hang_ras_ask(struct ni_hang_ras *r, uint64_t limit_ns);
int ni_hang_ras_compare(struct ni_hang_ras *r, const struct ni_hang_verdict *v);
void ni_hang_ras_free(struct ni_hang_ras *r);

#endif
