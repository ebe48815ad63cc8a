/*
 * Counters beside the collectives, as files: summary/counters.csv and "counters" of summary.json. Any thread.
 */
#ifndef NI_BESIDE_TABLE_H
#define NI_BESIDE_TABLE_H

#include <stdio.h>

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"

void ni_beside_csv(FILE *f, const struct ni_summary *s);
/* Keys of the open object. */
void ni_beside_json(struct ni_json *j, const struct ni_summary *s);

#endif
