/*
 * Whose job is it? `hang` is run by root too, over logs and boxes that any user can make: then each user's part is looked at
 * with that user's rights, in a child (as_user.h), one user after the other.
 */
#ifndef NI_HANG_OWNERS_H
#define NI_HANG_OWNERS_H

#include "exporter/input/box/sources.h"

#define NI_HANG_OWNERS_MAX 64 /* users in one look; what is of others is passed over, and said to be */

struct ni_owners {
  uid_t uid[NI_HANG_OWNERS_MAX];
  size_t n;
  bool more;
};

/* Adds the owners of the files. */
void ni_owners_add(struct ni_owners *o, const struct ni_files *f);
/* Is a box of this owner to be believed? If he is us, or of a named box if he owns a log beside it, or if there are no logs. */
bool ni_owners_believe(const struct ni_owners *of_logs, const struct ni_box_sources *s, uid_t owner);

/*
 * Runs look(arg) for each user who owns logs or boxes of the command line, as that user; once, here, if we are not root.
 * Its exit code; of several users the one that says most. alone: several users are refused.
 */
int ni_hang_as_owners(const char *name, const struct ni_inputs *in, const char *box_dir, bool alone, int (*look)(void *arg), void *arg);

#endif
