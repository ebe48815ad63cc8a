/*
 * Running a scenario: one process with all ranks, or one child process per rank with the environment of a
 * launcher.
 *
 * Children are forked before anything is loaded or any thread exists; what they share is the ring in which
 * ranks meet inside kernels, and the truth file. Host names differ by node where the system permits a private
 * one.
 */
#include <errno.h>
#include <signal.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/nccl_sim/engine/ends.h"
#include "modes.h"
#include "format/release.h"
#include "test/nccl_sim/engine/truth.h"

static void set_env(const char *name, int value) {
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

/* What torchrun and Slurm give a rank. */
static void rank_env(const struct ni_scn *s, int rank) {
  int per = s->set.ranks / s->set.nodes ? s->set.ranks / s->set.nodes : 1;
  set_env("RANK", rank);
  set_env("LOCAL_RANK", rank % per);
  set_env("WORLD_SIZE", s->set.ranks);
  set_env("SLURM_PROCID", rank);
  set_env("SLURM_LOCALID", rank % per);
  set_env("SLURM_NTASKS", s->set.ranks);
  if (!getenv("SLURM_JOB_ID"))
    setenv("SLURM_JOB_ID", "4242", 1);
  static bool said;
  char name[32];
  snprintf(name, sizeof name, "sim-node%d", rank / per);
  if ((unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0) && !said && rank % per == 0) {
    ni_sim_say("cannot give each node a host name of its own (%s): all keep this machine's", strerror(errno));
    said = true;
  }
}

static void summary(void) {
  static const char *const calls[NI_CALL_COUNT] = {"init", "start", "stop", "record", "finalize"};
  static const char *const events[16] = {
      "Group",    "Coll",    "P2p",    "ProxyOp",      "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
      "GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl",    "CeSync",    "CeBatch",  "KernelPhase"};
  printf("callbacks:");
  for (int i = 0; i < NI_CALL_COUNT; i++)
    printf(" %s %llu", calls[i], (unsigned long long)ni_core.calls[i]);
  printf("\nevents:");
  for (int i = 0; i < 16; i++)
    if (ni_core.starts[i])
      printf(" %s %llu%s", events[i], (unsigned long long)ni_core.starts[i],
             ni_core.null_handles[i] ? "" : "");
  printf("\n");
  for (int i = 0; i < 16; i++)
    if (ni_core.null_handles[i])
      printf("without a handle: %s %llu\n", events[i], (unsigned long long)ni_core.null_handles[i]);
}

static int run_here(const struct ni_scn *s, const struct ni_options *o) {
  char host[128] = "";
  ni_run_prepare(s, o->scenario);
  gethostname(host, sizeof host - 1);
  int masks = 0;
  for (int i = 0; i < s->n_steps; i++)
    masks += s->steps[i].verb == NI_DO_MASK || s->steps[i].verb == NI_DO_RAS;
  ni_truth_process(host, s->set.seed, masks);
  for (int i = 0; i < ni_run.n_ranks; i++)
    if (pthread_create(&ni_run.ranks[i].a, NULL, ni_app_main, &ni_run.ranks[i]))
      ni_die(NI_SIM_FAILED, "cannot create a thread for rank %d", i);
  for (int i = 0; i < ni_run.n_ranks; i++)
    pthread_join(ni_run.ranks[i].a, NULL);
  if (s->set.end != NI_END_FINALIZE)
    ni_end_process(s->set.end);
  ni_truth_events();
  ni_truth_end(NI_END_FINALIZE);
  return 0;
}

int ni_job_run(struct ni_scn *s, const struct ni_options *o) {
  ni_core_become(s->set.release);
  if (s->max_ch > ni_core_channels())
    ni_die(NI_SIM_USAGE, "%s: %d channels: NCCL has 64 at most; nccl=rccl-2.28 or rccl-2.31 has 256",
           o->scenario, s->max_ch);
  ni_core.want_interface = s->set.interface;
  ni_core.poison = (enum ni_poison)s->set.poison;
  size_t ring = sizeof(struct ni_meet), bytes = ring * (size_t)s->n_comms + sizeof(struct ni_start);
  char *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shared == MAP_FAILED)
    ni_die(NI_SIM_FAILED, "cannot map %zu bytes for the ranks to meet", bytes);
  ni_run.meets = ni_xalloc((size_t)s->n_comms * sizeof *ni_run.meets);
  for (int i = 0; i < s->n_comms; i++)
    ni_run.meets[i] = (struct ni_meet *)(shared + ring * (size_t)i);
  ni_run.start = (struct ni_start *)(shared + ring * (size_t)s->n_comms);
  if (!o->quiet) {
    char release[40];
    printf("scenario %s, seed %llu, %s %s\n", o->scenario, (unsigned long long)s->set.seed,
           ni_core.rccl ? "RCCL" : "NCCL", ni_release_text(ni_core.release, release));
    fflush(stdout);
  }
  ni_truth_open(o->truth);
  int rc = 0;
  uint64_t t0 = ni_now();
  if (!s->set.procs) {
    /* An end that kills the process must not take the caller's report along. */
    rc = run_here(s, o);
  } else {
    pid_t *pids = ni_xalloc((size_t)s->set.ranks * sizeof *pids);
    for (int i = 0; i < s->set.ranks; i++) {
      pids[i] = fork();
      if (pids[i] < 0)
        ni_die(NI_SIM_FAILED, "fork of rank %d: %s", i, strerror(errno));
      if (pids[i] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ni_run.proc = i;
        rank_env(s, i);
        exit(run_here(s, o));
      }
    }
    for (int i = 0; i < s->set.ranks; i++) {
      int status = 0;
      while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR) {}
      bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      if (WIFSIGNALED(status) && !killed)
        ni_sim_say("rank %d ended by signal %d", i, WTERMSIG(status));
      if ((WIFSIGNALED(status) && !killed) || (WIFEXITED(status) && WEXITSTATUS(status)))
        rc = NI_SIM_FAILED;
    }
    free(pids);
  }
  if (!o->quiet) {
    printf("%.3f s\n", (double)(ni_now() - t0) / 1e9);
    if (!s->set.procs)
      summary();
  }
  return rc;
}
