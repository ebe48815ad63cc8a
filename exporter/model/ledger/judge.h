/* The account, once all is read, to problems. Main thread. 0 or -ENOMEM. */
#ifndef NI_LEDGER_JUDGE_H
#define NI_LEDGER_JUDGE_H

#include "ledger.h"

/* What files->bad holds, as problems; kinds of names that are mixed. Once. */
void ni_ledger_files(struct ni_ledger *c, const struct ni_files *files);
/* Where the files are of several runs, a note that names them. Once. */
void ni_ledger_runs(struct ni_ledger *c, const struct ni_runs *runs, const struct ni_files *files);
int ni_ledger_judge(struct ni_ledger *c);
bool ni_ledger_complete(const struct ni_ledger *c);
/* The members of one communicator stand together in the sorted list: from `from` up to the returned index. */
size_t ni_ledger_group_end(const struct ni_ledger *c, size_t from);

#endif
