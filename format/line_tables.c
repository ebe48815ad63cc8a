#include "line_tables.h"

#include <pthread.h>
#include <stddef.h>

#define REQ NI_FLAG_REQUIRED
#define NUL NI_FLAG_NULL
#define OPT 0

/* What the writer asks says nothing here, but for the bits of a record. */
#define ALWAYS 0
#define NEVER 0
#define IF(condition) 0
#define HAS(x) NI_HAS_##x
#define KNOWN(x) NI_HAS_##x
#define HAS_AT(tag, member) offsetof(struct tag, member)
#define NO_HAS 0

/* How a type of lines.def is read: the type here, the smallest value, the type of its member. */
#define READ_U64 NI_F_U64, 0, uint64_t
#define READ_SN NI_F_U64, 0, uint64_t
#define READ_U32 NI_F_U32, 0, uint32_t
#define READ_I64 NI_F_I64, 0, int64_t
#define READ_NS NI_F_I64, 0, int64_t
#define READ_OFFSET NI_F_I64, 0, int64_t
#define READ_I32 NI_F_I32, 0, int32_t
#define READ_I32N NI_F_I32, 0, int32_t
#define READ_RANK NI_F_I32, -1, int32_t
#define READ_RANKN NI_F_I32, -1, int32_t
#define READ_BOOL NI_F_BOOL, 0, bool
#define READ_STR NI_F_STR, 0, const char *
#define READ_WORD NI_F_STR, 0, const char *
#define READ_NAMED NI_F_STR, 0, const char *
#define READ_HASH NI_F_HASH, 0, uint64_t
#define READ_TIMING NI_F_TIMING, 0, enum ni_timing
#define READ_SRC NI_F_SRC, 0, enum ni_src
#define READ_OBSERVED NI_F_OBSERVED, 0, bool
#define READ_US NI_F_F64, 0, double
#define READ_F64 NI_F_F64, 0, double
#define READ_BW NI_F_BW, 0, double
#define READ_BY NI_F_BY, 0, struct ni_by
#define READ_HIST NI_F_HIST, 0, uint64_t *
#define READ_PAIRS NI_F_PAIRS, 0, struct ni_pairs
#define READ_NUMBERS NI_F_NUMBERS, 0, struct ni_numbers

/* Where a member lies. The compiler finds one that is not of the type that the reader stores. */
#define PLACE(member, type) \
  (offsetof(self, member) + 0 * sizeof(char[_Generic(((self *)0)->member, type: 1, default: -1)]))

#define NAME(k) .key = k "\"", .len = sizeof(k)
#define FIELD_(k, member, read, has_bit, type_, min_, member_type) \
  {NAME(k), .type = type_, .min = min_, .offset = PLACE(member, member_type), .flags = read, .has = has_bit},
#define FIELD(...) FIELD_(__VA_ARGS__)
#define SUB(k, type_, name, at, has_bit, flags_) \
  {NAME(k), .type = type_, .sub = &name##_table, .offset = at, .has = has_bit, .flags = flags_},
#define SUB_OBJECT(k, name, member, has) SUB(k, NI_F_OBJECT, name, offsetof(self, member), has, 0)
#define SUB_EVENTS(k, name, member, has) SUB(k, NI_F_EVENTS, name, offsetof(self, member), has, 0)
#define SUB_STEPS(k, name, member, has) SUB(k, NI_F_STEPS, name, offsetof(self, member), has, NUL)
#define SUB_METRICS(k, name, member, has) SUB(k, NI_F_METRICS, name, offsetof(self, member), has, 0)
/* into the parser's own */
#define SUB_TRACE_SN(k, name, member, has) SUB(k, NI_F_TRACE, name, 0, has, 0)
#define SUB_TRACE_TS SUB_TRACE_SN

static void complete(struct ni_key_table *t, const struct ni_field *field, size_t n) {
  t->field = field;
  t->n = (uint32_t)n;
  t->required = 0;
  for (uint32_t i = 0; i < n; i++)
    if (field[i].flags & NI_FLAG_REQUIRED)
      t->required |= 1ULL << i;
}

/* A table and the function that completes it for each object. */
#define BEGIN(name, tag) \
  static struct ni_key_table name##_table; \
  static void fill_##name(void) { \
    typedef struct tag self;
#define OBJECT(name, tag, ...) \
  BEGIN(name, tag) \
  static const self none = {__VA_ARGS__}; \
  name##_table.defaults = &none; \
  name##_table.size = sizeof none; \
  static const struct ni_field field[] = {
#define PART(name, tag) BEGIN(name, tag) static const struct ni_field field[] = {
#define KEY(key, type, member, read, when, unit, present, meaning) FIELD(key, member, read, when, READ_##type)
#define STAMP(key, name, tag, member, unit, meaning) FIELD(key, member, REQ, 0, NI_F_STAMP, 0, uint64_t)
#define OBJ(key, how, name, member, has, when, present, meaning) SUB_##how(key, name, member, has)
#define END(name) \
  } \
  ; \
  complete(&name##_table, field, sizeof field / sizeof *field); \
  }
#include "lines.def"

/*
 * ---- top level: what every line begins with, its kinds; NVIDIA's lists of channels may stand here, too ----
 */

typedef struct ni_line self;
#define RECORD(k, name, at, kind_, flags_) \
  {NAME(k), .type = NI_F_KIND, .sub = &name##_table, .offset = at, .arg = kind_, .flags = flags_},
static const struct ni_field line_fields[] = {
#define HEAD(key, name, member, meaning) SUB_OBJECT(key, name, member, 0)
#define OPERATION(key, name, flags) RECORD(key, name, offsetof(self, op), NI_LINE_OP, flags)
#define KIND(key, name, tag, member, object, form, kind) RECORD(key, object, offsetof(self, member), kind, 0)
#include "lines.def"
#define OBJ(key, how, name, member, has, when, present, meaning) SUB_##how(key, name, member, has)
    TRACE_KEYS
#undef OBJ
};
struct ni_key_table ni_table_line;

static void complete_all(void) {
#define OBJECT(name, ...) fill_##name();
#define PART(name, tag) fill_##name();
#include "lines.def"
  complete(&ni_table_line, line_fields, sizeof line_fields / sizeof *line_fields);
}

void ni_tables_init(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, complete_all);
}

/* ---- names ---- */

const char *ni_reject_name(enum ni_reject reason) {
#define REJECT_NAME(code, name) name,
  static const char *const names[NI_REJ_COUNT] = {"ok", NI_REJECTS(REJECT_NAME)};
  return (unsigned)reason < NI_REJ_COUNT ? names[reason] : "unknown";
}

const char *ni_line_kind_name(enum ni_line_kind kind) {
  static const char *const names[NI_LINE_KIND_COUNT] = {[NI_LINE_OP] = "op",
#define KIND(key, name, tag, member, object, form, kind) [kind] = key,
#include "lines.def"
                                                        [NI_LINE_UNKNOWN] = "unknown"};
  return (unsigned)kind < NI_LINE_KIND_COUNT ? names[kind] : "unknown";
}

const char *ni_op_key(bool p2p) {
  static const char *const keys[] = {
#define OPERATION(key, name, flags) key,
#include "lines.def"
  };
  return keys[p2p];
}
