/*
 * Numbers of fields: opentelemetry/proto/{collector/metrics,metrics,resource,common}/v1 of opentelemetry-proto 1.x, which only adds
 * some. A message is written first and gets its tag and length when it is whole.
 */
#include "otlp.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/safe_text.h"

enum { TEXT_MAX = 1024, CUMULATIVE = 2 };
enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
#define POINTS_MAX ((16u << 20) - (64u << 10)) /* bytes; what comes behind them has room in 16 MiB */
#define BITS(d) (((union { double of; uint64_t bits; }){d}).bits)

struct encoder {
  char *p;
  size_t n, cap;
  bool failed;              /* no memory */
  const struct ni_metrics_in *in;
  struct ni_family family;  /* the one that is written; name NULL: none */
  bool sums;                /* its values are sums since start_ns */
  size_t metric, data;      /* where it and its points begin */
  uint64_t start_ns;
};

static void put(struct encoder *o, const void *p, size_t n) {
  if (!o->failed && o->cap - o->n < n && !ni_array_more(&o->p, &o->cap, o->n + n, 1)) o->failed = true;
  if (o->failed) return;
  memcpy(o->p + o->n, p, n);
  o->n += n;
}

static void put_varint(struct encoder *o, uint64_t v) {
  for (; v > 0x7f; v >>= 7) put(o, &(char){(char)(v | 0x80)}, 1);
  put(o, &(char){(char)v}, 1);
}

/* A field's tag and what comes next: its number, or how many bytes it has. */
static void put_tag(struct encoder *o, unsigned field, enum wire wire, uint64_t v) {
  put_varint(o, field << 3 | wire);
  put_varint(o, v);
}

static void put_bits(struct encoder *o, uint64_t v) { put(o, &(uint64_t){htole64(v)}, 8); }

static void put_fixed(struct encoder *o, unsigned field, uint64_t v) {
  put_varint(o, field << 3 | FIXED64);
  put_bits(o, v);
}

/* One byte that is no UTF-8 makes receivers refuse the whole request. */
static void put_string(struct encoder *o, unsigned field, const char *text) {
  char safe[TEXT_MAX];
  size_t n = strlen(ni_safe_text(text, safe, sizeof safe));
  if (!n) return;
  put_tag(o, field, BYTES, n);
  put(o, safe, n);
}

/* What was written since `from` is the message of that field. */
static void wrap(struct encoder *o, unsigned field, size_t from) {
  char head[16];
  size_t end = o->n;
  put_tag(o, field, BYTES, end - from);
  if (o->failed) return;
  size_t n = o->n - end;
  memcpy(head, o->p + end, n);
  memmove(o->p + from + n, o->p + from, end - from);
  memcpy(o->p + from, head, n);
}

static void put_attribute(struct encoder *o, unsigned field, const char *key, const char *value) {
  size_t from = o->n;
  if (!value || !*value) return;
  put_string(o, 1, key);
  size_t any = o->n;
  put_string(o, 1, value);
  wrap(o, 2, any);
  wrap(o, field, from);
}

/* In UCUM; other units are things that are counted, and have none. */
static const char *ucum(const char *unit) {
  static const char *const known[][2] = {{"seconds", "s"}, {"bytes", "By"}, {"bytes_per_second", "By/s"}, {"ratio", "1"},
      {"hertz", "Hz"}, {"watts", "W"}, {"celsius", "Cel"}, {"joules", "J"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(unit, known[i][0]) == 0) return known[i][1];
  return "";
}

/* Since when sums count: those of devices since the agent began, all else since the state did. */
static uint64_t start_of(const struct ni_metrics_in *in, const char *name) {
  static const char *const device[] = {"nccl_inspector_gpu_", "nccl_inspector_nic_", "nccl_inspector_host_"};
  uint64_t at = in->live->began_ns;
  for (size_t i = 0; i < 3; i++)
    if (strncmp(name, device[i], strlen(device[i])) == 0) at = in->self->began_ns;
  return at < in->unix_ns ? at : in->unix_ns; /* a clock that was set back */
}

static void end_family(struct encoder *o) {
  if (!o->family.name) return;
  bool counter = o->family.type == NI_METRICS_COUNTER;
  if (o->sums) put_tag(o, 2, VARINT, CUMULATIVE);
  if (counter) put_tag(o, 3, VARINT, true); /* monotonic */
  wrap(o, counter ? 7 : o->sums ? 9 : 5, o->data); /* sum, histogram, gauge */
  wrap(o, 2, o->metric);
}

static void family(void *to, const struct ni_family *f) {
  struct encoder *o = to;
  char name[TEXT_MAX];
  end_family(o);
  o->family = *f;
  o->sums = f->type == NI_METRICS_COUNTER || f->type == NI_METRICS_HISTOGRAM;
  o->start_ns = start_of(o->in, f->name);
  o->metric = o->n;
  snprintf(name, sizeof name, "%s%s", f->name, f->type == NI_METRICS_INFO ? "_info" : "");
  put_string(o, 1, name);
  put_string(o, 2, f->help);
  put_string(o, 3, ucum(f->unit));
  o->data = o->n;
}

/* A data point begins: where. attributes: its field for them. */
static size_t begin_point(struct encoder *o, unsigned attributes, const struct ni_label *label, size_t n) {
  size_t from = o->n;
  for (size_t i = 0; i < n; i++) put_attribute(o, attributes, label[i].name, label[i].value);
  if (o->sums) put_fixed(o, 2, o->start_ns);
  put_fixed(o, 3, o->in->unix_ns);
  return from;
}

static void end_point(struct encoder *o, size_t from) {
  wrap(o, 1, from);
  if (o->n > POINTS_MAX) o->n = from; /* it is left out */
}

static void number(struct encoder *o, const struct ni_label *label, size_t n, unsigned field, uint64_t bits) {
  size_t from = begin_point(o, 7, label, n);
  put_fixed(o, field, bits);
  end_point(o, from);
}

static void value(void *to, const struct ni_label *label, size_t n, double v) { number(to, label, n, 4, BITS(v)); }

static void whole(void *to, const struct ni_label *label, size_t n, uint64_t v) {
  if (v > INT64_MAX) value(to, label, n, (double)v);
  else number(to, label, n, 6, v);
}

static void hist(void *to, const struct ni_label *label, size_t n, const struct ni_metrics_hist *h) {
  size_t from = begin_point(to, 9, label, n);
  put_fixed(to, 4, h->count);
  put_fixed(to, 5, BITS(h->sum));
  put_tag(to, 6, BYTES, (h->n + 1) * 8);
  for (size_t i = 0; i <= h->n; i++) put_bits(to, h->bucket[i]);
  put_tag(to, 7, BYTES, h->n * 8);
  for (size_t i = 0; i < h->n; i++) put_bits(to, BITS(h->edge[i]));
  end_point(to, from);
}

void *ni_metrics_otlp(const struct ni_metrics_in *in, size_t *bytes) {
  struct encoder o = {.in = in};
  const struct ni_metrics_to to = {.to = &o, .family = family, .value = value, .whole = whole, .hist = hist};
  char instance[TEXT_MAX];
  snprintf(instance, sizeof instance, "%s:%llu", in->self->node, (unsigned long long)(in->self->began_ns / 1000000000u));
  put_attribute(&o, 1, "service.name", "nccl-inspector-agent");
  put_attribute(&o, 1, "service.instance.id", instance);
  put_attribute(&o, 1, "service.version", in->self->version);
  put_attribute(&o, 1, "host.name", in->self->node);
  wrap(&o, 1, 0); /* the resource */
  size_t scope = o.n;
  put_string(&o, 1, "nccl-inspector");
  put_string(&o, 2, in->self->version);
  wrap(&o, 1, scope);
  if (ni_metrics_each(in, &to) < 0) o.failed = true;
  end_family(&o);
  wrap(&o, 2, scope);
  wrap(&o, 1, 0);
  *bytes = o.n;
  if (!o.failed) return o.p;
  free(o.p);
  return NULL;
}

static bool take_varint(const char **p, const char *end, uint64_t *v) {
  unsigned char c = 0x80;
  *v = 0;
  for (unsigned shift = 0; *p < end && c > 0x7f && shift < 64; shift += 7) {
    c = (unsigned char)*(*p)++;
    *v |= (uint64_t)(c & 0x7f) << shift;
  }
  return c < 0x80;
}

/* The head of the field at *p, which moves behind it: its tag, and its number, or how many bytes of it follow. */
static bool take(const char **p, const char *end, uint64_t *tag, uint64_t *v) {
  if (!take_varint(p, end, tag)) return false;
  *v = (*tag & 7) == FIXED64 ? 8 : (*tag & 7) == FIXED32 ? 4 : UINT64_MAX; /* groups are of another age */
  if (((*tag & 7) == VARINT || (*tag & 7) == BYTES) && !take_varint(p, end, v)) return false;
  return (*tag & 7) == VARINT || *v <= (uint64_t)(end - *p);
}

bool ni_otlp_refused(const void *response, size_t bytes, uint64_t *points, char *why, size_t cap) {
  const char *p = response, *end = p + bytes, *inner = p; /* inner: the end of partial_success, while we are in it */
  uint64_t tag, v;
  char raw[TEXT_MAX];
  *points = 0;
  *why = 0;
  while (p < end) {
    bool in = p < inner;
    if (!take(&p, in ? inner : end, &tag, &v)) return false;
    if (in && tag == (1 << 3 | VARINT)) *points = v <= INT64_MAX ? v : 0;
    if (in && tag == (2 << 3 | BYTES)) {
      snprintf(raw, sizeof raw, "%.*s", v < sizeof raw ? (int)v : (int)sizeof raw - 1, p);
      ni_safe_text(raw, why, cap);
    }
    if (!in && tag == (1 << 3 | BYTES)) inner = p + v; /* its fields come next */
    else if ((tag & 7) != VARINT) p += v;
  }
  return true;
}
