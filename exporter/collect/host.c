/*
 * The host, and TCP of this network namespace: numbers in the kernel's texts below /proc, and the state of
 * the clock.
 *
 * Each is found by its line and its place in it. What this kernel has not (PSI, a counter of a later one) is
 * no counter.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "source.h"

enum { FILES = 8, TEXT = 1 << 18, SUM = 0 };

/* Where a line is: in which file, what it begins with; only what stands behind the word `after` counts. */
struct line {
  const char *file, *begins, *after;
};

/* What each number of the line counts, from the first one on. sum: all together. */
static const struct {
  struct line line;
  bool sum;
  const char *counter[8];
} of_host[] = {
    {{"stat", "cpu ", NULL},
     false,
     {"cpu_user", "cpu_nice", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal"}},
    {{"stat", "ctxt ", NULL}, false, {"context_switches"}},
    {{"stat", "procs_running ", NULL}, false, {"run_queue"}},
    {{"stat", "procs_blocked ", NULL}, false, {"blocked_on_io"}},
    {{"softirqs", "NET_RX:", NULL}, true, {"softirq_net_rx"}},
    {{"softirqs", "NET_TX:", NULL}, true, {"softirq_net_tx"}},
    {{"meminfo", "MemAvailable:", NULL}, false, {"memory_available"}},
    {{"pressure/cpu", "some ", "total="}, false, {"pressure_cpu_some"}},
    {{"pressure/memory", "some ", "total="}, false, {"pressure_memory_some"}},
    {{"pressure/memory", "full ", "total="}, false, {"pressure_memory_full"}},
    {{"pressure/io", "some ", "total="}, false, {"pressure_io_some"}},
    {{"pressure/io", "full ", "total="}, false, {"pressure_io_full"}},
    {{NULL, NULL, NULL}, false, {"clock_synchronised", "clock_error"}},
};

struct proc_texts {
  struct ni_counter_reader r;
  int fd[FILES];
  unsigned n_files;
  const char *file; /* the last one, which text is of */
  struct want {
    struct line line;
    unsigned at; /* of its numbers, from 1 on; SUM */
    int fd;
  } *want; /* one a counter */
  size_t n, cap;
  char text[TEXT];
};

static const char *find_behind(const char *text, const char *line) {
  for (; text && *text; text = strchr(text, '\n'), text += text != NULL) {
    text += strspn(text, " ");
    if (strncmp(text, line, strlen(line)) == 0)
      return text + strlen(line);
  }
  return NULL;
}

/* Is the kernel's clock synchronised; at most so many us off, as it says. */
static bool read_clock_state(unsigned at, uint64_t *out) {
  struct timex t = {0};
  int state = adjtimex(&t);
  *out = at == 2 ? (uint64_t)t.maxerror : state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);
  return state >= 0;
}

/* false: it is not there. */
static bool find_value(const char *text, const struct line *line, unsigned at, uint64_t *out) {
  if (!line->file)
    return read_clock_state(at, out);
  const char *s = find_behind(text, line->begins),
             *values = at != SUM && !line->after ? find_behind(s, line->begins) : NULL;
  if (values)
    s = values; /* the first one was a line of heads */
  if (s && line->after) {
    const char *from = strstr(s, line->after);
    s = from && from < s + strcspn(s, "\n") ? from + strlen(line->after) : NULL;
  }
  bool found = false;
  *out = 0;
  for (unsigned i = 1; s && (at == SUM || i <= at); i++) {
    s += strspn(s, " ");
    char *end = (char *)s;
    unsigned long long v = *s == '\n' ? 0 : strtoull(s, &end, 10); /* which would go on in the next line */
    if (end == s)
      break;
    if (at == SUM || i == at) {
      *out += v;
      found = true;
    }
    s = end;
  }
  return found;
}

static void read_host(struct ni_counter_reader *r, struct ni_reading *out) {
  struct proc_texts *x = (struct proc_texts *)r;
  int64_t mono = 0, real = 0;
  for (size_t i = 0; i < r->n; i++) {
    const struct want *w = &x->want[i];
    if (i == 0 || w->fd != w[-1].fd) {
      if (w->fd >= 0)
        ni_root_read(w->fd, x->text, TEXT); /* "" where it fails */
      mono = (int64_t)ni_now_ns(CLOCK_MONOTONIC);
      real = (int64_t)ni_now_ns(CLOCK_REALTIME);
    }
    bool found = find_value(x->text, &w->line, w->at, &out[i].value);
    out[i] =
        (struct ni_reading){found ? out[i].value : 0, real, mono, found ? NI_READ_OK : NI_READ_UNREADABLE};
  }
}

static void close_host(struct ni_counter_reader *r) {
  struct proc_texts *x = (struct proc_texts *)r;
  for (unsigned i = 0; i < x->n_files; i++)
    if (x->fd[i] >= 0)
      close(x->fd[i]);
  free(x->want);
  free(x);
}

/* Reads the file's text into x->text. A file that cannot be read is reported once, and its text is "". */
static void open_proc_file(struct ni_find *f, struct proc_texts *x, const char *file) {
  char path[NI_ROOT_PATH];
  if (x->file && strcmp(x->file, file) == 0)
    return;
  int fd = open(ni_root_path(path, "/proc/%s", file), O_RDONLY | O_CLOEXEC | O_NONBLOCK),
      e = fd < 0 ? -errno : ni_root_read(fd, x->text, TEXT);
  if (e < 0) {
    *x->text = 0;
    /* PSI may be left out of a kernel, or switched off when it starts. */
    (e == -ENOENT || e == -EOPNOTSUPP ? ni_set_skipped : ni_set_unread)(f->set, path, strerror(-e));
  }
  x->file = file;
  x->fd[x->n_files++] = fd;
}

static void add_counter(struct ni_find *f, struct proc_texts *x, const struct line *line, unsigned at,
                        const char *counter) {
  uint64_t v;
  if (line->file)
    open_proc_file(f, x, line->file);
  if (line->file && !find_value(x->text, line, at, &v))
    return;
  if (!ni_array_room(x->want, x->n, x->cap))
    f->set->failed = true;
  else if (ni_find_counter(f, counter))
    x->want[x->n++] = (struct want){*line, at, line->file ? x->fd[x->n_files - 1] : -1};
}

/* Adds each counter that a line of heads names: "Tcp: RtoAlgorithm RtoMin ...". */
static void add_named_counters(struct ni_find *f, struct proc_texts *x, const char *file,
                               const char *begins) {
  open_proc_file(f, x, file);
  const char *heads = find_behind(x->text, begins);
  char name[64];
  for (unsigned at = 1; heads && *(heads += strspn(heads, " ")) && *heads != '\n'; at++) {
    int n = (int)strcspn(heads, " \n");
    if (snprintf(name, sizeof name, "%.*s", n, heads) < (int)sizeof name)
      add_counter(f, x, &(struct line){file, begins, NULL}, at, name);
    heads += n;
  }
}

static void find_host(struct ni_find *f, enum ni_metric_source source) {
  if (!ni_find_entity(f, source, "host"))
    return;
  struct proc_texts *x = calloc(1, sizeof *x);
  if (!x) {
    f->set->failed = true;
    return;
  }
  x->r.read = read_host;
  x->r.close = close_host;
  if (source == NI_METRIC_TCP) {
    add_named_counters(f, x, "net/snmp", "Tcp:");
    add_named_counters(f, x, "net/netstat", "TcpExt:");
  } else {
    for (size_t i = 0; i < sizeof of_host / sizeof *of_host; i++)
      for (unsigned k = 0; k < 8 && of_host[i].counter[k]; k++)
        add_counter(f, x, &of_host[i].line, of_host[i].sum ? SUM : k + 1, of_host[i].counter[k]);
  }
  ni_find_reader(f, &x->r);
}

void ni_host_find(struct ni_find *f) {
  find_host(f, NI_METRIC_TCP);
  find_host(f, NI_METRIC_HOST);
}
