/* What box.c fills and box_decode.c reads: the inside of struct ni_box, and the ways into its image. */
#ifndef NI_BOX_IMAGE_H
#define NI_BOX_IMAGE_H

#include "box.h"

/* A network operation that is in flight, by what it is part of. */
struct ni_box_proxy {
  uint64_t rec_sn;
  const unsigned char *at;
  uint32_t comm_page, kind;
};

struct ni_box {
  struct ni_box_header h;                        /* a checked copy; of its field table `field` is used */
  struct ni_box_field field[NI_BOX_FIELD_COUNT]; /* checked against their structs; size 0: absent */
  unsigned char *image;                          /* of the file; pages not in use are 0 */
  unsigned char *held;                           /* a bit a page: it is not 0 */
  uint64_t held_bytes;
  uint64_t image_bytes;
  uint64_t bytes; /* of the box */
  /* end_page: behind the last page that can be in use, inside the file */
  uint32_t watermark, outside, end_page;
  uint32_t *comm_page; /* where communicators begin, ascending */
  size_t n_comm_pages;
  struct ni_box_proxy *proxy; /* sorted */
  size_t n_proxies;
  uint32_t owner;
  bool is_copy;
  uint32_t copied_life; /* of a copy: what its page says */
  struct ni_life_fact life;
  uint64_t taken_ns;
  char *text[3]; /* dir, file, line of the session */
};

/* An element of a field as an unsigned number; 0 where the writer has no such field or fewer elements. */
uint64_t ni_box_get(const struct ni_box *b, const unsigned char *base, enum ni_box_field_id id, uint32_t i);
/* Is there anything in the page, which is below end_page? */
static inline bool ni_box_holds(const struct ni_box *b, uint32_t page) {
  return b->held[page / 8] >> page % 8 & 1;
}
/* Class of a page; 0 beyond the map. */
unsigned char ni_box_class(const struct ni_box *b, uint32_t page);
/* Does it hold operations? */
bool ni_box_ops_class(const struct ni_box *b, unsigned char cls);

/* Of a box whose image is filled: finds them, for box.c. 0 or -ENOMEM. */
int ni_box_find_proxies(struct ni_box *b);

#endif
