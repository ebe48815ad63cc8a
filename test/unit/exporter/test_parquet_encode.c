/*
 * The encoders below the Parquet writer, each against an independent decoder or a value known from elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "exporter/output/parquet/page_build.h"
#include "exporter/input/inflate.h"
#include "exporter/output/parquet/page_codec.h"
#include "exporter/output/parquet/pq_dict.h"
#include "exporter/output/parquet/metadata.h"
#include "exporter/base/text/utf8.h"

static uint64_t state = 1;

static uint64_t rnd(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static uint64_t read_varint(const uint8_t **p) {
  uint64_t v = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t b = *(*p)++;
    v |= (uint64_t)(b & 0x7f) << shift;
    if (b < 0x80)
      return v;
  }
}

/*
 * The hybrid decoded bit by bit, after the format's text; returns the values found before `end`, at most n.
 */
static size_t hybrid_decode(const uint8_t *p, const uint8_t *end, unsigned width, uint32_t *out, size_t n) {
  size_t k = 0;
  while (p < end) {
    uint64_t header = read_varint(&p);
    if (header & 1) {
      uint64_t values = (header >> 1) * 8;
      for (uint64_t i = 0; i < values; i++) {
        uint32_t v = 0;
        for (unsigned bit = 0; bit < width; bit++) {
          uint64_t at = i * width + bit;
          v |= (uint32_t)(p[at / 8] >> at % 8 & 1) << bit;
        }
        if (k < n)
          out[k++] = v;
        else
          assert_int_equal(v, 0); /* padding */
      }
      p += values / 8 * width;
    } else {
      uint32_t v = 0;
      for (unsigned i = 0; i < (width + 7) / 8; i++)
        v |= (uint32_t)*p++ << 8 * i;
      assert_true(header >> 1 > 0);
      for (uint64_t i = 0; i < header >> 1; i++) {
        assert_true(k < n);
        out[k++] = v;
      }
    }
  }
  assert_ptr_equal(p, end);
  return k;
}

static void hybrid_round_trip(void **unused) {
  (void)unused;
  for (unsigned width = 1; width <= 16; width++) {
    for (int round = 0; round < 200; round++) {
      size_t n = round < 40 ? (size_t)round : rnd() % 3000;
      uint16_t codes[3000 + NI_CODE_SLACK], copy[3000];
      uint32_t back[3000];
      uint16_t mask = (uint16_t)((1u << width) - 1), v = 0;
      uint64_t run = round % 4 == 0 ? 1 : round % 4 == 1 ? 12 : 200;
      for (size_t i = 0; i < n; i++) {
        if (rnd() % run == 0)
          v = (uint16_t)rnd() & mask;
        copy[i] = codes[i] = v;
      }
      memset(codes + n, 0xff, NI_CODE_SLACK * sizeof *codes); /* what stands behind must not get in */
      size_t room = ni_hybrid_bound(n, width);
      uint8_t *out = malloc(room);
      uint8_t *end = ni_hybrid_encode(out, codes, n, width);
      assert_true((size_t)(end - out) <= room);
      assert_int_equal(hybrid_decode(out, end, width, back, n), n);
      for (size_t i = 0; i < n; i++)
        assert_int_equal(back[i], copy[i]);
      free(out);
    }
  }
}

/* The example of the format's text: 1..7 of three bits, behind the header of one group of literals. */
static void bitpack_known(void **unused) {
  (void)unused;
  uint16_t codes[8 + NI_CODE_SLACK] = {0, 1, 2, 3, 4, 5, 6, 7};
  uint8_t out[64];
  assert_ptr_equal(ni_hybrid_encode(out, codes, 8, 3), out + 4);
  assert_memory_equal(out, "\x03\x88\xc6\xfa", 4);
  assert_int_equal(ni_code_width(0), 1);
  assert_int_equal(ni_code_width(1), 1);
  assert_int_equal(ni_code_width(2), 1);
  assert_int_equal(ni_code_width(3), 2);
  assert_int_equal(ni_code_width(256), 8);
  assert_int_equal(ni_code_width(257), 9);
  assert_int_equal(ni_code_width(32768), 15);
}

static void level_bits(void **unused) {
  (void)unused;
  for (int round = 0; round < 300; round++) {
    enum { N = 700 };
    uint8_t bits[N / 8 + 64], want[N + 64], in[N];
    memset(bits, 0xa5, sizeof bits);
    uint32_t row = 0;
    while (row < N) {
      uint32_t n = 1 + (uint32_t)rnd() % 60;
      if (n > N - row)
        n = N - row;
      if (rnd() % 2) {
        bool valid = rnd() % 2;
        ni_level_bits_fill(bits, row, n, valid);
        for (uint32_t i = 0; i < n; i++)
          want[row + i] = valid;
      } else {
        for (uint32_t i = 0; i < n; i++) {
          in[i] = rnd() % 2 ? (uint8_t)(1u << rnd() % 8) : 0; /* any bit makes it valid */
          want[row + i] = in[i] != 0;
        }
        ni_level_bits_add(bits, row, in, n);
      }
      row += n;
    }
    for (uint32_t i = 0; i < N; i++)
      assert_int_equal(bits[i / 8] >> i % 8 & 1, want[i]);
  }
}

static void dict_codes(void **unused) {
  (void)unused;
  struct ni_dict d;
  uint64_t values[5000];
  uint16_t codes[5000];
  uint32_t n;
  ni_dict_init(&d, false, 1000);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 5000; i++)
      values[i] = rnd() % 1000 * 0x100000001ull;
    assert_int_equal(ni_dict_map(&d, values, 5000, codes, &n), 0);
    assert_int_equal(n, 5000);
    for (int i = 0; i < 5000; i++)
      assert_true(d.keys[codes[i]] == values[i]);
    for (uint32_t a = 0; a < d.n; a++)
      for (uint32_t b = 0; b < a; b++)
        assert_true(d.keys[a] != d.keys[b]);
    if (round == 1)
      ni_dict_reset(&d);
  }
  ni_dict_free(&d);
  ni_dict_init(&d, false, 100);
  for (int i = 0; i < 5000; i++)
    values[i] = (uint64_t)i / 2;
  assert_int_equal(ni_dict_map(&d, values, 5000, codes, &n), NI_DICT_FULL);
  assert_int_equal(n, 200); /* the 101st distinct value is the first without a code */
  assert_int_equal(d.n, 100);
  ni_dict_free(&d);

  uint16_t a, b, c;
  ni_dict_init(&d, true, 3);
  assert_int_equal(ni_dict_map_text(&d, "", 0, &a), 0);
  assert_int_equal(ni_dict_map_text(&d, "AllReduce", 9, &b), 0);
  assert_int_equal(ni_dict_map_text(&d, "AllReduce\0", 10, &c), 0);
  assert_true(a != b && b != c && a != c);
  assert_int_equal(ni_dict_map_text(&d, "AllGather", 9, &c), NI_DICT_FULL);
  assert_int_equal(ni_dict_map_text(&d, "AllReduce", 9, &a), 0);
  assert_int_equal(a, b);
  ni_dict_free(&d);
}

static void utf8_rules(void **unused) {
  (void)unused;
  static const struct {
    const char *in, *out; /* out NULL: valid as it is */
  } cases[] = {{"", NULL},
               {"plain ascii of more than eight", NULL},
               {"\xc2\x80\xdf\xbf", NULL},
               {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80", NULL},
               {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", NULL},
               {"\x80", "\xef\xbf\xbd"},
               {"12345678\xff", "12345678\xef\xbf\xbd"},
               {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
               {"\xe0\x9f\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
               {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
               {"\xf0\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
               {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
               {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41",
                "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\x41"}, /* Unicode, table 3-8 */
               {"\xe6\xbc", "\xef\xbf\xbd"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char out[64];
    size_t n = strlen(cases[i].in);
    assert_int_equal(ni_utf8_valid(cases[i].in, n), cases[i].out == NULL);
    const char *want = cases[i].out ? cases[i].out : cases[i].in;
    assert_int_equal(ni_utf8_replace(out, cases[i].in, n), strlen(want));
    assert_memory_equal(out, want, strlen(want));
    assert_true(ni_utf8_valid(out, strlen(want)));
  }
}

static void thrift_bytes(void **unused) {
  (void)unused;
  struct ni_tc t = {0};
  ni_tc_field_i32(&t, 1, -1);
  ni_tc_field_i64(&t, 3, 50399);
  ni_tc_begin(&t, 10);
  ni_tc_field_text(&t, 1, "ab");
  ni_tc_end(&t);
  ni_tc_field_list(&t, 11, NI_TC_I32, 15);
  for (int i = 0; i < 15; i++)
    ni_tc_element_i32(&t, i - 7);
  static const uint8_t want[] = {0x15, 0x01, 0x26, 0xbe, 0x93, 0x06, 0x7c, 0x18, 0x02, 'a',
                                 'b',  0x00, 0x19, 0xf5, 0x0f, 13,   11,   9,    7,    5,
                                 3,    1,    0,    2,    4,    6,    8,    10,   12,   14};
  assert_false(t.failed);
  assert_int_equal(t.len, sizeof want);
  assert_memory_equal(t.data, want, sizeof want);
  ni_tc_free(&t);
}

/* Every codec must stay within its bound, page after page, tiny ones too. */
static void codec_bounds(void **unused) {
  (void)unused;
  assert_int_equal(ni_crc32(0, "123456789", 9), 0xcbf43926);
  uint8_t *in = malloc(70000);
  for (int i = 0; i < 70000; i++)
    in[i] = (uint8_t)rnd();
  for (int codec = 0; codec < NI_PQ_CODEC_COUNT; codec++) {
    struct ni_page_codec c;
    if (!ni_pq_codec_available((enum ni_pq_codec)codec))
      continue;
    assert_int_equal(ni_page_codec_init(&c, (enum ni_pq_codec)codec, 0), 0);
    static const size_t sizes[] = {0, 1, 6, 0, 10, 100, 70000, 3, 65536, 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      size_t room = ni_page_codec_bound(&c, sizes[i]), n;
      uint8_t *out = malloc(room + 1);
      assert_int_equal(ni_page_codec_run(&c, out, room, in, sizes[i], &n), 0);
      assert_true(n <= room);
      free(out);
    }
    ni_page_codec_free(&c);
  }
  free(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hybrid_round_trip), cmocka_unit_test(bitpack_known),
                                     cmocka_unit_test(level_bits),        cmocka_unit_test(dict_codes),
                                     cmocka_unit_test(utf8_rules),        cmocka_unit_test(thrift_bytes),
                                     cmocka_unit_test(codec_bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
