/*
 * Rows on their way out of a model, which makes them and does not know what becomes of them: a table, a file
 * of records, an answer to somebody who asked. The command gives the sink, the output rooms make them.
 *
 * What `what` and `row` point to is between a model and its sinks: it stands beside the type of the row (such
 * as ni_operation_row in exporter/model/sums/figures.h). Both are the model's and hold for the call alone.
 *
 * Threads: open() may be called by several at once; what it gave belongs to one until it is closed. What is
 * opened is closed in any case. Failure: 0 or -errno; what went wrong in row() may come back from later
 * calls.
 */
#ifndef NI_SINK_H
#define NI_SINK_H

struct ni_sink {
  void *to; /* the sink's own */
  int (*open)(void *to, const void *what, void **rows);
  int (*row)(void *rows, const void *row);
  int (*close)(void *rows);
};

#endif
