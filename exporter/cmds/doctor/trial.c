/*
 * The plugin itself, in a child: loaded, initialised with one communicator under the user's own settings, one
 * collective, finalize. Its log lines are the findings about values and about the folder, so that nothing
 * here can say otherwise than the plugin does in the job. The file it wrote, its black box, and folders that
 * were not there before, are removed again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <nccl/profiler_abi.h>

#include "child.h"
#include "trial.h"
#include "ni_box.h"

static int log_fd = -1; /* in the child only */

static void forward_log_line(enum ni_log_level level, unsigned long flags, const char *where, int line,
                             const char *fmt, ...) {
  char text[2048];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  for (char *p = text; *p; p++)
    if (*p == '\n')
      *p = ' ';
  dprintf(log_fd, "%c %s\n", level == NI_LOG_WARN ? 'W' : 'I', text);
}

/* Is the file mapped into this process? It got its name after it was mapped, so maps knows its inode only. */
static bool is_mapped(ino_t ino) {
  char line[4096 + 128];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && !found && fgets(line, sizeof line, maps)) {
    unsigned long long in_line;
    found = sscanf(line, "%*s %*s %*s %*s %llu", &in_line) == 1 && in_line == ino;
  }
  if (maps)
    fclose(maps);
  return found;
}

/*
 * Names the black box. A log that cannot be written leaves it behind, which is right in a job, but not for a
 * trial.
 */
static void write_box_name(int fd) {
  const char *dir = getenv("NCCL_INSPECTOR_BLACKBOX");
  char pattern[4096];
  glob_t g;
  snprintf(pattern, sizeof pattern, "%s/nccl-inspector-*-pid%d-*.box", dir && *dir == '/' ? dir : NI_BOX_DIR,
           getpid());
  if (glob(pattern, 0, NULL, &g) != 0)
    return;
  for (size_t i = 0; i < g.gl_pathc; i++) {
    struct stat st;
    if (stat(g.gl_pathv[i], &st) == 0 && is_mapped(st.st_ino))
      dprintf(fd, "B %s\n", g.gl_pathv[i]);
  }
  globfree(&g);
}

static int run_plugin(void *arg, int fd) {
  const struct ni_doctor *d = arg;
  void *lib = dlopen(d->plugin_path, RTLD_NOW | RTLD_LOCAL), *ctx = NULL, *group = NULL, *coll = NULL;
  const struct ni_prof_vtable_v4 *t = lib ? dlsym(lib, "ncclProfiler_v4") : NULL;
  int mask = 0;
  if (!t)
    return 1;
  log_fd = fd;
  setenv("NCCL_INSPECTOR_ENABLE", "1", 1); /* that it is off is said elsewhere; here the rest is tried */
  t->init(&ctx, &mask, "doctor", 0xd0c708, 1, 2, 0, forward_log_line);
  write_box_name(fd);
  struct ni_prof_descr_v4 g = {.type = NI_EV_GROUP}, c = {.type = NI_EV_COLL};
  t->startEvent(ctx, &group, &g);
  c.parentObj = group;
  c.coll.func = "AllReduce";
  c.coll.count = 1024;
  c.coll.datatype = "ncclFloat32";
  c.coll.algo = "RING";
  c.coll.proto = "LL";
  c.coll.nChannels = 1;
  t->startEvent(ctx, &coll, &c);
  t->stopEvent(coll);
  t->stopEvent(group);
  t->finalize(ctx);
  dprintf(fd, "M %d\n", mask);
  return 0;
}

static const char *name_filesystem(long type) {
  static const struct {
    unsigned long type;
    const char *name;
  } known[] = {
      {0xEF53, "ext4"},        {0x58465342, "xfs"},  {0x9123683E, "btrfs"},  {0x01021994, "tmpfs"},
      {0x794C7630, "overlay"}, {0x6969, "nfs"},      {0x0BD00BD0, "lustre"}, {0x47504653, "gpfs"},
      {0x19830326, "beegfs"},  {0x00C36400, "ceph"}, {0xFF534D42, "cifs"},   {0xFE534D42, "smb2"},
      {0x65735546, "fuse"},    {0x2FC12FC1, "zfs"},  {0x01021997, "9p"},     {0x6A656A63, "fakeowner"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if ((unsigned long)type == known[i].type)
      return known[i].name;
  return "unknown type";
}

/* Cuts the path to its longest part that is a folder. */
static void cut_to_existing(char *path) {
  struct stat st;
  while (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
    char *slash = strrchr(path, '/');
    if (!slash) {
      strcpy(path, ".");
      return;
    }
    if (slash == path)
      slash++;
    *slash = 0;
    if (strcmp(path, "/") == 0)
      return;
  }
}

static void report_place(struct ni_doctor *d, const char *file) {
  char dir[4096];
  struct statfs fs;
  snprintf(dir, sizeof dir, "%s", file);
  cut_to_existing(dir);
  if (statfs(dir, &fs) < 0) {
    ni_doctor_add(d, "directory", NI_DOC_WARNING, NULL, "%s: %s", dir, strerror(errno));
    return;
  }
  double free_mb = (double)fs.f_bavail * (double)fs.f_bsize / 1e6;
  const char *name = name_filesystem((long)fs.f_type);
  bool memory = strcmp(name, "tmpfs") == 0, overlay = strcmp(name, "overlay") == 0;
  if (free_mb < 100 || (fs.f_files && fs.f_ffree < 100))
    ni_doctor_add(d, "directory", NI_DOC_PROBLEM,
                  "Make room, or set NCCL_INSPECTOR_DUMP_DIR to another file system.",
                  "%s (%s): %.0f MB and %llu files are free; a record takes about 64 bytes", dir, name,
                  free_mb, (unsigned long long)fs.f_ffree);
  else
    ni_doctor_add(
        d, "directory", memory || overlay ? NI_DOC_WARNING : NI_DOC_OK,
        memory ? "Logs there take memory and are gone after a restart: set NCCL_INSPECTOR_DUMP_DIR to a disk."
            : overlay ? "In a container this folder goes with the container: set NCCL_INSPECTOR_DUMP_DIR to "
                        "a mounted one."
                      : NULL,
        "%s is on %s with %.1f GB free", dir, name, free_mb / 1e3);
}

/* Removes the file, then the folders above it that were not there before, up to `kept`, which was. */
static void remove_trial_files(const char *file, const char *kept) {
  char path[4096];
  snprintf(path, sizeof path, "%s", file);
  unlink(path);
  for (char *slash = strrchr(path, '/'); slash && slash > path; slash = strrchr(path, '/')) {
    *slash = 0;
    if (strlen(path) <= strlen(kept) || rmdir(path) < 0)
      return;
  }
}

/* The folder as the settings name it, without its tokens: where to look for what exists before the trial. */
static void find_folder_before(char *out, size_t cap) {
  const char *dir = getenv("NCCL_INSPECTOR_DUMP_DIR");
  if (!dir || !*dir)
    dir = "nccl-inspector-";
  out[0] = 0;
  if (dir[0] != '/' && getcwd(out, cap - 1))
    strcat(out, "/");
  snprintf(out + strlen(out), cap - strlen(out), "%s", dir);
  char *token = strchr(out, '%');
  if (token) {
    *token = 0;
    char *slash = strrchr(out, '/');
    if (slash && slash > out)
      *slash = 0;
  }
  cut_to_existing(out);
}

static const char after_prefix[] = "NCCL Inspector: ";

void ni_doctor_trial(struct ni_doctor *d) {
  char before[4096], *text = NULL, *save = NULL, why[128], written[4096] = "";
  if (!d->plugin_path || !d->plugin_ours)
    return;
  find_folder_before(before, sizeof before);
  int rc = ni_child_call(run_plugin, d, 15, &text), refused = 0, mask = 0;
  for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    const char *said =
        strstr(line, after_prefix) ? strstr(line, after_prefix) + strlen(after_prefix) : line + 2;
    if (line[0] == 'M')
      mask = atoi(line + 2);
    else if (line[0] == 'B')
      (void)unlink(line + 2);
    else if (strncmp(said, "writing ", 8) == 0)
      snprintf(written, sizeof written, "%s", said + 8);
    else if (line[0] != 'W')
      continue;
    /* doctor.c has a better word for it */
    else if (strstr(said, "is not a setting of this plugin"))
      continue;
    else if (strstr(said, "cannot prepare the log") || strstr(said, "write")) {
      ni_doctor_add(d, "directory", NI_DOC_PROBLEM,
                    "Set NCCL_INSPECTOR_DUMP_DIR to a folder that every rank can create and write.",
                    "the plugin says: %s", said);
      refused++;
    } else {
      bool failed = strstr(said, "is not accepted") != NULL, off = strstr(said, "switched off") != NULL;
      ni_doctor_add(d, "settings",
                    off          ? NI_DOC_PROBLEM
                        : failed ? NI_DOC_WARNING
                                 : NI_DOC_NOTE,
                    failed ? "Correct or unset it." : NULL, "the plugin says: %s", said);
    }
  }
  free(text);
  if (rc != 0)
    ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, "Please report this, with the environment.",
                  "a trial with one operation failed: %s", ni_child_why(rc, why, sizeof why));
  else if (mask == 0 && !refused)
    ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, "See what it says above.", "the plugin switched itself off");
  if (*written) {
    report_place(d, written);
    ni_doctor_add(d, "directory", NI_DOC_OK, NULL, "a trial log was written there and removed again: %s",
                  written);
    remove_trial_files(written, before);
  } else if (rc == 0 && !refused && mask) {
    ni_doctor_add(d, "directory", NI_DOC_PROBLEM,
                  "Set NCCL_INSPECTOR_DUMP_DIR to a folder that every rank can create and write.",
                  "the trial wrote no log below %s", before);
  }
}
