/*
 * report.html: one page with everything a summary knows, to be opened from disk or sent around.
 *
 * The page is one file: style, script (ECharts included) and data are inside, nothing is loaded. Its
 * Content-Security-Policy allows exactly the embedded style and script, by hash, and forbids every
 * connection. The data is JSON in a script element of type application/json with every '<' escaped; the
 * script shows texts with textContent only, so host and communicator names stay text whatever they hold.
 *
 * The assets are made at build time by esbuild from package-lock.json (exporter/output/report/report.mk) and
 * embedded (page_file.h). A build without npm has no assets: ni_report_available() is false and
 * ni_report_render() says so once.
 *
 * Size: bounded by NI_REPORT_DATA_MAX_BYTES of data whatever the number of ranks: rows are left out from the
 * tail (the least share of time) and the page states how many.
 *
 * The command line is not in it: the same logs give the same page whatever --jobs and wherever it is written.
 *
 * Threads: one call at a time. Ownership: everything stays with the caller. Same summary, same bytes.
 */
#ifndef NI_REPORT_H
#define NI_REPORT_H

#include "exporter/model/sums/model.h"
#include "exporter/output/plot/render.h"
#include "page_file.h"

/* with the assets of 0.7 MB below the 3 MB that mail and chats take */
enum { NI_REPORT_DATA_MAX_BYTES = 2 << 20 };

/*
 * Writes the page to path (replaced if it exists). 0; -ENOTSUP: built without assets (said once); -ENOMEM;
 * -errno of open or write, and then no file is left.
 */
int ni_report_render(const struct ni_summary *summary, const struct ni_render_options *options,
                     const char *path);

#endif
