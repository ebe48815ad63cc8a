#include "passed_over.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/out_file.h"
#include "exporter/input/whole.h"

/* a million paths of 256 bytes */
#define LIST_MOST ((size_t)256 << 20)

int ni_passed_over_add(int fd, const struct ni_files *files) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < files->n; i++)
    e = ni_write_all(fd, files->file[i].path, strlen(files->file[i].path) + 1, -1);
  return e;
}

static int by_path(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int ni_passed_over_read(struct ni_passed_over *list, const char *file) {
  size_t bytes = 0, n = 0;
  char why[128];
  ni_passed_over_free(list);
  errno = 0;
  list->text = ni_read_whole(file, LIST_MOST, &bytes, why, sizeof why);
  if (!list->text)
    return errno ? -errno : -EIO;
  for (size_t i = 0; i < bytes; i++)
    n += list->text[i] == '\0';
  list->path = calloc(n + 1, sizeof *list->path);
  if (!list->path) {
    ni_passed_over_free(list);
    return -ENOMEM;
  }
  for (size_t from = 0; list->n < n; from += strlen(list->text + from) + 1)
    list->path[list->n++] = list->text + from;
  qsort(list->path, n, sizeof *list->path, by_path);
  return 0;
}

static bool is_on_list(const struct ni_file *f, void *arg) {
  const struct ni_passed_over *list = arg;
  return bsearch(&f->path, list->path, list->n, sizeof *list->path, by_path) != NULL;
}

void ni_passed_over_drop(const struct ni_passed_over *list, struct ni_files *files) {
  if (list->n)
    ni_files_drop(files, is_on_list, (void *)(uintptr_t)list);
}

void ni_passed_over_free(struct ni_passed_over *list) {
  free(list->path);
  free(list->text);
  *list = (struct ni_passed_over){0};
}
