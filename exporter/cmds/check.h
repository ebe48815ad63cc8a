/* What `nccl-inspector check` has: its options, and the account of the logs. check.c reads, check_print.c shows. Main thread. */
#ifndef NI_CHECK_H
#define NI_CHECK_H

#include "exporter/cli/options.h"
#include "exporter/model/ledger/ledger.h"

struct ni_check {
  struct ni_inputs inputs;
  struct ni_files files;
  struct ni_runs runs;
  struct ni_expect {
    char *func;
    uint64_t count;
  } *expect;
  size_t n_expect, cap_expect;
  bool json, quiet, all;
  struct ni_progress progress;
  struct ni_ledger ledger;
};

void ni_check_print(const struct ni_check *c);
void ni_check_print_json(const struct ni_check *c);

#endif
