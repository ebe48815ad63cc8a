/*
 * libFuzzer: any bytes as a set of logs (byte 0x1e starts the next file), through the whole of
 * `nccl-inspector summary` in this process. It must not crash or leak, ends with 0 (complete), 1 (no logs,
 * could not run) or 2 (incomplete), leaves no temporary folder, and says the same with one thread as with
 * three and a small --memory.
 *
 *   test/fuzz/run.sh 60 summary
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/cli/command.h"

#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st, (void)type, (void)ftw;
  return remove(path);
}
static void clean(const char *dir) { nftw(dir, unlink_one, 16, FTW_DEPTH | FTW_PHYS); }

static char *slurp(const char *dir, const char *name) {
  char path[400];
  struct stat st;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return NULL;
  need(fstat(fd, &st) == 0);
  char *text = calloc((size_t)st.st_size + 1, 1);
  need(text && read(fd, text, (size_t)st.st_size) == st.st_size);
  close(fd);
  return text;
}

static int run(const char *logs, const char *out, const char *jobs, const char *memory) {
  char *argv[] = {(char *)"nccl-inspector summary",
                  (char *)logs,
                  (char *)"--output-dir",
                  (char *)out,
                  (char *)"--dataset",
                  (char *)"--no-plots",
                  (char *)"--no-html",
                  (char *)"-q",
                  (char *)jobs,
                  (char *)memory,
                  NULL};
  return ni_summary_run(10, argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char root[200], logs[240], a[240], b[240];
  if (!*root) {
    snprintf(root, sizeof root, "%s", fuzz_dir("summary"));
    snprintf(logs, sizeof logs, "%s/logs", root);
    snprintf(a, sizeof a, "%s/a", root);
    snprintf(b, sizeof b, "%s/b", root);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC); /* what it prints is no part of this */
    need(null >= 0 && dup2(null, 1) == 1);
  }
  need(mkdir(logs, 0777) == 0);
  const uint8_t *at = data, *end = data + size;
  for (int i = 0; i < 4 && (at < end || i == 0); i++) {
    char path[400];
    const uint8_t *stop = i < 3 ? memchr(at, 0x1e, (size_t)(end - at)) : NULL;
    size_t len = (size_t)((stop ? stop : end) - at);
    snprintf(path, sizeof path, "%s/host%d-pid%d.log", logs, i % 2, i);
    FILE *f = fopen(path, "we");
    need(f && fwrite(at, 1, len, f) == len && fclose(f) == 0);
    at += len + (stop != NULL);
  }
  int first = run(logs, a, "--jobs=1", "--memory=128M"), second = run(logs, b, "--jobs=3", "--memory=16M");
  need(first == second && first >= 0 && first <= 2);
  char *x = slurp(a, "summary/summary.json"), *y = slurp(b, "summary/summary.json");
  need(!x == !y);
  if (x)
    need(strcmp(x, y) == 0 &&
         strstr(x, "\"schema_version\":\"nccl-inspector-summary-1\"") == strchr(x, '{') + 1);
  free(x);
  free(y);
  DIR *d = opendir(a);
  for (struct dirent *e; d && (e = readdir(d));)
    need(strncmp(e->d_name, ".tmp-", 5) != 0);
  if (d)
    closedir(d);
  clean(logs);
  clean(a);
  clean(b);
  return 0;
}
