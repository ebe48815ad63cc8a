/* The command: order of the checks, text and JSON, exit code. See findings.h. */
#include <stdio.h>
#include <stdlib.h>

#include "exporter/cli/command.h"
#include "exporter/base/text/json_write.h"
#include "exporter/base/text/plural.h"
#include "machine.h"
#include "nccl_find.h"
#include "plugin_load.h"
#include "trial.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "child.h"

/*
 * A job of four simulated ranks with this plugin, some five seconds, its log verified value by value. nccl-sim is looked
 * for beside this program (`make install` puts both in one folder, as the build does), then in PATH.
 */
static bool find_sim(char *out, size_t cap) {
  ssize_t n = readlink("/proc/self/exe", out, cap - 16);
  if (n > 0) {
    out[n] = 0;
    strcpy(strrchr(out, '/') + 1, "nccl-sim");
    if (access(out, X_OK) == 0) return true;
  }
  char *path = getenv("PATH") ? strdup(getenv("PATH")) : NULL, *save = NULL;
  bool found = false;
  for (char *p = path ? strtok_r(path, ":", &save) : NULL; p && !found; p = strtok_r(NULL, ":", &save)) {
    snprintf(out, cap, "%s/nccl-sim", p);
    found = access(out, X_OK) == 0;
  }
  free(path);
  return found;
}

/* The last line of a text, without its line feed. */
static const char *last_line(char *text) {
  size_t n = strlen(text);
  while (n && text[n - 1] == '\n') text[--n] = 0;
  char *feed = strrchr(text, '\n');
  return feed ? feed + 1 : text;
}

static void simulate(struct ni_doctor *d) {
  char sim[4200], dir[4096], truth[4200], logs[4200], dump[4300], iterations[16], why[128];
  const char *tmp = getenv("TMPDIR");
  char *text = NULL;
  if (d->no_sim || !d->plugin_path || !d->plugin_ours) return;
  if (!find_sim(sim, sizeof sim)) {
    ni_doctor_add(d, "simulation", NI_DOC_NOTE, "Install nccl-sim beside nccl-inspector, or put it in PATH.",
                  "nccl-sim was not found; no simulated run");
    return;
  }
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
  if (rc != 0) {
    ni_doctor_add(d, "simulation", NI_DOC_PROBLEM, "Please report this, with the environment.",
                  "the simulated run failed, %s: %s", ni_child_why(rc, why, sizeof why), last_line(text));
  } else {
    free(text);
    rc = ni_child_exec(verify, NULL, 30, &text);
    if (rc == 0)
      ni_doctor_add(d, "simulation", NI_DOC_OK, NULL, "four simulated ranks, %u s: %s", d->sim_seconds,
                    last_line(text));
    else
      ni_doctor_add(d, "simulation", NI_DOC_PROBLEM,
                    "Settings that leave operations out explain it; else please report this.",
                    "the log of a simulated run does not agree with what happened: %s", last_line(text));
  }
  free(text);
  text = NULL;
  ni_child_exec(away, NULL, 20, &text);
  free(text);
}

static const char *const status_names[NI_DOC_COUNT] = {"ok", "note", "warning", "problem"};

const struct ni_command ni_doctor_command = {
    .name = "doctor", .need = NI_NEED_BEFORE, .purpose = "would this environment give complete logs? what to do where not",
    .about = "Would this environment, as it stands, give complete logs? To be run where the job runs, with its variables.",
    .opt = (const struct ni_opt[]){
        {"plugin", 0, NI_OPT_TEXT, "SO", "The plugin, as NCCL_PROFILER_PLUGIN would name it; default that variable",
         NI_INTO(struct ni_doctor, plugin)},
        {"nccl", 0, NI_OPT_TEXT, "SO", "The job's libnccl.so.2; default what is found", NI_INTO(struct ni_doctor, nccl)},
        {"shm-dir", 0, NI_OPT_TEXT, "DIR", "Shared memory; default /dev/shm", NI_INTO(struct ni_doctor, shm_dir)},
        {"no-sim", 0, NI_OPT_FLAG, NULL, "No simulated run", NI_INTO(struct ni_doctor, no_sim)},
        {"sim-seconds", 0, NI_OPT_NUMBER, "N", "About how long that runs", NI_INTO(struct ni_doctor, sim_seconds), .def = "5", .min = 1,
         .max = 600},
        {"gate", 0, NI_OPT_FLAG, NULL, "Warnings give exit code 3", NI_INTO(struct ni_doctor, gate)},
        {"find-nccl", 0, NI_OPT_FLAG, NULL, "Only print the NCCL libraries found, one a line", NI_INTO(struct ni_doctor, find_nccl)},
        NI_ROW_JSON(struct ni_doctor, "doctor"),
        {0}},
    .exits = {{"0", "no problem"}, {"1", "could not run"},
              {"2", "a problem: as it stands nothing, or not everything, is recorded"}, {"3", "with --gate: warnings"}},
    .examples = {{"", "inside the job's container, with its environment"},
                 {"--gate --plugin /opt/lib/libnccl-profiler-inspector.so", "in a prolog: anything but 0 keeps the job from running"}},
    .run = ni_doctor_run};

static void print_text(const struct ni_doctor *d, const size_t *count) {
  for (size_t i = 0; i < d->n; i++) {
    const struct ni_doctor_finding *f = &d->finding[i];
    ni_say(stdout, "%-8s %-11s %s\n", status_names[f->status], f->check, f->text);
    if (f->advice && f->status != NI_DOC_OK) ni_say(stdout, "%-20s -> %s\n", "", f->advice);
  }
  ni_say(stdout, "%zu problem%s, %zu warning%s\n", count[NI_DOC_PROBLEM], ni_plural(count[NI_DOC_PROBLEM], "", "s"),
         count[NI_DOC_WARNING], ni_plural(count[NI_DOC_WARNING], "", "s"));
}

static void print_json(const struct ni_doctor *d, const size_t *count) {
  struct ni_json j;
  ni_json_open(&j, stdout, "nccl-inspector-doctor-1");
  ni_json_text(&j, "verdict", count[NI_DOC_PROBLEM] ? "problem" : count[NI_DOC_WARNING] ? "warning" : "ok");
  ni_json_u64(&j, "problems", count[NI_DOC_PROBLEM]);
  ni_json_u64(&j, "warnings", count[NI_DOC_WARNING]);
  ni_json_text(&j, "plugin", d->plugin_path);
  if (d->nccl_version) ni_json_u64(&j, "nccl_version", (uint64_t)d->nccl_version);
  else ni_json_text(&j, "nccl_version", NULL);
  ni_json_array(&j, "findings");
  for (size_t i = 0; i < d->n; i++) {
    ni_json_object(&j, NULL);
    ni_json_text(&j, "check", d->finding[i].check);
    ni_json_text(&j, "status", status_names[d->finding[i].status]);
    ni_json_text(&j, "text", d->finding[i].text);
    ni_json_text(&j, "advice", d->finding[i].advice);
    ni_json_end_object(&j);
  }
  ni_json_end_array(&j);
  ni_json_close(&j);
}

int ni_doctor_run(int argc, char **argv) {
  struct ni_doctor d = {0};
  size_t count[NI_DOC_COUNT] = {0};
  int done, code = ni_words_parse(&ni_doctor_command, argc, argv, &d, &done);
  if (done) return code;
  if (d.find_nccl) {
    ni_doctor_nccl(&d);
    return NI_EXIT_FINE;
  }
  ni_doctor_plugin(&d);
  ni_doctor_nccl(&d);
  ni_doctor_settings(&d);
  ni_doctor_trial(&d);
  ni_doctor_machine(&d);
  simulate(&d);
  for (size_t i = 0; i < d.n; i++) count[d.finding[i].status]++;
  if (d.json) print_json(&d, count);
  else print_text(&d, count);
  code = count[NI_DOC_PROBLEM] ? NI_EXIT_INCOMPLETE : d.gate && count[NI_DOC_WARNING] ? NI_EXIT_FINDING : NI_EXIT_FINE;
  for (size_t i = 0; i < d.n; i++) free(d.finding[i].text), free(d.finding[i].advice);
  for (size_t i = 0; i < d.n_known; i++) free(d.known[i]);
  free(d.known);
  free(d.finding);
  free(d.plugin_path);
  return code;
}
