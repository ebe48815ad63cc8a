/*
 * One gnuplot process: started without a shell, fed with figures, watched.
 *
 * States: started -> (fed)* -> ended. gnuplot goes on after an error in a command, so one figure that it cannot draw
 * costs that figure only. Each figure is followed by a mark that gnuplot writes to its stderr: it tells which figure a
 * complaint belongs to, and how far it came when it dies.
 * Threads: one per struct. Ownership: ni_gnuplot_start() takes descriptors and a child, ni_gnuplot_end() gives both
 * back, also after an error. Failure: 0 or -errno, see each function; SIGPIPE is never raised.
 * Not promised: that gnuplot drew what was meant; it says nothing of fonts it replaced.
 */
#ifndef NI_GNUPLOT_PROCESS_H
#define NI_GNUPLOT_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

enum { NI_GNUPLOT_LIMIT_S = 120 }; /* a gnuplot that takes nothing for so long, or does not end, is killed */

struct ni_gnuplot {
  pid_t pid;
  int in;         /* our end of its stdin, a socket */
  int complaints; /* its stderr, a memory file */
};

/* Starts program (found by PATH) in directory. 0; -ENOENT: no such program; -errno. Nothing to end after an error. */
int ni_gnuplot_start(struct ni_gnuplot *g, const char *program, const char *directory);

/* Feeds one figure. 0; -EPIPE: gnuplot ended, by itself or because it took nothing for NI_GNUPLOT_LIMIT_S. */
int ni_gnuplot_send(struct ni_gnuplot *g, const char *text, size_t n);

/*
 * Lets it finish and frees everything. fault() is called for each figure (0, 1, ... as sent) that gnuplot complained
 * about, with its first message. *finished: figures it came past. 0, also with faults; -EIO: it died, and the last
 * words are in `last` (never NULL, cut to size); -ETIMEDOUT: it was killed.
 */
int ni_gnuplot_end(struct ni_gnuplot *g, size_t *finished, void (*fault)(void *, size_t figure, const char *message),
                   void *context, char *last, size_t size);

#endif
