/*
 * nccl-inspector counters list: what NICs, ports, GPUs and the host count here, what of it can be read, and
 * which GPU is nearest to which NIC.
 *
 * All of it is opened and read once. Nothing is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/cli/command.h"
#include "exporter/collect/collector.h"

struct list_options {
  const char *cxi_dir;
  bool json;
};

struct here {
  const struct ni_set *set;
  struct ni_reading *reading;
  struct ni_nearest *nearest;
};

static const struct {
  const char *what, *advice;
} absent[NI_METRIC_SOURCES] = {
    [NI_METRIC_CXI] = {"no Cassini NIC in /sys/class/cxi", "Its driver is the module cxi_ss1."},
    [NI_METRIC_RH] = {"no retry handler of Cassini in /run/cxi",
                      "It is the service cxi_rh; a container must have /run/cxi mounted."},
    [NI_METRIC_IB] = {"no InfiniBand, RoCE or EFA device in /sys/class/infiniband",
                      "Its driver is mlx5_ib, bnxt_re, efa, ..."},
    [NI_METRIC_ETH] = {"no interface that is up in /sys/class/net",
                       "A container has those of its network namespace."},
    [NI_METRIC_ETHTOOL] = {"no interface whose driver has counters of its own",
                           "Virtual ones have none; `ethtool -S` asks the same."},
    [NI_METRIC_TCP] = {"no /proc/net/snmp", "Is /proc mounted?"},
    [NI_METRIC_GPU] = {"no GPU by NVML",
                       "libnvidia-ml.so.1 comes with NVIDIA's driver; a container must show the GPUs."},
    [NI_METRIC_HOST] = {"nothing in /proc", "Is /proc mounted?"},
};

/* Is this source not here, and may somebody miss it? What Cassini's driver says belongs to the NIC. */
static bool is_missing(const struct ni_set *s, unsigned source) {
  if (!absent[source].what)
    return false;
  for (size_t i = 0; i < s->n_entities; i++)
    if (s->entity[i].source == source && s->entity[i].n)
      return false;
  return true;
}

static const char *advice_for(const char *why) {
  if (strstr(why, strerror(EACCES)) || strstr(why, strerror(EPERM)))
    return "Run it as root, or in a container that may.";
  if (strstr(why, strerror(EMFILE)))
    return "Raise the limit of open files: ulimit -n.";
  return NULL;
}

/* Counts the counters of an entity that cannot be read; the names of the first few go into names. */
static size_t count_unreadable(const struct here *h, const struct ni_entity *e, char *names, size_t size) {
  size_t bad = 0, used = 0;
  *names = 0;
  for (uint32_t i = e->first; i < e->first + e->n; i++) {
    if (h->reading[i].state == NI_READ_OK || bad++ >= 3 || used >= size)
      continue;
    used += (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "", h->set->counter[i].name);
  }
  return bad;
}

static void print_counters(const struct here *h) {
  static const struct ni_column columns[] = {{.head = "name", .left = true},
                                             {.head = "source", .left = true},
                                             {.head = "counters"},
                                             {.head = "link", .left = true},
                                             {.head = "PCI", .left = true, .drop = 2},
                                             {.head = "NUMA", .drop = 1},
                                             {.head = "nearest GPU", .left = true},
                                             {.head = "", .left = true, .below = true}};
  const struct ni_set *s = h->set;
  struct ni_table t;
  char names[256];
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < s->n_entities; i++) {
    const struct ni_entity *e = &s->entity[i];
    const char *how = ni_near_name(h->nearest[i].how);
    ni_table_cell(&t, "%s", e->name);
    ni_table_cell(&t, "%s", ni_source_name(e->source));
    ni_table_cell(&t, "%s", NI_COUNT(e->n));
    ni_table_cell(&t, "%s", e->link ? e->link : "");
    ni_table_cell(&t, "%s", e->pci ? e->pci : "");
    if (e->numa < 0)
      ni_table_cell(&t, "%s", "");
    else
      ni_table_cell(&t, "%d", e->numa);
    ni_table_cell(&t, "%s%s%s%s", how ? h->nearest[i].gpu : "", how ? " (" : "", how ? how : "",
                  how ? ")" : "");
    size_t bad = count_unreadable(h, e, names, sizeof names);
    char below[512] = "";
    if (bad)
      snprintf(below, sizeof below, "%s%s cannot be read: %s%s", e->warning ? "" : "  ", NI_COUNT(bad), names,
               bad > 3 ? ", ..." : "");
    ni_table_cell(&t, "%s%s%s%s", e->warning ? "  warning: " : "", e->warning ? e->warning : "",
                  e->warning && bad ? "; " : "", below);
  }
  ni_table_print(&t, stdout);
  bool any = false;
  for (unsigned i = 0; i < NI_METRIC_SOURCES; i++) {
    if (!is_missing(s, i))
      continue;
    if (!any)
      ni_say(stdout, "\nnot here:\n");
    any = true;
    ni_say(stdout, "  %-8s %s. %s\n", ni_source_name(i), absent[i].what, absent[i].advice);
  }
  for (int skipped = 0; skipped < 2; skipped++) {
    any = false;
    for (size_t i = 0; i < s->n_unread; i++) {
      const struct ni_unread *u = &s->unread[i];
      const char *advice = advice_for(u->why);
      if (u->skipped != skipped)
        continue;
      if (!any)
        ni_say(stdout, skipped ? "\nleft out:\n" : "\nnot read:\n");
      any = true;
      ni_say(stdout, "  %s: %s%s%s\n", u->path, u->why, advice ? ". " : "", advice ? advice : "");
    }
  }
}

static void write_json(const struct here *h) {
  static const struct ni_json_field unread[] = {NI_JSON(ni_unread, path), NI_JSON(ni_unread, why),
                                                NI_JSON_AS(ni_unread, skipped, "left_out")};
  const struct ni_set *s = h->set;
  struct ni_json j;
  ni_json_open(&j, stdout, "nccl-inspector-counters-list-1");
  ni_json_array(&j, "entities");
  for (size_t i = 0; i < s->n_entities; i++) {
    const struct ni_entity *e = &s->entity[i];
    ni_json_object(&j, NULL);
    ni_json_text(&j, "name", e->name);
    ni_json_text(&j, "source", ni_source_name(e->source));
    ni_json_u64(&j, "counters", e->n);
    NI_JSON_ARRAY (&j, "unreadable")
      for (uint32_t k = e->first; k < e->first + e->n; k++)
        if (h->reading[k].state != NI_READ_OK)
          ni_json_text(&j, NULL, s->counter[k].name);
    ni_json_text(&j, "link", e->link);
    ni_json_f64(&j, "link_bytes_per_s", e->link_bytes_s);
    ni_json_text(&j, "kind", e->kind);
    ni_json_text(&j, "link_state", ni_link_state_name(e->state));
    ni_json_text(&j, "pci", e->pci);
    ni_json_i64(&j, "numa_node", e->numa);
    ni_json_text(&j, "nearest_gpu", h->nearest[i].how ? h->nearest[i].gpu : NULL);
    ni_json_text(&j, "path_to_gpu", ni_near_name(h->nearest[i].how));
    ni_json_text(&j, "about", e->about);
    ni_json_text(&j, "warning", e->warning);
    ni_json_end_object(&j);
  }
  ni_json_end_array(&j);
  ni_json_array(&j, "not_here");
  for (unsigned i = 0; i < NI_METRIC_SOURCES; i++) {
    if (!is_missing(s, i))
      continue;
    ni_json_object(&j, NULL);
    ni_json_text(&j, "source", ni_source_name(i));
    ni_json_text(&j, "why", absent[i].what);
    ni_json_text(&j, "advice", absent[i].advice);
    ni_json_end_object(&j);
  }
  ni_json_end_array(&j);
  NI_JSON_OBJECTS(&j, "unread", unread, s->unread, s->n_unread, NULL);
  ni_json_close(&j);
}

static int list_counters(const struct list_options *l, const char *name) {
  const struct ni_wanted wanted = {.all = true, .cxi_dir = l->cxi_dir};
  struct ni_collector *c;
  ni_collector_raise_limit();
  int e = ni_collector_open(&c, &wanted);
  struct here h = {.set = e == 0 ? ni_collector_set(c) : NULL};
  size_t bad = 0;
  if (e == 0) {
    h.reading = calloc(h.set->n_counters + 1, sizeof *h.reading);
    h.nearest = calloc(h.set->n_entities + 1, sizeof *h.nearest);
    e = h.reading && h.nearest ? ni_nearest_find(h.set, h.nearest) : -ENOMEM;
  }
  if (e == 0) {
    bad = ni_collector_read(c, h.reading, 1) + ni_set_n_unread(h.set);
    (l->json ? write_json : print_counters)(&h);
  } else {
    ni_say(stderr, "%s: %s\n", name, strerror(-e));
  }
  free(h.reading);
  free(h.nearest);
  ni_collector_close(c);
  return e < 0 ? NI_EXIT_COULD_NOT_RUN : bad ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
}

const struct ni_command ni_counters_list_command = {
    .name = "counters list",
    .need = NI_NEED_COUNTERS,
    .purpose = "which NICs and GPUs are here, and what of them can be read",
    .about =
        "Lists NICs, ports, GPUs and the host: how many counters each has, its link, which GPU is nearest "
        "to it; and what cannot be read, and why.",
    .opt =
        (const struct ni_opt[]){
            {"cxi-dir", 0, NI_OPT_TEXT, "DIR",
             "Cassini NICs in this folder (default /sys/class/cxi), or one .../cxi0/device/telemetry",
             NI_INTO(struct list_options, cxi_dir), .min = 1, .want = "a folder"},
            NI_ROW_JSON(struct list_options, "counters-list"),
            {0}},
    .more =
        "PIX, PXB, PHB and SYS are NCCL's: one bridge of PCI between the two, several, the CPU, several "
        "CPUs.\n"
        "With NI_ROOT=DIR /sys, /run and /proc are read below DIR, as in a container that has the host's "
        "there.",
    .exits = {{"0", "done"}, {"1", "could not run"}, {"2", "something could not be read"}},
    .run = ni_counters_list_run,
    .examples = {{"", "all that this machine counts"}, {"--json", "the same for a program"}}};

int ni_counters_list_run(int argc, char **argv) {
  struct list_options l = {0};
  int done, code = ni_words_parse(&ni_counters_list_command, argc, argv, &l, &done);
  return done ? code : list_counters(&l, argv[0]);
}
