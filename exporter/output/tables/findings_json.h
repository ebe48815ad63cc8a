/* `findings` in summary.json, with what they cost and the steps. Any thread; reads the summary only. */
#ifndef NI_FINDINGS_JSON_H
#define NI_FINDINGS_JSON_H

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"

void ni_findings_json(struct ni_json *j, const struct ni_summary *s);

#endif
