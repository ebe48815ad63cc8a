/*
 * nccl-sim: a simulated NCCL core. This room reads the command line and starts the mode that is asked for.
 * Exit status: 0 done (and verified), 1 something failed or disagrees, 64 wrong command line or scenario.
 */
#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/cli/complete.h"
#include "exporter/cli/page.h"
#include "modes.h"
#include "test/nccl_sim/core/settings.h"

void ni_sim_say(const char *fmt, ...) {
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

static char *first_comment(const char *path) {
  static char line[256];
  FILE *f = fopen(path, "re");
  line[0] = 0;
  if (!f)
    return line;
  if (!fgets(line, sizeof line, f))
    line[0] = 0;
  fclose(f);
  line[strcspn(line, "\n")] = 0;
  return line[0] == '#' ? line + 1 + (line[1] == ' ') : line;
}

/*
 * Folder i that scenarios lie in: of the tree that one stands in, of the installation, of the tree it was
 * built in.
 */
static const char *scenario_dir(int i) {
  static const char *const dirs[] = {"test/scenarios", "../test/scenarios",
                                     "/../share/nccl-inspector/scenarios", "/../test/scenarios"};
  static char path[4096];
  if (i >= (int)(sizeof dirs / sizeof *dirs))
    return NULL;
  if (dirs[i][0] != '/')
    return dirs[i];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
  if (n < 0)
    n = 0;
  path[n] = 0;
  char *slash = strrchr(path, '/');
  strcpy(slash ? slash : path, dirs[i]);
  return path;
}

static int list_scenarios(void) {
  char pattern[4200];
  glob_t g;
  for (int d = 0; scenario_dir(d); d++) {
    snprintf(pattern, sizeof pattern, "%s/*.scn", scenario_dir(d));
    if (glob(pattern, 0, NULL, &g) != 0)
      continue;
    for (size_t i = 0; i < g.gl_pathc; i++) {
      const char *base = strrchr(g.gl_pathv[i], '/') + 1;
      printf("%-24.*s %s\n", (int)strcspn(base, "."), base, first_comment(g.gl_pathv[i]));
    }
    globfree(&g);
    return 0;
  }
  for (int d = 0; scenario_dir(d); d++)
    ni_sim_say("no scenarios in %s", scenario_dir(d));
  return NI_SIM_FAILED;
}

static const char *find_scenario(const char *name) {
  static char path[4400];
  struct stat st;
  if (stat(name, &st) == 0 && !S_ISDIR(st.st_mode) && access(name, R_OK) == 0)
    return name;
  for (int d = 0; scenario_dir(d); d++) {
    snprintf(path, sizeof path, "%s/%.255s.scn", scenario_dir(d), name);
    if (access(path, R_OK) == 0)
      return path;
  }
  ni_die(NI_SIM_USAGE, "--scenario %s: no such file, nor test/scenarios/%s.scn; see --list-scenarios", name,
         name);
}

struct line {
  struct ni_options o;
  const char *library, *scenario, *job, *replay, *verify, *plain[2];
  int n_plain;
  const char *completion;
  bool list, man;
};

static int take_plain(const struct ni_opt *o, void *into, const char *arg) {
  struct line *l = into;
  (void)o;
  if (l->n_plain == 2)
    return -EINVAL;
  l->plain[l->n_plain++] = arg;
  return 0;
}

/* --set key=value, --key value, --key (1). */
static int take_set(const struct ni_opt *o, void *into, const char *arg) {
  struct ni_options *to = &((struct line *)into)->o;
  char *pair;
  if (to->n_sets == NI_MAX_SETS)
    return -EINVAL;
  if (strcmp(o->name, "set") == 0)
    pair = strdup(arg);
  else if (asprintf(&pair, "%s=%s", o->name, arg ? arg : "1") < 0)
    pair = NULL;
  for (char *p = pair; p && *p && *p != '='; p++)
    if (*p == '-')
      *p = '_';
  if (!pair)
    return -ENOMEM;
  to->sets[to->n_sets++] = pair;
  return 0;
}

static const char *refuse(void *into) {
  const struct line *l = into;
  if (l->verify)
    return l->n_plain == 1 ? NULL : "--verify TRUTH LOGDIR: one log directory or file expected";
  if (l->n_plain && !(l->o.pool_report && l->n_plain == 2))
    return "what stands without an option is LOGDIR of --verify, or of --pool-report";
  return l->replay || l->scenario || l->job || l->o.pool_report || l->list || l->man || l->completion
      ? NULL
      : "what to do? --scenario, --job, --replay, --verify or --list-scenarios";
}

#define IN(member) NI_INTO(struct line, member)
#define AS_SET(name, arg, setting) \
  {name, 0, NI_OPT_TAKE, arg, "The same as --set " setting, .take = take_set, .want = "at most 64 settings"}
static const struct ni_command sim = {
    .name = "nccl-sim",
    .purpose = "drives a profiler plugin as NCCL would, without a GPU",
    .about = "Drives a profiler plugin as NCCL would, without a GPU, and keeps a truth of what happened.",
    .synopsis =
        "[--plugin SO] [--scenario FILE | --job NxG | --replay FILE] [--set key=value]...\n"
        "--verify TRUTH LOGDIR\n"
        "--pool-report [TRUTH LOGDIR | --scenario FILE ...]",
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_TAKE, "LOGDIR", NULL, .take = take_plain, .want = "TRUTH and LOGDIR at most"},
            {"plugin", 0, NI_OPT_TEXT, "SO",
             "The profiler; without it NCCL_PROFILER_PLUGIN and NCCL's own rules", IN(library)},
            {"scenario", 0, NI_OPT_TEXT, "FILE", "What the job does; or the name of one of --list-scenarios",
             IN(scenario)},
            {"list-scenarios", 0, NI_OPT_FLAG, NULL, "Name and first line of each", IN(list)},
            {"job", 0, NI_OPT_TEXT, "NxG", "A training job on N nodes of G GPUs: tp, dp and pp communicators",
             IN(job)},
            {"iterations", 0, NI_OPT_NUMBER, "N", "Of that job", IN(o.iterations), .def = "20",
             .max = 1000000000},
            {"replay", 0, NI_OPT_TEXT, "FILE",
             "Recorded callbacks (.jsonl, or test/recorder.so's), in order and threads", IN(replay)},
            {"truth", 0, NI_OPT_TEXT, "FILE", "Write what really happened, one JSON object per line",
             IN(o.truth)},
            {"verify", 0, NI_OPT_TEXT, "TRUTH",
             "Compare a truth with the plugin's logs in LOGDIR, value by value", IN(verify)},
            {"pool-report", 0, NI_OPT_FLAG, NULL,
             "Pool sizes the workload needs: in flight, high water, memory, drops", IN(o.pool_report)},
            {"set", 0, NI_OPT_TAKE, "key=value",
             "One of the settings, or a `var` of the scenario; repeatable", .take = take_set,
             .want = "at most 64 settings"},
            AS_SET("nccl", "R", "nccl=R"),
            AS_SET("interface", "vN", "interface=vN"),
            AS_SET("seed", "N", "seed=N"),
            AS_SET("rate", "OPS", "rate=OPS"),
            AS_SET("time-scale", "F", "time_scale=F"),
            AS_SET("procs", NULL, "procs=1"),
            AS_SET("nodes", "N", "nodes=N"),
            AS_SET("gpus-per-node", "G", "gpus_per_node=G, a `var` of some scenarios"),
            {"quiet", 0, NI_OPT_FLAG, NULL, "No log lines of the plugin below WARN, no closing table",
             IN(o.quiet)},
            {"man", 0, NI_OPT_FLAG, NULL, NULL, IN(man)},
            {"completion", 0, NI_OPT_CHOICE, "SHELL", NULL, IN(completion), .want = NI_SHELLS},
            {0}},
    .exits = {{"0", "done; with --verify: all agrees"}, {"1", "something failed or disagrees"}},
    .examples = {{"--plugin libnccl-profiler-inspector.so --job 2x8 --truth truth.jsonl",
                  "a training job of sixteen ranks, recorded"},
                 {"--verify truth.jsonl nccl-inspector-unknown-jobid", "are its logs right?"},
                 {"--scenario p2p --nccl 2.27 --seed 7 --set inflight=16", "one of --list-scenarios"}},
    .files = {{"share/nccl-inspector/scenarios", "under the prefix it is installed in: the scenarios"}},
    .extra = ni_settings_words,
    .refuse = refuse};

int main(int argc, char **argv) {
  static struct line l; /* static: what it points at lives as long as the program */
  struct ni_options *o = &l.o;
  int done;
  argv[0] = (char[]){"nccl-sim"};
  if (argc == 1) {
    ni_words_help(stderr, argv[0], &sim);
    return NI_SIM_USAGE;
  }
  int code = ni_words_parse(&sim, argc, argv, &l, &done);
  if (done)
    return code;
  if (l.man)
    ni_words_man(stdout, argv[0], 1, &sim);
  if (l.completion)
    ni_words_complete(stdout, l.completion, argv[0], NULL, 0, &sim);
  if (l.man || l.completion)
    return 0;
  if (l.list)
    return list_scenarios();
  ni_core.library = l.library;
  ni_core.quiet = o->quiet;
  if (l.verify)
    return ni_verify_main(l.verify, l.plain[0], o->quiet);
  if (l.n_plain)
    return ni_pool_report(l.plain[0], l.plain[1]);
  if (l.replay)
    return ni_replay_main(l.replay, o);
  if (!l.scenario && !l.job)
    ni_die(NI_SIM_USAGE, "--pool-report: TRUTH LOGDIR, --scenario or --job expected");
  o->scenario = l.scenario ? find_scenario(l.scenario) : l.job;
  struct ni_scn *s = l.job ? ni_job_scenario(l.job, o) : ni_scn_read(o->scenario, o->sets, o->n_sets);
  int rc = o->pool_report ? ni_pool_report_run(s, o) : ni_job_run(s, o);
  ni_scn_free(s);
  return rc;
}
