/*
 * The dictionary of one column chunk: distinct values get codes 0, 1, 2... in order of first appearance.
 *
 * Numbers are their 64-bit pattern; strings are bytes, kept here. Lookup is by open
 * addressing over 16-bit slots, so the table of a small dictionary stays in the first-level cache.
 *
 * Threads: its writer's only. Ownership: ni_dict_free frees; ni_dict_reset empties and keeps the memory.
 * Failure: NI_DICT_FULL when the dictionary may not grow (the value is not in it), -ENOMEM. Both leave it
 * usable.
 */
#ifndef NI_PARQUET_PQ_DICT_H
#define NI_PARQUET_PQ_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NI_DICT_FULL 1
#define NI_DICT_MAX_ENTRIES 32768u
/* Text in one dictionary; beyond, a column of long strings is better off in PLAIN pages. */
#define NI_DICT_MAX_TEXT_BYTES (1u << 20)

struct ni_dict_text {
  uint32_t off, len; /* into `text` */
};

struct ni_dict {
  uint16_t *slots;            /* code + 1, 0 is empty; n_slots is a power of two, at least 2 * n */
  uint64_t *keys;             /* by code: the value, or the hash of the string */
  struct ni_dict_text *texts; /* by code, strings only */
  char *text;
  size_t text_len, text_cap;
  uint32_t n, cap, n_slots, max_entries;
  bool is_text;
};

void ni_dict_init(struct ni_dict *d, bool is_text, uint32_t max_entries);
void ni_dict_free(struct ni_dict *d);
void ni_dict_reset(struct ni_dict *d);

/* Codes of n values; *n_mapped tells how many were coded before NI_DICT_FULL or an error. */
int ni_dict_map(struct ni_dict *d, const uint64_t *values, uint32_t n, uint16_t *codes, uint32_t *n_mapped);
/* Code of one string of valid UTF-8. */
int ni_dict_map_text(struct ni_dict *d, const char *p, uint32_t len, uint16_t *code);

/* Bytes held. */
size_t ni_dict_memory_bytes(const struct ni_dict *d);
/* Bytes of the dictionary page, and that page. */
size_t ni_dict_page_bytes(const struct ni_dict *d);
void ni_dict_page(const struct ni_dict *d, uint8_t *out);

#endif
