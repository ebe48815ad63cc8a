/*
 * The black box's file: made in tmpfs, given memory step by step, removed; and the ones of dead processes
 * pruned.
 *
 * Knows nothing of what is in it but the header's identity (ni_box.h), which pruning looks at.
 *
 * Threads: prune, make, publish and remove by init or exit; step and commit by the dump thread (commit also
 * by the first init, before there is one). No descriptor is kept: a host may close what it does not know, so
 * each commit opens the file again and looks that it is the one that was made. Failure: never fatal. Whatever
 * is refused, the arena goes on in ordinary memory. Not promised: that nobody else of the same user truncates
 * the file under us (docs/security.md).
 */
#ifndef NI_BOX_FILE_H
#define NI_BOX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NI_BOX_PATH_BYTES 1408u /* folder, host name and numbers */
#define NI_BOX_WHY_BYTES 192u

/*
 * Boxes of dead processes: how many and how old they may get. Eight crashes of a node with eight GPUs, over a
 * weekend.
 */
#define NI_BOX_KEEP_FILES 64u
#define NI_BOX_KEEP_SECONDS (72u * 3600u)
/* A box whose owner nobody can ask for counts as dead after so long without a heartbeat. */
#define NI_BOX_SILENT_SECONDS 600u

struct ni_box_file {
  int fd;             /* open from make to publish or remove; -1 then */
  uint8_t hidden;     /* 1: has no name yet; the kernel takes it away when we are killed now */
  uint64_t bytes;     /* length of the file */
  uint64_t committed; /* bytes that have been given memory */
  uint64_t dev, ino;
  uint32_t gone; /* 1: removed by somebody, or no longer ours: it does not grow any more */
  char path[NI_BOX_PATH_BYTES];
};

/*
 * Makes the file that will be dir/nccl-inspector-<host>-pid<pid>-<random>.box, 0600, empty (sparse), open in
 * f->fd. host is path-safe. Its name it gets by publish, when it is whole; so nobody ever meets half a box.
 * Length: most bytes, but at most a quarter of what is free in the file system, and at least `least`. 0, or a
 * negative errno with a sentence in why: -ENODEV no tmpfs, -ENOSPC too small, ...
 */
int ni_box_file_make(struct ni_box_file *f, const char *dir, const char *host, int64_t pid, uint64_t least,
                     uint64_t most, char why[NI_BOX_WHY_BYTES]);

/* The box is whole: gives it its name and closes the descriptor. 0 or a negative errno: it has no name, and
 * goes with the process. */
int ni_box_file_publish(struct ni_box_file *f);

/* Bytes that the file shall be kept ahead by at least: 32 MiB, less where that is more than the 128th part
 * of what is free, and 4 MiB whatever is free. init only: asked once. */
uint64_t ni_box_file_ahead(const struct ni_box_file *f);

/*
 * How many of `pages` the file may grow by now, by the rule of the quarter; 0 when the file system is short.
 */
uint32_t ni_box_file_step(struct ni_box_file *f, uint32_t pages);

/*
 * Gives bytes [from, to) memory, so that touching them cannot fail. 0 or negative errno; nothing is promised
 * then.
 */
int ni_box_file_commit(struct ni_box_file *f, uint64_t from, uint64_t to);

/* False when it will never grow again. */
static inline bool ni_box_file_grows(const struct ni_box_file *f) { return !f->gone; }

/* Unlinks the file, if it is still ours, and closes it. The mapping stays. */
void ni_box_file_remove(struct ni_box_file *f);

/* Inode of the pid namespace and start time of this process (ni_box.h); 0 where /proc does not say. */
uint64_t ni_box_pid_namespace(void);
uint64_t ni_box_start_ticks(int64_t pid);

/*
 * Removes boxes in dir that belong to this user and whose process is dead (docs/blackbox.md): those that hold
 * nothing, those older than NI_BOX_KEEP_SECONDS, and the oldest beyond NI_BOX_KEEP_FILES or beyond a quarter
 * of what would be free without them. The newest of the rest stays. boot_id: of this machine. Returns how
 * many went; 0 also where dir is no tmpfs. By the first init, before the new box's size is decided. Reads a
 * folder and the headers.
 */
uint32_t ni_box_prune(const char *dir, const char *boot_id);

#endif
