#include "names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One name a line. */
extern const char ni_netprof_names[];
__asm__(".pushsection .rodata\n"
        ".global ni_netprof_names\nni_netprof_names:\n"
        ".incbin \"exporter/input/netprof/names.txt\"\n"
        ".byte 0\n"
        ".popsection\n");

static char *text;
static const char *name[NI_NETPROF_NAMES + 1]; /* by id */
static uint16_t sorted[NI_NETPROF_NAMES];      /* ids, by name */

static int by_name(const void *a, const void *b) { return strcmp(name[*(const uint16_t *)a], name[*(const uint16_t *)b]); }

static void split(void) {
  size_t n = 0;
  text = strdup(ni_netprof_names);
  for (char *line = text, *end; line && n < NI_NETPROF_NAMES && (end = strchr(line, '\n')); line = end + 1) {
    *end = 0;
    sorted[n] = (uint16_t)(n + 1);
    name[++n] = line;
  }
  while (n < NI_NETPROF_NAMES) sorted[n] = (uint16_t)(n + 1), name[++n] = ""; /* without memory */
  qsort(sorted, NI_NETPROF_NAMES, sizeof *sorted, by_name);
}

const char *ni_netprof_name(uint32_t id) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, split);
  return id && id <= NI_NETPROF_NAMES ? name[id] : "";
}

static int is_name(const void *key, const void *id) { return strcmp(key, name[*(const uint16_t *)id]); }

uint32_t ni_netprof_id(const char *of) {
  if (!*ni_netprof_name(1)) return 0;
  const uint16_t *found = bsearch(of, sorted, NI_NETPROF_NAMES, sizeof *sorted, is_name);
  return found ? *found : 0;
}

uint32_t ni_netprof_interface(const struct ni_entity *e) {
  char *end;
  if (e->source != NI_METRIC_CXI || strncmp(e->name, "cxi", 3) != 0 || e->name[3] < '0' || e->name[3] > '9') return 0;
  unsigned long n = strtoul(e->name + 3, &end, 10);
  return *end || n >= 1000000 ? 0 : (uint32_t)n + 1;
}
