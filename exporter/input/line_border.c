#include "line_border.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/base/array.h"
#include "format/line.h"

enum { LINE_BYTES = 1 << 20 }; /* a point whose line does not come within is none */

static const char head[] = NI_LINE_HEAD;
enum { HEAD = sizeof head - 1 };

/* Adds all held bytes but the last `keep` ones to the sum. */
static void sum_held(struct ni_reader *r, size_t keep) {
  const size_t n = r->n_held - keep;
  r->crc = ni_crc32(r->crc, r->held, n);
  memmove(r->held, r->held + n, keep);
  r->n_held = keep;
}

void ni_border_sum(struct ni_reader *r, const uint8_t *bytes, size_t n) {
  const uint64_t from = ni_reader_at(r) - n;
  if (!r->borders || n == 0)
    return;
  if (from < r->summed_to) { /* read once more */
    const uint64_t again = r->summed_to - from;
    if (again >= n)
      return;
    bytes += again;
    n -= (size_t)again;
  }
  const size_t keep = n < HELD_BYTES ? HELD_BYTES - n : 0, now = n > HELD_BYTES ? n - HELD_BYTES : 0;
  if (r->n_held > keep)
    sum_held(r, keep);
  r->crc = ni_crc32(r->crc, bytes, now);
  memcpy(r->held + r->n_held, bytes + now, n - now);
  r->n_held += n - now;
  r->summed_to = ni_reader_at(r);
}

/* What may be a border began so many bytes before: what lies before them has a sum of its own. */
static void begin_candidate(struct ni_reader *r, size_t before) {
  sum_held(r, before);
  r->maybe =
      (struct ni_mark){.text = r->text_at + r->end, .b = {.at = ni_reader_at(r) - before, .crc = r->crc}};
  r->looked = r->maybe.text;
  r->maybe_set = true;
  r->crc = 0;
}

static void reject_candidate(struct ni_reader *r) {
  if (!r->maybe_set)
    return;
  r->crc = ni_crc32_join(r->maybe.b.crc, r->crc, r->summed_to - r->n_held - r->maybe.b.at);
  free(r->maybe.window);
  r->maybe.window = NULL;
  r->maybe_set = false;
}

/* Takes the candidate for a border. Its line begins at that place. */
static int accept_candidate(struct ni_reader *r, uint64_t line) {
  if (r->next_mark == r->n_marks)
    r->next_mark = r->n_marks = 0;
  if (!ni_array_room(r->mark, r->n_marks, r->cap_marks))
    return -ENOMEM;
  r->maybe.b.entry.skip = (uint32_t)(line - r->maybe.text);
  r->maybe.b.entry.window = r->maybe.window;
  r->maybe.b.text = r->maybe.text = line;
  r->mark[r->n_marks++] = r->maybe;
  r->entered = r->maybe.b.at;
  r->maybe.window = NULL;
  r->maybe_set = false;
  return 0;
}

/*
 * Looks for the candidate's line: the first one of a member, or the first one with a header behind a point in
 * it.
 */
static int look_for_line(struct ni_reader *r) {
  size_t i = r->looked > r->text_at ? (size_t)(r->looked - r->text_at) : 0;
  while (r->maybe_set) {
    if (!r->line_begins) {
      const char *lf = memchr(r->text + i, '\n', r->end - i);
      i = lf ? (size_t)(lf + 1 - r->text) : r->end;
      r->line_begins = lf != NULL;
    }
    r->looked = r->text_at + i;
    if (r->looked - r->maybe.text > LINE_BYTES)
      reject_candidate(r);
    else if (!r->line_begins || r->end - i < HEAD)
      return 0;
    else if (memcmp(r->text + i, head, HEAD) == 0)
      return accept_candidate(r, r->looked);
    else if (!r->maybe.window)
      reject_candidate(r);
    r->line_begins = false;
  }
  return 0;
}

/* A block of deflate begins so many bits before, after much text. */
static int begin_point(struct ni_reader *r, unsigned ahead) {
  uint8_t window[NI_WINDOW_BYTES];
  uLongf n = compressBound(sizeof window);
  begin_candidate(r, (ahead + 7) / 8);
  r->line_begins = r->last == '\n';
  r->point_text = r->member_text;
  r->maybe.window = malloc(n);
  if (!r->maybe.window ||
      compress2(r->maybe.window, &n, window, ni_inflater_window(r->inflater, window), 1) != Z_OK)
    return -ENOMEM;
  r->maybe.b.entry.bits = (uint8_t)(ahead % 8);
  r->maybe.b.entry.n = (uint32_t)n;
  return look_for_line(r);
}

size_t ni_border_room(struct ni_reader *r, size_t room) {
  const uint64_t from = r->point_text + NI_BORDER_TEXT - NI_SEEK_BYTES;
  if (!r->borders || r->whole_members || r->entered_within)
    return room;
  ni_inflater_seek(r->inflater, r->member_text >= from);
  return r->member_text < from && from - r->member_text < room ? (size_t)(from - r->member_text) : room;
}

int ni_border_look(struct ni_reader *r) {
  unsigned ahead;
  int e = r->borders && r->maybe_set ? look_for_line(r) : 0;
  const bool looks = r->borders && !r->maybe_set;
  if (e < 0 || !looks || r->member_text - r->point_text < NI_BORDER_TEXT)
    return e;
  return ni_inflater_at_block(r->inflater, &ahead) && (ahead + 7) / 8 <= r->n_held ? begin_point(r, ahead)
                                                                                   : 0;
}

void ni_border_member(struct ni_reader *r) {
  reject_candidate(r);
  if (!r->borders || r->last != '\n' || ni_reader_at(r) / NI_BORDER_GZIP == r->entered / NI_BORDER_GZIP)
    return;
  begin_candidate(r, 0);
  r->line_begins = true;
}

void ni_border_text(struct ni_reader *r, size_t to) {
  if (r->borders && !r->stats.gzip)
    r->crc = ni_crc32(r->crc, r->text + r->summed, to - r->summed);
  r->summed = to;
}

void ni_border_line(struct ni_reader *r, size_t len) {
  uint64_t at = r->text_at + r->pos;
  if (!r->stats.gzip) {
    const bool is_in_next_piece = at / NI_BORDER_PLAIN != r->entered / NI_BORDER_PLAIN;
    if (r->skipped || len < sizeof head || !is_in_next_piece)
      return;
    if (memcmp(r->text + r->pos, head, HEAD) != 0)
      return;
    ni_border_text(r, r->pos);
    r->here = (struct ni_mark){.text = at, .b = {.at = at, .text = at, .crc = r->crc}};
    r->entered = at;
    r->crc = 0;
    r->at_border = true;
  } else if (r->mark[r->next_mark].text <= at) {
    free(r->here.window);
    r->here = r->mark[r->next_mark++];
    r->at_border = r->here.text == at; /* it always is: the text before it ends with a line feed */
  }
}

void ni_border_free(struct ni_reader *r) {
  for (size_t i = r->next_mark; i < r->n_marks; i++)
    free(r->mark[i].window);
  free(r->here.window);
  free(r->maybe.window);
  free(r->mark);
}

bool ni_reader_border(const struct ni_reader *r, struct ni_border *out) {
  if (r->at_border)
    *out = r->here.b;
  return r->at_border;
}

bool ni_reader_rest(struct ni_reader *r, struct ni_border *out) {
  ni_border_text(r, r->end);
  reject_candidate(r);
  sum_held(r, 0);
  *out = (struct ni_border){.at = r->at, .crc = r->crc, .text = r->text_at + r->end};
  return r->borders && !r->stats.damages && !r->in_member && r->last == '\n';
}
