/*
 * Messages through NCCL's own logger: rate-limited, never from callbacks or exit handlers.
 *
 * Threads: init (several at once), finalize and the dump thread. All members are atomics, so calls may
 * overlap. The logger is NCCL's function: it exists while libnccl is mapped, so the owner sets it to NULL
 * before the last finalize returns (ni_log_set), and no thread of ours may be inside a call then. NULL
 * logger: every call is a no-op apart from the counting. Messages are rendered here (NI_LOG_TEXT_BYTES,
 * longer ones are cut) and passed as "%s"; control characters from hostile names become '?'. Nothing is
 * allocated; ni_log_* never fails and keeps errno.
 */
#ifndef NI_LOG_H
#define NI_LOG_H

#include <stdatomic.h>
#include <stdint.h>

#include "nccl/profiler_abi.h"

#define NI_LOG_TEXT_BYTES 1024
/* ni_log_*_limited: one message per cause a minute */
#define NI_LOG_PAUSE_NS UINT64_C(60000000000)

/* What a repeated message is about. */
enum ni_log_cause {
  NI_LOG_CAUSE_WRITE = 0, /* a write or open failed */
  NI_LOG_CAUSE_POOL,      /* operations dropped: pool or arena full */
  NI_LOG_CAUSE_ROTATE,    /* no new file to be had: the old one grows */
  NI_LOG_CAUSE_STUCK,     /* an operation in flight for long */
  NI_LOG_CAUSE_EARLY,     /* interval -1 had to write early */
  NI_LOG_CAUSE_FILES,     /* where the log goes: said once */
  NI_LOG_CAUSE_CONTROL,   /* control files, event mask */
  NI_LOG_CAUSE_COUNT
};

struct ni_log {
  _Atomic(ni_logger_fn) fn;
  _Atomic uint32_t once; /* bit per cause: ni_log_*_once was here */
  /* ni_log_*_limited: time of the last message, 0 = never */
  _Atomic uint64_t last_ns[NI_LOG_CAUSE_COUNT];
  _Atomic uint64_t suppressed[NI_LOG_CAUSE_COUNT]; /* since then */
};

/*
 * Release pairs with the acquire in say() of log.c: whoever sees the function sees it whole. NULL switches
 * off.
 */
void ni_log_set(struct ni_log *l, ni_logger_fn fn);

/*
 * warn != 0: level WARN (shown by default); else INFO, subsystems INIT | PROFILE. Prefix "NCCL Inspector: ".
 */
void ni_log_at(struct ni_log *l, int warn, const char *where, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Only the first call per cause since the struct was zeroed says anything. */
void ni_log_once_at(struct ni_log *l, enum ni_log_cause cause, int warn, const char *where, int line,
                    const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/*
 * At most one message per cause in NI_LOG_PAUSE_NS; the next one tells how many were left out. now_ns:
 * monotonic.
 */
void ni_log_limited_at(struct ni_log *l, enum ni_log_cause cause, uint64_t now_ns, int warn,
                       const char *where, int line, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

#define ni_log_info(l, ...) ni_log_at((l), 0, __func__, __LINE__, __VA_ARGS__)
#define ni_log_warn(l, ...) ni_log_at((l), 1, __FILE__, __LINE__, __VA_ARGS__)
#define ni_log_info_once(l, cause, ...) ni_log_once_at((l), (cause), 0, __func__, __LINE__, __VA_ARGS__)
#define ni_log_warn_once(l, cause, ...) ni_log_once_at((l), (cause), 1, __FILE__, __LINE__, __VA_ARGS__)
#define ni_log_info_limited(l, cause, now_ns, ...) \
  ni_log_limited_at((l), (cause), (now_ns), 0, __func__, __LINE__, __VA_ARGS__)
#define ni_log_warn_limited(l, cause, now_ns, ...) \
  ni_log_limited_at((l), (cause), (now_ns), 1, __FILE__, __LINE__, __VA_ARGS__)

#endif
