/*
 * Text is collected in a stage; a full one becomes a gzip member. A member holds whole lines as long as a
 * line fits a stage, so that what a cut file loses, and what a reader gives to another thread, are lines.
 *
 * Room in the output buffer is made before a member is written, for the worst that it can take; so an append
 * is taken whole or not at all. Should the bound ever be wrong, the block is marked broken and reported, not
 * cut.
 */
#include "gz_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)64 << 10)
/* Where text is as ours, a window of 32 KiB begins to pay in members of 64 KiB; 256 KiB are 8 % smaller than
 * those, 1 MiB would be 2 % more, and would not stay in the level-2 cache. */
#define STAGE_BYTES ((size_t)256 << 10)

struct ni_gz {
  struct ni_codec *codec; /* NULL: plain */
  unsigned char *out;
  size_t cap, len; /* of out */
  /* compressing only: text that is in no member yet; its pages are touched as it fills */
  unsigned char *stage;
  size_t staged;
  size_t text_bytes;
  size_t last_text, last_len; /* of the last member, whichever block it was of */
  bool finished, broken;
};

struct ni_gz *ni_gz_create(bool compress, int level) {
  struct ni_gz *gz = calloc(1, sizeof *gz);
  if (!gz)
    return NULL;
  gz->cap = FIRST_BYTES;
  gz->out = malloc(gz->cap);
  if (compress) {
    gz->stage = malloc(STAGE_BYTES);
    gz->codec = ni_codec_new(level);
  }
  if (gz->out && (!compress || (gz->stage && gz->codec)))
    return gz;
  ni_gz_free(gz);
  return NULL;
}

void ni_gz_free(struct ni_gz *gz) {
  if (!gz)
    return;
  ni_codec_free(gz->codec);
  free(gz->stage);
  free(gz->out);
  free(gz);
}

/*
 * Room for n more bytes of output; grows by half so that a flush of megabytes copies its buffer a few times
 * only.
 */
static int reserve(struct ni_gz *gz, size_t n) {
  if (n > NI_GZ_MAX_BYTES || gz->len > NI_GZ_MAX_BYTES - n)
    return -EFBIG;
  size_t need = gz->len + n;
  if (need <= gz->cap)
    return 0;
  size_t cap = gz->cap + gz->cap / 2;
  if (cap < need)
    cap = need;
  if (cap > NI_GZ_MAX_BYTES)
    cap = NI_GZ_MAX_BYTES;
  unsigned char *p = realloc(gz->out, cap);
  if (!p)
    return -ENOMEM;
  gz->out = p;
  gz->cap = cap;
  return 0;
}

/* The stage becomes a member; its room must have been reserved. */
static int put_member(struct ni_gz *gz) {
  size_t n = ni_codec_member(gz->codec, gz->stage, gz->staged, gz->out + gz->len, gz->cap - gz->len);
  gz->broken = n == 0;
  if (!n)
    return -EIO;
  gz->last_text = gz->staged;
  gz->last_len = n;
  gz->len += n;
  gz->staged = 0;
  return 0;
}

/* What is taken must be able to come out: the stage and n bytes more, were nothing compressible. Of two
 * members in turn at least one stage is full, since the second began with a line that the first had no room
 * for. */
static size_t worst_case(const struct ni_gz *gz, size_t n) {
  if (!gz->codec)
    return n;
  size_t text = gz->staged + n, members = 2 * (text / STAGE_BYTES) + 2;
  return text + (text >> 8) + members * ni_codec_bound(0);
}

static int may_take(const struct ni_gz *gz, size_t n) {
  if (gz->finished)
    return -EBUSY;
  if (gz->broken)
    return -EIO;
  return n > NI_GZ_MAX_BYTES || gz->len + worst_case(gz, n) > NI_GZ_MAX_BYTES ? -EFBIG : 0;
}

int ni_gz_reserve(struct ni_gz *gz, size_t n) {
  int err = may_take(gz, n);
  return err ? err : reserve(gz, worst_case(gz, n));
}

/* Text that the stage has no room for: ends members until it has. */
static int append_over(struct ni_gz *gz, const unsigned char *data, size_t n) {
  int err = reserve(gz, worst_case(gz, n));
  if (!err && gz->staged)
    err = put_member(gz);
  while (!err && n > STAGE_BYTES) {
    memcpy(gz->stage, data, STAGE_BYTES);
    gz->staged = STAGE_BYTES;
    err = put_member(gz);
    data += STAGE_BYTES;
    n -= STAGE_BYTES;
  }
  if (err)
    return err;
  memcpy(gz->stage, data, n);
  gz->staged = n;
  return 0;
}

int ni_gz_append(struct ni_gz *gz, const void *data, size_t n) {
  int err = may_take(gz, n);
  if (err || n == 0)
    return err;
  if (!gz->codec) {
    err = reserve(gz, n);
    if (err)
      return err;
    memcpy(gz->out + gz->len, data, n);
    gz->len += n;
  } else if (n > STAGE_BYTES - gz->staged) {
    err = append_over(gz, data, n);
    if (err)
      return err;
  } else {
    memcpy(gz->stage + gz->staged, data, n);
    gz->staged += n;
  }
  gz->text_bytes += n;
  return 0;
}

int ni_gz_finish(struct ni_gz *gz, const void **data, size_t *n) {
  *data = gz->out;
  *n = 0;
  if (gz->broken)
    return -EIO;
  if (gz->text_bytes == 0)
    return 0;
  if (!gz->finished && gz->staged) {
    int err = reserve(gz, ni_codec_bound(gz->staged));
    if (!err)
      err = put_member(gz);
    if (err)
      return err;
  }
  gz->finished = true;
  *data = gz->out;
  *n = gz->len;
  return 0;
}

void ni_gz_release(struct ni_gz *gz) {
  gz->len = gz->staged = 0;
  gz->text_bytes = 0;
  gz->finished = gz->broken = false;
  /* A burst may have left a large buffer behind; the job should have that memory back. */
  if (gz->cap > 16 * FIRST_BYTES) {
    unsigned char *p = realloc(gz->out, 16 * FIRST_BYTES);
    if (p) {
      gz->out = p;
      gz->cap = 16 * FIRST_BYTES;
    }
  }
}

size_t ni_gz_text_bytes(const struct ni_gz *gz) { return gz->text_bytes; }
size_t ni_gz_bytes(const struct ni_gz *gz) {
  /* ours come to less */
  return gz->len + (gz->last_text ? gz->staged * gz->last_len / gz->last_text : gz->staged / 4);
}
bool ni_gz_finished(const struct ni_gz *gz) { return gz->finished; }
