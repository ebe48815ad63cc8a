/*
 * nccl-inspector run: a command with the plugin's variables, and afterwards what its logs say. docs/run.md
 *
 *   variables, folders ──▶ command runs ──▶ command has ended ──▶ five lines ──▶ its exit code
 *                           │      ▲
 *                           ▼      │ the look has ended, its 10 s are over, or another signal comes
 *                          Ctrl-C is held back: who is missing? (once)
 *
 * The command is the user's (foreground.h): descriptors, signal mask, limits, signals and exit code are as
 * without us. Beside it run looks at a hang (watch.h), a thread that reads counters where that is asked for,
 * and nothing else; what is said afterwards is a child's (after.h). A rank that is not the first of a job
 * becomes the command, or stays silent beside it to read counters.
 *
 * What can fail, and what becomes of the command:
 *   folders, or no plugin to be found       it is not started: 125, and a sentence
 *   the command cannot be started           126, 127 as of a shell; folders that were made go
 *   counters, looks, report                 a sentence, and nothing else: the command runs, and its code is
 *                                           ours
 *   a signal that ends us comes before      it is not started: 128 + N
 *   SIGKILL of us                           the command goes on; on a terminal, where it has a process group
 *                                           of its own, also where the whole group is killed
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "after.h"
#include "exporter/base/now.h"
#include "exporter/base/process/foreground.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/cmds/counters/recorder.h"
#include "watch.h"

#define SECOND UINT64_C(1000000000)
enum {
  CODE_OWN = 125,
  KILL_AFTER_S = 60, /* torchrun gives its ranks 30 s */
  WAIT_S = 60,       /* for the logs of ranks that a launcher started beside us */
  WAIT_KILLED_S = 2, /* the same where the command was killed: then the others were, too */
  WAIT_UNSET = 1000000
};

struct run_job_state {
  struct ni_launch_wants wants;
  char **command;
  unsigned hang_limit_s, wait_s;
  bool kill;
  struct ni_launch launch;
  struct ni_foreground front; /* the command */
  struct ni_run_watch watch;
  struct ni_record_options counters;
  struct ni_recorder recorder;
  bool asked;       /* Ctrl-C has come once */
  siginfo_t held;   /* the signal that waits for the look to end; si_signo 0: none */
  uint64_t kill_ns; /* when SIGKILL follows SIGTERM; 0: it does not */
  bool told_to_end; /* a signal that ends jobs was passed on */
};

static const char *refuse_run(void *into) {
  const struct run_job_state *j = into;
  return j->kill && !j->hang_limit_s
      ? "--kill is for a job that hangs: say from when on, such as --hang-limit 600 --kill"
      : NULL;
}

const struct ni_command ni_run_command = {
    .name = "run",
    .need = NI_NEED_BEFORE,
    .purpose = "a job with the plugin in it, and what stands out when it has ended",
    .about =
        "Runs COMMAND with the plugin's variables set. When it has ended: are its logs complete, what stands "
        "out, where is the report?",
    .synopsis = "[OPTION...] [--] COMMAND [ARGUMENT...]",
    .refuse = refuse_run,
    .run = ni_run_run,
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_REST, "COMMAND...", NULL, NI_INTO(struct run_job_state, command), .min = 1,
             .want = "which command? for example: run -- torchrun --nproc-per-node 8 train.py"},
            {"out", 'o', NI_OPT_TEXT, "DIR",
             "Folder of the run: logs/ and report/ (default ./nccl-inspector-TIME-PID). Where ranks run on "
             "several hosts: one that all of them see",
             NI_INTO(struct run_job_state, wants.out), .min = 1, .want = "a folder"},
            {"hang-limit", 0, NI_OPT_NUMBER, "SECONDS",
             "Say who is missing when nothing has moved for so long, and two looks 10 s apart agree; "
             "nothing is killed",
             NI_INTO(struct run_job_state, hang_limit_s), .want = "a number of seconds", .min = 1,
             .max = 1000000},
            {"kill", 0, NI_OPT_FLAG, NULL, "Then end the command: SIGTERM, and SIGKILL 60 s later",
             NI_INTO(struct run_job_state, kill)},
            {"counters", 0, NI_OPT_FLAG, NULL,
             "Record what NICs, GPUs and the host count, once a second, beside the logs",
             NI_INTO(struct run_job_state, wants.counters)},
            {"wait", 0, NI_OPT_NUMBER, "SECONDS",
             "The most to wait for logs of ranks that have not ended (default 60 where a launcher "
             "started us on each rank, else 0)",
             NI_INTO(struct run_job_state, wait_s), .want = "a number of seconds", .max = 86400},
            {0}},
    .more =
        "Standard input, output, error, signals and the exit code are the command's; what this has to say "
        "comes on standard error.\n"
        "Variables that are set already stay. Ctrl-C: first it is said who is missing, then the command gets "
        "it.\n"
        "Started on each rank (srun, mpirun, torchrun --no-python), rank 0 speaks and the others are silent.",
    .exits = {{"N", "the command's own code"},
              {"128+N", "it was killed by signal N"},
              {"125", "could not run: the command was not started"},
              {"126", "the command could not be started"},
              {"127", "there is no such command"}},
    .examples = {{"-- python train.py", "the first job: logs, verdict and a page"},
                 {"--out /shared/run1 -- srun python train.py", "ranks on several hosts"},
                 {"--hang-limit 600 --counters -- torchrun train.py", "a long one"}},
    .files = {{"DIR/logs/", "what the plugin wrote, a log for each rank"},
              {"DIR/report/report.html", "one page, to be opened in a browser"}}};

/* ---- while it runs ---- */

static void forward_signal(struct run_job_state *j, const siginfo_t *info) {
  static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
    j->told_to_end |= info->si_signo == ending[i];
  ni_foreground_pass(&j->front, info);
}

static void forward_held_signal(struct run_job_state *j) {
  if (j->held.si_signo)
    forward_signal(j, &j->held);
  j->held.si_signo = 0;
}

/* The first Ctrl-C is held until it is said who is missing. Another signal meanwhile releases it at once. */
static void handle_signal(struct run_job_state *j, const siginfo_t *info) {
  bool ask = info->si_signo == SIGINT && !j->asked;
  bool waits = info->si_signo == SIGCONT || info->si_signo == SIGTSTP || info->si_signo == SIGWINCH;
  if (ask)
    j->asked = true;
  if (ask && ni_run_watch_ask(&j->watch)) {
    j->held = *info;
    return;
  }
  if (!waits && j->held.si_signo) {
    ni_run_watch_enough(&j->watch);
    forward_held_signal(j);
  }
  forward_signal(j, info);
}

static void kill_command(struct run_job_state *j, int sig) {
  ni_say(stderr, "%s: --kill: %s to %s (pid %d)\n", j->launch.who, sig == SIGTERM ? "SIGTERM" : "SIGKILL",
         j->command[0], (int)j->front.child);
  j->told_to_end = true;
  (void)kill(j->front.apart ? -j->front.child : j->front.child, sig);
  j->kill_ns = sig == SIGTERM ? ni_now_ns(CLOCK_MONOTONIC) + KILL_AFTER_S * SECOND : 0;
}

static void take_turn(struct run_job_state *j) {
  bool hangs = ni_run_watch_turn(&j->watch);
  if (!ni_run_watch_asked(&j->watch))
    forward_held_signal(j);
  if (!j->front.child)
    return;
  if (hangs && j->kill && !j->kill_ns)
    kill_command(j, SIGTERM);
  else if (j->kill_ns && ni_now_ns(CLOCK_MONOTONIC) >= j->kill_ns)
    kill_command(j, SIGKILL);
}

/* Attends the command until it has ended, and a look that was begun by then. */
static void attend_command(struct run_job_state *j) {
  siginfo_t info;
  while (j->front.child || ni_run_watch_asked(&j->watch)) {
    uint64_t due = ni_run_watch_due(&j->watch);
    if (j->kill_ns && j->kill_ns < due)
      due = j->kill_ns;
    if (ni_foreground_wait(&j->front, due, &info) == NI_FOREGROUND_SIGNAL)
      handle_signal(j, &info);
    take_turn(j);
  }
  ni_run_watch_end(&j->watch);
}

/* ---- when it has ended ---- */

/* A signal while we report ends the report. If it came from the terminal it has reached the child already. */
static void stop_telling(pid_t child, const siginfo_t *info) {
  if (info->si_code != SI_KERNEL || info->si_signo == SIGCONT)
    (void)kill(child, info->si_signo);
  if (info->si_signo == SIGTSTP)
    (void)raise(SIGSTOP);
}

static void report_job(struct run_job_state *j) {
  bool killed = WIFSIGNALED(j->front.status) || j->told_to_end;
  unsigned wait_s = killed ? WAIT_KILLED_S : WAIT_S;
  if (j->wait_s != WAIT_UNSET)
    wait_s = j->wait_s;
  else if (j->launch.part == NI_LAUNCH_ALONE)
    wait_s = 0;
  const struct ni_after a = {.l = &j->launch,
                             .command = j->command[0],
                             .code = ni_foreground_code(&j->front),
                             .hang = j->watch.sentence,
                             .wait_s = wait_s};
  siginfo_t info;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    ni_foreground_as_started(&j->front);
    exit(ni_after_tell(&a));
  }
  if (child < 0)
    ni_say(stderr, "%s: no report: %s\n", j->launch.who, strerror(errno));
  while (child > 0 && waitpid(child, NULL, WNOHANG) == 0)
    if (ni_foreground_wait(&j->front, UINT64_MAX, &info) == NI_FOREGROUND_SIGNAL)
      stop_telling(child, &info);
}

/*
 * A shell script ends by Ctrl-C if the program that it waits for did, and not if that has merely exited with
 * 130.
 */
static void end_as_the_command(const struct run_job_state *j) {
  sigset_t set;
  if (!j->front.apart || !WIFSIGNALED(j->front.status) || WTERMSIG(j->front.status) != SIGINT)
    return;
  fflush(NULL);
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  signal(SIGINT, SIG_DFL);
  (void)raise(SIGINT);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- together ---- */

static int report_not_started(const struct run_job_state *j, int e) {
  ni_say(stderr, "%s: %s: %s\n", j->launch.who, j->command[0], strerror(-e));
  return ni_foreground_code_of_error(e);
}

static int run_job(struct run_job_state *j) {
  bool silent = j->launch.part == NI_LAUNCH_SILENT;
  if (silent && !(j->wants.counters && j->launch.first_of_node)) {
    execvp(j->command[0], j->command);
    return report_not_started(j, -errno);
  }
  ni_foreground_begin(&j->front);
  if (j->launch.kept && !silent)
    ni_say(stderr, "%s: stays as you have set it: %s\n", j->launch.who, j->launch.kept);
  if (j->wants.counters) {
    j->counters = (struct ni_record_options){.dir = j->launch.counters, .every_ns = SECOND};
    ni_collector_raise_limit();
    (void)ni_recorder_start(&j->recorder, &j->counters, j->launch.who, true);
  }
  int told = ni_foreground_told_to_end();
  /* On a terminal Ctrl-C is to come to us first; whom --kill ends is a whole group. */
  bool apart = j->kill || (!silent && ni_foreground_on_terminal());
  /* Before the command: whatever it makes is new. */
  ni_run_watch_begin(&j->watch, &j->launch, silent || told ? 0 : j->hang_limit_s);
  int e = told ? 0 : ni_foreground_start(&j->front, j->command, apart);
  j->asked = silent;
  if (!told && e == 0)
    attend_command(j);
  (void)ni_recorder_stop(&j->recorder);
  if (told || e < 0)
    ni_launch_undo(&j->launch);
  if (told)
    return 128 + told;
  if (e < 0)
    return report_not_started(j, e);
  if (!silent)
    report_job(j);
  end_as_the_command(j);
  return ni_foreground_code(&j->front);
}

int ni_run_run(int argc, char **argv) {
  struct run_job_state j = {.wait_s = WAIT_UNSET};
  int done, code = ni_words_parse(&ni_run_command, argc, argv, &j, &done);
  if (done)
    return code;
  code = ni_launch_begin(&j.launch, argv[0], &j.wants) ? run_job(&j) : CODE_OWN;
  ni_launch_free(&j.launch);
  return code;
}
