/* For tests of boxes: the part of a box, written as `nccl-inspector recover` does it. */
#ifndef NI_TEST_RECOVER_PART_H
#define NI_TEST_RECOVER_PART_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "exporter/cmds/recover/recover_box.h"
#include "exporter/cmds/recover/place.h"

/*
 * Into dir under the first free name of the stem; *path is "" when there was nothing to write. 0 or -errno.
 */
static inline int recover_part(const struct ni_box *b, const struct ni_log_state *log, const char *dir,
                               const char *stem, bool live, struct ni_recovered *out, char path[600]) {
  struct ni_out_file file;
  char name[300];
  int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), e = at < 0 ? -errno : ni_out_begin(&file, at, 0600);
  *path = 0;
  if (e < 0)
    return e;
  FILE *f = ni_recover_lines(file.fd);
  e = f ? ni_recover_box(b, log, f, live, out) : -ENOMEM;
  if (f && fclose(f) != 0 && e == 0)
    e = -errno;
  if (e < 0 || !out->part)
    ni_out_drop(&file);
  else if ((e = ni_recover_name(&file, stem, log->next, name, sizeof name)) == 0)
    snprintf(path, 600, "%s/%s", dir, name);
  close(at);
  return e;
}

#endif
