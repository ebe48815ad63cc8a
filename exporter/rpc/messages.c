/*
 * A table a message says which member of a struct is which field, for both directions. Numbers of fields of
 * ours: docs/head.proto; of gsprof's: its profiler.proto.
 */
#include "messages.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/live/live.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2 };
enum kind { FLAG, WHOLE, SIGNED, REAL, TEXT };
#define KIB 1024.0
#define GB 1e9
#define PERCENT 0.01
#define BIT(number) (UINT64_C(1) << (number))
enum { MEMORY_MB = 16384 }; /* what 0.4's head takes for the memory of a GPU of which it does not know */

struct member {
  uint8_t number; /* below 64; 0: the end */
  enum kind kind;
  uint16_t at, size;
  double unit; /* what a 1 of the wire is in ours, of REAL */
};
struct link {
  int32_t gpu;
  double rate;
};
#define M(number, kind, type, name, unit) \
  {number, kind, offsetof(struct type, name), sizeof(((struct type *)0)->name), unit}
#define END {0, FLAG, 0, 0, 0}

#define GPU(number, kind, name, unit) M(number, kind, ni_sample_gpu, name, unit)
static const struct member gpu_info[] = {GPU(1, SIGNED, index, 1), GPU(2, TEXT, name, 1), END};
/* gsprof takes the first of a pair of (tx, rx) for rx; of NVLink's it sends tx alone, as tx. */
static const struct member gpu_metric[] = {
    GPU(1, SIGNED, index, 1),     GPU(2, TEXT, name, 1),        GPU(3, REAL, util, 1),
    GPU(4, REAL, memory, 1),      GPU(5, REAL, pcie_tx, KIB),   GPU(6, REAL, pcie_rx, KIB),
    GPU(7, REAL, nvlink_rx, KIB), GPU(8, REAL, nvlink_tx, KIB), END};
static const struct member p2p_link[] = {M(1, SIGNED, link, gpu, 1), M(6, REAL, link, rate, GB), END};
static const struct member system_metrics[] = {M(1, REAL, ni_sample, memory, PERCENT),
                                               M(2, REAL, ni_sample, disk, PERCENT), END};
#define S(number, kind, name) M(number, kind, ni_status, name, 1)
static const struct member status[] = {S(1, WHOLE, freq_ms),  S(2, FLAG, bandwidth), S(3, FLAG, nvlink),
                                       S(4, FLAG, profiling), S(6, WHOLE, frames),   END};
static const struct member reply[] = {M(1, FLAG, ni_reply, success, 1), M(2, TEXT, ni_reply, message, 1),
                                      M(3, TEXT, ni_reply, output, 1), END};

#define H(number, kind, name) M(number, kind, ni_hello, name, 1)
static const struct member hello[] = {H(1, TEXT, uuid),      H(2, TEXT, host),   H(3, TEXT, version),
                                      H(4, WHOLE, protocol), H(5, WHOLE, first), H(6, WHOLE, next),
                                      H(7, SIGNED, skew_ns), H(8, WHOLE, epoch), END};
#define F(number, kind, name) M(number, kind, ni_from_head, name, 1)
static const struct member from_head[] = {F(1, FLAG, welcome),       F(2, WHOLE, protocol),
                                          F(3, TEXT, version),       F(4, WHOLE, have),
                                          F(5, WHOLE, period_ns),    F(6, SIGNED, echo_ns),
                                          F(7, SIGNED, received_ns), F(8, SIGNED, now_ns),
                                          F(9, FLAG, bandwidth),     END};
#define SAMPLE(number, kind, name) M(number, kind, ni_sample, name, 1)
static const struct member sample[] = {SAMPLE(1, WHOLE, seq),   SAMPLE(2, SIGNED, time_ns),
                                       SAMPLE(3, REAL, memory), SAMPLE(4, REAL, disk),
                                       SAMPLE(5, REAL, cpu),    END};
static const struct member gpu[] = {
    GPU(1, SIGNED, index, 1),        GPU(2, TEXT, name, 1),      GPU(3, REAL, util, 1),
    GPU(4, REAL, memory, 1),         GPU(5, REAL, pcie_rx, 1),   GPU(6, REAL, pcie_tx, 1),
    GPU(7, REAL, nvlink_rx, 1),      GPU(8, REAL, nvlink_tx, 1), GPU(9, REAL, power_w, 1),
    GPU(10, REAL, temperature_c, 1), GPU(11, REAL, sm_hz, 1),    END};
#define NIC(number, kind, name) M(number, kind, ni_sample_nic, name, 1)
static const struct member nic[] = {NIC(1, TEXT, name), NIC(2, REAL, rx),   NIC(3, REAL, tx),
                                    NIC(4, REAL, link), NIC(5, REAL, held), END};
#define JOB(number, kind, name) M(number, kind, ni_sample_job, name, 1)
static const struct member job[] = {JOB(1, TEXT, job),         JOB(2, TEXT, attempt),
                                    JOB(3, WHOLE, uid),        JOB(4, WHOLE, processes),
                                    JOB(5, WHOLE, state),      JOB(6, WHOLE, operations),
                                    JOB(7, WHOLE, bytes),      JOB(8, REAL, bus_bytes),
                                    JOB(9, REAL, bus_seconds), JOB(10, WHOLE, in_flight),
                                    JOB(11, WHOLE, stuck),     JOB(12, REAL, oldest_s),
                                    JOB(13, TEXT, verdict),    END};
#define OPEN(number, kind, name) M(number, kind, ni_sample_open, name, 1)
static const struct member open_op[] = {
    OPEN(1, TEXT, job), OPEN(2, TEXT, comm),  OPEN(3, TEXT, function), OPEN(4, SIGNED, rank),
    OPEN(5, WHOLE, sn), OPEN(6, REAL, age_s), OPEN(7, FLAG, stuck),    END};

/* What there are several of in a sample; the fields 10 to 13 of ours. */
enum { FIRST = 10, KINDS = 4 };
static const struct {
  const struct member *of;
  size_t size;
} several[KINDS] = {{gpu, sizeof(struct ni_sample_gpu)},
                    {nic, sizeof(struct ni_sample_nic)},
                    {job, sizeof(struct ni_sample_job)},
                    {open_op, sizeof(struct ni_sample_open)}};

/* ---- both directions ---- */

/*
 * The bytes of a number lie lowest first here (x86-64, aarch64), so that a narrow one is the beginning of a
 * wide one.
 */
static void put(struct ni_pb_writer *w, const struct member *m, const void *from) {
  for (; m->number; m++) {
    const char *at = (const char *)from + m->at;
    uint64_t v = 0;
    double real;
    if (m->kind != TEXT)
      memcpy(&v, at, m->size);
    memcpy(&real, &v, sizeof real);
    if (m->kind == SIGNED && m->size == 4)
      v = (uint64_t)(int64_t)(int32_t)v;
    if (m->kind == TEXT)
      ni_pb_put_text(w, m->number, at);
    else if (m->kind == REAL)
      ni_pb_put_f64(w, m->number, real / m->unit);
    else if (v)
      ni_pb_put_u64(w, m->number, v);
  }
}

static void put_inside(struct ni_pb_writer *w, uint32_t number, const struct member *m, const void *from) {
  size_t mark = ni_pb_begin(w, number);
  put(w, m, from);
  ni_pb_end(w, mark);
}

/*
 * Members without a field, or with one of another type, stay as they are; numbers too large are cut, as
 * protobuf does. seen: BIT()s.
 */
static bool take(struct ni_pb_reader r, const struct member *of, void *to, uint64_t *seen) {
  struct ni_pb_field f;
  while (ni_pb_next(&r, &f)) {
    const struct member *m = of;
    while (m->number && m->number != f.number)
      m++;
    if (!m->number || f.type != (m->kind == TEXT ? BYTES : m->kind == REAL ? FIXED64 : VARINT))
      continue;
    char *at = (char *)to + m->at;
    double real = ni_pb_f64(&f) * m->unit;
    if (m->kind == FLAG)
      f.value = f.value != 0;
    if (m->kind == TEXT)
      ni_pb_text(&f, at, m->size);
    else
      memcpy(at, m->kind == REAL ? (void *)&real : (void *)&f.value, m->size);
    *seen |= BIT(m->number);
  }
  return !r.bad;
}

static bool is(const struct ni_pb_field *f, uint32_t number, enum wire type) {
  return f->number == number && f->type == type;
}

/* ---- gsprof's ---- */

/*
 * Host (1) and GPUs (2). In proto3 a 0 is not there: what any of the GPUs has (or `known` has) is 0 where it
 * is not; else unknown.
 */
static bool take_gpus(struct ni_pb_reader r, const struct member *of, uint64_t known, char host[NI_HOST_MAX],
                      struct ni_sample **s) {
  struct ni_pb_reader again = r;
  struct ni_pb_field f;
  uint64_t seen[NI_SAMPLE_GPUS_MAX] = {0};
  uint32_t n = 0, i = 0;
  bool fits = true;
  *host = 0;
  *s = NULL;
  while (ni_pb_next(&r, &f)) {
    if (is(&f, 1, BYTES))
      fits = ni_pb_text(&f, host, NI_HOST_MAX);
    n += is(&f, 2, BYTES);
  }
  if (r.bad || !fits || !(*s = ni_sample_new(n, 0, 0, 0)))
    return false;
  while (fits && ni_pb_next(&again, &f)) {
    if (!is(&f, 2, BYTES))
      continue;
    fits = take(ni_pb_inside(&f), of, &(*s)->gpu[i], &seen[i]);
    known |= seen[i++];
  }
  for (i = 0; i < n; i++)
    for (const struct member *m = of; m->number; m++)
      if (m->kind == REAL && known & ~seen[i] & BIT(m->number))
        memset((char *)&(*s)->gpu[i] + m->at, 0, m->size);
  if (!fits) {
    free(*s);
    *s = NULL;
  }
  return fits;
}

bool ni_initial_decode(const void *bytes, size_t len, char host[NI_HOST_MAX], struct ni_sample **gpus) {
  return take_gpus(ni_pb_read(bytes, len), gpu_info, 0, host, gpus);
}

void ni_initial_encode(struct ni_pb_writer *w, const char *host, const struct ni_sample *gpus) {
  ni_pb_put_text(w, 1, host);
  for (uint32_t i = 0; i < gpus->n_gpus; i++)
    put_inside(w, 2, gpu_info, &gpus->gpu[i]);
}

static void add_link(struct ni_sample *s, const struct link *l) {
  for (uint32_t i = 0; i < s->n_gpus; i++)
    if (s->gpu[i].index == l->gpu)
      s->gpu[i].nvlink_tx = l->rate + (isnan(s->gpu[i].nvlink_tx) ? 0 : s->gpu[i].nvlink_tx);
}

bool ni_update_decode(const void *bytes, size_t len, char host[NI_HOST_MAX], struct ni_sample **s) {
  struct ni_pb_reader r = ni_pb_read(bytes, len);
  struct ni_pb_field f;
  uint64_t seen = 0;
  bool sound = true;
  if (!take_gpus(r, gpu_metric, BIT(3) | BIT(4), host, s))
    return false;
  while (sound && ni_pb_next(&r, &f)) {
    struct link l = {0};
    if (is(&f, 3, BYTES) && (sound = take(ni_pb_inside(&f), p2p_link, &l, &seen)))
      add_link(*s, &l);
    if (is(&f, 4, BYTES)) {
      (*s)->memory = (*s)->disk = 0;
      sound = take(ni_pb_inside(&f), system_metrics, *s, &seen);
    }
    double at = ni_pb_f64(&f);
    if (f.number == 5 && at > 1e9 && at < 4e9)
      (*s)->time_ns = (int64_t)(at * 1e9);
  }
  if (!sound) {
    free(*s);
    *s = NULL;
  }
  return sound;
}

void ni_update_encode(struct ni_pb_writer *w, const char *host, const struct ni_sample *s) {
  ni_pb_put_text(w, 1, host);
  for (uint32_t i = 0; i < s->n_gpus; i++)
    put_inside(w, 2, gpu_metric, &s->gpu[i]);
  put_inside(w, 4, system_metrics, s);
  if (s->time_ns)
    ni_pb_put_f64(w, 5, (double)s->time_ns / 1e9);
}

void ni_status_encode(struct ni_pb_writer *w, const struct ni_status *s) {
  put(w, status, s);
  ni_pb_put_text(w, 5, s->output);
  for (size_t i = 0; i < s->n_clients; i++)
    ni_pb_put_text(w, 7, s->client[i]);
}

bool ni_status_decode(const void *bytes, size_t len, struct ni_status *s) {
  struct ni_pb_reader r = ni_pb_read(bytes, len), again = r;
  struct ni_pb_field f;
  uint64_t seen = 0;
  *s = (struct ni_status){0};
  while (ni_pb_next(&r, &f))
    s->n_clients += is(&f, 7, BYTES);
  return take(again, status, s, &seen);
}

void ni_reply_encode(struct ni_pb_writer *w, const struct ni_reply *r) { put(w, reply, r); }

bool ni_reply_decode(const void *bytes, size_t len, struct ni_reply *r) {
  uint64_t seen = 0;
  *r = (struct ni_reply){0};
  return take(ni_pb_read(bytes, len), reply, r, &seen);
}

bool ni_name_decode(const void *bytes, size_t len, char name[NI_HOST_MAX], bool *given) {
  struct ni_pb_reader r = ni_pb_read(bytes, len);
  struct ni_pb_field f;
  bool fits = true;
  *name = 0;
  while (ni_pb_next(&r, &f))
    if (is(&f, 1, BYTES))
      fits = ni_pb_text(&f, name, NI_HOST_MAX);
  *given = *name;
  return fits && !r.bad;
}

void ni_name_encode(struct ni_pb_writer *w, const char *name) { ni_pb_put_text(w, 1, name); }

bool ni_enable_decode(const void *bytes, size_t len, bool *enable) {
  struct ni_pb_reader r = ni_pb_read(bytes, len);
  struct ni_pb_field f;
  *enable = false;
  while (ni_pb_next(&r, &f))
    if (is(&f, 1, VARINT))
      *enable = f.value;
  return !r.bad;
}

void ni_node_encode(struct ni_pb_writer *w, uint32_t field, const char *id, const struct ni_sample *s) {
  size_t node = ni_pb_begin(w, field);
  ni_pb_put_text(w, 1, id);
  for (uint32_t i = 0; i < s->n_gpus; i++) {
    const struct ni_sample_gpu *g = &s->gpu[i];
    size_t mark = ni_pb_begin(w, 2);
    ni_pb_put_i64(w, 1, g->index);
    ni_pb_put_f64(w, 2, g->util);
    ni_pb_put_i64(w, 3, g->memory >= 0 && g->memory <= 1 ? (int64_t)(g->memory * MEMORY_MB) : 0);
    ni_pb_put_i64(w, 4, MEMORY_MB);
    ni_pb_put_f64(w, 5, (g->pcie_rx + g->pcie_tx) / KIB);
    ni_pb_put_f64(w, 6, (g->nvlink_rx + g->nvlink_tx) / KIB);
    ni_pb_put_f64(w, 7, isnan(g->temperature_c) ? -1 : g->temperature_c);
    ni_pb_put_f64(w, 8, isnan(g->power_w) ? -1 : g->power_w);
    ni_pb_end(w, mark);
  }
  ni_pb_end(w, node);
}

/* ---- ours ---- */

static struct ni_sample *take_sample(struct ni_pb_reader r) {
  struct ni_pb_reader again = r;
  struct ni_pb_field f;
  uint32_t n[KINDS] = {0};
  uint64_t seen = 0;
  while (ni_pb_next(&r, &f))
    if (f.type == BYTES && f.number >= FIRST && f.number < FIRST + KINDS)
      n[f.number - FIRST]++;
  struct ni_sample *s = r.bad ? NULL : ni_sample_new(n[0], n[1], n[2], n[3]);
  if (!s)
    return NULL;
  char *to[KINDS] = {(char *)s->gpu, (char *)s->nic, (char *)s->job, (char *)s->open};
  bool sound = take(again, sample, s, &seen);
  while (sound && ni_pb_next(&again, &f)) {
    if (f.type != BYTES || f.number < FIRST || f.number >= FIRST + KINDS)
      continue;
    sound = take(ni_pb_inside(&f), several[f.number - FIRST].of, to[f.number - FIRST], &seen);
    to[f.number - FIRST] += several[f.number - FIRST].size;
  }
  for (uint32_t i = 0; i < s->n_jobs; i++)
    if (s->job[i].state >= NI_LIVE_JOB_STATES)
      s->job[i].state = 0;
  if (sound)
    return s;
  free(s);
  return NULL;
}

bool ni_agent_decode(const void *bytes, size_t len, struct ni_from_agent *m) {
  struct ni_pb_reader r = ni_pb_read(bytes, len);
  struct ni_pb_field f;
  uint64_t seen = 0;
  bool sound = true;
  *m = (struct ni_from_agent){0};
  while (sound && ni_pb_next(&r, &f)) {
    if (is(&f, 1, BYTES))
      sound = !m->hello && (m->hello = calloc(1, sizeof *m->hello)) &&
          take(ni_pb_inside(&f), hello, m->hello, &seen);
    if (is(&f, 2, BYTES))
      sound = !m->sample && (m->sample = take_sample(ni_pb_inside(&f)));
    if (is(&f, 3, VARINT))
      m->sent_ns = (int64_t)f.value;
  }
  if (sound && !r.bad && !m->hello != !m->sample && (!m->hello || *m->hello->uuid))
    return true;
  free(m->hello);
  free(m->sample);
  *m = (struct ni_from_agent){0};
  return false;
}

void ni_hello_encode(struct ni_pb_writer *w, const struct ni_hello *h) { put_inside(w, 1, hello, h); }

void ni_sample_encode(struct ni_pb_writer *w, const struct ni_sample *s, int64_t sent_ns) {
  const char *from[KINDS] = {(const char *)s->gpu, (const char *)s->nic, (const char *)s->job,
                             (const char *)s->open};
  const uint32_t n[KINDS] = {s->n_gpus, s->n_nics, s->n_jobs, s->n_open};
  size_t mark = ni_pb_begin(w, 2);
  put(w, sample, s);
  for (int k = 0; k < KINDS; k++)
    for (uint32_t i = 0; i < n[k]; i++)
      put_inside(w, FIRST + (uint32_t)k, several[k].of, from[k] + i * several[k].size);
  ni_pb_end(w, mark);
  ni_pb_put_i64(w, 3, sent_ns);
}

bool ni_head_decode(const void *bytes, size_t len, struct ni_from_head *m) {
  uint64_t seen = 0;
  *m = (struct ni_from_head){0};
  return take(ni_pb_read(bytes, len), from_head, m, &seen);
}

void ni_head_encode(struct ni_pb_writer *w, const struct ni_from_head *m) { put(w, from_head, m); }
