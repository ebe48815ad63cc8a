#include "pq_dict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

/* Most columns of a log have a handful of values. */
#define FIRST_ENTRIES 64u
#define FIRST_TEXT_BYTES 256u

void ni_dict_init(struct ni_dict *d, bool is_text, uint32_t max_entries) {
  *d = (struct ni_dict){.is_text = is_text, .max_entries = max_entries};
}

void ni_dict_free(struct ni_dict *d) {
  free(d->slots);
  free(d->keys);
  free(d->texts);
  free(d->text);
  ni_dict_init(d, d->is_text, d->max_entries);
}

void ni_dict_reset(struct ni_dict *d) {
  if (d->n)
    memset(d->slots, 0, d->n_slots * sizeof *d->slots);
  d->n = 0;
  d->text_len = 0;
}

size_t ni_dict_memory_bytes(const struct ni_dict *d) {
  return d->n_slots * sizeof *d->slots + d->cap * (sizeof *d->keys + (d->is_text ? sizeof *d->texts : 0)) +
      d->text_cap;
}

/* Fibonacci hashing: the high bits of the product depend on all bits of the key. */
static inline uint32_t choose_slot(uint64_t key, uint32_t n_slots) {
  key ^= key >> 32;
  return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & (n_slots - 1);
}

static int grow_dictionary(struct ni_dict *d) {
  size_t cap = d->cap, texts = d->cap;
  if (!ni_array_more(&d->keys, &cap, FIRST_ENTRIES, sizeof *d->keys))
    return -ENOMEM;
  if (d->is_text) {
    if (!ni_array_more(&d->texts, &texts, FIRST_ENTRIES, sizeof *d->texts))
      return -ENOMEM;
    if (!d->text) { /* from the start, so that even a dictionary of "" alone has a text to point into */
      d->text = malloc(FIRST_TEXT_BYTES);
      if (!d->text)
        return -ENOMEM;
      d->text_cap = FIRST_TEXT_BYTES;
    }
  }
  uint32_t n_slots = 2 * (uint32_t)cap;
  uint16_t *slots = calloc(n_slots, sizeof *slots);
  if (!slots)
    return -ENOMEM;
  for (uint32_t code = 0; code < d->n; code++) {
    uint32_t s = choose_slot(d->keys[code], n_slots);
    while (slots[s])
      s = (s + 1) & (n_slots - 1);
    slots[s] = (uint16_t)(code + 1);
  }
  free(d->slots);
  d->slots = slots;
  d->n_slots = n_slots;
  d->cap = (uint32_t)cap;
  return 0;
}

/* Room for one more entry. */
static int make_room(struct ni_dict *d) {
  if (d->n >= d->max_entries)
    return NI_DICT_FULL;
  return d->n < d->cap ? 0 : grow_dictionary(d);
}

static void insert_key(struct ni_dict *d, uint64_t key) {
  uint32_t s = choose_slot(key, d->n_slots);
  while (d->slots[s])
    s = (s + 1) & (d->n_slots - 1);
  d->keys[d->n++] = key;
  d->slots[s] = (uint16_t)d->n;
}

int ni_dict_map(struct ni_dict *d, const uint64_t *values, uint32_t n, uint16_t *codes, uint32_t *n_mapped) {
  *n_mapped = 0;
  if (n == 0)
    return 0;
  if (d->n_slots == 0) {
    int rc = grow_dictionary(d);
    if (rc)
      return rc;
  }
  uint64_t last = ~values[0];
  uint16_t last_code = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t v = values[i];
    if (v != last) { /* neighbours in a log are often equal */
      uint32_t mask = d->n_slots - 1, s = choose_slot(v, d->n_slots), code;
      while ((code = d->slots[s]) != 0 && d->keys[code - 1] != v)
        s = (s + 1) & mask;
      if (code == 0) {
        int rc = make_room(d);
        if (rc) {
          *n_mapped = i;
          return rc;
        }
        insert_key(d, v);
        code = d->n;
      }
      last = v;
      last_code = (uint16_t)(code - 1);
    }
    codes[i] = last_code;
  }
  *n_mapped = n;
  return 0;
}

static uint64_t hash_text(const char *p, uint32_t len) {
  uint64_t h = len * 0x9e3779b97f4a7c15ull, v;
  for (; len >= 8; p += 8, len -= 8) {
    memcpy(&v, p, 8);
    h = (h ^ v) * 0xff51afd7ed558ccdull;
    h ^= h >> 29;
  }
  v = 0;
  for (uint32_t i = 0; i < len; i++)
    v |= (uint64_t)(unsigned char)p[i] << (8 * i);
  h = (h ^ v) * 0xc4ceb9fe1a85ec53ull;
  return h ^ h >> 32;
}

int ni_dict_map_text(struct ni_dict *d, const char *p, uint32_t len, uint16_t *out) {
  int rc;
  if (d->n_slots == 0 && (rc = grow_dictionary(d)) != 0)
    return rc;
  uint64_t h = hash_text(p, len);
  for (uint32_t s = choose_slot(h, d->n_slots), code; (code = d->slots[s]) != 0;
       s = (s + 1) & (d->n_slots - 1)) {
    const struct ni_dict_text *t = &d->texts[code - 1];
    const bool may_match = d->keys[code - 1] == h && t->len == len;
    if (may_match && (len == 0 || memcmp(d->text + t->off, p, len) == 0)) {
      *out = (uint16_t)(code - 1);
      return 0;
    }
  }
  if (d->text_len + len > NI_DICT_MAX_TEXT_BYTES)
    return NI_DICT_FULL;
  if ((rc = make_room(d)) != 0)
    return rc;
  if (d->text_len + len > d->text_cap) {
    size_t cap = d->text_cap;
    while (cap < d->text_len + len)
      cap *= 2;
    if (!ni_array_exact(&d->text, &d->text_cap, cap, 1))
      return -ENOMEM;
  }
  if (len)
    memcpy(d->text + d->text_len, p, len);
  d->texts[d->n] = (struct ni_dict_text){(uint32_t)d->text_len, len};
  d->text_len += len;
  *out = (uint16_t)d->n;
  insert_key(d, h);
  return 0;
}

size_t ni_dict_page_bytes(const struct ni_dict *d) {
  return d->is_text ? (size_t)d->n * 4 + d->text_len : d->n * sizeof *d->keys;
}

void ni_dict_page(const struct ni_dict *d, uint8_t *out) {
  if (!d->is_text && d->n)
    memcpy(out, d->keys, d->n * sizeof *d->keys);
  for (uint32_t code = 0; d->is_text && code < d->n; code++) {
    const struct ni_dict_text *t = &d->texts[code];
    memcpy(out, &t->len, 4);
    memcpy(out + 4, d->text + t->off, t->len);
    out += 4 + t->len;
  }
}
