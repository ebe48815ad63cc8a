#include "page_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/utf8.h"
#include "page_build.h"

#define NO_CODE UINT16_MAX /* dictionaries end below */

/* Valid UTF-8 for `s`, replaced when it must be; -EMSGSIZE when too long. The result lives until the next call. */
static int clean_text(struct ni_chunk_env *env, const struct ni_str *s, struct ni_str *out) {
  if (s->len > NI_PQ_STR_MAX_BYTES) return -EMSGSIZE;
  *out = *s;
  if (s->len == 0) out->p = "";
  if (ni_utf8_valid(out->p, out->len)) return 0;
  size_t need = 3 * (size_t)s->len;
  if (need > env->utf8_cap && !ni_array_exact(&env->utf8, &env->utf8_cap, need, 1)) return -ENOMEM;
  out->p = env->utf8;
  out->len = (uint32_t)ni_utf8_replace(env->utf8, s->p, s->len);
  return 0;
}

static int code_of_text(struct ni_chunk *c, struct ni_chunk_env *env, const struct ni_str *s, uint16_t *code) {
  struct ni_str clean;
  int rc = clean_text(env, s, &clean);
  return rc ? rc : ni_dict_map_text(&c->dict, clean.p, clean.len, code);
}

int ni_values_ready(struct ni_chunk *c, const struct ni_pq_dict *dict) {
  if (dict->epoch == 0 || dict->epoch != c->code_map_epoch || dict->n < c->code_map_n) c->code_map_n = 0;
  c->code_map_epoch = dict->epoch;
  if (dict->n > c->code_map_cap && !ni_array_more(&c->code_map, &c->code_map_cap, dict->n, sizeof *c->code_map)) return -ENOMEM;
  if (dict->n > c->code_map_n)
    memset(c->code_map + c->code_map_n, 0xff, (dict->n - c->code_map_n) * sizeof *c->code_map);
  c->code_map_n = dict->n;
  return 0;
}

static int map_codes(struct ni_chunk *c, struct ni_chunk_env *env, const struct ni_pq_slice *s, uint32_t n, uint16_t *out,
                     uint32_t *n_mapped) {
  const uint32_t *in = s->values;
  for (uint32_t i = 0; i < n; i++) {
    *n_mapped = i;
    if (in[i] >= s->dict->n) return -EINVAL;
    uint16_t code = c->code_map[in[i]];
    if (code == NO_CODE) {
      int rc = code_of_text(c, env, &s->dict->values[in[i]], &code);
      if (rc) return rc;
      c->code_map[in[i]] = code;
    }
    out[i] = code;
  }
  *n_mapped = n;
  return 0;
}

/* Rows of the slice before its value k. */
static uint32_t rows_before(const struct ni_pq_slice *s, uint32_t k) {
  if (s->repeat || s->n_values == s->n_rows) return k;
  uint32_t row = 0;
  for (uint32_t seen = 0; row < s->n_rows; row++)
    if (s->valid[row] && seen++ == k) break;
  return row;
}

/* On NI_DICT_FULL the slice is cut down to the rows that were taken. */
static int stage_dict(struct ni_chunk *c, struct ni_chunk_env *env, struct ni_pq_slice *s) {
  if (!c->codes && !(c->codes = malloc((env->page_rows + NI_CODE_SLACK) * sizeof *c->codes))) return -ENOMEM;
  uint16_t *out = c->codes + c->page_values;
  uint32_t n = s->repeat && s->n_values ? 1 : s->n_values, n_mapped = 0;
  int rc = c->is_text ? map_codes(c, env, s, n, out, &n_mapped) : ni_dict_map(&c->dict, s->values, n, out, &n_mapped);
  if (rc == NI_DICT_FULL) {
    s->n_rows = rows_before(s, n_mapped);
    s->n_values = n_mapped;
  } else if (rc) {
    return rc;
  } else {
    for (uint32_t i = n; i < s->n_values; i++) out[i] = out[0];
  }
  c->page_values += s->n_values;
  return rc;
}

/* Room for `need` more bytes of values in the open PLAIN page. */
static int ready_plain(struct ni_chunk *c, const struct ni_chunk_env *env, size_t need) {
  size_t want = ni_level_room(env->page_rows) + c->plain_len + need;
  if (!c->is_text) want = ni_level_room(env->page_rows) + (size_t)env->page_rows * NI_VALUE_BYTES;
  if (want <= c->plain_cap) return 0;
  if (c->is_text && want < 2 * c->plain_cap && c->plain_cap < 2 * NI_PAGE_BYTES) want = 2 * c->plain_cap;
  return ni_array_exact(&c->plain, &c->plain_cap, want, 1) ? 0 : -ENOMEM;
}

static int put_text(struct ni_chunk *c, struct ni_chunk_env *env, const char *p, uint32_t len) {
  int rc = ready_plain(c, env, 4 + (size_t)len);
  if (rc) return rc;
  uint8_t *out = c->plain + ni_level_room(env->page_rows) + c->plain_len;
  memcpy(out, &len, 4);
  memcpy(out + 4, p, len);
  c->plain_len += 4 + (size_t)len;
  return 0;
}

/* A page of strings ends with the row that fills it: the slice is cut down to the rows that were taken. */
static int stage_plain(struct ni_chunk *c, struct ni_chunk_env *env, struct ni_pq_slice *s) {
  int rc = 0;
  if (c->is_text) {
    const uint32_t *codes = s->values;
    for (uint32_t i = 0; i < s->n_values; i++) {
      uint32_t code = codes[s->repeat ? 0 : i];
      struct ni_str clean;
      if (code >= s->dict->n) return -EINVAL;
      if ((rc = clean_text(env, &s->dict->values[code], &clean)) != 0) return rc;
      ni_stats_text(&c->stats, clean.p, clean.len);
      if ((rc = put_text(c, env, clean.p, clean.len)) != 0) return rc;
      if (c->plain_len >= NI_PAGE_BYTES) {
        s->n_rows = rows_before(s, i) + 1;
        s->n_values = i + 1;
      }
    }
  } else if ((rc = ready_plain(c, env, (size_t)s->n_values * NI_VALUE_BYTES)) == 0) {
    uint8_t *out = c->plain + ni_level_room(env->page_rows) + c->plain_len;
    uint32_t n = s->repeat && s->n_values ? 1 : s->n_values;
    if (n) memcpy(out, s->values, (size_t)n * NI_VALUE_BYTES);
    for (uint32_t i = n; i < s->n_values; i++) memcpy(out + (size_t)i * NI_VALUE_BYTES, out, NI_VALUE_BYTES);
    c->plain_len += (size_t)s->n_values * NI_VALUE_BYTES;
    if (c->type == NI_PQ_DOUBLE) ni_stats_doubles(&c->stats, s->values, n);
    else ni_stats_ints(&c->stats, s->values, n);
  }
  c->page_values += s->n_values;
  return rc;
}

int ni_values_add(struct ni_chunk *c, struct ni_chunk_env *env, struct ni_pq_slice *s) {
  return c->mode == NI_CHUNK_DICT ? stage_dict(c, env, s) : stage_plain(c, env, s);
}

int ni_values_to_plain(struct ni_chunk *c, struct ni_chunk_env *env) {
  for (uint32_t i = 0; i < c->page_values; i++) {
    uint16_t code = c->codes[i];
    int rc;
    if (c->is_text) {
      const struct ni_dict_text *t = &c->dict.texts[code];
      rc = put_text(c, env, c->dict.text + t->off, t->len);
    } else if ((rc = ready_plain(c, env, NI_VALUE_BYTES)) == 0) {
      memcpy(c->plain + ni_level_room(env->page_rows) + c->plain_len, &c->dict.keys[code], NI_VALUE_BYTES);
      c->plain_len += NI_VALUE_BYTES;
    }
    if (rc) return rc;
  }
  return 0;
}
