/* The command: order of the checks, text and JSON, exit code. See doctor.h. */
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/cli/command.h"
#include "exporter/base/text/json_write.h"
#include "exporter/cli/options.h"
#include "exporter/base/text/plural.h"

static const char *const status_names[NI_DOC_COUNT] = {"ok", "note", "warning", "problem"};

void ni_doctor_add(struct ni_doctor *d, const char *check, enum ni_status status, const char *advice, const char *text,
                   ...) {
  va_list ap;
  if (!ni_array_room(d->finding, d->n, d->cap)) return;
  struct ni_finding *f = &d->finding[d->n];
  *f = (struct ni_finding){check, status, NULL, advice ? strdup(advice) : NULL};
  va_start(ap, text);
  if (vasprintf(&f->text, text, ap) < 0) f->text = NULL;
  va_end(ap);
  if (f->text) d->n++;
}

enum { OPT_PLUGIN = NI_OPT_OWN, OPT_NCCL, OPT_SHM, OPT_NO_SIM, OPT_SECONDS, OPT_GATE, OPT_FIND };

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  struct ni_doctor *d = state->input;
  switch (key) {
    case OPT_PLUGIN: d->plugin = arg; return 0;
    case OPT_NCCL: d->nccl = arg; return 0;
    case OPT_SHM: d->shm_dir = arg; return 0;
    case OPT_NO_SIM: d->no_sim = true; return 0;
    case OPT_GATE: d->gate = true; return 0;
    case OPT_FIND: d->find_nccl = true; return 0;
    case NI_OPT_JSON: d->json = true; return 0;
    case OPT_SECONDS: {
      char *end;
      unsigned long v = strtoul(arg, &end, 10);
      if (*end || end == arg || v < 1 || v > 600) argp_error(state, "--sim-seconds %s: 1 to 600 is accepted", arg);
      d->sim_seconds = (unsigned)v;
      return 0;
    }
    case ARGP_KEY_ARG: argp_error(state, "%s: doctor takes no files; it looks at this environment", arg); return EINVAL;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static void print_text(const struct ni_doctor *d, const size_t *count) {
  for (size_t i = 0; i < d->n; i++) {
    const struct ni_finding *f = &d->finding[i];
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
  static const struct argp_option options[] = {
      {"plugin", OPT_PLUGIN, "SO", 0, "The plugin, as NCCL_PROFILER_PLUGIN would name it; default that variable", 0},
      {"nccl", OPT_NCCL, "SO", 0, "The job's libnccl.so.2; default what is found", 0},
      {"shm-dir", OPT_SHM, "DIR", 0, "Shared memory; default /dev/shm", 0},
      {"no-sim", OPT_NO_SIM, NULL, 0, "No simulated run", 0},
      {"sim-seconds", OPT_SECONDS, "N", 0, "About how long that runs; default 5", 0},
      {"gate", OPT_GATE, NULL, 0, "Warnings give exit code 3", 0},
      {"find-nccl", OPT_FIND, NULL, 0, "Only print the NCCL libraries found, one a line", 0},
      {"json", NI_OPT_JSON, NULL, 0, "JSON on standard output (schema nccl-inspector-doctor-1)", 0},
      {0}};
  static const struct argp argp = {
      options,
      parse_option,
      "",
      "Would this environment, as it stands, give complete logs? To be run where the job runs, with its variables."
      "\vExit codes: 0 no problem, 2 a problem (as it stands nothing, or not everything, is recorded), 3 with --gate: "
      "warnings, 1 could not run, 64 wrong usage.",
      NULL,
      NULL,
      NULL};
  struct ni_doctor d = {.sim_seconds = 5};
  size_t count[NI_DOC_COUNT] = {0};
  int done, code = ni_options_parse(&argp, argc, argv, &d, &done);
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
  ni_doctor_simulate(&d);
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
