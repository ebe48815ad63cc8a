/*
 * Files of random columns, options and batch cuts. Here: however the rows are cut into batches, and whatever
 * the codes of strings, the bytes are the same, and nothing fails. With NI_PQ_TRUTH_DIR the files stay there
 * beside a .json of every value, for readers that are not ours (test/foreign/verify_parquet.py). Seeds are
 * fixed and printed; NI_PQ_SEED runs another one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/output/parquet/page_codec.h"
#include "exporter/output/parquet/writer.h"

enum { MAX_COLUMNS = 14, N_TEXTS = 600 };

/* How a column's values are spread, and where its nulls are. */
enum spread { CONSTANT, FEW, RUNS, MONOTONE, MANY, TURNS_MANY, N_SPREADS };
enum nulls { NO_NULLS, ALL_NULL, SOME_NULLS, MOST_NULL, NULL_RUNS, N_NULLS };

struct column {
  enum ni_pq_type type;
  enum spread spread;
  enum nulls nulls;
  bool repeat;  /* given as one value for all rows */
  bool all_nan; /* doubles */
  uint64_t epoch;
  uint8_t *valid;
  union {
    void *values;
    int64_t *i64;
    double *dbl;
    struct ni_str *str;
  };
  uint32_t *codes;
  struct ni_str *texts; /* N_TEXTS of them */
};

struct file {
  uint64_t seed;
  size_t rows, n_columns;
  struct ni_pq_options options;
  struct column columns[MAX_COLUMNS];
};

static uint64_t state;

/* splitmix64 */
static uint64_t rnd(void) {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

static uint64_t below(uint64_t n) { return rnd() % n; }

static struct ni_str random_text(uint64_t i) {
  /* the texts of columns with few values: they differ behind a NUL, which is a character too */
  if (i > 0 && i < 5) {
    char *p = malloc(3);
    assert_non_null(p);
    memcpy(p, (char[]){'a', 0, (char)('0' + below(70))}, 3);
    return (struct ni_str){p, 3};
  }
  static const char *const pieces[] = {"",
                                       "a",
                                       "ring",
                                       "0x1f",
                                       "node-17.example",
                                       "\xc3\xa9",
                                       "\xe6\xbc\xa2",
                                       "\xf0\x9f\x9a\x80",
                                       "\"\\\n\t",
                                       "\x01\x7f",
                                       "zz",
                                       "Z"};
  /* ill-formed: a lone continuation, cut sequences, overlong forms, a surrogate, too high */
  static const char *const broken[] = {"\x80",     "\xc3",         "\xe6\xbc",     "\xf0\x9f\x9a",
                                       "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                       "\xff"};
  size_t cap = 64 + (i % 97 == 0 ? 400 : 0) + (i % 599 == 0 ? 100000 : 0), len = 0;
  char *p = malloc(cap + 64);
  assert_non_null(p);
  size_t want = i % 7 == 0 ? 0 : below(cap);
  while (len < want) {
    const char *piece = below(40) == 0 ? broken[below(sizeof broken / sizeof *broken)]
                                       : pieces[below(sizeof pieces / sizeof *pieces)];
    size_t n = strlen(piece);
    if (n == 0 && below(8) == 0)
      p[len++] = 0;
    memcpy(p + len, piece, n);
    len += n;
    if (n == 0)
      want -= want > 0;
  }
  return (struct ni_str){p, (uint32_t)len};
}

static uint64_t pattern(enum spread spread, size_t row, size_t rows) {
  static uint64_t last;
  switch (spread) {
    case CONSTANT:
      return 7;
    case FEW:
      return below(5);
    case RUNS:
      return last = below(30) == 0 || row == 0 ? below(300) : last;
    case MONOTONE:
      return row * 3 + below(3);
    case TURNS_MANY:
      if (row < rows / 2)
        return below(9);
      break;
    default:
      break;
  }
  return rnd();
}

static double random_double(uint64_t p) {
  static const uint64_t special[] = {0x0000000000000000, 0x8000000000000000, 0x7ff0000000000000,
                                     0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000123,
                                     0x0000000000000001, 0x7fefffffffffffff};
  double d;
  if (p % 16 == 3)
    memcpy(&d, &special[p / 16 % 8], 8);
  else
    d = (double)(int64_t)p * 1e-6;
  return d;
}

static void fill_column(struct column *c, size_t rows) {
  c->type = (enum ni_pq_type)below(NI_PQ_TYPE_COUNT + 2);
  if (c->type > NI_PQ_STRING)
    c->type = NI_PQ_STRING; /* the type with most ways to go wrong */
  c->all_nan = below(6) == 0;
  c->spread = (enum spread)below(N_SPREADS);
  c->nulls = (enum nulls)below(N_NULLS);
  c->repeat = c->spread == CONSTANT && (c->nulls == NO_NULLS || c->nulls == ALL_NULL) && below(2);
  c->epoch = below(2) ? 1 + below(1000) : 0;
  c->valid = malloc(rows + 1);
  c->values = calloc(rows + 1, sizeof(struct ni_str));
  c->codes = calloc(rows + 1, sizeof *c->codes);
  c->texts = calloc(N_TEXTS, sizeof *c->texts);
  assert_true(c->valid && c->values && c->codes && c->texts);
  if (c->type == NI_PQ_STRING)
    for (uint64_t i = 0; i < N_TEXTS; i++)
      c->texts[i] = random_text(i);
  uint8_t run = 1;
  for (size_t i = 0; i < rows; i++) {
    uint64_t p = pattern(c->spread, i, rows);
    if (below(20) == 0)
      run = below(2) != 0;
    c->valid[i] = c->nulls == NO_NULLS ? 1
        : c->nulls == ALL_NULL         ? 0
        : c->nulls == SOME_NULLS       ? below(10) != 0
        : c->nulls == MOST_NULL        ? below(50) == 0
                                       : run;
    if (c->valid[i])
      c->valid[i] = (uint8_t)(1 + below(255)); /* anything but 0 is valid */
    if (c->repeat)
      c->valid[i] = c->valid[0];
    switch (c->type) {
      case NI_PQ_INT64:
        c->i64[i] = c->spread == MANY && p % 50 == 0 ? INT64_MIN : (int64_t)p;
        break;
      case NI_PQ_DOUBLE:
        c->dbl[i] = random_double(c->all_nan ? 4 * 16 + 3 + 16 * (p & 1) : p);
        break;
      default:
        c->codes[i] = (uint32_t)(p % N_TEXTS);
        if (i > 300 && c->codes[i] % 599 == 0 && below(50))
          c->codes[i] = 1; /* the giants are rare */
        c->str[i] = c->texts[c->codes[i]];
    }
  }
}

static void make_file(struct file *f, uint64_t seed) {
  static const size_t rows[] = {0, 1, 2, 7, 8, 9, 63, 1023, 1024, 1025, 3000, 8191, 8192, 8193, 20000, 40000};
  static const uint32_t page[] = {0, 8, 64, 1000, 5000}, group[] = {0, 100, 2500, 7000},
                        entries[] = {0, 1, 2, 5, 300, 1000};
  memset(f, 0, sizeof *f);
  state = f->seed = seed;
  f->rows = rows[seed % 16];
  f->n_columns = 1 + below(MAX_COLUMNS);
  f->options.codec = (enum ni_pq_codec)(seed / 2 % NI_PQ_CODEC_COUNT);
  if (!ni_pq_codec_available(f->options.codec))
    f->options.codec = ni_pq_codec_default();
  f->options.page_rows = page[below(5)];
  f->options.row_group_rows = f->rows > 10000 ? group[2 * below(2)] : group[below(4)];
  f->options.dict_entries = entries[below(6)];
  f->options.no_dict = below(8) == 0;
  f->options.memory_bytes = below(3) ? 0 : 200000;
  if (seed % 32 >= 26) { /* several row groups with dictionaries that last: chance alone makes few of them */
    f->options.row_group_rows = 900;
    f->options.page_rows = 304;
    f->options.dict_entries = 1000;
    f->options.no_dict = false;
    f->n_columns = MAX_COLUMNS;
  }
  for (size_t i = 0; i < f->n_columns; i++)
    fill_column(&f->columns[i], f->rows);
}

static void free_file(struct file *f) {
  for (size_t i = 0; i < f->n_columns; i++) {
    struct column *c = &f->columns[i];
    for (int k = 0; k < N_TEXTS; k++)
      free((char *)c->texts[k].p);
    free(c->valid);
    free(c->values);
    free(c->codes);
    free(c->texts);
  }
}

/* max_batch 0: all rows in one call. */
static void write_file(const struct file *f, const char *path, size_t max_batch, struct ni_pq_totals *t) {
  struct ni_pq_field fields[MAX_COLUMNS];
  char names[MAX_COLUMNS][24], message[256];
  struct ni_pq *w;
  for (size_t i = 0; i < f->n_columns; i++) {
    snprintf(names[i], sizeof names[i], "c%zu", i);
    fields[i] = (struct ni_pq_field){names[i], f->columns[i].type};
  }
  if (ni_pq_create(&w, path, fields, f->n_columns, &f->options, message, sizeof message) != 0)
    fail_msg("%s", message);
  uint32_t shift = 0;
  struct ni_str(*texts)[N_TEXTS] = malloc(MAX_COLUMNS * sizeof *texts);
  uint32_t *codes = malloc(MAX_COLUMNS * (f->rows + 1) * sizeof *codes);
  assert_true(texts && codes);
  for (size_t row = 0; row < f->rows;) {
    size_t n = max_batch ? 1 + below(max_batch) : f->rows;
    if (n > f->rows - row)
      n = f->rows - row;
    struct ni_pq_column in[MAX_COLUMNS];
    struct ni_pq_dict dicts[MAX_COLUMNS];
    /*
     * Cut files number their strings anew in every other batch, which only a new epoch, or none, may
     * announce.
     */
    if (max_batch && below(2))
      shift = (uint32_t)below(N_TEXTS);
    for (size_t i = 0; i < f->n_columns; i++) {
      const struct column *c = &f->columns[i];
      const char *values = (const char *)c->values + row * 8;
      const bool text = c->type == NI_PQ_STRING;
      if (text) {
        uint32_t *own = codes + i * (f->rows + 1);
        for (size_t k = 0; k < n; k++)
          own[k] = (c->codes[row + k] + shift) % N_TEXTS;
        for (uint32_t k = 0; k < N_TEXTS; k++)
          texts[i][(k + shift) % N_TEXTS] = c->texts[k];
        values = (const char *)own;
      }
      dicts[i] = (struct ni_pq_dict){texts[i], N_TEXTS, c->epoch ? c->epoch + shift : 0};
      in[i] = (struct ni_pq_column){.values = values,
                                    .valid = c->nulls == NO_NULLS ? NULL : c->valid + row,
                                    .dict = text ? &dicts[i] : NULL,
                                    .repeat = c->repeat};
    }
    if (ni_pq_append(w, in, n) != 0)
      fail_msg("%s", ni_pq_error(w));
    row += n;
  }
  free(texts);
  free(codes);
  if (ni_pq_finish(w, t) != 0)
    fail_msg("finish failed");
  assert_int_equal(t->rows, f->rows);
}

static char *read_all(const char *path, size_t *n) {
  FILE *fp = fopen(path, "rb");
  assert_non_null(fp);
  fseek(fp, 0, SEEK_END);
  *n = (size_t)ftell(fp);
  rewind(fp);
  char *p = malloc(*n + 1);
  assert_non_null(p);
  assert_int_equal(fread(p, 1, *n, fp), *n);
  fclose(fp);
  return p;
}

static void write_truth(const struct file *f, const char *path) {
  static const char *const types[] = {"int64", "double", "string"};
  FILE *fp = fopen(path, "w");
  assert_non_null(fp);
  fprintf(fp, "{\"seed\":%" PRIu64 ",\"rows\":%zu,\"codec\":\"%s\",\"row_group_rows\":%u,\"columns\":[",
          f->seed, f->rows, ni_pq_codec_name(f->options.codec), f->options.row_group_rows);
  for (size_t i = 0; i < f->n_columns; i++) {
    const struct column *c = &f->columns[i];
    fprintf(fp, "%s{\"name\":\"c%zu\",\"type\":\"%s\",\"values\":[", i ? "," : "", i, types[c->type]);
    for (size_t row = 0; row < f->rows; row++) {
      size_t at = c->repeat ? 0 : row;
      uint64_t bits;
      if (row)
        fputc(',', fp);
      if (c->nulls != NO_NULLS && !c->valid[at]) {
        fputs("null", fp);
        continue;
      }
      switch (c->type) {
        case NI_PQ_INT64:
          fprintf(fp, "%" PRId64, c->i64[at]);
          break;
        case NI_PQ_DOUBLE:
          memcpy(&bits, &c->dbl[at], 8);
          fprintf(fp, "\"%016" PRIx64 "\"", bits);
          break;
        default:
          fputc('"', fp);
          for (uint32_t k = 0; k < c->str[at].len; k++)
            fprintf(fp, "%02x", (unsigned char)c->str[at].p[k]);
          fputc('"', fp);
      }
    }
    fputs("]}", fp);
  }
  fputs("]}\n", fp);
  assert_int_equal(fclose(fp), 0);
}

static void one_seed(uint64_t seed, const char *dir, bool keep) {
  struct file f;
  struct ni_pq_totals whole, cut;
  char path[512], other[512], truth[512];
  size_t n, m;
  make_file(&f, seed);
  printf("seed %" PRIu64 ": %zu rows, %zu columns, %s, page_rows %u, row_group_rows %u, dict_entries %u\n",
         seed, f.rows, f.n_columns, ni_pq_codec_name(f.options.codec), f.options.page_rows,
         f.options.row_group_rows, f.options.dict_entries);
  snprintf(path, sizeof path, "%s/seed%04" PRIu64 ".parquet", dir, seed);
  snprintf(other, sizeof other, "%s/seed%04" PRIu64 ".other", dir, seed);
  snprintf(truth, sizeof truth, "%s/seed%04" PRIu64 ".json", dir, seed);
  write_file(&f, path, 0, &whole);
  write_file(&f, other, seed % 3 ? 3000 : 20, &cut);
  char *a = read_all(path, &n), *b = read_all(other, &m);
  if (n != m || memcmp(a, b, n) != 0)
    fail_msg("seed %" PRIu64 ": other batches, other bytes", seed);
  assert_int_equal(n, whole.file_bytes);
  assert_int_equal(whole.row_groups, cut.row_groups);
  assert_memory_equal(a, "PAR1", 4);
  assert_memory_equal(a + n - 4, "PAR1", 4);
  free(a);
  free(b);
  unlink(other);
  if (keep)
    write_truth(&f, truth);
  else
    unlink(path);
  free_file(&f);
}

static void random_files(void **unused) {
  (void)unused;
  const char *dir = getenv("NI_PQ_TRUTH_DIR"), *seed = getenv("NI_PQ_SEED"), *count = getenv("NI_PQ_SEEDS");
  char temp[] = "/tmp/ni-pq-property-XXXXXX";
  bool keep = dir != NULL;
  if (!keep)
    assert_non_null(dir = mkdtemp(temp));
  if (seed) {
    one_seed(strtoull(seed, NULL, 10), dir, keep);
  } else {
    uint64_t n = count ? strtoull(count, NULL, 10) : 32;
    for (uint64_t i = 0; i < n; i++)
      one_seed(i, dir, keep);
  }
  if (!keep)
    rmdir(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
