/*
 * Who counts as named rightly for a fault, and who is close enough to be no innocent, as subjects in
 * truth.json.
 */
#ifndef NI_JOBS_SUSPECTS_H
#define NI_JOBS_SUSPECTS_H

#include "exporter/base/text/json_write.h"
#include "test/jobs/job.h"

/* "rank", "host", "nvlink", "nic", "rail", "pair", "stage" or "fabric". */
const char *nj_level(const struct nj_fault *f);
/*
 * Whether the operations hold what tells this cause from others: a NIC that every ring crosses is like any
 * other.
 */
bool nj_identifiable(const struct nj_job *job, const struct nj_fault *f);
/* The arrays "communicators", "accept" and "related" of a culprit. */
void nj_suspects(struct ni_json *j, const struct nj_job *job, const struct nj_fault *f);

#endif
