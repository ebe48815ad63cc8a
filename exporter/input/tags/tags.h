/*
 * Tags that an application gives its calls (userProfilerTag): their names, and which operations --tag wants.
 *
 * Names come from control lines of source `file` or `tags` whose command is `tag NUMBER NAME` and whose
 * result is `done`; of several for one number the latest counts, of equal times the name that sorts first. So
 * the order of reading changes nothing.
 *
 * Threads: names are taken by one thread at a time, or under the caller's lock; read by any when no more
 * come. ni_tags_have() by any. Ownership: ni_tag_names_free(), ni_tags_free(). Failure: -ENOMEM, or as it
 * says.
 */
#ifndef NI_TAGS_H
#define NI_TAGS_H

#include "exporter/base/index.h"
#include "exporter/input/filters.h"
#include "exporter/input/scan_files.h"

#define NI_TAG_MAX INT64_MAX        /* NCCL keeps larger ones for itself; 0 is no tag */
#define NI_TAG_NAME_MAX 64u         /* bytes */
#define NI_TAG_NAMES_MAX (1u << 20) /* what is named beyond has no name */

struct ni_tag_name {
  uint64_t tag, ns;
  char name[NI_TAG_NAME_MAX + 1];
};
struct ni_tag_names { /* all 0: empty */
  struct ni_tag_name *item;
  size_t n, cap;
  struct ni_index at_hash;
};

/* Is it a line that names a tag? Then the tag, and its name in the line. */
bool ni_tag_line(const struct ni_control_line *c, uint64_t *tag, const char **name);
/* Takes the name that the line gives; other lines are passed over. 0 or -ENOMEM. */
int ni_tag_names_take(struct ni_tag_names *t, const struct ni_control_line *c);
int ni_tag_names_add(struct ni_tag_names *t, const struct ni_tag_name *x);
/* NULL: it has none. */
const char *ni_tag_name(const struct ni_tag_names *t, uint64_t tag);
void ni_tag_names_free(struct ni_tag_names *t);

/*
 * Are names asked for that stand for no number yet? Then all control lines are needed before anything is
 * chosen.
 */
bool ni_tags_unresolved(const struct ni_tag_filter *t);
/* Names become numbers; a name that nobody has fits nothing, and ni_filters_say_unmet() tells it. */
int ni_tags_resolve(struct ni_tag_filter *t, const struct ni_tag_names *names);
/* The same by reading the logs of the plan for that alone. stop may be NULL. */
int ni_tags_resolve_by(struct ni_tag_filter *t, const struct ni_scan_plan *plan, unsigned jobs,
                       bool (*stop)(void *), void *arg);

#endif
