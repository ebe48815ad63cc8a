/*
 * What a reader says of real logs and black boxes: every record once, whatever happens to the files and to
 * the reader.
 *
 * The logs are the real plugin's, driven by nccl-sim; what they hold is counted by the reader that all other
 * commands use.
 */
#include "watch_made.h"

/* A job's logs in top/NAME. */
static void sim(const char *name, const char *vars, const char *what) {
  sh("mkdir -p %s/%s && env SLURM_JOB_ID=77 SLURM_RESTART_COUNT=2 NCCL_INSPECTOR_ENABLE=1 "
     "NCCL_INSPECTOR_DUMP_DIR=%s/%s "
     "NCCL_INSPECTOR_BLACKBOX=%s %s %s/nccl-sim --quiet --plugin %s/libnccl-profiler-inspector.so %s "
     ">/dev/null 2>&1",
     top, name, top, name, boxes, vars, build, build, what);
}

/* ---- what there is ---- */

static void sums_are(const struct state *s, struct truth t) {
  struct truth got = {0};
  for (size_t i = 0; i < s->n; i++) {
    const struct ni_live_counts *c = &s->row[i];
    got.n += c->n;
    got.bytes += c->bytes;
    got.timed += c->timed;
    assert_string_equal(c->who.job, "77");
    assert_string_equal(c->who.attempt, "2");
    assert_in_range(c->who.rank, 0, 63);
  }
  assert_int_equal(got.n, t.n);
  assert_int_equal(got.bytes, t.bytes);
  assert_int_equal(got.timed, t.timed);
}

static uint64_t written(const struct state *s) {
  uint64_t n = 0;
  for (size_t i = 0; i < s->known.n_members; i++)
    n += s->known.member[i].written;
  return n;
}

/* The same rows, whatever their order. */
static void same_rows(const struct state *a, const struct state *b) {
  assert_int_equal(a->n, b->n);
  for (size_t i = 0; i < a->n; i++) {
    size_t k = 0;
    while (k < b->n &&
           (memcmp(&a->row[i].who, &b->row[k].who, sizeof b->row[k].who) != 0 ||
            strcmp(a->row[i].func, b->row[k].func) != 0 || a->row[i].size_class != b->row[k].size_class))
      k++;
    if (k == b->n)
      fail_msg("no row %s %s %s rank %d gpu %d %s", a->row[i].who.job, a->row[i].who.attempt,
               a->row[i].who.comm, a->row[i].who.rank, a->row[i].who.gpu, a->row[i].func);
    assert_memory_equal(&a->row[i].n, &b->row[k].n, 7 * sizeof(uint64_t));
    assert_memory_equal(a->row[i].took, b->row[k].took, sizeof a->row[i].took);
    assert_memory_equal(a->row[i].bus, b->row[k].bus, sizeof a->row[i].bus);
  }
}

/* ---- tests ---- */

static void every_record(void **ctx) {
  (void)ctx;
  static const char *const names[] = {"nodes", "multi", "plain", "rotated", "interval"};
  char dir[256];
  strcpy(node, "sim-node0");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    path_of(dir, names[i]);
    if (i > 0)
      gethostname(node, sizeof node);
    struct truth t = truth_of(dir);
    struct state whole = {0}, pieces;
    assert_true(t.n > 100);
    read_all(&whole, dir, 0);
    sums_are(&whole, t);
    assert_int_equal(whole.totals.bad_lines + whole.totals.damages + whole.totals.keys_left_out, 0);
    assert_int_equal(written(&whole), t.n);
    assert_true(whole.begins > 0);
    for (size_t k = 0; k < whole.known.n_files; k++)
      assert_true(whole.known.file[k].pid > 0 && whole.known.file[k].start_ns > 0);
    for (unsigned seed = 1; seed < 12; seed++) {
      pieces = (struct state){0};
      read_all(&pieces, dir, seed);
      same_rows(&whole, &pieces);
      assert_int_equal(written(&pieces), t.n);
      free_state(&pieces);
    }
    free_state(&whole);
  }
}

/* Files that come in pieces, cut anywhere, while readers come and go. */
static void grows_in_pieces(void **ctx) {
  (void)ctx;
  static const char *const names[] = {"multi", "plain", "rotated", "bare"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char from[256], to[256], *dir = to;
    struct ni_files f = {0};
    struct state s = {.stop_after = -1}, whole = {0};
    unsigned seed = 7;
    bool more;
    strcpy(node, strcmp(names[i], "bare") == 0 ? "node-0" : own_node);
    path_of(from, names[i]);
    snprintf(to, sizeof to, "%s/pieces/%s", top, names[i]); /* NVIDIA's logs have no job but their folder */
    sh("rm -rf %s && mkdir -p %s", to, to);
    dir = from;
    assert_int_equal(ni_discover(&f, &dir, 1), 0);
    dir = to;
    struct ni_watch *w = watch(&s, &dir, 1);
    for (size_t k = 0; k < f.n; k++) {
      char path[512], bytes[4096];
      snprintf(path, sizeof path, "%s/%s", to, ni_path_name(f.file[k].path));
      FILE *in = fopen(f.file[k].path, "rb"), *out = fopen(path, "wb");
      setbuf(out, NULL);
      for (size_t n, got; n = (size_t)rand_r(&seed) % (rand_r(&seed) % 3 ? 40 : sizeof bytes) + 1,
                          (got = fread(bytes, 1, n, in)) > 0;) {
        assert_int_equal(fwrite(bytes, 1, got, out), got);
        assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
        if (rand_r(&seed) % 20)
          continue;
        ni_watch_close(w);
        w = watch(&s, &dir, 1);
      }
      fclose(in);
      fclose(out);
    }
    ni_watch_close(w);
    read_all(&s, to, 0);
    read_all(&whole, from, 0);
    same_rows(&whole, &s);
    assert_int_equal(s.totals.damages + s.totals.bad_lines, 0);
    assert_int_equal(s.totals.lines, whole.totals.lines);
    assert_int_equal(s.totals.bytes, whole.totals.bytes);
    free_state(&s);
    free_state(&whole);
    ni_files_free(&f);
  }
  strcpy(node, own_node);
}

/* Length of the member at p, and how many operations are in it. */
static size_t member_at(unsigned char *p, size_t n, unsigned *ops) {
  static char text[8 << 20];
  z_stream z = {.next_in = p, .avail_in = (uInt)n, .next_out = (Bytef *)text, .avail_out = sizeof text - 1};
  assert_int_equal(inflateInit2(&z, 31), Z_OK);
  assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
  text[z.total_out] = 0;
  *ops = 0;
  for (char *at = text; (at = strstr(at, "_perf\":{")); at++)
    ++*ops;
  size_t took = z.total_in;
  inflateEnd(&z);
  return took;
}

static void damaged_members(void **ctx) {
  (void)ctx;
  char from[256], to[256], path[512], *dir = from;
  struct ni_files f = {0};
  unsigned seed = 3;
  path_of(from, "interval");
  path_of(to, "damaged");
  assert_int_equal(ni_discover(&f, &dir, 1), 0);
  dir = to;
  static unsigned char bytes[4 << 20], bad[4 << 20];
  FILE *in = fopen(f.file[0].path, "rb");
  size_t n = fread(bytes, 1, sizeof bytes, in);
  fclose(in);
  size_t start[4096], count = 0, total = 0;
  unsigned ops[4096];
  for (size_t at = 0; at < n; at += member_at(bytes + at, n - at, &ops[count - 1]))
    start[count++] = at;
  for (size_t i = 0; i < count; i++)
    total += ops[i];
  assert_true(count > 5);
  start[count] = n;
  for (int round = 0; round < 30; round++) {
    struct state s = {0};
    size_t k = 1 + (size_t)rand_r(&seed) % (count - 1),
           at = start[k] + (size_t)rand_r(&seed) % (start[k + 1] - start[k]);
    uint64_t got = 0;
    memcpy(bad, bytes, n);
    bad[at] ^= (unsigned char)(1 + rand_r(&seed) % 255);
    /* flags ("it is text"), time and system matter to nobody */
    if (at - start[k] >= 3 && at - start[k] < 10)
      continue;
    sh("rm -rf %s && mkdir %s", to, to);
    snprintf(path, sizeof path, "%s/%s", to, ni_path_name(f.file[0].path));
    FILE *out = fopen(path, "wb");
    fwrite(bad, 1, n, out);
    fclose(out);
    read_all(&s, to, round % 2 ? (unsigned)round : 0);
    for (size_t i = 0; i < s.n; i++)
      got += s.row[i].n;
    bool last = k == count - 1; /* it may look as if its end had not come yet */
    if (!last)
      assert_int_equal(s.totals.damages, 1);
    assert_int_equal(got, total - ops[k]);
    free_state(&s);
  }
  ni_files_free(&f);
}

/* Another file in its place, with the same number; a file that was cut. */
static void replaced_files(void **ctx) {
  (void)ctx;
  char a[256], b[256], to[256], *dir = to;
  bool more;
  path_of(a, "nodes");
  path_of(b, "multi");
  path_of(to, "replaced");
  sh("rm -rf %s && mkdir %s && cat $(ls %s/*.gz | head -n 1) >%s/$(hostname)-pid1-1.jsonl.gz", to, to, b, to);
  struct truth t1 = truth_of(to);
  struct state s = {.stop_after = -1};
  struct ni_watch *w = watch(&s, &dir, 1);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  sums_are(&s, t1);
  sh("cat $(ls %s/*.gz | head -n 1) >%s/$(hostname)-pid1-1.jsonl.gz", a, to); /* the same inode */
  struct truth t2 = truth_of(to);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  sums_are(&s, (struct truth){t1.n + t2.n, t1.bytes + t2.bytes, t1.timed + t2.timed});
  sh("mv %s/*.jsonl.gz %s/$(hostname)-pid1-2.jsonl.gz", to, to); /* another name alone is no other file */
  for (int i = 0; i < 3; i++)
    assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  sums_are(&s, (struct truth){t1.n + t2.n, t1.bytes + t2.bytes, t1.timed + t2.timed});
  assert_int_equal(s.look.logs, 1);
  ni_watch_close(w);
  free_state(&s);
}

/* What is no log: links, pipes, other nodes' and other names; logs that nobody has touched for long. */
static void passes_over(void **ctx) {
  (void)ctx;
  char to[256], *dir = to;
  bool more;
  path_of(to, "others");
  sh("rm -rf %s && mkdir %s && cd %s && h=$(hostname) && src=$(ls %s/nodes/*.gz | head -n 1) && cp $src "
     "x.jsonl.gz && ln -s x.jsonl.gz "
     "$h-pid1-1.jsonl.gz && mkfifo $h-pid2-1.jsonl.gz && cp $src other-pid3-1.jsonl.gz && cp $src "
     "$h-pid4-1.txt && "
     "cp $src $h-pid5-1.jsonl.gz && touch -d '20 minutes ago' $h-pid5-1.jsonl.gz && head -c 50000000 "
     "/dev/zero | gzip >$h-pid6-1.jsonl.gz",
     to, to, to, top);
  struct state s = {.stop_after = -1};
  struct ni_watch *w = watch(&s, &dir, 1);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_int_equal(s.n, 0);
  assert_int_equal(s.look.logs, 1);
  assert_int_equal(s.totals.damages, 1);
  sh("touch %s/$(hostname)-pid5-1.jsonl.gz %s", to, to);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_int_equal(s.look.logs, 2);
  assert_true(s.n > 0);
  /*
   * One that is over leaves the list, and is not read again from its beginning when it is touched, or grows
   * after all.
   */
  uint64_t lines = s.totals.lines;
  sh("cd %s && touch -d '12 minutes ago' *.gz && touch .", to);
  for (int i = 0; i < 3; i++)
    assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_int_equal(s.look.logs, 1); /* the other one did not say that it was its last */
  sh("cd %s && touch -d '21 minutes ago' *-pid6-* && touch .", to);
  for (int i = 0; i < 3; i++)
    assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_int_equal(s.look.logs, 0);
  sh("cd %s && touch *.gz .", to);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_int_equal(s.look.logs, 2);
  assert_int_equal(s.totals.lines, lines);
  sh("cd %s && touch -d '12 minutes ago' *-pid5-* && touch .", to);
  for (int i = 0; i < 2; i++)
    assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  sh("cd %s && cat $(ls %s/nodes/*.gz | head -n 1) >>$(ls *-pid5-*) && touch .", to, top);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_int_equal(s.totals.lines, 2 * lines);
  /* More than there is room for: so many are left out, also where the folder is not listed again. */
  sh("cd %s && seq -f $(hostname)-pid7%%05g-1.jsonl 8192 | xargs touch && touch -d '1 minute ago' .", to);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
    assert_int_equal(s.look.logs, 8192);
    assert_int_equal(s.look.unread, 2);
  }
  ni_watch_close(w);
  free_state(&s);
}

/* GPUs of lives that nobody asks for any more make room; those stay that somebody does. */
static void gpus_of_lives(void **ctx) {
  (void)ctx;
  enum { HALF = 32768 };
  struct ni_rows r;
  assert_int_equal(ni_rows_open(&r, false, NULL), 0);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < HALF - 2; i++)
      assert_int_equal(ni_rows_comm(&r, 2 + i, (uint64_t)round, 5, 0, 1, "0000:1B:00.0", NULL), 0);
    assert_int_equal(ni_rows_comm(&r, 1, 7, 5, 3, 2, "0000:1B:00.0", NULL), 0);
    ni_rows_turn(&r);
    assert_int_equal(r.n_gpus, round == 1 ? 1 : HALF - 1); /* there is room for them all at first */
    assert_int_equal(ni_rows_comm(&r, 1, 7, 5, 3, 2, "0000:1B:00.0", NULL), 0);
    assert_int_equal(r.n_gpus, round == 1 ? 1 : HALF - 1); /* it is found */
  }
  ni_rows_close(&r);
}

/* Three ranks have called ten AllReduces when the fourth comes, 8 s after the first call and 1 ms apart: they
 * waited for 8 s and a little, not ten times that. */
static void late_to_many_at_once(void **ctx) {
  (void)ctx;
  enum { CALLS = 10 };
  const uint64_t began = UINT64_C(1790000000000000000), ms = 1000000;
  struct ni_rows r;
  char line[1024];
  uint64_t late_n = 0, late_ns = 0;
  assert_int_equal(ni_rows_open(&r, false, NULL), 0);
  ni_rows_begin(&r, &(struct ni_live_file){.pid = 1});
  for (int rank = 0; rank < 4; rank++)
    assert_int_equal(ni_rows_comm(&r, 1, 7, 0xabc, rank, rank, "", &(struct ni_live_who){.rank = rank}), 0);
  for (int rank = 0; rank < 4; rank++)
    for (unsigned i = 0; i < CALLS; i++) {
      const uint64_t called = began + (rank == 3 ? 8000 * ms + i * ms : i * ms);
      const int n = snprintf(
          line, sizeof line,
          "{\"header\":{\"id\":\"0xabc\",\"comm_name\":\"tp\",\"rank\":%d,\"n_ranks\":4,\"nnodes\":1},"
          "\"metadata\":{\"inspector_output_format_version\":\"v4.2\",\"dump_timestamp_us\":%llu,"
          "\"hostname\":\"n\",\"pid\":1},"
          "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":%u,\"coll_msg_size_bytes\":1024,\"coll_exec_"
          "time_us\":50,"
          "\"coll_timing_source\":\"kernel_gpu\",\"coll_enqueue_ns\":%llu,\"rec_sn\":%u}}",
          rank, (unsigned long long)(began / 1000 + 9000000), i, (unsigned long long)called, i);
      assert_int_equal(ni_rows_add_line(&r, line, (size_t)n), 0);
    }
  for (uint32_t i = 0; i < r.b.n_counts; i++) {
    if (r.b.counts[i].late_n)
      assert_int_equal(r.b.counts[i].who.rank, 3);
    late_n += r.b.counts[i].late_n;
    late_ns += r.b.counts[i].late_ns;
  }
  assert_int_equal(late_n, CALLS);
  assert_in_range(late_ns, 8000 * ms, 8000 * ms + CALLS * ms);
  ni_rows_close(&r);
}

/* A job that runs: found by its boxes alone. */
static void running_job(void **ctx) {
  (void)ctx;
  char dir[256], scenario[256];
  bool more = false, in_flight = false;
  strcpy(node, "sim-");
  path_of(dir, "running");
  snprintf(scenario, sizeof scenario, "--scenario %s/job.scn", top);
  FILE *f = fopen(strchr(scenario, 0x2f), "w");
  fputs(
      "set ranks=4 procs=1 time_scale=1 rate=400\ncomm world label=world\ncoll world func=AllReduce bytes=1m "
      "repeat=1200\n",
      f);
  fclose(f);
  struct state s = {.stop_after = -1};
  struct ni_watch *w = watch(&s, NULL, 0);
  pid_t child = fork();
  if (child == 0) {
    sim("running", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=200000 NCCL_INSPECTOR_FILE_MAX_BYTES=8k",
        scenario);
    _exit(0);
  }
  uint32_t most = 0, open = 0;
  for (int status = -1; status < 0;) {
    struct pollfd p = {.fd = ni_boxes_fd(ni_watch_boxes(w)), .events = POLLIN};
    poll(&p, 1, 100);
    assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
    uint32_t alive = 0;
    for (uint32_t i = 0; i < s.look.n_processes; i++)
      alive += s.look.processes[i].life == 1;
    if (alive > most)
      most = alive;
    if (s.look.n_open > open)
      open = s.look.n_open;
    for (uint32_t i = 0; i < s.look.n_open; i++) {
      const struct ni_live_open *o = &s.look.open[i];
      assert_string_equal(o->who.job, "77");
      assert_string_equal(o->who.comm, "world");
      if (!*o->func)
        continue;
      in_flight = true;
      assert_string_equal(o->func, "AllReduce");
      assert_int_equal(o->bytes, 1 << 20);
      assert_true(o->in_flight > 0 && o->state < NI_HANG_STATE_COUNT);
    }
    for (uint32_t i = 0; i < s.look.n_processes; i++)
      if (s.look.processes[i].start_ns)
        assert_string_equal(ni_boxes_log_dirs(ni_watch_boxes(w))[i], dir);
    if (waitpid(child, &status, WNOHANG) == 0)
      status = -1;
  }
  for (int i = 0; i < 2; i++)
    assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  ni_watch_close(w);
  sums_are(&s, truth_of(dir));
  assert_true(s.look.logs > 8); /* they were rotated */
  assert_int_equal(most, 4);
  assert_int_equal(open, 4);
  assert_true(in_flight);
  uint64_t late = 0;
  for (size_t i = 0; i < s.n; i++)
    late += s.row[i].late_n;
  assert_in_range(late, 1000, 1200);
  free_state(&s);
}

/* How long it waits for the next look, ms: of some times the least, since the machine may be busy. */
static uint64_t waits(struct ni_watch *w, int times) {
  uint64_t least = UINT64_MAX;
  while (times--) {
    uint64_t began = ni_now_ns(CLOCK_MONOTONIC), took;
    ni_boxes_wait(ni_watch_boxes(w), began, false);
    took = (ni_now_ns(CLOCK_MONOTONIC) - began) / 1000000;
    if (took < least)
      least = took;
  }
  return least;
}

/* While a box does not say yet where its log is it is looked at often, but not for ever. */
static void young_box(void **ctx) {
  (void)ctx;
  struct state s = {.stop_after = -1};
  bool more;
  sh("touch %s/nccl-inspector-n1-pid1-0123456789abcdef.box", boxes);
  struct ni_watch *w = watch(&s, NULL, 0);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_in_range(waits(w, 5), 50, 900);
  sleep(3);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_in_range(waits(w, 1), 950, UINT64_MAX);
  ni_watch_close(w);
  free_state(&s);
  sh("rm %s/*.box", boxes);
}

/*
 * Looks until a process's life is that, and its log has begun, a minute at most: a busy machine takes its
 * time.
 */
static void look_until(struct ni_watch *w, struct state *s, uint8_t life) {
  const uint64_t end = ni_now_ns(CLOCK_MONOTONIC) + UINT64_C(60000000000);
  for (bool more;
       !s->look.n_processes || s->look.processes[0].life != life || !s->look.processes[0].start_ns;) {
    assert_true(ni_now_ns(CLOCK_MONOTONIC) < end);
    usleep(10000);
    assert_int_equal(ni_watch_turn(w, emit, s, &more), 0);
  }
}

/* A killed process is seen at once, and what it was. */
static void killed_job(void **ctx) {
  (void)ctx;
  bool more = false;
  struct state s = {.stop_after = -1};
  struct ni_watch *w = watch(&s, NULL, 0);
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    dup2(null, 2);
    char plug[PATH_MAX + 64], prog[PATH_MAX + 64], dir[256];
    path_of(dir, "killed");
    snprintf(plug, sizeof plug, "%s/libnccl-profiler-inspector.so", build);
    snprintf(prog, sizeof prog, "%s/nccl-sim", build);
    setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
    setenv("NCCL_INSPECTOR_DUMP_DIR", dir, 1);
    setenv("NCCL_INSPECTOR_BLACKBOX", boxes, 1);
    setenv("SLURM_JOB_ID", "78", 1);
    execl(prog, prog, "--quiet", "--plugin", plug, "--scenario", "test/scenarios/paced.scn", NULL);
    _exit(1);
  }
  struct pollfd p = {.fd = ni_boxes_fd(ni_watch_boxes(w)), .events = POLLIN};
  look_until(w, &s, 1);
  assert_int_equal(s.look.n_processes, 1);
  assert_int_equal(s.look.processes[0].pid, child);
  assert_string_equal(s.look.processes[0].job, "78");
  (void)ni_boxes_stirred(ni_watch_boxes(w));
  sh("touch %s/torch_1 && rm %s/torch_1", boxes, boxes);
  assert_int_equal(poll(&p, 1, 5000), 1);
  assert_false(ni_boxes_stirred(ni_watch_boxes(w))); /* others' files are no reason to look */
  kill(child, SIGKILL);
  assert_int_equal(poll(&p, 1, 5000), 1);
  assert_true(ni_boxes_stirred(ni_watch_boxes(w)));
  look_until(w, &s, 2);
  waitpid(child, NULL, 0);
  sh("rm -f %s/*.box", boxes);
  assert_int_equal(poll(&p, 1, 5000), 1);
  assert_int_equal(ni_watch_turn(w, emit, &s, &more), 0);
  assert_int_equal(s.look.n_processes, 0);
  assert_int_equal(poll(&p, 1, 0), 0);
  ni_watch_close(w);
  free_state(&s);
}

static int setup(void **ctx) {
  (void)ctx;
  begin();
  sim("nodes", "", "--scenario test/scenarios/nodes.scn");
  sim("multi", "", "--scenario test/scenarios/multirank.scn");
  sim("plain", "NCCL_INSPECTOR_DUMP_FORMAT=jsonl", "--scenario test/scenarios/multirank.scn");
  sim("rotated", "NCCL_INSPECTOR_FILE_MAX_BYTES=8k", "--scenario test/scenarios/matrix.scn");
  make_bare(false);
  sim("interval", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=100000",
      "--scenario test/scenarios/paced.scn --set rate=5000");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_record),
                                     cmocka_unit_test(grows_in_pieces),
                                     cmocka_unit_test(damaged_members),
                                     cmocka_unit_test(replaced_files),
                                     cmocka_unit_test(passes_over),
                                     cmocka_unit_test(gpus_of_lives),
                                     cmocka_unit_test(late_to_many_at_once),
                                     cmocka_unit_test(running_job),
                                     cmocka_unit_test(young_box),
                                     cmocka_unit_test(killed_job)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
