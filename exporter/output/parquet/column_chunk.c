#include "column_chunk.h"

#include <errno.h>
#include <stdlib.h>

#include "page_build.h"
#include "page_values.h"

void ni_chunk_env_free(struct ni_chunk_env *env) {
  ni_page_codec_free(&env->codec);
  ni_tc_free(&env->header);
  free(env->body);
  free(env->packed);
  free(env->utf8);
}

size_t ni_chunk_env_memory_bytes(const struct ni_chunk_env *env) {
  return sizeof *env + env->header.cap + env->body_cap + env->packed_cap + env->utf8_cap;
}

static void start(struct ni_chunk *c, const struct ni_chunk_env *env) {
  c->mode = env->no_dict || c->start_plain ? NI_CHUNK_PLAIN : NI_CHUNK_DICT;
}

void ni_chunk_init(struct ni_chunk *c, enum ni_pq_type type, const struct ni_chunk_env *env) {
  *c = (struct ni_chunk){.type = type, .is_text = type == NI_PQ_STRING};
  ni_dict_init(&c->dict, c->is_text, env->dict_entries);
  start(c, env);
}

void ni_chunk_free(struct ni_chunk *c) {
  ni_blocks_free(&c->pages);
  ni_dict_free(&c->dict);
  free(c->level_bits);
  free(c->codes);
  free(c->plain);
  free(c->code_map);
  c->level_bits = NULL;
  c->codes = NULL;
  c->plain = NULL;
  c->code_map = NULL;
}

void ni_chunk_reset(struct ni_chunk *c, const struct ni_chunk_env *env) {
  ni_blocks_free(&c->pages);
  if (c->start_plain) { /* neither is needed again */
    ni_dict_free(&c->dict);
    free(c->codes);
    c->codes = NULL;
  }
  ni_dict_reset(&c->dict);
  c->code_map_n = 0;
  c->n_rows = c->n_nulls = c->n_nans = c->uncompressed_bytes = c->compressed_bytes = 0;
  c->n_plain_pages = c->n_dict_pages = 0;
  c->stats.has = c->stats.text_too_long = false;
  start(c, env);
}

size_t ni_chunk_memory_bytes(const struct ni_chunk *c, const struct ni_chunk_env *env) {
  return c->pages.n_blocks * sizeof(struct ni_block) + ni_dict_memory_bytes(&c->dict) +
         (c->codes ? (env->page_rows + NI_CODE_SLACK) * sizeof *c->codes : 0) + c->plain_cap +
         (c->level_bits ? env->page_rows / 8 : 0);
}

/* Notes the levels of a slice in the open page; called once the slice's values are in it. */
static int add_levels(struct ni_chunk *c, struct ni_chunk_env *env, const struct ni_pq_slice *s) {
  uint32_t row = c->page_rows;
  c->page_rows += s->n_rows;
  c->n_rows += s->n_rows;
  c->n_nulls += s->n_rows - s->n_values;
  if (s->n_values == s->n_rows && !c->page_has_nulls) return 0;
  if (!c->level_bits && !(c->level_bits = malloc(env->page_rows / 8 + NI_SLICE_ROWS / 8))) return -ENOMEM;
  if (!c->page_has_nulls) {
    ni_level_bits_fill(c->level_bits, 0, row, true);
    c->page_has_nulls = true;
  }
  if (s->n_values == s->n_rows || s->n_values == 0)
    ni_level_bits_fill(c->level_bits, row, s->n_rows, s->n_values != 0);
  else
    ni_level_bits_add(c->level_bits, row, s->valid, s->n_rows);
  return 0;
}

/* The dictionary's values into the statistics. */
static void stat_dict(struct ni_chunk *c) {
  if (c->is_text) {
    for (uint32_t i = 0; i < c->dict.n; i++)
      ni_stats_text(&c->stats, c->dict.text + c->dict.texts[i].off, c->dict.texts[i].len);
  } else if (c->type == NI_PQ_DOUBLE) {
    ni_stats_doubles(&c->stats, (const double *)c->dict.keys, c->dict.n);
  } else {
    ni_stats_ints(&c->stats, (const int64_t *)c->dict.keys, c->dict.n);
  }
}

static void turn_plain(struct ni_chunk *c) {
  c->mode = NI_CHUNK_PLAIN;
  c->start_plain = true;
}

static int close_page(struct ni_chunk *c, struct ni_chunk_env *env) {
  if (c->page_rows == 0) return 0;
  int rc;
  /* Judged on the first page, while there is no dictionary-coded page yet that would need the dictionary. */
  if (c->mode == NI_CHUNK_DICT && c->n_dict_pages == 0 && c->page_values && c->dict.n > c->page_values / 4 * 3) {
    if ((rc = ni_values_to_plain(c, env)) != 0) return rc;
    stat_dict(c);
    ni_dict_reset(&c->dict);
    turn_plain(c);
  }
  rc = ni_page_close(c, env);
  c->page_rows = c->page_values = 0;
  c->page_has_nulls = false;
  c->plain_len = 0;
  if (c->is_text && c->plain_cap > 4 * NI_PAGE_BYTES) { /* one giant string must not stay in memory for good */
    free(c->plain);
    c->plain = NULL;
    c->plain_cap = 0;
  }
  return rc;
}

/* Each loop keeps the values whose byte is set; always storing and sometimes advancing has no branch to mispredict. */
#define NI_DENSE(TYPE)                      \
  do {                                      \
    const TYPE *src = (const TYPE *)values; \
    TYPE *dst = (TYPE *)out;                \
    for (uint32_t i = 0; i < n; i++) {      \
      dst[k] = src[i];                      \
      k += valid[i] != 0;                   \
    }                                       \
  } while (0)

/* Copies the values, or the codes, whose byte in `valid` is not 0. `out` has room for all n. */
static void drop_nulls(void *out, const void *values, const uint8_t *valid, uint32_t n, bool codes) {
  uint32_t k = 0;
  if (codes) NI_DENSE(uint32_t);
  else NI_DENSE(uint64_t);
}

static uint32_t count_valid(const uint8_t *valid, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += valid[i] != 0;
  return sum;
}

static struct ni_pq_slice cut_slice(const struct ni_chunk *c, struct ni_chunk_env *env, const struct ni_pq_column *in,
                              size_t off, uint32_t n) {
  struct ni_pq_slice s = {.values = in->values, .dict = in->dict, .n_rows = n, .n_values = n, .repeat = in->repeat};
  if (in->repeat) {
    if (in->valid && !in->valid[0]) s.n_values = 0;
    return s;
  }
  s.values = (const char *)in->values + off * (c->is_text ? sizeof(uint32_t) : NI_VALUE_BYTES);
  if (in->valid) {
    s.valid = in->valid + off;
    s.n_values = count_valid(s.valid, n);
    if (s.n_values != n) {
      drop_nulls(env->dense, s.values, s.valid, n, c->is_text);
      s.values = env->dense;
    }
  }
  return s;
}

int ni_chunk_append(struct ni_chunk *c, struct ni_chunk_env *env, const struct ni_pq_column *in, size_t off,
                    uint32_t n) {
  int rc = 0;
  if (in->dict && c->mode == NI_CHUNK_DICT && (rc = ni_values_ready(c, in->dict)) != 0) return rc;
  while (n) {
    uint32_t m = env->page_rows - c->page_rows;
    if (m > n) m = n;
    struct ni_pq_slice s = cut_slice(c, env, in, off, m);
    rc = ni_values_add(c, env, &s);
    if (rc && rc != NI_DICT_FULL) return rc;
    const bool full = rc == NI_DICT_FULL;
    if (c->type == NI_PQ_DOUBLE && s.n_values)
      c->n_nans += s.repeat ? s.n_values * ni_count_nans(s.values, 1) : ni_count_nans(s.values, s.n_values);
    if ((rc = add_levels(c, env, &s)) != 0) return rc;
    if (full || c->page_rows == env->page_rows || (c->is_text && c->plain_len >= NI_PAGE_BYTES))
      if ((rc = close_page(c, env)) != 0) return rc;
    if (full) turn_plain(c); /* the rest of the rows, from the value that found no room */
    off += s.n_rows;
    n -= s.n_rows;
  }
  return 0;
}

int ni_chunk_close(struct ni_chunk *c, struct ni_chunk_env *env) {
  int rc = close_page(c, env);
  if (rc == 0) stat_dict(c);
  return rc;
}

int ni_chunk_dict_page(struct ni_chunk *c, struct ni_chunk_env *env, size_t *packed_len) {
  *packed_len = 0;
  return c->n_dict_pages ? ni_page_dict(c, env, packed_len) : 0;
}
