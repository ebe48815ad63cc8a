/* All logs into one account, by several threads. Main thread, but for what its comments say. */
#ifndef NI_LEDGER_READ_H
#define NI_LEDGER_READ_H

#include "ledger.h"

/*
 * The accounts of all files while several threads read them (scan_files.h): merge() and file_done() there
 * call these. init also takes what `files` says of paths that cannot be read. 0 or -ENOMEM.
 */
struct ni_ledgers {
  struct ni_ledger *all, *of_file;
  size_t n;
  /* a file is read that has a map (granules); NULL: nobody asks */
  void (*mapped)(void *arg, size_t file_no, struct ni_ledger *of_file);
  void *arg;
};
int ni_ledgers_init(struct ni_ledgers *l, struct ni_ledger *all, const struct ni_files *files);
/* frees part, in any case */
int ni_ledgers_merge(struct ni_ledgers *l, size_t file_no, struct ni_ledger *part);
/* a part that is not merged */
void ni_ledgers_drop(void *unused, void *part);
int ni_ledgers_file_done(struct ni_ledgers *l, size_t file_no);
void ni_ledgers_free(struct ni_ledgers *l);

#endif
