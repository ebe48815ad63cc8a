/*
 * A reader (line_reader.h) from inside: its fields, and where the file can be entered (line_border.c).
 *
 * A border of gzip is where a member begins whose text begins with a line that has a header. Within a member
 * of much text, as NVIDIA's logs are, it is where a block of deflate begins: the entry (line_split.h) then
 * has what must be known of the text before. Blocks are looked for (ni_inflater_seek()) from where a border
 * may come. Its line is the first one behind the block's beginning that has a header; what comes before
 * belongs to the granule before, which ends with that text and not with a byte of the file.
 */
#ifndef NI_LINE_BORDER_H
#define NI_LINE_BORDER_H

#include "line_reader.h"

enum { IN_BYTES = 64 << 10, IN_BYTES_HEAD = 16 << 10, DAMAGES_MAX = 1000, HELD_BYTES = NI_SEEK_BITS / 8 };

struct ni_reader {
  int fd;
  int error; /* of a failed read, until it is reported */
  bool end_of_file, end_of_text, in_member;
  uint64_t at; /* file offset of in[in_len] */
  uint64_t to;
  uint64_t member_at, member_text; /* where it begins; text that it has made */
  uint8_t *in;
  size_t in_pos, in_len, in_size;
  struct ni_inflater *inflater;
  bool entered_within; /* this member was: no trailer is checked */
  uint64_t skip, left; /* with an entry: text to be dropped yet; that may come yet, or UINT64_MAX */
  char *text;
  size_t size; /* of text, without the padding */
  /* text[pos..searched) holds no line feed, text[searched..end) was not looked at */
  size_t pos, searched, end;
  size_t max_line;
  uint64_t skipped; /* bytes already dropped of a line that is too long */
  struct ni_reader_stats stats;
  /*
   * Borders. Places in the text are counted from the beginning of the range, in plain files from that of the
   * file.
   */
  bool borders, whole_members, at_border;
  char last;                /* of the text so far */
  uint64_t text_at;         /* the place of text[0] */
  uint64_t entered;         /* the border before, in the file */
  uint32_t crc;             /* of the file from there on, or from maybe on */
  uint64_t summed_to;       /* gzip: byte of the file behind what is in crc, and in held */
  uint8_t held[HELD_BYTES]; /* gzip: the bytes before, with which a border may have begun */
  size_t n_held;
  size_t summed; /* plain: text[0..summed) is in crc */
  struct ni_mark {
    uint64_t text;
    struct ni_border b;
    uint8_t *window; /* of an entry, deflated */
    /*
   * maybe: it may be one, but its line is yet to come; b.crc is of what lies before. mark: of lines to be
   * handed out
   */
  } maybe, *mark, here;
  bool maybe_set, line_begins; /* line_begins: at looked, up to where its line was looked for */
  uint64_t looked;
  uint64_t point_text; /* of this member, at its last point */
  size_t n_marks, cap_marks, next_mark;
};

static inline uint64_t ni_reader_at(const struct ni_reader *r) { return r->at - (r->in_len - r->in_pos); }
/* Makes in hold at least want bytes unless the file ends before. Returns how many there are. */
size_t ni_reader_look_ahead(struct ni_reader *r, size_t want);

/* n bytes of the file were used up, those before ni_reader_at(). */
void ni_border_sum(struct ni_reader *r, const uint8_t *bytes, size_t n);
/* Text was made, and a block may have ended: is there a border? 0 or -ENOMEM. */
int ni_border_look(struct ni_reader *r);
/* A member is over. */
void ni_border_member(struct ni_reader *r);
/* Plain text up to there goes into the sum. */
void ni_border_text(struct ni_reader *r, size_t to);
/* The line from pos on, of len bytes, is handed out next; of gzip where marks are left. */
void ni_border_line(struct ni_reader *r, size_t len);
void ni_border_free(struct ni_reader *r);
/*
 * Of a member, before a step that has room for so much text: blocks are looked for or not. How much text the
 * step may make.
 */
size_t ni_border_room(struct ni_reader *r, size_t room);

#endif
