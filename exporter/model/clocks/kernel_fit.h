/*
 * One clock from two recorders of the same kernels: which of theirs is which of ours, and the line between
 * their starts.
 *
 * Both lists have gaps of their own, and a training step looks like the one before it. So the run of kernels
 * about a few of theirs is laid upon every place of ours where it could be; the place where most starts
 * agree, and most closely, is taken. From there on the clock is followed kernel by kernel, and the line goes
 * through medians. Pure.
 */
#ifndef NI_KERNEL_FIT_H
#define NI_KERNEL_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_kernel {
  int64_t start_ns; /* 0 to 4.1e18 */
  uint32_t func;    /* a number */
};

struct ni_kernel_fit {
  int64_t offset_ns, epoch_ns; /* ours = theirs + offset_ns + drift * (theirs - epoch_ns) */
  double drift;
  int64_t error_ns;       /* 9 of 10 matched starts are no further from the line */
  size_t matched, beside; /* beside: of theirs that lie where ours are */
  /* else: fewer than 3 matched, or below 32 and a third of those beside, or no closer than by chance */
  bool good;
};

/* Sorts both. 0 or -ENOMEM. */
int ni_kernel_fit(struct ni_kernel *ours, size_t n_ours, struct ni_kernel *theirs, size_t n_theirs,
                  struct ni_kernel_fit *out);

#endif
