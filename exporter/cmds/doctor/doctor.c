/* The command: order of the checks, text and JSON, exit code. See findings.h. And the checks of what the
 * machine gives and of the settings. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include "exporter/base/text/json_write.h"
#include "exporter/base/text/names_alike.h"
#include "exporter/base/text/plural.h"
#include "exporter/cli/command.h"
#include "child.h"
#include "ni_box.h"
#include "plugin_load.h"
#include "trial.h"

static void check_shared_memory(struct ni_doctor *d) {
  const char *dir = d->shm_dir ? d->shm_dir : NI_BOX_DIR;
  struct statvfs v;
  if (statvfs(dir, &v) < 0 || access(dir, W_OK | X_OK) < 0) {
    ni_doctor_add(d, "shm", NI_DOC_WARNING,
                  "NCCL itself wants it too; containers get it with --ipc=host or --shm-size.",
                  "%s cannot be used: %s", dir, strerror(errno));
    return;
  }
  double free_mb = (double)v.f_bavail * (double)v.f_frsize / 1e6,
         size_mb = (double)v.f_blocks * (double)v.f_frsize / 1e6;
  if (free_mb < 64)
    ni_doctor_add(d, "shm", NI_DOC_WARNING,
                  "Containers get more with --shm-size=1g or --ipc=host; else remove what fills it.",
                  "%s has %.0f of %.0f MB free: too little for NCCL's own buffers and for records that "
                  "outlive a killed process",
                  dir, free_mb, size_mb);
  else
    ni_doctor_add(d, "shm", NI_DOC_OK, NULL, "%s has %.1f of %.1f GB free; at most a quarter of that is used",
                  dir, free_mb / 1e3, size_mb / 1e3);
}

static void check_clocks(struct ni_doctor *d) {
  struct timex t;
  char source[64] = "unknown";
  memset(&t, 0, sizeof t);
  int state = adjtimex(&t);
  if (state < 0)
    ni_doctor_add(d, "clock", NI_DOC_NOTE, NULL, "whether the clock is synchronised cannot be asked: %s",
                  strerror(errno));
  else if (state == TIME_ERROR || (t.status & STA_UNSYNC))
    ni_doctor_add(
        d, "clock", NI_DOC_WARNING, "Start chronyd, ntpd or systemd-timesyncd on every host.",
        "the kernel calls this host's clock not synchronised: times of different hosts cannot be laid side "
        "by side; durations and bandwidths are not touched by this");
  else
    ni_doctor_add(d, "clock", NI_DOC_OK, NULL, "synchronised, error at most %.1f ms",
                  (double)t.maxerror / 1e3);
  FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
  if (f) {
    if (fscanf(f, "%63s", source) != 1)
      strcpy(source, "unknown");
    fclose(f);
    if (strcmp(source, "tsc") != 0 && strcmp(source, "arch_sys_counter") != 0 &&
        strcmp(source, "kvm-clock") != 0)
      ni_doctor_add(d, "clock", NI_DOC_NOTE, NULL,
                    "the kernel's clock source is %s: reading the time is slower, for the plugin as for NCCL",
                    source);
  }
}

static void check_limits(struct ni_doctor *d) {
  struct rlimit r;
  if (getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
    ni_doctor_add(d, "limits", r.rlim_cur < 1 << 20 ? NI_DOC_PROBLEM : NI_DOC_NOTE,
                  r.rlim_cur < 1 << 20 ? "ulimit -f unlimited" : NULL,
                  "files may have %llu bytes (ulimit -f); the plugin begins a new one when that is reached",
                  (unsigned long long)r.rlim_cur);
  if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
    ni_doctor_add(
        d, "limits", NI_DOC_NOTE, NULL,
        "address space is limited to %.1f GB (ulimit -v); NCCL_INSPECTOR_POOL_MAX_BYTES of it is reserved",
        (double)r.rlim_cur / 1e9);
  if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < 256)
    ni_doctor_add(d, "limits", NI_DOC_WARNING, "ulimit -n 4096",
                  "only %llu open files are allowed; NCCL needs many sockets",
                  (unsigned long long)r.rlim_cur);
}

static void check_gpus(struct ni_doctor *d) {
  glob_t g;
  char line[256] = "";
  size_t n = glob("/dev/nvidia[0-9]*", 0, NULL, &g) == 0 ? g.gl_pathc : 0;
  globfree(&g);
  FILE *f = fopen("/proc/driver/nvidia/version", "re");
  if (f) {
    if (!fgets(line, sizeof line, f))
      line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    fclose(f);
  }
  if (n)
    ni_doctor_add(d, "gpu", NI_DOC_OK, NULL, "%zu %s%s%s", n, ni_plural(n, "GPU", "GPUs"), *line ? ", " : "",
                  line);
  else
    ni_doctor_add(d, "gpu", NI_DOC_NOTE,
                  "On a login node this is as it should be; run doctor on a compute node for the rest.",
                  "no NVIDIA GPU is visible here");
}

static void check_machine(struct ni_doctor *d) {
  check_shared_memory(d);
  check_clocks(d);
  check_limits(d);
  check_gpus(d);
}

/*
 * The environment: names that are similar to those of settings, and settings that contradict each other. What
 * the plugin itself refuses (a bad value, a name of ours that does not exist) it says in the trial. Here is
 * what it cannot see.
 */
static const char *find_nearest_name(const struct ni_doctor *d, const char *name, size_t n, bool *exact) {
  static const char *const others[] = {"NCCL_PROFILER_PLUGIN"};
  const char *best = NULL;
  unsigned least = 4;
  for (size_t i = 0; i < d->n_known + 1; i++) {
    const char *k = i < d->n_known ? d->known[i] : others[0];
    size_t m = strlen(k);
    unsigned far = n < NI_EDITS_MAX && m < NI_EDITS_MAX ? ni_edits(name, n, k, m, false) : least;
    if (far == 0)
      *exact = true;
    if (far < least) {
      least = far;
      best = k;
    }
  }
  return best;
}

/* NVIDIA's inspector has names that ours does not; this room knows what a name of ours begins with. */
static bool looks_like_ours(const char *e) {
  return strncmp(e, "NCCL_INSPECTOR_", 15) == 0 || strncmp(e, "NCCL_INSPECT", 12) == 0 ||
      strncmp(e, "INSPECTOR_", 10) == 0 || strncmp(e, "NCCL_PROF", 9) == 0;
}

static void check_names(struct ni_doctor *d) {
  size_t wrong = 0;
  for (char **e = environ; e && *e; e++) {
    size_t n = strcspn(*e, "=");
    bool exact = false;
    if (!looks_like_ours(*e) || n >= 120)
      continue;
    const char *best = find_nearest_name(d, *e, n, &exact);
    if (exact)
      continue;
    char advice[256];
    bool ours = strncmp(*e, "NCCL_INSPECTOR_", 15) == 0;
    if (!best && !ours)
      continue;
    if (best)
      snprintf(advice, sizeof advice, "Did you mean %s?", best);
    else
      snprintf(advice, sizeof advice, "docs/settings.md lists the settings.");
    ni_doctor_add(d, "settings", NI_DOC_WARNING, advice,
                  "%.*s is no setting of this plugin; it has no effect", (int)n, *e);
    wrong++;
  }
  if (!wrong && d->n_known)
    ni_doctor_add(d, "settings", NI_DOC_OK, NULL, "no misspelt name among NCCL_INSPECTOR_*, NCCL_PROFILE*");
}

static bool has_value(const char *name, const char *value) {
  const char *v = getenv(name);
  return v && strcmp(v, value) == 0;
}

static bool is_set(const char *name) {
  const char *v = getenv(name);
  return v && *v;
}

static void check_conflicts(struct ni_doctor *d) {
  const char *least = getenv("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES");
  char *smaller = NULL;
  if (least &&
      asprintf(&smaller,
               "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=%s: smaller operations are left out (and counted)",
               least) < 0)
    smaller = NULL;
  const struct {
    bool there;
    enum ni_status status;
    const char *advice, *text;
  } all[] = {
      {!is_set("NCCL_INSPECTOR_ENABLE"), NI_DOC_PROBLEM, "export NCCL_INSPECTOR_ENABLE=1",
       "NCCL_INSPECTOR_ENABLE is not set: the plugin is loaded and records nothing"},
      {has_value("NCCL_INSPECTOR_ENABLE", "0"), NI_DOC_PROBLEM, "export NCCL_INSPECTOR_ENABLE=1",
       "NCCL_INSPECTOR_ENABLE=0: nothing is recorded"},
      {has_value("NCCL_INSPECTOR_DUMP_CONTROL_LINES", "0"), NI_DOC_WARNING,
       "Leave NCCL_INSPECTOR_DUMP_CONTROL_LINES at 1.",
       "NCCL_INSPECTOR_DUMP_CONTROL_LINES=0: losses, clocks and the accounting are not in the log, so nobody "
       "can check it"},
      {has_value("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "-1") ||
           has_value("NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0"),
       NI_DOC_WARNING, "With an interval of 1000000 a killed job loses at most a second.",
       "records are written at teardown and exit only: a job that is killed leaves none"},
      {has_value("NCCL_INSPECTOR_POOL_GROW", "0"), NI_DOC_WARNING,
       "Leave NCCL_INSPECTOR_POOL_GROW at 1 for anything but sizing experiments.",
       "NCCL_INSPECTOR_POOL_GROW=0: operations that find the pool full are dropped (and counted)"},
      {has_value("NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "1"), NI_DOC_NOTE, NULL,
       "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=1: operations without a device time are left out (and counted)"},
      {smaller && *least && strcmp(least, "0") != 0, NI_DOC_NOTE, NULL, smaller},
      {has_value("NCCL_INSPECTOR_ENABLE_P2P", "0"), NI_DOC_NOTE, NULL,
       "NCCL_INSPECTOR_ENABLE_P2P=0: Send and Recv are left out (and counted)"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].there)
      ni_doctor_add(d, "settings", all[i].status, all[i].advice, "%s", all[i].text);
  free(smaller);
}

static void check_settings(struct ni_doctor *d) {
  if (d->plugin_path && d->plugin_ours)
    check_names(d);
  check_conflicts(d);
}

/* The last line of a text, without its line feed. */
static const char *find_last_line(char *text) {
  size_t n = strlen(text);
  while (n && text[n - 1] == '\n')
    text[--n] = 0;
  char *feed = strrchr(text, '\n');
  return feed ? feed + 1 : text;
}

/*
 * A job of four simulated ranks with this plugin, some five seconds, its log verified value by value.
 * nccl-sim is looked for beside this program (`make install` puts both in one folder, as the build does),
 * then in PATH.
 */
static void simulate_job(struct ni_doctor *d) {
  char sim[4200], dir[4096], truth[4200], logs[4200], dump[4300], iterations[16], why[128];
  const char *tmp = getenv("TMPDIR");
  char *text = NULL;
  if (d->no_sim || !d->plugin_path || !d->plugin_ours)
    return;
  ssize_t n = readlink("/proc/self/exe", sim, sizeof sim - 16);
  sim[n > 0 ? n : 0] = 0;
  if (n > 0)
    strcpy(strrchr(sim, '/') + 1, "nccl-sim");
  if (access(sim, X_OK) != 0)
    strcpy(sim, "nccl-sim");
  snprintf(dir, sizeof dir, "%s/nccl-inspector-doctor-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(dir)) {
    ni_doctor_add(d, "simulation", NI_DOC_WARNING, "Set TMPDIR to a folder that can be written.",
                  "%s: %s; no simulated run", dir, strerror(errno));
    return;
  }
  snprintf(truth, sizeof truth, "%s/truth", dir);
  snprintf(logs, sizeof logs, "%s/logs", dir);
  snprintf(dump, sizeof dump, "NCCL_INSPECTOR_DUMP_DIR=%s", logs);
  snprintf(iterations, sizeof iterations, "%u", d->sim_seconds * 12); /* at this rate twelve take a second */
  char *const run[] = {sim,        "--quiet", "--plugin", d->plugin_path, "--job", "1x4", "--iterations",
                       iterations, "--rate",  "100",      "--truth",      truth,   NULL};
  char *const verify[] = {sim, "--verify", truth, logs, NULL}, *const away[] = {"rm", "-rf", dir, NULL};
  char *const env[] = {dump, "NCCL_INSPECTOR_ENABLE=1", NULL};
  int rc = ni_child_exec(run, env, d->sim_seconds + 25, &text);
  if (rc == 127) {
    ni_doctor_add(d, "simulation", NI_DOC_NOTE, "Install nccl-sim beside nccl-inspector, or put it in PATH.",
                  "nccl-sim was not found; no simulated run");
  } else if (rc != 0) {
    ni_doctor_add(d, "simulation", NI_DOC_PROBLEM, "Please report this, with the environment.",
                  "the simulated run failed, %s: %s", ni_child_why(rc, why, sizeof why),
                  find_last_line(text));
  } else {
    free(text);
    rc = ni_child_exec(verify, NULL, 30, &text);
    if (rc == 0)
      ni_doctor_add(d, "simulation", NI_DOC_OK, NULL, "four simulated ranks, %u s: %s", d->sim_seconds,
                    find_last_line(text));
    else
      ni_doctor_add(d, "simulation", NI_DOC_PROBLEM,
                    "Settings that leave operations out explain it; else please report this.",
                    "the log of a simulated run does not agree with what happened: %s", find_last_line(text));
  }
  free(text);
  text = NULL;
  ni_child_exec(away, NULL, 20, &text);
  free(text);
}

static const char *const status_names[NI_DOC_COUNT] = {"ok", "note", "warning", "problem"};

const struct ni_command ni_doctor_command = {
    .name = "doctor",
    .need = NI_NEED_BEFORE,
    .purpose = "would this environment give complete logs? what to do where not",
    .about =
        "Would this environment, as it stands, give complete logs? To be run where the job runs, with its "
        "variables.",
    .opt =
        (const struct ni_opt[]){
            {"plugin", 0, NI_OPT_TEXT, "SO",
             "The plugin, as NCCL_PROFILER_PLUGIN would name it; default that variable",
             NI_INTO(struct ni_doctor, plugin)},
            {"nccl", 0, NI_OPT_TEXT, "SO", "The job's libnccl.so.2; default what is found",
             NI_INTO(struct ni_doctor, nccl)},
            {"shm-dir", 0, NI_OPT_TEXT, "DIR", "Shared memory; default /dev/shm",
             NI_INTO(struct ni_doctor, shm_dir)},
            {"no-sim", 0, NI_OPT_FLAG, NULL, "No simulated run", NI_INTO(struct ni_doctor, no_sim)},
            {"sim-seconds", 0, NI_OPT_NUMBER, "N", "About how long that runs",
             NI_INTO(struct ni_doctor, sim_seconds), .def = "5", .min = 1, .max = 600},
            {"gate", 0, NI_OPT_FLAG, NULL, "Warnings give exit code 3", NI_INTO(struct ni_doctor, gate)},
            {"find-nccl", 0, NI_OPT_FLAG, NULL, "Only print the NCCL libraries found, one a line",
             NI_INTO(struct ni_doctor, find_nccl)},
            NI_ROW_JSON(struct ni_doctor, "doctor"),
            {0}},
    .exits = {{"0", "no problem"},
              {"1", "could not run"},
              {"2", "a problem: as it stands nothing, or not everything, is recorded"},
              {"3", "with --gate: warnings"}},
    .examples = {{"", "inside the job's container, with its environment"},
                 {"--gate --plugin /opt/lib/libnccl-profiler-inspector.so",
                  "in a prolog: anything but 0 keeps the job from running"}},
    .run = ni_doctor_run};

void ni_doctor_say(const struct ni_doctor_finding *f) {
  ni_say(stdout, "%-8s %-11s %s\n", status_names[f->status], f->check, f->text);
  if (f->advice && f->status != NI_DOC_OK)
    ni_say(stdout, "%-20s -> %s\n", "", f->advice);
}

static void print_text(const struct ni_doctor *d, const size_t *count) {
  for (size_t i = 0; i < d->n; i++)
    ni_doctor_say(&d->finding[i]);
  ni_say(stdout, "%zu problem%s, %zu warning%s\n", count[NI_DOC_PROBLEM],
         ni_plural(count[NI_DOC_PROBLEM], "", "s"), count[NI_DOC_WARNING],
         ni_plural(count[NI_DOC_WARNING], "", "s"));
}

static void print_json(const struct ni_doctor *d, const size_t *count) {
  struct ni_json j;
  ni_json_open(&j, stdout, "nccl-inspector-doctor-1");
  ni_json_text(&j, "verdict", count[NI_DOC_PROBLEM] ? "problem" : count[NI_DOC_WARNING] ? "warning" : "ok");
  ni_json_u64(&j, "problems", count[NI_DOC_PROBLEM]);
  ni_json_u64(&j, "warnings", count[NI_DOC_WARNING]);
  ni_json_text(&j, "plugin", d->plugin_path);
  if (d->nccl_version)
    ni_json_u64(&j, "nccl_version", (uint64_t)d->nccl_version);
  else
    ni_json_text(&j, "nccl_version", NULL);
  NI_JSON_ARRAY (&j, "findings")
    for (size_t i = 0; i < d->n; i++)
      NI_JSON_OBJECT (&j, NULL) {
        ni_json_text(&j, "check", d->finding[i].check);
        ni_json_text(&j, "status", status_names[d->finding[i].status]);
        ni_json_text(&j, "text", d->finding[i].text);
        ni_json_text(&j, "advice", d->finding[i].advice);
      }
  ni_json_close(&j);
}

void ni_doctor_look(struct ni_doctor *d) {
  ni_doctor_plugin(d);
  ni_doctor_nccl(d);
  check_settings(d);
  ni_doctor_trial(d);
  check_machine(d);
}

void ni_doctor_free(struct ni_doctor *d) {
  for (size_t i = 0; i < d->n; i++) {
    free(d->finding[i].text);
    free(d->finding[i].advice);
  }
  for (size_t i = 0; i < d->n_known; i++)
    free(d->known[i]);
  free(d->known);
  free(d->finding);
  free(d->plugin_path);
  free(d->plugin_name);
  *d = (struct ni_doctor){0};
}

int ni_doctor_run(int argc, char **argv) {
  struct ni_doctor d = {0};
  size_t count[NI_DOC_COUNT] = {0};
  int done, code = ni_words_parse(&ni_doctor_command, argc, argv, &d, &done);
  if (done)
    return code;
  if (d.find_nccl) {
    ni_doctor_nccl(&d);
    return NI_EXIT_FINE;
  }
  ni_doctor_look(&d);
  simulate_job(&d);
  for (size_t i = 0; i < d.n; i++)
    count[d.finding[i].status]++;
  if (d.json)
    print_json(&d, count);
  else
    print_text(&d, count);
  code = count[NI_DOC_PROBLEM]          ? NI_EXIT_INCOMPLETE
      : d.gate && count[NI_DOC_WARNING] ? NI_EXIT_FINDING
                                        : NI_EXIT_FINE;
  ni_doctor_free(&d);
  return code;
}
