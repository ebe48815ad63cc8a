#include "launch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/cmds/doctor/plugin_load.h"
#include "exporter/model/counters/series.h"

enum { DUMP_DIR_BYTES = 1023 /* the most that the plugin takes */ };

/* ---- who are we? ---- */

/* In the plugin's order: a batch script's SLURM_PROCID=0 is inherited by all that an mpirun in it starts, so
 * Slurm comes last. Its size is that of the step, which a batch script is none of. common: what all ranks of
 * one start have, and no others; pairs of which both are set. */
static const struct launcher {
  const char *rank, *local_rank, *size;
  const char *common[3][2];
} launchers[] = {
    {"RANK",
     "LOCAL_RANK",
     "WORLD_SIZE",
     {{"TORCHELASTIC_RUN_ID"}, {"SLURM_JOB_ID", "SLURM_STEP_ID"}, {"MASTER_ADDR", "MASTER_PORT"}}},
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_SIZE",
     {{"PMIX_NAMESPACE"}, {"OMPI_MCA_ess_base_jobid"}}},
    {"PMIX_RANK", NULL, NULL, {{"PMIX_NAMESPACE"}, {"SLURM_JOB_ID", "SLURM_STEP_ID"}}},
    {"PMI_RANK",
     "MPI_LOCALRANKID",
     "PMI_SIZE",
     {{"PALS_APID"}, {"SLURM_JOB_ID", "SLURM_STEP_ID"}, {"PMI_PORT"}}},
    {"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", {{"FLUX_JOB_ID"}}},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", {{"SLURM_JOB_ID", "SLURM_STEP_ID"}}},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

/* The value of a variable. An empty one counts as not set, as for the plugin. */
static const char *get_variable(const char *name) {
  const char *v = name ? getenv(name) : NULL;
  return v && *v ? v : NULL;
}

/* The number in a variable, 0 and more. -1: not set, or no number. */
static long get_variable_number(const char *name) {
  const char *v = get_variable(name);
  char *end = NULL;
  long n = v && *v >= '0' && *v <= '9' ? strtol(v, &end, 10) : -1;
  return n >= 0 && !*end ? n : -1;
}

static const struct launcher *find_launcher(void) {
  for (size_t i = 0; i < LAUNCHERS; i++)
    if (get_variable_number(launchers[i].rank) >= 0)
      return &launchers[i];
  return NULL;
}

/* Appends text as a part of a file's name. */
static void append_name(char *name, size_t cap, const char *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t n = strlen(name);
  for (; *text && n + 1 < cap; text++)
    name[n++] = strchr(plain, *text) ? *text : '_';
  name[n] = 0;
}

/* Appends what all ranks of this start have in common. false: the launcher says nothing of that kind. */
static bool append_common_name(const struct launcher *by, char *name, size_t cap) {
  for (size_t i = 0; i < 3 && by->common[i][0]; i++) {
    const char *first = get_variable(by->common[i][0]), *second = get_variable(by->common[i][1]);
    bool none = !first || strcmp(first, "none") == 0 /* torchrun without --rdzv-id */ ||
        (by->common[i][1] && !second);
    if (none)
      continue;
    append_name(name, cap, first);
    if (second) {
      append_name(name, cap, ".");
      append_name(name, cap, second);
    }
    return true;
  }
  return false;
}

/* ---- folders ---- */

/* Makes the folder with its parents. *made: it was not there. 0 or -errno. */
static int make_folder(const char *path, bool *made) {
  char part[PATH_MAX];
  if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
    return -ENAMETOOLONG;
  for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(part, 0777) < 0 && errno != EEXIST)
      return -errno;
    *slash = '/';
  }
  *made = mkdir(part, 0777) == 0;
  if (!*made && errno != EEXIST)
    return -errno;
  return access(part, R_OK | W_OK | X_OK) < 0 ? -errno : 0;
}

/* Escapes the tokens of the plugin: a percent sign in the name of a folder becomes two. NULL: no memory. */
static char *escape_percents(const char *path) {
  char *out = malloc(2 * strlen(path) + 1), *to = out;
  for (; out && *path; path++) {
    *to++ = *path;
    if (*path == '%')
      *to++ = '%';
  }
  if (out)
    *to = 0;
  return out;
}

/*
 * The id of the batch job, by the names and in the order of plugin/settings/job.c. NULL: whoever starts the
 * ranks knows it.
 */
static const char *find_job_id(void) {
  static const char *const names[] = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (get_variable(names[i]))
      return get_variable(names[i]);
  return NULL;
}

/*
 * What NCCL_INSPECTOR_DUMP_DIR of the user will be on the ranks, as a pattern: "logs/%h" becomes "logs/" and
 * any name. NULL: no memory.
 */
static char *make_pattern(const char *dir) {
  const char *id = find_job_id();
  size_t cap = 2 * strlen(dir) + PATH_MAX;
  char *out = malloc(cap);
  if (!out)
    return NULL;
  *out = 0;
  for (size_t n; *dir; dir++) {
    bool token = *dir == '%' && dir[1] && strchr("hpjr%", dir[1]);
    n = strlen(out);
    if (token)
      dir++;
    if (token && *dir == 'j' && id)
      append_name(out, cap, id);
    else if (n + 2 < cap) {
      out[n] = token && *dir != '%' ? '*' : *dir;
      out[n + 1] = 0;
    }
  }
  return out;
}

/*
 * Makes the path absolute, since the command may change its folder. NULL: no memory, or there is no working
 * directory.
 */
static char *make_absolute(const char *path) {
  char here[PATH_MAX], *out;
  if (*path == '/')
    return strdup(path);
  if (!getcwd(here, sizeof here) ||
      asprintf(&out, "%s/%s", here, strncmp(path, "./", 2) == 0 ? path + 2 : path) < 0)
    return NULL;
  return out;
}

/* Makes a name for OUT if the user has not given one. NULL: the ranks have no name in common. */
static char *make_out_name(const struct ni_launch *l, const struct launcher *by) {
  char name[256] = "nccl-inspector-", time_text[32];
  time_t now = time(NULL);
  struct tm tm;
  if (l->part != NI_LAUNCH_ALONE && append_common_name(by, name, sizeof name))
    return strdup(name);
  if (l->part != NI_LAUNCH_ALONE && !l->logs_elsewhere)
    return NULL;
  strftime(time_text, sizeof time_text, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
  snprintf(name + strlen(name), sizeof name - strlen(name), "%s-%ld", time_text, (long)getpid());
  return strdup(name);
}

/* ---- variables ---- */

/* Sets the variable unless the user has, and notes what stays. */
static bool set_default_variable(const char *name, const char *value, char **kept) {
  const char *there = get_variable(name);
  char *more;
  if (!there)
    return setenv(name, value, 1) == 0;
  if (asprintf(&more, "%s%s%s=%s", *kept ? *kept : "", *kept ? ", " : "", name, there) < 0)
    return false;
  free(*kept);
  *kept = more;
  return true;
}

static bool report_launch_failure(const struct ni_launch *l, const char *what, const char *why) {
  if (l->part != NI_LAUNCH_SILENT)
    ni_say(stderr, "%s: %s: %s\n", l->who, what, why);
  return false;
}

static bool set_variables(struct ni_launch *l) {
  char plugin[PATH_MAX] = "", *kept = NULL, *at = make_absolute(l->own_logs),
       *dump = at ? escape_percents(at) : NULL;
  free(at);
  bool has_plugin = get_variable("NCCL_PROFILER_PLUGIN") || ni_plugin_beside_us(plugin, sizeof plugin);
  bool fine = dump && set_default_variable("NCCL_PROFILER_PLUGIN", plugin, &kept) &&
      set_default_variable("NCCL_INSPECTOR_ENABLE", "1", &kept) &&
      set_default_variable("NCCL_INSPECTOR_DUMP_DIR", dump, &kept);
  bool fits = !dump || strlen(dump) <= DUMP_DIR_BYTES;
  l->kept = kept;
  free(dump);
  if (!fine)
    return report_launch_failure(l, "the command's variables", strerror(errno));
  if (!fits)
    return report_launch_failure(
        l, l->own_logs,
        "more than 1023 bytes as a path, which the plugin does not take; give a shorter one by --out");
  return has_plugin ||
      report_launch_failure(
             l, "libnccl-profiler-inspector.so",
             "not found beside this program nor in ../lib of it; set NCCL_PROFILER_PLUGIN to its path");
}

/* ---- together ---- */

static bool find_folders(struct ni_launch *l, const struct ni_launch_wants *want, const struct launcher *by) {
  const char *users = get_variable("NCCL_INSPECTOR_DUMP_DIR");
  l->logs_elsewhere = users != NULL;
  l->out = want->out ? strdup(want->out) : make_out_name(l, by);
  if (!l->out)
    return report_launch_failure(l, "--out is missing",
                                 "the ranks have no name in common by which they would find the same folder. "
                                 "Give one that all of them see: run --out DIR -- COMMAND");
  for (size_t n = strlen(l->out); n > 1 && l->out[n - 1] == '/'; n--)
    l->out[n - 1] = 0;
  char *logs = users ? make_pattern(users) : NULL;
  bool fine = asprintf(&l->own_logs, "%s/logs", l->out) >= 0 && (!users || logs);
  bool plain = users && logs && !strpbrk(logs, "*?[");
  if (fine)
    fine = ni_inputs_add(&l->logs, users ? logs : l->own_logs) == 0;
  if (fine && want->counters)
    fine = (l->counters = strdup(plain ? logs : l->own_logs)) != NULL;
  const bool has_two = users && !plain;
  if (fine && want->counters && has_two)
    fine = ni_inputs_add(&l->logs, l->own_logs) == 0;
  free(logs);
  return fine || report_launch_failure(l, "OUT", strerror(ENOMEM));
}

static bool report_out_failure(const struct ni_launch *l, const char *path, int error) {
  const bool is_elsewhere = error == -EACCES || error == -EROFS || error == -ENOSPC;
  char why[128];
  snprintf(why, sizeof why, "%s%s", ni_out_error_text(error), is_elsewhere ? ", by --out DIR" : "");
  return report_launch_failure(l, path, why);
}

/* Makes the folders before the command starts, since it may take days. */
static bool make_folders(struct ni_launch *l) {
  int e = make_folder(l->out, &l->made_out);
  if (e < 0)
    return report_out_failure(l, l->out, e);
  bool used = !l->logs_elsewhere || l->logs.n > 1;
  if (used)
    e = make_folder(l->own_logs, &l->made_logs);
  if (e < 0)
    return report_out_failure(l, l->own_logs, e);
  const bool is_new = !l->logs_elsewhere && l->made_logs;
  if (is_new || ni_discover(&l->before, l->logs.path, l->logs.n) == 0)
    return true;
  return report_launch_failure(l, "logs of before", strerror(ENOMEM));
}

static void find_part(struct ni_launch *l, const struct launcher *by) {
  long rank = by ? get_variable_number(by->rank) : -1, ranks = by ? get_variable_number(by->size) : -1,
       local = by ? get_variable_number(by->local_rank) : -1;
  bool several = by && (by->size ? ranks > 1 : true);
  l->part = rank > 0 ? NI_LAUNCH_SILENT : rank == 0 && several ? NI_LAUNCH_FIRST : NI_LAUNCH_ALONE;
  l->first_of_node = l->part != NI_LAUNCH_SILENT || local == 0;
}

bool ni_launch_begin(struct ni_launch *l, const char *who, const struct ni_launch_wants *want) {
  const struct launcher *by = find_launcher();
  const char *boxes = get_variable("NCCL_INSPECTOR_BLACKBOX");
  *l = (struct ni_launch){.who = who};
  find_part(l, by);
  if (boxes && *boxes == '/')
    l->box_dir = strdup(boxes);
  if (!find_folders(l, want, by))
    return false;
  if (l->part == NI_LAUNCH_SILENT)
    return set_variables(l);
  if (make_folders(l) && set_variables(l))
    return true;
  ni_launch_undo(l);
  return false;
}

/* ---- the logs ---- */

/* A log that was removed meanwhile may have left its inode to a new log. */
static bool is_same_log(const struct ni_file *old, const struct ni_file *f) {
  const bool untouched = old->bytes == f->bytes && old->mtime_ns == f->mtime_ns;
  return old->ino == f->ino && old->dev == f->dev && (untouched || strcmp(old->path, f->path) == 0);
}

static bool is_old_log(const struct ni_file *f, void *arg) {
  const struct ni_files *before = arg;
  for (size_t i = 0; i < before->n; i++)
    if (is_same_log(&before->file[i], f))
      return true;
  return false;
}

int ni_launch_logs(const struct ni_launch *l, struct ni_files *files) {
  int e = ni_discover(files, l->logs.path, l->logs.n);
  if (e == 0 && l->before.n)
    ni_files_drop(files, is_old_log, (void *)(uintptr_t)&l->before);
  return e;
}

bool ni_launch_has_ranks(const struct ni_files *files) {
  for (size_t i = 0; i < files->n; i++)
    if (!ni_is_series(files->file[i].path))
      return true;
  return false;
}

void ni_launch_undo(const struct ni_launch *l) {
  if (l->made_logs)
    (void)rmdir(l->own_logs);
  if (l->made_out)
    (void)rmdir(l->out);
}

void ni_launch_free(struct ni_launch *l) {
  ni_files_free(&l->before);
  ni_inputs_free(&l->logs);
  free(l->out);
  free(l->own_logs);
  free(l->counters);
  free(l->box_dir);
  free(l->kept);
  *l = (struct ni_launch){0};
}
