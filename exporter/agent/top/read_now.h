/*
 * JSON into rows (rows.h): a document of schema nccl-inspector-now-1, or a Prometheus's answer to ni_top_query. Any bytes may come:
 * what is not there or no number is not known, what is too long is cut, what is too much left out. One thread.
 */
#ifndef NI_TOP_READ_NOW_H
#define NI_TOP_READ_NOW_H

#ifdef __cplusplus
extern "C" {
#endif

#include "rows.h"

/* For /api/v1/query: all that `top` shows in one answer. The label `top` names the member. */
extern const char ni_top_query[];

/* Into source s of t, in place of what it said before. Else false with a sentence in why, and s is as it was. */
bool ni_top_read(struct ni_top *t, struct ni_top_source *s, const char *json, size_t bytes, bool prometheus, char *why, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
