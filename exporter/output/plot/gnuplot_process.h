/*
 * One gnuplot process: started without a shell, told to load scripts, watched.
 *
 * Commands go through its stdin, figures through files: it reads stdin byte by byte, one system call each,
 * and a figure has up to 200 kB. States: started -> (load -> wait)* -> ended. gnuplot goes on after an error
 * in a script, so one figure that it cannot draw costs that figure only. Behind each script it writes a mark
 * to its stderr: that tells when it is done and which figure a complaint belongs to. Threads: one per struct.
 * Ownership: ni_gnuplot_start() takes descriptors and a child, ni_gnuplot_end() gives both back, also after
 * an error. Failure: 0 or -errno, see each function; SIGPIPE is never raised. Not promised: that gnuplot drew
 * what was meant; it says nothing of fonts it replaced.
 */
#ifndef NI_GNUPLOT_PROCESS_H
#define NI_GNUPLOT_PROCESS_H

#include <stdio.h>
#include <sys/types.h>

enum { NI_GNUPLOT_LIMIT_S = 120 }; /* a gnuplot that takes longer for one figure, or to end, is killed */

struct ni_gnuplot {
  pid_t pid;
  FILE *end;  /* our end of its stdin and stderr, a socket */
  char *line; /* of its stderr, the last one */
  size_t room;
};

/*
 * Starts program (found by PATH) in directory. 0; -ENOENT: no such program; -errno. Nothing to end after an
 * error.
 */
int ni_gnuplot_start(struct ni_gnuplot *g, const char *program, const char *directory);

/*
 * Tells it to load a script, a path from its directory without quotes or control characters. 0; -EPIPE: it
 * ended.
 */
int ni_gnuplot_load(struct ni_gnuplot *g, const char *script);

/*
 * Waits until it is done with the script that was loaded last. 0: `message` is its first error in it, or
 * empty. -EPIPE: it ended, and its last words are there. -ETIMEDOUT: it said nothing for NI_GNUPLOT_LIMIT_S.
 * message is cut to size.
 */
int ni_gnuplot_wait(struct ni_gnuplot *g, char *message, size_t size);

/*
 * Lets it end, or kills it after NI_GNUPLOT_LIMIT_S (now: at once), and frees all. The signal it ended by, or
 * 0.
 */
int ni_gnuplot_end(struct ni_gnuplot *g, int now);

#endif
