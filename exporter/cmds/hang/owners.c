#include "owners.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/as_user.h"
#include "exporter/cli/command.h"

void ni_owners_add(struct ni_owners *o, const struct ni_files *f) {
  for (size_t i = 0; i < f->n; i++) {
    size_t k = 0;
    while (k < o->n && o->uid[k] != f->file[i].owner) k++;
    if (k < o->n) continue;
    if (o->n < NI_HANG_OWNERS_MAX) o->uid[o->n++] = f->file[i].owner;
    else o->more = true;
  }
}

bool ni_owners_believe(const struct ni_owners *of_logs, const struct ni_box_sources *s, uid_t owner) {
  size_t k = 0;
  if (owner == geteuid()) return true;
  while (k < of_logs->n && of_logs->uid[k] != owner) k++;
  return s->named && (k < of_logs->n || of_logs->n == 0);
}

/* Of what was found for several users: a hang before a job that is dead, then what could not be told. */
static int worse(int a, int b) {
  static const int order[] = {NI_EXIT_FINDING, NI_EXIT_DEAD, NI_EXIT_INCOMPLETE, NI_EXIT_COULD_NOT_RUN};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    if (a == order[i] || b == order[i]) return order[i];
  return NI_EXIT_FINE;
}

int ni_hang_as_owners(const char *name, const struct ni_inputs *in, const char *box_dir, bool alone, int (*look)(void *arg), void *arg) {
  struct ni_box_sources s = {0};
  struct ni_owners o = {0};
  char why[256];
  int code = NI_EXIT_FINE;
  if (geteuid() != 0) return look(arg);
  if (ni_box_sources_find(&s, in, box_dir, NULL) < 0) {
    ni_say(stderr, "%s: %s\n", name, strerror(ENOMEM));
    ni_box_sources_free(&s);
    return NI_EXIT_COULD_NOT_RUN;
  }
  ni_owners_add(&o, &s.logs);
  if (s.named || o.n == 0) ni_owners_add(&o, &s.boxes);
  ni_box_sources_free(&s);
  if (o.n == 0) o.n = 1; /* uid 0: nothing is there, which is said */
  if (o.more) ni_say(stderr, "%s: logs and boxes of more than %d users: those of the others are passed over\n", name, NI_HANG_OWNERS_MAX);
  if (alone && o.n > 1) {
    ni_say(stderr, "%s: --watch: logs and boxes of %zu users are here (uid %u, uid %u). Give the folder of one\n", name, o.n, o.uid[0], o.uid[1]);
    return NI_EXIT_USAGE;
  }
  for (size_t i = 0; i < o.n; i++) {
    if (o.n > 1) ni_say(stderr, "%s: as uid %u:\n", name, o.uid[i]);
    int e = ni_as_owner(o.uid[i], alone ? 0 : NI_AS_USER_LOOK_SECONDS, -1, look, arg, why, sizeof why);
    if (e < 0) ni_say(stderr, "%s: %s\n", name, why);
    code = worse(code, e < 0 ? NI_EXIT_COULD_NOT_RUN : e);
  }
  return code;
}
