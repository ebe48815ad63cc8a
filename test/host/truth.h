/*
 * What the host knows about every operation it starts, so that a log can be compared value by value.
 *
 * The values of an operation follow from (hash, kind, record number) by the functions below; verify.py has
 * the same ones. The truth file says which operations there were, one text line each, appended by one
 * write(), so that it survives every way in which a process can end:
 *   I hash rank ranks init_ns name       init returned; name in hexadecimal, "-" when NULL was given
 *   R hash kind first n mode channels base  operations first .. first + n - 1 are about to start (kind c or p)
 *        mode: run (until they finish), open (no channel ever), half (one channel never stops), self (P2P with itself)
 *   D hash kind upto run                 operations below upto of the modes run and self are finished by now
 *   F hash                               finalize is about to be called
 * Kinds and modes do not mix in one R line. Lines of threads interleave whole. Any thread.
 */
#ifndef NI_TEST_TRUTH_H
#define NI_TEST_TRUTH_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int truth_fd = -1;

/* On a descriptor far away from 0 to 2, which some tests close. */
static inline void truth_open(const char *path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  truth_fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 200);
  if (truth_fd < 0) {
    fprintf(stderr, "cannot write the truth file %s\n", path);
    exit(64);
  }
  close(fd);
}

static inline __attribute__((format(printf, 1, 2))) void truth(const char *fmt, ...) {
  static char line_of[65536];
  static _Thread_local char small[512];
  /* only I lines are long; the script calls init from one thread then */
  char *text = fmt[0] == 'I' ? line_of : small;
  size_t cap = fmt[0] == 'I' ? sizeof line_of : sizeof small;
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(text, cap, fmt, ap);
  va_end(ap);
  if (n < 0 || (size_t)n >= cap || write(truth_fd, text, (size_t)n) != n)
    _exit(66);
}

/* ---- values of operation n of a communicator; verify.py computes the same ---- */
static const char *const truth_func[5] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"};
static const char *const truth_type[4] = {"ncclInt8", "ncclFloat16", "ncclFloat32", "ncclFloat64"};
static const char *const truth_algo[3] = {"RING", "TREE", "NVLS"};
static const char *const truth_proto[3] = {"LL", "LL128", "SIMPLE"};

static inline uint64_t truth_count(uint64_t hash, uint64_t n) { return 1 + (n * 37 + hash) % 100000; }
static inline uint64_t truth_exec_ns(uint64_t n, uint64_t base) { return base + (n * 31) % base; }
static inline int truth_channels(uint64_t n, int max) { return 1 + (int)(n % (uint64_t)max); }
/*
 * Never 0: there lies a P2P with the own rank, after which stamps of that channel are not believed
 * (ni_apart.h).
 */
static inline int truth_first_channel(uint64_t n) { return 1 + (int)(n % 3); }

#endif
