/*
 * Small pieces of the page's JSON, shared by page_data.c (input, groups, cells) and page_tables.c (who and
 * where).
 *
 * Threads: pure, any. Write errors stay in the FILE of the ni_json.
 */
#ifndef NI_PAGE_JSON_H
#define NI_PAGE_JSON_H

#include "exporter/base/text/json_fields.h"
#include "exporter/model/sums/model.h"

/*
 * Budgets of the parts in rows and points. Worst cases in kB: heat map 590, processes 320, points 250, series
 * 280, groups 160, communicators 160, slices 250, steps 60, all else 150: 2.2 MB.
 */
enum {
  NI_PAGE_HOSTS = 1024,
  NI_PAGE_PROCESSES = 3072, /* rows of the table and of the heat map */
  NI_PAGE_HEAT_CELLS = 440000,
  NI_PAGE_COMMS = 1024,
  NI_PAGE_GROUPS = 400,
  NI_PAGE_SLICES = 1000,  /* of each kind */
  NI_PAGE_PAIRS = 500,    /* of P2P senders and receivers, those with the most time */
  NI_PAGE_POINTS = 16000, /* of all cells together */
  NI_PAGE_SERIES = 32,    /* groups with a time series */
  NI_PAGE_TEXTS = 200,
  NI_PAGE_FINDINGS = 8, /* sentences about what stands out */
  NI_PAGE_STEPS = 1024, /* points of their chart */
};

/* Columns are named by the fields' keys. */
void ni_page_table_begin(struct ni_json *j, const char *key, const struct ni_json_field *fields, size_t n);
void ni_page_table_end(struct ni_json *j, size_t all, size_t shown);
/* A whole table: a row for each of the first `limit` of n items of `size` bytes. */
void ni_page_table(struct ni_json *j, const char *key, const struct ni_json_field *fields, size_t n_fields,
                   const void *items, size_t size, size_t n, size_t limit, const struct ni_summary *s);
size_t ni_page_at_most(size_t n, size_t limit);

/* Forms of page's fields: NI_JSON() with numbers of 5 digits, names cut and truth as 0 and 1. */
ni_json_put ni_page_put_num, ni_page_put_name, ni_page_put_bool, ni_page_put_stats;
#define NI_PAGE_PUT(member) \
  _Generic(&(member), \
      char **: ni_page_put_name, \
      default: _Generic((member), \
          double: ni_page_put_num, \
          bool: ni_page_put_bool, \
          const char *: ni_page_put_name, \
          struct ni_stats: ni_page_put_stats, \
          uint64_t: ni_json_member_u64, \
          uint32_t: ni_json_member_u32, \
          int64_t: ni_json_member_i64, \
          int32_t: ni_json_member_i32, \
          char *: ni_json_member_chars))
#define NI_PAGE_AS(tag, member, key) \
  {key, NI_PAGE_PUT(((struct tag *)0)->member), offsetof(struct tag, member)}
#define NI_PAGE(tag, member) NI_PAGE_AS(tag, member, #member)
/* Puts a number as an element of an array, with 5 significant digits. */
void ni_page_num(struct ni_json *j, double value);
/* Hostile text of any length, cut at 256 bytes. key NULL: an element. */
void ni_page_name(struct ni_json *j, const char *key, const char *text);
/* [n, mean, stddev, min, p10, p25, p50, p75, p90, p99, max, approx] */
void ni_page_stats(struct ni_json *j, const struct ni_stats *s);

#endif
