#include "log_groups.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/model/sums/state.h"

/* Which logs match one of the globs, and are of no group yet. */
static size_t assign_logs(struct ni_run *r, char *globs, uint32_t group) {
  size_t n = 0;
  char *save = NULL;
  for (char *glob = strtok_r(globs, " \t\r", &save); glob; glob = strtok_r(NULL, " \t\r", &save))
    for (size_t i = 0; i < r->files.n; i++) {
      const char *path = r->files.file[i].path;
      if (fnmatch(glob, path, 0) != 0 && fnmatch(glob, ni_path_name(path), 0) != 0)
        continue;
      n++;
      if (r->file[i].log_group == NI_BUCKET_NONE)
        r->file[i].log_group = group;
    }
  return n;
}

static int parse_group_line(struct ni_run *r, char *line, unsigned line_no) {
  struct ni_log_groups *g = &r->log_groups;
  const char *path = r->opt.groups;
  line += strspn(line, " \t");
  if (!*line || *line == '#' || *line == '\r')
    return 0;
  const size_t len = strcspn(line, ":");
  if (len == 0 || !line[len])
    return ni_run_fail(r, -EINVAL, "%.200s:%u: want NAME: GLOB...", path, line_no);
  line[len] = 0;
  for (size_t i = 0; i < g->n; i++)
    if (strcmp(g->name[i], line) == 0)
      return ni_run_fail(r, -EINVAL, "%.200s:%u: group '%.100s' is there already", path, line_no, line);
  if (g->n == NI_LOG_GROUPS_MAX)
    return ni_run_fail(r, -EFBIG, "%.200s: more than %u groups", path, NI_LOG_GROUPS_MAX);
  if (!ni_array_room(g->name, g->n, g->cap))
    return -ENOMEM;
  g->name[g->n++] = line;
  if (assign_logs(r, line + len + 1, (uint32_t)g->n - 1))
    return 0;
  return ni_run_fail(r, -ENOENT,
                     "%.200s:%u: no log is of group '%.100s'; globs are compared with paths such as %.200s",
                     path, line_no, line, r->files.n ? r->files.file[0].path : "-");
}

int ni_log_groups_read(struct ni_run *r) {
  const char *path = r->opt.groups;
  struct ni_log_groups *g = &r->log_groups;
  for (size_t i = 0; i < r->files.n; i++)
    r->file[i].log_group = NI_BUCKET_NONE;
  if (!path)
    return 0;
  int e = ni_run_read_words(r, path, &g->text);
  const size_t n = e < 0 ? 0 : (size_t)e;
  if (e > 0)
    e = 0;
  if (e == 0 && memchr(g->text, 0, n))
    ni_run_fail(r, e = -EINVAL, "%.200s: a byte 0 in it", path);
  unsigned line_no = 1;
  for (char *line = e == 0 ? g->text : NULL, *end; e == 0 && line; line = end, line_no++) {
    end = strchr(line, '\n');
    if (end)
      *end++ = 0;
    e = parse_group_line(r, line, line_no);
  }
  if (e == 0 && !g->n)
    ni_run_fail(r, e = -EINVAL, "%.200s: no group in it; want lines NAME: GLOB...", path);
  return e < 0 ? ni_run_fail(r, e, "--groups %.200s: %s", path, strerror(-e)) : e; /* the first text stays */
}
