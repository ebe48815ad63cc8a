/*
 * What reading hands on of each record that is wanted, by a struct ni_sink (base/sink.h): the record and the
 * numbers of its names.
 */
#ifndef NI_RECORD_ROW_H
#define NI_RECORD_ROW_H

#include "format/line.h"

/* For open(): which part of the input the rows come from. Parts of a file are begun in their order. */
struct ni_record_part {
  int file, range;
};

/* For row(). Numbers are of the run's tables (state.h); 0: the record does not state it. */
struct ni_record_row {
  const struct ni_line *line;
  uint32_t context, func, algo, proto, datatype, kernel;
};

#endif
