#include "ctl_listen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/input/box/life.h"
#include "exporter/input/gzip_header.h"
#include "exporter/input/scan.h"

/* A log of many parts, and what is written beside it, belongs to one process: their names begin alike. */
struct listener_process {
  bool asked_for, over;
  char *box; /* path of its black box; NULL: not stated */
  uint32_t owner;
  int64_t pid;
};

struct listener_look {
  const struct ni_ctl_whose *whose;
  struct ni_scan *scan;
  struct listener_process now; /* whose files are read */
  size_t lines;                /* of the end of one */
};

struct names {
  char **item;
  size_t n, cap;
};

/* Length of HOST-pidN-START in the name of a log; 0: it is none of ours. */
static size_t measure_process_name(const char *name) {
  const char *pid = strstr(name, "-pid");
  const bool is_log = pid && (strstr(pid, ".jsonl") || strstr(pid, ".log"));
  if (!is_log || *name == '.')
    return 0;
  const char *at = pid + 4;
  at += strspn(at, "0123456789");
  if (*at == '-')
    at += 1 + strspn(at + 1, "0123456789");
  return (size_t)(at - name);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/*
 * Lists the names of the logs in the folder itself, sorted. A folder that cannot be read has none. 0 or
 * -ENOMEM.
 */
static int list_log_names(const char *dir, struct names *x) {
  DIR *d = opendir(dir);
  int e = 0;
  for (struct dirent *entry; d && e == 0 && (entry = readdir(d));) {
    if (!measure_process_name(entry->d_name))
      continue;
    char *copy = ni_array_room(x->item, x->n, x->cap) ? strdup(entry->d_name) : NULL;
    if (copy)
      x->item[x->n++] = copy;
    else
      e = -ENOMEM;
  }
  if (d)
    closedir(d);
  if (x->n)
    qsort(x->item, x->n, sizeof *x->item, by_text);
  return e;
}

/* Reads the first lines: whose log it is, and where its black box lies. 1 ends the scan. */
static int read_head_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct listener_look *k = arg;
  (void)line_no;
  if (l->kind != NI_LINE_PROCESS)
    return 0;
  k->now.asked_for |= k->whose->rank >= 0 && l->process.rank == k->whose->rank;
  k->now.pid = l->meta.pid;
  const bool has_box = l->process.blackbox && *l->process.blackbox;
  if (has_box && !k->now.box && !(k->now.box = strdup(l->process.blackbox)))
    return -ENOMEM;
  return -ECANCELED;
}

static int read_end_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct listener_look *k = arg;
  (void)line_no;
  k->lines++;
  k->now.over = l->kind == NI_LINE_DUMP_STATS && l->stats.final && l->ident.comm_hash == 0;
  return 0;
}

/*
 * Finds where in the last n bytes of a file something begins that can be read by itself: a gzip member, or a
 * line. The end of the file: nowhere.
 */
static uint64_t find_entry(int fd, uint64_t bytes, size_t n, char *buffer) {
  uint64_t from = bytes - n;
  ssize_t got = pread(fd, buffer, n, (off_t)from);
  unsigned char magic[NI_GZIP_HEADER_BYTES];
  bool gzip = pread(fd, magic, sizeof magic, 0) == sizeof magic && ni_gzip_header(magic);
  if (got <= 0)
    return bytes;
  if (from == 0)
    return 0;
  if (!gzip) {
    const char *lf = memchr(buffer, '\n', (size_t)got);
    return lf ? from + (uint64_t)(lf + 1 - buffer) : bytes;
  }
  for (size_t i = 0; i + NI_GZIP_HEADER_BYTES <= (size_t)got; i++)
    if (ni_gzip_header((const uint8_t *)buffer + i))
      return from + i;
  return bytes;
}

/* Reads what the end of the file says, from as little of it as holds a line. */
static int read_end(struct listener_look *k, const char *path) {
  static const size_t windows[] = {16u << 10, 256u << 10, 4u << 20};
  struct stat st;
  struct ni_scan_end end;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), e = 0;
  char *buffer = fd >= 0 ? malloc(windows[2]) : NULL;
  bool fine = buffer && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
  k->lines = 0;
  for (size_t i = 0; fine && i < sizeof windows / sizeof *windows; i++) {
    if (e != 0 || k->lines != 0)
      break;
    uint64_t bytes = (uint64_t)st.st_size;
    size_t n = bytes < windows[i] ? (size_t)bytes : windows[i];
    struct ni_range part = {.from = find_entry(fd, bytes, n, buffer), .to = bytes};
    if (part.from == bytes)
      continue;
    e = ni_scan_file(k->scan, path, &part, &(struct ni_scan_to){.arg = k, .take = read_end_line}, &end);
  }
  free(buffer);
  if (fd >= 0)
    close(fd);
  return e;
}

static int read_listener_log(struct listener_look *k, const char *dir, const char *name) {
  char path[4096 + 256];
  struct stat st;
  struct ni_scan_end end;
  bool fits = snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path;
  if (!fits || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
    return 0; /* a pipe would make us wait */
  k->now.owner = st.st_uid;
  int e = ni_scan_file(k->scan, path, NULL,
                       &(struct ni_scan_to){.arg = k, .take = read_head_line, .head = true}, &end);
  if (e == -ECANCELED)
    e = 0;
  bool was_over = k->now.over; /* in another part of the log */
  if (e == 0)
    e = read_end(k, path);
  k->now.over |= was_over;
  return e;
}

/*
 * Has the process ended? For a process of this machine the kernel counts more than its log, as it may have
 * begun anew after a last line.
 */
static bool has_ended(const struct listener_process *p) {
  struct ni_life_fact f = {0};
  if (p->box)
    f = ni_life_of_path(p->box, p->owner, p->pid);
  return ni_life_gone(f.life) || (p->over && f.life != NI_LIFE_ALIVE);
}

int ni_ctl_listeners(const char *dir, const struct ni_ctl_whose *whose, struct ni_ctl_listeners *out) {
  struct listener_look k = {.whose = whose};
  struct names names = {0};
  *out = (struct ni_ctl_listeners){0};
  int e = list_log_names(dir, &names);
  if (e == 0)
    e = ni_scan_new(&k.scan);
  for (size_t i = 0; e == 0 && !out->any && i < names.n;) {
    const char *first = names.item[i];
    size_t n = measure_process_name(first), asked = whose->process ? strlen(whose->process) : 0;
    bool named = asked == 0 || (strncmp(first, whose->process, asked) == 0 && strchr("-.", first[asked]));
    k.now = (struct listener_process){.asked_for = named && whose->rank < 0};
    for (; e == 0 && i < names.n && measure_process_name(names.item[i]) == n &&
         strncmp(names.item[i], first, n) == 0;
         i++)
      if (named)
        e = read_listener_log(&k, dir, names.item[i]);
    bool ended = has_ended(&k.now);
    out->processes++;
    out->ended += ended && k.now.asked_for;
    out->any |= k.now.asked_for && !ended;
    free(k.now.box);
  }
  for (size_t i = 0; i < names.n; i++)
    free(names.item[i]);
  free(names.item);
  ni_scan_free(k.scan);
  return e;
}
