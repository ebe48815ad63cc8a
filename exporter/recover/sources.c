#include "sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool ni_box_name(const char *path) {
  size_t n = strlen(path), k = sizeof NI_BOX_SUFFIX - 1;
  return n > k && strcmp(path + n - k, NI_BOX_SUFFIX) == 0;
}

static bool own_name(const char *name) {
  return strncmp(name, NI_BOX_PREFIX, sizeof NI_BOX_PREFIX - 1) == 0 && ni_box_name(name);
}

/* Named files go to one list or the other, directories to both. */
static void split(const struct ni_inputs *in, char **logs, size_t *n_logs, char **boxes, size_t *n_boxes) {
  for (size_t i = 0; i < in->n; i++) {
    struct stat st;
    bool directory = stat(in->path[i], &st) == 0 && S_ISDIR(st.st_mode);
    if (directory || !ni_box_name(in->path[i])) logs[(*n_logs)++] = in->path[i];
    if (directory || ni_box_name(in->path[i])) boxes[(*n_boxes)++] = in->path[i];
  }
}

int ni_box_sources_find(struct ni_box_sources *s, const struct ni_inputs *in, const char *box_dir) {
  char **logs = calloc(2 * (in->n + 1), sizeof *logs), **boxes = logs ? logs + in->n + 1 : NULL;
  size_t n_logs = 0, n_boxes = 0;
  if (!logs) return -ENOMEM;
  split(in, logs, &n_logs, boxes, &n_boxes);
  s->boxes.wanted = ni_box_name;
  int e = ni_discover(&s->logs, logs, n_logs);
  if (e == 0) e = ni_discover(&s->boxes, boxes, n_boxes);
  s->named = s->boxes.n + s->boxes.n_bad > 0;
  if (e == 0 && !s->named) {
    char *dir = (char *)(uintptr_t)box_dir;
    struct stat st;
    s->boxes.wanted = own_name;
    if (stat(box_dir, &st) == 0) e = ni_discover(&s->boxes, &dir, 1);
  }
  free(logs);
  return e;
}

/* realpath, also of a directory that is not there yet: a process that was killed early had not made it. */
static char *real_of(const char *path) {
  char *real = realpath(path, NULL);
  const char *slash = strrchr(path, '/');
  const char *last = slash ? slash + 1 : path;
  if (real || errno != ENOENT || slash == path || !*last || strcmp(last, "..") == 0 || strcmp(last, ".") == 0) return real;
  char *up = slash ? strndup(path, (size_t)(slash - path)) : strdup("."), *above = up ? real_of(up) : NULL;
  if (above && asprintf(&real, "%s/%s", strcmp(above, "/") == 0 ? "" : above, last) < 0) real = NULL;
  free(up);
  free(above);
  return real;
}

bool ni_box_under(const struct ni_inputs *in, const char *dir) {
  char *real = real_of(dir);
  bool is = false;
  for (size_t i = 0; real && !is && i < in->n; i++) {
    char *path = real_of(in->path[i]);
    size_t n = path ? strlen(path) : 0;
    is = path && strncmp(real, path, n) == 0 && (real[n] == 0 || real[n] == '/' || n == 1);
    free(path);
  }
  free(real);
  return is;
}

void ni_box_sources_free(struct ni_box_sources *s) {
  ni_files_free(&s->logs);
  ni_files_free(&s->boxes);
}
