/* Reading recorded callbacks; see recording.h. */
#include "recording.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct ni_call_rec *ni_recording_call(struct ni_recording *r) {
  struct ni_call_rec *c = NI_ADD(r->calls, r->n_calls);
  c->order = (uint32_t)r->n_calls - 1;
  return c;
}

int ni_recording_event(struct ni_recording *r) {
  struct ni_event_rec *e = NI_ADD(r->events, r->n_events);
  e->comm = e->parent = e->parent_group = -1;
  return r->n_events - 1;
}

int ni_recording_comm(struct ni_recording *r) {
  NI_ADD(r->comms, r->n_comms);
  return r->n_comms - 1;
}

/*
 * Texts lie one behind the other, as literals in a library do, and at one address in every run: the plugin
 * knows them by their pointers, so where they lie says how long it looks for them, which the gate counts.
 */
#define TEXTS_AT ((void *)UINT64_C(0x1200000000))
enum { TEXTS_BYTES = 1 << 20 };

static char *keep_text(const char *text, size_t n) {
  static char *texts;
  static size_t used;
  if (!texts) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS, rights = PROT_READ | PROT_WRITE;
    texts = mmap(TEXTS_AT, TEXTS_BYTES, rights, flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (texts == MAP_FAILED) /* a sanitizer's shadow lies there: nobody counts */
      texts = mmap(NULL, TEXTS_BYTES, rights, flags, -1, 0);
    if (texts == MAP_FAILED)
      ni_die(NI_SIM_FAILED, "no room for the texts of a recording: %s", strerror(errno));
  }
  if (n >= TEXTS_BYTES - used)
    ni_die(NI_SIM_FAILED, "the recordings have more than %d bytes of different texts", TEXTS_BYTES);
  char *copy = texts + used;
  memcpy(copy, text, n);
  used += n + 1;
  return copy;
}

const char *ni_recording_string(const char *text, size_t n) {
  static char **known;
  static int count;
  for (int i = 0; i < count; i++)
    if (strlen(known[i]) == n && memcmp(known[i], text, n) == 0)
      return known[i];
  return *NI_ADD(known, count) = keep_text(text, n);
}

struct numbers { /* the recorder's numbers -> our indices; dense, as it counts from 1 */
  int *of;
  uint64_t n;
};

static void set_number(struct numbers *m, uint64_t number, int index) {
  if (number > 1u << 28)
    ni_die(NI_SIM_FAILED, "recording: handle %llu is not the recorder's", (unsigned long long)number);
  while (m->n <= number) {
    uint64_t n = m->n ? 2 * m->n : 1024;
    m->of = realloc(m->of, n * sizeof *m->of);
    if (!m->of)
      ni_die(NI_SIM_FAILED, "out of memory");
    for (uint64_t i = m->n; i < n; i++)
      m->of[i] = -1;
    m->n = n;
  }
  m->of[number] = index;
}

static int get_number(const struct numbers *m, uint64_t number) {
  return number && number < m->n ? m->of[number] : -1;
}

static void read_start(struct ni_recording *r, struct ni_call_rec *c, const struct ni_rec_head *h,
                       const char *body, const char *end, struct numbers *m) {
  struct ni_rec_start s;
  const char **at[NI_REC_STRINGS];
  if (end - body < (ptrdiff_t)sizeof s)
    ni_die(NI_SIM_FAILED, "recording: a start record is too short");
  memcpy(&s, body, sizeof s);
  body += sizeof s;
  size_t n = ni_rec_member_bytes(s.type, h->version);
  if ((size_t)(end - body) < n)
    ni_die(NI_SIM_FAILED, "recording: a start record is too short");
  int index = ni_recording_event(r);
  struct ni_event_rec *e = &r->events[index];
  e->d.type = s.type;
  e->d.rank = s.rank;
  memcpy(&e->d.coll, body, n);
  body += n;
  int strings = ni_rec_strings(&e->d, h->version, at);
  for (int i = 0; i < strings; i++) {
    size_t k = strnlen(body, (size_t)(end - body));
    *at[i] = ni_recording_string(body, k);
    body += body + k < end ? k + 1 : k;
  }
  if (s.type == NI_EV_COLL && e->d.coll.kernelVariant && !*e->d.coll.kernelVariant)
    e->d.coll.kernelVariant = NULL;
  e->comm = get_number(m, s.context);
  e->parent = get_number(m, s.parent);
  if (s.type == NI_EV_COLL)
    e->parent_group = get_number(m, (uint64_t)(uintptr_t)e->d.coll.parentGroup);
  if (s.type == NI_EV_P2P)
    e->parent_group = get_number(m, (uint64_t)(uintptr_t)e->d.p2p.parentGroup);
  c->event = index;
  set_number(m, h->handle, index);
}

static void read_binary(struct ni_recording *r, const char *path, const char *bytes, size_t n) {
  struct numbers m = {0};
  size_t at = 8;
  struct ni_rec_head h;
  for (; at + sizeof h <= n; at += h.size) {
    memcpy(&h, bytes + at, sizeof h);
    if (h.size < sizeof h)
      ni_die(NI_SIM_FAILED, "%s: byte %zu: a record of %u bytes", path, at, h.size);
    if (at + h.size > n)
      break;
    const char *body = bytes + at + sizeof h, *end = bytes + at + h.size;
    struct ni_call_rec *c = ni_recording_call(r);
    c->kind = (enum ni_rec_kind)h.kind;
    c->at_ns = h.unix_ns;
    c->thread = h.thread;
    if (h.kind == NI_REC_INIT) {
      struct ni_rec_init in;
      memcpy(&in, body, sizeof in);
      int index = ni_recording_comm(r);
      r->comms[index] =
          (struct ni_comm_rec){in.hash, in.n_nodes, in.n_ranks, in.rank,
                               in.named ? strndup(body + sizeof in, (size_t)(end - body) - sizeof in) : NULL};
      c->event = index;
      set_number(&m, h.handle, index);
    } else if (h.kind == NI_REC_START) {
      read_start(r, c, &h, body, end, &m);
    } else {
      c->event = get_number(&m, h.handle);
      if (h.kind == NI_REC_STATE) {
        struct ni_rec_state s;
        memcpy(&s, body, sizeof s);
        c->state = s.state;
        c->has_args = s.has_args;
        c->args = s.args;
      }
      if (c->event < 0)
        r->n_calls--; /* of something that was not started in this file */
    }
  }
  if (at != n)
    ni_sim_say("%s: the last record is cut; %d calls are used", path, r->n_calls);
  free(m.of);
}

static int by_time(const void *x, const void *y) {
  const struct ni_call_rec *a = x, *b = y;
  if (a->at_ns != b->at_ns)
    return a->at_ns < b->at_ns ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

void ni_recording_read(struct ni_recording *r, const char *path) {
  memset(r, 0, sizeof *r);
  FILE *f = fopen(path, "re");
  if (!f)
    ni_die(NI_SIM_USAGE, "--replay %s: %s", path, strerror(errno));
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  rewind(f);
  char *text = ni_xalloc((size_t)n + 1);
  if (fread(text, 1, (size_t)n, f) != (size_t)n)
    ni_die(NI_SIM_FAILED, "%s: cannot be read", path);
  fclose(f);
  if (n >= 8 && memcmp(text, NI_REC_MAGIC, 8) == 0)
    read_binary(r, path, text, (size_t)n);
  else if (text[0] == '{')
    ni_recording_json(r, path, text);
  else
    ni_die(NI_SIM_USAGE, "--replay %s: neither a recording of test/recorder.so nor JSON lines of callbacks",
           path);
  free(text);
  if (!r->n_calls)
    ni_die(NI_SIM_FAILED, "%s: no callback in it", path);
  qsort(r->calls, (size_t)r->n_calls, sizeof *r->calls, by_time);
  for (int i = 0; i < r->n_calls; i++) {
    int k = 0;
    while (k < r->n_threads && r->threads[k] != r->calls[i].thread)
      k++;
    if (k == 256)
      ni_die(NI_SIM_FAILED, "%s: more than 256 threads", path);
    r->threads[k] = r->calls[i].thread;
    if (k == r->n_threads)
      r->n_threads++;
  }
}
