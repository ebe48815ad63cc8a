/*
 * Files that the exporter writes: whole or not at all, and never where another user wants them.
 *
 *   folder, held open (ni_out_dir) ─▶ hidden file of a random name, ours alone (begin) ─▶ bytes
 *       ─▶ its name (commit)
 *
 * Nothing is opened that was there before, and no link is followed in the folder. The way to the folder is
 * walked step by step: a folder or link on it that another user could change under us is refused. "Another
 * user" is neither root nor us. For root every folder of another user is one; for the others only those that
 * everybody may write to, or that are sticky. So projects that users share by group work, and root's /tmp
 * does.
 *
 * Threads: one per struct. Errors: negative errno.
 */
#ifndef NI_EXPORTER_OUT_FILE_H
#define NI_EXPORTER_OUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* `*tmp` is 0 when nothing is under way. A struct of zeros is such a one. */
struct ni_out_file {
  int dir, fd; /* dir is the caller's */
  char tmp[64];
  bool locked; /* by `lock`, until it has its name or is dropped (ni_out_begin_for) */
  int lock;
};

/*
 * Opens a folder to write into; make: with what is missing of its path. The descriptor is the caller's to
 * close. -EPERM: another user could change what is written; else -errno of the system. Either way with a
 * sentence in why, cut to cap.
 */
int ni_out_dir(const char *path, bool make, char *why, size_t cap);

/* What went wrong where something is to be written, and what to do; error: -errno. For an option's name to
 * follow: "..., by --output". */
const char *ni_out_error_text(int error);

/* Of a folder that is open, in which a daemon keeps what it believes later: 0, or -EPERM with a sentence in
 * why where everybody may write in it, be it sticky or not. */
int ni_out_own(int dir, char *why, size_t cap);

/* A hidden name that nobody can foresee: ".tmp-" and a number. */
int ni_out_name(char name[64]);

/*
 * Makes the file, for writing, as o->fd. A caller who hands that to a stream, which will close it, sets it to
 * -1. mode is subject to the umask. 0 or -errno: then there is nothing to drop.
 */
int ni_out_begin(struct ni_out_file *o, int dir, mode_t mode);

/*
 * The same in a folder of logs, which may be on any file system: the hidden name has `who` in it, and the
 * file a lock (flock) until it has its name. Those that `who` was killed over are removed before: nobody has
 * their lock. Root removes them whosever they are, in a folder of its own.
 */
int ni_out_begin_for(struct ni_out_file *o, int dir, const char *who, mode_t mode);

/* Removes those alone. who: as there, 25 bytes at most. */
void ni_out_sweep_for(int dir, const char *who);

/*
 * The same beside the name that a path ends in: *name, which commit() is to get. What is there and no regular
 * file is refused, which root would put a file in place of. o->dir is the caller's to close, -1: there is
 * none. Else -errno, with a sentence in why.
 */
int ni_out_begin_at(struct ni_out_file *o, const char *path, const char **name, char *why, size_t cap);

/*
 * Closes and gives it its name, which has no '/'. replace false: -EEXIST when the name is taken, even by a
 * dangling link; the caller may try another then, or drop. Whoever wants it on the disk syncs o->fd first.
 * After other errors nothing is left.
 */
int ni_out_commit(struct ni_out_file *o, const char *name, bool replace);

/* All n bytes, at a place of the file, or where it stands (at: -1). 0 or -errno. */
int ni_write_all(int fd, const void *from, size_t n, off_t at);

/* The same backwards. -EIO where the file ends. */
int ni_read_at(int fd, void *to, size_t n, off_t at);

/*
 * Removes the hidden files of ours that writers who were killed have left: nobody holds their lock (flock),
 * which a writer who calls this keeps until its file has its name. mine: one of our own, or "". magic, of n
 * bytes (128): what they begin with; 0: anything.
 */
void ni_out_sweep(int dir, const char *mine, const void *magic, size_t n);

/*
 * The bytes of a file into another one. how: O_APPEND, behind what that has, or O_CREAT | O_EXCL. No link is
 * followed. 0 or -errno.
 */
int ni_copy_file(int from_dir, const char *from, int to_dir, const char *to, int how);

/*
 * The text as one gzip member, where the descriptor stands. 0, -ENOMEM or -errno: then a part of it may be
 * there.
 */
int ni_write_member(int fd, const char *text, size_t len);

/* Closes a stream that was written to: 0, or -errno of whatever went wrong since it was opened. */
int ni_out_end(FILE *f);

/* Closes and removes. Nothing when nothing is under way. */
void ni_out_drop(struct ni_out_file *o);

/* All of it for whoever writes a stream: where a user says, whole or not at all. */
struct ni_out_stream {
  FILE *f;
  struct ni_out_file file;
  const char *name;
  char why[512];
};

/*
 * path NULL: standard output. 0, or -errno with a sentence in why, and f is NULL. Either way it is to be
 * closed.
 */
int ni_out_open(struct ni_out_stream *o, const char *path);

/*
 * e: what went wrong since, or 0: then the file gets its name. Returns e, or what goes wrong now, with a
 * sentence in why if there is none yet.
 */
int ni_out_close(struct ni_out_stream *o, int e, bool replace);

#endif
