/* `findings` in summary.json, with what they cost and the steps. Any thread; reads the summary only. */
#ifndef NI_FINDINGS_JSON_H
#define NI_FINDINGS_JSON_H

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"

/* `steps`, where they are known: at most `most` bins, of so many of the summary's each as that needs. */
void ni_steps_json(struct ni_json *j, const struct ni_summary *s, uint32_t most);
void ni_findings_json(struct ni_json *j, const struct ni_summary *s);

#endif
