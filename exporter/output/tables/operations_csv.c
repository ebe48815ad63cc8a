#include "operations_csv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/shortest.h"
#include "exporter/base/text/time_text.h"
#include "exporter/model/sums/figures.h"
#include "format/json_text.h"

enum { BUFFER_BYTES = 64 << 10, ROW_MAX_BYTES = 1024 };

struct csv {
  FILE *f;
  bool p2p, local;
  int64_t second; /* of `stamp`; INT64_MIN: none */
  char stamp[32];
  uint64_t size;
  char human[32];
  char buffer[BUFFER_BYTES];
};

static char *put_next_u64(char *p, uint64_t v) {
  *p++ = ',';
  return ni_json_put_u64(p, v);
}

/* numpy's print form. */
static char *put_set(char *p, const int32_t *v, unsigned n) {
  *p++ = '[';
  for (unsigned i = 0; i < n; i++) {
    if (i)
      *p++ = ' ';
    p = ni_json_put_i64(p, v[i]);
  }
  *p++ = ']';
  return p;
}

/* YYYY-mm-dd HH:MM:SS.mmm, cut off below the millisecond. Rows come with few different seconds. */
static char *put_time(struct csv *c, char *p, uint64_t us) {
  int64_t second = (int64_t)(us / 1000000);
  if (second != c->second) {
    c->second = second;
    ni_second_text(second, ' ', c->local, c->stamp);
  }
  p = stpcpy(p, c->stamp);
  unsigned ms = (unsigned)(us % 1000000 / 1000);
  *p++ = '.';
  *p++ = (char)('0' + ms / 100);
  *p++ = (char)('0' + ms / 10 % 10);
  *p++ = (char)('0' + ms % 10);
  return p;
}

/* Makes the path of a cell's file, or of one of the parts that several processes make of it. */
static int make_path(const struct ni_run *r, const struct ni_cell *cell, uint32_t part, char *out,
                     size_t size) {
  char dir[80], word[200], suffix[24] = "";
  ni_size_dir(cell->msg_bytes, dir);
  ni_file_word(cell->func, word, sizeof word);
  if (part)
    snprintf(suffix, sizeof suffix, ".part%u", part);
  int n = snprintf(out, size, "%s/summary/%s/summary_%s_%s_%llu.csv%s", r->tmp_dir, dir,
                   ni_comm_type_names[cell->type], word, (unsigned long long)cell->msg_bytes, suffix);
  return n < (int)size ? 0 : -ENAMETOOLONG;
}

static int open_file(void *to, const void *what, void **rows) {
  static const char head[] =
      "id,coll_sn,coll_msg_size_bytes,mean_coll_busbw_gbs,log_count,n_ranks,nnodes,coll_start_timestamp_us,"
      "coll_end_timestamp_us,coll_duration_us,human_readable_coll_msg_size_bytes,coll_start_datetime,"
      "coll_end_datetime,coll_duration_human";
  const struct ni_run *r = to;
  const struct ni_cell *cell = what;
  char path[4096], dir[80];
  const uint32_t part = cell->chunks ? cell->chunk : 0;
  ni_size_dir(cell->msg_bytes, dir);
  snprintf(path, sizeof path, "%s/summary", r->tmp_dir);
  if (mkdir(path, 0777) < 0 && errno != EEXIST)
    return -errno;
  snprintf(path, sizeof path, "%s/summary/%s", r->tmp_dir, dir);
  if (mkdir(path, 0777) < 0 && errno != EEXIST)
    return -errno;
  if (make_path(r, cell, part, path, sizeof path) < 0)
    return -ENAMETOOLONG;
  struct csv *c = malloc(sizeof *c);
  if (!c)
    return -ENOMEM;
  *c = (struct csv){
      .p2p = cell->kind == NI_KIND_P2P, .local = r->opt.compat, .second = INT64_MIN, .size = UINT64_MAX};
  if (!(c->f = fopen(path, "we"))) {
    int e = -errno;
    free(c);
    return e;
  }
  setvbuf(c->f, c->buffer, _IOFBF, sizeof c->buffer);
  if (!part)
    ni_say(c->f, "%s%s\n", head, c->p2p ? ",rank,p2p_peer" : "");
  *rows = c;
  return 0;
}

static int put_row(void *rows, const void *given) {
  struct csv *c = rows;
  const struct ni_operation_row *row = given;
  char line[ROW_MAX_BYTES], *p = line;
  uint64_t us = row->last_us - row->first_us;
  if (row->msg_bytes != c->size) {
    c->size = row->msg_bytes;
    ni_human_bytes(row->msg_bytes, c->human);
  }
  p = stpcpy(p, row->id);
  p = put_next_u64(p, row->sn);
  p = put_next_u64(p, row->msg_bytes);
  *p++ = ',';
  p += ni_shortest(row->mean_busbw_gbs, p);
  p = put_next_u64(p, row->count);
  *p++ = ',';
  p = put_set(p, &row->n_ranks, 1);
  *p++ = ',';
  p = put_set(p, row->nnodes, row->n_nnodes);
  p = put_next_u64(p, row->first_us);
  p = put_next_u64(p, row->last_us);
  p = put_next_u64(p, us);
  *p++ = ',';
  p = stpcpy(p, c->human);
  *p++ = ',';
  p = put_time(c, p, row->first_us);
  *p++ = ',';
  p = put_time(c, p, row->last_us);
  *p++ = ',';
  if (us < 1000) {
    p = ni_json_put_u64(p, us);
    p = stpcpy(p, ".0\316\274s");
  } else {
    p += sprintf(p, us < 1000000 ? "%.1fms" : "%.1fs", (double)us / (us < 1000000 ? 1e3 : 1e6));
  }
  if (c->p2p) {
    *p++ = ',';
    p = ni_json_put_i64(p, row->rank);
    *p++ = ',';
    p = ni_json_put_i64(p, row->peer);
  }
  *p++ = '\n';
  return fwrite_unlocked(line, 1, (size_t)(p - line), c->f) == (size_t)(p - line) ? 0 : -errno;
}

static int close_file(void *rows) {
  struct csv *c = rows;
  int e = ni_out_end(c->f);
  free(c);
  return e;
}

static int append_file(const char *to, const char *part) {
  int e = ni_copy_file(AT_FDCWD, part, AT_FDCWD, to, O_APPEND);
  return e == 0 && unlink(part) < 0 ? -errno : e;
}

int ni_operations_csv_join(const struct ni_run *r, const struct ni_summary *s) {
  char to[4096], path[4096];
  int e = 0;
  for (size_t i = 0; e == 0 && i < s->n_cells; i++) {
    const struct ni_cell *cell = &s->cell[i];
    if (cell->chunks < 2 || cell->chunk)
      continue;
    e = make_path(r, cell, 0, to, sizeof to);
    for (uint32_t k = 1; e == 0 && k < cell->chunks; k++)
      if ((e = make_path(r, cell, k, path, sizeof path)) == 0)
        e = append_file(to, path);
  }
  return e;
}

struct ni_sink ni_operations_csv(struct ni_run *r) {
  return (struct ni_sink){r, open_file, put_row, close_file};
}
