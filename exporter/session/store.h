/*
 * Sessions on disk: named intervals over the frames of a grid, any number at once, each with its own frame
 * numbers and file.
 *
 *   frame ─▶ ni_store_frame() ─▶ text, once for all sessions ─▶ writer thread: append, fdatasync
 *       ─▶ ni_store_safe()
 *   late sample ─▶ ni_store_late() ─▶ late.jsonl beside, for the sessions whose interval it lies in
 *   stop ─▶ NAME.json is closed; where late samples came they are put into their frames by a child, and the
 *           file is put in its place
 *
 * A session has a folder below the store's: <uuid4>/frames.jsonl (a frame a line, with session_id and
 * session_name), late.jsonl, state.json (by a rename, fsynced before any answer). The store's folder is
 * `.nccl-inspector-sessions`, or as gsprof `.gswarm_profiler_data`, with gsprof's layout and keys. The file
 * for users, NAME.json, lies in the folder of output; it grows as a hidden file there (.tmp- and a number),
 * so that a stop takes no longer for a long session, and gets its name at the end.
 *
 * Two forms (docs/cluster.md has all keys). Native: percent, GB/s, UTC, header with units first. gsprof: keys
 * and scales of gsprof's code, rx and tx in the right direction. Both can be read by `gsprof stat`: arrays of
 * one order that only grows, "nan" where there is no number.
 *
 * After a kill: ni_store_open() finds what ran, cuts torn last lines, and goes on with their next frame
 * numbers. What can fail: the disk. Then frames are kept for NI_STORE_HELD_MAX bytes and tried again each
 * second, the state says degraded and why, no sample is acknowledged; what is beyond is let go and counted in
 * frames_lost.
 *
 * Names: 1 to 128 of A-Z a-z 0-9 . _ - and space, none that begins with '.' or a space. They are never paths.
 * Threads: the owner's, and one that writes. Ownership: ni_store_close().
 */
#ifndef NI_STORE_H
#define NI_STORE_H

#include "exporter/session/grid.h"

enum { NI_STORE_SESSIONS_MAX = 256, NI_STORE_HELD_MAX = 64 << 20 }; /* sessions that run at once */

struct ni_session {
  char id[40], name[132], file[512];  /* file: name of the output, in the store's folder of output */
  int64_t start_ns, end_ns;           /* end_ns 0: it runs */
  uint64_t frames, frames_lost, late; /* late: samples that came after their frame */
  /* resuming: it goes on, and its frames are being read; finishing: stopped, its file is being made whole */
  bool active, resuming, finishing;
  char error[256]; /* of the disk; "": none */
};

struct ni_store_options {
  const char *data, *output; /* folders; NULL: the default below the working folder; "." */
  bool gsprof;               /* gsprof's form and folder */
  bool bandwidth, nvlink;    /* what frames hold; both can change later: ni_store_flags() */
  int64_t period_ns;
};

struct ni_store;
/* 0, or -errno with a sentence in why: another head has the folder, or it cannot be written. */
int ni_store_open(struct ni_store **out, const struct ni_store_options *o, char *why, size_t cap);
void ni_store_close(struct ni_store *s);    /* running sessions stay running, for the next head */
int ni_store_dir(const struct ni_store *s); /* its folder, open; it stays the store's */
void ni_store_flags(struct ni_store *s, bool bandwidth, bool nvlink);

/*
 * Where the newest frame of what ran before ended, Unix ns of its tick; 0: nothing ran. And what a client's
 * samples were safe to then.
 */
int64_t ni_store_resumed(const struct ni_store *s);
uint64_t ni_store_resumed_seq(const struct ni_store *s, const char *uuid);

/*
 * Who was there when the last head wrote it down (roster.h); and it is written down again. The first: 0 or
 * -errno.
 */
struct ni_rostered;
int ni_store_roster(const struct ni_store *s, void (*each)(void *arg, struct ni_rostered *r), void *arg);
void ni_store_note(struct ni_store *s, const struct ni_grid *g);

/*
 * Begins a session. name NULL or "": one is made of the time, as gsprof does. 0 when its state is on the
 * disk; -EEXIST: one of that name runs; -EINVAL: the name; -ENOSPC: too many; -errno of the disk; with a
 * sentence in why. A file of that name that is there is not overwritten: the file gets "-2", "-3" before
 * ".json".
 */
int ni_store_start(struct ni_store *s, const char *name, int64_t now_ns, struct ni_session *out, char *why,
                   size_t cap);
/*
 * Ends it; name NULL: the one that runs, -EINVAL where several do. -ENOENT: none of that name runs. -EAGAIN:
 * not all that it got is on the disk: it goes on, and may be asked again when ni_store_fd() says that
 * something moved. Neither waits for what it got.
 */
int ni_store_stop(struct ni_store *s, const char *name, int64_t now_ns, struct ni_session *out, char *why,
                  size_t cap);
/* Is all on the disk that it got, or refused by it? name NULL or "": of all that run. */
bool ni_store_flushed(struct ni_store *s, const char *name);
/*
 * An ended session runs again, with its next frame number; by id or name (the newest of it). -EAGAIN: its
 * file is being made or synced, which is given up, or what came late is not on the disk: to be asked again
 * soon.
 */
int ni_store_resume(struct ni_store *s, const char *id_or_name, int64_t now_ns, struct ni_session *out,
                    char *why, size_t cap);
/* All that the store has, newest first; *list is for free(). n, or -ENOMEM. */
int ni_store_list(const struct ni_store *s, struct ni_session **list);
size_t ni_store_running(const struct ni_store *s);
/*
 * The one that a head speaks of where it speaks of one: the newest that runs, else the newest. false: there
 * is none.
 */
bool ni_store_current(const struct ni_store *s, struct ni_session *out);

/* Both return at once: the writer does the rest. Nothing where no session runs. */
void ni_store_frame(struct ni_store *s, const struct ni_frame *f);
void ni_store_late(struct ni_store *s, const struct ni_client *c, const struct ni_sample *sample,
                   int64_t tick_ns);
/*
 * The tick up to which all frames, and all late samples put before, are on the disk. fd: readable when it
 * moved.
 */
int64_t ni_store_safe(struct ni_store *s, char degraded[256]);
int ni_store_fd(const struct ni_store *s);
/*
 * Does the disk keep up? Where frames of a long time are made at once, they are to wait while this is false.
 */
bool ni_store_keeps_up(const struct ni_store *s);

#endif
