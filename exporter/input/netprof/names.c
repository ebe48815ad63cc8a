#include "names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/index.h"

/* One name a line. */
extern const char ni_netprof_names[];
__asm__(
    ".pushsection .rodata\n"
    ".global ni_netprof_names\nni_netprof_names:\n"
    ".incbin \"exporter/input/netprof/names.txt\"\n"
    ".byte 0\n"
    ".popsection\n");

static char *text;
static const char *name[NI_NETPROF_NAMES + 1]; /* by id; in the text */
static struct ni_index ids;                    /* by name */

static void split_names(void) {
  char *line = text = strdup(ni_netprof_names), *end;
  for (uint32_t id = 1; line && id <= NI_NETPROF_NAMES && (end = strchr(line, '\n')); id++, line = end + 1) {
    *end = 0;
    name[id] = line;
    if (ni_index_add(&ids, ni_hash_text(0, line), id) < 0)
      return;
  }
}

const char *ni_netprof_name(uint32_t id) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, split_names);
  return id <= NI_NETPROF_NAMES && name[id] ? name[id] : "";
}

uint32_t ni_netprof_id(const char *of) {
  uint32_t id;
  ni_netprof_name(1);
  for (size_t at = 0; (id = ni_index_next(&ids, ni_hash_text(0, of), &at)) != NI_INDEX_NONE;)
    if (strcmp(name[id], of) == 0)
      return id;
  return 0;
}

uint32_t ni_netprof_interface(const struct ni_entity *e) {
  char *end;
  if (e->source != NI_METRIC_CXI || strncmp(e->name, "cxi", 3) != 0)
    return 0;
  if (e->name[3] < '0' || e->name[3] > '9')
    return 0;
  unsigned long n = strtoul(e->name + 3, &end, 10);
  return *end || n >= 1000000 ? 0 : (uint32_t)n + 1;
}
