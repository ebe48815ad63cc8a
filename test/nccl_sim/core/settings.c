/*
 * The table of settings: one line each for the name, the default, the range and the meaning. See scenario.h.
 */
#include "settings.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core.h"
#include "exporter/cli/page.h"

enum type { INT, U32, U64, DBL, BOOL, RELEASE, INTERFACE, END_HOW, POISON };

static const struct setting {
  const char *name;
  enum type type;
  size_t at;
  double def, min, max;
  const char *help;
} table[] = {
#define F(member) offsetof(struct ni_settings, member)
    {"nccl", RELEASE, F(release), 23007, 0, 0,
     "release to simulate: 2.27, 2.28.3, 2.30 ..., rccl-2.28, rccl-2.31"},
    {"interface", INTERFACE, F(interface), 0, 0, 7, "v1 to v7 instead of the newest both sides know"},
    {"seed", U64, F(seed), 1, 0, 1e18, "all random choices follow from it"},
    {"ranks", INT, F(ranks), 1, 1, 65536, "ranks of the job"},
    {"nodes", INT, F(nodes), 1, 1, 4096, "nodes the ranks are spread over, in blocks"},
    {"procs", BOOL, F(procs), 0, 0, 1, "1: one process per rank"},
    {"rate", DBL, F(rate), 0, 0, 1e7, "operations per second and rank; 0: as fast as possible"},
    {"time_scale", DBL, F(time_scale), 1, 0, 1000, "factor on device durations"},
    {"inflight", INT, F(inflight), 256, 1, 65536, "operations a communicator may have on the device"},
    {"launch_us", U32, F(launch_us), 3, 0, 1e6, "from the launch to the kernel's start"},
    {"stop_delay_us", U32, F(stop_delay_us), 0, 0, 1e6, "random delay before a bracket closes, at most"},
    {"poll_delay_us", U32, F(poll_delay_us), 0, 0, 1e6, "random delay of the progress thread, at most"},
    {"gap_us", U32, F(gap_us), 0, 0, 1e7, "host time between operations"},
    {"compute_us", U32, F(compute_us), 0, 0, 1e7,
     "device time that a rank computes before each operation, behind the one before"},
    {"progress_threads", INT, F(progress_threads), 0, 0, 256, "communicators share so many; 0: one each"},
    {"poison", POISON, F(poison), 0, 0, 1, "unfilled p2p.nChannels of the v4 translation: aa, plausible"},
    {"net_steps", INT, F(net_steps), 2, 1, 4096, "network transfers per proxy operation"},
    {"repeats", INT, F(repeats), 2, 0, 1000, "most repeated recv starts and send waits per transfer"},
    {"overrun", BOOL, F(overrun), 0, 0, 1, "1: stamps of a lagging channel come from work 64 later"},
    {"behind", INT, F(behind), 0, 0, 32,
     "NCCL counts so many works less than the device on every channel: stamps of earlier work"},
    {"gpu_offset_us", DBL, F(gpu_offset_us), NAN, -1e15, 1e15,
     "GPU clock minus Unix time; unset: by seed, +-3 ms"},
    {"gpu_drift_ppm", DBL, F(gpu_drift_ppm), NAN, -1000, 1000, "GPU clock drift; unset: by seed, +-20"},
    {"straggler", INT, F(straggler_rank), -1, -1, 65535, "global rank that comes late to every collective"},
    {"straggler_ms", DBL, F(straggler_ms), 0.2, 0, 60000, "how late"},
    {"slow_gpu", INT, F(slow_gpu), -1, -1, 65535, "global rank that computes longer than compute_us"},
    {"slow_gpu_percent", DBL, F(slow_gpu_percent), 25, 0, 10000, "by how much"},
    {"slow_rank", INT, F(slow_rank), -1, -1, 65535, "global rank with a slow link"},
    {"slow_factor", DBL, F(slow_factor), 2, 1, 1000, "how much longer its communicators' transfers take"},
    {"end", END_HOW, F(end), 0, 0, 0, "finalize, exit, quick_exit, _exit, sigkill"},
    {"allgatherv", BOOL, F(allgatherv), 1, 0, 1,
     "0: as NCCL_ALLGATHERV_ENABLE=0, Broadcast is seen on 2.29 and later"},
    {"vary_percent", INT, F(vary_percent), 20, 0, 60, "noise on device durations"},
    {"rearch", BOOL, F(rearch), 0, 0, 1,
     "1: as NCCL_ENQUEUE_REARCH_ENABLE=1 on 2.31: no API events, null parents, no tags"},
    {"one_pass", BOOL, F(one_pass), 0, 0, 1,
     "1: from 2.31 on KernelCh is looked at when its kernel is over: all of it in one pass"},
    {"destroy_open", BOOL, F(destroy_open), 0, 0, 1,
     "1: what destroy throws away is started first, with stamps of freed memory"},
    {"classic_phases", BOOL, F(classic_phases), 1, 0, 1,
     "0: classic collectives have no phases, as 2.32 may be"},
    {"collnet_phases", BOOL, F(collnet_phases), 1, 0, 1, "0: CollNet alone has none"},
    {"barrier_phases", BOOL, F(barrier_phases), 1, 0, 1,
     "0: waiting for peers is not in initial_sync of barrier kernels"},
    {"old_phases", BOOL, F(old_phases), 1, 0, 1,
     "0: no phases of earlier works where KernelPhase was turned on later"},
    {"mask_shifts", BOOL, F(mask_shifts), 1, 0, 1,
     "0: the device does not count works without KernelCh, so that nothing shifts"},
    {"shift_stamps", BOOL, F(shift_stamps), 0, 0, 1,
     "1: works without KernelCh leave stamps: shifted KernelCh come at once"},
    {"replay_tag", BOOL, F(replay_tag), 1, 0, 1, "0: replays do not carry their capture's tag"},
    {"counter0", BOOL, F(counter0), 1, 0, 1, "0: a symmetric plan behind a replay waits for its own counter"},
    {"empty_proto", BOOL, F(empty_proto), 1, 0, 1,
     "0: symmetric kernels say SIMPLE through interfaces before v7"},
    {"lasting_texts", BOOL, F(lasting_texts), 1, 0, 1,
     "0: a kernel's name is gone when the callback returns"},
#undef F
};

const char *const ni_end_names[NI_END_COUNT] = {"finalize", "exit", "quick_exit", "_exit", "sigkill"};

int ni_pick(const char *value, const char *const *names, int n) {
  for (int i = 0; i < n; i++)
    if (strcmp(value, names[i]) == 0)
      return i;
  return -1;
}

bool ni_number(const char *text, double *out) {
  char *end;
  errno = 0;
  double v = strtod(text, &end);
  if (end == text || errno)
    return false;
  switch (*end) {
    case 'k':
    case 'K':
      v *= 1024;
      end++;
      break;
    case 'm':
    case 'M':
      v *= 1048576;
      end++;
      break;
    case 'g':
    case 'G':
      v *= 1073741824;
      end++;
      break;
    default:
      break;
  }
  *out = v;
  return *end == 0;
}

static void store(struct ni_settings *s, const struct setting *t, double v) {
  char *at = (char *)s + t->at;
  switch (t->type) {
    case U32:
      *(uint32_t *)at = (uint32_t)v;
      break;
    case U64:
      *(uint64_t *)at = (uint64_t)v;
      break;
    case DBL:
      *(double *)at = v;
      break;
    case BOOL:
      *(bool *)at = v != 0;
      break;
    default:
      *(int *)at = (int)v;
      break;
  }
}

void ni_settings_default(struct ni_settings *s) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    store(s, &table[i], table[i].def);
}

bool ni_settings_set(struct ni_settings *s, const char *name, const char *value, char *why, size_t cap) {
  static const char *const poisons[] = {"aa", "plausible"};
  const struct setting *t = NULL;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].name, name) == 0)
      t = &table[i];
  if (!t)
    return false;
  double v = 0;
  *why = 0;
  if (t->type == RELEASE) {
    v = ni_core_release(value);
    if (v == 0)
      snprintf(why, cap,
               "nccl=%s: accepted are 2.23 to 2.32, with a patch level or without, rccl-2.28 and rccl-2.31",
               value);
  } else if (t->type == END_HOW) {
    v = ni_pick(value, ni_end_names, NI_END_COUNT);
    if (v < 0)
      snprintf(why, cap, "end=%s: accepted are finalize, exit, quick_exit, _exit, sigkill", value);
  } else if (t->type == POISON) {
    v = ni_pick(value, poisons, 2);
    if (v < 0)
      snprintf(why, cap, "poison=%s: accepted are aa and plausible", value);
  } else if (t->type == INTERFACE) {
    const char *digits = value[0] == 'v' ? value + 1 : value;
    if (strcmp(value, "auto") != 0 && (!ni_number(digits, &v) || v < 1 || v > 7))
      snprintf(why, cap, "interface=%s: accepted are auto, v1 to v7", value);
  } else if (!ni_number(value, &v) || !(v >= t->min && v <= t->max) || (t->type != DBL && v != floor(v))) {
    snprintf(why, cap, "%s=%s: accepted is a%s number from %g to %g", name, value,
             t->type == DBL ? "" : " whole", t->min, t->max);
  }
  if (!*why)
    store(s, t, v);
  return true;
}

const char *ni_set_split(const char *word, char name[NI_SET_NAME_BYTES]) {
  const char *eq = strchr(word, '=');
  if (!eq || eq == word || eq - word >= NI_SET_NAME_BYTES)
    ni_die(NI_SIM_USAGE, "--set %s: key=value expected", word);
  snprintf(name, NI_SET_NAME_BYTES, "%.*s", (int)(eq - word), word);
  return eq + 1;
}

void ni_settings_words(struct ni_help_page *p) {
  ni_help_head(p, "Settings", 20);
  for (const struct setting *t = table; t < table + sizeof table / sizeof *table; t++) {
    char number[32], meaning[256];
    snprintf(number, sizeof number, "%g", t->def);
    const char *def = t->type == RELEASE ? "2.30"
        : t->type == END_HOW             ? "finalize"
        : t->type == POISON              ? "aa"
        : t->type == INTERFACE           ? "auto"
        : isnan(t->def)                  ? NULL
                                         : number;
    snprintf(meaning, sizeof meaning, "%s%s%s%s", t->help, def ? " (default " : "", def ? def : "",
             def ? ")" : "");
    ni_help_pair(p, t->name, meaning);
  }
}
