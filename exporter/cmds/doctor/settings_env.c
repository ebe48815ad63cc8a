/*
 * The environment: names that are nearly those of settings, and settings that work against each other. What the plugin
 * itself refuses (a bad value, a name of ours that does not exist) it says in the trial; here is what it cannot see.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/text/names_alike.h"
#include "settings_env.h"

static const char *nearest(const struct ni_doctor *d, const char *name, size_t n, bool *exact) {
  static const char *const others[] = {"NCCL_PROFILER_PLUGIN"};
  const char *best = NULL;
  unsigned least = 4;
  for (size_t i = 0; i < d->n_known + 1; i++) {
    const char *k = i < d->n_known ? d->known[i] : others[0];
    size_t m = strlen(k);
    unsigned far = m < NI_EDITS_MAX ? ni_edits(name, n, k, m, false) : least;
    if (far == 0) *exact = true;
    if (far < least) least = far, best = k;
  }
  return best;
}

/* NVIDIA's inspector has names that ours does not; this room knows what a name of ours begins with. */
static bool like_ours(const char *e) {
  return strncmp(e, "NCCL_INSPECTOR_", 15) == 0 || strncmp(e, "NCCL_INSPECT", 12) == 0 ||
         strncmp(e, "INSPECTOR_", 10) == 0 || strncmp(e, "NCCL_PROF", 9) == 0;
}

static void names(struct ni_doctor *d) {
  size_t wrong = 0;
  for (char **e = environ; e && *e; e++) {
    size_t n = strcspn(*e, "=");
    bool exact = false;
    if (!like_ours(*e) || n >= 120) continue;
    const char *best = nearest(d, *e, n, &exact);
    if (exact) continue;
    char advice[256];
    bool ours = strncmp(*e, "NCCL_INSPECTOR_", 15) == 0;
    if (!best && !ours) continue;
    if (best) snprintf(advice, sizeof advice, "Did you mean %s?", best);
    else snprintf(advice, sizeof advice, "docs/settings.md lists the settings.");
    ni_doctor_add(d, "settings", NI_DOC_WARNING, advice, "%.*s is no setting of this plugin; it has no effect", (int)n,
                  *e);
    wrong++;
  }
  if (!wrong && d->n_known)
    ni_doctor_add(d, "settings", NI_DOC_OK, NULL, "no misspelt name among NCCL_INSPECTOR_*, NCCL_PROFILE*");
}

static bool is(const char *name, const char *value) {
  const char *v = getenv(name);
  return v && strcmp(v, value) == 0;
}

static bool set(const char *name) {
  const char *v = getenv(name);
  return v && *v;
}

static void conflicts(struct ni_doctor *d) {
  const char *least = getenv("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES");
  char *smaller = NULL;
  if (least && asprintf(&smaller, "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=%s: smaller operations are left out (and counted)",
                        least) < 0)
    smaller = NULL;
  const bool dropping = is("NCCL_INSPECTOR_POOL_GROW", "0");
  const struct {
    bool there;
    enum ni_status status;
    const char *advice, *text;
  } all[] = {
      {!set("NCCL_INSPECTOR_ENABLE"), NI_DOC_PROBLEM, "export NCCL_INSPECTOR_ENABLE=1",
       "NCCL_INSPECTOR_ENABLE is not set: the plugin is loaded and records nothing"},
      {is("NCCL_INSPECTOR_ENABLE", "0"), NI_DOC_PROBLEM, "export NCCL_INSPECTOR_ENABLE=1",
       "NCCL_INSPECTOR_ENABLE=0: nothing is recorded"},
      {is("NCCL_INSPECTOR_DUMP_CONTROL_LINES", "0"), NI_DOC_WARNING, "Leave NCCL_INSPECTOR_DUMP_CONTROL_LINES at 1.",
       "NCCL_INSPECTOR_DUMP_CONTROL_LINES=0: losses, clocks and the accounting are not in the log, so nobody can check it"},
      {is("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "-1") || is("NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "0"),
       NI_DOC_WARNING, "With an interval of 1000000 a killed job loses at most a second.",
       "records are written at teardown and exit only: a job that is killed leaves none"},
      {is("NCCL_INSPECTOR_POOL_KEEP", "last") && !dropping, NI_DOC_WARNING,
       "Set NCCL_INSPECTOR_POOL_GROW=0, or leave NCCL_INSPECTOR_POOL_KEEP out.",
       "NCCL_INSPECTOR_POOL_KEEP=last has no effect while pools grow"},
      {dropping, NI_DOC_WARNING, "Leave NCCL_INSPECTOR_POOL_GROW at 1 for anything but sizing experiments.",
       "NCCL_INSPECTOR_POOL_GROW=0: operations that find the pool full are dropped (and counted)"},
      {is("NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "1"), NI_DOC_NOTE, NULL,
       "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=1: operations without a device time are left out (and counted)"},
      {smaller && *least && strcmp(least, "0") != 0, NI_DOC_NOTE, NULL, smaller},
      {is("NCCL_INSPECTOR_ENABLE_P2P", "0"), NI_DOC_NOTE, NULL,
       "NCCL_INSPECTOR_ENABLE_P2P=0: Send and Recv are left out (and counted)"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].there) ni_doctor_add(d, "settings", all[i].status, all[i].advice, "%s", all[i].text);
  free(smaller);
}

void ni_doctor_settings(struct ni_doctor *d) {
  if (d->plugin_path && d->plugin_ours) names(d);
  conflicts(d);
}
