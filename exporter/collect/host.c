/*
 * The host, and TCP of this network namespace: numbers in the kernel's texts below /proc, and the state of the clock.
 *
 * Each is found by its line and its place in it. What this kernel has not (PSI, a counter of a later one) is no counter.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "root.h"
#include "source.h"

enum { FILES = 8, TEXT = 1 << 18, SUM = 0 };

/* What is wanted of a line: number `at` of it, from 1 on; SUM: of all. after: only what stands behind this word. */
struct field {
  const char *file, *line, *counter, *after;
  unsigned at;
};

static const struct field of_host[] = {
    {"stat", "cpu ", "cpu_user", NULL, 1},
    {"stat", "cpu ", "cpu_nice", NULL, 2},
    {"stat", "cpu ", "cpu_system", NULL, 3},
    {"stat", "cpu ", "cpu_idle", NULL, 4},
    {"stat", "cpu ", "cpu_iowait", NULL, 5},
    {"stat", "cpu ", "cpu_irq", NULL, 6},
    {"stat", "cpu ", "cpu_softirq", NULL, 7},
    {"stat", "cpu ", "cpu_steal", NULL, 8},
    {"stat", "ctxt ", "context_switches", NULL, 1},
    {"stat", "procs_running ", "run_queue", NULL, 1},
    {"stat", "procs_blocked ", "blocked_on_io", NULL, 1},
    {"softirqs", "NET_RX:", "softirq_net_rx", NULL, SUM},
    {"softirqs", "NET_TX:", "softirq_net_tx", NULL, SUM},
    {"meminfo", "MemAvailable:", "memory_available", NULL, 1},
    {"pressure/cpu", "some ", "pressure_cpu_some", "total=", 1},
    {"pressure/memory", "some ", "pressure_memory_some", "total=", 1},
    {"pressure/memory", "full ", "pressure_memory_full", "total=", 1},
    {"pressure/io", "some ", "pressure_io_some", "total=", 1},
    {"pressure/io", "full ", "pressure_io_full", "total=", 1},
};

struct texts {
  struct ni_reader r;
  int fd[FILES];
  const char *file[FILES];
  unsigned n_files;
  struct {
    struct field field;
    unsigned file;
  } *want; /* one a counter, then the clock's two where they are asked for */
  size_t n, cap;
  bool clock[2];
  char *text;
};

static const char *line_of(const char *text, const char *line) {
  for (; text && *text; text = strchr(text, '\n'), text += text != NULL) {
    text += strspn(text, " ");
    if (strncmp(text, line, strlen(line)) == 0) return text + strlen(line);
  }
  return NULL;
}

/* false: it is not there. */
static bool value_of(const char *text, const struct field *f, uint64_t *out) {
  const char *s = line_of(text, f->line);
  if (s && f->at != SUM && !f->after && line_of(s, f->line)) s = line_of(s, f->line); /* a line of heads, then that of values */
  if (s && f->after) {
    const char *behind = strstr(s, f->after);
    s = behind && behind < s + strcspn(s, "\n") ? behind + strlen(f->after) : NULL;
  }
  bool found = false;
  *out = 0;
  for (unsigned i = 1; s && (f->at == SUM || i <= f->at); i++) {
    s += strspn(s, " ");
    char *end = (char *)s;
    unsigned long long v = *s == '\n' ? 0 : strtoull(s, &end, 10); /* which would go on in the next line */
    if (end == s) break;
    if (f->at == SUM || i == f->at) {
      *out += v;
      found = true;
    }
    s = end;
  }
  return found;
}

static void sweep(struct ni_reader *r, struct ni_reading *out) {
  struct texts *x = (struct texts *)r;
  struct timex t = {0};
  int64_t mono = 0, real = 0;
  int e = -1;
  unsigned last = FILES;
  for (size_t i = 0; i < r->n; i++) {
    if (i >= x->n || x->want[i].file != last) {
      if (i < x->n) e = ni_root_read(x->fd[last = x->want[i].file], x->text, TEXT);
      mono = (int64_t)ni_now_ns(CLOCK_MONOTONIC), real = (int64_t)ni_now_ns(CLOCK_REALTIME);
    }
    out[i] = (struct ni_reading){.real_ns = real, .mono_ns = mono, .state = NI_READ_UNREADABLE};
    if (i < x->n) {
      if (e > 0 && value_of(x->text, &x->want[i].field, &out[i].value)) out[i].state = NI_READ_OK;
    } else {
      int state = adjtimex(&t);
      bool error = i - x->n || !x->clock[0];
      out[i].value = error ? (uint64_t)t.maxerror : state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);
      if (state >= 0) out[i].state = NI_READ_OK;
    }
  }
}

static void end(struct ni_reader *r) {
  struct texts *x = (struct texts *)r;
  for (unsigned i = 0; i < x->n_files; i++)
    if (x->fd[i] >= 0) close(x->fd[i]);
  free(x->want);
  free(x->text);
  free(x);
}

static struct texts *begin(struct ni_find *f) {
  struct texts *x = calloc(1, sizeof *x);
  if (x) x->r.read = sweep, x->r.close = end;
  if (!x || !(x->text = calloc(1, TEXT))) {
    free(x);
    f->set->failed = true;
    return NULL;
  }
  return x;
}

/* The number of a file in fd[], and its text in x->text; that of a file that cannot be read is "", and told once. */
static unsigned open_file(struct ni_find *f, struct texts *x, const char *file) {
  if (x->n_files && strcmp(x->file[x->n_files - 1], file) == 0) return x->n_files - 1;
  char path[NI_ROOT_PATH];
  int fd = open(ni_root_path(path, "/proc/%s", file), O_RDONLY | O_CLOEXEC), e = fd < 0 ? -errno : ni_root_read(fd, x->text, TEXT);
  if (e < 0) {
    *x->text = 0;
    /* PSI may be left out of a kernel, or switched off when it starts. */
    (e == -ENOENT || e == -EOPNOTSUPP ? ni_set_skipped : ni_set_unread)(f->set, path, strerror(-e));
  }
  x->file[x->n_files] = file;
  x->fd[x->n_files] = fd;
  return x->n_files++;
}

static void add(struct ni_find *f, struct texts *x, const struct field *want) {
  uint64_t v;
  unsigned file = open_file(f, x, want->file);
  if (!value_of(x->text, want, &v)) return;
  if (!ni_array_room(x->want, x->n, x->cap)) f->set->failed = true;
  else if (ni_find_counter(f, want->counter)) {
    x->want[x->n].field = *want;
    x->want[x->n++].file = file;
  }
}

/* All that a line of heads names: "Tcp: RtoAlgorithm RtoMin ...". */
static void add_named(struct ni_find *f, struct texts *x, const char *file, const char *line) {
  open_file(f, x, file);
  const char *heads = line_of(x->text, line);
  for (unsigned at = 1; heads; at++) {
    heads += strspn(heads, " ");
    size_t n = strcspn(heads, " \n");
    char name[64];
    if (!n) break;
    if (n < sizeof name) {
      snprintf(name, sizeof name, "%.*s", (int)n, heads);
      add(f, x, &(struct field){file, line, name, NULL, at});
    }
    heads += n;
  }
}

void ni_host_find(struct ni_find *f) {
  struct texts *x;
  if (ni_find_entity(f, NI_METRIC_TCP, "host") && (x = begin(f))) {
    add_named(f, x, "net/snmp", "Tcp:");
    add_named(f, x, "net/netstat", "TcpExt:");
    ni_find_reader(f, &x->r);
  }
  if (ni_find_entity(f, NI_METRIC_HOST, "host") && (x = begin(f))) {
    for (size_t i = 0; i < sizeof of_host / sizeof *of_host; i++) add(f, x, &of_host[i]);
    x->clock[0] = ni_find_counter(f, "clock_synchronised");
    x->clock[1] = ni_find_counter(f, "clock_error");
    ni_find_reader(f, &x->r);
  }
}
