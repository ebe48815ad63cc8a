#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/out_file.h"
#include "exporter/input/inflate.h"

#define NAME "head.spool"
/* the other half of the file is what was acknowledged */
enum { FEW = 256 << 10, AGAIN = 64, KEPT_MAX = NI_SPOOL_BYTES / 2 };

struct record_head {
  uint32_t len, crc; /* crc: of the record with crc 0; len 0: all up to seq is gone */
  uint64_t seq, epoch;
};
struct ni_spool {
  int dir, fd; /* fd -1: there is no file */
  off_t size;  /* of the file, up to which its records are whole */
  /* again: at this number another file is tried, after one could not be made */
  uint64_t epoch, first, next, lost, again;
  size_t kept, cap; /* bytes of messages; room in got */
  char *got;
  struct slot {
    uint32_t len; /* 0: it is not there */
    off_t at;
    void *held;             /* the message, where the disk did not take it */
  } slot[NI_SPOOL_SAMPLES]; /* by its number */
};

static struct slot *slot_at(struct ni_spool *s, uint64_t seq) { return &s->slot[seq % NI_SPOOL_SAMPLES]; }

static uint32_t checksum_of(struct record_head h, const void *bytes) {
  h.crc = 0;
  return ni_crc32(ni_crc32(0, &h, sizeof h), bytes, h.len);
}

/* Is a complete record there? */
static bool is_sound(const char *p, size_t n, struct record_head *h) {
  if (n < sizeof *h)
    return false;
  memcpy(h, p, sizeof *h);
  return h->len <= n - sizeof *h && h->len <= KEPT_MAX && h->seq < UINT64_MAX / 2 &&
      checksum_of(*h, p + sizeof *h) == h->crc;
}

static void clear_slot(struct ni_spool *s, struct slot *o) {
  s->kept -= o->len;
  free(o->held);
  *o = (struct slot){0};
}

/*
 * Makes room for a message of len bytes with this number, after all others: the oldest ones go that have no
 * room then.
 */
static void make_room(struct ni_spool *s, uint64_t seq, size_t len, bool lost) {
  while (s->first < s->next && (seq - s->first >= NI_SPOOL_SAMPLES || s->kept + len > KEPT_MAX)) {
    s->lost += lost && slot_at(s, s->first)->len;
    clear_slot(s, slot_at(s, s->first++));
  }
  if (s->first == s->next)
    s->first = seq;
  s->next = seq;
}

static void add_slot(struct ni_spool *s, size_t len, off_t at, void *held) {
  *slot_at(s, s->next++) = (struct slot){(uint32_t)len, at, held};
  s->kept += len;
}

static bool append_record(const struct ni_spool *s, int fd, off_t *size, uint64_t seq, const void *bytes,
                          size_t len) {
  struct record_head h = {(uint32_t)len, 0, seq, s->epoch};
  h.crc = checksum_of(h, bytes);
  bool fine = ni_write_all(fd, &h, sizeof h, *size) == 0 &&
      ni_write_all(fd, bytes, len, *size + (off_t)sizeof h) == 0;
  if (fine)
    *size += (off_t)(sizeof h + len);
  return fine;
}

/* Replaces the file by a new one of what is kept. If that fails, the old one stays. */
static void rewrite_file(struct ni_spool *s) {
  struct ni_out_file o;
  off_t size = 0, at = sizeof(struct record_head);
  size_t len;
  if (s->next < s->again)
    return;
  s->again = s->next + AGAIN;
  if (ni_out_begin(&o, s->dir, 0600) < 0)
    return;
  bool fine = append_record(s, o.fd, &size, s->first - 1, "", 0);
  for (uint64_t i = s->first; i < s->next && fine; i++) {
    const void *bytes = ni_spool_get(s, i, &len);
    fine = bytes ? append_record(s, o.fd, &size, i, bytes, len) : !slot_at(s, i)->len;
  }
  int fd = fine ? openat(s->dir, o.tmp, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (fd < 0)
    ni_out_drop(&o);
  else if (ni_out_commit(&o, NAME, true) < 0) {
    close(fd);
    fd = -1;
  }
  if (fd < 0)
    return;
  if (s->fd >= 0)
    close(s->fd);
  s->fd = fd;
  s->size = size;
  s->again = 0;
  for (uint64_t i = s->first; i < s->next; i++) { /* as they were written above */
    struct slot *slot = slot_at(s, i);
    if (!slot->len)
      continue;
    free(slot->held);
    slot->held = NULL;
    slot->at = at;
    at += (off_t)(sizeof(struct record_head) + slot->len);
  }
}

static int load_file(struct ni_spool *s) {
  struct stat st = {0};
  struct record_head h;
  s->fd = openat(s->dir, NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (s->fd < 0)
    return 0;
  bool regular = fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode);
  size_t n = regular ? (size_t)st.st_size : 0;
  char *p = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, s->fd, 0) : NULL;
  if (!regular) {
    close(s->fd);
    s->fd = -1;
  }
  if (p == MAP_FAILED)
    return -ENOMEM;
  while (p && is_sound(p + s->size, n - (size_t)s->size, &h) && h.seq + !h.len >= s->next) {
    if (h.len) {
      make_room(s, h.seq, h.len, false);
      add_slot(s, h.len, s->size, NULL);
    } else
      make_room(s, h.seq + 1, KEPT_MAX + 1, false);
    s->size += (off_t)(sizeof h + h.len);
    s->epoch = h.epoch;
  }
  if (p)
    munmap(p, n);
  if (s->fd >= 0 && s->size < st.st_size)
    (void)!ftruncate(s->fd, s->size);
  return 0;
}

int ni_spool_open(struct ni_spool **out, int dir) {
  struct ni_spool *s = *out = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->dir = dir;
  s->first = s->next = 1;
  int e = load_file(s);
  while (e == 0 && !s->epoch)
    if (getrandom(&s->epoch, sizeof s->epoch, 0) < 0)
      e = -errno;
  if (e < 0) {
    ni_spool_close(s);
    *out = NULL;
  }
  return e;
}

void ni_spool_close(struct ni_spool *s) {
  if (!s)
    return;
  for (size_t i = 0; i < NI_SPOOL_SAMPLES; i++)
    free(s->slot[i].held);
  if (s->fd >= 0)
    close(s->fd);
  free(s->got);
  free(s);
}

void ni_spool_range(const struct ni_spool *s, uint64_t *first, uint64_t *next, uint64_t *lost) {
  *first = s->first;
  *next = s->next;
  *lost = s->lost;
}

uint64_t ni_spool_epoch(const struct ni_spool *s) { return s->epoch; }
uint64_t ni_spool_next(const struct ni_spool *s) { return s->next; }

int ni_spool_put(struct ni_spool *s, const void *bytes, size_t len) {
  off_t record = (off_t)(sizeof(struct record_head) + len);
  void *held = NULL;
  bool fits = len && len <= KEPT_MAX;
  make_room(s, s->next, fits ? len : 0, true);
  if (fits && (s->fd < 0 || s->size + record > NI_SPOOL_BYTES))
    rewrite_file(s);
  off_t at = s->size;
  bool there = fits && s->fd >= 0 && at + record <= NI_SPOOL_BYTES &&
      append_record(s, s->fd, &s->size, s->next, bytes, len);
  if (fits && !there && (held = malloc(len)))
    memcpy(held, bytes, len);
  bool kept = there || held;
  add_slot(s, kept ? len : 0, at, held);
  s->lost += !kept;
  return kept ? 0 : -ENOMEM;
}

const void *ni_spool_get(struct ni_spool *s, uint64_t seq, size_t *len) {
  struct slot *o = slot_at(s, seq);
  struct record_head h;
  if (seq < s->first || seq >= s->next || !o->len)
    return NULL;
  *len = o->len;
  if (o->held)
    return o->held;
  size_t n = sizeof h + o->len;
  if (n > s->cap && !ni_array_more(&s->got, &s->cap, n, 1))
    return NULL;
  if (pread(s->fd, s->got, n, o->at) == (ssize_t)n && is_sound(s->got, n, &h) && h.seq == seq)
    return s->got + sizeof h;
  clear_slot(s, o); /* the disk has spoilt it */
  s->lost++;
  return NULL;
}

void ni_spool_drop(struct ni_spool *s, uint64_t seq) {
  while (s->first < s->next && s->first <= seq)
    clear_slot(s, slot_at(s, s->first++));
  if (seq >= s->next)
    s->first = s->next = seq + 1;
  if (s->size > FEW && (off_t)s->kept < s->size / 2)
    rewrite_file(s);
}
