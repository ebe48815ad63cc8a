/*
 * Values of options that leave records out, the same in every command that has them: --since, --until, lists
 * of words, ranks, sizes, tags.
 *
 * Parsers return 0, -EINVAL or -ERANGE and leave the message to the command, which knows the option's name.
 * Lists are the caller's: ni_filters_free(), or ni_words_free(), ni_ranks_free() and ni_tags_free() of one.
 * Main thread while options are parsed; ni_words_have...(), ni_ranks_have(), ni_tags_have() and
 * ni_when_resolve() from any thread. What was asked for is remembered, so that a word nobody has can be told
 * with what there is (ni_filters_say_unmet()): ask of everything that is there, also where another filter has
 * said no.
 */
#ifndef NI_FILTERS_H
#define NI_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ni_when_base { NI_WHEN_NONE = 0, NI_WHEN_ABSOLUTE, NI_WHEN_BEFORE_END, NI_WHEN_AFTER_START };
struct ni_when {
  enum ni_when_base base;
  int64_t us; /* Unix us, or the distance */
};

struct ni_words { /* a filter: any of these; n == 0: everything */
  struct {
    char *text;
    bool met; /* set by any thread, read when all have ended */
  } *word;
  size_t n, cap;
  struct ni_words_others *others; /* what was asked for and is none of them */
};

/* a filter on numbers, such as ranks: any of these spans, both ends included; n == 0: everything */
struct ni_ranks {
  struct {
    int64_t from, to;
    bool met; /* as of words */
  } *span;
  size_t n, cap;
  /* of all that was asked for; any thread, relaxed */
  struct ni_ranks_seen {
    int64_t lowest, highest;
    bool differs; /* the same ranks of the job would have been others */
  } *seen;
};

/* a filter on tags: any of these; n == 0: everything. tags/tags.h says how names become numbers */
struct ni_tag_filter {
  size_t n; /* words that were given */
  struct ni_ranks number;
  struct ni_words name;
  bool none, none_met; /* untagged operations; as of words */
  bool resolved;       /* `named` has what the names stand for */
  uint64_t *named;
  size_t n_named, cap_named;
};

/* What a command has of them; the others stay as they are, all zero: everything passes. */
struct ni_filters {
  struct ni_when since, until;
  struct ni_words coll, comm, host;
  struct ni_ranks rank, sn, size; /* size: bytes */
  struct ni_ranks job_rank;       /* rank: of the communicator, but of the job in trace */
  struct ni_tag_filter tag;
};

/* "4096", "128M", "2GiB": units are powers of 1024. */
int ni_parse_size(const char *text, uint64_t *out);
/* "2026-11-21T08:00:00Z" (or +01:00), seconds since 1970, "-10m" before the end, "+5m" after the start. */
int ni_parse_when(const char *text, struct ni_when *w);
/* Unix us; none when w was not given. first and last: times of the records. */
int64_t ni_when_resolve(const struct ni_when *w, int64_t none, int64_t first, int64_t last);

/*
 * Adds the words of a list with commas. 0, -ENOMEM, or -EINVAL for a list without words: an empty filter
 * would match everything.
 */
int ni_words_add(struct ni_words *w, const char *list);
void ni_words_free(struct ni_words *w);
/*
 * Hosts: as they are written. Functions: in any case. Communicators: by name as it is written, by hash as a
 * number.
 */
bool ni_words_have(const struct ni_words *w, const char *text);
bool ni_words_have_func(const struct ni_words *w, const char *func);
bool ni_words_have_comm(const struct ni_words *w, uint64_t hash, const char *name);

/* Adds "0-7,16". 0, -EINVAL or -ENOMEM. */
int ni_ranks_add(struct ni_ranks *r, const char *list);
/* The same of sizes in bytes: "4K,1M-16M". */
int ni_sizes_add(struct ni_ranks *r, const char *list);
void ni_ranks_free(struct ni_ranks *r);
bool ni_ranks_have(const struct ni_ranks *r, int64_t rank);
/*
 * Both filters of ranks at once: of_comm in the communicator, of_job in the job (-1: not known). passes: so
 * do all other filters.
 */
bool ni_ranks_have_both(const struct ni_ranks *rank, const struct ni_ranks *job_rank, int64_t of_comm,
                        int64_t of_job, bool passes);

/*
 * Adds "7,9-12,layer.3,none": tags, ranges of them, names, and the word for untagged operations. 0, -EINVAL
 * or -ENOMEM.
 */
int ni_tags_add(struct ni_tag_filter *t, const char *list);
/* Adds one of them: "7" or "9-12". */
int ni_tags_add_span(struct ni_ranks *number, const char *span);
void ni_tags_free(struct ni_tag_filter *t);
/* tag 0: untagged. Once names are resolved (tags/tags.h). */
bool ni_tags_have(const struct ni_tag_filter *t, uint64_t tag);

/*
 * On standard error, after reading: each word that nobody has, and at most eight of those that are there, the
 * likest first.
 */
void ni_filters_say_unmet(const struct ni_filters *f, const char *command);

/*
 * Which of them somebody had, and what else was there: stored, or added to what is known. The main thread,
 * before and after reading.
 */
struct ni_wire;
void ni_filters_wire_met(struct ni_wire *w, struct ni_filters *f);

/*
 * Does the span end before it begins, as far as that can be told before any log is read? The sentence, or
 * NULL.
 */
#define NI_WHEN_REVERSED "--since is later than --until: nothing lies between them"
const char *ni_filters_refuse(const struct ni_filters *f);
/* Which of them leave operations out, times apart: "--coll and --rank"; "": none. Returns out. */
const char *ni_filters_names(const struct ni_filters *f, char out[128]);
/* Is anything left out? */
bool ni_filters_any(const struct ni_filters *f);
/* Are the times of all records needed before it is known which are wanted? */
bool ni_filters_relative(const struct ni_filters *f);
void ni_filters_free(struct ni_filters *f);

#endif
