/*
 * What the head does, a line each with the time in UTC, on standard error (in the background: head.log):
 * sessions and who asked, clients that come and go, who was refused, what the disk does. 50 lines a second at
 * most; what is left out is counted in a line of its own. The loop's thread.
 */
#ifndef NI_HEAD_LOG_H
#define NI_HEAD_LOG_H

/* Without a line feed; what could steer a terminal is shown as '?'. */
void ni_head_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
