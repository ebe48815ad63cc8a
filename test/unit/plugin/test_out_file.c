/* One log file: names, descriptors, and every way in which writing it may fail. */
#include "out_dir.h"

static void names_and_modes(void **state) {
  (void)state;
  umask(022);
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(n_files(DIR_AB), -1); /* nothing is created before there is something to write */
  assert_int_equal(ni_out_write(&o, "", 0, 0, 1, false), 0);
  assert_int_equal(n_files(DIR_AB), -1);
  assert_int_equal(ni_out_set_preamble(&o, "process\n", 8), 0);
  assert_int_equal(ni_out_write(&o, "", 0, 0, 1, false), 0); /* but a head */
  assert_string_equal(ni_out_path(&o), FIRST);
  assert_int_equal(ni_out_bytes(&o), 8);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, false), 0);
  assert_string_equal(ni_out_path(&o), FIRST);
  assert_int_equal(ni_out_files(&o), 1);
  assert_int_equal(ni_out_bytes(&o), 108);
  struct stat st;
  assert_int_equal(stat(FIRST, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0644);
  assert_int_equal(st.st_size, 108);
  assert_int_equal(stat(DIR_AB, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0755);
  /*
   * A second one with the same name (pid 1 in two containers) takes the next number and leaves the first
   * alone.
   */
  struct ni_out p = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&p, block(1, 50), 50, 1, 1, false), 0);
  assert_string_equal(ni_out_path(&p), SECOND_FILE);
  assert_int_equal(stat(FIRST, &st), 0);
  assert_int_equal(st.st_size, 108);
  assert_int_equal(ni_out_close(&o, NULL), 0);
  assert_int_equal(ni_out_close(&p, NULL), 0);
  assert_int_equal(ni_out_close(&p, NULL), 0);
}

static void descriptors(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  int keep = dup(0);
  close(0);
  int err = ni_out_write(&o, block(0, 100), 100, 1, 1, false);
  bool free0 = fcntl(0, F_GETFD) < 0;
  dup2(keep, 0);
  close(keep);
  assert_int_equal(err, 0);
  assert_true(free0); /* stdin's number stays free */
  int found = 0;
  for (int fd = 3; fd < 64; fd++) {
    char link[64], to[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, to, sizeof to - 1);
    if (n <= 0)
      continue;
    to[n] = 0;
    if (strcmp(to, FIRST) != 0)
      continue;
    found++;
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_APPEND);
    /*
     * The host closes what it does not know and opens its own file under the number: that file stays as it
     * is.
     */
    int own = open(in_root("host-file"), O_RDWR | O_CREAT, 0600);
    dup2(own, fd);
    close(own);
    assert_int_equal(ni_out_write(&o, block(1, 100), 100, 1, 2, false), 0);
    struct stat st;
    assert_int_equal(stat(in_root("host-file"), &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(fcntl(fd, F_GETFD), 0); /* and still open */
    close(fd);
    break;
  }
  assert_int_equal(found, 1);
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 2);
  assert_int_equal(ni_out_lost(&o).deleted_records, 0);
  ni_out_close(&o, NULL);
}

static void symlinks_are_not_followed(void **state) {
  (void)state;
  assert_int_equal(mkdir(in_root("a"), 0755) | mkdir(DIR_AB, 0755), 0);
  assert_int_equal(symlink(in_root("victim"), FIRST), 0);
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, false), 0);
  assert_string_equal(ni_out_path(&o), SECOND_FILE);
  assert_int_equal(access(in_root("victim"), F_OK), -1);
  ni_out_close(&o, NULL);
}

static void short_writes_are_completed(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  plan_short = 5;
  assert_int_equal(ni_out_write(&o, block(0, 4000), 4000, 1, 1, false), 0);
  plan_write_errno = EINTR;
  plan_write_times = 3;
  assert_int_equal(ni_out_write(&o, block(1, 4000), 4000, 1, 2, false), 0);
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 2);
  ni_out_close(&o, NULL);
}

/*
 * Disk full in the middle of a block: cut back, the caller offers the block again, the file was never
 * invalid.
 */
static void disk_full(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  struct stat st;
  assert_int_equal(ni_out_write(&o, block(0, 1000), 1000, 1, 1000, false), 0);
  static const int errs[] = {ENOSPC, EDQUOT, EROFS};
  for (int i = 0; i < 3; i++) {
    plan_short = 1;
    plan_write_errno = errs[i];
    plan_write_times = 1;
    assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, 1000, true), -errs[i]);
    assert_int_equal(stat(FIRST, &st), 0);
    assert_int_equal(st.st_size, 1000);
  }
  /* The pause: no system call before it is over, and it grows. */
  uint64_t due = ni_out_next_try_ns(&o);
  assert_int_equal(due, 1000 + 40000000);
  assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, due - 1, false), -EAGAIN);
  assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, due, false), 0);
  assert_int_equal(ni_out_next_try_ns(&o), 0);
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 2);
  assert_int_equal(ni_out_files(&o), 1);
  ni_out_close(&o, NULL);
}

static void pause_is_bounded(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  plan_open_errno = EACCES;
  uint64_t t = 1, tries = 0;
  while (t < UINT64_C(60000000000)) {
    assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, t, false), -EACCES);
    assert_true(ni_out_next_try_ns(&o) > t);
    assert_true(ni_out_next_try_ns(&o) <= t + UINT64_C(5000000000));
    t = ni_out_next_try_ns(&o);
    tries++;
  }
  assert_true(tries > 15 && tries < 30);
  plan_open_errno = 0;
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, t, false), 0);
  ni_out_close(&o, NULL);
}

static void torn_file_is_left(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 1000), 1000, 1, 1, false), 0);
  plan_short = 1;
  plan_write_errno = ENOSPC;
  plan_write_times = 1;
  plan_trunc_errno = EIO;
  assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, 1, true), -ENOSPC);
  plan_trunc_errno = 0;
  assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, 1, true), 0);
  assert_string_equal(ni_out_path(&o), SECOND_FILE);
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 2);
  assert_int_equal(count[1], 1);
  ni_out_close(&o, NULL);
}

/* A limit of the file length gives an error or a new file, never the signal that would kill the job. */
static void file_length_limit(void **state) {
  (void)state;
  struct rlimit old, lim;
  getrlimit(RLIMIT_FSIZE, &old);
  lim = old;
  lim.rlim_cur = 2500;
  signal(SIGXFSZ, SIG_DFL);
  struct ni_out o = open_out(0, 0, 0);
  setrlimit(RLIMIT_FSIZE, &lim);
  int err[6];
  for (unsigned i = 0; i < 5; i++)
    err[i] = ni_out_write(&o, block(i, 1000), 1000, 1, 1, true);
  err[5] = ni_out_write(&o, block(5, 3000), 3000, 1, 1, true);
  for (int i = 0; i < 20; i++)
    ni_out_write(&o, block(5, 3000), 3000, 1, 1, true);
  setrlimit(RLIMIT_FSIZE, &old);
  for (int i = 0; i < 5; i++)
    assert_int_equal(err[i], 0);
  assert_int_equal(err[5], -EFBIG);
  assert_true(n_files(DIR_AB) <= 4); /* retries do not leave a file each */
  assert_int_equal(ni_out_write(&o, block(5, 3000), 3000, 1, 1, true), 0);
  unsigned char count[6] = {0};
  assert_int_equal(read_back(DIR_AB, count, 6), 6);
  ni_out_close(&o, NULL);
}

static void a_failing_preamble_leaves_no_file(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  ni_out_set_preamble(&o, "process\n", 8);
  plan_write_errno = ENOSPC;
  plan_write_times = 3;
  for (int i = 0; i < 3; i++)
    assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), -ENOSPC);
  assert_int_equal(n_files(DIR_AB), 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), 0);
  assert_string_equal(ni_out_path(&o), FIRST);
  ni_out_close(&o, NULL);
}

static void impossible_directories(void **state) {
  (void)state;
  FILE *f = fopen(in_root("a"), "w");
  fclose(f);
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), -ENOTDIR);
  assert_int_equal(unlink(in_root("a")), 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), 0);
  ni_out_close(&o, NULL);
  char longdir[5000];
  memset(longdir, 'd', sizeof longdir - 1);
  longdir[sizeof longdir - 1] = 0;
  struct ni_out_options opt = {longdir, "h", 1, 1, ".jsonl", 0, 0, 0};
  assert_int_equal(ni_out_init(&o, &opt), -ENAMETOOLONG);
  assert_null(o.s);
  assert_int_equal(ni_out_close(&o, NULL), 0);
}

static void relative_directories_survive_chdir(void **state) {
  (void)state;
  char cwd[512];
  assert_non_null(getcwd(cwd, sizeof cwd));
  assert_int_equal(chdir(root), 0);
  struct ni_out o;
  struct ni_out_options opt = {"a/b", "node/1", 42, 1790000000, ".jsonl", 0, 0, 0};
  assert_int_equal(ni_out_init(&o, &opt), 0);
  assert_int_equal(chdir(cwd), 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), 0);
  assert_string_equal(ni_out_path(&o), FIRST);
  ni_out_close(&o, NULL);
}

/* 3,000 blocks against a system that fails every fourth call: each accepted block is there once, no other. */
static void storm(void **state) {
  (void)state;
  enum { N = 3000 };
  static unsigned char count[N];
  memset(count, 0, sizeof count);
  struct ni_out o = open_out(20000, 0, 0);
  ni_out_set_preamble(&o, "process\n", 8);
  plan_random = true;
  int failures = 0;
  for (unsigned i = 0; i < N; i++) {
    size_t n = 20 + next() % 3000;
    while (ni_out_write(&o, block(i, n), n, 1, i, true) != 0)
      failures++;
  }
  plan_random = false;
  struct ni_out_lost lost;
  ni_out_close(&o, &lost);
  assert_true(failures > 100); /* of some 900 planned ones: the others were cured at once */
  int blocks = read_back(DIR_AB, count, N);
  assert_int_equal(blocks, N);
  for (int i = 0; i < N; i++)
    assert_int_equal(count[i], 1);
  assert_int_equal(lost.deleted_records + lost.expired_records + lost.doubtful_records, 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(names_and_modes),
      T(descriptors),
      T(symlinks_are_not_followed),
      T(short_writes_are_completed),
      T(disk_full),
      T(pause_is_bounded),
      T(torn_file_is_left),
      T(file_length_limit),
      T(a_failing_preamble_leaves_no_file),
      T(impossible_directories),
      T(relative_directories_survive_chdir),
      T(storm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
