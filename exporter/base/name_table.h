/*
 * Texts of the logs, each stored once and known by a number: host names, functions, algorithms, file names.
 *
 * Model: a table that only grows. Code 0 is the empty text. A code and its text stay valid and where they are
 * until ni_names_free(), so readers need no lock: they got the code from a call of ni_name() of theirs, or
 * from a thread that handed it over under a lock. The array of texts has the form the Parquet writer takes as
 * dictionary.
 *
 * Threads: ni_name() locks; call it through a small cache of one's own. Codes depend on who came first, so
 * nothing that is written may depend on their order. Failure: 0 or -ENOMEM; -ENOSPC beyond NI_NAMES_MAX
 * different texts.
 */
#ifndef NI_NAMES_TABLE_H
#define NI_NAMES_TABLE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "index.h"
#include "text/utf8.h"

#define NI_NAMES_MAX (1u << 22)

struct ni_names {
  pthread_mutex_t lock;
  struct ni_str *text; /* reserved address space for NI_NAMES_MAX of them */
  uint32_t n;
  struct ni_index at_hash;
  char **block;
  size_t n_blocks, cap_blocks, block_left;
  char *block_at;
};

/* Remembers the last texts of one thread, so that most lookups take no lock. */
#define NI_NAME_CACHE 64
struct ni_name_cache {
  struct {
    const char *text;
    uint32_t len, code;
  } slot[NI_NAME_CACHE];
};

int ni_names_init(struct ni_names *t);
void ni_names_free(struct ni_names *t);
/* text NULL counts as "". */
int ni_name(struct ni_names *t, struct ni_name_cache *cache, const char *text, uint32_t *code);
/*
 * In bytes (bytes/wire.h) a name is its text, since codes differ. Also of a text that lives as long as the
 * table; NULL stays NULL.
 */
struct ni_wire;
void ni_wire_name(struct ni_wire *w, struct ni_names *t, uint32_t *code);
void ni_wire_kept(struct ni_wire *w, struct ni_names *t, const char **text);
static inline const char *ni_name_text(const struct ni_names *t, uint32_t code) { return t->text[code].p; }

#endif
