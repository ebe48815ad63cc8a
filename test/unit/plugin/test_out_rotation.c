/*
 * Rotation and retention of log files: limits of size, folder and age; what others did to the files
 * meanwhile.
 */
#include "out_dir.h"

static void rotation_by_size(void **state) {
  (void)state;
  struct ni_out o = open_out(1000, 0, 0);
  ni_out_set_preamble(&o, "process\n", 8);
  for (unsigned i = 0; i < 10; i++)
    assert_int_equal(ni_out_write(&o, block(i, 300), 300, 1, i, false), 0);
  assert_int_equal(ni_out_files(&o), 4);
  unsigned char count[10] = {0};
  assert_int_equal(read_back(DIR_AB, count, 10), 10);
  struct stat st;
  assert_int_equal(stat(SECOND_FILE, &st), 0);
  assert_int_equal(st.st_size, 908);
  /* A block larger than the limit gets a file of its own. */
  assert_int_equal(ni_out_write(&o, block(0, 5000), 5000, 1, 20, false), 0);
  assert_int_equal(ni_out_files(&o), 5);
  assert_int_equal(ni_out_lost(&o).expired_records, 0);
  ni_out_close(&o, NULL);
}

static void directory_limit(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 8000, 0); /* files of 1000 */
  uint64_t disk;
  for (unsigned i = 0; i < 100; i++) {
    assert_int_equal(ni_out_write(&o, block(i, 400), 400, 2, i, false), 0);
    assert_true(ni_out_bytes(&o) <= 8000);
  }
  struct ni_out_lost lost = ni_out_lost(&o);
  unsigned char count[100] = {0};
  int blocks = read_back(DIR_AB, count, 100);
  disk = ni_out_bytes(&o);
  assert_int_equal(disk, 400 * (unsigned)blocks);
  /* what is gone is counted to the record */
  assert_int_equal(lost.expired_records, 2 * (100 - (unsigned)blocks));
  assert_int_equal(lost.expired_files, ni_out_files(&o) - (unsigned)n_files(DIR_AB));
  assert_true(blocks >= 15);
  for (int i = 0; i < 100; i++)
    assert_int_equal(count[i], i >= 100 - blocks); /* the newest stay */
  ni_out_close(&o, NULL);
}

static void keep_seconds(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 16); /* a file lives 2 s */
  const uint64_t s = 1000000000;
  for (unsigned i = 0; i < 60; i++)
    assert_int_equal(ni_out_write(&o, block(i, 100), 100, 1, 5 * s + i * s, false), 0);
  unsigned char count[60] = {0};
  int blocks = read_back(DIR_AB, count, 60);
  assert_int_equal(ni_out_lost(&o).expired_records, 60 - blocks);
  assert_true(blocks >= 16 && blocks <= 20);
  /* Idle: ticks without data expire the rest apart from the current file. */
  ni_out_expire(&o, 200 * s);
  ni_out_expire(&o, 300 * s);
  assert_int_equal(n_files(DIR_AB), 1);
  assert_int_equal(ni_out_lost(&o).expired_records, 60 - read_back(DIR_AB, count, 60));
  ni_out_close(&o, NULL);
}

/* The old file is closed when the new one is there, and not before. */
static void rotation_without_a_new_file(void **state) {
  (void)state;
  const uint64_t s = 1000000000;
  struct ni_out o = open_out(1000, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 900), 900, 1, s, false), 0);
  plan_open_errno = ENOSPC;
  for (unsigned i = 1; i < 5; i++)
    assert_int_equal(ni_out_write(&o, block(i, 900), 900, 1, s + i, false), 0);
  assert_int_equal(ni_out_rotation_error(&o), -ENOSPC);
  assert_string_equal(ni_out_path(&o), FIRST);
  plan_open_errno = 0;
  assert_int_equal(ni_out_write(&o, block(5, 900), 900, 1, 5 * s, false), 0); /* too early for the next try */
  assert_int_equal(ni_out_files(&o), 1);
  assert_int_equal(ni_out_write(&o, block(6, 900), 900, 1, 7 * s, false), 0);
  assert_int_equal(ni_out_files(&o), 2);
  assert_int_equal(ni_out_rotation_error(&o), 0);
  assert_int_equal(ni_out_bytes(&o), 7 * 900);
  unsigned char count[7] = {0};
  assert_int_equal(read_back(DIR_AB, count, 7), 7);
  /* The new file's head does not fit: it is taken away again. */
  ni_out_set_preamble(&o, "process\n", 8);
  plan_write_errno = ENOSPC;
  plan_write_times = 1;
  assert_int_equal(ni_out_write(&o, block(0, 900), 900, 1, 8 * s, false), 0);
  assert_int_equal(n_files(DIR_AB), 2);
  ni_out_close(&o, NULL);
}

/* Rotation must not remove a file that somebody put in the place of ours. */
static void replaced_files_are_not_removed(void **state) {
  (void)state;
  struct ni_out o = open_out(1000, 2000, 0);
  assert_int_equal(ni_out_write(&o, block(0, 900), 900, 3, 1, false), 0);
  assert_int_equal(ni_out_write(&o, block(1, 900), 900, 3, 2, false), 0);
  FILE *f = fopen(in_root("new"), "w");
  fputs("mine", f);
  fclose(f);
  assert_int_equal(rename(in_root("new"), FIRST), 0);
  assert_int_equal(ni_out_write(&o, block(2, 900), 900, 3, 3, false), 0);
  assert_int_equal(access(FIRST, F_OK), 0);
  assert_int_equal(ni_out_lost(&o).expired_records, 0);
  assert_int_equal(ni_out_lost(&o).deleted_records, 3);
  ni_out_close(&o, NULL);
}

static void directory_deleted(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 7, 1, false), 0);
  assert_int_equal(unlink(FIRST), 0);
  assert_int_equal(rmdir(DIR_AB), 0);
  assert_int_equal(rmdir(in_root("a")), 0);
  assert_int_equal(ni_out_write(&o, block(1, 100), 100, 5, 2, false), 0);
  struct ni_out_lost lost;
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 1);
  assert_int_equal(count[1], 1);
  lost = ni_out_lost(&o);
  assert_int_equal(lost.deleted_files, 1);
  assert_int_equal(lost.deleted_records, 7);
  assert_int_equal(unlink(ni_out_path(&o)), 0);
  assert_int_equal(ni_out_close(&o, &lost), 0); /* noticed at close, too */
  assert_int_equal(lost.deleted_records, 12);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(rotation_by_size),
      T(directory_limit),
      T(keep_seconds),
      T(rotation_without_a_new_file),
      T(replaced_files_are_not_removed),
      T(directory_deleted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
