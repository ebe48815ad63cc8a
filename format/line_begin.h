/*
 * Pieces of a line, for the format_*.c files alone: its begin and end, a key with its value.
 *
 * Room is asked for once in begin_line, for the worst case of the line, so that nothing inside looks at a bound.
 */
#ifndef NI_FORMAT_LINE_H
#define NI_FORMAT_LINE_H

#include "line_write.h"
#include "json_text.h"

/* comm_name, hostname, git_rev cut to what they may be at most; the rest of the prefix is below 1 KiB. */
#define ORIGIN_TEXT_MAX 256
#define PREFIX_MAX (NI_JSON_STRING_MAX_BYTES + 3 * (6 * ORIGIN_TEXT_MAX + 8) + 1024)
#define CONTROL_BODY_MAX (3 * NI_JSON_STRING_MAX_BYTES + 4096)
#define LIT NI_JSON_LIT

/* The prefix with its timestamp; NULL when cap cannot hold the worst case of this line. */
static inline char *begin_line(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us, size_t body_max) {
  if (cap < (size_t)px->head_len + px->tail_len + 20 + body_max) return NULL;
  memcpy(buf, px->text, px->head_len);
  char *p = ni_json_put_u64(buf + px->head_len, ts_us);
  memcpy(p, px->text + px->head_len, px->tail_len);
  return p + px->tail_len;
}

static inline size_t end_line(const char *buf, char *p) { return (size_t)(LIT(p, "}}\n") - buf); }

/* Numbers that NCCL's side hands over may be anything: what the format has no room for is its largest (docs/format.md). */
static inline uint64_t in_range(uint64_t v) { return v > INT64_MAX ? INT64_MAX : v; }
static inline int32_t rank_in_range(int32_t v) { return v < -1 ? -1 : v; }

#define U64(key, v) (p = LIT(p, key), p = ni_json_put_u64(p, in_range(v)))
#define RANK(key, v) I64(key, rank_in_range(v)) /* a root, a peer, a small count; -1: cannot be */
#define I64(key, v) (p = LIT(p, key), p = ni_json_put_i64(p, (v)))
#define STR(key, v) (p = LIT(p, key), p = ni_json_string(p, (v)))
#define FLAG(key, v) (p = LIT(p, key), p = (v) ? LIT(p, "true") : LIT(p, "false"))
#define GBS(key, known, v) (p = LIT(p, key), p = (known) ? ni_json_fixed(p, (v), 6) : LIT(p, "null"))

static inline char *put_i64_or_null(char *p, int64_t v, bool known) {
  return known ? ni_json_put_i64(p, v) : LIT(p, "null");
}

static inline const char *kind_name(enum ni_kind k) { return ni_kind_names[k == NI_KIND_P2P]; }

#endif
