/*
 * Text is collected in a small stage and given to zlib by tens of KiB: a call of deflate a line would cost 8 % more.
 *
 * Room in the output buffer is made before zlib is called, for the worst that the call can put out; so zlib never stops
 * half way for lack of room, and an append is taken whole or not at all.
 *
 * Worst case of a call with n bytes: what zlib holds back from earlier calls (its pending buffer, 4 bytes for each of
 * lit_bufsize = 2^(memLevel + 6) symbols), the n bytes stored uncompressed, 5 bytes per stored block, header and
 * trailer. The loop around deflate still looks at the result: should the bound ever be wrong, the block is marked
 * broken and reported, not cut.
 */
#include "gz_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MEM_LEVEL 8 /* zlib's own default: 9 gains nothing and is 10 % slower, 7 gains nothing and holds less */
#define FIRST_BYTES ((size_t)64 << 10)
#define STAGE_BYTES ((size_t)32 << 10) /* stays in the level-2 cache together with zlib's window */
#define HELD_BACK ((size_t)4 << (MEM_LEVEL + 6))

struct ni_gz {
  z_stream z;
  unsigned char *out;
  size_t cap, len; /* of out */
  unsigned char *stage; /* compressing only: text not yet given to zlib */
  size_t staged;
  size_t text_bytes;
  int level;
  bool compress, finished, broken;
};

/*
 * Our text repeats the line before it nearly byte for byte, so long matches are near and worth looking for, while
 * inserting every byte of a long match into the hash is wasted. Measured (test_gz_writer --measure): against level 3
 * as it is, 2 to 3 % smaller in the same time; against level 1, 11 to 18 % smaller for 14 % more time. Must be
 * repeated after each deflateReset, which restores the level's own parameters.
 */
static void tune(struct ni_gz *gz) {
  if (gz->compress && gz->level == NI_GZ_LEVEL) deflateTune(&gz->z, 4, 16, 128, 16);
}

struct ni_gz *ni_gz_create(bool compress, int level) {
  struct ni_gz *gz = calloc(1, sizeof *gz);
  if (!gz) return NULL;
  gz->compress = compress;
  gz->cap = FIRST_BYTES;
  gz->out = malloc(gz->cap);
  if (!gz->out) goto out_free;
  gz->stage = compress ? malloc(STAGE_BYTES) : NULL;
  if (compress && !gz->stage) goto out_free_out;
  gz->level = level < 1 || level > 9 ? NI_GZ_LEVEL : level;
  /* windowBits 31: a gzip member of 32 KiB window, the widest that every reader takes. */
  if (compress && deflateInit2(&gz->z, gz->level, Z_DEFLATED, 31, MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
    goto out_free_stage;
  tune(gz);
  return gz;
out_free_stage:
  free(gz->stage);
out_free_out:
  free(gz->out);
out_free:
  free(gz);
  return NULL;
}

void ni_gz_free(struct ni_gz *gz) {
  if (!gz) return;
  if (gz->compress) deflateEnd(&gz->z);
  free(gz->stage);
  free(gz->out);
  free(gz);
}

/* Room for n more bytes of output; grows by half so that a flush of megabytes copies its buffer a few times only. */
static int reserve(struct ni_gz *gz, size_t n) {
  if (n > NI_GZ_MAX_BYTES || gz->len > NI_GZ_MAX_BYTES - n) return -EFBIG;
  size_t need = gz->len + n;
  if (need <= gz->cap) return 0;
  size_t cap = gz->cap + gz->cap / 2;
  if (cap < need) cap = need;
  if (cap > NI_GZ_MAX_BYTES) cap = NI_GZ_MAX_BYTES;
  unsigned char *p = realloc(gz->out, cap);
  if (!p) return -ENOMEM;
  gz->out = p;
  gz->cap = cap;
  return 0;
}

/* Gives n bytes to zlib, all or (no memory, too large) none of them. Z_FINISH ends the member. */
static int run(struct ni_gz *gz, const void *data, size_t n, int flush) {
  int err = reserve(gz, n + (n >> 8) + HELD_BACK + 64);
  if (err) return err;
  gz->z.next_in = (Bytef *)(uintptr_t)data; /* zlib's older headers lack the const; it does not write there */
  gz->z.avail_in = (uInt)n;
  gz->z.next_out = gz->out + gz->len;
  gz->z.avail_out = (uInt)(gz->cap - gz->len);
  int ret = deflate(&gz->z, flush);
  gz->len = gz->cap - gz->z.avail_out;
  if (ret == (flush == Z_FINISH ? Z_STREAM_END : Z_OK) && gz->z.avail_in == 0) return 0;
  gz->broken = true;
  return -EIO;
}

/* Without input deflate would call it an error, unless it is to finish. */
static int run_stage(struct ni_gz *gz, int flush) {
  if (gz->staged == 0 && flush != Z_FINISH) return 0;
  int err = run(gz, gz->stage, gz->staged, flush);
  if (err == 0) gz->staged = 0;
  return err;
}

/* What is taken must be able to come out: stage, n bytes of text and the end of the member, were nothing compressible. */
static size_t worst_case(const struct ni_gz *gz, size_t n) {
  return gz->compress ? n + gz->staged + ((n + gz->staged) >> 8) + 2 * (HELD_BACK + 64) : n;
}

static int may_take(const struct ni_gz *gz, size_t n) {
  if (gz->finished) return -EBUSY;
  if (gz->broken) return -EIO;
  return n > NI_GZ_MAX_BYTES || gz->len + worst_case(gz, n) > NI_GZ_MAX_BYTES ? -EFBIG : 0;
}

int ni_gz_reserve(struct ni_gz *gz, size_t n) {
  int err = may_take(gz, n);
  /* Every call of deflate asks for its own worst case; a stage at a time, they need one more at the end. */
  return err ? err : reserve(gz, worst_case(gz, n) + (gz->compress ? HELD_BACK + 64 : 0));
}

int ni_gz_append(struct ni_gz *gz, const void *data, size_t n) {
  int err = may_take(gz, n);
  if (err || n == 0) return err;
  if (!gz->compress) {
    err = reserve(gz, n);
    if (err) return err;
    memcpy(gz->out + gz->len, data, n);
    gz->len += n;
  } else {
    if (n > STAGE_BYTES - gz->staged) err = run_stage(gz, Z_NO_FLUSH);
    if (!err && n > STAGE_BYTES) {
      err = run(gz, data, n, Z_NO_FLUSH);
    } else if (!err) {
      memcpy(gz->stage + gz->staged, data, n);
      gz->staged += n;
    }
    if (err) return err;
  }
  gz->text_bytes += n;
  return 0;
}

int ni_gz_finish_member(struct ni_gz *gz, const void **data, size_t *n) {
  *data = gz->out;
  *n = 0;
  if (gz->broken) return -EIO;
  if (gz->text_bytes == 0) return 0;
  if (!gz->finished && gz->compress) {
    int err = run_stage(gz, Z_FINISH);
    if (err) return err;
  }
  gz->finished = true;
  *data = gz->out;
  *n = gz->len;
  return 0;
}

void ni_gz_release(struct ni_gz *gz) {
  if (gz->compress) deflateReset(&gz->z);
  tune(gz);
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

void ni_gz_discard(struct ni_gz *gz) { ni_gz_release(gz); }

size_t ni_gz_text_bytes(const struct ni_gz *gz) { return gz->text_bytes; }
bool ni_gz_finished(const struct ni_gz *gz) { return gz->finished; }
