/*
 * The file that is written: JSON text through zlib or plain, under a temporary name until it is whole.
 *
 * Model: text is put together in a buffer and handed to zlib (level 1: a timeline shrinks to a seventh, and
 * more costs time that nobody has) when it is full. commit() moves the file to its name
 * (exporter/base/out_file.h); until then a file of that name stays as it was. Errors are kept: every call
 * after the first failure does nothing, commit() returns it.
 *
 * One thread. "-" is standard output, plain.
 */
#ifndef NI_TRACE_OUT_H
#define NI_TRACE_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "exporter/base/out_file.h"

enum { NI_TR_OUT_BYTES = 256 << 10 };

struct ni_tr_out {
  gzFile gz;
  int dir;          /* -1: standard output */
  const char *name; /* in dir; the end of the caller's path */
  struct ni_out_file file;
  char *text;
  size_t n;
  uint64_t bytes; /* of text, behind what is in `text` */
  int error;      /* -errno */
};

/* Compressed when path ends in .gz. 0, or -errno with a sentence in why. */
int ni_tr_out_open(struct ni_tr_out *o, const char *path, char *why, size_t cap);
void ni_tr_out_text(struct ni_tr_out *o, const char *text); /* as it is */
/* with quotes, escaped; bad UTF-8 as U+FFFD */
void ni_tr_out_string(struct ni_tr_out *o, const char *text);
void ni_tr_out_u64(struct ni_tr_out *o, uint64_t v);
void ni_tr_out_i64(struct ni_tr_out *o, int64_t v);
void ni_tr_out_hex(struct ni_tr_out *o, uint64_t v); /* "0x..." with quotes */
void ni_tr_out_us(struct ni_tr_out *o, int64_t ns);  /* us with three decimals */
/* six decimals, null when not finite */
void ni_tr_out_f64(struct ni_tr_out *o, double v);
/* Into place; frees. bytes: of the file, may be NULL. 0 or the first -errno. */
int ni_tr_out_commit(struct ni_tr_out *o, uint64_t *bytes);
/* Removes what was written; frees. Nothing after commit(). */
void ni_tr_out_abort(struct ni_tr_out *o);

#endif
