/*
 * What NCCL says of its calls beside their names, in NVTX's extended payloads: communicator, size, peer,
 * root; of a communicator's making also its rank and ranks.
 *
 * Where `nsys export` was told --include-blobs=true, an event has them as bytes (binaryData): domain, schema,
 * length and place (or end), 8 bytes each, then the struct that NCCL handed over. NVTX_PAYLOAD_SCHEMA_ENTRIES
 * has names, types and offsets of its members; an offset that is not there follows from the types before it.
 * Older exports have the same names as JSON (jsonText). Names: NCCL's schemas of payloads; older releases say
 * size and root alone.
 *
 * Threads: one for each list of schemas. Ownership: ni_payload_free(). Failure: -ENOMEM, and those of
 * database.h.
 */
#ifndef NI_NSYS_PAYLOAD_H
#define NI_NSYS_PAYLOAD_H

#include "database.h"

enum { NI_PAYLOAD_ENTRIES = 1 << 16 };

struct ni_payload_schemas {       /* all 0: none */
  struct ni_payload_entry *entry; /* by domain, schema and place */
  size_t n, cap;
};

struct ni_payload_said { /* NI_DB_NONE: it does not say so */
  uint64_t comm;         /* commHash; 0: not said */
  int64_t bytes, ranks, rank, device, root, peer;
};

/* The tables of the file; a file without them has none. Further entries than NI_PAYLOAD_ENTRIES are
 * left out. */
int ni_payload_schemas(struct ni_payload_schemas *s, struct ni_db *db);
void ni_payload_free(struct ni_payload_schemas *s);

void ni_payload_nothing(struct ni_payload_said *said);
/* What is no such payload says nothing. */
void ni_payload_bytes(const struct ni_payload_schemas *s, const uint8_t *bytes, size_t n,
                      struct ni_payload_said *said);
void ni_payload_json(const char *text, struct ni_payload_said *said);

#endif
