/*
 * The settings: one table (config.c) of every environment variable, and the struct they are parsed into.
 *
 * ni_config_read is called once, by the first init of the process (and by a forked child's own first init);
 * after that the struct is constant and any thread may read it. It owns its text (no allocation, nothing to
 * free). getenv is called nowhere else: environ may be changed by another thread of the host at any time, so
 * it is read as little and as early as possible. No static variables: a caller that wipes the struct has
 * wiped everything.
 *
 * Failure. A bad value is reported through `warn` with the variable, the value, the accepted range and the
 * default that is used instead; reading never fails. An empty value counts as not set. Booleans are 0 or 1.
 * Byte sizes take a suffix k, m or g (binary, either case). Unknown NCCL_INSPECTOR_* variables are reported,
 * because they are mostly misspelt ones.
 *
 * Not promised: that a directory can be created or written; out_file says so when it tries.
 */
#ifndef NI_CONFIG_H
#define NI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detail_text.h"

/* dump directory before and after the tokens are put in, terminator included */
#define NI_DIR_MAX_BYTES 1024

#define NI_INTERVAL_NEVER (-1) /* write at communicator teardown and process exit only */

enum ni_format { NI_FORMAT_JSONL_GZ = 0, NI_FORMAT_JSONL, NI_FORMAT_LOG, NI_FORMAT_LOG_GZ, NI_FORMAT_COUNT };

/*
 * Numbers are 8 bytes each, so that the table reads and writes all of them alike; what is on or off is 0 or
 * 1.
 */
struct ni_config {
  uint64_t enable;
  uint64_t dump_thread; /* 0: interval_us is NI_INTERVAL_NEVER and no thread may be started */
  uint64_t verbose, control_lines, enable_p2p, require_kernel_timing;
  uint64_t pool_grow;
  uint64_t enable_proxy, dump_proxy_steps;
  /* kinds to record (format/events.h) at the start, with what the proxy settings add or take */
  uint64_t events;
  uint64_t format;     /* enum ni_format */
  int64_t interval_us; /* > 0 period; 0 as soon as there is data; NI_INTERVAL_NEVER */
  uint64_t min_size_bytes;
  uint64_t coll_pool_slots, p2p_pool_slots;            /* growth step, or the size when growth is off */
  uint64_t proxy_op_pool_slots, proxy_step_pool_slots; /* 0: no limit but the arena */
  uint64_t pool_max_bytes;
  uint64_t file_max_bytes, dir_max_bytes, keep_seconds; /* 0: off */
  uint64_t stuck_seconds;                               /* 0: off */
  char blackbox_dir[NI_DIR_MAX_BYTES];                  /* "": no black box */
  uint64_t control_file;                                /* read by the dump thread, control.md */
  uint64_t sample;                                      /* one record in so many is written; 1: all */
  /* of the stamps; 0: what the library's are known for (format/library.h) */
  uint64_t gpu_clock_khz;
  uint64_t rollup_seconds;             /* 0: no roll-ups */
  uint64_t prom_dump, prom_dump_stats; /* write/prom.h */
  char dump_dir[NI_DIR_MAX_BYTES];     /* as set, tokens not yet put in */
  char tags_file[NI_DIR_MAX_BYTES];    /* "": none */
};

/* Takes one message, a complete sentence without newline, valid during the call only. Control characters of
 * the environment are replaced by '?' in it. */
typedef void (*ni_config_warn_fn)(void *arg, const char *text);

/*
 * Reads the settings. warn may be NULL. Returns the number of values that were refused. May be called again.
 */
int ni_config_read(struct ni_config *c, ni_config_warn_fn warn, void *arg);

/* Tells, one message each, every setting that differs from its default. */
void ni_config_print(const struct ni_config *c, ni_config_warn_fn emit, void *arg);

/* The same as a JSON object {"NCCL_INSPECTOR_X":"value",...}; {} when there is none. Returns the length,
 * always less than NI_PAIRS_TEXT_BYTES (format/line.h); 0 when cap is too small. Terminated. */
size_t ni_config_settings_json(const struct ni_config *c, char *buf, size_t cap);

/* ".jsonl.gz" and so on. */
const char *ni_format_suffix(enum ni_format f);
static inline bool ni_format_compressed(enum ni_format f) {
  return f == NI_FORMAT_JSONL_GZ || f == NI_FORMAT_LOG_GZ;
}

/* The table for documentation and tests: row i as the texts of docs/settings.md, false behind the last. */
struct ni_setting_doc {
  const char *name, *fallback /* NULL: none */,
      *accepted /* why it has no effect, and nothing else is stated; NULL: it has */, *help;
  char value[32], range[96]; /* default and accepted range */
};
bool ni_config_doc(size_t i, struct ni_setting_doc *out);

#endif
