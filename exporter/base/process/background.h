/*
 * A daemon goes to the background once it serves: whoever began it waits until then, and gets its exit code
 * where it cannot. Called before there are threads. Main thread.
 */
#ifndef NI_BACKGROUND_H
#define NI_BACKGROUND_H

/* Returns in the child alone: the descriptor for ni_background_done(). name: for messages. */
int ni_background(const char *name);
/*
 * It serves: whoever waits prints the line and goes. Standard output and error go to the file LOG in the
 * folder dir from here on. What the one before said is in LOG.1.
 */
void ni_background_done(int waiting, const char *line, int dir, const char *log);
/* Moves the log to LOG.1 once it has more than 4 MiB. Called now and then. */
void ni_background_bound(int dir, const char *log);

#endif
