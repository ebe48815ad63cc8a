/*
 * Numbers of fields: opentelemetry/proto/{collector/metrics,metrics,resource,common}/v1 of
 * opentelemetry-proto 1.x, which only adds some. A message is written first and gets its tag and length when
 * it is whole.
 */
#include "otlp.h"

#include <stdio.h>
#include <string.h>

#include "exporter/base/protobuf.h"

enum { TEXT_MAX = 1024, CUMULATIVE = 2 };
/* bytes; what comes behind them has room in 16 MiB */
#define POINTS_MAX ((16u << 20) - (64u << 10))
#define BITS(d) \
  (((union { \
     double of; \
     uint64_t bits; \
   }){d}) \
       .bits)

struct encoder {
  struct ni_pb_writer w;
  const struct ni_metrics_in *in;
  struct ni_family family; /* the one that is written; name NULL: none */
  bool sums;               /* its values are sums since start_ns */
  size_t metric, data;     /* where it and its points begin */
  uint64_t start_ns;
};

static void put_attribute(struct ni_pb_writer *w, unsigned field, const char *key, const char *value) {
  if (!value || !*value)
    return;
  size_t mark = ni_pb_begin(w, field);
  ni_pb_put_text(w, 1, key);
  size_t any = ni_pb_begin(w, 2);
  ni_pb_put_text(w, 1, value);
  ni_pb_end(w, any);
  ni_pb_end(w, mark);
}

/* The unit's name in UCUM. Other units are things that are counted, and have none. */
static const char *convert_unit(const char *unit) {
  static const char *const known[][2] = {{"seconds", "s"},   {"bytes", "By"}, {"bytes_per_second", "By/s"},
                                         {"ratio", "1"},     {"hertz", "Hz"}, {"watts", "W"},
                                         {"celsius", "Cel"}, {"joules", "J"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(unit, known[i][0]) == 0)
      return known[i][1];
  return "";
}

/* Since when sums count: those of devices since the agent began, all else since the state did. */
static uint64_t find_start(const struct ni_metrics_in *in, const char *name) {
  static const char *const device[] = {"nccl_inspector_gpu_", "nccl_inspector_nic_", "nccl_inspector_host_"};
  uint64_t at = in->live->began_ns;
  for (size_t i = 0; i < 3; i++)
    if (strncmp(name, device[i], strlen(device[i])) == 0)
      at = in->self->began_ns;
  return at < in->unix_ns ? at : in->unix_ns; /* a clock that was set back */
}

static void end_family(struct encoder *o) {
  if (!o->family.name)
    return;
  if (o->sums)
    ni_pb_put_u64(&o->w, 2, CUMULATIVE);
  if (o->family.type == NI_METRICS_COUNTER)
    ni_pb_put_u64(&o->w, 3, true); /* monotonic */
  ni_pb_end(&o->w, o->data);
  ni_pb_end(&o->w, o->metric);
}

static void begin_family(void *to, const struct ni_family *f) {
  struct encoder *o = to;
  char name[TEXT_MAX];
  end_family(o);
  o->family = *f;
  o->sums = f->type == NI_METRICS_COUNTER || f->type == NI_METRICS_HISTOGRAM;
  o->start_ns = find_start(o->in, f->name);
  o->metric = ni_pb_begin(&o->w, 2);
  snprintf(name, sizeof name, "%s%s", f->name, f->type == NI_METRICS_INFO ? "_info" : "");
  ni_pb_put_text(&o->w, 1, name);
  ni_pb_put_text(&o->w, 2, f->help);
  ni_pb_put_text(&o->w, 3, convert_unit(f->unit));
  /* sum, histogram, gauge */
  o->data = ni_pb_begin(&o->w, f->type == NI_METRICS_COUNTER ? 7 : o->sums ? 9 : 5);
}

/* A data point begins: its mark. attributes: its field for them. */
static size_t begin_point(struct encoder *o, unsigned attributes, const struct ni_label *label, size_t n) {
  size_t mark = ni_pb_begin(&o->w, 1);
  for (size_t i = 0; i < n; i++)
    put_attribute(&o->w, attributes, label[i].name, label[i].value);
  if (o->sums)
    ni_pb_put_fixed64(&o->w, 2, o->start_ns);
  ni_pb_put_fixed64(&o->w, 3, o->in->unix_ns);
  return mark;
}

static void end_point(struct encoder *o, size_t mark) {
  ni_pb_end(&o->w, mark);
  if (o->w.n > POINTS_MAX)
    o->w.n = mark - 1; /* it is left out, with its tag */
}

static void put_point(struct encoder *o, const struct ni_label *label, size_t n, unsigned field,
                      uint64_t bits) {
  size_t mark = begin_point(o, 7, label, n);
  ni_pb_put_fixed64(&o->w, field, bits);
  end_point(o, mark);
}

static void put_double(void *to, const struct ni_label *label, size_t n, double v) {
  put_point(to, label, n, 4, BITS(v));
}

static void put_integer(void *to, const struct ni_label *label, size_t n, uint64_t v) {
  if (v > INT64_MAX)
    put_double(to, label, n, (double)v);
  else
    put_point(to, label, n, 6, v);
}

static void put_histogram(void *to, const struct ni_label *label, size_t n, const struct ni_metrics_hist *h) {
  struct encoder *o = to;
  size_t mark = begin_point(o, 9, label, n);
  ni_pb_put_fixed64(&o->w, 4, h->count);
  ni_pb_put_f64(&o->w, 5, h->sum);
  /* packed; the first byte is the lowest one here, too */
  ni_pb_put_bytes(&o->w, 6, h->bucket, (h->n + 1) * 8);
  ni_pb_put_bytes(&o->w, 7, h->edge, h->n * 8);
  end_point(o, mark);
}

void *ni_metrics_otlp(const struct ni_metrics_in *in, size_t *bytes) {
  struct encoder o = {.in = in};
  const struct ni_metrics_to to = {
      .to = &o, .family = begin_family, .value = put_double, .whole = put_integer, .hist = put_histogram};
  struct ni_pb_writer *w = &o.w;
  char instance[TEXT_MAX];
  snprintf(instance, sizeof instance, "%s:%llu", in->self->node,
           (unsigned long long)(in->self->began_ns / 1000000000u));
  size_t all = ni_pb_begin(w, 1), resource = ni_pb_begin(w, 1);
  put_attribute(w, 1, "service.name", "nccl-inspector-agent");
  put_attribute(w, 1, "service.instance.id", instance);
  put_attribute(w, 1, "service.version", in->self->version);
  put_attribute(w, 1, "host.name", in->self->node);
  ni_pb_end(w, resource);
  size_t metrics = ni_pb_begin(w, 2), scope = ni_pb_begin(w, 1);
  ni_pb_put_text(w, 1, "nccl-inspector");
  ni_pb_put_text(w, 2, in->self->version);
  ni_pb_end(w, scope);
  if (ni_metrics_each(in, &to) < 0)
    w->failed = true;
  end_family(&o);
  ni_pb_end(w, metrics);
  ni_pb_end(w, all);
  *bytes = w->n;
  if (w->failed)
    ni_pb_free(w);
  return w->bytes;
}

bool ni_otlp_refused(const void *response, size_t bytes, uint64_t *points, char *why, size_t cap) {
  struct ni_pb_reader r = ni_pb_read(response, bytes);
  struct ni_pb_field f;
  *points = 0;
  *why = 0;
  while (ni_pb_next(&r, &f)) {
    if (f.number != 1 || f.type != 2)
      continue;
    struct ni_pb_reader partial = ni_pb_inside(&f); /* partial_success */
    while (ni_pb_next(&partial, &f)) {
      if (f.number == 1 && f.type == 0)
        *points = f.value <= INT64_MAX ? f.value : 0;
      if (f.number == 2 && f.type == 2)
        ni_pb_text(&f, why, cap);
    }
    if (partial.bad)
      return false;
  }
  return !r.bad;
}
