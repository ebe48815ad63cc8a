/* The ledger, judged, as the result has it. The main thread, after reading. 0 or -ENOMEM. */
#ifndef NI_SUMMARY_ACCOUNTS_H
#define NI_SUMMARY_ACCOUNTS_H

#include "state.h"

int ni_judge_input(struct ni_run *r, struct ni_summary *s);

#endif
