/*
 * What a source of readings is: it finds its entities and their counters once, and leaves readers that read
 * them.
 *
 *   collector.c ─▶ source->find(f) ─▶ ni_find_entity, ni_find_counter ...   the set grows
 *                                     ni_find_reader                        who reads those counters
 *               ─▶ reader->read(r, out)                                     at each sweep, maybe in a thread
 *
 * A source that is not there (no such driver, no libnvidia-ml) finds nothing and is no fault. What is there
 * and cannot be read is told by ni_set_unread() with its path, and costs nobody else anything.
 */
#ifndef NI_SOURCE_H
#define NI_SOURCE_H

#include <dirent.h>

#include "set.h"

/* Which counters are asked for. */
struct ni_wanted {
  unsigned sources; /* bit 1 << enum ni_metric_source; 0: all */
  bool all;         /* every counter; else the short list that metrics.def marks as SHORT */
  /* patterns, as ni_metric_fits() has them, that count as well; NULL-terminated, or NULL */
  const char *const *counters;
  const char *const *entities; /* only these (patterns); NULL: all */
  /* Cassini's NICs or one telemetry folder, as net_prof takes it; NULL: /sys/class/cxi */
  const char *cxi_dir;
  /* also what blocks for long or takes a lock of the driver (PCIe throughput of GPUs) */
  bool slow;
  /* PCIe throughput of those GPUs that do not count PCIe's bytes: 20 ms a call, two of them a GPU */
  bool pcie;
};

struct ni_counter_reader {
  uint32_t first, n; /* its counters in the set; ni_find_reader() sets them */
  /*
   * Reads all n, into out[0..n): value, both clocks, state. One thread at a time, maybe another one each
   * time.
   */
  void (*read)(struct ni_counter_reader *r, struct ni_reading *out);
  void (*close)(struct ni_counter_reader *r); /* frees r as well */
  /* set by read(): its counters are others than those that were found; the collector is to be opened again */
  bool changed;
};

struct ni_find {
  struct ni_set *set;
  const struct ni_wanted *wanted;
  struct ni_counter_reader **reader;
  size_t n_readers, cap_readers;
};

/* Does anybody ask for the source at all? */
bool ni_find_source(const struct ni_find *f, enum ni_metric_source source);
/* Begins an entity, unless nobody asks for it: NULL. */
struct ni_entity *ni_find_entity(struct ni_find *f, enum ni_metric_source source, const char *name);
/*
 * Does somebody ask for a counter of that name? For sources that must ask a device before they know whether
 * it has it.
 */
bool ni_find_is_asked(const struct ni_find *f, enum ni_metric_source source, const char *name);
/* Is it asked for by a pattern of wanted->counters, not just as one of all? */
bool ni_find_is_named(const struct ni_find *f, const char *name);
/* Adds a counter to it, unless nobody asks for it: false. */
bool ni_find_counter(struct ni_find *f, const char *name);
/* Takes the reader of the last entity's counters; r->close() is called at the end, or at once where there are
 * none. An entity without counters, of which no link is known either, is none: it goes. */
void ni_find_reader(struct ni_find *f, struct ni_counter_reader *r);

/*
 * Fills in pci, numa, warning and, as the begin of its kind, the PCI model of an entity from its device's
 * folder (".../device"), which need not be there.
 */
void ni_find_about(struct ni_find *f, struct ni_entity *e, const char *device);

/* Each finds what there is of it. */
void ni_cxi_find(struct ni_find *f);
void ni_ib_find(struct ni_find *f);
void ni_eth_find(struct ni_find *f);
void ni_host_find(struct ni_find *f);
void ni_gpu_find(struct ni_find *f);

/*
 * Where the machine's own trees lie: /sys, /run and /proc below NI_ROOT, which tests set; else below "/". And
 * small files and folders, whose path is whole: a user's, or what ni_root_path() made. Any thread; NI_ROOT is
 * read once.
 */
enum { NI_ROOT_PATH = 1024 };

/*
 * "/sys/class/net", ... below the root, into out. Returns out; a path that is too long becomes one that is
 * not there.
 */
const char *ni_root_path(char out[NI_ROOT_PATH], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/*
 * What is in a folder but names that begin with '.', sorted as people count ("cxi2" before "cxi10"). Returns
 * how many, to be freed with ni_root_names_free(); -errno.
 */
int ni_root_names(struct dirent ***names, const char *folder);
void ni_root_names_free(struct dirent **names, int n);
/* The first line of a small file, without its end, into out. file NULL: folder is the file. Its length, or
 * -errno; a file without a byte has 0. */
int ni_root_line(char *out, size_t size, const char *folder, const char *file);
/* Of a descriptor that stays open: from its beginning, all of it that fits. Its length, or -errno. */
int ni_root_read(int fd, char *out, size_t size);

#endif
