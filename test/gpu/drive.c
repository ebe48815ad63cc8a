/*
 * gpu_drive: real collectives on real GPUs through the NCCL C API, with a truth file of what was issued.
 *
 * One process per rank, forked before anything of CUDA is touched. Several ranks on one GPU: a different
 * NCCL_HOSTID each makes NCCL take them for different hosts (network transport over loopback, proxy events);
 * or, where the release has it, NCCL_MULTI_RANK_GPU_ENABLE=1. The parent only waits: when a rank fails,
 * nothing moves any more or time is up, it ends the others. Where a rank hangs it is first asked where it is:
 * GPU machines seldom have a debugger. Exit status: 0 done, 1 a rank failed, 2 wrong usage, 3 time was up, 77
 * no GPU.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rank.h"

static void help(FILE *f) {
  fprintf(f,
          "Usage: gpu_drive --out DIR [OPTION...]\n\n"
          "  --out DIR          truth-<rank>.txt go there; made when missing\n"
          "  --plans A,B,...    what to do (default probe), in this order:\n");
  ni_plan_list(f);
  fprintf(f,
          "  --end HOW          destroy (default), finalize, exit, quick_exit, abort (with one operation "
          "that hangs)\n"
          "  --layout L         hostid (default): ranks on GPU 0, a NCCL_HOSTID each; gpus: a GPU each;\n"
          "                     multirank: ranks on GPU 0 with NCCL_MULTI_RANK_GPU_ENABLE=1\n"
          "  --ranks N          1 to %d (default 2)\n"
          "  --iterations N     of each operation (default 5)\n"
          "  --max-bytes N      largest message (default 268435456)\n"
          "  --seconds N        begin nothing more after (default 120); 20 s later the run is ended\n"
          "  --stall N          end the run when no rank got anything done for so long (default 60)\n"
          "  --nccl SO, --cuda SO   default libnccl.so.2, libcuda.so.1\n"
          "  --version-of SO    print the release of that NCCL and end\n"
          "Exit status: 0 done, 1 a rank failed, 2 wrong usage, 3 time was up, 77 no GPU.\n",
          NI_MAX_RANKS);
}

static _Noreturn void usage(const char *what) {
  fprintf(stderr, "gpu_drive: %s; see gpu_drive --help\n", what);
  exit(NI_DRIVE_USAGE);
}

static uint64_t number(const char *text, const char *option, uint64_t min, uint64_t max) {
  char *end, why[128];
  errno = 0;
  unsigned long long v = strtoull(text, &end, 10);
  if (errno || *end || end == text || v < min || v > max) {
    snprintf(why, sizeof why, "%s %.32s: accepted is %llu to %llu", option, text, (unsigned long long)min,
             (unsigned long long)max);
    usage(why);
  }
  return v;
}

/*
 * SIGUSR2: the main thread's stack, as addresses in libraries (addr2line -e libnccl.so.2 names the function).
 */
static void where_am_i(int sig) {
  void *frames[64];
  (void)sig;
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
}

static void answer_where(void) {
  void *frame[1];
  struct sigaction a = {.sa_handler = where_am_i, .sa_flags = SA_RESTART};
  backtrace(frame, 1); /* loads what it needs now, not in the handler */
  sigaction(SIGUSR2, &a, NULL);
}

/* One operation that only rank 0 issues; then everybody gives up. */
static void hang_and_abort(struct ni_rank *r) {
  struct ni_gcomm *c = r->n_comms ? &r->comm[0] : ni_rank_world(r, "ni-world", false);
  ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, 16384, 0);
  ni_rank_settle(r);
  if (r->rank == 0) {
    ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, 4242 * 4, 0);
    ni_rank_lost(r);
  }
  sleep(1);
  if (r->rank == 0 && r->api.cuStreamQuery(r->stream) == NI_CUDA_SUCCESS)
    ni_rank_die(r, "the lone AllReduce finished");
  ni_rank_barrier(r);
  for (int i = 0; i < r->n_comms; i++)
    ni_rank_close(r, &r->comm[i], "abort");
}

static _Noreturn void rank_main(const struct ni_drive_options *opt, struct ni_shared *shared, int rank) {
  static struct ni_rank r; /* large */
  /* whoever ends the parent must not leave ranks that keep the GPU busy */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  answer_where();
  char id[32], *plans = strdup(opt->plans), *save = NULL;
  r.opt = opt;
  r.shared = shared;
  r.rank = rank;
  r.ranks = opt->ranks;
  if (opt->layout == NI_LAYOUT_HOSTID) {
    snprintf(id, sizeof id, "ni-host-%d", rank);
    setenv("NCCL_HOSTID", id, 1);
  } else if (opt->layout == NI_LAYOUT_MULTIRANK) {
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    setenv("NCCL_NVLS_ENABLE", "0", 0);
  }
  if (opt->layout != NI_LAYOUT_GPUS) { /* one machine, perhaps without any other network */
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    setenv("NCCL_IB_DISABLE", "1", 0);
    setenv("NCCL_NET", "Socket", 0);
    setenv("NCCL_NET_PLUGIN", "none", 0);
    setenv("NCCL_MNNVL_ENABLE", "0", 0);
  }
  snprintf(id, sizeof id, "%d", rank);
  setenv("RANK", id, 1);
  ni_rank_open(&r);
  for (char *p = strtok_r(plans, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
    uint64_t t0 = ni_gpu_now();
    if (!ni_plan_run(&r, p))
      ni_rank_die(&r, "no plan is called %s", p);
    if (rank == 0)
      fprintf(stderr, "gpu_drive: %-12s %6.1f s\n", p, (double)(ni_gpu_now() - t0) / 1e9);
  }
  if (strcmp(opt->end, "abort") == 0) {
    hang_and_abort(&r);
  } else if (strstr(opt->end, "exit")) {
    usleep(100000); /* the device is done; NCCL's progress thread shall have seen it */
    for (int i = 0; i < r.n_comms; i++)
      if (r.comm[i].nccl)
        fprintf(r.truth, "end comm=%s how=%s\n", r.comm[i].name, opt->end);
  } else {
    for (int i = r.n_comms; i--;)
      ni_rank_close(&r, &r.comm[i], opt->end);
  }
  fprintf(r.truth, "done\n");
  fclose(r.truth);
  /* Nobody leaves while another rank may still need its connections. */
  ni_rank_barrier(&r);
  if (strcmp(opt->end, "quick_exit") == 0)
    quick_exit(0);
  exit(0);
}

static int version_of(const char *so) {
  int v = 0;
  void *lib = dlopen(so, RTLD_NOW);
  int (*get)(int *) = NULL;
  if (!lib) {
    fprintf(stderr, "gpu_drive: %s\n", dlerror());
    return NI_DRIVE_FAILED;
  }
  *(void **)&get = dlsym(lib, "ncclGetVersion");
  if (!get || get(&v)) {
    fprintf(stderr, "gpu_drive: %s is no NCCL\n", so);
    return NI_DRIVE_FAILED;
  }
  printf("%d\n", v);
  return 0;
}

static void end_all(pid_t *pids, int n, bool ask) {
  for (int i = 0; ask && i < n; i++) {
    if (!pids[i])
      continue;
    fprintf(stderr, "gpu_drive: rank %d is at\n", i);
    kill(pids[i], SIGUSR2);
    usleep(200000);
  }
  for (int i = 0; i < n; i++)
    if (pids[i])
      kill(pids[i], SIGKILL);
}

static int wait_for(pid_t *pids, const struct ni_drive_options *opt, struct ni_shared *shared) {
  uint64_t until = ni_gpu_now() + (uint64_t)(opt->seconds + 20) * 1000000000u, moved = ni_gpu_now();
  int n = opt->ranks, left = n, worst = 0;
  unsigned progress = 0;
  bool killed = false;
  while (left) {
    int status;
    pid_t p = waitpid(-1, &status, WNOHANG);
    unsigned seen = atomic_load_explicit(&shared->progress, memory_order_relaxed);
    if (seen != progress || p > 0) {
      progress = seen;
      moved = ni_gpu_now();
    }
    if (p > 0) {
      left--;
      for (int i = 0; i < n; i++)
        if (pids[i] == p)
          pids[i] = 0;
      int code = WIFEXITED(status) ? WEXITSTATUS(status) : NI_DRIVE_FAILED;
      if (WIFSIGNALED(status) && !killed)
        fprintf(stderr, "gpu_drive: a rank ended by signal %d\n", WTERMSIG(status));
      if (code && !killed)
        worst = code;
    }
    bool late = ni_gpu_now() > until, stalled = ni_gpu_now() - moved > (uint64_t)opt->stall * 1000000000u;
    if (!killed && (worst || late || stalled)) {
      if (!worst) {
        if (late)
          fprintf(stderr, "gpu_drive: time was up; the ranks are ended\n");
        else
          fprintf(stderr, "gpu_drive: nothing moved for %d s; the ranks are ended\n", opt->stall);
        worst = NI_DRIVE_TIME;
      } else {
        usleep(300000); /* the others' own messages */
      }
      killed = true;
      end_all(pids, n, late || stalled);
    }
    if (p <= 0)
      usleep(2000);
  }
  return worst;
}

int main(int argc, char **argv) {
  static struct ni_drive_options opt = {.ranks = 2,
                                        .iterations = 5,
                                        .max_bytes = 268435456,
                                        .plans = "probe",
                                        .end = "destroy",
                                        .seconds = 120,
                                        .stall = 60};
  static const struct option options[] = {{"out", required_argument, NULL, 'o'},
                                          {"plans", required_argument, NULL, 'p'},
                                          {"end", required_argument, NULL, 'e'},
                                          {"layout", required_argument, NULL, 'l'},
                                          {"ranks", required_argument, NULL, 'r'},
                                          {"iterations", required_argument, NULL, 'i'},
                                          {"max-bytes", required_argument, NULL, 'm'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"stall", required_argument, NULL, 't'},
                                          {"nccl", required_argument, NULL, 'n'},
                                          {"cuda", required_argument, NULL, 'c'},
                                          {"version-of", required_argument, NULL, 'v'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  static const char *const ends[] = {"destroy", "finalize", "exit", "quick_exit", "abort"};
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
    switch (c) {
      case 'o':
        opt.dir = optarg;
        break;
      case 'p':
        opt.plans = optarg;
        break;
      case 'e':
        opt.end = optarg;
        break;
      case 'l':
        if (strcmp(optarg, "hostid") == 0)
          opt.layout = NI_LAYOUT_HOSTID;
        else if (strcmp(optarg, "gpus") == 0)
          opt.layout = NI_LAYOUT_GPUS;
        else if (strcmp(optarg, "multirank") == 0)
          opt.layout = NI_LAYOUT_MULTIRANK;
        else
          usage("--layout: accepted is hostid, gpus or multirank");
        break;
      case 'r':
        opt.ranks = (int)number(optarg, "--ranks", 1, NI_MAX_RANKS);
        break;
      case 'i':
        opt.iterations = (int)number(optarg, "--iterations", 1, 1000);
        break;
      case 'm':
        opt.max_bytes = number(optarg, "--max-bytes", 4096, UINT64_C(1) << 34);
        break;
      case 's':
        opt.seconds = (int)number(optarg, "--seconds", 1, 86400);
        break;
      case 't':
        opt.stall = (int)number(optarg, "--stall", 1, 86400);
        break;
      case 'n':
        opt.nccl = optarg;
        break;
      case 'c':
        opt.cuda = optarg;
        break;
      case 'v':
        return version_of(optarg);
      case 'h':
        help(stdout);
        return 0;
      default:
        usage("unknown option");
    }
  bool known = false;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    known |= strcmp(opt.end, ends[i]) == 0;
  if (!known)
    usage("--end: accepted is destroy, finalize, exit, quick_exit or abort");
  if (!opt.dir || optind != argc)
    usage("--out DIR is needed, and nothing but options");
  if (mkdir(opt.dir, 0755) < 0 && errno != EEXIST) {
    fprintf(stderr, "gpu_drive: %s: %s\n", opt.dir, strerror(errno));
    return 1;
  }
  struct ni_shared *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    perror("gpu_drive: shared memory");
    return 1;
  }
  pid_t pids[NI_MAX_RANKS];
  for (int i = 0; i < opt.ranks; i++) {
    pids[i] = fork();
    if (pids[i] < 0) {
      perror("gpu_drive: fork");
      return 1;
    } /* the ranks already there wait in a barrier until killed */
    if (pids[i] == 0)
      rank_main(&opt, shared, i);
  }
  return wait_for(pids, &opt, shared);
}
