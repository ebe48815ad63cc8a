#include "page_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/input/inflate.h"
#include "metadata.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "packs by 64-bit loads and stores; both targets are little-endian");

static inline uint64_t load8(const void *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

/* Four codes of 16 bits to 4 * width bits: pairs in 32-bit lanes first, then the two pairs. */
static inline uint64_t squeeze4(uint64_t x, unsigned width) {
  const uint64_t lanes = 0x0000ffff0000ffffull;
  uint64_t y = (x & lanes) | ((x >> 16) & lanes) << width;
  return (y & 0xffffffffull) | (y >> 32) << (2 * width);
}

/* Eight codes to `width` bytes; writes 16 and lets the next call overwrite the rest. */
static inline uint8_t *pack8(uint8_t *out, const uint16_t *codes, unsigned width) {
  uint64_t lo = squeeze4(load8(codes), width), hi = squeeze4(load8(codes + 4), width);
  unsigned shift = 4 * width;
  uint64_t first = shift < 64 ? lo | hi << shift : lo;
  uint64_t second = shift < 64 ? hi >> (64 - shift) : hi;
  memcpy(out, &first, 8);
  memcpy(out + 8, &second, 8);
  return out + width;
}

/* Length of the run of equal codes at the start of codes[0..n). */
static size_t measure_run(const uint16_t *codes, size_t n) {
  uint64_t same = codes[0] * 0x0001000100010001ull;
  size_t i = 0;
  while (i + 4 <= n && load8(codes + i) == same)
    i += 4;
  while (i < n && codes[i] == codes[0])
    i++;
  return i;
}

uint8_t *ni_hybrid_encode(uint8_t *out, uint16_t *codes, size_t n, unsigned width) {
  /* What pads the last group must fit the width too: a wider value would run into its neighbours. */
  memset(codes + n, 0, NI_CODE_SLACK * sizeof *codes);
  /*
   * A run costs a header, its value and the header of the literals after it: below this many values it does
   * not pay.
   */
  const size_t min_run = width >= 8 ? 16 : (size_t)(128 / width);
  size_t i = 0;
  while (i < n) {
    size_t start = i, run = 0;
    while (i < n) {
      uint64_t same = codes[i] * 0x0001000100010001ull;
      if (load8(codes + i) == same && load8(codes + i + 4) == same) {
        run = measure_run(codes + i, n - i);
        if (run >= min_run)
          break;
      }
      run = 0;
      i += 8;
    }
    if (i > start) { /* literals: whole groups of 8, the last one of a page padded with zeros */
      size_t groups = (i - start) / 8;
      out = ni_put_varint(out, groups << 1 | 1);
      for (size_t g = 0; g < groups; g++)
        out = pack8(out, codes + start + 8 * g, width);
    }
    if (run) {
      out = ni_put_varint(out, run << 1);
      *out++ = (uint8_t)codes[i];
      if (width > 8)
        *out++ = (uint8_t)(codes[i] >> 8);
      i += run;
    }
  }
  return out;
}

uint8_t *ni_hybrid_same(uint8_t *out, size_t n, unsigned level) {
  out = ni_put_varint(out, n << 1);
  *out++ = (uint8_t)level;
  return out;
}

uint8_t *ni_hybrid_bitmap(uint8_t *out, const uint8_t *bits, size_t n) {
  size_t groups = (n + 7) / 8;
  out = ni_put_varint(out, groups << 1 | 1);
  memcpy(out, bits, groups);
  return out + groups;
}

static int append_bytes(struct ni_blocks *b, const void *p, size_t n) {
  const uint8_t *from = p;
  while (n) {
    if (!b->last || b->last->used == NI_BLOCK_BYTES) {
      struct ni_block *block = malloc(sizeof *block);
      if (!block)
        return -ENOMEM;
      block->next = NULL;
      block->used = 0;
      if (b->last)
        b->last->next = block;
      else
        b->first = block;
      b->last = block;
      b->n_blocks++;
    }
    size_t m = NI_BLOCK_BYTES - b->last->used;
    if (m > n)
      m = n;
    memcpy(b->last->data + b->last->used, from, m);
    b->last->used += m;
    b->bytes += m;
    from += m;
    n -= m;
  }
  return 0;
}

void ni_blocks_free(struct ni_blocks *b) {
  for (struct ni_block *block = b->first, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  *b = (struct ni_blocks){0};
}

void ni_level_bits_fill(uint8_t *bits, uint32_t row, uint32_t n, bool valid) {
  uint32_t end = row + n;
  for (; row < end && row % 8; row++)
    bits[row / 8] = (uint8_t)((bits[row / 8] & ~(1u << row % 8)) | (unsigned)valid << row % 8);
  if (row >= end)
    return;
  /*
   * The last byte is filled whole: what lies past the end is overwritten by the rows to come, or cleared at
   * the end.
   */
  memset(bits + row / 8, valid ? 0xff : 0, (end - row + 7) / 8);
}

void ni_level_bits_add(uint8_t *bits, uint32_t row, const uint8_t *valid, uint32_t n) {
  uint32_t i = 0;
  for (; i < n && (row + i) % 8; i++) {
    uint32_t r = row + i;
    bits[r / 8] = (uint8_t)((bits[r / 8] & ~(1u << r % 8)) | (unsigned)(valid[i] != 0) << r % 8);
  }
  for (; i + 8 <= n; i += 8) {
    uint64_t v;
    memcpy(&v, valid + i, 8);
    /* Every byte that is not 0 becomes 1; then byte k of eight goes to bit k of the product's top byte. */
    v = ((v | ((v & 0x7f7f7f7f7f7f7f7full) + 0x7f7f7f7f7f7f7f7full)) >> 7) & 0x0101010101010101ull;
    bits[(row + i) / 8] = (uint8_t)((v * 0x0102040810204080ull) >> 56);
  }
  if (i < n)
    bits[(row + i) / 8] = 0;
  for (; i < n; i++)
    bits[(row + i) / 8] |= (uint8_t)((unsigned)(valid[i] != 0) << (row + i) % 8);
}

static int reserve_buffer(uint8_t **p, size_t *cap, size_t need) {
  if (need <= *cap)
    return 0;
  /* Contents need not survive, so free and malloc spare a copy. */
  free(*p);
  *p = malloc(need);
  *cap = *p ? need : 0;
  return *p ? 0 : -ENOMEM;
}

/* Length-prefixed definition levels of the open page; returns the end. */
static uint8_t *put_levels(const struct ni_chunk *c, uint8_t *out) {
  uint8_t *end;
  if (c->page_values == c->page_rows || c->page_values == 0) {
    end = ni_hybrid_same(out + 4, c->page_rows, c->page_values != 0);
  } else {
    if (c->page_rows % 8)
      c->level_bits[c->page_rows / 8] &= (uint8_t)((1u << c->page_rows % 8) - 1);
    end = ni_hybrid_bitmap(out + 4, c->level_bits, c->page_rows);
  }
  uint32_t len = (uint32_t)(end - out - 4);
  memcpy(out, &len, 4);
  return end;
}

/* Compresses a page to env->packed and begins its header (the common fields). */
static int compress_page(struct ni_chunk *c, struct ni_chunk_env *env, int page_type, const uint8_t *body,
                         size_t len, size_t *packed_len) {
  size_t bound = ni_page_codec_bound(&env->codec, len);
  int rc = reserve_buffer(&env->packed, &env->packed_cap, bound);
  if (rc)
    return rc;
  rc = ni_page_codec_run(&env->codec, env->packed, bound, body, len, packed_len);
  if (rc)
    return rc;
  if (len > INT32_MAX || *packed_len > INT32_MAX)
    return -EMSGSIZE;
  struct ni_tc *t = &env->header;
  ni_tc_reset(t);
  ni_tc_field_i32(t, PAGE_TYPE, page_type);
  ni_tc_field_i32(t, PAGE_UNCOMPRESSED, (int32_t)len);
  ni_tc_field_i32(t, PAGE_COMPRESSED, (int32_t)*packed_len);
  ni_tc_field_i32(t, PAGE_CRC, (int32_t)ni_crc32(0, env->packed, *packed_len));
  c->uncompressed_bytes += len;
  c->compressed_bytes += *packed_len;
  return 0;
}

/* Ends the header of a page. */
static int finish_header(struct ni_chunk *c, struct ni_chunk_env *env) {
  uint8_t stop = 0;
  ni_tc_raw(&env->header, &stop, 1);
  if (env->header.failed)
    return -ENOMEM;
  c->uncompressed_bytes += env->header.len;
  c->compressed_bytes += env->header.len;
  return 0;
}

int ni_page_close(struct ni_chunk *c, struct ni_chunk_env *env) {
  const uint8_t *body;
  size_t len;
  int encoding = ENCODING_PLAIN;
  if (c->mode == NI_CHUNK_PLAIN) {
    /* The values stand in place; the levels go right before them. */
    size_t room = ni_level_room(env->page_rows);
    if (!c->plain) { /* nothing but nulls so far */
      c->plain = malloc(room);
      if (!c->plain)
        return -ENOMEM;
      c->plain_cap = room;
    }
    int rc = reserve_buffer(&env->body, &env->body_cap, room);
    if (rc)
      return rc;
    size_t levels = (size_t)(put_levels(c, env->body) - env->body);
    memcpy(c->plain + room - levels, env->body, levels);
    body = c->plain + room - levels;
    len = levels + c->plain_len;
  } else {
    unsigned width = ni_code_width(c->dict.n);
    int rc = reserve_buffer(&env->body, &env->body_cap,
                            ni_level_room(env->page_rows) + 1 + ni_hybrid_bound(c->page_values, width));
    if (rc)
      return rc;
    uint8_t *out = put_levels(c, env->body);
    if (c->page_values) { /* a page of nulls alone must not ask for a dictionary that may not exist */
      encoding = ENCODING_RLE_DICTIONARY;
      *out++ = (uint8_t)width;
      out = ni_hybrid_encode(out, c->codes, c->page_values, width);
    }
    body = env->body;
    len = (size_t)(out - env->body);
  }
  size_t packed_len;
  int rc = compress_page(c, env, PAGE_TYPE_DATA, body, len, &packed_len);
  if (rc)
    return rc;
  struct ni_tc *t = &env->header;
  ni_tc_begin(t, PAGE_DATA_HEADER);
  ni_tc_field_i32(t, DATA_NUM_VALUES, (int32_t)c->page_rows);
  ni_tc_field_i32(t, DATA_ENCODING, encoding);
  ni_tc_field_i32(t, DATA_DEFINITION_ENCODING, ENCODING_RLE);
  ni_tc_field_i32(t, DATA_REPETITION_ENCODING, ENCODING_RLE);
  ni_tc_end(t);
  if ((rc = finish_header(c, env)) != 0)
    return rc;
  if (encoding == ENCODING_PLAIN)
    c->n_plain_pages++;
  else
    c->n_dict_pages++;
  if ((rc = append_bytes(&c->pages, t->data, t->len)) != 0)
    return rc;
  return append_bytes(&c->pages, env->packed, packed_len);
}

int ni_page_dict(struct ni_chunk *c, struct ni_chunk_env *env, size_t *packed_len) {
  size_t len = ni_dict_page_bytes(&c->dict);
  int rc = reserve_buffer(&env->body, &env->body_cap, len);
  if (rc)
    return rc;
  ni_dict_page(&c->dict, env->body);
  if ((rc = compress_page(c, env, PAGE_TYPE_DICTIONARY, env->body, len, packed_len)) != 0)
    return rc;
  struct ni_tc *t = &env->header;
  ni_tc_begin(t, PAGE_DICT_HEADER);
  ni_tc_field_i32(t, DICT_NUM_VALUES, (int32_t)c->dict.n);
  ni_tc_field_i32(t, DICT_ENCODING, ENCODING_PLAIN);
  ni_tc_end(t);
  return finish_header(c, env);
}
