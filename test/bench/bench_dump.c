/*
 * bench_dump SO MODE [args]: what the plugin costs beside its callbacks. One number a line, "name value".
 *
 *   records N RATE       N operations of varying sizes and times at RATE a second (0: burst), then finalize:
 *                        CPU of all other threads per record (us), bytes on disk per record, finalize (ms)
 *   memory N [INTERFACE] N operations finished but not written (interval 30 s wanted): growth of the process per operation
 *   comms C N RATE       C communicators, N operations each in turn: RSS growth (MB) after they are written
 *   idle SECONDS         one quiet communicator: CPU of all other threads, percent of a core
 *   finalize             nothing pending: milliseconds
 * The dump directory comes from NCCL_INSPECTOR_DUMP_DIR, the interval from
 * NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS.
 */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plug.h"

static struct plug plug;

/* CPU nanoseconds of all threads but the calling one. */
static uint64_t others_cpu_ns(void) {
  uint64_t sum = 0;
  DIR *d = opendir("/proc/self/task");
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
      continue;
    char path[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
    FILE *f = fopen(path, "r");
    unsigned long long ns = 0;
    if (f && fscanf(f, "%llu", &ns) == 1)
      sum += ns;
    if (f)
      fclose(f);
  }
  if (d)
    closedir(d);
  return sum;
}

static double rss_mb(void) {
  long pages = 0, ignore;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f && fscanf(f, "%ld %ld", &ignore, &pages) != 2)
    pages = 0;
  if (f)
    fclose(f);
  return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static double dir_bytes(void) {
  const char *dir = getenv("NCCL_INSPECTOR_DUMP_DIR");
  double sum = 0;
  DIR *d = dir ? opendir(dir) : NULL;
  for (struct dirent *e; d && (e = readdir(d));) {
    struct stat st;
    if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0)
      sum += (double)st.st_size;
  }
  if (d)
    closedir(d);
  return sum;
}

enum { LAG_NS = 8000, SHORTEST_NS = 160 };

static uint64_t seed = 88172645463325252u;
static uint64_t rnd(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

/* A mix that compresses like training: a handful of sizes, times that scatter by some percent. */
static void varied(void *ctx, struct plug_op *o) {
  static const size_t counts[] = {2048, 16384, 262144, 1048576, 8388608, 33554432};
  static const uint64_t base[] = {14000, 22000, 61000, 130000, 620000, 2300000};
  static const char *const funcs[] = {"AllReduce", "AllReduce", "ReduceScatter", "AllGather"};
  uint64_t r = rnd();
  unsigned i = (unsigned)(r % 6);
  o->op.coll.count = counts[i];
  o->op.coll.func = funcs[(r >> 8) % 4];
  o->op.coll.proto = i < 2 ? "LL" : "SIMPLE";
  uint64_t exec = base[i] + (r >> 16) % (base[i] / 5);
  void *op = plug_launch(&plug, ctx, o);
  /* A device that is never idle and was polled LAG_NS after the end: stamps follow each other, and the
   * relation of the two clocks stays what it is. Otherwise they would be found impossible, or the relation
   * stated again with each record. */
  static uint64_t free_at;
  uint64_t now = plug_now_ns(), start = now - LAG_NS - exec;
  if (start < free_at)
    start = free_at;
  exec = start + SHORTEST_NS > now - LAG_NS ? SHORTEST_NS : now - LAG_NS - start;
  free_at = start + exec + 8 * 32 + 64;
  o->gpu_ns = start - exec - 2000; /* plug_channels adds these */
  plug_channels(&plug, ctx, o, op, 8, exec / 32 * 32);
}

static void pace(uint64_t begin, double rate, long i) {
  if (rate <= 0)
    return;
  uint64_t due = begin + (uint64_t)(1e9 * (double)i / rate);
  while (plug_now_ns() < due) {}
}

static void *new_ctx(uint64_t hash) { return plug_init(&plug, hash, "bench", 2, 16, 3, plug_quiet); }

/* Not inlined: the gate counts what runs below it (test/gate/gate.py). */
__attribute__((noinline)) static void finalize_timed(void *ctx) {
  uint64_t t = plug_now_ns();
  plug.finalize(ctx);
  printf("finalize_ms %.3f\n", (double)(plug_now_ns() - t) / 1e6);
}

static void records(long n, double rate) {
  void *ctx = new_ctx(0x5eed);
  struct plug_op o;
  plug_op_init(&o, 1, 8);
  uint64_t begin = plug_now_ns();
  for (long i = 0; i < n; i++) {
    pace(begin, rate, i);
    varied(ctx, &o);
  }
  usleep(1300000);
  uint64_t cpu = others_cpu_ns();
  finalize_timed(ctx);
  printf("dump_us_per_record %.3f\n", (double)cpu / 1e3 / (double)n);
  printf("bytes_per_record %.2f\n", dir_bytes() / (double)n);
}

static void memory(long n) {
  void *ctx = new_ctx(0x3e3);
  struct plug_op o;
  plug_op_init(&o, 1, 8);
  for (int i = 0; i < 100; i++)
    varied(ctx, &o);
  usleep(200000);
  double before = rss_mb();
  for (long i = 0; i < n; i++)
    varied(ctx, &o);
  usleep(2000000); /* drained and compressed, not yet written at an interval of 30 s */
  printf("bytes_per_operation %.1f\n", (rss_mb() - before) * 1e6 / (double)n);
  finalize_timed(ctx);
}

static void comms(long c, long n, double rate) {
  void **ctx = calloc((size_t)c, sizeof *ctx);
  struct plug_op *o = calloc((size_t)c, sizeof *o);
  double before = rss_mb();
  for (long i = 0; i < c; i++) {
    ctx[i] = new_ctx(0xc000 + (uint64_t)i);
    plug_op_init(&o[i], 1, 8);
  }
  uint64_t begin = plug_now_ns();
  for (long i = 0; i < n * c; i++) {
    pace(begin, rate, i);
    varied(ctx[i % c], &o[i % c]);
  }
  usleep(2500000);
  printf("rss_growth_mb %.2f\n", rss_mb() - before);
  uint64_t t = plug_now_ns();
  for (long i = 0; i < c; i++)
    plug.finalize(ctx[i]);
  printf("finalize_all_ms %.3f\n", (double)(plug_now_ns() - t) / 1e6);
}

static void idle(double seconds) {
  void *ctx = new_ctx(0x1d1e);
  struct plug_op o;
  plug_op_init(&o, 1, 8);
  for (int i = 0; i < 100; i++)
    varied(ctx, &o);
  usleep(2500000);
  uint64_t cpu = others_cpu_ns();
  usleep((useconds_t)(seconds * 1e6));
  printf("idle_percent %.4f\n", (double)(others_cpu_ns() - cpu) / (seconds * 1e9) * 100);
  finalize_timed(ctx);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: bench_dump SO records|memory|comms|idle|finalize [numbers]\n");
    return 64;
  }
  double a[3] = {0};
  for (int i = 3; i < argc && i < 6; i++)
    a[i - 3] = atof(argv[i]);
  plug = plug_open(argv[1], strcmp(argv[2], "memory") ? 0 : (int)a[1]);
  if (!strcmp(argv[2], "records"))
    records((long)a[0], a[1]);
  else if (!strcmp(argv[2], "memory"))
    memory((long)a[0]);
  else if (!strcmp(argv[2], "comms"))
    comms((long)a[0], (long)a[1], a[2]);
  else if (!strcmp(argv[2], "idle"))
    idle(a[0]);
  else
    finalize_timed(new_ctx(1));
  return 0;
}
