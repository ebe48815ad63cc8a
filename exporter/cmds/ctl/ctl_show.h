/*
 * What the processes of a job made of the control files, and who else changed NCCL's event mask: the control
 * lines of the logs in dir and below, on stdout. Main thread. 0, -ENOMEM; -ENOENT: no log lies there, which
 * is said on stderr.
 */
#ifndef NI_CTL_SHOW_H
#define NI_CTL_SHOW_H

int ni_ctl_show(const char *who, const char *dir);

#endif
