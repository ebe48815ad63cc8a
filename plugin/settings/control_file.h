/*
 * One control file: has it changed, may it be believed, what does it say.
 *
 * The folder of the logs is often writable for others, so a file counts only when it is a plain file (no
 * link, pipe or device), belongs to this process's user or to root, is writable for nobody else, and has at
 * most NI_CTL_FILE_BYTES. It is opened without following a link and without waiting, and judged by its
 * descriptor.
 *
 * Threads: the dump role. Costs one statx a look while nothing changes. No memory of its own.
 */
#ifndef NI_CONTROL_FILE_H
#define NI_CONTROL_FILE_H

#include <stddef.h>
#include <stdint.h>

#define NI_CTL_PATH_BYTES 5376 /* a working directory, a dump directory and a name */
#define NI_CTL_NAME_BYTES 320

struct ni_ctl_seen { /* compared as bytes: no gaps */
  uint64_t ino, size, mtime_ns, ctime_ns;
  uint32_t dev_major, dev_minor;
};

struct ni_ctl_file {
  char path[NI_CTL_PATH_BYTES];
  const char *name;        /* its last component */
  struct ni_ctl_seen seen; /* as it was when it was read or refused last; zero: never seen */
  uint64_t done_ns;        /* highest NUMBER carried out */
};

/* dir/name. 0, or -ENAMETOOLONG: it is then never looked for. */
int ni_ctl_file_init(struct ni_ctl_file *f, const char *dir, const char *name);

/*
 * 0: nothing new. 1: *n bytes of text in buf (cap at least NI_CTL_FILE_BYTES), *mtime_ns: when it was
 * written, Unix ns. -1: it changed and is not believed; *why is a constant text. Each change is told once.
 */
int ni_ctl_file_look(struct ni_ctl_file *f, char *buf, size_t cap, size_t *n, uint64_t *mtime_ns,
                     const char **why);

#endif
