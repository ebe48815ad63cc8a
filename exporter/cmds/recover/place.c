#include "place.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/input/box/box_decode.h"
#include "exporter/input/discover.h"
#include "exporter/input/scan.h"

static uint64_t hash_life(uint64_t hash, int32_t rank) { return ni_hash(ni_hash(0, hash), (uint32_t)rank); }

int ni_log_state_life(struct ni_log_state *s, uint64_t hash, int32_t rank, uint64_t init_ns,
                      struct ni_log_life **out) {
  if (!ni_array_room(s->life, s->n, s->cap))
    return -ENOMEM;
  int64_t k = ni_map_find_or_add(&s->names, hash_life(hash, rank), init_ns, (uint32_t)s->n);
  if (k < 0)
    return (int)k;
  if ((size_t)k == s->n) {
    if (s->n == NI_LOG_LIVES_MAX)
      return -EFBIG;
    s->life[s->n++] = (struct ni_log_life){0};
  }
  *out = &s->life[k];
  return 0;
}

static void add_gap(struct ni_log_life *life, const struct ni_gap_line *g) {
  int k = ni_kind_from_name(g->kind), i = 0;
  while (i < NI_DROP_COUNT && strcmp(g->cause, ni_drop_names[i]) != 0)
    i++;
  *(i < NI_DROP_COUNT ? &life->kind[k].gap[i] : &life->kind[k].gap_other) += g->count;
}

static int add_line(struct ni_log_state *s, const struct ni_line *l) {
  struct ni_log_life *life = NULL;
  if (!l->has_header)
    return 0; /* not a line of ours */
  if (l->meta.dump_timestamp_us > s->newest_us)
    s->newest_us = l->meta.dump_timestamp_us;
  if (l->ident.comm_hash == 0 && l->kind != NI_LINE_OP) {
    if (l->kind == NI_LINE_DUMP_STATS && l->stats.final)
      s->process_final = true;
    if (l->kind != NI_LINE_COMM)
      return 0;
  }
  int e = ni_log_state_life(s, l->ident.comm_hash, l->ident.rank,
                            l->kind == NI_LINE_COMM ? l->comm.init_ns : 0, &life);
  if (e < 0)
    return e;
  switch (l->kind) {
    case NI_LINE_OP:
      return l->op.has & NI_HAS_REC_SN ? ni_seq_set_add(&life->kind[l->op.kind].records, l->op.rec_sn) : 0;
    case NI_LINE_INCOMPLETE:
      return ni_seq_set_add(&life->kind[ni_kind_from_name(l->unfinished.kind)].incomplete,
                            l->unfinished.rec_sn);
    case NI_LINE_IN_FLIGHT:
      return ni_seq_set_add(&life->kind[ni_kind_from_name(l->unfinished.kind)].in_flight,
                            l->unfinished.rec_sn);
    case NI_LINE_GAP:
      add_gap(life, &l->gap);
      return 0;
    case NI_LINE_DUMP_STATS:
      for (int k = 0; k < NI_KIND_COUNT; k++) {
        life->kind[k].flushed += l->stats.records[k];
        if (l->stats.final)
          life->kind[k].written = l->stats.kind[k].written;
      }
      life->final |= l->stats.final;
      return 0;
    default:
      return 0;
  }
}

struct session_reading {
  struct ni_log_state *s;
  uint64_t start_ns;
  bool ours;
};

static int add_session_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct session_reading *r = arg;
  if (l->kind == NI_LINE_PROCESS && r->start_ns)
    r->ours = l->process.start_ns == r->start_ns;
  return r->ours ? add_line(r->s, l) : 0;
}

int ni_log_state_read(struct ni_log_state *s, const char *path, uint64_t start_ns) {
  struct session_reading r = {s, start_ns, start_ns == 0};
  struct ni_scan *scan = NULL;
  struct ni_scan_end end = {0};
  uint64_t number = 0;
  (void)ni_log_stem(path, &number);
  if (number >= s->next)
    s->next = number + 1;
  int e = ni_scan_new(&scan);
  if (e == 0)
    e = ni_scan_file(scan, path, NULL, &(struct ni_scan_to){.arg = &r, .take = add_session_line}, &end);
  s->files += end.error == 0;
  if (e == 0)
    e = end.error;
  if (e < 0 && e != -ENOMEM) {
    if (!s->bad &&
        asprintf(&s->bad, "%s: %s", path,
                 e == -EFBIG ? "more communicators than a process can have" : strerror(-e)) < 0)
      s->bad = NULL;
    e = 0;
  }
  ni_scan_free(scan);
  return e;
}

const struct ni_log_life *ni_log_state_find(const struct ni_log_state *s, uint64_t hash, int32_t rank,
                                            uint64_t init_ns) {
  int64_t k = ni_map_get(&s->names, hash_life(hash, rank), init_ns);
  return k < 0 || (size_t)k == s->n ? NULL : &s->life[k];
}

void ni_log_state_free(struct ni_log_state *s) {
  for (size_t i = 0; i < s->n; i++)
    for (int k = 0; k < NI_KIND_COUNT; k++) {
      ni_seq_set_free(&s->life[i].kind[k].records);
      ni_seq_set_free(&s->life[i].kind[k].incomplete);
      ni_seq_set_free(&s->life[i].kind[k].in_flight);
    }
  ni_map_free(&s->names);
  free(s->life);
  free(s->bad);
  *s = (struct ni_log_state){0};
}

/* Of which the plugin makes names of logs. */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

struct search {
  struct ni_place *p;
  const struct ni_files *read; /* what was read already */
  uint64_t start_ns;
  bool any; /* whoever owns the log */
  uid_t owner;
};

static bool is_file_of_stem(const struct search *s, const char *name) {
  size_t n = strlen(s->p->stem);
  return strncmp(name, s->p->stem, n) == 0 && ni_log_stem(name, NULL) == n;
}

static int read_log_file(const struct search *s, const char *path, uid_t owner) {
  if (!s->any && owner != s->owner)
    return 0;
  if (!s->p->logs) {
    const char *slash = strrchr(path, '/');
    s->p->logs = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!s->p->logs)
      return -ENOMEM;
  }
  return ni_log_state_read(&s->p->log, path, s->start_ns);
}

/* The first file of a log has no number. */
static int by_number(const void *a, const void *b) {
  uint64_t m, n;
  (void)ni_log_stem(*(char *const *)a, &m);
  (void)ni_log_stem(*(char *const *)b, &n);
  return m < n ? -1 : m > n;
}

/* Reads the files of the stem in one directory, in the order in which they were written. */
static int read_logs_in(const struct search *s, const char *dir) {
  DIR *d = opendir(dir);
  char **path = NULL;
  size_t found = 0, cap = 0;
  int e = 0;
  if (!d && errno != ENOENT) {
    s->p->closed = dir;
    s->p->error = errno;
  }
  if (!d)
    return 0;
  for (struct dirent *entry; e == 0 && (entry = readdir(d));) {
    if (!is_file_of_stem(s, entry->d_name))
      continue;
    if (!ni_array_room(path, found, cap) || asprintf(&path[found], "%s/%s", dir, entry->d_name) < 0)
      e = -ENOMEM;
    else
      found++;
  }
  closedir(d);
  if (found > 1)
    qsort(path, found, sizeof *path, by_number);
  for (size_t i = 0; i < found; i++) {
    struct stat st;
    bool have = lstat(path[i], &st) != 0 || !S_ISREG(st.st_mode);
    for (size_t k = 0; !have && k < s->read->n; k++)
      have = s->read->file[k].dev == st.st_dev && s->read->file[k].ino == st.st_ino;
    if (e == 0 && !have)
      e = read_log_file(s, path[i], st.st_uid);
    free(path[i]);
  }
  free(path);
  return e;
}

/* A name for the log of a process that was killed before it had one. */
static void invent_stem(const struct ni_box_header *h, char *out, size_t size) {
  char host[sizeof h->hostname];
  size_t n = 0;
  for (const char *p = h->hostname; *p && n < sizeof host - 1; p++, n++) {
    bool safe = strchr(NAME_CHARS, *p) && (*p != '.' || n);
    host[n] = safe ? *p : '_';
  }
  host[n] = 0;
  snprintf(out, size, "%.128s-pid%" PRId64 "-%" PRIu64, *host ? host : "unknown-host", h->pid,
           h->made_ns / 1000000000u);
}

/*
 * May the box decide where its part is written? It may if we are its owner. This does not hold for boxes in a
 * folder that was given to root: root copies other users' files, and the copies belong to root.
 */
static bool is_trusted(const struct ni_box_sources *s, const struct ni_inputs *in, const struct ni_box *b,
                       const char *said) {
  bool own = ni_box_owner(b) == geteuid(), copied = geteuid() == 0 && s->named;
  return own && *said == '/' && (!copied || ni_box_is_under(in, said));
}

/* Reads what the box says of its log, and the name that a part of it will have. */
static void read_session(struct search *s, const struct ni_box *b) {
  struct ni_place *p = s->p;
  struct ni_box_log session = {0};
  const char *file = ni_box_session(b, &session) && *session.dir ? session.file : "";
  size_t n = ni_log_stem(file, NULL);
  if (session.dir)
    snprintf(p->said, sizeof p->said, "%s", session.dir);
  s->start_ns = session.start_ns;
  const bool has_length = n && n < sizeof p->stem - 32;
  if (has_length && strspn(file, NAME_CHARS) >= n && *file != '.')
    snprintf(p->stem, sizeof p->stem, "%.*s", (int)n, file);
  else
    invent_stem(ni_box_header(b), p->stem, sizeof p->stem);
}

/* The folder that the part goes to; NULL: nobody says. */
static const char *choose_folder(const struct ni_place *p, const struct ni_inputs *in, const char *output,
                                 bool believed) {
  struct stat st;
  if (output)
    return output;
  if (p->logs)
    return p->logs;
  if (believed)
    return p->said;
  const bool is_only = in->n == 1 && !*p->said;
  return is_only && stat(in->path[0], &st) == 0 && S_ISDIR(st.st_mode) ? in->path[0] : NULL;
}

int ni_place_find(struct ni_place *p, const struct ni_box_sources *s, const struct ni_inputs *in,
                  const char *output, const struct ni_box *b) {
  struct search look = {p, &s->logs, 0, output != NULL, ni_box_owner(b)};
  int e = 0;
  read_session(&look, b);
  for (size_t i = 0; e == 0 && i < s->logs.n; i++)
    if (is_file_of_stem(&look, ni_path_name(s->logs.file[i].path)))
      e = read_log_file(&look, s->logs.file[i].path, s->logs.file[i].owner);
  p->elsewhere = false;
  if (!s->named && in->n && !p->logs)
    p->elsewhere = !*p->said || !ni_box_is_under(in, p->said);
  if (e < 0 || p->elsewhere)
    return e;
  bool believed = is_trusted(s, in, b, p->said);
  if (believed || (output && *p->said == '/'))
    e = read_logs_in(&look, p->said);
  const char *dir = choose_folder(p, in, output, believed);
  const bool is_read = output && p->logs && strcmp(p->logs, output) == 0;
  const bool is_other = output && strcmp(p->said, output) != 0;
  if (e == 0 && is_other && !is_read)
    e = read_logs_in(&look, output);
  if (e == 0 && dir && !(p->dir = strdup(dir)))
    e = -ENOMEM;
  return e;
}

void ni_place_free(struct ni_place *p) {
  ni_log_state_free(&p->log);
  free(p->dir);
  free(p->logs);
  *p = (struct ni_place){0};
}

/* ---- the part's file: lines in, gzip on disk, a name when it is whole ---- */

#define MEMBER_TEXT (1u << 20) /* text of a gzip member: readers share a file by members */
#define MAX_NUMBER 1000000

/* Text that is not in a member yet. */
struct lines {
  int fd;
  size_t n;
  char text[MEMBER_TEXT];
};

/* A member ends with a line; a line is never so long as one. */
static int write_member(struct lines *l) {
  const char *end = memrchr(l->text, '\n', l->n);
  size_t n = end ? (size_t)(end - l->text) + 1 : l->n;
  int e = n ? ni_write_member(l->fd, l->text, n) : 0;
  memmove(l->text, l->text + n, l->n - n);
  l->n -= n;
  return e;
}

static ssize_t buffer_lines(void *cookie, const char *text, size_t n) {
  struct lines *l = cookie;
  for (size_t done = 0, some; done < n; done += some) {
    some = n - done < MEMBER_TEXT - l->n ? n - done : MEMBER_TEXT - l->n;
    memcpy(l->text + l->n, text + done, some);
    l->n += some;
    int e = l->n == MEMBER_TEXT ? write_member(l) : 0;
    if (e < 0) {
      errno = -e;
      return 0;
    }
  }
  return (ssize_t)n;
}

static int close_lines(void *cookie) {
  struct lines *l = cookie;
  int e = write_member(l);
  if (e == 0 && fsync(l->fd) != 0)
    e = -errno;
  free(l);
  errno = -e;
  return e < 0 ? -1 : 0;
}

FILE *ni_recover_lines(int fd) {
  struct lines *l = malloc(sizeof *l);
  if (!l)
    return NULL;
  l->fd = fd;
  l->n = 0;
  FILE *f = fopencookie(l, "w", (cookie_io_functions_t){.write = buffer_lines, .close = close_lines});
  if (!f)
    free(l);
  else
    (void)__fsetlocking(f, FSETLOCKING_BYCALLER); /* one thread */
  return f;
}

int ni_recover_name(struct ni_out_file *o, const char *stem, uint64_t from, char *name, size_t size) {
  for (uint64_t i = from; i - from < MAX_NUMBER; i++) {
    char number[24] = "";
    if (i)
      snprintf(number, sizeof number, ".%" PRIu64, i);
    snprintf(name, size, "%s%s.jsonl.gz", stem, number);
    int e = ni_out_commit(o, name, false);
    if (e != -EEXIST)
      return e;
  }
  ni_out_drop(o);
  return -EEXIST;
}
