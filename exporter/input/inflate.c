#include "inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef NI_HAVE_ISAL
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#endif

struct ni_inflater {
  bool is_zlib, seek;
  z_stream zs;
#ifdef NI_HAVE_ISAL
  struct inflate_state isal;
  uint64_t taken; /* of this member's bytes */
#endif
};

/* isa-l tells where a block begins only while it waits for the rest of its header. So it gets the input in
 * pieces, counted from where the member begins, and finds blocks whose header goes across the end of one:
 * most are as long as a piece. */
enum { PIECE = 64 };

int ni_inflater_open(struct ni_inflater **out, enum ni_inflate_engine engine) {
  *out = NULL;
  if (engine == NI_INFLATE_AUTO) {
    const char *wish = getenv("NI_INFLATE");
#ifdef NI_HAVE_ISAL
    engine = wish && strcmp(wish, "zlib") == 0 ? NI_INFLATE_ZLIB : NI_INFLATE_ISAL;
#else
    (void)wish;
    engine = NI_INFLATE_ZLIB;
#endif
  }
#ifndef NI_HAVE_ISAL
  if (engine == NI_INFLATE_ISAL)
    return -ENOTSUP;
#endif
  struct ni_inflater *z = malloc(sizeof *z); /* isa-l's 80 KB of window and tables need no clearing */
  if (!z)
    return -ENOMEM;
  z->is_zlib = engine != NI_INFLATE_ISAL;
  z->zs = (z_stream){0};
  if (z->is_zlib && inflateInit2(&z->zs, 15 + 16) != Z_OK) {
    free(z);
    return -ENOMEM;
  }
#ifdef NI_HAVE_ISAL
  if (!z->is_zlib)
    isal_inflate_init(&z->isal);
#endif
  ni_inflater_reset(z);
  *out = z;
  return 0;
}

void ni_inflater_free(struct ni_inflater *z) {
  if (!z)
    return;
  if (z->is_zlib)
    inflateEnd(&z->zs);
  free(z);
}

void ni_inflater_reset(struct ni_inflater *z) {
  z->seek = false;
  if (z->is_zlib) {
    inflateReset2(&z->zs, 15 + 16);
    return;
  }
#ifdef NI_HAVE_ISAL
  isal_inflate_reset(&z->isal);
  z->isal.crc_flag = ISAL_GZIP;
  z->taken = 0;
#endif
}

static enum ni_inflate_result step_zlib(struct ni_inflater *z, const uint8_t **in, size_t *in_len,
                                        uint8_t **out, size_t *out_len) {
  uInt ni = *in_len > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)*in_len;
  uInt no = *out_len > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)*out_len;
  z->zs.next_in = (Bytef *)(uintptr_t)*in;
  z->zs.avail_in = ni;
  z->zs.next_out = *out;
  z->zs.avail_out = no;
  z->zs.msg = NULL;
  int r = inflate(&z->zs, z->seek ? Z_BLOCK : Z_NO_FLUSH);
  *in = z->zs.next_in;
  *in_len -= ni - z->zs.avail_in;
  *out = z->zs.next_out;
  *out_len -= no - z->zs.avail_out;
  if (r == Z_STREAM_END)
    return NI_INF_END;
  if (r == Z_OK || r == Z_BUF_ERROR)
    return NI_INF_MORE;
  const char *m = z->zs.msg ? z->zs.msg : "";
  if (strstr(m, "check"))
    return strstr(m, "header") ? NI_INF_BAD_HEADER : NI_INF_BAD_CHECKSUM;
  return strstr(m, "header crc") || strstr(m, "unknown compression") ? NI_INF_BAD_HEADER : NI_INF_BAD_DATA;
}

#ifdef NI_HAVE_ISAL
static enum ni_inflate_result step_isal(struct ni_inflater *z, const uint8_t **in, size_t *in_len,
                                        uint8_t **out, size_t *out_len) {
  struct inflate_state *s = &z->isal;
  uint32_t ni = *in_len > INT32_MAX ? INT32_MAX : (uint32_t)*in_len;
  uint32_t no = *out_len > INT32_MAX ? INT32_MAX : (uint32_t)*out_len;
  s->next_in = (uint8_t *)(uintptr_t)*in;
  s->avail_in = ni;
  s->next_out = *out;
  s->avail_out = no;
  int r = isal_inflate(s);
  *in = s->next_in;
  *in_len -= ni - s->avail_in;
  z->taken += ni - s->avail_in;
  *out = s->next_out;
  *out_len -= no - s->avail_out;
  switch (r) {
    case ISAL_DECOMP_OK:
    case ISAL_END_INPUT:
    case ISAL_OUT_OVERFLOW:
      return s->block_state == ISAL_BLOCK_FINISH ? NI_INF_END : NI_INF_MORE;
    case ISAL_INVALID_WRAPPER:
    case ISAL_UNSUPPORTED_METHOD:
      return NI_INF_BAD_HEADER;
    case ISAL_INCORRECT_CHECKSUM:
      return NI_INF_BAD_CHECKSUM;
    default:
      return NI_INF_BAD_DATA;
  }
}

/* It waits for more of a header at the end of a piece. */
static bool is_waiting_for_header(const struct ni_inflater *z) {
  return z->isal.block_state == ISAL_BLOCK_HDR && z->taken % PIECE == 0;
}

static enum ni_inflate_result seek_isal(struct ni_inflater *z, const uint8_t **in, size_t *in_len,
                                        uint8_t **out, size_t *out_len) {
  unsigned ahead;
  for (;;) {
    /* 0: its text first */
    size_t most = is_waiting_for_header(z) && !ni_inflater_at_block(z, &ahead) ? 0 : PIECE - z->taken % PIECE;
    size_t n = *in_len < most ? *in_len : most, left = n, room = *out_len;
    enum ni_inflate_result r = step_isal(z, in, &left, out, out_len);
    *in_len -= n - left;
    bool moved = left < n || *out_len < room;
    const bool can_go_on = r == NI_INF_MORE && moved && *in_len > 0 && *out_len > 0;
    if (!can_go_on || ni_inflater_at_block(z, &ahead))
      return r;
  }
}
#endif

enum ni_inflate_result ni_inflater_step(struct ni_inflater *z, const uint8_t **in, size_t *in_len,
                                        uint8_t **out, size_t *out_len) {
#ifdef NI_HAVE_ISAL
  if (!z->is_zlib)
    return (z->seek ? seek_isal : step_isal)(z, in, in_len, out, out_len);
#endif
  return step_zlib(z, in, in_len, out, out_len);
}

void ni_inflater_seek(struct ni_inflater *z, bool on) { z->seek = on; }

bool ni_inflater_at_block(const struct ni_inflater *z, unsigned *ahead) {
#ifdef NI_HAVE_ISAL
  const struct inflate_state *s = &z->isal;
  *ahead = (unsigned)(s->tmp_in_size * 8 + s->read_in_length);
  if (!z->is_zlib) {
    const bool has_given_all = s->tmp_out_processed == s->tmp_out_valid && s->write_overflow_len == 0 &&
        s->copy_overflow_length == 0;
    return z->seek && is_waiting_for_header(z) && *ahead <= NI_SEEK_BITS && has_given_all;
  }
#endif
  *ahead = (unsigned)z->zs.data_type & 7;
  return z->seek && (z->zs.data_type & 128) && !(z->zs.data_type & 64);
}

size_t ni_inflater_window(struct ni_inflater *z, uint8_t window[NI_WINDOW_BYTES]) {
#ifdef NI_HAVE_ISAL
  size_t have = (size_t)z->isal.tmp_out_valid, most = have < NI_WINDOW_BYTES ? have : NI_WINDOW_BYTES;
  if (!z->is_zlib)
    memcpy(window, z->isal.tmp_out_buffer + have - most, most);
  if (!z->is_zlib)
    return most;
#endif
  uInt n = 0;
  return inflateGetDictionary(&z->zs, window, &n) == Z_OK ? n : 0;
}

int ni_inflater_enter(struct ni_inflater *z, unsigned bits, uint8_t byte, const uint8_t *window, size_t n) {
  int left = bits ? byte >> (8 - bits) : 0;
#ifdef NI_HAVE_ISAL
  if (!z->is_zlib) {
    isal_inflate_reset(&z->isal);
    z->isal.crc_flag = ISAL_DEFLATE;
    z->isal.read_in = (uint64_t)left;
    z->isal.read_in_length = (int32_t)bits;
    return isal_inflate_set_dict(&z->isal, (uint8_t *)(uintptr_t)window, (uint32_t)n) == COMP_OK ? 0
                                                                                                 : -EBADMSG;
  }
#endif
  bool is_ready =
      inflateReset2(&z->zs, -15) == Z_OK && (!bits || inflatePrime(&z->zs, (int)bits, left) == Z_OK);
  return is_ready && inflateSetDictionary(&z->zs, window, (uInt)n) == Z_OK ? 0 : -EBADMSG;
}

uint32_t ni_crc32_join(uint32_t crc, uint32_t behind, uint64_t n) {
  return (uint32_t)crc32_combine(crc, behind, (z_off_t)n);
}

uint32_t ni_crc32(uint32_t crc, const void *bytes, size_t n) {
#ifdef NI_HAVE_ISAL
  return crc32_gzip_refl(crc, bytes, n);
#else
  return (uint32_t)crc32_z(crc, bytes, n);
#endif
}

const char *ni_inflate_result_name(enum ni_inflate_result r) {
  switch (r) {
    case NI_INF_MORE:
      return "cut";
    case NI_INF_END:
      return "ok";
    case NI_INF_BAD_HEADER:
      return "bad gzip header";
    case NI_INF_BAD_DATA:
      return "damaged gzip data";
    case NI_INF_BAD_CHECKSUM:
      return "wrong gzip checksum";
  }
  return "unknown";
}
