/*
 * A job of four simulated ranks with this plugin, some five seconds, its log verified value by value. nccl-sim is looked
 * for beside this program (`make install` puts both in one folder, as the build does), then in PATH.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "simulate.h"

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

void ni_doctor_simulate(struct ni_doctor *d) {
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
