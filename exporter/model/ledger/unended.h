/*
 * Processes whose log lacks their own last line: killed, still running, or on a disk that took nothing more. What they did
 * since their newest line is in no log, so a job with one of them is not complete. One rule and one sentence for all commands.
 *
 * The last line is a dump_stats line with `final` true and header id 0x0. The plugin writes it where it writes a process line,
 * `recover` writes it for a process that is gone. NVIDIA's logs have neither.
 *
 * Threads: one. Ownership: texts are borrowed, but for dir: ni_unended_free().
 */
#ifndef NI_UNENDED_H
#define NI_UNENDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_unended {
  uint64_t n;
  const char *host[4]; /* different ones, in the order in which they came */
  size_t n_hosts;
  bool more_hosts;
  char *dir;           /* the folder that holds the logs of all of them */
};

/* Counts a process that has a process line and no last line; any other is passed over. path: a file of it. 0 or -ENOMEM. */
int ni_unended_add(struct ni_unended *u, bool has_line, bool has_end, const char *host, const char *path);
/* What to do, as a sentence without a full stop. n is not 0. Cut where it does not fit. */
void ni_unended_text(const struct ni_unended *u, char *out, size_t size);
void ni_unended_free(struct ni_unended *u);

#define NI_UNENDED_ONE "process without its own last line: killed, or still running"
#define NI_UNENDED_MANY "processes without their own last line: killed, or still running"

#endif
