/*
 * Blocks against zlib's own inflate: whole members, whatever the sizes, retained until released, intact after
 * a failed allocation. `test_gz_writer --measure` prints bytes and time a record for several settings on
 * made-up records.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include <cmocka.h>

#include "format/line_write.h"
#include "plugin/write/gz_writer.h"
#include "plugin/write/gpu_fit.h"

static uint64_t rng = 88172645463325252u;
static uint64_t next(void) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return rng;
}

#if defined(__has_feature)
#define SANITIZED \
  (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#if !SANITIZED /* the sanitizers have an allocator of their own */
#define CAN_FAIL_REALLOC 1
extern void *__libc_realloc(void *p, size_t n);
static bool fail_realloc;
void *realloc(void *p, size_t n) { return fail_realloc ? (errno = ENOMEM, NULL) : __libc_realloc(p, n); }
#endif

/*
 * Inflates one or several members; fails the test unless they end exactly at n. Returns the number of
 * members.
 */
static int gunzip(const unsigned char *data, size_t n, unsigned char *out, size_t cap, size_t *out_n) {
  z_stream z = {0};
  int members = 0;
  *out_n = 0;
  assert_int_equal(inflateInit2(&z, 31), Z_OK);
  z.next_in = (Bytef *)(uintptr_t)data;
  z.avail_in = (uInt)n;
  while (z.avail_in) {
    z.next_out = out + *out_n;
    z.avail_out = (uInt)(cap - *out_n);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    *out_n = cap - z.avail_out;
    members++;
    inflateReset(&z);
  }
  inflateEnd(&z);
  return members;
}

enum { TEXT_MAX = 6 << 20, MEMBER_TEXT = 256 << 10 };
static unsigned char text[TEXT_MAX], back[TEXT_MAX + 64];

static void fill_text(int kind) {
  for (size_t i = 0; i < TEXT_MAX; i++)
    text[i] = kind == 0 ? 'x'
        : kind == 1     ? (unsigned char)next()
                        : (unsigned char)"{\"coll_sn\":"[next() % 11];
}

static void members_are_whole(void **state) {
  (void)state;
  for (int compress = 0; compress < 2; compress++)
    for (int kind = 0; kind < 3; kind++) {
      fill_text(kind);
      struct ni_gz *gz = ni_gz_create(compress, NI_CODEC_LEVEL);
      assert_non_null(gz);
      for (int round = 0; round < 12; round++) {
        size_t n = 0, stop = round == 0 ? 1 : round == 11 ? TEXT_MAX : next() % 300000 + 1;
        while (n < stop) {
          size_t step = next() % (round & 1 ? 100000 : 900) + 1;
          if (step > stop - n)
            step = stop - n;
          assert_int_equal(ni_gz_append(gz, text + n, step), 0);
          n += step;
        }
        assert_int_equal(ni_gz_text_bytes(gz), n);
        const void *data, *again;
        size_t len, len2, got;
        assert_false(ni_gz_finished(gz));
        assert_int_equal(ni_gz_finish(gz, &data, &len), 0);
        assert_true(ni_gz_finished(gz));
        /* Retained: the same block, and no append, until released. */
        assert_int_equal(ni_gz_append(gz, "x", 1), -EBUSY);
        assert_int_equal(ni_gz_finish(gz, &again, &len2), 0);
        assert_ptr_equal(again, data);
        assert_int_equal(len2, len);
        assert_int_equal(ni_gz_bytes(gz), len);
        if (compress) {
          assert_in_range(gunzip(data, len, back, sizeof back, &got), 1, 2 * n / MEMBER_TEXT + 1);
          assert_int_equal(got, n);
          assert_memory_equal(back, text, n);
        } else {
          assert_int_equal(len, n);
          assert_memory_equal(data, text, n);
        }
        if (round & 1)
          ni_gz_release(gz);
        else
          ni_gz_release(gz);
        assert_int_equal(ni_gz_text_bytes(gz), 0);
      }
      ni_gz_free(gz);
    }
  ni_gz_free(NULL);
}

/* Whole lines in every member, and never more text than a stage holds. */
static void members_hold_whole_lines(void **state) {
  (void)state;
  struct ni_gz *gz = ni_gz_create(true, NI_CODEC_LEVEL);
  size_t n = 0;
  while (n < TEXT_MAX - 5000) {
    size_t line = next() % 4000 + 1;
    for (size_t i = 0; i < line; i++)
      text[n + i] = (unsigned char)('a' + next() % 26);
    text[n + line - 1] = '\n';
    assert_int_equal(ni_gz_append(gz, text + n, line), 0);
    n += line;
  }
  const void *data;
  size_t len, sum = 0, before = 0;
  assert_int_equal(ni_gz_finish(gz, &data, &len), 0);
  z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
  assert_int_equal(inflateInit2(&z, 31), Z_OK);
  for (; z.avail_in; inflateReset(&z)) {
    z.next_out = back;
    z.avail_out = MEMBER_TEXT;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    size_t got = MEMBER_TEXT - z.avail_out;
    assert_int_equal(back[got - 1], '\n');
    assert_memory_equal(back, text + sum, got);
    if (before)
      assert_true(before + got > MEMBER_TEXT);
    sum += got;
    before = got;
  }
  assert_int_equal(sum, n);
  inflateEnd(&z);
  ni_gz_free(gz);
}

/* The bound that room is reserved by, at its worst: noise, and sizes around the blocks of both libraries. */
static void a_member_fits_its_bound(void **state) {
  (void)state;
  static unsigned char out[(MEMBER_TEXT << 1) + 64];
  fill_text(1);
  for (int level = NI_CODEC_LEVEL; level <= 9; level += 3) {
    struct ni_codec *codec = ni_codec_new(level);
    for (size_t n = 1; n <= MEMBER_TEXT; n = n * 9 / 8 + 1) {
      size_t got, len = ni_codec_member(codec, text, n, out, ni_codec_bound(n));
      assert_in_range(len, 1, ni_codec_bound(n));
      assert_int_equal(gunzip(out, len, back, sizeof back, &got), 1);
      assert_int_equal(got, n);
      assert_memory_equal(back, text, n);
      /* too little room is told, and the next one is whole */
      assert_int_equal(ni_codec_member(codec, text, n, out, 17), 0);
    }
    ni_codec_free(codec);
  }
  ni_codec_free(NULL);
}

static void nothing_is_no_member(void **state) {
  (void)state;
  struct ni_gz *gz = ni_gz_create(true, NI_CODEC_LEVEL);
  const void *data;
  size_t n = 7;
  assert_int_equal(ni_gz_append(gz, "", 0), 0);
  assert_int_equal(ni_gz_finish(gz, &data, &n), 0);
  assert_int_equal(n, 0);
  assert_false(ni_gz_finished(gz));
  assert_int_equal(ni_gz_append(gz, "a\n", 2), 0);
  ni_gz_free(gz);
}

static void limit_is_stated_and_nothing_is_taken(void **state) {
  (void)state;
  fill_text(1);
  for (int compress = 0; compress < 2; compress++) {
    struct ni_gz *gz = ni_gz_create(compress, 1);
    size_t n = 0, chunks = 0, len, got;
    int err;
    while ((err = ni_gz_append(gz, text, TEXT_MAX)) == 0)
      chunks++;
    assert_int_equal(err, -EFBIG);
    assert_true(chunks >= 9);
    assert_int_equal(ni_gz_text_bytes(gz), chunks * TEXT_MAX);
    const void *data;
    assert_int_equal(ni_gz_finish(gz, &data, &len), 0);
    assert_true(len <= NI_GZ_MAX_BYTES);
    if (compress) {
      unsigned char *all = malloc(chunks * TEXT_MAX + 64);
      assert_in_range(gunzip(data, len, all, chunks * TEXT_MAX + 64, &got), 1,
                      chunks * TEXT_MAX / MEMBER_TEXT + chunks + 1);
      assert_int_equal(got, chunks * TEXT_MAX);
      for (n = 0; n < chunks; n++)
        assert_memory_equal(all + n * TEXT_MAX, text, TEXT_MAX);
      free(all);
    }
    assert_int_equal(ni_gz_append(gz, text, (size_t)NI_GZ_MAX_BYTES + 1), -EBUSY);
    ni_gz_release(gz);
    assert_int_equal(ni_gz_append(gz, text, (size_t)NI_GZ_MAX_BYTES + 1), -EFBIG);
    ni_gz_free(gz);
  }
}

/* realloc refuses at random: what was accepted, and only that, comes out. */
static void no_memory_keeps_the_text(void **state) {
  (void)state;
#ifndef CAN_FAIL_REALLOC
  skip();
#else
  fill_text(1);
  for (int compress = 0; compress < 2; compress++) {
    struct ni_gz *gz = ni_gz_create(compress, NI_CODEC_LEVEL);
    size_t n = 0;
    int failed = 0;
    for (int i = 0; i < 400 && n < TEXT_MAX - 20000; i++) {
      size_t step = next() % 20000 + 1;
      fail_realloc = next() & 1;
      int err = ni_gz_append(gz, text + n, step);
      fail_realloc = false;
      if (err == 0)
        n += step;
      else {
        assert_int_equal(err, -ENOMEM);
        failed++;
      }
    }
    assert_true(failed > 0);
    const void *data;
    size_t len, got;
    fail_realloc = true;
    int err = ni_gz_finish(gz, &data, &len);
    fail_realloc = false;
    if (err) {
      assert_int_equal(err, -ENOMEM);
      assert_int_equal(ni_gz_finish(gz, &data, &len), 0);
    }
    if (compress) {
      assert_in_range(gunzip(data, len, back, sizeof back, &got), 1, 2 * n / MEMBER_TEXT + 1);
      assert_int_equal(got, n);
      assert_memory_equal(back, text, n);
    } else {
      assert_int_equal(len, n);
      assert_memory_equal(data, text, n);
    }
    ni_gz_free(gz);
  }
#endif
}

/* ---- records as a job makes them: made up, but with the entropy of real times and bandwidths ---- */
static double normal(void) {
  double s = 0;
  for (int i = 0; i < 12; i++)
    s += (double)(next() >> 11) * 0x1p-53;
  return s - 6;
}

/* random: any of six functions and 24 sizes at any time; else the fixed sequence of a training step. */
static void make_records(struct ni_record *r, int n, bool random) {
  static const enum ni_func funcs[6] = {NI_FUNC_ALLREDUCE, NI_FUNC_ALLGATHER, NI_FUNC_REDUCESCATTER,
                                        NI_FUNC_BROADCAST, NI_FUNC_SEND,      NI_FUNC_RECV};
  uint64_t t = 1790000000123456789u, sn[6] = {0}, p2p_sn = 0, rec_sn[2] = {0}, sizes[24];
  for (int i = 0; i < 24; i++)
    sizes[i] = (next() % 4096 + 1) * (UINT64_C(4096) << (next() % 8));
  for (int i = 0; i < n; i++, r++) {
    int phase = i % 104, dice = (int)(next() % 100);
    int f = random ? (dice < 40       ? 0
                          : dice < 60 ? 1
                          : dice < 80 ? 2
                          : dice < 82 ? 3
                          : dice < 91 ? 4
                                      : 5)
                   : (phase < 48        ? 1
                          : phase < 96  ? 2
                          : phase < 100 ? 0
                          : phase < 102 ? 4
                                        : 5);
    *r =
        (struct ni_record){.kind = f >= 4 ? NI_KIND_P2P : NI_KIND_COLL, .func = ni_func_table[funcs[f]].name};
    r->datatype = f == 1 || f == 3 ? "ncclInt8" : "ncclBfloat16";
    if (r->kind == NI_KIND_COLL) {
      r->algo = random && f == 0 && next() % 4 == 0 ? "NVLS" : "RING";
      r->proto = random && next() % 5 == 0 ? "LL128" : "SIMPLE";
    }
    r->sn = r->kind ? p2p_sn++ : sn[f]++;
    r->rec_sn = rec_sn[r->kind]++;
    r->root = r->kind ? (int)(next() % 8) : 0;
    r->nchannels = r->kind ? 4 : random && next() % 4 == 0 ? 16 : 24;
    r->msg_bytes = random ? sizes[next() % 24]
        : f == 0          ? (phase == 99 ? 4 : 4194304)
        : f < 3           ? 12636160
                          : 33554432;
    r->has =
        NI_HAS_ENQUEUE | NI_HAS_GPU_DELTA | NI_HAS_REC_SN | NI_HAS_NCHANNELS | (r->kind ? 0 : NI_HAS_ROOT);
    t += 20000 + next() % 200000;
    r->enqueue_ns = t;
    r->gpu_start_delta_ns = (int64_t)(3000 + next() % 20000);
    double ns = 8000 + (double)ni_nccl_tests_bytes(funcs[f], r->msg_bytes, 8) / (180 + normal() * 20);
    struct ni_timing_in in = {.gpu_ok = true, .gpu_ns = (uint64_t)ns / 32 * 32};
    ni_timing_fill(r, funcs[f], 8, &in);
  }
}

static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Bytes a record; *us: format, append and finish together. */
static double measure(const struct ni_record *r, int n, int per, bool compress, int level, double *us) {
  struct ni_ident id = {0x5d1c7e90aa41b2ff, "default_pg", 3, 8, 1};
  struct ni_meta origin = {
      .hostname = "gpu-node-0417", .git_rev = "1a2b3c4d5", .producer = NI_PRODUCER " 0.1.0", .pid = 4242};
  struct ni_line_prefix p;
  assert_int_equal(ni_line_prefix_init(&p, &id, &origin), 0);
  struct ni_gz *gz = ni_gz_create(compress, level);
  char *buf = malloc(NI_LINE_MAX_BYTES);
  size_t total = 0;
  double from = cpu_s();
  for (int i = 0; i < n;) {
    size_t len;
    for (int k = 0; k < per && i < n; k++, i++) {
      len =
          ni_format_op(buf, NI_LINE_MAX_BYTES, &p, 1790000000123456u + (uint64_t)(i / per) * 1000000, r + i);
      assert_int_equal(ni_gz_append(gz, buf, len), 0);
    }
    const void *data;
    assert_int_equal(ni_gz_finish(gz, &data, &len), 0);
    total += len;
    ni_gz_release(gz);
  }
  *us = (cpu_s() - from) / n * 1e6;
  free(buf);
  ni_gz_free(gz);
  ni_line_prefix_free(&p);
  return (double)total / n;
}

/* The promise of size is deterministic, so it is a test; the one of time is for `make bench`. */
static void bytes_per_record(void **state) {
  (void)state;
  enum { N = 10000 };
  struct ni_record *r = calloc(N, sizeof *r);
  double us;
  make_records(r, N, false);
  double training = measure(r, N, 1000, true, NI_CODEC_LEVEL, &us);
  make_records(r, N, true);
  double random = measure(r, N, 1000, true, NI_CODEC_LEVEL, &us);
  print_message("bytes a record: training step %.1f, everything random %.1f\n", training, random);
  assert_true(training <= 64);
  /* zlib 68, libdeflate 74: any of six functions and 24 sizes at any time, which no job does */
  assert_true(random <= 75);
  free(r);
}

static int measure_all(void) {
  enum { N = 40000 };
  struct ni_record *r = calloc(N, sizeof *r);
  for (int random = 0; random < 2; random++) {
    make_records(r, N, random);
    double us, bytes = measure(r, N, 1000, false, 0, &us);
    printf("%s, 1000 a flush: plain %.1f B %.3f us\n", random ? "everything random" : "training step", bytes,
           us);
    for (int level = NI_CODEC_LEVEL; level <= 6; level++) {
      double best = 1e9;
      for (int i = 0; i < 3; i++) {
        bytes = measure(r, N, 1000, true, level, &us);
        if (us < best)
          best = us;
      }
      printf("  %s, level %d%s  %.1f B  %.3f us a record, formatted and compressed\n", ni_codec_name(), level,
             level == NI_CODEC_LEVEL ? " (default)" : "", bytes, best);
    }
  }
  free(r);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--measure"))
    return measure_all();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(members_are_whole),
      cmocka_unit_test(nothing_is_no_member),
      cmocka_unit_test(limit_is_stated_and_nothing_is_taken),
      cmocka_unit_test(no_memory_keeps_the_text),
      cmocka_unit_test(members_hold_whole_lines),
      cmocka_unit_test(a_member_fits_its_bound),
      cmocka_unit_test(bytes_per_record),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
