/*
 * Where the black boxes and the logs of a command line are.
 *
 *   PATH...     a box or a copy of one, or a directory: its boxes (*.box and copies) and its logs, searched
 *               through
 *   --box-dir   where boxes of this machine lie (NI_BOX_DIR): asked when the paths hold none; of them those
 *               count whose log lies in one of the paths, or all without a path. One that was named has to be
 *               there, asked or not
 *
 * One thread; ni_box_sources_free(). Failure: -ENOMEM; what cannot be read is in `bad`.
 */
#ifndef NI_BOX_SOURCES_H
#define NI_BOX_SOURCES_H

#include "exporter/input/discover.h"
#include "exporter/input/inputs.h"
#include "box.h"

struct ni_box_sources {
  const char *box_dir;   /* borrowed */
  struct ni_files logs;  /* of the paths */
  struct ni_files boxes; /* box files found or named */
  bool named;            /* boxes come from the paths, not from box_dir */
  int box_dir_error;     /* errno: box_dir was asked and cannot be searched; 0 */
};

/*
 * One box, with the rights of its owner (as_user.h). What work leaves behind for others goes to memory of
 * ni_shared().
 */
struct ni_box_visit {
  const char *path;
  uint32_t owner; /* uid; set before work is called */
  /* by the command line: may be another user's where we are not root */
  bool named;
  /* that root waits at most; 0: what is left of the owner's NI_AS_USER_SECONDS */
  unsigned seconds;
  int keep;                                       /* a descriptor that work needs, or -1 (as_user.h) */
  int (*work)(const struct ni_box *b, void *arg); /* 0 or -errno */
  void *arg;
};
/*
 * Opens the box and runs work. 0; what work said; less than 0 as ni_box_open() has it, or as ni_as_owner(),
 * each with a sentence in why or an empty one. Another user's box that nobody named is -EACCES: what it says
 * about itself could be forged.
 */
int ni_box_visit(struct ni_box_visit *v, char *why, size_t why_bytes);

/* Boxes of box_dir that a command passed over. */
struct ni_box_passed {
  size_t foreign;   /* of another user, who alone may read them */
  size_t elsewhere; /* their log lies in none of the paths */
  uint32_t uid;     /* owner of a foreign one */
};

/*
 * The folder that --box-dir names; NULL: it was not given. Where it cannot be searched says why and what to
 * do. 0 or -errno.
 */
int ni_box_dir_check(const char *name, const char *named);
/* box_dir: NULL stands for NI_BOX_DIR. not_in: a folder whose boxes do not count, what the command itself
 * wrote there before; or NULL. 0 or -ENOMEM. */
int ni_box_sources_find(struct ni_box_sources *s, const struct ni_inputs *in, const char *box_dir,
                        const char *not_in);
void ni_box_sources_free(struct ni_box_sources *s);
/*
 * May this box of box_dir be read? If it is another user's or gone (error: -errno of opening it), counts it
 * and says no.
 */
bool ni_box_passes(struct ni_box_passed *p, const char *path, int error);
/*
 * Why there is nothing to work with, and what to do: a line for each path, and one for the box folder, each
 * begun with `name`. logs: the command reads logs, too, and found no line in them.
 */
void ni_box_sources_explain(FILE *f, const char *name, const struct ni_box_sources *s,
                            const struct ni_inputs *in, const struct ni_box_passed *passed, bool logs);
/*
 * Of the box of a job that was asked for: dir is where its log lies, or would have been. A path that is not
 * there yet because nothing was written before the kill is then none of the bad ones.
 */
void ni_box_sources_led(struct ni_box_sources *s, const char *dir);
/* Some path is not there or cannot be searched. */
bool ni_box_sources_bad(const struct ni_box_sources *s);
/* A line for each of them, begun with `name`. */
void ni_box_sources_say_bad(FILE *f, const char *name, const struct ni_box_sources *s);
/*
 * Was the box of a process that logs into dir ("": it has no log yet) asked for? Boxes that the command line
 * names are, all of this machine without a path, and else those whose log lies in one of the paths.
 */
bool ni_box_asked_for(const struct ni_box_sources *s, const struct ni_inputs *in, const char *dir);
/* Is dir one of the paths of the command line, or below one? It need not be there. */
bool ni_box_is_under(const struct ni_inputs *in, const char *dir);
/* Does the name end as a box or a copy of one does? */
bool ni_box_name(const char *path);

#endif
