#include "column_chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/utf8.h"
#include "page_build.h"

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

static void note_integers(struct ni_chunk_stats *st, const int64_t *v, uint32_t n) {
  int64_t lo = st->has ? st->int_min : INT64_MAX, hi = st->has ? st->int_max : INT64_MIN;
  for (uint32_t i = 0; i < n; i++) {
    if (v[i] < lo)
      lo = v[i];
    if (v[i] > hi)
      hi = v[i];
  }
  st->has |= n > 0;
  st->int_min = lo;
  st->int_max = hi;
}

/* A NaN compares false and so changes nothing. */
static void note_doubles(struct ni_chunk_stats *st, const double *v, uint32_t n) {
  double lo = st->has ? st->dbl_min : __builtin_inf(), hi = st->has ? st->dbl_max : -__builtin_inf();
  bool has_value = false;
  for (uint32_t i = 0; i < n; i++) {
    if (v[i] < lo)
      lo = v[i];
    if (v[i] > hi)
      hi = v[i];
    has_value |= v[i] == v[i];
  }
  st->has |= has_value;
  st->dbl_min = lo;
  st->dbl_max = hi;
}

static int compare_text(const char *a, uint32_t a_len, const char *b, uint32_t b_len) {
  int d = memcmp(a, b, a_len < b_len ? a_len : b_len);
  return d ? d : (a_len > b_len) - (a_len < b_len);
}

static void note_text(struct ni_chunk_stats *st, const char *p, uint32_t len) {
  bool below = !st->has || compare_text(p, len, st->text_min, st->text_min_len) < 0;
  bool above = !st->has || compare_text(p, len, st->text_max, st->text_max_len) > 0;
  if (st->text_too_long || (!below && !above))
    return;
  if (len > NI_STAT_TEXT_BYTES) {
    st->text_too_long = true; /* the bound would be wrong without it, so the chunk has none */
    return;
  }
  if (below)
    memcpy(st->text_min, p, st->text_min_len = len);
  if (above)
    memcpy(st->text_max, p, st->text_max_len = len);
  st->has = true;
}

static uint64_t count_nans(const double *v, uint32_t n) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += v[i] != v[i];
  return sum;
}

static void choose_mode(struct ni_chunk *c, const struct ni_chunk_env *env) {
  c->mode = env->no_dict || c->start_plain ? NI_CHUNK_PLAIN : NI_CHUNK_DICT;
}

void ni_chunk_init(struct ni_chunk *c, enum ni_pq_type type, const struct ni_chunk_env *env) {
  *c = (struct ni_chunk){.type = type, .is_text = type == NI_PQ_STRING};
  ni_dict_init(&c->dict, c->is_text, env->dict_entries);
  choose_mode(c, env);
}

void ni_chunk_free(struct ni_chunk *c) {
  ni_blocks_free(&c->pages);
  ni_dict_free(&c->dict);
  free(c->level_bits);
  free(c->codes);
  free(c->plain);
  free(c->code_map);
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
  choose_mode(c, env);
}

size_t ni_chunk_memory_bytes(const struct ni_chunk *c, const struct ni_chunk_env *env) {
  return c->pages.n_blocks * sizeof(struct ni_block) + ni_dict_memory_bytes(&c->dict) +
      (c->codes ? (env->page_rows + NI_CODE_SLACK) * sizeof *c->codes : 0) + c->plain_cap +
      (c->level_bits ? env->page_rows / 8 : 0);
}

/* The rows of one call, without the nulls. */
struct slice {
  const void *values; /* n_values of them, of strings codes; one when `repeat` */
  const uint8_t *valid;
  const struct ni_pq_dict *dict;
  uint32_t n_rows, n_values;
  bool repeat;
};

/* Notes the levels of a slice in the open page; called once the slice's values are in it. */
static int add_levels(struct ni_chunk *c, struct ni_chunk_env *env, const struct slice *s) {
  uint32_t row = c->page_rows;
  c->page_rows += s->n_rows;
  c->n_rows += s->n_rows;
  c->n_nulls += s->n_rows - s->n_values;
  if (s->n_values == s->n_rows && !c->page_has_nulls)
    return 0;
  if (!c->level_bits && !(c->level_bits = malloc(env->page_rows / 8 + NI_SLICE_ROWS / 8)))
    return -ENOMEM;
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

#define NO_CODE UINT16_MAX /* dictionaries end below */

/*
 * Valid UTF-8 for `s`, replaced when it must be; -EMSGSIZE when too long. The result lives until the next
 * call.
 */
static int clean_text(struct ni_chunk_env *env, const struct ni_str *s, struct ni_str *out) {
  if (s->len > NI_PQ_STR_MAX_BYTES)
    return -EMSGSIZE;
  *out = *s;
  if (s->len == 0)
    out->p = "";
  if (ni_utf8_valid(out->p, out->len))
    return 0;
  size_t need = 3 * (size_t)s->len;
  if (need > env->utf8_cap && !ni_array_exact(&env->utf8, &env->utf8_cap, need, 1))
    return -ENOMEM;
  out->p = env->utf8;
  out->len = (uint32_t)ni_utf8_replace(env->utf8, s->p, s->len);
  return 0;
}

static int encode_text(struct ni_chunk *c, struct ni_chunk_env *env, const struct ni_str *s, uint16_t *code) {
  struct ni_str clean;
  int rc = clean_text(env, s, &clean);
  return rc ? rc : ni_dict_map_text(&c->dict, clean.p, clean.len, code);
}

/*
 * The caller's dictionary may have grown since the last call, or be another one. Before its codes are added.
 */
static int prepare_map(struct ni_chunk *c, const struct ni_pq_dict *dict) {
  if (dict->epoch == 0 || dict->epoch != c->code_map_epoch || dict->n < c->code_map_n)
    c->code_map_n = 0;
  c->code_map_epoch = dict->epoch;
  if (dict->n > c->code_map_cap &&
      !ni_array_more(&c->code_map, &c->code_map_cap, dict->n, sizeof *c->code_map))
    return -ENOMEM;
  if (dict->n > c->code_map_n)
    memset(c->code_map + c->code_map_n, 0xff, (dict->n - c->code_map_n) * sizeof *c->code_map);
  c->code_map_n = dict->n;
  return 0;
}

static int map_codes(struct ni_chunk *c, struct ni_chunk_env *env, const struct slice *s, uint32_t n,
                     uint16_t *out, uint32_t *n_mapped) {
  const uint32_t *in = s->values;
  for (uint32_t i = 0; i < n; i++) {
    *n_mapped = i;
    if (in[i] >= s->dict->n)
      return -EINVAL;
    uint16_t code = c->code_map[in[i]];
    if (code == NO_CODE) {
      int rc = encode_text(c, env, &s->dict->values[in[i]], &code);
      if (rc)
        return rc;
      c->code_map[in[i]] = code;
    }
    out[i] = code;
  }
  *n_mapped = n;
  return 0;
}

/* Rows of the slice before its value k. */
static uint32_t count_rows_before(const struct slice *s, uint32_t k) {
  if (s->repeat || s->n_values == s->n_rows)
    return k;
  uint32_t row = 0;
  for (uint32_t seen = 0; row < s->n_rows; row++)
    if (s->valid[row] && seen++ == k)
      break;
  return row;
}

/* On NI_DICT_FULL the slice is cut down to the rows that were taken. */
static int stage_dict(struct ni_chunk *c, struct ni_chunk_env *env, struct slice *s) {
  if (!c->codes && !(c->codes = malloc((env->page_rows + NI_CODE_SLACK) * sizeof *c->codes)))
    return -ENOMEM;
  uint16_t *out = c->codes + c->page_values;
  uint32_t n = s->repeat && s->n_values ? 1 : s->n_values, n_mapped = 0;
  int rc = c->is_text ? map_codes(c, env, s, n, out, &n_mapped)
                      : ni_dict_map(&c->dict, s->values, n, out, &n_mapped);
  if (rc == NI_DICT_FULL) {
    s->n_rows = count_rows_before(s, n_mapped);
    s->n_values = n_mapped;
  } else if (rc) {
    return rc;
  } else {
    for (uint32_t i = n; i < s->n_values; i++)
      out[i] = out[0];
  }
  c->page_values += s->n_values;
  return rc;
}

/* Room for `need` more bytes of values in the open PLAIN page. */
static int reserve_plain(struct ni_chunk *c, const struct ni_chunk_env *env, size_t need) {
  size_t want = ni_level_room(env->page_rows) + c->plain_len + need;
  if (!c->is_text)
    want = ni_level_room(env->page_rows) + (size_t)env->page_rows * NI_VALUE_BYTES;
  if (want <= c->plain_cap)
    return 0;
  if (c->is_text && want < 2 * c->plain_cap && c->plain_cap < 2 * NI_PAGE_BYTES)
    want = 2 * c->plain_cap;
  return ni_array_exact(&c->plain, &c->plain_cap, want, 1) ? 0 : -ENOMEM;
}

static int append_text(struct ni_chunk *c, struct ni_chunk_env *env, const char *p, uint32_t len) {
  int rc = reserve_plain(c, env, 4 + (size_t)len);
  if (rc)
    return rc;
  uint8_t *out = c->plain + ni_level_room(env->page_rows) + c->plain_len;
  memcpy(out, &len, 4);
  memcpy(out + 4, p, len);
  c->plain_len += 4 + (size_t)len;
  return 0;
}

/* A page of strings ends with the row that fills it: the slice is cut down to the rows that were taken. */
static int stage_plain(struct ni_chunk *c, struct ni_chunk_env *env, struct slice *s) {
  int rc = 0;
  if (c->is_text) {
    const uint32_t *codes = s->values;
    for (uint32_t i = 0; i < s->n_values; i++) {
      uint32_t code = codes[s->repeat ? 0 : i];
      struct ni_str clean;
      if (code >= s->dict->n)
        return -EINVAL;
      if ((rc = clean_text(env, &s->dict->values[code], &clean)) != 0)
        return rc;
      note_text(&c->stats, clean.p, clean.len);
      if ((rc = append_text(c, env, clean.p, clean.len)) != 0)
        return rc;
      if (c->plain_len >= NI_PAGE_BYTES) {
        s->n_rows = count_rows_before(s, i) + 1;
        s->n_values = i + 1;
      }
    }
  } else if ((rc = reserve_plain(c, env, (size_t)s->n_values * NI_VALUE_BYTES)) == 0) {
    uint8_t *out = c->plain + ni_level_room(env->page_rows) + c->plain_len;
    uint32_t n = s->repeat && s->n_values ? 1 : s->n_values;
    if (n)
      memcpy(out, s->values, (size_t)n * NI_VALUE_BYTES);
    for (uint32_t i = n; i < s->n_values; i++)
      memcpy(out + (size_t)i * NI_VALUE_BYTES, out, NI_VALUE_BYTES);
    c->plain_len += (size_t)s->n_values * NI_VALUE_BYTES;
    if (c->type == NI_PQ_DOUBLE)
      note_doubles(&c->stats, s->values, n);
    else
      note_integers(&c->stats, s->values, n);
  }
  c->page_values += s->n_values;
  return rc;
}

/*
 * Where not all had room the slice is cut down to the rows that were taken; NI_DICT_FULL: for want of codes.
 */
static int stage_slice(struct ni_chunk *c, struct ni_chunk_env *env, struct slice *s) {
  return c->mode == NI_CHUNK_DICT ? stage_dict(c, env, s) : stage_plain(c, env, s);
}

/* The open page's codes become PLAIN bytes: the dictionary turned out not to pay. */
static int convert_codes_to_plain(struct ni_chunk *c, struct ni_chunk_env *env) {
  for (uint32_t i = 0; i < c->page_values; i++) {
    uint16_t code = c->codes[i];
    int rc;
    if (c->is_text) {
      const struct ni_dict_text *t = &c->dict.texts[code];
      rc = append_text(c, env, c->dict.text + t->off, t->len);
    } else if ((rc = reserve_plain(c, env, NI_VALUE_BYTES)) == 0) {
      memcpy(c->plain + ni_level_room(env->page_rows) + c->plain_len, &c->dict.keys[code], NI_VALUE_BYTES);
      c->plain_len += NI_VALUE_BYTES;
    }
    if (rc)
      return rc;
  }
  return 0;
}

/* Adds the dictionary's values to the statistics. */
static void note_dictionary(struct ni_chunk *c) {
  if (c->is_text) {
    for (uint32_t i = 0; i < c->dict.n; i++)
      note_text(&c->stats, c->dict.text + c->dict.texts[i].off, c->dict.texts[i].len);
  } else if (c->type == NI_PQ_DOUBLE) {
    note_doubles(&c->stats, (const double *)c->dict.keys, c->dict.n);
  } else {
    note_integers(&c->stats, (const int64_t *)c->dict.keys, c->dict.n);
  }
}

static void switch_to_plain(struct ni_chunk *c) {
  c->mode = NI_CHUNK_PLAIN;
  c->start_plain = true;
}

static int close_page(struct ni_chunk *c, struct ni_chunk_env *env) {
  if (c->page_rows == 0)
    return 0;
  int rc;
  /* Judged on the first page, while there is no dictionary-coded page yet that would need the dictionary. */
  const bool is_first_page = c->mode == NI_CHUNK_DICT && c->n_dict_pages == 0 && c->page_values;
  if (is_first_page && c->dict.n > c->page_values / 4 * 3) {
    if ((rc = convert_codes_to_plain(c, env)) != 0)
      return rc;
    note_dictionary(c);
    ni_dict_reset(&c->dict);
    switch_to_plain(c);
  }
  rc = ni_page_close(c, env);
  c->page_rows = c->page_values = 0;
  c->page_has_nulls = false;
  c->plain_len = 0;
  /* one giant string must not stay in memory for good */
  if (c->is_text && c->plain_cap > 4 * NI_PAGE_BYTES) {
    free(c->plain);
    c->plain = NULL;
    c->plain_cap = 0;
  }
  return rc;
}

/*
 * Copies the values, or the codes, whose byte in `valid` is not 0. `out` has room for all n. The loops always
 * store and sometimes advance: they have no branch to mispredict.
 */
static void drop_nulls(void *out, const void *values, const uint8_t *valid, uint32_t n, bool codes) {
  const uint32_t *code = values;
  const uint64_t *value = values;
  uint32_t *code_out = out, k = 0;
  uint64_t *value_out = out;
  for (uint32_t i = 0; codes && i < n; i++) {
    code_out[k] = code[i];
    k += valid[i] != 0;
  }
  for (uint32_t i = 0; !codes && i < n; i++) {
    value_out[k] = value[i];
    k += valid[i] != 0;
  }
}

static uint32_t count_valid(const uint8_t *valid, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += valid[i] != 0;
  return sum;
}

static struct slice cut_slice(const struct ni_chunk *c, struct ni_chunk_env *env,
                              const struct ni_pq_column *in, size_t off, uint32_t n) {
  struct slice s = {.values = in->values, .dict = in->dict, .n_rows = n, .n_values = n, .repeat = in->repeat};
  if (in->repeat) {
    if (in->valid && !in->valid[0])
      s.n_values = 0;
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
  if (in->dict && c->mode == NI_CHUNK_DICT && (rc = prepare_map(c, in->dict)) != 0)
    return rc;
  while (n) {
    uint32_t m = env->page_rows - c->page_rows;
    if (m > n)
      m = n;
    struct slice s = cut_slice(c, env, in, off, m);
    rc = stage_slice(c, env, &s);
    if (rc && rc != NI_DICT_FULL)
      return rc;
    const bool full = rc == NI_DICT_FULL;
    if (c->type == NI_PQ_DOUBLE && s.n_values)
      c->n_nans += s.repeat ? s.n_values * count_nans(s.values, 1) : count_nans(s.values, s.n_values);
    if ((rc = add_levels(c, env, &s)) != 0)
      return rc;
    const bool is_large = c->is_text && c->plain_len >= NI_PAGE_BYTES;
    if (full || c->page_rows == env->page_rows || is_large)
      if ((rc = close_page(c, env)) != 0)
        return rc;
    if (full)
      switch_to_plain(c); /* the rest of the rows, from the value that found no room */
    off += s.n_rows;
    n -= s.n_rows;
  }
  return 0;
}

int ni_chunk_close(struct ni_chunk *c, struct ni_chunk_env *env) {
  int rc = close_page(c, env);
  if (rc == 0)
    note_dictionary(c);
  return rc;
}

int ni_chunk_dict_page(struct ni_chunk *c, struct ni_chunk_env *env, size_t *packed_len) {
  *packed_len = 0;
  return c->n_dict_pages ? ni_page_dict(c, env, packed_len) : 0;
}
