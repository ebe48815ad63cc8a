#include "ends.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exporter/input/box/life.h"

/*
 * Finds the life of a process by its box, whose name begins with host and pid. If there are several boxes, an
 * earlier process had the same number: one that lives tells more.
 */
static enum ni_life find_life(DIR *d, const char *dir, const struct ni_ledger_process *p) {
  char begin[512], path[4096];
  enum ni_life life = NI_LIFE_UNKNOWN;
  int n = snprintf(begin, sizeof begin, NI_BOX_PREFIX "%.64s-pid%" PRId64 "-", p->who->host, p->who->pid);
  rewinddir(d);
  for (const struct dirent *e; life != NI_LIFE_ALIVE && (e = readdir(d));) {
    if (strncmp(e->d_name, begin, (size_t)n) != 0)
      continue;
    if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path)
      continue;
    struct ni_life_fact f = ni_life_of_path(path, p->file->owner, p->who->pid);
    if (f.life != NI_LIFE_UNKNOWN)
      life = f.life;
  }
  return life;
}

void ni_check_tell_ends(struct ni_ledger *c, const char *box_dir) {
  const char *dir = box_dir ? box_dir : NI_BOX_DIR;
  uint64_t of[NI_LIFE_COUNT] = {0};
  DIR *d = c->problem[NI_PROBLEM_NO_END].places ? opendir(dir) : NULL;
  if (!d)
    return;
  for (size_t i = 0; i < c->n_processes; i++)
    if (c->process[i]->has_line && !c->process[i]->ended && !c->process[i]->imported)
      of[find_life(d, dir, c->process[i])]++;
  closedir(d);
  if (of[NI_LIFE_ALIVE] + of[NI_LIFE_DEAD] + of[NI_LIFE_ENDED])
    ni_ledger_problem(c, NI_PROBLEM_NO_END, 0,
                      "by the black boxes in %s: %" PRIu64 " killed, %" PRIu64
                      " ended with something unwritten, "
                      "%" PRIu64 " running, %" PRIu64 " not known",
                      dir, of[NI_LIFE_DEAD], of[NI_LIFE_ENDED], of[NI_LIFE_ALIVE], of[NI_LIFE_UNKNOWN]);
}
