#include "state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum ni_comm_type ni_comm_type_of(const struct ni_run *r, int32_t n_ranks, int32_t nnodes) {
  if (n_ranks == 1)
    return NI_TYPE_SINGLE_RANK;
  if (nnodes < 1 && !r->opt.compat)
    return NI_TYPE_UNKNOWN;
  if (nnodes == 1)
    return NI_TYPE_NVLINK_ONLY;
  return n_ranks == nnodes ? NI_TYPE_HCA_ONLY : NI_TYPE_MIXED;
}

bool ni_run_has_left_out(const struct ni_run *r, int kind) {
  for (size_t i = 0; i < r->ledger.n_members; i++) {
    const struct ni_ledger_kind *k = &r->ledger.member[i]->kind[kind];
    if (k->stated && k->filtered > k->sampled)
      return true;
  }
  return false;
}

int ni_run_fail(struct ni_run *r, int error, const char *text, ...) {
  int none = 0;
  pthread_mutex_lock(&r->lock);
  if (atomic_compare_exchange_strong_explicit(&r->error, &none, error, memory_order_relaxed,
                                              memory_order_relaxed)) {
    va_list ap;
    va_start(ap, text);
    vsnprintf(r->error_text, sizeof r->error_text, text, ap);
    va_end(ap);
    size_t n = strlen(r->tmp_dir);
    /* a descriptor's name says nothing to the reader */
    if (n && strncmp(r->error_text, r->tmp_dir, n) == 0) {
      char rest[sizeof r->error_text];
      snprintf(rest, sizeof rest, "%s", r->error_text + n);
      snprintf(r->error_text, sizeof r->error_text, "%s%s", r->out_dir, rest);
    }
  }
  pthread_mutex_unlock(&r->lock);
  return error;
}

int ni_run_read_words(struct ni_run *r, const char *path, char **text) {
  FILE *f = fopen(path, "re");
  if (!f)
    return -errno;
  *text = calloc(NI_WORDS_BYTES + 2, 1);
  const size_t n = *text ? fread(*text, 1, NI_WORDS_BYTES + 1, f) : 0;
  const int e = !*text ? -ENOMEM : ferror(f) ? -EIO : (int)n;
  fclose(f);
  return n > NI_WORDS_BYTES ? ni_run_fail(r, -EFBIG, "%.200s: more than %u bytes", path, NI_WORDS_BYTES) : e;
}
