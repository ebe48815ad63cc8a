/*
 * nccl-sim: a simulated NCCL core. This room reads the command line and starts the mode that is asked for.
 * Exit status: 0 done (and verified), 1 something failed or disagrees, 2 wrong command line or scenario.
 */
#include <getopt.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "modes.h"
#include "test/nccl_sim/core/settings.h"

void ni_say(const char *fmt, ...) {
  char text[2048];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  fprintf(stderr, "nccl-sim: %s\n", text);
}

void ni_die(int status, const char *fmt, ...) {
  char text[2048];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  fprintf(stderr, "nccl-sim: %s\n", text);
  fflush(NULL);
  _exit(status); /* threads may be inside the plugin */
}

/* Plugins ask the running program for NCCL's version; they shall find the simulated one. */
int ncclGetVersion(int *version);
int ncclGetVersion(int *version) {
  *version = ni_core.release;
  return 0;
}

static void help(void) {
  printf(
      "Usage: nccl-sim [--plugin SO] [--scenario FILE | --job NxG | --replay FILE] [--set key=value]...\n"
      "       nccl-sim --verify TRUTH LOGDIR\n"
      "       nccl-sim --pool-report [TRUTH LOGDIR | --scenario FILE ...]\n\n"
      "Drives a profiler plugin as NCCL would, without a GPU, and keeps a truth of what happened.\n\n"
      "  --plugin SO          the profiler; without it NCCL_PROFILER_PLUGIN and NCCL's own rules\n"
      "  --scenario FILE      what the job does; a bare name is looked for in test/scenarios\n"
      "  --list-scenarios     name and first line of each\n"
      "  --job NxG            a training job on N nodes of G GPUs: tp, dp and pp communicators\n"
      "  --iterations N       of that job (default 20)\n"
      "  --replay FILE        recorded callbacks (.jsonl, or test/recorder.so's), in order and threads\n"
      "  --truth FILE         write what really happened, one JSON object per line\n"
      "  --verify TRUTH DIR   compare a truth with the plugin's logs, value by value\n"
      "  --pool-report        pool sizes the workload needs: in flight, high water, memory, drops\n"
      "  --set key=value      a setting below, or a `var` of the scenario; repeatable\n"
      "  --nccl R, --interface vN, --seed N, --rate OPS, --time-scale F, --procs, --nodes N,\n"
      "  --gpus-per-node G    the same as --set nccl=R ...\n"
      "  --quiet              no log lines of the plugin below WARN, no closing table\n\n"
      "Settings (name, default, meaning):\n");
  ni_settings_help(stdout);
  printf("\nExit status: 0 done, 1 failed or disagrees, 2 wrong command line or scenario.\n");
}

static char *first_comment(const char *path) {
  static char line[256];
  FILE *f = fopen(path, "re");
  line[0] = 0;
  if (!f) return line;
  if (!fgets(line, sizeof line, f)) line[0] = 0;
  fclose(f);
  line[strcspn(line, "\n")] = 0;
  return line[0] == '#' ? line + 1 + (line[1] == ' ') : line;
}

static const char *const scenario_dirs[] = {"test/scenarios", "../test/scenarios"};

static void list_scenarios(void) {
  for (size_t d = 0; d < sizeof scenario_dirs / sizeof *scenario_dirs; d++) {
    char pattern[300];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/*.scn", scenario_dirs[d]);
    if (glob(pattern, 0, NULL, &g) != 0) continue;
    for (size_t i = 0; i < g.gl_pathc; i++) {
      const char *base = strrchr(g.gl_pathv[i], '/') + 1;
      printf("%-24.*s %s\n", (int)strcspn(base, "."), base, first_comment(g.gl_pathv[i]));
    }
    globfree(&g);
    return;
  }
}

static const char *find_scenario(const char *name) {
  static char path[512];
  if (access(name, R_OK) == 0) return name;
  for (size_t d = 0; d < sizeof scenario_dirs / sizeof *scenario_dirs; d++) {
    snprintf(path, sizeof path, "%s/%s.scn", scenario_dirs[d], name);
    if (access(path, R_OK) == 0) return path;
  }
  ni_die(NI_SIM_USAGE, "--scenario %s: no such file, nor test/scenarios/%s.scn; see --list-scenarios", name, name);
}

enum { O_PLUGIN = 256, O_SCENARIO, O_LIST, O_JOB, O_ITER, O_REPLAY, O_TRUTH, O_VERIFY, O_POOL, O_SET, O_PROCS,
       O_QUIET, O_HELP, O_AS_SET };

static const struct option options[] = {
    {"plugin", required_argument, NULL, O_PLUGIN},     {"scenario", required_argument, NULL, O_SCENARIO},
    {"list-scenarios", no_argument, NULL, O_LIST},     {"job", required_argument, NULL, O_JOB},
    {"iterations", required_argument, NULL, O_ITER},   {"replay", required_argument, NULL, O_REPLAY},
    {"truth", required_argument, NULL, O_TRUTH},       {"verify", required_argument, NULL, O_VERIFY},
    {"pool-report", no_argument, NULL, O_POOL},        {"set", required_argument, NULL, O_SET},
    {"procs", no_argument, NULL, O_PROCS},             {"quiet", no_argument, NULL, O_QUIET},
    {"help", no_argument, NULL, O_HELP},               {"nccl", required_argument, NULL, O_AS_SET},
    {"interface", required_argument, NULL, O_AS_SET},  {"seed", required_argument, NULL, O_AS_SET},
    {"rate", required_argument, NULL, O_AS_SET},       {"time-scale", required_argument, NULL, O_AS_SET},
    {"nodes", required_argument, NULL, O_AS_SET},      {"gpus-per-node", required_argument, NULL, O_AS_SET},
    {NULL, 0, NULL, 0}};

int main(int argc, char **argv) {
  static struct ni_options o = {.iterations = 20}; /* static: what it points at lives as long as the program */
  const char *scenario = NULL, *job = NULL, *replay = NULL, *verify = NULL;
  int index = 0;
  for (int c; (c = getopt_long(argc, argv, "", options, &index)) != -1;) {
    char *pair = NULL;
    switch (c) {
      case O_PLUGIN: ni_core.library = optarg; break;
      case O_SCENARIO: scenario = optarg; break;
      case O_LIST: list_scenarios(); return 0;
      case O_JOB: job = optarg; break;
      case O_ITER: o.iterations = atoi(optarg); break;
      case O_REPLAY: replay = optarg; break;
      case O_TRUTH: o.truth = optarg; break;
      case O_VERIFY: verify = optarg; break;
      case O_POOL: o.pool_report = true; break;
      case O_QUIET: o.quiet = ni_core.quiet = true; break;
      case O_HELP: help(); return 0;
      case O_SET: pair = optarg; break;
      case O_PROCS: pair = "procs=1"; break;
      case O_AS_SET:
        if (asprintf(&pair, "%s=%s", options[index].name, optarg) < 0) ni_die(NI_SIM_FAILED, "out of memory");
        for (char *p = pair; *p && *p != '='; p++)
          if (*p == '-') *p = '_';
        break;
      default: ni_die(NI_SIM_USAGE, "see nccl-sim --help");
    }
    if (pair) {
      if (o.n_sets == NI_MAX_SETS) ni_die(NI_SIM_USAGE, "more than %d settings", NI_MAX_SETS);
      o.sets[o.n_sets++] = pair;
    }
  }
  if (verify) {
    if (optind + 1 != argc) ni_die(NI_SIM_USAGE, "--verify TRUTH LOGDIR: one log directory or file expected");
    return ni_verify_main(verify, argv[optind], o.quiet);
  }
  if (o.pool_report && optind + 2 == argc) return ni_pool_report(argv[optind], argv[optind + 1]);
  if (optind != argc) ni_die(NI_SIM_USAGE, "%s: not an option; see nccl-sim --help", argv[optind]);
  if (replay) return ni_replay_main(replay, &o);
  if (!scenario && !job) {
    help();
    return NI_SIM_USAGE;
  }
  o.scenario = scenario ? find_scenario(scenario) : job;
  struct ni_scn *s = job ? ni_job_scenario(job, &o) : ni_scn_read(o.scenario, o.sets, o.n_sets);
  int rc = o.pool_report ? ni_pool_report_run(s, &o) : ni_job_run(s, &o);
  ni_scn_free(s);
  return rc;
}
