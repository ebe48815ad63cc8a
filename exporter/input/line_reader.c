#include "line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/base/array.h"
#include "gzip_header.h"
#include "line_border.h"
#include "parse/parse.h"

enum { TRAILER_BYTES = 8 }; /* of a gzip member */

/* Reads at the reader's place; 0 at the end of the range. */
static size_t read_bytes(struct ni_reader *r, void *buf, size_t n) {
  if (r->end_of_file)
    return 0;
  if (n > r->to - r->at)
    n = (size_t)(r->to - r->at);
  ssize_t got;
  do {
    got = n > 0 ? pread(r->fd, buf, n, (off_t)r->at) : 0;
  } while (got < 0 && errno == EINTR);
  if (got < 0)
    r->error = errno;
  if (got <= 0) {
    r->end_of_file = true;
    return 0;
  }
  r->at += (size_t)got;
  r->stats.file_bytes += (size_t)got;
  return (size_t)got;
}

size_t ni_reader_look_ahead(struct ni_reader *r, size_t want) {
  while (r->in_len - r->in_pos < want && !r->end_of_file) {
    memmove(r->in, r->in + r->in_pos, r->in_len - r->in_pos);
    r->in_len -= r->in_pos;
    r->in_pos = 0;
    r->in_len += read_bytes(r, r->in + r->in_len, r->in_size - r->in_len);
  }
  return r->in_len - r->in_pos;
}

static void note_damage(struct ni_reader *r, enum ni_inflate_result what, uint64_t at) {
  if (!r->stats.damages++) {
    r->stats.first_damage = what;
    r->stats.first_damage_at = at;
  }
  if (r->stats.damages >= DAMAGES_MAX)
    r->stats.gave_up = r->end_of_text = true;
}

/* The line that damage cut off must not be joined with what comes after it. */
static void drop_partial_line(struct ni_reader *r) {
  char *lf = r->end > r->pos ? memrchr(r->text + r->pos, '\n', r->end - r->pos) : NULL;
  size_t keep = lf ? (size_t)(lf + 1 - r->text) : r->pos;
  if (keep < r->end || r->skipped)
    r->stats.lost_partial++;
  r->end = keep;
  if (r->searched > keep)
    r->searched = keep;
  if (!lf)
    r->skipped = 0;
}

/* Between members: true when the next one begins at in[in_pos]. */
static bool find_member(struct ni_reader *r) {
  bool reported = false;
  for (;;) {
    size_t n = ni_reader_look_ahead(r, NI_GZIP_HEADER_BYTES);
    const uint8_t *p = r->in + r->in_pos;
    if (n == 0)
      break;
    if (n >= NI_GZIP_HEADER_BYTES ? ni_gzip_header(p) : (p[0] == 0x1f && (n < 2 || p[1] == 0x8b)))
      return true;
    if (*p != 0) {
      /* tar and tape pad with zeros; anything else is told. */
      if (!reported)
        note_damage(r, NI_INF_END, ni_reader_at(r));
      reported = true;
      r->stats.garbage_bytes++;
    }
    r->in_pos++;
    ni_border_sum(r, p, 1);
  }
  r->end_of_text = true;
  return false;
}

/*
 * After damage: looks for the next member, from the byte after the damaged one's first where the data was
 * bad.
 */
static void find_next_member(struct ni_reader *r, enum ni_inflate_result what) {
  drop_partial_line(r);
  r->in_member = r->entered_within = false;
  if (what != NI_INF_BAD_CHECKSUM) {
    r->stats.file_bytes -= r->at - (r->member_at + 1);
    r->at = r->member_at + 1;
    r->in_pos = r->in_len = 0;
    r->end_of_file = false;
  }
  for (;;) {
    size_t n = ni_reader_look_ahead(r, NI_GZIP_HEADER_BYTES);
    if (n < NI_GZIP_HEADER_BYTES)
      break;
    /* memchr first: the byte is rare. */
    const uint8_t *p = r->in + r->in_pos, *hit = memchr(p, 0x1f, n - NI_GZIP_HEADER_BYTES + 1);
    r->in_pos = hit ? (size_t)(hit - r->in) : r->in_len - NI_GZIP_HEADER_BYTES + 1;
    if (hit && ni_gzip_header(hit))
      return;
    if (hit)
      r->in_pos++;
  }
  r->end_of_text = true;
}

/* Notes that so much text was made behind end. A range that begins and ends in a member has less. */
static void note_new_text(struct ni_reader *r, size_t made) {
  r->member_text += made;
  r->stats.text_bytes += made;
  if (r->skip && made) {
    size_t n = r->skip < made ? (size_t)r->skip : made;
    memmove(r->text + r->end, r->text + r->end + n, made - n);
    r->skip -= n;
    made -= n;
  }
  if (made >= r->left) {
    made = (size_t)r->left;
    r->end_of_text = true;
  }
  r->left -= made;
  r->end += made;
  if (made)
    r->last = r->text[r->end - 1];
}

static int fill_gzip(struct ni_reader *r) {
  unsigned ahead;
  while (r->end < r->size && !r->end_of_text) {
    if (!r->in_member) {
      if (!find_member(r))
        break;
      r->member_at = ni_reader_at(r);
      r->in_member = true;
      r->member_text = r->point_text = 0;
      r->stats.members++;
      ni_inflater_reset(r->inflater);
    }
    ni_reader_look_ahead(r, 1);
    const uint8_t *in = r->in + r->in_pos;
    size_t in_left = r->in_len - r->in_pos, in_had = in_left, out_left = ni_border_room(r, r->size - r->end),
           out_had = out_left;
    uint8_t *out = (uint8_t *)r->text + r->end;
    enum ni_inflate_result z = ni_inflater_step(r->inflater, &in, &in_left, &out, &out_left);
    r->in_pos = r->in_len - in_left;
    note_new_text(r, out_had - out_left);
    ni_border_sum(r, r->in + r->in_pos - (in_had - in_left), in_had - in_left);
    if (ni_border_look(r) < 0)
      return -ENOMEM;
    if (z == NI_INF_END) {
      if (r->entered_within)
        r->in_pos +=
            ni_reader_look_ahead(r, TRAILER_BYTES) < TRAILER_BYTES ? r->in_len - r->in_pos : TRAILER_BYTES;
      r->in_member = r->entered_within = false;
      ni_border_member(r);
    } else if (z != NI_INF_MORE) {
      note_damage(r, z, r->member_at);
      find_next_member(r, z);
    } else if (in_had == in_left && out_had == out_left) {
      if (r->end_of_file) {
        r->stats.cut = r->end_of_text = true;
        note_damage(r, NI_INF_MORE, ni_reader_at(r));
      } else if (in_had > 0 && !ni_inflater_at_block(r->inflater, &ahead)) {
        note_damage(r, NI_INF_BAD_DATA,
                    ni_reader_at(r)); /* no progress with input and room: never loop on it */
        find_next_member(r, NI_INF_BAD_DATA);
      }
    }
  }
  return 0;
}

/* Makes more text behind end. */
static int fill_text(struct ni_reader *r) {
  if (r->stats.gzip)
    return fill_gzip(r);
  size_t n = read_bytes(r, r->text + r->end, r->size - r->end);
  r->end += n;
  r->stats.text_bytes += n;
  if (n > 0)
    r->last = r->text[r->end - 1];
  if (n == 0)
    r->end_of_text = true;
  return 0;
}

/*
 * Room for more: the unfinished line moves to the front; a line that fills the buffer gets a larger one or is
 * dropped.
 */
static int make_room(struct ni_reader *r) {
  size_t have = r->end - r->pos;
  if (r->skipped || have > r->max_line) {
    r->skipped += have;
    ni_border_text(r, r->end);
    r->text_at += r->end;
    r->pos = r->searched = r->end = r->summed = 0;
    return 0;
  }
  if (r->pos > 0) {
    ni_border_text(r, r->pos);
    r->summed = 0;
    r->text_at += r->pos;
    memmove(r->text, r->text + r->pos, have);
    r->searched -= r->pos;
    r->pos = 0;
    r->end = have;
  }
  if (have < r->size / 2)
    return 0;
  size_t cap = r->size + NI_PARSE_PADDING;
  if (!ni_array_more(&r->text, &cap, 0, 1))
    return -ENOMEM;
  r->size = cap - NI_PARSE_PADDING;
  return 0;
}

static void return_line(struct ni_reader *r, size_t line_end, bool terminated, struct ni_text *out) {
  size_t len = line_end - r->pos;
  r->at_border = false;
  if (r->borders && (!r->stats.gzip || r->next_mark < r->n_marks))
    ni_border_line(r, len);
  out->text = r->text + r->pos;
  out->room = r->size + NI_PARSE_PADDING - r->pos;
  out->unterminated = !terminated;
  out->line_no = ++r->stats.lines;
  if (len > 0 && out->text[len - 1] == '\r')
    len--;
  out->too_long = r->skipped > 0 || len > r->max_line;
  out->len = len + r->skipped;
  if (out->too_long) {
    r->stats.too_long++;
    r->skipped = 0;
  }
  r->pos = r->searched = line_end + terminated;
}

int ni_reader_next(struct ni_reader *r, struct ni_text *out) {
  for (;;) {
    char *lf = memchr(r->text + r->searched, '\n', r->end - r->searched);
    if (lf) {
      return_line(r, (size_t)(lf - r->text), true, out);
      return 1;
    }
    r->searched = r->end;
    if (r->error) {
      int e = r->error;
      r->error = 0;
      r->end_of_text = true;
      r->pos = r->searched = r->end;
      r->skipped = 0;
      return -e;
    }
    if (r->end_of_text) {
      if (r->pos == r->end && !r->skipped)
        return 0;
      return_line(r, r->end, false, out);
      return 1;
    }
    int e = make_room(r);
    if (e == 0)
      e = fill_text(r);
    memset(r->text + r->end, 0, NI_PARSE_PADDING);
    if (e < 0) {
      r->end_of_text = true;
      r->pos = r->searched = r->end;
      return e;
    }
  }
}

/* Begins to read within a member. */
static int enter_member(struct ni_reader *r, const struct ni_member_entry *x) {
  uint8_t window[NI_WINDOW_BYTES], byte = r->in_len ? r->in[0] : 0;
  uLongf n = sizeof window;
  if (uncompress(window, &n, x->window, x->n) != Z_OK)
    return -EBADMSG;
  r->in_pos = x->bits && r->in_len;
  r->in_member = r->entered_within = true;
  r->member_at = r->at - r->in_len;
  r->skip = x->skip;
  return ni_inflater_enter(r->inflater, x->bits, byte, window, n);
}

/* What was looked at is text, and stands in the text's buffer from now on. n: bytes of it. */
static void begin_plain_text(struct ni_reader *r, uint64_t from, size_t n) {
  /* A byte order mark is no part of the first line. */
  if (from == 0 && n >= 3 && memcmp(r->in, "\xef\xbb\xbf", 3) == 0)
    r->in_pos = 3;
  r->end = r->in_len - r->in_pos;
  memcpy(r->text, r->in + r->in_pos, r->end);
  memset(r->text + r->end, 0, NI_PARSE_PADDING);
  r->text_at = from + r->in_pos;
  if (r->end)
    r->last = r->text[r->end - 1];
  r->borders &= r->in_pos == 0; /* a file with a mark is read whole */
  r->stats.text_bytes = r->end;
  r->in_pos = r->in_len;
}

int ni_reader_open(struct ni_reader **out, const char *path, const struct ni_reader_options *opt) {
  static const struct ni_reader_options defaults;
  int e = -ENOMEM;
  if (!opt)
    opt = &defaults;
  *out = NULL;
  struct ni_reader *r = calloc(1, sizeof *r);
  if (!r)
    return -ENOMEM;
  r->max_line = opt->max_line_bytes ? opt->max_line_bytes : NI_MAX_LINE_BYTES;
  r->in_size = opt->head ? IN_BYTES_HEAD : IN_BYTES;
  r->size = 4 * r->in_size;
  r->at = r->entered = opt->from;
  r->borders = opt->borders;
  r->whole_members = opt->whole_members;
  r->summed_to = opt->from;
  r->left = opt->text ? opt->text : UINT64_MAX;
  r->to = opt->to ? opt->to : UINT64_MAX >> 1;
  r->text = malloc(r->size + NI_PARSE_PADDING);
  r->in = malloc(r->in_size);
  r->fd = -1;
  if (!r->text || !r->in)
    goto fail;
  /* Never wait for a pipe that somebody put among the logs. */
  r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat st;
  if (r->fd < 0 || fstat(r->fd, &st) < 0) {
    e = -errno;
    goto fail;
  }
  if (!S_ISREG(st.st_mode)) {
    e = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    goto fail;
  }
  posix_fadvise(r->fd, (off_t)r->at, 0, POSIX_FADV_SEQUENTIAL);
  size_t n = ni_reader_look_ahead(r, 3);
  r->stats.gzip = opt->entry.n || (n >= 2 && r->in[0] == 0x1f && r->in[1] == 0x8b);
  if (r->stats.gzip) {
    e = ni_inflater_open(&r->inflater, opt->engine);
    if (e == 0 && opt->entry.n)
      e = enter_member(r, &opt->entry);
    if (e < 0)
      goto fail;
  } else
    begin_plain_text(r, opt->from, n);
  *out = r;
  return 0;
fail:
  ni_reader_close(r);
  return e;
}

void ni_reader_close(struct ni_reader *r) {
  if (!r)
    return;
  if (r->fd >= 0)
    close(r->fd);
  ni_inflater_free(r->inflater);
  free(r->in);
  free(r->text);
  ni_border_free(r);
  free(r);
}

const struct ni_reader_stats *ni_reader_stats(const struct ni_reader *r) { return &r->stats; }
