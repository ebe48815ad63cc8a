/* The writer's edges: what it refuses, what it leaves behind when it fails, where its files appear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/mix.h"
#include "exporter/output/parquet/page_codec.h"
#include "exporter/output/parquet/writer.h"

static char dir[64], path[128], message[256];
static const struct ni_pq_field one_int[] = {{"n", NI_PQ_INT64}}, one_text[] = {{"s", NI_PQ_STRING}};

static int setup(void **unused) {
  (void)unused;
  strcpy(dir, "/tmp/ni-pq-writer-XXXXXX");
  if (!mkdtemp(dir))
    return -1;
  snprintf(path, sizeof path, "%s/a.parquet", dir);
  return 0;
}

static int teardown(void **unused) {
  (void)unused;
  unlink(path);
  return rmdir(dir); /* fails when something was left behind */
}

static int n_entries(void) {
  DIR *d = opendir(dir);
  int n = 0;
  assert_non_null(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n - 2;
}

static struct ni_pq *create(const struct ni_pq_field *f, const struct ni_pq_options *o) {
  struct ni_pq *w;
  if (ni_pq_create(&w, path, f, 1, o, message, sizeof message) != 0)
    fail_msg("%s", message);
  return w;
}

static void refuses(const struct ni_pq_field *f, size_t n, const struct ni_pq_options *o, int rc,
                    const char *says) {
  struct ni_pq *w = (struct ni_pq *)1;
  assert_int_equal(ni_pq_create(&w, path, f, n, o, message, sizeof message), rc);
  assert_null(w);
  if (!strstr(message, says))
    fail_msg("message \"%s\" lacks \"%s\"", message, says);
  assert_int_equal(n_entries(), 0);
}

static void bad_arguments(void **unused) {
  (void)unused;
  if (ni_pq_codec_available(NI_PQ_ZSTD))
    refuses(one_int, 1, &(struct ni_pq_options){.codec = NI_PQ_ZSTD, .level = 44}, -EINVAL, "-7..19");
  for (int codec = 0; codec < NI_PQ_CODEC_COUNT; codec++)
    if (!ni_pq_codec_available((enum ni_pq_codec)codec))
      refuses(one_int, 1, &(struct ni_pq_options){.codec = (enum ni_pq_codec)codec}, -ENOTSUP,
              ni_pq_codec_name((enum ni_pq_codec)codec));
  struct ni_pq *w;
  assert_int_equal(ni_pq_create(&w, "/nonexistent/x.parquet", one_int, 1, NULL, message, sizeof message),
                   -ENOENT);
  assert_non_null(strstr(message, "/nonexistent/x.parquet"));
}

static void bad_rows(void **unused) {
  (void)unused;
  const int64_t v[4] = {1, 2, 3, 4};
  const uint32_t codes[3] = {0, 2, 1};
  const struct ni_str texts[2] = {{"a", 1}, {"b", 1}};
  const struct ni_pq_dict dict = {texts, 2, 1};
  struct ni_pq *w = create(one_int, NULL);
  assert_int_equal(ni_pq_append(w, &(struct ni_pq_column){0}, 0), 0); /* no rows, nothing looked at */
  assert_int_equal(ni_pq_append(w, &(struct ni_pq_column){0}, 4), -EINVAL);
  assert_non_null(strstr(ni_pq_error(w), "column n"));
  assert_int_equal(ni_pq_append(w, &(struct ni_pq_column){.values = v}, 4), -EINVAL); /* an error is final */
  assert_int_equal(ni_pq_finish(w, NULL), -EINVAL);
  ni_pq_abort(w);

  w = create(one_int, NULL);
  assert_int_equal(ni_pq_append(w, &(struct ni_pq_column){.values = v, .dict = &dict}, 4), -EINVAL);
  ni_pq_abort(w);
  w = create(one_text, NULL);
  assert_int_equal(ni_pq_append(w, &(struct ni_pq_column){.values = codes}, 3), -EINVAL);
  ni_pq_abort(w);
  for (int no_dict = 0; no_dict < 2; no_dict++) {
    w = create(one_text, &(struct ni_pq_options){.codec = ni_pq_codec_default(), .no_dict = no_dict});
    assert_int_equal(ni_pq_append(w, &(struct ni_pq_column){.values = codes, .dict = &dict}, 3), -EINVAL);
    assert_non_null(strstr(ni_pq_error(w), "dictionary"));
    ni_pq_abort(w);
    w = create(one_text, &(struct ni_pq_options){.codec = ni_pq_codec_default(), .no_dict = no_dict});
    const struct ni_str giant = {"x", NI_PQ_STR_MAX_BYTES + 1}; /* must be refused before it is read */
    const struct ni_pq_dict of_giants = {&giant, 1, 1};
    assert_int_equal(ni_pq_append(w, &(struct ni_pq_column){.values = codes, .dict = &of_giants}, 1),
                     -EMSGSIZE);
    ni_pq_abort(w);
  }
  ni_pq_abort(NULL);
  assert_int_equal(n_entries(), 0);
}

static void names_on_disk(void **unused) {
  (void)unused;
  const int64_t v = 5;
  const struct ni_pq_column c = {.values = &v};
  struct ni_pq_totals t;
  struct stat st;
  struct ni_pq *w = create(one_int, NULL), *second;
  assert_int_equal(ni_pq_create(&second, path, one_int, 1, NULL, message, sizeof message), -EEXIST);
  assert_int_equal(ni_pq_append(w, &c, 1), 0);
  assert_int_equal(ni_pq_finish(w, &t), 0);
  assert_int_equal(n_entries(), 1);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_size, t.file_bytes);
  assert_int_equal(t.rows, 1);
  unlink(path);

  w = create(one_int, NULL);
  ni_pq_abort(w);
  assert_int_equal(n_entries(), 0);

  assert_int_equal(symlink("elsewhere", path), 0); /* what lies there is not followed */
  assert_int_equal(ni_pq_create(&w, path, one_int, 1, NULL, message, sizeof message), -EEXIST);
  assert_int_equal(n_entries(), 1);
}

static void full_disk(void **unused) {
  (void)unused;
  struct ni_pq *w;
  /* A limit in the middle of the file: append says so, and again; nothing stays. */
  struct rlimit old, limit;
  getrlimit(RLIMIT_FSIZE, &old);
  limit = old;
  limit.rlim_cur = 300000;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  w = create(
      one_int,
      &(struct ni_pq_options){.codec = ni_pq_codec_default(), .no_dict = true, .row_group_rows = 10000});
  int64_t *v = calloc(10000, sizeof *v);
  for (uint64_t i = 0; i < 10000; i++)
    v[i] = (int64_t)ni_spread(i + 1); /* no codec makes them shorter */
  int rc = 0, calls = 0;
  while (rc == 0 && calls++ < 100)
    rc = ni_pq_append(w, &(struct ni_pq_column){.values = v}, 10000);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  assert_int_equal(rc, -EFBIG);
  assert_int_equal(calls, 4); /* 80 kB each */
  assert_non_null(strstr(ni_pq_error(w), path));
  assert_int_equal(ni_pq_finish(w, NULL), -EFBIG);
  ni_pq_abort(w);
  free(v);
  assert_int_equal(n_entries(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(bad_arguments, setup, teardown),
                                     cmocka_unit_test_setup_teardown(bad_rows, setup, teardown),
                                     cmocka_unit_test_setup_teardown(names_on_disk, setup, teardown),
                                     cmocka_unit_test_setup_teardown(full_disk, setup, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
