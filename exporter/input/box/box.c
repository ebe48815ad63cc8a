/*
 * Reading and checking the file into the image that everything else decodes (box_decode.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/base/process/as_user.h"
#include "exporter/base/now.h"
#include "box_image.h"

enum { SETTLE_TRIES = 3 /* looks at a page whose slots move */, RUN_PAGES = 8 /* read at once */ };

__attribute__((format(printf, 3, 4))) static int refuse_box(char *why, size_t cap, const char *text, ...) {
  va_list ap;
  va_start(ap, text);
  vsnprintf(why, cap, text, ap);
  va_end(ap);
  return -EBADMSG;
}

/* n bytes at `at`; behind the file's end they are 0. 0 or -errno. */
static int read_zero_filled(int fd, void *to, size_t n, uint64_t at) {
  unsigned char *p = to;
  while (n) {
    ssize_t got = pread(fd, p, n, (off_t)at);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -errno;
    if (got == 0)
      break;
    p += got;
    n -= (size_t)got;
    at += (uint64_t)got;
  }
  memset(p, 0, n);
  return 0;
}

/* ---- checks ---- */

/* Page 0 is the header's. */
static bool is_inside(const struct ni_box *b, uint64_t at, uint64_t bytes) {
  return at >= NI_BOX_PAGE_BYTES && at <= b->bytes && bytes <= b->bytes - at;
}

/* A word of four bytes at a place of its own size. */
static bool is_word_inside(const struct ni_box *b, uint64_t at) { return is_inside(b, at, 4) && at % 4 == 0; }

static bool is_piece_valid(const struct ni_box *b, const struct ni_box_piece *p, uint64_t entries) {
  const bool holds_entries = !entries || (p->stride && entries <= p->bytes / p->stride);
  return is_inside(b, p->at, p->bytes) && p->bytes <= NI_BOX_PIECE_MAX && holds_entries;
}

static int check_header(const struct ni_box *b, char *why, size_t cap) {
  const struct ni_box_header *h = &b->h;
  if (memcmp(h->magic, NI_BOX_MAGIC, 8) != 0)
    return refuse_box(why, cap, "this is no black box: it does not begin as one");
  if (h->byte_order != NI_BOX_BYTE_ORDER)
    return refuse_box(why, cap, "written by a machine of the other byte order: read it there");
  if (h->version == 0 || h->version > NI_BOX_VERSION)
    return refuse_box(
        why, cap,
        "layout %u, this program reads up to %u: use the nccl-inspector of the plugin that wrote it",
        h->version, NI_BOX_VERSION);
  if (h->header_bytes < offsetof(struct ni_box_header, field) || h->header_bytes > NI_BOX_PAGE_BYTES)
    return refuse_box(why, cap, "damaged: header_bytes is %u, %zu to %u are possible", h->header_bytes,
                      offsetof(struct ni_box_header, field), NI_BOX_PAGE_BYTES);
  if (h->page_bytes != NI_BOX_PAGE_BYTES)
    return refuse_box(why, cap, "damaged: pages of %u bytes, 4096 are possible", h->page_bytes);
  const bool is_slot_possible = h->slot_bytes >= NI_BOX_MIN_SLOT && h->slot_bytes <= h->page_bytes;
  if (!is_slot_possible || h->page_bytes % h->slot_bytes || h->slot_bytes % 8)
    return refuse_box(why, cap, "damaged: slots of %u bytes", h->slot_bytes);
  if (h->comm_pages == 0 || h->comm_pages > 4096)
    return refuse_box(why, cap, "damaged: communicators of %u pages", h->comm_pages);
  if (h->comm_class == 0 || h->comm_class > 255)
    return refuse_box(why, cap, "damaged: page class %u", h->comm_class);
  const bool has_pieces = is_piece_valid(b, &h->class_map, 0) &&
      is_piece_valid(b, &h->texts, h->texts.entries) && is_piece_valid(b, &h->session[0], 0) &&
      is_piece_valid(b, &h->session[1], 0);
  if (!has_pieces || !is_word_inside(b, h->watermark_at) || !is_word_inside(b, h->outside_at))
    return refuse_box(why, cap,
                      "cut short or damaged: a piece that its header names is not in its %llu bytes",
                      (unsigned long long)b->bytes);
  return 0;
}

/* Bytes of the struct that a field lies in. */
static uint64_t measure_struct(const struct ni_box_header *h, uint32_t id) {
  if (id <= NI_BOX_OP_NCHANNELS)
    return h->slot_bytes;
  if (id >= NI_BOX_CELL_OPEN && id <= NI_BOX_CELL_START_NS)
    return h->cell_stride;
  if (id >= NI_BOX_KIND_STARTED && id <= NI_BOX_KIND_FALLBACK)
    return h->kind_stride;
  if (id >= NI_BOX_TEXT_READY && id <= NI_BOX_TEXT_TEXT)
    return h->texts.stride;
  if (id == NI_BOX_OP_CALL_SN || id == NI_BOX_OP_ORIGIN)
    return h->slot_bytes;
  if (id >= NI_BOX_OP_KERNEL && id <= NI_BOX_ANNEX_COMPUTE_TO_NS)
    return h->slot_bytes;
  if (id >= NI_BOX_PROXY_STATE && id <= NI_BOX_PROXY_STEP_LAST)
    return h->proxy_bytes;
  return (uint64_t)h->comm_pages * h->page_bytes;
}

static int check_fields(struct ni_box *b, char *why, size_t cap) {
  static const enum ni_box_field_id needed[] = {
      NI_BOX_OP_STATE,       NI_BOX_OP_PROG,     NI_BOX_OP_COMM_PAGE, NI_BOX_OP_KIND,
      NI_BOX_OP_TICKS_START, NI_BOX_OP_SN,       NI_BOX_OP_REC_SN,    NI_BOX_COMM_STATE,
      NI_BOX_COMM_HASH,      NI_BOX_COMM_RANK,   NI_BOX_COMM_N_RANKS, NI_BOX_COMM_INIT_TICKS,
      NI_BOX_COMM_KIND,      NI_BOX_KIND_STARTED};
  const struct ni_box_header *h = &b->h;
  uint32_t most =
      (h->header_bytes - (uint32_t)offsetof(struct ni_box_header, field)) / (uint32_t)sizeof h->field[0];
  uint64_t comm_bytes = (uint64_t)h->comm_pages * h->page_bytes;
  for (uint32_t i = 0; i < NI_BOX_FIELD_COUNT; i++) {
    struct ni_box_field f = i < h->n_fields && i < most ? h->field[i] : (struct ni_box_field){0};
    if (f.size < ni_box_elem_bytes[i] || (uint64_t)f.at + f.size > measure_struct(h, i))
      f = (struct ni_box_field){0};
    b->field[i] = f;
  }
  struct ni_box_field *kind = &b->field[NI_BOX_COMM_KIND], *cell = &b->field[NI_BOX_COMM_CELL];
  if ((uint64_t)kind->at + (uint64_t)NI_BOX_KINDS * h->kind_stride > comm_bytes)
    kind->size = 0;
  if ((uint64_t)cell->at + 2 * 64 * (uint64_t)h->cell_stride > comm_bytes)
    cell->size = 0;
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (b->field[needed[i]].size == 0)
      return refuse_box(why, cap, "damaged: field %d of its table is missing or out of place",
                        (int)needed[i]);
  return 0;
}

/* ---- the image ---- */

/*
 * One page of slots of a process that may be running: state words, slots, state words again, each by a read
 * of its own. When a state changed in between, all is taken again; a slot that never rests reads as free.
 */
static int read_settled_page(struct ni_box *b, int fd, uint32_t page) {
  uint64_t at = (uint64_t)page * NI_BOX_PAGE_BYTES;
  unsigned char *have = b->image + at, before[NI_BOX_PAGE_BYTES], after[NI_BOX_PAGE_BYTES];
  uint32_t size = b->h.slot_bytes, word = b->field[NI_BOX_OP_STATE].at;
  int e = read_zero_filled(fd, before, sizeof before, at);
  for (int i = 0; e == 0 && i < SETTLE_TRIES; i++) {
    bool moved = false;
    if ((e = read_zero_filled(fd, have, NI_BOX_PAGE_BYTES, at)) < 0 ||
        (e = read_zero_filled(fd, after, sizeof after, at)) < 0)
      break;
    for (uint32_t s = 0; s < NI_BOX_PAGE_BYTES; s += size) {
      if (memcmp(before + s + word, after + s + word, 8) == 0)
        continue;
      moved = true;
      if (i + 1 == SETTLE_TRIES)
        memset(have + s, 0, size);
    }
    if (!moved)
      break;
    memcpy(before, after, sizeof before);
  }
  return e;
}

/* Pages that are holes are 0 and take nothing. Behind the last byte that is there: UINT64_MAX. */
static uint64_t find_next_data(int fd, uint64_t at) {
  off_t data = lseek(fd, (off_t)at, SEEK_DATA);
  /* a file system that knows no holes */
  return data >= 0 ? (uint64_t)data : errno == ENXIO ? UINT64_MAX : at;
}

static bool is_zero(const unsigned char *page) {
  return page[0] == 0 && memcmp(page, page + 1, NI_BOX_PAGE_BYTES - 1) == 0;
}

/*
 * Some pages into the image. What is 0 is not stored, so that a long and empty file takes no memory.
 *
 * Slots of a process that may be running are read as read_settled_page() reads them, the whole run at once:
 * state words, slots, state words again. Two reads do for a page without an operation that is under way: what
 * a slot holds that is free, or whose record is settled, was final when its state said so, ticks of the dump
 * thread ago. Only who fills the slot for its next life writes there. The second read would see its LIVE
 * flag; where it does not, while the slot is being filled, three reads would not see it either.
 */
static int read_run(struct ni_box *b, int fd, uint32_t first, uint32_t n, uint64_t most) {
  unsigned char run[3][RUN_PAGES * NI_BOX_PAGE_BYTES];
  uint64_t at = (uint64_t)first * NI_BOX_PAGE_BYTES;
  uint32_t slots = NI_BOX_PAGE_BYTES / b->h.slot_bytes, busy = 0, moved = 0; /* a bit a page */
  bool moves = !ni_life_gone(b->life.life) && !b->is_copy && ni_box_ops_class(b, ni_box_class(b, first));
  int e = read_zero_filled(fd, run[0], (size_t)n * NI_BOX_PAGE_BYTES, at);
  if (e == 0 && moves)
    e = read_zero_filled(fd, run[1], (size_t)n * NI_BOX_PAGE_BYTES, at);
  for (int last = 1; e == 0 && moves && last <= (busy ? 2 : 1); last++) {
    if (last == 2 && (e = read_zero_filled(fd, run[2], (size_t)n * NI_BOX_PAGE_BYTES, at)) < 0)
      break;
    for (uint32_t s = 0; s < n * slots; s++) {
      uint64_t before, after;
      memcpy(&before, run[0] + (size_t)s * b->h.slot_bytes + b->field[NI_BOX_OP_STATE].at, 8);
      memcpy(&after, run[last] + (size_t)s * b->h.slot_bytes + b->field[NI_BOX_OP_STATE].at, 8);
      if (before != after)
        moved |= 1u << s / slots;
      if ((NI_BOX_FLAGS(before) & (NI_BOX_OP_LIVE | NI_BOX_OP_SETTLED)) == NI_BOX_OP_LIVE)
        busy |= 1u << s / slots;
    }
  }
  for (uint32_t i = 0; e == 0 && i < n; i++) {
    const unsigned char *page = run[busy >> i & 1] + (size_t)i * NI_BOX_PAGE_BYTES;
    if (is_zero(run[0] + (size_t)i * NI_BOX_PAGE_BYTES))
      continue;
    if ((b->held_bytes += NI_BOX_PAGE_BYTES) > most)
      return -EFBIG;
    memcpy(b->image + at + (size_t)i * NI_BOX_PAGE_BYTES, page, NI_BOX_PAGE_BYTES);
    b->held[(first + i) / 8] |= (unsigned char)(1u << (first + i) % 8);
    if (moved >> i & 1)
      e = read_settled_page(b, fd, first + i);
  }
  return e;
}

/* Everything that is in use: pieces, then pages below the watermark. */
static int read_image(struct ni_box *b, int fd, uint64_t most) {
  const struct ni_box_header *h = &b->h;
  const struct ni_box_piece *pieces[] = {&h->class_map, &h->texts, &h->session[0], &h->session[1]};
  int e = 0;
  /* of each what is in use: the rest is most of it */
  for (size_t i = 0; e == 0 && i < sizeof pieces / sizeof *pieces; i++) {
    struct ni_box_session x;
    uint64_t bytes = pieces[i]->bytes, used = i == 0 ? b->watermark : bytes;
    if (i >= 2 && bytes >= sizeof x && (e = read_zero_filled(fd, &x, sizeof x, pieces[i]->at)) == 0)
      used = sizeof x + (uint64_t)x.dir_bytes + x.file_bytes + x.line_bytes;
    if (e == 0)
      e = read_zero_filled(fd, b->image + pieces[i]->at, used < bytes ? used : bytes, pieces[i]->at);
  }
  if (e == 0 && !(b->held = calloc(b->end_page / 8 + 1, 1)))
    e = -ENOMEM;
  /* every page from data to hole is there, every one before data was looked at */
  uint64_t data = 0, hole = 0;
  for (uint32_t p = h->data_page, n; e == 0 && p < b->end_page; p += n) {
    uint64_t at = (uint64_t)p * NI_BOX_PAGE_BYTES;
    unsigned char class = ni_box_class(b, p);
    n = 1;
    if (!class)
      continue;
    if (hole <= at) {
      if ((data = find_next_data(fd, at)) == UINT64_MAX)
        break;
      off_t end = lseek(fd, (off_t)data, SEEK_HOLE);
      hole = end > (off_t)data ? (uint64_t)end : data + NI_BOX_PAGE_BYTES;
    }
    if (data >= at + NI_BOX_PAGE_BYTES)
      continue;
    const uint32_t most_pages = b->end_page - p < RUN_PAGES ? b->end_page - p : RUN_PAGES;
    while (n < most_pages && at + n * NI_BOX_PAGE_BYTES < hole && ni_box_class(b, p + n) == class)
      n++;
    e = read_run(b, fd, p, n, most);
  }
  return e;
}

/* Finds where communicators begin: every comm_pages pages of their class. */
static int find_comms(struct ni_box *b, char *why, size_t cap) {
  b->comm_page = malloc(NI_BOX_COMMS_MAX * sizeof *b->comm_page);
  if (!b->comm_page)
    return -ENOMEM;
  for (uint32_t p = b->h.data_page; p < b->end_page;) {
    if (ni_box_class(b, p) != b->h.comm_class) {
      p++;
      continue;
    }
    if (b->end_page - p < b->h.comm_pages)
      break;
    bool held = false; /* some page of it: where its fields lie is the writer's choice */
    for (uint32_t i = 0; i < b->h.comm_pages; i++)
      held |= ni_box_holds(b, p + i);
    p += b->h.comm_pages;
    if (!held)
      continue;
    if (b->n_comm_pages == NI_BOX_COMMS_MAX)
      return refuse_box(why, cap, "damaged: more than the %u communicators that a process can have",
                        NI_BOX_COMMS_MAX);
    b->comm_page[b->n_comm_pages++] = p - b->h.comm_pages;
  }
  return 0;
}

static int read_header(struct ni_box *b, int fd, char *why, size_t cap) {
  int e = read_zero_filled(fd, &b->h, sizeof b->h, 0);
  if (e < 0 || (e = check_header(b, why, cap)) < 0)
    return e;
  if (b->h.header_bytes < sizeof b->h) /* an older writer's: what it does not have is 0 */
    memset((unsigned char *)&b->h + b->h.header_bytes, 0, sizeof b->h - b->h.header_bytes);
  b->h.producer[sizeof b->h.producer - 1] = b->h.git_rev[sizeof b->h.git_rev - 1] = 0;
  b->h.boot_id[sizeof b->h.boot_id - 1] = b->h.hostname[sizeof b->h.hostname - 1] =
      b->h.exe[sizeof b->h.exe - 1] = 0;
  return 0;
}

/*
 * What moves is read again behind the image: the clock relation and the heartbeat must not be older than what
 * is in it. What must not move has to be as it was, or the image was checked against another header.
 */
static int read_header_again(struct ni_box *b, int fd, char *why, size_t cap) {
  struct ni_box_header first = b->h;
  int e = read_header(b, fd, why, cap);
  if (e < 0)
    return e;
  size_t constant = offsetof(struct ni_box_header, state);
  if (memcmp(&first, &b->h, constant) != 0)
    return refuse_box(why, cap, "it was replaced while it was read: read it again");
  if (b->is_copy)
    b->life = ni_life_of_copy(&b->h, b->copied_life, b->taken_ns);
  else if (!ni_life_gone(b->life.life))
    b->life = ni_life_ask(&b->h, fd, b->owner); /* ended meanwhile? */
  return 0;
}

/* A copy has one page more, which says so. */
static int look_for_copy_page(struct ni_box *b, int fd) {
  struct ni_box_copy c;
  if (b->bytes < 2 * NI_BOX_PAGE_BYTES)
    return 0;
  int e = read_zero_filled(fd, &c, sizeof c, b->bytes - NI_BOX_PAGE_BYTES);
  const bool is_copy_page = e == 0 && memcmp(c.magic, NI_BOX_COPY_MAGIC, 8) == 0 && c.version == 1;
  if (!is_copy_page || c.box_bytes != b->bytes - NI_BOX_PAGE_BYTES)
    return e;
  b->is_copy = true;
  b->bytes = c.box_bytes;
  b->taken_ns = c.taken_unix_ns;
  b->copied_life = c.life;
  return 0;
}

static int load_box(struct ni_box *b, int fd, const struct stat *of, uint64_t most, char *why, size_t cap) {
  struct stat st = *of;
  if ((size_t)st.st_size < sizeof(struct ni_box_header))
    return refuse_box(why, cap, "%lld bytes: too short for a black box", (long long)st.st_size);
  if ((uint64_t)st.st_size > NI_BOX_MAX_BYTES)
    return refuse_box(why, cap, "%lld bytes: no black box is so large", (long long)st.st_size);
  b->bytes = (uint64_t)st.st_size;
  b->owner = st.st_uid;
  int e = look_for_copy_page(b, fd);
  if (e < 0 || (e = read_header(b, fd, why, cap)) < 0 || (e = check_fields(b, why, cap)) < 0)
    return e;
  if (!b->is_copy) {
    b->life = ni_life_ask(&b->h, fd, b->owner);
    b->taken_ns = b->life.at_ns;
  }
  if ((e = read_zero_filled(fd, &b->watermark, 4, b->h.watermark_at)) < 0 ||
      (e = read_zero_filled(fd, &b->outside, 4, b->h.outside_at)) < 0)
    return e;
  b->end_page = b->watermark < b->h.n_pages ? b->watermark : b->h.n_pages;
  if (b->end_page > b->bytes / NI_BOX_PAGE_BYTES)
    b->end_page = (uint32_t)(b->bytes / NI_BOX_PAGE_BYTES);
  /* what was never taken needs no address either */
  b->image_bytes = (uint64_t)b->end_page * NI_BOX_PAGE_BYTES;
  const struct ni_box_piece *pieces[] = {&b->h.class_map, &b->h.texts, &b->h.session[0], &b->h.session[1]};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
    if (b->image_bytes < pieces[i]->at + pieces[i]->bytes)
      b->image_bytes = pieces[i]->at + pieces[i]->bytes;
  void *p =
      mmap(NULL, b->image_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return -ENOMEM;
  b->image = p;
  if ((e = read_image(b, fd, most)) == -EFBIG)
    return refuse_box(why, cap,
                      "holds more than the %llu MiB that root reads of another user's: run as uid %u",
                      (unsigned long long)most >> 20, b->owner);
  if (e < 0 || (e = find_comms(b, why, cap)) < 0 || (e = ni_box_find_proxies(b)) < 0)
    return e;
  return read_header_again(b, fd, why, cap);
}

int ni_box_open(struct ni_box **out, const char *path, uint64_t most, char *why, size_t cap) {
  struct stat st;
  *why = 0;
  int fd = ni_plain_open(AT_FDCWD, path, &st);
  if (fd == -EINVAL)
    return refuse_box(why, cap, "not a regular file");
  if (fd == -ELOOP)
    return refuse_box(why, cap, "a symbolic link: name the file itself");
  if (fd < 0)
    return fd;
  struct ni_box *b = calloc(1, sizeof *b);
  int e = b ? load_box(b, fd, &st, most ? most : NI_BOX_MAX_BYTES, why, cap) : -ENOMEM;
  close(fd);
  if (e < 0)
    ni_box_close(b);
  else
    *out = b;
  return e;
}

void ni_box_close(struct ni_box *b) {
  if (!b)
    return;
  if (b->image)
    munmap(b->image, b->image_bytes);
  free(b->held);
  free(b->comm_page);
  free(b->proxy);
  for (size_t i = 0; i < sizeof b->text / sizeof *b->text; i++)
    free(b->text[i]);
  free(b);
}

/* ---- copies ---- */

int ni_box_write_copy(const struct ni_box *b, int fd) {
  const struct ni_box_header *h = &b->h;
  const struct ni_box_piece *pieces[] = {&h->class_map, &h->texts, &h->session[0], &h->session[1]};
  unsigned char page[NI_BOX_PAGE_BYTES] = {0};
  /* How one that is gone ended is in the header; readers of before know three words. */
  uint32_t life = ni_life_gone(b->life.life) ? NI_LIFE_DEAD : b->life.life;
  struct ni_box_copy c = {.version = 1, .life = life, .taken_unix_ns = b->taken_ns};
  uint32_t last = b->end_page; /* what nobody has used is left out */
  while (last > h->data_page && !ni_box_holds(b, last - 1))
    last--;
  c.box_bytes = (uint64_t)last * NI_BOX_PAGE_BYTES;
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
    if (c.box_bytes < pieces[i]->at + pieces[i]->bytes)
      c.box_bytes = pieces[i]->at + pieces[i]->bytes;
  memcpy(c.magic, NI_BOX_COPY_MAGIC, 8);
  memcpy(page, &c, sizeof c);
  int e = ni_write_all(fd, h, sizeof *h, 0);
  for (size_t i = 0; e == 0 && i < sizeof pieces / sizeof *pieces; i++)
    e = ni_write_all(fd, b->image + pieces[i]->at, pieces[i]->bytes, (off_t)pieces[i]->at);
  if (e == 0)
    e = ni_write_all(fd, &b->watermark, 4, (off_t)h->watermark_at);
  if (e == 0)
    e = ni_write_all(fd, &b->outside, 4, (off_t)h->outside_at);
  for (uint32_t p = h->data_page; e == 0 && p < b->end_page; p++) {
    uint64_t at = (uint64_t)p * NI_BOX_PAGE_BYTES;
    if (ni_box_holds(b, p))
      e = ni_write_all(fd, b->image + at, NI_BOX_PAGE_BYTES, (off_t)at);
  }
  return e == 0 ? ni_write_all(fd, page, sizeof page, (off_t)c.box_bytes) : e;
}
