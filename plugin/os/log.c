#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FLAGS (NI_SUB_INIT | NI_SUB_PROFILE) /* whoever asked for either subsystem sees it */

void ni_log_set(struct ni_log *l, ni_logger_fn fn) {
  atomic_store_explicit(&l->fn, fn, memory_order_release);
}

/* Control characters of names and paths would break the lines of NCCL's log, or a terminal. UTF-8 passes. */
static void make_printable(char *s) {
  for (; *s; s++)
    if ((unsigned char)*s < 0x20 || *s == 0x7f)
      *s = '?';
}

static void say(struct ni_log *l, int warn, const char *where, int line, uint64_t left_out, const char *fmt,
                va_list ap) __attribute__((format(printf, 6, 0)));
static void say(struct ni_log *l, int warn, const char *where, int line, uint64_t left_out, const char *fmt,
                va_list ap) {
  /* Acquire pairs with the release in ni_log_set. */
  ni_logger_fn fn = atomic_load_explicit(&l->fn, memory_order_acquire);
  if (!fn)
    return;
  int saved = errno;
  char text[NI_LOG_TEXT_BYTES] = "NCCL Inspector: ";
  size_t n = strlen(text);
  int len = vsnprintf(text + n, sizeof text - n, fmt, ap);
  if (len < 0)
    text[n] = 0;
  n = strlen(text);
  if (left_out && n < sizeof text - 1)
    snprintf(text + n, sizeof text - n, " (%llu more like this left out)", (unsigned long long)left_out);
  make_printable(text);
  fn(warn ? NI_LOG_WARN : NI_LOG_INFO, FLAGS, where, line, "%s", text);
  errno = saved;
}

void ni_log_at(struct ni_log *l, int warn, const char *where, int line, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  say(l, warn, where, line, 0, fmt, ap);
  va_end(ap);
}

void ni_log_once_at(struct ni_log *l, enum ni_log_cause cause, int warn, const char *where, int line,
                    const char *fmt, ...) {
  /*
   * Without a logger the chance is kept for when there is one. Relaxed: the bit guards nothing but this
   * message.
   */
  if (!atomic_load_explicit(&l->fn, memory_order_acquire))
    return;
  if (atomic_fetch_or_explicit(&l->once, 1u << cause, memory_order_relaxed) & (1u << cause))
    return;
  va_list ap;
  va_start(ap, fmt);
  say(l, warn, where, line, 0, fmt, ap);
  va_end(ap);
}

void ni_log_limited_at(struct ni_log *l, enum ni_log_cause cause, uint64_t now_ns, int warn,
                       const char *where, int line, const char *fmt, ...) {
  /*
   * Relaxed throughout: whoever wins the exchange speaks, and a count that moves between two lines is no
   * loss.
   */
  uint64_t last = atomic_load_explicit(&l->last_ns[cause], memory_order_relaxed);
  if (now_ns == 0)
    now_ns = 1; /* 0 means never */
  bool due = last == 0 || (now_ns > last && now_ns - last >= NI_LOG_PAUSE_NS);
  if (!due || !atomic_load_explicit(&l->fn, memory_order_acquire) ||
      !atomic_compare_exchange_strong_explicit(&l->last_ns[cause], &last, now_ns, memory_order_relaxed,
                                               memory_order_relaxed)) {
    atomic_fetch_add_explicit(&l->suppressed[cause], 1, memory_order_relaxed);
    return;
  }
  uint64_t left_out = atomic_exchange_explicit(&l->suppressed[cause], 0, memory_order_relaxed);
  va_list ap;
  va_start(ap, fmt);
  say(l, warn, where, line, left_out, fmt, ap);
  va_end(ap);
}
