/*
 * One table is all there is to a setting: reading, refusing, printing, the process line and docs/settings.md
 * walk it. Numbers are parsed here, not by strtol: strictly, without the locale, and without the symbols that
 * newer C libraries put in strtol's place (glibc_compat.h).
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event_names.h"
#include "no_effect.h"
#include "format/json_text.h"
#include "format/line.h"
#include "ni_box.h"

enum type { BOOL, INT, COUNT, BYTES, FORMAT, EVENTS, DIRECTORY, BOX, PATH, SAMPLE };

struct setting {
  const char *name, *fallback;
  enum type type;
  size_t at; /* offset in struct ni_config: of 8 bytes, or of char[NI_DIR_MAX_BYTES] */
  int64_t def, min, max;
  const char *help;
};

#define AT(member) offsetof(struct ni_config, member)
#define ANY_BYTES INT64_MAX / 2

static const char default_dir[] = "nccl-inspector-%j";

static const struct setting table[] = {
    {"NCCL_INSPECTOR_ENABLE", NULL, BOOL, AT(enable), 0, 0, 1,
     "Record. 0: no events are asked for, costs nothing."},
    {"NCCL_INSPECTOR_DUMP_THREAD_ENABLE", NULL, BOOL, AT(dump_thread), 1, 0, 1,
     "0: no thread; as interval -1, written by the finalizing or exiting thread."},
    {"NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", NULL, INT, AT(interval_us), 1000000, -1,
     INT64_C(3600000000),
     "Time between writes. 0: as soon as there is data. -1: at communicator teardown and process exit, and "
     "early when the arena fills."},
    {"NCCL_INSPECTOR_DUMP_DIR", NULL, DIRECTORY, AT(dump_dir), 0, 1, NI_DIR_MAX_BYTES - 1,
     "Where files go; created with parents. %h host, %p pid, %j job id, %r global rank, %% a percent sign."},
    {"NCCL_INSPECTOR_DUMP_VERBOSE", NULL, BOOL, AT(verbose), 0, 0, 1, "Event traces of every channel."},
    {"NCCL_INSPECTOR_DUMP_FORMAT", NULL, FORMAT, AT(format), NI_FORMAT_JSONL_GZ, 0, 0,
     "Suffix and compression of the files; the lines are the same."},
    {"NCCL_INSPECTOR_DUMP_CONTROL_LINES", NULL, BOOL, AT(control_lines), 1, 0, 1,
     "0: operation lines only; losses and clocks are then not in the log."},
    {"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", NULL, BYTES, AT(min_size_bytes), 0, 0, ANY_BYTES,
     "Smaller operations are left out and counted."},
    {"NCCL_INSPECTOR_ENABLE_P2P", NULL, BOOL, AT(enable_p2p), 1, 0, 1,
     "0: Send and Recv are left out and counted."},
    {"NCCL_INSPECTOR_EVENTS", "NCCL_PROFILE_EVENT_MASK", EVENTS, AT(events), NI_KINDS_STANDARD, 0,
     NI_KINDS_ALL,
     "Kinds of event (docs/events.md): a preset light, standard, deep or trace, names, all, -name; or NCCL's "
     "mask as a number."},
    {"NCCL_INSPECTOR_ENABLE_PROXY", NULL, BOOL, AT(enable_proxy), 0, 0, 1,
     "1: adds proxyop, proxystep and steps to the events."},
    {"NCCL_INSPECTOR_DUMP_PROXY_STEPS", NULL, BOOL, AT(dump_proxy_steps), 1, 0, 1,
     "0: no line for single proxy steps; their operation has their sums."},
    {"NCCL_INSPECTOR_PROXY_OP_POOL_SIZE", NULL, COUNT, AT(proxy_op_pool_slots), 0, 0, 1 << 20,
     "Proxy operations in flight per communicator; more are dropped and counted. 0: as many as the arena "
     "holds."},
    {"NCCL_INSPECTOR_PROXY_STEP_POOL_SIZE", NULL, COUNT, AT(proxy_step_pool_slots), 0, 0, 1 << 20,
     "Other events, single steps among them, that wait to be written, per communicator. 0: as many as the "
     "arena holds."},
    {"NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", NULL, BOOL, AT(require_kernel_timing), 0, 0, 1,
     "1: operations without a kernel time are left out and counted."},
    {"NCCL_INSPECTOR_COLL_POOL_SIZE", "NCCL_PROFILE_COLL_POOL_SIZE", COUNT, AT(coll_pool_slots), 256, 1,
     1 << 20, "Collectives by which a communicator's pool grows, or its size when growth is off."},
    {"NCCL_INSPECTOR_P2P_POOL_SIZE", "NCCL_PROFILE_P2P_POOL_SIZE", COUNT, AT(p2p_pool_slots), 256, 1, 1 << 20,
     "The same for Send and Recv."},
    {"NCCL_INSPECTOR_POOL_GROW", NULL, BOOL, AT(pool_grow), 1, 0, 1,
     "0: fixed pools, for sizing; what finds no slot is dropped and counted."},
    {"NCCL_INSPECTOR_POOL_MAX_BYTES", NULL, BYTES, AT(pool_max_bytes), 268435456, 1 << 20, INT64_C(8) << 30,
     "Address range of all pools of the process; memory is taken as it is needed."},
    {"NCCL_INSPECTOR_BLACKBOX", NULL, BOX, AT(blackbox_dir), 0, 0, NI_DIR_MAX_BYTES - 1,
     "Keep what is not yet written in a file in /dev/shm that outlives a kill (docs/blackbox.md). A folder: "
     "there; a tmpfs."},
    {"NCCL_INSPECTOR_STUCK_SECONDS", NULL, COUNT, AT(stuck_seconds), 60, 0, INT64_C(1000000000),
     "An operation in flight for longer is written once, with its state, while it hangs. 0: never."},
    {"NCCL_INSPECTOR_FILE_MAX_BYTES", NULL, BYTES, AT(file_max_bytes), 0, 0, ANY_BYTES,
     "Start a new file beyond. 0: no limit."},
    {"NCCL_INSPECTOR_DIR_MAX_BYTES", NULL, BYTES, AT(dir_max_bytes), 0, 0, ANY_BYTES,
     "Remove this process's oldest files beyond; what goes is counted. 0: no limit."},
    {"NCCL_INSPECTOR_KEEP_SECONDS", NULL, COUNT, AT(keep_seconds), 0, 0, INT64_C(1000000000),
     "Remove this process's files that were finished longer ago; what goes is counted. 0: keep."},
    {"NCCL_INSPECTOR_CONTROL_FILE", NULL, BOOL, AT(control_file), 1, 0, 1,
     "Look for control files in the dump directory, once a second (control.md). 0: do not."},
    {"NCCL_INSPECTOR_SAMPLE", NULL, SAMPLE, AT(sample), 1, 1, NI_SAMPLE_MAX,
     "Write one record in N, the same operations on all ranks; the others are in the roll-ups and counted as "
     "sampled."},
    {"NCCL_INSPECTOR_GPU_CLOCK_KHZ", NULL, COUNT, AT(gpu_clock_khz), 0, 0, 10000000,
     "Rate of the GPU's clock, for times of kernels. 0: by the library, NCCL 1000000 (ns), RCCL 100000 "
     "(docs/rccl.md)."},
    {"NCCL_INSPECTOR_ROLLUP_SECONDS", NULL, COUNT, AT(rollup_seconds), 60, 0, 86400,
     "Time between rollup lines: counts and times of all operations by function and size. 0: none."},
    {"NCCL_INSPECTOR_PROM_DUMP", NULL, BOOL, AT(prom_dump), 0, 0, 1,
     "1: also a .prom file for each GPU in the dump directory, every 30 s, for node_exporter; NVIDIA's names "
     "and labels."},
    {"NCCL_INSPECTOR_PROM_DUMP_STATS", NULL, BOOL, AT(prom_dump_stats), 0, 0, 1,
     "1: in these files also counters of operations, and of lost ones, by GPU."},
    {"NCCL_INSPECTOR_TAGS", NULL, PATH, AT(tags_file), 0, 0, NI_DIR_MAX_BYTES - 1,
     "A file with a name for each tag of the application, a line `NUMBER NAME` each (docs/events.md)."},
};
#define N_SETTINGS (sizeof table / sizeof *table)

static const char *const format_suffixes[NI_FORMAT_COUNT] = {".jsonl.gz", ".jsonl", ".log", ".log.gz"};

const char *ni_format_suffix(enum ni_format f) { return format_suffixes[f < NI_FORMAT_COUNT ? f : 0]; }

/* Without its dot a suffix is the setting's word. */
static const char *format_word(int64_t f) { return format_suffixes[f] + 1; }

/* ---- values -------------------------------------------------------------------------------------------- */

/* An optional '-', digits, for bytes an optional k, m or g; nothing else. False also when it does not fit. */
static bool parse_number(const char *s, bool suffix, int64_t *out) {
  bool negative = *s == '-';
  uint64_t digits;
  if (negative)
    s++;
  if (!ni_digits(&s, INT64_MAX, &digits))
    return false;
  int64_t v = (int64_t)digits;
  if (suffix && *s) {
    int shift = *s == 'k' || *s == 'K' ? 10 : *s == 'm' || *s == 'M' ? 20 : *s == 'g' || *s == 'G' ? 30 : 0;
    if (shift == 0 || __builtin_mul_overflow(v, INT64_C(1) << shift, &v))
      return false;
    s++;
  }
  *out = negative ? -v : v;
  return *s == 0;
}

static void set_number(struct ni_config *c, const struct setting *s, int64_t v) {
  memcpy((char *)c + s->at, &v, sizeof v);
}

static int64_t get_number(const struct ni_config *c, const struct setting *s) {
  int64_t v;
  memcpy(&v, (const char *)c + s->at, sizeof v);
  return v;
}

/* Is the value a text in struct ni_config? */
static bool is_text(const struct setting *s) {
  return s->type == DIRECTORY || s->type == BOX || s->type == PATH;
}

static const char *default_string(const struct setting *s) {
  if (s->type == PATH)
    return "";
  return s->type == BOX ? NI_BOX_DIR : default_dir;
}

static void set_string(struct ni_config *c, const struct setting *s, const char *value) {
  memcpy((char *)c + s->at, value, strlen(value) + 1); /* its length was looked at */
}

/* A number's text. False: it is not accepted. */
static bool parse(const struct setting *s, const char *text, int64_t *v) {
  uint32_t kinds;
  char why[64];
  switch (s->type) {
    case FORMAT:
      for (*v = 0; *v < NI_FORMAT_COUNT; ++*v)
        if (strcmp(text, format_word(*v)) == 0)
          return true;
      return false;
    case SAMPLE:
      return ni_sample_parse(text, (uint64_t *)v);
    case EVENTS:
      if (parse_number(text, false, v))
        break;
      if (!ni_kinds_parse(text, &kinds, why, sizeof why))
        return false;
      *v = kinds;
      return true;
    default:
      if (!parse_number(text, s->type == BYTES, v))
        return false;
  }
  return *v >= s->min && *v <= s->max;
}

static bool set_text(struct ni_config *c, const struct setting *s, const char *value) {
  int64_t v;
  if (!is_text(s)) {
    if (!parse(s, value, &v))
      return false;
    set_number(c, s, v);
    return true;
  }
  if (s->type == BOX) {
    if (strcmp(value, "0") == 0)
      value = "";
    else if (strcmp(value, "1") == 0)
      value = NI_BOX_DIR;
    else if (value[0] != '/')
      return false;
  }
  size_t n = strlen(value);
  if (n < (size_t)s->min || n > (size_t)s->max)
    return false;
  set_string(c, s, value);
  return true;
}

static void set_default(struct ni_config *c, const struct setting *s) {
  if (is_text(s))
    set_string(c, s, default_string(s));
  else
    set_number(c, s, s->def);
}

static bool is_default(const struct ni_config *c, const struct setting *s) {
  return is_text(s) ? strcmp((const char *)c + s->at, default_string(s)) == 0 : get_number(c, s) == s->def;
}

/* Text of a number of this setting, as a user would write it. */
static void number_text(const struct setting *s, int64_t v, char *out, size_t cap) {
  switch (s->type) {
    case FORMAT:
      snprintf(out, cap, "%s", format_word(v));
      break;
    case EVENTS:
      ni_kinds_text((uint32_t)v, out, cap);
      break;
    case SAMPLE:
      snprintf(out, cap, "1/%lld", (long long)v);
      break;
    default:
      snprintf(out, cap, "%lld", (long long)v);
  }
}

static void default_text(const struct setting *s, char *out, size_t cap) {
  if (is_text(s))
    snprintf(out, cap, "%s", s->type == BOX ? "1" : default_string(s));
  else
    number_text(s, s->def, out, cap);
}

static void format_words(char *out, size_t cap) {
  for (int f = 0; f < NI_FORMAT_COUNT; f++) {
    const char *before = f == 0 ? "" : f + 1 < NI_FORMAT_COUNT ? ", " : " or ";
    size_t n = f ? strlen(out) : 0;
    snprintf(out + n, cap - n, "%s%s", before, format_word(f));
  }
}

static void range_text(const struct setting *s, char *out, size_t cap) {
  switch (s->type) {
    case BOOL:
      snprintf(out, cap, "0 or 1");
      break;
    case FORMAT:
      format_words(out, cap);
      break;
    case EVENTS:
      snprintf(out, cap, "names of events with commas, or 0 to %lld", (long long)s->max);
      break;
    case BOX:
      snprintf(out, cap, "0, 1 or an absolute path of at most %lld bytes", (long long)s->max);
      break;
    case PATH:
    case DIRECTORY:
      snprintf(out, cap, "a path of at most %lld bytes", (long long)s->max);
      break;
    case BYTES:
      snprintf(out, cap, "%lld to %lld, suffix k, m or g", (long long)s->min, (long long)s->max);
      break;
    case SAMPLE:
      snprintf(out, cap, "1/N, N from 1 to %lld", (long long)s->max);
      break;
    default:
      snprintf(out, cap, "%lld to %lld", (long long)s->min, (long long)s->max);
      break;
  }
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* Values come from outside: shortened, without control characters. */
static void printable(char *out, size_t cap, const char *s) {
  size_t n = 0;
  for (; *s && n < cap - 1; s++)
    out[n++] = (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s;
  out[n] = 0;
  if (*s && cap > 4)
    memcpy(out + cap - 4, "...", 4);
}

static void refuse(const struct setting *s, const char *name, const char *value, ni_config_warn_fn warn,
                   void *arg) {
  if (!warn)
    return;
  char text[512], shown[64], range[96], def[32];
  printable(shown, sizeof shown, value);
  range_text(s, range, sizeof range);
  default_text(s, def, sizeof def);
  snprintf(text, sizeof text, "%s=\"%s\" is not accepted: %s expected; using the default %s.", name, shown,
           range, def);
  warn(arg, text);
}

static bool known_name(const char *name, size_t n) {
  for (size_t i = 0; i < N_SETTINGS; i++)
    if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0)
      return true;
  for (size_t i = 0; i < N_NO_EFFECT; i++)
    if (strlen(no_effect[i].name) == n && memcmp(no_effect[i].name, name, n) == 0)
      return true;
  return false;
}

static void report_without_effect(ni_config_warn_fn warn, void *arg) {
  for (size_t i = NI_OTHERS; warn && i < N_NO_EFFECT; i++) {
    const char *value = getenv(no_effect[i].name);
    char text[256];
    if (!value || !*value || strcmp(value, "0") == 0)
      continue;
    snprintf(text, sizeof text, "%s is %s.", no_effect[i].name, no_effect[i].why);
    warn(arg, text);
  }
}

/*
 * A misspelt setting would otherwise be a silent default. A few are named, so that nobody's log is flooded.
 */
static void report_unknown(ni_config_warn_fn warn, void *arg) {
  int left = 8;
  if (!warn || !environ)
    return;
  for (char **e = environ; *e && left > 0; e++) {
    if (strncmp(*e, "NCCL_INSPECTOR_", 15) != 0 || known_name(*e, strcspn(*e, "=")))
      continue;
    char name[96], text[256];
    size_t n = strcspn(*e, "=");
    snprintf(name, sizeof name, "%.*s", n < 90 ? (int)n : 90, *e);
    char shown[96];
    printable(shown, sizeof shown, name);
    snprintf(text, sizeof text,
             "%s is not a setting of this plugin (misspelt? docs/settings.md lists them); ignored.", shown);
    warn(arg, text);
    left--;
  }
}

int ni_config_read(struct ni_config *c, ni_config_warn_fn warn, void *arg) {
  int refused = 0;
  bool interval_set = false;
  memset(c, 0, sizeof *c);
  for (size_t i = 0; i < N_SETTINGS; i++) {
    const struct setting *s = &table[i];
    const char *name = s->name, *value = getenv(name);
    set_default(c, s);
    if ((!value || !*value) && s->fallback)
      value = getenv(name = s->fallback);
    if (!value || !*value)
      continue;
    if (!set_text(c, s, value)) {
      set_default(c, s);
      refuse(s, name, value, warn, arg);
      refused++;
    } else if (s->at == AT(interval_us)) {
      interval_set = c->interval_us != NI_INTERVAL_NEVER;
    }
  }
  if (!c->dump_thread) {
    if (interval_set && warn)
      warn(arg,
           "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS has no effect, because "
           "NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0; records are written at communicator teardown and process "
           "exit.");
    c->interval_us = NI_INTERVAL_NEVER;
  }
  if (c->enable_proxy)
    c->events |= NI_KINDS(NI_EVENT_PROXY_OP) | NI_KINDS(NI_EVENT_PROXY_STEP) | NI_KINDS(NI_EVENT_STEPS);
  if (!c->dump_proxy_steps)
    c->events &= ~NI_KINDS(NI_EVENT_STEPS);
  if (c->sample > 1 && warn && (!c->rollup_seconds || !c->control_lines))
    warn(arg,
         "NCCL_INSPECTOR_SAMPLE leaves operations out that are in no roll-up, because "
         "NCCL_INSPECTOR_ROLLUP_SECONDS or NCCL_INSPECTOR_DUMP_CONTROL_LINES is 0: their times are lost.");
  report_without_effect(warn, arg);
  report_unknown(warn, arg);
  return refused;
}

static const char *value_text(const struct ni_config *c, const struct setting *s, char *buf, size_t cap) {
  if (is_text(s)) {
    const char *text = (const char *)c + s->at;
    return s->type == BOX && !*text ? "0" : text;
  }
  number_text(s, get_number(c, s), buf, cap);
  return buf;
}

void ni_config_print(const struct ni_config *c, ni_config_warn_fn emit, void *arg) {
  for (size_t i = 0; i < N_SETTINGS; i++) {
    const struct setting *s = &table[i];
    if (is_default(c, s))
      continue;
    char number[NI_KINDS_TEXT_BYTES], shown[512], def[32], text[768];
    printable(shown, sizeof shown, value_text(c, s, number, sizeof number));
    default_text(s, def, sizeof def);
    snprintf(text, sizeof text, "%s=%s (default %s)", s->name, shown, def);
    emit(arg, text);
  }
}

size_t ni_config_settings_json(const struct ni_config *c, char *buf, size_t cap) {
  if (cap < NI_PAIRS_TEXT_BYTES)
    return 0;
  _Static_assert(NI_PAIRS_TEXT_BYTES > N_SETTINGS * 128 + NI_KINDS_TEXT_BYTES + NI_JSON_STRING_MAX_BYTES,
                 "every setting fits");
  char *p = buf;
  *p++ = '{';
  for (size_t i = 0; i < N_SETTINGS; i++) {
    if (is_default(c, &table[i]))
      continue;
    char number[NI_KINDS_TEXT_BYTES];
    if (p > buf + 1)
      *p++ = ',';
    p = ni_json_string(p, table[i].name);
    *p++ = ':';
    p = ni_json_string(p, value_text(c, &table[i], number, sizeof number));
  }
  *p++ = '}';
  *p = 0;
  return (size_t)(p - buf);
}

bool ni_config_doc(size_t i, struct ni_setting_doc *out) {
  *out = (struct ni_setting_doc){0};
  if (i >= N_SETTINGS + N_NO_EFFECT)
    return false;
  if (i >= N_SETTINGS) {
    out->name = no_effect[i - N_SETTINGS].name;
    out->accepted = no_effect[i - N_SETTINGS].why;
    return true;
  }
  out->name = table[i].name;
  out->fallback = table[i].fallback;
  out->help = table[i].help;
  default_text(&table[i], out->value, sizeof out->value);
  range_text(&table[i], out->range, sizeof out->range);
  return true;
}
