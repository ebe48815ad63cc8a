#include "payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

enum { HEAD = 32 }; /* bytes before the payload */

/* Members that are looked for. */
enum what { OTHER, COMM, BYTES, RANKS, RANK, DEVICE, ROOT, PEER };

struct ni_payload_entry {
  uint64_t domain, schema;
  int64_t place, type, offset; /* offset: in the struct; NI_DB_NONE */
  enum what what;
};

static const struct {
  const char *name;
  enum what what;
} names[] = {{"NCCL communicator ID", COMM},
             {"Message size [bytes]", BYTES},
             {"No. of ranks", RANKS},
             {"Rank", RANK},
             {"CUDA device", DEVICE},
             {"Root", ROOT},
             {"Peer rank", PEER}};
enum { NAMES = sizeof names / sizeof *names };

static enum what find_meaning(const char *name) {
  for (size_t i = 0; i < NAMES; i++)
    if (strcmp(names[i].name, name) == 0)
      return names[i].what;
  return OTHER;
}

/* NVTX_PAYLOAD_ENTRY_TYPE_*, of x86_64 and aarch64; 4 of what is a schema itself: NCCL's are enums. 0:
 * of no fixed length. */
static unsigned measure_type(int64_t type, bool *is_signed) {
  static const int8_t length[] = {0, -1, 1, -2, 2, -4, 4, -8, 8, -8, 8, -1,
                                  1, -2, 2, -4, 4, -8, 8, 4,  8, 16, 8, 8};
  const bool known = type > 0 && type < (int64_t)(sizeof length);
  const int n = known ? length[type] : type >= 256 ? 4 : 0;
  *is_signed = n < 0;
  return (unsigned)(n < 0 ? -n : n);
}

static int compare_by_place(const void *a, const void *b) {
  const struct ni_payload_entry *x = a, *y = b;
  if (x->domain != y->domain)
    return x->domain < y->domain ? -1 : 1;
  if (x->schema != y->schema)
    return x->schema < y->schema ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

/* The table has the entries once for each process, with the same numbers: one of each stays. */
static void drop_duplicates(struct ni_payload_schemas *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->n; i++)
    if (n == 0 || compare_by_place(&s->entry[n - 1], &s->entry[i]) != 0)
      s->entry[n++] = s->entry[i];
  s->n = n;
}

int ni_payload_schemas(struct ni_payload_schemas *s, struct ni_db *db) {
  static const char *const columns[] = {"domainId", "schemaId", "idx", "type", "offset", "name", NULL};
  struct ni_db_rows rows;
  *s = (struct ni_payload_schemas){0};
  int e = ni_db_select(db, "NVTX_PAYLOAD_SCHEMA_ENTRIES", columns, &rows);
  while (e >= 0 && (e = ni_db_next(&rows)) == 1) {
    if (s->n == NI_PAYLOAD_ENTRIES) {
      ni_db_end(&rows);
      return 0;
    }
    if (!ni_array_room(s->entry, s->n, s->cap)) {
      ni_db_end(&rows);
      return -ENOMEM;
    }
    s->entry[s->n++] = (struct ni_payload_entry){.domain = (uint64_t)ni_db_number(&rows, 0),
                                                 .schema = (uint64_t)ni_db_number(&rows, 1),
                                                 .place = ni_db_number(&rows, 2),
                                                 .type = ni_db_number(&rows, 3),
                                                 .offset = ni_db_number(&rows, 4),
                                                 .what = find_meaning(ni_db_text(&rows, 5))};
  }
  if (s->n)
    qsort(s->entry, s->n, sizeof *s->entry, compare_by_place);
  drop_duplicates(s);
  return e;
}

void ni_payload_free(struct ni_payload_schemas *s) {
  free(s->entry);
  *s = (struct ni_payload_schemas){0};
}

void ni_payload_nothing(struct ni_payload_said *said) {
  *said = (struct ni_payload_said){.bytes = NI_DB_NONE,
                                   .ranks = NI_DB_NONE,
                                   .rank = NI_DB_NONE,
                                   .device = NI_DB_NONE,
                                   .root = NI_DB_NONE,
                                   .peer = NI_DB_NONE};
}

static void note_value(struct ni_payload_said *said, enum what what, uint64_t value) {
  const int64_t number = value <= INT64_MAX ? (int64_t)value : NI_DB_NONE;
  switch (what) {
    case COMM:
      said->comm = value;
      break;
    case BYTES:
      said->bytes = number;
      break;
    case RANKS:
      said->ranks = number;
      break;
    case RANK:
      said->rank = number;
      break;
    case DEVICE:
      said->device = number;
      break;
    case ROOT:
      said->root = number;
      break;
    case PEER:
      said->peer = number;
      break;
    case OTHER:
      break;
  }
}

static uint64_t read_member(const uint8_t *p, unsigned length, bool is_signed) {
  uint64_t value = 0;
  for (unsigned i = length; i > 0; i--)
    value = value << 8 | p[i - 1];
  const bool negative = is_signed && length < 8 && value >> (8 * length - 1);
  return negative ? value | ~UINT64_C(0) << 8 * length : value;
}

static void read_struct(const struct ni_payload_entry *entry, size_t n_entries, const uint8_t *bytes,
                        uint64_t n, struct ni_payload_said *said) {
  uint64_t at = 0;
  for (size_t i = 0; i < n_entries; i++) {
    bool is_signed;
    const unsigned length = measure_type(entry[i].type, &is_signed);
    const bool stated = entry[i].offset >= 0 && entry[i].offset <= INT32_MAX;
    if (length == 0)
      return;
    at = stated && (entry[i].offset > 0 || i == 0) ? (uint64_t)entry[i].offset
                                                   : (at + length - 1) / length * length;
    if (length > 8 || at + length > n)
      return;
    note_value(said, entry[i].what, read_member(bytes + at, length, is_signed));
    at += length;
  }
}

void ni_payload_bytes(const struct ni_payload_schemas *s, const uint8_t *bytes, size_t n,
                      struct ni_payload_said *said) {
  if (!bytes || n < HEAD || s->n == 0)
    return;
  const struct ni_payload_entry of = {
      .domain = read_member(bytes, 8, false), .schema = read_member(bytes + 8, 8, false), .place = INT64_MIN};
  const uint64_t length = read_member(bytes + 16, 8, false);
  uint64_t at = read_member(bytes + 24, 8, false);
  if (at == n && length == n - HEAD)
    at = HEAD; /* of some releases it is where the payload ends */
  if (at < HEAD || at > n || length > n - at)
    return;
  size_t from, to;
  ni_array_search(from, s->n, compare_by_place(&s->entry[from], &of) < 0);
  for (to = from; to < s->n && s->entry[to].domain == of.domain && s->entry[to].schema == of.schema;)
    to++;
  read_struct(s->entry + from, to - from, bytes + at, length, said);
}

/* {"Message size [bytes]": 1024, ..}: names and whole numbers are all that is looked for. */
void ni_payload_json(const char *text, struct ni_payload_said *said) {
  for (size_t i = 0; i < NAMES; i++) {
    const size_t n = strlen(names[i].name);
    const char *at = text;
    while ((at = strstr(at, names[i].name)) && (at == text || at[-1] != '"' || at[n] != '"'))
      at += n;
    if (!at)
      continue;
    at += n + 1;
    at += strspn(at, " \t\n\r");
    if (*at++ != ':')
      continue;
    at += strspn(at, " \t\n\r\"");
    const bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    char *end;
    errno = 0;
    if (*at < '0' || *at > '9')
      continue;
    const unsigned long long value = strtoull(at, &end, hex ? 16 : 10);
    const bool is_real = *end == '.' || *end == 'e' || *end == 'E';
    if (errno == 0 && !is_real)
      note_value(said, names[i].what, value);
  }
}
