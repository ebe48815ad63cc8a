/*
 * The log files of this process: directory, names, rotation, and what happens when a write fails.
 *
 *   closed ──write──▶ open ──write──▶ open (file full: next file) ──close──▶ closed
 *      ▲                │ a write failed: cut back to the last whole block; if that fails, leave this file
 *      └────────────────┘ the directory or the file was deleted: created anew
 *
 * A block (one gzip member, or whole lines) is in a file completely or not at all, whatever fails: on an
 * error the file is cut back to where the block began; when even that fails the torn file is left, readers
 * skip its cut tail, and the whole block goes into the next file.
 *
 * Names: <host>-pid<pid>-<start seconds><suffix>, then <host>-pid<pid>-<start seconds>.<n><suffix>, n from 1,
 * when the name is taken (O_EXCL: nobody's file is ever written into) or the file is rotated. Files 0644,
 * directories 0755, subject to umask. Descriptors are above 2 and close-on-exec.
 *
 * Retries: after a failure ni_out_write answers -EAGAIN without a system call until the pause is over (10 ms,
 * doubled at each failure up to 5 s), unless forced. RLIMIT_FSIZE is asked before each write, so no SIGXFSZ
 * is raised.
 *
 * Rotation touches only files that this struct has created, and only while they are still the same inode.
 * With dir_max_bytes files are limited to half of it, or to an eighth where there is no file_max_bytes; with
 * keep_seconds they are also changed every eighth of that time, at least every second, so that something can
 * go. The file being written never goes. What went is told by ni_out_lost. The next file is made before the
 * old one is closed. Where it cannot be made (no inode, no descriptor, no room for its head), the old one
 * goes on beyond its limits and 5 s later it is tried again.
 *
 * Threads: one at a time. May block in the file system (that is why callbacks never come here). Ownership:
 * ni_out_init copies its strings; ni_out_close frees. Not promised: durability beyond the page cache (no
 * fsync: the job must not wait for disks). A finished file that somebody removes is noticed only when
 * rotation comes to it; an open one removed on NFS by another host, never.
 */
#ifndef NI_OUT_FILE_H
#define NI_OUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_out_options {
  /* ready, tokens put in; relative ones are resolved at init, so a later chdir does no harm */
  const char *dir;
  const char *host; /* made path-safe by us */
  int64_t pid;
  uint64_t start_s;                                     /* Unix seconds */
  const char *suffix;                                   /* ".jsonl.gz" */
  uint64_t file_max_bytes, dir_max_bytes, keep_seconds; /* 0: off */
};

/* What is no longer on disk though ni_out_write had returned 0 for it. Cumulative. */
struct ni_out_lost {
  uint64_t expired_files, expired_records;   /* by rotation */
  uint64_t deleted_files, deleted_records;   /* found deleted or replaced by somebody else */
  uint64_t doubtful_files, doubtful_records; /* close() reported an error: nobody knows how much is there */
};

struct ni_out_state; /* private to out_file.c */
struct ni_out {
  struct ni_out_state *s;
};

/* Copies the options; touches no file system except getcwd. 0, -ENOMEM, -ENAMETOOLONG. */
int ni_out_init(struct ni_out *o, const struct ni_out_options *opt);

/* Text that begins every file (a block of its own, holding no counted records); copied. n = 0 takes it away.
 * 0 or -ENOMEM. */
int ni_out_set_preamble(struct ni_out *o, const void *data, size_t n);

/*
 * Appends one block by one write(). n_records: operation lines in it, remembered per file. now_ns:
 * CLOCK_MONOTONIC. 0: the whole block is in the current file. Otherwise nothing of it counts and the same
 * block is to be offered again: -EAGAIN (pause not over), -ENOSPC, -EDQUOT, -EFBIG, -EIO, -EROFS, -EACCES,
 * -ENOTDIR, ... as the system gave it. force: try although the pause is not over (last drain). n 0: makes the
 * first file, if there is none and it has a preamble.
 */
int ni_out_write(struct ni_out *o, const void *data, size_t n, uint64_t n_records, uint64_t now_ns,
                 bool force);

/* Bytes beyond which a new file is begun: file_max_bytes, or what follows from dir_max_bytes; 0: no limit. */
uint64_t ni_out_file_max(const struct ni_out *o);

/* Drops finished files that are over keep_seconds or dir_max_bytes, and looks whether the current file was
 * deleted. ni_out_write does it by itself. */
void ni_out_expire(struct ni_out *o, uint64_t now_ns);

/* hold: no file goes by rotation from here on, so that what ni_out_lost says of it can be written down. The
 * block that says so may then be over dir_max_bytes. */
void ni_out_hold(struct ni_out *o, bool hold);

/* Name of the files without suffix and number: <host>-pid<pid>-<start>. */
const char *ni_out_base(const struct ni_out *o);

/* Bytes in other files that count against dir_max_bytes, too. */
void ni_out_reserve(struct ni_out *o, uint64_t bytes);

/* When the next unforced write is worth trying; 0: now. CLOCK_MONOTONIC. */
uint64_t ni_out_next_try_ns(const struct ni_out *o);

/*
 * Why the last try at a new file failed that rotation made: a negative errno; 0: it did not, or there was
 * none.
 */
int ni_out_rotation_error(const struct ni_out *o);

struct ni_out_lost ni_out_lost(const struct ni_out *o);
/*
 * Number of files created so far: when it changes, lines that every file should have are to be written again.
 */
uint64_t ni_out_files(const struct ni_out *o);
/* Bytes now on disk in files of ours. */
uint64_t ni_out_bytes(const struct ni_out *o);
/* The current or last file's path, or the directory when there is none yet. Valid until the next call. */
const char *ni_out_path(const struct ni_out *o);

/* Looks a last time for deleted files, closes, frees. Returns the error of close() (data may be lost then:
 * NFS), 0 otherwise. Afterwards o may be inited again. lost: as ni_out_lost, NULL allowed. */
int ni_out_close(struct ni_out *o, struct ni_out_lost *lost);

#endif
