/* What check says of an account that was judged, on standard output. Main thread. */
#ifndef NI_CHECK_PRINT_H
#define NI_CHECK_PRINT_H

#include "exporter/model/clocks/hosts.h"

/* all: every communicator in the table, however many. The verdict is the last line. */
void ni_check_print(const struct ni_ledger *c, const struct ni_clocks *clocks, bool all);
/* What is not complete, without a line feed; also for `run`. */
void ni_check_reasons(const struct ni_ledger *c);
/* That line alone. */
void ni_check_verdict(const struct ni_ledger *c);
void ni_check_json(const struct ni_ledger *c, const struct ni_clocks *clocks);

#endif
