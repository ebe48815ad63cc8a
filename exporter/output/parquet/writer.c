#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "column_chunk.h"
#include "exporter/base/out_file.h"
#include "metadata.h"

#define DEFAULT_ROW_GROUP_ROWS (256u << 10)
#define DEFAULT_PAGE_ROWS 8192u
#define DEFAULT_DICT_ENTRIES 16384u
#define DEFAULT_MEMORY_BYTES ((size_t)16 << 20)
/* The footer's length is a signed 32-bit number. */
#define MAX_FOOTER_BYTES ((size_t)INT32_MAX - (1u << 20))

struct ni_pq {
  struct ni_pq_field *fields;
  size_t n_fields;
  uint32_t row_group_rows;
  size_t memory_bytes;

  struct ni_chunk_env env;
  struct ni_chunk *chunks;
  struct ni_chunk_place *places;
  char *path; /* NULL: nothing is to be removed */
  int fd;
  uint64_t offset;         /* bytes written so far */
  struct ni_tc row_groups; /* RowGroup structs of what is written */
  uint64_t n_rows, n_row_groups;
  uint32_t group_rows; /* in the row group under construction */

  int error; /* first failure, 0 while all is well */
  char message[512];
};

static int set_error(struct ni_pq *w, int rc, const char *fmt, ...) {
  va_list ap;
  if (w->error)
    return w->error;
  w->error = rc;
  va_start(ap, fmt);
  vsnprintf(w->message, sizeof w->message, fmt, ap);
  va_end(ap);
  return rc;
}

/* Writes bytes to the file. */
static int write_bytes(struct ni_pq *w, const void *from, size_t n) {
  int rc = ni_write_all(w->fd, from, n, -1);
  if (rc < 0)
    return set_error(w, rc, "%s: write failed: %s", w->path, strerror(-rc));
  w->offset += n;
  return 0;
}

/* Everything but the file. */
static void free_writer(struct ni_pq *w) {
  for (size_t i = 0; w->chunks && i < w->n_fields; i++)
    ni_chunk_free(&w->chunks[i]);
  free(w->fields);
  free(w->chunks);
  free(w->places);
  free(w->path);
  ni_tc_free(&w->row_groups);
  ni_chunk_env_free(&w->env);
  free(w);
}

/* All that a writer needs, and the file's first bytes. */
static int begin_file(struct ni_pq *w, const char *path, const struct ni_pq_field *fields,
                      const struct ni_pq_options *o) {
  w->fields = calloc(w->n_fields, sizeof *w->fields);
  w->chunks = calloc(w->n_fields, sizeof *w->chunks);
  w->places = calloc(w->n_fields, sizeof *w->places);
  if (!w->fields || !w->chunks || !w->places)
    return set_error(w, -ENOMEM, "%s: out of memory", path);
  memcpy(w->fields, fields, w->n_fields * sizeof *fields);
  for (size_t i = 0; i < w->n_fields; i++)
    ni_chunk_init(&w->chunks[i], fields[i].type, &w->env);
  const char *codec = ni_pq_codec_name(o->codec);
  int rc = ni_page_codec_init(&w->env.codec, o->codec, o->level);
  if (rc == -ENOTSUP)
    return set_error(w, rc, "%s: this build has no %s compression", path, codec);
  if (rc)
    return set_error(w, rc, "%s: %s level %d: %s; accepted: %s", path, codec, o->level, strerror(-rc),
                     ni_page_codec_levels(o->codec));
  if (!(w->path = strdup(path)))
    return set_error(w, -ENOMEM, "%s: out of memory", path);
  w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (w->fd >= 0)
    return write_bytes(w, "PAR1", 4);
  rc = set_error(w, -errno, "%s: cannot create: %s", path, strerror(errno));
  free(w->path);
  w->path = NULL;
  return rc;
}

int ni_pq_create(struct ni_pq **out, const char *path, const struct ni_pq_field *fields, size_t n_fields,
                 const struct ni_pq_options *options, char *message, size_t message_bytes) {
  static const struct ni_pq_options defaults;
  const struct ni_pq_options *o = options ? options : &defaults;
  struct ni_pq *w = *out = calloc(1, sizeof *w);
  if (!w) {
    snprintf(message, message_bytes, "%s: out of memory", path);
    return -ENOMEM;
  }
  w->fd = -1;
  w->n_fields = n_fields;
  w->row_group_rows = o->row_group_rows ? o->row_group_rows : DEFAULT_ROW_GROUP_ROWS;
  w->memory_bytes = o->memory_bytes ? o->memory_bytes : DEFAULT_MEMORY_BYTES;
  w->env.page_rows = ((o->page_rows ? o->page_rows : DEFAULT_PAGE_ROWS) + 7) / 8 * 8;
  w->env.dict_entries = o->dict_entries ? o->dict_entries : DEFAULT_DICT_ENTRIES;
  w->env.no_dict = o->no_dict;
  int rc = begin_file(w, path, fields, o);
  if (rc == 0)
    return 0;
  snprintf(message, message_bytes, "%s", w->message);
  ni_pq_abort(w);
  *out = NULL;
  return rc;
}

const char *ni_pq_error(const struct ni_pq *w) { return w->message; }

/* What decides where a row group ends; the same for the same rows. */
static size_t measure_group(const struct ni_pq *w, size_t *finished_pages) {
  size_t sum = sizeof *w + ni_chunk_env_memory_bytes(&w->env) + w->row_groups.cap, blocks = 0;
  for (size_t i = 0; i < w->n_fields; i++) {
    sum += ni_chunk_memory_bytes(&w->chunks[i], &w->env);
    blocks += w->chunks[i].pages.n_blocks;
  }
  *finished_pages = blocks * sizeof(struct ni_block);
  return sum;
}

size_t ni_pq_memory_bytes(const struct ni_pq *w) {
  size_t unused, sum = measure_group(w, &unused) + w->n_fields * sizeof *w->chunks;
  for (size_t i = 0; i < w->n_fields; i++)
    sum += w->chunks[i].code_map_cap * sizeof *w->chunks[i].code_map;
  return sum;
}

/* One chunk to the file: dictionary page, then the data pages. */
static int write_chunk(struct ni_pq *w, size_t i) {
  struct ni_chunk *c = &w->chunks[i];
  size_t packed;
  int rc = ni_chunk_close(c, &w->env);
  if (rc == 0)
    rc = ni_chunk_dict_page(c, &w->env, &packed);
  if (rc)
    return set_error(w, rc, "%s: column %s: cannot encode: %s", w->path, w->fields[i].name, strerror(-rc));
  w->places[i].dict_offset = packed ? w->offset : 0;
  if (packed && (rc = write_bytes(w, w->env.header.data, w->env.header.len)) == 0)
    rc = write_bytes(w, w->env.packed, packed);
  w->places[i].data_offset = w->offset;
  for (struct ni_block *b = c->pages.first; b && rc == 0; b = b->next)
    rc = write_bytes(w, b->data, b->used);
  return rc;
}

static int write_row_group(struct ni_pq *w) {
  if (w->group_rows == 0)
    return 0;
  for (size_t i = 0; i < w->n_fields; i++) {
    int rc = write_chunk(w, i);
    if (rc)
      return rc;
  }
  ni_footer_row_group(&w->row_groups, w->fields, w->chunks, w->places, w->n_fields, w->env.codec.codec,
                      w->group_rows);
  if (w->row_groups.failed)
    return set_error(w, -ENOMEM, "%s: out of memory", w->path);
  if (w->row_groups.len > MAX_FOOTER_BYTES)
    return set_error(w, -EFBIG, "%s: more than %zu bytes of footer; write larger row groups", w->path,
                     MAX_FOOTER_BYTES);
  for (size_t i = 0; i < w->n_fields; i++)
    ni_chunk_reset(&w->chunks[i], &w->env);
  w->group_rows = 0;
  w->n_row_groups++;
  return 0;
}

static bool is_group_full(const struct ni_pq *w) {
  if (w->group_rows >= w->row_group_rows)
    return true;
  /* Looked at in fixed places, or a row group would end by how the caller cuts its batches. */
  if (w->group_rows % NI_SLICE_ROWS)
    return false;
  size_t finished;
  if (measure_group(w, &finished) < w->memory_bytes)
    return false;
  /*
   * Buffers alone may pass a small budget; ending a row group before there are pages to write would not help.
   */
  return w->group_rows >= w->env.page_rows || finished >= w->memory_bytes / 2;
}

static int check_columns(struct ni_pq *w, const struct ni_pq_column *columns) {
  for (size_t i = 0; i < w->n_fields; i++) {
    const struct ni_pq_column *in = &columns[i];
    const bool is_null = in->repeat && in->valid && !in->valid[0];
    if (!in->values && !is_null)
      return set_error(w, -EINVAL, "%s: column %s: no values", w->path, w->fields[i].name);
    const bool text = w->fields[i].type == NI_PQ_STRING;
    const bool lacks_texts = text && in->dict && !in->dict->values && in->dict->n;
    if (text != (in->dict != NULL) || lacks_texts)
      return set_error(w, -EINVAL, "%s: column %s: %s", w->path, w->fields[i].name,
                       text ? "strings without a dictionary" : "a dictionary without strings");
  }
  return 0;
}

int ni_pq_append(struct ni_pq *w, const struct ni_pq_column *columns, size_t n_rows) {
  if (w->error)
    return w->error;
  if (n_rows == 0)
    return 0;
  int rc = check_columns(w, columns);
  if (rc)
    return rc;
  for (size_t off = 0; off < n_rows;) {
    size_t n = NI_SLICE_ROWS - w->group_rows % NI_SLICE_ROWS;
    if (n > w->row_group_rows - w->group_rows)
      n = w->row_group_rows - w->group_rows;
    if (n > n_rows - off)
      n = n_rows - off;
    for (size_t i = 0; i < w->n_fields; i++) {
      rc = ni_chunk_append(&w->chunks[i], &w->env, &columns[i], off, (uint32_t)n);
      if (rc)
        return set_error(w, rc, "%s: column %s, rows %llu to %llu: %s", w->path, w->fields[i].name,
                         (unsigned long long)w->n_rows, (unsigned long long)(w->n_rows + n - 1),
                         rc == -EINVAL         ? "a code outside its dictionary"
                             : rc == -EMSGSIZE ? "a string over 16 MiB"
                                               : strerror(-rc));
    }
    off += n;
    w->n_rows += n;
    w->group_rows += (uint32_t)n;
    if (is_group_full(w) && (rc = write_row_group(w)) != 0)
      return rc;
  }
  return 0;
}

int ni_pq_finish(struct ni_pq *w, struct ni_pq_totals *totals) {
  if (w->error)
    return w->error;
  int rc = write_row_group(w);
  if (rc)
    return rc;
  struct ni_tc t = {0};
  const struct ni_footer footer = {w->fields, w->n_fields, &w->row_groups, w->n_row_groups, w->n_rows};
  ni_footer_file(&t, &footer);
  rc = t.failed ? set_error(w, -ENOMEM, "%s: out of memory", w->path) : write_bytes(w, t.data, t.len);
  ni_tc_free(&t);
  if (rc)
    return rc;
  rc = close(w->fd) != 0 && errno != EINTR ? -errno : 0; /* a network file system reports lost writes there */
  w->fd = -1;
  if (rc)
    return set_error(w, rc, "%s: cannot complete: %s", w->path, strerror(-rc));
  if (totals)
    *totals = (struct ni_pq_totals){w->n_rows, w->n_row_groups, w->offset};
  free_writer(w);
  return 0;
}

void ni_pq_abort(struct ni_pq *w) {
  if (!w)
    return;
  if (w->fd >= 0)
    close(w->fd);
  if (w->path)
    unlink(w->path);
  free_writer(w);
}
