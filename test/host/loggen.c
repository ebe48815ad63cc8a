/*
 * Writes inspector logs of an invented job, and what they say, exactly: the truth that summaries are compared
 * with.
 *
 *   loggen DIR [--ranks N] [--node N] [--ops N] [--sizes a,b,...] [--format v4.0|v4.2|v4.3|v4.4|ours] [--verbose]
 *          [--comm-name] [--straggler RANK] [--slow-node N] [--outliers N] [--p2p N] [--gzip] [--member-lines N]
 *          [--truth FILE] [--seed N] [--ext EXT] [--old]
 *
 * Each rank is a process with a file; it is in the communicator of all ranks and in that of its node.
 * Operation k of a communicator is AllReduce, AllGather, ReduceScatter, Broadcast or Reduce in turn, of one
 * of the sizes. The straggler comes late: its kernels are short, its peers' long. On the slow node all
 * kernels of the node's communicator are twice as long. An outlier is an operation that takes 50 times as
 * long on all ranks.
 *
 * The truth is worked out here from the values as printed, with other code than the exporter's: every value
 * is kept and sorted. The file is JSON.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { GROUPS_MAX = 4096 };

static struct {
  const char *dir, *format, *truth, *ext;
  unsigned ranks, node, ops, p2p, member_lines, outliers;
  int straggler, slow_node;
  bool gzip, verbose, comm_name, ours, bare, algo, old;
  uint64_t sizes[32], seed;
  unsigned n_sizes;
} o = {.format = "v4.0",
       .ranks = 8,
       .node = 8,
       .ops = 100,
       .straggler = -1,
       .slow_node = -1,
       .seed = 1,
       .sizes = {8192, 1048576, 33554432},
       .n_sizes = 3};

struct group {
  const char *type, *kind, *func;
  uint64_t size, operations;
  double *us, *bw;
  size_t n, n_bw, cap;
};
static struct group group[GROUPS_MAX];
static unsigned n_groups;
static uint64_t records, lines;

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
/* 0..1, the same for the same three. */
static double noise(uint64_t a, uint64_t b, uint64_t c) {
  return (double)(mix(mix(mix(o.seed ^ a) ^ b) ^ c) >> 11) / 9007199254740992.0;
}

static struct group *group_of(const char *type, const char *kind, const char *func, uint64_t size) {
  for (unsigned i = 0; i < n_groups; i++)
    if (group[i].size == size && strcmp(group[i].func, func) == 0 && strcmp(group[i].type, type) == 0)
      return &group[i];
  if (n_groups == GROUPS_MAX)
    abort();
  group[n_groups] = (struct group){.type = type, .kind = kind, .func = func, .size = size};
  return &group[n_groups++];
}

static void keep(struct group *g, double us, double bw) {
  if (g->n == g->cap) {
    g->cap = g->cap ? 2 * g->cap : 1024;
    g->us = realloc(g->us, g->cap * sizeof *g->us);
    g->bw = realloc(g->bw, g->cap * sizeof *g->bw);
    if (!g->us || !g->bw)
      abort();
  }
  g->us[g->n++] = us;
  if (!isnan(bw))
    g->bw[g->n_bw++] = bw;
}

static const char *const funcs[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"};
enum { N_FUNCS = 5 };

static double factor(const char *func, unsigned n) {
  if (strcmp(func, "AllReduce") == 0)
    return 2.0 * (n - 1) / n;
  if (strcmp(func, "AllGather") == 0 || strcmp(func, "ReduceScatter") == 0)
    return (double)(n - 1) / n;
  return 1;
}

struct comm {
  uint64_t hash;
  unsigned n_ranks, nnodes, id;
  const char *type, *name;
};

/* ns of operation k on rank r of a communicator: the transfer plus what the rank waits for the last one. */
static uint64_t duration_ns(const struct comm *c, unsigned k, double traffic, unsigned rank,
                            unsigned global) {
  double transfer = 20000 + traffic / 150.0;
  transfer *= 1 + 0.1 * noise(c->id, k, 7);
  if (o.slow_node >= 0 && c->id == 1 + (unsigned)o.slow_node)
    transfer *= 2;
  if (o.outliers && c->id == 0 && k % (o.ops / o.outliers ? o.ops / o.outliers : 1) == 5)
    transfer *= 50;
  double wait = 0.15 * transfer * noise(c->id * 1000003 + rank, k, 11);
  unsigned first = c->id == 0 ? 0 : (c->id - 1) * o.node;
  bool has = o.straggler >= 0 && (unsigned)o.straggler >= first && (unsigned)o.straggler < first + c->n_ranks;
  if (has)
    wait = (int)global == o.straggler ? 0 : wait + 2 * transfer;
  return (uint64_t)(transfer + wait);
}

struct out {
  FILE *f;
  char path[1024];
  unsigned lines;
};

static void open_part(struct out *w, bool first) {
  char command[1200];
  if (!o.gzip) {
    if (first)
      w->f = fopen(w->path, "w");
  } else {
    snprintf(command, sizeof command, "gzip -1 -n %s '%s'", first ? ">" : ">>", w->path);
    w->f = popen(command, "w");
  }
  if (!w->f) {
    perror(w->path);
    exit(1);
  }
  w->lines = 0;
}
static void close_part(struct out *w) {
  if (o.gzip ? pclose(w->f) != 0 : fclose(w->f) != 0) {
    perror(w->path);
    exit(1);
  }
}
/* A member ends only before a line with a header. */
static void count_line(struct out *w, bool may_end) {
  lines++;
  w->lines++;
  if (o.gzip && o.member_lines && may_end && w->lines >= o.member_lines) {
    close_part(w);
    open_part(w, false);
  }
}

static void head(struct out *w, const struct comm *c, unsigned rank, unsigned global, uint64_t dump_us) {
  fprintf(w->f, "{\"header\":{\"id\":\"0x%" PRIx64 "\",", c->hash);
  if (o.comm_name)
    fprintf(w->f, "\"comm_name\":\"%s\",", c->name);
  fprintf(
      w->f,
      "\"rank\":%u,\"n_ranks\":%u,\"nnodes\":%u},\"metadata\":{\"inspector_output_format_version\":\"%s\","
      "\"git_rev\":\"1a2b3c4d5\",\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":%" PRIu64
      ",\"hostname\":\"node-%u\",\"pid\":%u%s},",
      rank, c->n_ranks, c->nnodes, o.ours ? "v4.0" : o.format, dump_us, global / o.node, 4000 + global,
      o.ours ? ",\"producer\":\"nccl-inspector-c 0.1.0\"" : "");
}

static void trace(struct out *w, const char *pre, uint64_t start_us, uint64_t us) {
  fprintf(w->f,
          ",\"event_trace_sn\":{\"%s_start_sn\":1,\"%s_stop_sn\":2,\"kernel_events\":[{\"channel_id\":0,"
          "\"kernel_start_sn\":3,\"kernel_stop_sn\":5,\"kernel_record_sn\":4}]},\"event_trace_ts\":{\"%s_"
          "start_ts\":%" PRIu64 ",\"%s_stop_ts\":%" PRIu64
          ",\"kernel_events\":[{\"channel_id\":0,\"kernel_start_ts\":%" PRIu64 ",\"kernel_stop_ts\":%" PRIu64
          ",\"kernel_record_ts\":%" PRIu64 "}]}",
          pre, pre, pre, start_us - 20, pre, start_us - 15, start_us, start_us + us, start_us + us);
}

/* One record; returns what its text says. */
static void record(struct out *w, const struct comm *c, unsigned rank, unsigned global, bool p2p, unsigned k,
                   uint64_t sn, uint64_t rec_sn, uint64_t dump_us) {
  const char *func = p2p ? (global % 2 ? "Recv" : "Send") : funcs[k % N_FUNCS];
  uint64_t size = p2p ? 65536 : o.sizes[(k / N_FUNCS) % o.n_sizes];
  double traffic =
      (double)size * (strcmp(func, "AllGather") == 0 || strcmp(func, "ReduceScatter") == 0 ? c->n_ranks : 1);
  uint64_t ns = duration_ns(c, p2p ? k + 1000000 : k, traffic, rank, global);
  uint64_t us = o.ours ? ns / 1000 + (ns % 1000 >= 500) : ns / 1000;
  double algo = traffic / (o.ours ? (double)ns : (double)us * 1000),
         bus = algo * (p2p ? 1 : factor(func, c->n_ranks));
  char bus_text[40];
  const char *pre = p2p ? "p2p" : "coll";
  snprintf(bus_text, sizeof bus_text, "%.6f", bus);
  if (!o.bare)
    head(w, c, rank, global, dump_us);
  else
    putc('{', w->f);
  if (p2p)
    fprintf(w->f, "\"p2p_perf\":{\"p2p\":\"%s\",\"p2p_sn\":%" PRIu64 ",\"p2p_peer\":%u", func, sn, rank ^ 1);
  else
    fprintf(w->f, "\"coll_perf\":{\"coll\":\"%s\"%s,\"coll_sn\":%" PRIu64, func,
            o.algo ? ",\"coll_algo\":\"RING\",\"coll_proto\":\"SIMPLE\"" : "", sn);
  fprintf(w->f, ",\"%s_msg_size_bytes\":%" PRIu64 ",\"%s_exec_time_us\":%" PRIu64, pre, size, pre, us);
  if (!o.old)
    fprintf(w->f, ",\"%s_timing_source\":\"kernel_gpu\"", pre);
  fprintf(w->f, ",\"%s_algobw_gbs\":%.6f,\"%s_busbw_gbs\":%s", pre, algo, pre, bus_text);
  uint64_t start_us = 1790000000000000ULL + (uint64_t)k * 5000;
  if (o.ours) {
    if (!p2p)
      fprintf(w->f, ",\"coll_algo\":\"RING\",\"coll_proto\":\"%s\"", size < 65536 ? "LL" : "SIMPLE");
    fprintf(w->f, ",\"%s_datatype\":\"ncclFloat32\"", pre);
    if (!p2p)
      fprintf(w->f, ",\"coll_root\":0");
    fprintf(w->f,
            ",\"%s_nchannels\":8,\"%s_exec_time_ns\":%" PRIu64 ",\"%s_enqueue_ns\":%" PRIu64
            ",\"%s_gpu_start_delta_ns\":%u,\"rec_sn\":%" PRIu64 ",\"nccl_tests_size_bytes\":%" PRIu64,
            pre, pre, ns, pre, start_us * 1000, pre, 10000 + rank, rec_sn, (uint64_t)traffic);
  }
  if (o.verbose)
    trace(w, pre, start_us, us);
  fputs("}}\n", w->f);
  count_line(w, !o.bare);
  records++;
  if (!o.truth)
    return;
  struct group *g = group_of(c->type, pre, func, size);
  keep(g, o.ours ? (double)ns / 1000 : (double)us, strtod(bus_text, NULL));
  if (p2p || rank == 0)
    g->operations++;
}

static void marker(struct out *w, const struct comm *c, unsigned rank, unsigned global, uint64_t dump_us,
                   unsigned coll, unsigned p2p) {
  bool bare = o.bare;
  o.bare = false;
  head(w, c, rank, global, dump_us);
  o.bare = bare;
  fprintf(w->f,
          "\"dump_stats\":{\"coll_records\":%u,\"coll_dropped_total\":0,\"coll_dropped_since_last_dump\":0,"
          "\"p2p_records\":%u,\"p2p_dropped_total\":0,\"p2p_dropped_since_last_dump\":0,\"proxy_records\":0,"
          "\"proxy_dropped_total\":0,\"proxy_dropped_since_last_dump\":0}}\n",
          coll, p2p);
  count_line(w, false);
}

/* The head of a line about the whole process. */
static void process_head(struct out *w, unsigned global, uint64_t us) {
  struct comm none = {.hash = 0, .n_ranks = o.ranks, .name = ""};
  bool named = o.comm_name;
  o.comm_name = false;
  head(w, &none, global, global, us);
  o.comm_name = named;
}

static void process_line(struct out *w, unsigned global) {
  process_head(w, global, 1790000000000000ULL);
  fprintf(w->f,
          "\"process\":{\"start_ns\":1790000000000000000,\"boot_id\":\"b\",\"exe\":\"python3\",\"rank\":%u,"
          "\"local_rank\":%u,\"world_size\":%u,\"env\":{\"SLURM_JOB_ID\":\"77\"},\"nccl_version\":23007,"
          "\"interface\":\"v4\",\"settings\":{}}}\n",
          global, global % o.node, o.ranks);
  count_line(w, false);
}

/* c NULL: the process's own last line. */
static void final_line(struct out *w, const struct comm *c, unsigned rank, unsigned global, unsigned coll,
                       unsigned p2p) {
  if (c)
    head(w, c, rank, global, 1790009000000000ULL);
  else
    process_head(w, global, 1790009000000000ULL);
  /* Without markers in between it is the only line that says how many records were flushed. */
  fprintf(w->f,
          "\"dump_stats\":{\"coll_records\":%u,\"coll_dropped_total\":0,\"p2p_records\":%u,\"p2p_dropped_"
          "total\":0,"
          "\"proxy_records\":0,\"final\":true,\"coll\":{\"started\":%u,\"written\":%u,\"filtered_by\":{},"
          "\"dropped_by\":{},"
          "\"incomplete\":0,\"late\":0,\"in_flight\":0,\"timing_fallback_by\":{}},\"p2p\":{\"started\":%u,"
          "\"written\":%u,"
          "\"filtered_by\":{},\"dropped_by\":{},\"incomplete\":0,\"late\":0,\"in_flight\":0,\"timing_"
          "fallback_by\":{}},"
          "\"strays\":{}}}\n",
          o.bare ? 0 : coll, o.bare ? 0 : p2p, coll, coll, p2p, p2p);
  count_line(w, true);
}

static const char *type_of(unsigned n_ranks, unsigned nnodes) {
  return n_ranks == 1     ? "single-rank"
      : nnodes == 1       ? "nvlink-only"
      : n_ranks == nnodes ? "hca-only"
                          : "mixed";
}

static void write_rank(unsigned global) {
  struct out w = {0};
  unsigned nodes = (o.ranks + o.node - 1) / o.node, node = global / o.node, in_node = o.node;
  if ((node + 1) * o.node > o.ranks)
    in_node = o.ranks - node * o.node;
  struct comm comm[2] = {
      {0x5d1c7e90aa4100 + o.seed, o.ranks, nodes, 0, type_of(o.ranks, nodes), "world"},
      {0x77aa000000000000 + node + o.seed * 4096, in_node, 1, 1 + node, type_of(in_node, 1), "node"}};
  snprintf(w.path, sizeof w.path, "%s/node-%u-pid%u.%s%s", o.dir, node, 4000 + global, o.ext ? o.ext : "log",
           o.gzip ? ".gz" : "");
  open_part(&w, true);
  if (o.ours)
    process_line(&w, global);
  uint64_t sn[2][N_FUNCS] = {{0}}, p2p_sn[2] = {0}, rec_sn[2] = {0};
  unsigned batch = 500;
  for (unsigned from = 0; from < o.ops; from += batch)
    for (unsigned i = 0; i < 2; i++) {
      unsigned to = from + batch < o.ops ? from + batch : o.ops, rank = i == 0 ? global : global % o.node;
      unsigned p2p = i == 0 && o.p2p && (rank ^ 1) < o.ranks ? (to - from) * o.p2p / 100 : 0;
      uint64_t dump_us = 1790000000000000ULL + (uint64_t)to * 5000 + global * 13;
      if (o.bare)
        marker(&w, &comm[i], rank, global, dump_us, to - from, p2p);
      for (unsigned k = from; k < to; k++)
        record(&w, &comm[i], rank, global, false, k, sn[i][k % N_FUNCS]++, rec_sn[i]++, dump_us);
      for (unsigned k = 0; k < p2p; k++) {
        record(&w, &comm[i], rank, global, true, from + k, p2p_sn[i], p2p_sn[i], dump_us);
        p2p_sn[i]++;
      }
    }
  if (o.ours) {
    for (unsigned i = 0; i < 2; i++)
      final_line(&w, &comm[i], i == 0 ? global : global % o.node, global, (unsigned)rec_sn[i],
                 (unsigned)p2p_sn[i]);
    final_line(&w, NULL, global, global, 0, 0);
  }
  close_part(&w);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void print_stats(FILE *f, const char *name, double *v, size_t n) {
  qsort(v, n, sizeof *v, by_value);
  long double sum = 0, square = 0;
  for (size_t i = 0; i < n; i++)
    sum += v[i];
  long double mean = sum / n;
  for (size_t i = 0; i < n; i++)
    square += (v[i] - mean) * (v[i] - mean);
  fprintf(f, "\"%s\":{\"n\":%zu,\"mean\":%.17Lg,\"stddev\":%.17Lg,\"min\":%.17g,\"max\":%.17g", name, n, mean,
          n > 1 ? sqrtl(square / (n - 1)) : 0, v[0], v[n - 1]);
  static const struct {
    const char *name;
    double q;
  } qs[] = {{"p10", .1}, {"p25", .25}, {"p50", .5}, {"p75", .75}, {"p90", .9}, {"p99", .99}};
  for (int i = 0; i < 6; i++) {
    double at = qs[i].q * (double)(n - 1);
    size_t low = (size_t)floor(at);
    double x = v[low] + (low + 1 < n ? (at - (double)low) * (v[low + 1] - v[low]) : 0);
    fprintf(f, ",\"%s\":%.17g", qs[i].name, x);
  }
  fputc('}', f);
}

static void write_truth(void) {
  FILE *f = fopen(o.truth, "w");
  if (!f) {
    perror(o.truth);
    exit(1);
  }
  fprintf(f, "{\"records\":%" PRIu64 ",\"lines\":%" PRIu64 ",\"groups\":[", records, lines);
  for (unsigned i = 0; i < n_groups; i++) {
    struct group *g = &group[i];
    fprintf(f,
            "%s\n{\"comm_type\":\"%s\",\"kind\":\"%s\",\"func\":\"%s\",\"msg_size_bytes\":%" PRIu64
            ",\"timing_source\":\"%s\",\"records\":%zu,\"operations\":%" PRIu64 ",",
            i ? "," : "", g->type, g->kind, g->func, g->size, o.old ? "" : "kernel_gpu", g->n, g->operations);
    print_stats(f, "exec_time_us", g->us, g->n);
    fputc(',', f);
    print_stats(f, "busbw_gbs", g->bw, g->n_bw);
    fputc('}', f);
  }
  fputs("]}\n", f);
  if (fclose(f) != 0)
    exit(1);
}

static const char *value(int argc, char **argv, int *i) {
  if (*i + 1 >= argc) {
    fprintf(stderr, "loggen: %s wants a value\n", argv[*i]);
    exit(64);
  }
  return argv[++*i];
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i];
    if (a[0] != '-')
      o.dir = a;
    else if (!strcmp(a, "--ranks"))
      o.ranks = (unsigned)atoi(value(argc, argv, &i));
    else if (!strcmp(a, "--node"))
      o.node = (unsigned)atoi(value(argc, argv, &i));
    else if (!strcmp(a, "--ops"))
      o.ops = (unsigned)atoi(value(argc, argv, &i));
    else if (!strcmp(a, "--p2p"))
      o.p2p = (unsigned)atoi(value(argc, argv, &i));
    else if (!strcmp(a, "--outliers"))
      o.outliers = (unsigned)atoi(value(argc, argv, &i));
    else if (!strcmp(a, "--member-lines"))
      o.member_lines = (unsigned)atoi(value(argc, argv, &i));
    else if (!strcmp(a, "--straggler"))
      o.straggler = atoi(value(argc, argv, &i));
    else if (!strcmp(a, "--slow-node"))
      o.slow_node = atoi(value(argc, argv, &i));
    else if (!strcmp(a, "--seed"))
      o.seed = strtoull(value(argc, argv, &i), NULL, 10);
    else if (!strcmp(a, "--format"))
      o.format = value(argc, argv, &i);
    else if (!strcmp(a, "--truth"))
      o.truth = value(argc, argv, &i);
    else if (!strcmp(a, "--ext"))
      o.ext = value(argc, argv, &i);
    else if (!strcmp(a, "--gzip"))
      o.gzip = true;
    else if (!strcmp(a, "--old"))
      o.old = true;
    else if (!strcmp(a, "--verbose"))
      o.verbose = true;
    else if (!strcmp(a, "--comm-name"))
      o.comm_name = true;
    else if (!strcmp(a, "--sizes")) {
      char *rest = (char *)value(argc, argv, &i);
      for (o.n_sizes = 0; o.n_sizes < 32 && *rest; rest += *rest == ',')
        o.sizes[o.n_sizes++] = strtoull(rest, &rest, 10);
    } else {
      fprintf(stderr, "loggen: unknown option %s\n", a);
      return 64;
    }
  }
  o.ours = !strcmp(o.format, "ours");
  o.bare = !strcmp(o.format, "v4.3") || !strcmp(o.format, "v4.4");
  o.algo = !o.ours && strcmp(o.format, "v4.0") != 0 && strcmp(o.format, "v4.1") != 0;
  if (!o.dir || o.ranks < 1 || o.node < 1 || o.n_sizes < 1) {
    fprintf(stderr, "usage: loggen DIR [options]; see the head of test/host/loggen.c\n");
    return 64;
  }
  mkdir(o.dir, 0777);
  for (unsigned r = 0; r < o.ranks; r++)
    write_rank(r);
  if (o.truth)
    write_truth();
  return 0;
}
