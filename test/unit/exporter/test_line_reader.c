/*
 * Lines out of every kind of file: plain, gzip in many members, cut, damaged, split; with isa-l and with
 * zlib.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "exporter/input/line_reader.h"
#include "exporter/input/line_split.h"
#include "exporter/input/parse/parse.h"

static char path[64];

struct bytes {
  char *p;
  size_t n, cap;
};

static void add(struct bytes *b, const void *p, size_t n) {
  if (n == 0)
    return; /* an empty file has no buffer at all */
  if (b->n + n > b->cap)
    b->p = realloc(b->p, b->cap = 2 * (b->n + n));
  memcpy(b->p + b->n, p, n);
  b->n += n;
}

static void add_member(struct bytes *b, const void *p, size_t n, int level) {
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  size_t cap = deflateBound(&z, n);
  unsigned char *out = malloc(cap);
  z.next_in = (Bytef *)(uintptr_t)p;
  z.avail_in = (uInt)n;
  z.next_out = out;
  z.avail_out = (uInt)cap;
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  add(b, out, cap - z.avail_out);
  deflateEnd(&z);
  free(out);
}

static void put(const struct bytes *b) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  if (b->n)
    assert_int_equal(fwrite(b->p, 1, b->n, f), b->n);
  assert_int_equal(fclose(f), 0);
}

/* Reads everything, joins it with LF, checks numbering and padding. */
static struct bytes slurp(const struct ni_reader_options *opt, struct ni_reader_stats *stats) {
  struct ni_reader *r;
  struct bytes all = {0};
  struct ni_text t;
  int e;
  uint64_t n = 0;
  assert_int_equal(ni_reader_open(&r, path, opt), 0);
  while ((e = ni_reader_next(r, &t)) == 1) {
    assert_true(t.line_no == ++n);
    if (t.too_long) {
      add(&all, "<long>\n", 7);
      continue;
    }
    assert_true(t.room >= t.len + NI_PARSE_PADDING);
    volatile char touch = t.text[t.len + NI_PARSE_PADDING - 1];
    (void)touch;
    add(&all, t.text, t.len);
    add(&all, t.unterminated ? "|" : "\n", 1);
  }
  assert_int_equal(e, 0);
  assert_int_equal(ni_reader_next(r, &t), 0);
  if (stats)
    *stats = *ni_reader_stats(r);
  ni_reader_close(r);
  add(&all, "", 1);
  all.n--;
  return all;
}

static void expect(const struct bytes *file, const char *want, const struct ni_reader_options *opt,
                   struct ni_reader_stats *stats) {
  put(file);
  struct bytes got = slurp(opt, stats);
  assert_string_equal(got.p, want);
  free(got.p);
}

static void test_plain(void **state) {
  (void)state;
  static const struct {
    const char *file, *want;
  } cases[] = {
      {"", ""},
      {"\n", "\n"},
      {"a", "a|"},
      {"a\nb\n", "a\nb\n"},
      {"a\r\nb\r\n", "a\nb\n"},
      {"\xef\xbb\xbf"
       "a\n",
       "a\n"},
      {"a\n\n\nb", "a\n\n\nb|"},
      {"\xff\xfe\n", "\xff\xfe\n"},
      {"\x1f", "\x1f|"},
      {"\r\n", "\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bytes b = {(char *)(uintptr_t)cases[i].file, strlen(cases[i].file), 0};
    struct ni_reader_stats s;
    expect(&b, cases[i].want, NULL, &s);
    assert_false(s.gzip);
    assert_int_equal(s.damages, 0);
  }
}

static void make_lines(struct bytes *b, unsigned from, unsigned to, unsigned len) {
  char line[4096];
  for (unsigned i = from; i < to; i++) {
    int n = snprintf(line, sizeof line, "{\"header\":%u,\"x\":\"", i);
    while ((unsigned)n < len + i % 17) {
      line[n] = (char)('a' + (i * 31u + (unsigned)n * 7u) % 26u);
      n++;
    }
    n += snprintf(line + n, sizeof line - (size_t)n, "\"}\n");
    add(b, line, (size_t)n);
  }
}

static void each_engine(void (*f)(const struct ni_reader_options *)) {
  struct ni_reader_options opt = {.engine = NI_INFLATE_ZLIB};
  f(&opt);
  struct ni_inflater *z;
  opt.engine = NI_INFLATE_ISAL;
  if (ni_inflater_open(&z, NI_INFLATE_ISAL) < 0)
    return;
  ni_inflater_free(z);
  f(&opt);
}

/* Members of 1 to many lines, stored and compressed, empty ones, borders inside a line. */
static void members(const struct ni_reader_options *opt) {
  struct bytes text = {0}, gz = {0};
  make_lines(&text, 0, 6000, 300);
  size_t at = 0, step = 1;
  while (at < text.n) {
    size_t n = step < text.n - at ? step : text.n - at;
    add_member(&gz, text.p + at, n, (int)(step % 10));
    if (step % 7 == 0)
      add_member(&gz, "", 0, 1);
    at += n;
    step = step * 2 % 300007 + 1;
  }
  add(&text, "", 1);
  struct ni_reader_stats s;
  expect(&gz, text.p, opt, &s);
  assert_true(s.gzip);
  assert_int_equal(s.damages, 0);
  assert_int_equal(s.lines, 6000);
  assert_true(s.text_bytes == text.n - 1);
  assert_true(s.file_bytes == gz.n);
  /* Zeros behind the last member are padding. */
  add(&gz, "\0\0\0\0", 4);
  expect(&gz, text.p, opt, &s);
  assert_int_equal(s.damages, 0);
  add(&gz, "garbage behind", 14);
  expect(&gz, text.p, opt, &s);
  assert_int_equal(s.damages, 1);
  assert_int_equal(s.garbage_bytes, 14);
  assert_true(s.first_damage_at == gz.n - 14);
  free(text.p);
  free(gz.p);
}
static void test_members(void **state) {
  (void)state;
  each_engine(members);
}

/* A file cut at every byte gives a prefix of the text: every line that can be known, never a wrong one. */
static void cuts(const struct ni_reader_options *opt) {
  struct bytes text = {0}, gz = {0}, first = {0};
  make_lines(&text, 0, 6, 60);
  make_lines(&first, 0, 3, 60);
  add_member(&gz, first.p, first.n, 6);
  size_t border = gz.n;
  add_member(&gz, text.p + first.n, text.n - first.n, 6);
  size_t best = 0;
  for (size_t n = 0; n <= gz.n; n++) {
    struct bytes b = {gz.p, n, 0};
    struct ni_reader_stats s;
    put(&b);
    struct bytes got = slurp(opt, &s);
    if (got.n > 0 && got.p[got.n - 1] == '|')
      got.n--;
    if (n >= 2) {
      assert_true(got.n <= text.n && memcmp(got.p, text.p, got.n) == 0);
      assert_true(got.n >= best || n < border);
      if (n >= border)
        assert_true(got.n >= first.n);
      if (n >= border)
        best = got.n;
      assert_int_equal(s.cut, n != border && n != gz.n);
    }
    free(got.p);
  }
  assert_true(best == text.n);
  free(text.p);
  free(first.p);
  free(gz.p);
}
static void test_cuts(void **state) {
  (void)state;
  each_engine(cuts);
}

/* One damaged member of three costs at most its own lines. */
static void damaged(const struct ni_reader_options *opt) {
  struct bytes part[3] = {{0}}, gz = {0};
  size_t at[4] = {0};
  for (unsigned i = 0; i < 3; i++) {
    make_lines(&part[i], i * 100, i * 100 + 100, 100);
    add_member(&gz, part[i].p, part[i].n, 6);
    at[i + 1] = gz.n;
  }
  for (unsigned where = 0; where < 4; where++) {
    size_t byte = where == 0 ? at[1] + 1
        : where == 1         ? at[1] + 40
        : where == 2         ? (at[1] + at[2]) / 2
                             : at[2] - 6;
    gz.p[byte] ^= 0x55;
    put(&gz);
    struct ni_reader_stats s;
    struct bytes got = slurp(opt, &s);
    assert_true(got.n >= part[0].n + part[2].n);
    assert_memory_equal(got.p, part[0].p, part[0].n);
    assert_memory_equal(got.p + got.n - part[2].n, part[2].p, part[2].n);
    assert_true(s.damages >= 1);
    assert_true(s.first_damage_at >= at[1] && s.first_damage_at < at[2]);
    assert_false(s.cut);
    if (where == 3)
      assert_int_equal(s.first_damage, NI_INF_BAD_CHECKSUM);
    gz.p[byte] ^= 0x55;
    free(got.p);
  }
  for (unsigned i = 0; i < 3; i++)
    free(part[i].p);
  free(gz.p);
}
static void test_damaged(void **state) {
  (void)state;
  each_engine(damaged);
}

static void long_lines(const struct ni_reader_options *engine) {
  for (size_t n = 999; n <= 1001; n++) {
    struct bytes b = {0}, gz = {0};
    char *x = malloc(3u << 20);
    memset(x, 'x', 3u << 20);
    add(&b, "a\n", 2);
    add(&b, x, 3u << 20);
    add(&b, "\nb\n", 3);
    add(&b, x, n);
    add(&b, "\nc", 2);
    struct ni_reader_options opt = {.max_line_bytes = 1000, .engine = engine->engine};
    struct ni_reader_stats s;
    char want[2048];
    snprintf(want, sizeof want, "a\n<long>\nb\n%.*s\nc|", n > 1000 ? 6 : (int)n, n > 1000 ? "<long>" : x);
    expect(&b, want, &opt, &s);
    assert_int_equal(s.too_long, n > 1000 ? 2 : 1);
    add_member(&gz, b.p, b.n, 1);
    expect(&gz, want, &opt, &s);
    assert_int_equal(s.too_long, n > 1000 ? 2 : 1);
    /* The default limit keeps a line of a megabyte whole. */
    struct bytes big = {0};
    add(&big, x, NI_MAX_LINE_BYTES);
    add(&big, "\n", 1);
    put(&big);
    opt.max_line_bytes = 0;
    struct bytes got = slurp(&opt, &s);
    assert_true(got.n == big.n && memcmp(got.p, big.p, big.n) == 0);
    free(got.p);
    free(big.p);
    free(gz.p);
    free(b.p);
    free(x);
  }
}
static void test_long_lines(void **state) {
  (void)state;
  each_engine(long_lines);
}

/* Ranges together give what the whole file gives, in order, and every one begins at a line with a header. */
static void split(const struct ni_reader_options *engine) {
  struct bytes text = {0}, gz = {0};
  for (unsigned i = 0; i < 400; i++) {
    size_t from = text.n;
    make_lines(&text, i * 50, i * 50 + 50, 200);
    /* Some members end inside a line, some begin with a bare line: no cut there. */
    if (i % 5 == 3)
      text.n -= 20;
    if (i % 5 == 1)
      add(&text, "{\"coll_perf\":1}\n", 16);
    add_member(&gz, text.p + from, text.n - from, 6);
  }
  for (int kind = 0; kind < 2; kind++) {
    put(kind ? &gz : &text);
    struct ni_range range[8];
    int n = ni_reader_split(path, 8, 1000, range);
    assert_int_equal(n, 8);
    struct bytes all = {0};
    for (int i = 0; i < n; i++) {
      struct ni_reader_options opt = {.engine = engine->engine, .from = range[i].from, .to = range[i].to};
      struct ni_reader_stats s;
      struct bytes got = slurp(&opt, &s);
      assert_memory_equal(got.p, "{\"header\"", 9);
      assert_int_equal(s.damages, 0);
      if (i + 1 < n)
        assert_true(range[i].to == range[i + 1].from);
      add(&all, got.p, got.n);
      free(got.p);
    }
    struct bytes whole = slurp(engine, NULL);
    assert_true(all.n == whole.n && memcmp(all.p, whole.p, all.n) == 0);
    free(whole.p);
    free(all.p);
    assert_int_equal(ni_reader_split(path, 8, 1u << 30, range), 1);
  }
  free(text.p);
  free(gz.p);
}
static void test_split(void **state) {
  (void)state;
  each_engine(split);
}

/* ---- borders ------------------------------------------------------------------------------------------- */

struct borders {
  struct ni_border b[64];
  size_t n; /* without the end, which is b[n] */
};

/* The first is the beginning of the range. */
static void find_borders(struct borders *x, const struct ni_reader_options *engine, uint64_t from) {
  struct ni_reader_options opt = {
      .engine = engine->engine, .borders = true, .from = from, .to = UINT64_MAX >> 1};
  struct ni_reader *r;
  struct ni_text t;
  *x = (struct borders){.b[0].at = from, .n = 1};
  assert_int_equal(ni_reader_open(&r, path, &opt), 0);
  while (ni_reader_next(r, &t) == 1) {
    struct ni_border *b = &x->b[x->n];
    if (!ni_reader_border(r, b))
      continue;
    if (b->entry.n)
      b->entry.window = memcpy(malloc(b->entry.n), b->entry.window, b->entry.n);
    assert_true(++x->n < 64);
  }
  assert_true(ni_reader_rest(r, &x->b[x->n]));
  ni_reader_close(r);
}

static void free_borders(struct borders *x) {
  for (size_t i = 0; i < x->n; i++)
    free((uint8_t *)(uintptr_t)x->b[i].entry.window);
}

/* Each granule by itself is its part of the text, and has the sum of its bytes. */
static void read_granules(const struct borders *x, const struct ni_reader_options *engine,
                          const struct bytes *file, const struct bytes *text) {
  for (size_t i = 0; i < x->n; i++) {
    const struct ni_border *b = &x->b[i], *next = b + 1;
    const uint64_t n = next->text - b->text;
    struct ni_reader_options opt = {.engine = engine->engine,
                                    .from = b->at,
                                    .to = next->entry.n ? file->n : next->at,
                                    .text = next->entry.n ? n : 0,
                                    .entry = b->entry};
    struct ni_reader_stats s;
    struct bytes got = slurp(&opt, &s);
    assert_true(got.n == n && memcmp(got.p, text->p + b->text, n) == 0);
    assert_int_equal(s.damages, 0);
    assert_true(next->crc == ni_crc32(0, file->p + b->at, next->at - b->at));
    free(got.p);
  }
}

/* A member of `kind` 0: stored blocks, 1: fixed codes, 2: dynamic ones, 3: all in turn. */
static void add_blocks(struct bytes *b, const struct bytes *text, size_t from, int kind) {
  static const int how[][2] = {{0, Z_DEFAULT_STRATEGY}, {6, Z_FIXED}, {6, Z_DEFAULT_STRATEGY}};
  z_stream z = {0};
  Bytef *out = malloc(text->n + (1 << 20));
  assert_int_equal(deflateInit2(&z, how[kind % 3][0], Z_DEFLATED, 31, 8, how[kind % 3][1]), Z_OK);
  z.next_out = out;
  z.avail_out = (uInt)(text->n + (1 << 20));
  z.next_in = (Bytef *)text->p + from;
  for (int i = 0; z.next_in < (Bytef *)text->p + text->n; i++) {
    size_t left = (size_t)((Bytef *)text->p + text->n - z.next_in);
    z.avail_in = 0;
    if (kind == 3 && i)
      assert_int_equal(deflateParams(&z, how[i % 3][0], how[i % 3][1]), Z_OK);
    z.avail_in = (uInt)(kind == 3 && left > 777777 ? 777777 : left);
    assert_int_equal(deflate(&z, Z_NO_FLUSH), Z_OK);
  }
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  add(b, out, (size_t)(z.next_out - out));
  deflateEnd(&z);
  free(out);
}

static void entries(const struct ni_reader_options *engine) {
  struct bytes text = {0};
  const char *bare = "{\"coll_perf\":{\"header\":1}}\n";
  unsigned bits = 0;
  while (text.n < 15u << 20) { /* some lines have no header */
    make_lines(&text, (unsigned)(text.n >> 10), (unsigned)(text.n >> 10) + 40, 180);
    for (int i = 0; i < 5; i++)
      add(&text, bare, strlen(bare));
  }
  for (int kind = 0; kind < 4; kind++) {
    struct bytes file = {0};
    struct borders x, again;
    size_t small = kind == 2 ? 4000 : 0;
    for (size_t i = 0; i < small; i++)
      add_member(&file, text.p + i, 1, 6); /* a byte each */
    const size_t first = file.n;
    add_blocks(&file, &text, small, kind);
    put(&file);
    find_borders(&x, engine, 0);
    read_granules(&x, engine, &file, &text);
    size_t inside = 0;
    for (size_t i = 0; i < x.n; i++) {
      inside += x.b[i].entry.n != 0;
      bits |= 1u << x.b[i].entry.bits;
    }
    /*
     * isa-l tells of blocks with a long header alone: of few that are stored, and of hardly any with fixed
     * codes.
     */
    assert_true(inside == 3 || (engine->engine == NI_INFLATE_ISAL && inside < 3 && (kind < 2 || inside > 0)));
    find_borders(&again, engine, first); /* they depend on the bytes, not on where reading began */
    for (size_t i = 1; i <= inside; i++)
      assert_true(again.b[again.n - i].at == x.b[x.n - i].at);
    free_borders(&again);
    free_borders(&x);
    free(file.p);
  }
  assert_true(bits & ~1u); /* blocks that begin within a byte */
  free(text.p);
}
static void test_entries(void **state) {
  (void)state;
  each_engine(entries);
}

static void test_errors(void **state) {
  (void)state;
  struct ni_reader *r;
  assert_int_equal(ni_reader_open(&r, "/nonexistent/x.log", NULL), -ENOENT);
  assert_null(r);
  assert_int_equal(ni_reader_open(&r, "/tmp", NULL), -EISDIR);
  assert_int_equal(ni_reader_open(&r, "/dev/null", NULL), -EINVAL);
  struct ni_range range[2];
  assert_int_equal(ni_reader_split("/nonexistent/x.log", 2, 0, range), -ENOENT);
}

int main(void) {
  snprintf(path, sizeof path, "/tmp/ni-reader-%d", (int)getpid());
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain),   cmocka_unit_test(test_members),    cmocka_unit_test(test_cuts),
      cmocka_unit_test(test_damaged), cmocka_unit_test(test_long_lines), cmocka_unit_test(test_split),
      cmocka_unit_test(test_entries), cmocka_unit_test(test_errors),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}
