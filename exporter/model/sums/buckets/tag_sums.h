/*
 * Figures by the tags that an application gives its calls: a row for each tag and timing source, since times
 * of different sources are never mixed. Filled where operations are joined, so what is there twice counts
 * once.
 *
 * A table is one of buckets (buckets.h) whose `bucket` is the tag. An application may give each request a tag
 * of its own: of more than NI_TAG_ROWS_MAX rows nothing is told but that they are so many, in whatever order
 * they came.
 *
 * Threads: one for each table. Failure: -ENOMEM.
 */
#ifndef NI_SUM_TAGS_H
#define NI_SUM_TAGS_H

#include <stdbool.h>

#include "buckets.h"

#define NI_TAG_ROWS_MAX 65536u

struct ni_tag_sums { /* all 0: empty */
  struct ni_bucket_table rows;
  bool too_many;
};

struct ni_operation;
struct ni_run;
struct ni_summary;

/* The records of an operation that have a tag; it counts itself where the first of these does. */
int ni_tag_sums_count(struct ni_tag_sums *t, const struct ni_operation *op, uint64_t msg_bytes,
                      const char *no_func);
int ni_tag_sums_merge(struct ni_tag_sums *to, const struct ni_tag_sums *from);
void ni_tag_sums_free(struct ni_tag_sums *t);
/* Once all is summed: the rows of the result, those with the most time first. all_ns: what shares are of. */
int ni_tag_sums_build(struct ni_run *r, struct ni_summary *s, double all_ns);

#endif
