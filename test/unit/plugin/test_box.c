/* The black box's file and header: who may be pruned, how the file grows, what a reader finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/slots/arena.h"
#include "plugin/slots/box/box_file.h"
#include "plugin/os/clock.h"
#include "plugin/os/host.h"

static char dir[] = "/dev/shm/ni-test.XXXXXX";
static char boot[64];

static int no_shm(void) {
  if (dir[0])
    return 0;
  printf("no /dev/shm here\n");
  return 1;
}

static int make_dir(void **state) {
  (void)state;
  if (!mkdtemp(dir))
    dir[0] = 0;
  ni_process_boot_id(boot, sizeof boot);
  return 0;
}

static void empty_dir(void) {
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d)) != NULL;)
    (void)unlinkat(dirfd(d), e->d_name, 0);
  if (d)
    closedir(d);
}

static int remove_dir(void **state) {
  (void)state;
  if (!dir[0])
    return 0;
  empty_dir();
  return rmdir(dir);
}

static struct ni_box_header header(void) {
  struct ni_box_header h = {.byte_order = NI_BOX_BYTE_ORDER, .version = NI_BOX_VERSION, .state = NI_BOX_LIVE};
  memcpy(h.magic, NI_BOX_MAGIC, sizeof h.magic);
  memcpy(h.boot_id, boot, sizeof h.boot_id - 1);
  h.pid_namespace = ni_box_pid_namespace();
  h.pid = 1 << 30; /* nobody's */
  h.start_ticks = 77;
  h.heartbeat_unix_ns = ni_realtime_ns() - 60 * UINT64_C(1000000000);
  return h;
}

static void put(const char *name, const struct ni_box_header *h) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, h, sizeof *h), sizeof *h);
  close(fd);
}

static int is_there(const char *name) {
  char path[128];
  struct stat st;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return lstat(path, &st) == 0;
}

/* One box, and whether pruning takes it away. */
static void prunes(const struct ni_box_header *h, uint32_t expected) {
  const char *name = "nccl-inspector-h-pid1-0000000000000001.box";
  put(name, h);
  assert_int_equal(ni_box_prune(dir, boot), expected);
  assert_int_equal(is_there(name), !expected);
  empty_dir();
}

static void only_what_is_surely_dead_is_pruned(void **state) {
  (void)state;
  if (no_shm())
    skip();
  const uint64_t s = UINT64_C(1000000000), old = ni_realtime_ns() - (NI_BOX_KEEP_SECONDS + 60) * s;
  struct ni_box_header h = header();
  prunes(&h, 0); /* dead, but young: somebody may want to recover it */
  h.heartbeat_unix_ns = old;
  prunes(&h, 1);
  h = header();
  h.heartbeat_unix_ns = old;
  h.pid = getpid(); /* lives */
  h.start_ticks = ni_box_start_ticks(getpid());
  assert_int_not_equal(h.start_ticks, 0);
  prunes(&h, 0);
  h.start_ticks++; /* the number lives, but it is another process */
  prunes(&h, 1);
  h.start_ticks = 0; /* it was not known: but nobody has the file open */
  prunes(&h, 1);
  h = header();
  h.state = NI_BOX_EMPTY; /* nothing to recover: at once */
  prunes(&h, 1);
  h.boot_id[0] ^= 1; /* a boot before this one: dead whoever it was */
  h.pid = getpid();
  prunes(&h, 1);
  h.state = NI_BOX_LIVE;
  prunes(&h, 0);
  h.version++; /* of a release to come: not ours to judge */
  h.state = NI_BOX_EMPTY;
  prunes(&h, 0);
  h.version = 1; /* of one before */
  prunes(&h, 1);
  h = header();
  h.state = NI_BOX_EMPTY;
  h.magic[0] = 'X';
  prunes(&h, 0);
  h = header(); /* a name that is not a box's */
  h.state = NI_BOX_EMPTY;
  put("nccl-inspector-notes.txt", &h);
  put("other.box", &h);
  assert_int_equal(ni_box_prune(dir, boot), 0);
  /* A link is not followed, whatever it leads to; nor is a pipe waited for. */
  char path[128], to[128];
  snprintf(path, sizeof path, "%s/nccl-inspector-link.box", dir);
  snprintf(to, sizeof to, "%s/other.box", dir);
  assert_int_equal(symlink(to, path), 0);
  snprintf(path, sizeof path, "%s/nccl-inspector-pipe.box", dir);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(ni_box_prune(dir, boot), 0);
  assert_true(is_there("other.box") && is_there("nccl-inspector-link.box"));
  empty_dir();
  assert_int_equal(ni_box_prune("/no/such/folder", boot), 0);
}

/* Leases as the machine has them, or refused. */
static int no_leases;
int fcntl(int fd, int command, ...) {
  va_list ap;
  va_start(ap, command);
  long arg = va_arg(ap, long);
  va_end(ap);
  if (no_leases && command == F_SETLEASE) {
    errno = EINVAL;
    return -1;
  }
  return (int)syscall(SYS_fcntl, fd, command, arg);
}

static void of_another_namespace_who_has_it_open_decides(void **state) {
  (void)state;
  if (no_shm())
    skip();
  const char *name = "nccl-inspector-h-pid1-0000000000000002.box";
  char path[128];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  struct ni_box_header h = header();
  h.pid_namespace++;
  h.heartbeat_unix_ns = ni_realtime_ns() - (NI_BOX_KEEP_SECONDS + 60) * UINT64_C(1000000000);
  put(name, &h);
  int fd = open(path, O_RDWR);
  void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  assert_ptr_not_equal(p, MAP_FAILED);
  close(fd);
  assert_int_equal(ni_box_prune(dir, boot), 0); /* mapped: it lives, stopped or not */
  munmap(p, 4096);
  assert_int_equal(ni_box_prune(dir, boot), 1);

  no_leases = 1; /* then the heartbeat decides, where one is promised */
  const uint64_t now = ni_monotonic_ns(), silent = NI_BOX_SILENT_SECONDS * UINT64_C(1000000000);
  assert_true(now > 5000000000);
  prunes(&h, 0);
  h.heartbeat_every_ms = 1000;
  h.heartbeat_ns = now > silent ? now - silent + UINT64_C(60000000000) : now;
  prunes(&h, 0);
  /* On a machine that has just been started no heartbeat can be so old: below 0 it would wrap. */
  h.heartbeat_ns = now - silent - 1;
  if (now > silent)
    prunes(&h, 1);
  no_leases = 0;
}

static void the_oldest_go_when_there_are_many(void **state) {
  (void)state;
  if (no_shm())
    skip();
  struct ni_box_header h = header();
  uint64_t newest = h.heartbeat_unix_ns;
  char name[64];
  for (uint32_t i = 0; i < NI_BOX_KEEP_FILES + 9; i++) {
    h.heartbeat_unix_ns = newest - (i * 7 % (NI_BOX_KEEP_FILES + 9)) * UINT64_C(1000000000);
    snprintf(name, sizeof name, "nccl-inspector-h-pid1-%016x.box",
             (unsigned)(i * 7 % (NI_BOX_KEEP_FILES + 9)));
    put(name, &h);
  }
  assert_int_equal(ni_box_prune(dir, boot), 9);
  for (uint32_t i = 0; i < NI_BOX_KEEP_FILES + 9; i++) {
    snprintf(name, sizeof name, "nccl-inspector-h-pid1-%016x.box", i);
    assert_int_equal(is_there(name), i < NI_BOX_KEEP_FILES);
  }
  empty_dir();
}

/* They take a quarter of what is free without them, and the newest stays, however large it is. */
static void dead_boxes_have_a_share_of_the_file_system(void **state) {
  (void)state;
  if (no_shm())
    skip();
  /* In mounts of our own, which go with us whatever fails. */
  if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("ni-test", dir, "tmpfs", 0, "size=16m"))
    skip();
  struct ni_box_header h = header();
  const uint64_t newest = h.heartbeat_unix_ns;
  const uint32_t mb[] = {1, 1, 1, 0, 1, 1};
  uint32_t n = sizeof mb / sizeof *mb;
  char path[128];
  for (uint32_t i = 0; i < n; i++) {
    snprintf(path, sizeof path, "%s/nccl-inspector-h-pid1-%016x.box", dir, i);
    h.heartbeat_unix_ns = newest - i;
    put(strrchr(path, '/') + 1, &h);
    int fd = open(path, O_WRONLY);
    assert_int_equal(fallocate(fd, 0, 0, mb[i] ? (off_t)mb[i] << 20 : 4096), 0);
    close(fd);
  }
  assert_int_equal(ni_box_prune(dir, boot), 2);
  assert_true(is_there("nccl-inspector-h-pid1-0000000000000003.box"));
  assert_false(is_there("nccl-inspector-h-pid1-0000000000000004.box"));
  empty_dir();
  h.heartbeat_unix_ns = newest;
  put("nccl-inspector-h-pid1-0000000000000001.box", &h);
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  assert_int_equal(fallocate(fd, 0, 0, 8 << 20), 0);
  assert_int_equal(pwrite(fd, &h, sizeof h, 0), sizeof h);
  close(fd);
  h.heartbeat_unix_ns--;
  put("nccl-inspector-h-pid1-0000000000000001.box", &h);
  assert_int_equal(ni_box_prune(dir, boot), 1);
  assert_true(is_there("nccl-inspector-h-pid1-0000000000000005.box"));
  empty_dir();
  assert_int_equal(umount(dir), 0);
}

static uint64_t blocks_of(const char *path) {
  struct stat st;
  return stat(path, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

static void nothing_is_seen_before_it_is_whole(void **state) {
  (void)state;
  if (no_shm())
    skip();
  struct ni_box_file f;
  char why[NI_BOX_WHY_BYTES];
  assert_int_equal(ni_box_file_make(&f, dir, "host", 5, 1 << 20, 4 << 20, why), 0);
  struct stat st;
  assert_true(f.hidden); /* /proc and O_TMPFILE are there on every machine that tests run on */
  assert_int_not_equal(stat(f.path, &st), 0);
  assert_int_equal(ni_box_file_commit(&f, 0, 65536), 0);
  assert_int_equal(ni_box_file_publish(&f), 0);
  assert_int_equal(f.fd, -1);
  assert_int_equal(stat(f.path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
  assert_int_equal(st.st_size, f.bytes);
  assert_int_equal(blocks_of(f.path), 65536); /* sparse */
  assert_int_equal(ni_box_file_commit(&f, 65536, 131072), 0);
  assert_int_equal(blocks_of(f.path), 131072);
  /* Another file of that name is neither grown nor removed. */
  assert_int_equal(unlink(f.path), 0);
  int fd = open(f.path, O_CREAT | O_WRONLY, 0600);
  close(fd);
  assert_int_equal(ni_box_file_commit(&f, 131072, 196608), -ENOENT);
  assert_true(f.gone && !ni_box_file_step(&f, 16));
  ni_box_file_remove(&f);
  assert_int_equal(stat(f.path, &st), 0);
  empty_dir();
  assert_int_equal(ni_box_file_make(&f, "/proc", "host", 5, 1 << 20, 4 << 20, why), -ENODEV);
  assert_non_null(strstr(why, "/proc: not a tmpfs"));
  assert_int_equal(ni_box_file_make(&f, "/no/such/folder", "host", 5, 1 << 20, 4 << 20, why), -ENOENT);
}

/* A length beyond RLIMIT_FSIZE would be a signal. */
static void a_file_size_limit_is_kept(void **state) {
  (void)state;
  if (no_shm())
    skip();
  pid_t pid = fork();
  if (pid == 0) {
    struct rlimit l = {2 << 20, 2 << 20};
    setrlimit(RLIMIT_FSIZE, &l);
    struct ni_box_file f;
    char why[NI_BOX_WHY_BYTES];
    if (ni_box_file_make(&f, dir, "host", 5, 1 << 20, 4 << 20, why) || f.bytes != 2 << 20)
      _exit(1);
    _exit(ni_box_file_make(&f, dir, "host", 5, 3 << 20, 4 << 20, why) == -ENOSPC ? 0 : 2);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  empty_dir();
}

/*
 * The file is long and has memory for its first part only: nobody gets a page beyond that, whatever is asked
 * for.
 */
static void pages_are_taken_below_the_limit(void **state) {
  (void)state;
  if (no_shm())
    skip();
  struct ni_box_file f;
  struct ni_arena a;
  char why[NI_BOX_WHY_BYTES];
  assert_int_equal(ni_box_file_make(&f, dir, "host", 5, 1 << 20, 32 << 20, why), 0);
  assert_int_equal(ni_arena_open(&a, 32 << 20, 64, 64, &f), 0);
  struct ni_region *box = &a.hdr->region[NI_REGION_BOX];
  uint32_t limit = ni_load_rlx(&box->limit), inside = 0;
  assert_in_range(limit, box->first + 256, box->end - 1000);
  for (uint32_t i = 0, page; i < 2000; i++) {
    assert_int_not_equal(page = ni_arena_take(&a, NI_CHUNK_OP_COLL), 0);
    if (page < box->end) {
      assert_in_range(page, box->first, limit - 2);
      inside++;
    }
  }
  assert_in_range(inside, (limit - box->first) / 2 - 1, (limit - box->first) / 2);
  ni_arena_touch_ahead(&a); /* the dump thread's tick */
  assert_true(ni_load_rlx(&box->limit) > limit);
  assert_in_range(ni_arena_take(&a, NI_CHUNK_OP_COLL), limit - 1, ni_load_rlx(&box->limit));
  ni_box_file_remove(&f);
  munmap(a.base, a.map_bytes);
}

/*
 * Chunks come from the file up to its limit, then from ordinary memory; the class map tells a reader of the
 * first alone.
 */
static void what_does_not_fit_is_kept_outside(void **state) {
  (void)state;
  if (no_shm())
    skip();
  struct ni_box_file f;
  struct ni_arena a;
  char why[NI_BOX_WHY_BYTES];
  assert_int_equal(
      ni_box_file_make(&f, dir, "host", 5, ni_arena_box_min_bytes(), ni_arena_box_min_bytes(), why), 0);
  assert_int_equal(ni_arena_open(&a, 4 << 20, 64, 64, &f), 0);
  struct ni_region *box = &a.hdr->region[NI_REGION_BOX], *plain = &a.hdr->region[NI_REGION_PLAIN];
  uint32_t n = 0, inside = 0;
  for (uint32_t page; (page = ni_arena_take(&a, NI_CHUNK_OP_COLL)) != 0; n++) {
    memset(ni_arena_page(&a, page), 0xff, 2 * NI_PAGE_BYTES); /* no SIGBUS */
    int in = page < box->end;
    inside += in;
    assert_int_equal(in ? a.class_map[page] : 0, in ? NI_CHUNK_OP_COLL : 0);
    assert_int_equal(ni_arena_page_class(&a, page + 1), NI_CHUNK_OP_COLL);
    if (!in)
      assert_in_range(page, plain->first, plain->end - 2);
  }
  assert_int_equal(n, a.hdr->budget_pages / 2); /* both together: what the cap gives, as without a box */
  assert_in_range(inside, 100, n - 1);
  assert_int_equal(a.hdr->outside, 2 * (n - inside));
  assert_in_range(ni_load_rlx(&box->watermark), box->end - 1, box->end);
  ni_box_file_remove(&f);
  munmap(a.base, a.map_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_what_is_surely_dead_is_pruned),
      cmocka_unit_test(of_another_namespace_who_has_it_open_decides),
      cmocka_unit_test(dead_boxes_have_a_share_of_the_file_system),
      cmocka_unit_test(the_oldest_go_when_there_are_many),
      cmocka_unit_test(nothing_is_seen_before_it_is_whole),
      cmocka_unit_test(a_file_size_limit_is_kept),
      cmocka_unit_test(pages_are_taken_below_the_limit),
      cmocka_unit_test(what_does_not_fit_is_kept_outside),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
