#include "now.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/map.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/safe_text.h"

enum { ROWS_MAX = 8192 }; /* of ranks: what users' files make may not fill the memory */
#define JOB(name, value) static NI_JSON_FORM(name, struct ni_live_job, ni_json_text(j, key, value))
#define OPEN(name, ...) static NI_JSON_FORM(name, struct ni_live_open, __VA_ARGS__)
#define CALL (v->func[0] && v->kind == NI_KIND_COLL)
#define WHO(member) NI_JSON_AS(ni_live_open, who.member, #member)

JOB(put_job_state, ni_live_job_states[ni_live_job_state(v)])
JOB(put_hang, v->hang.job[0] ? v->hang.sentence : NULL)
static const struct ni_json_field job_fields[] = {NI_JSON_AS(ni_live_job, job, "job_id"),
                                                  NI_JSON(ni_live_job, attempt),
                                                  NI_JSON(ni_live_job, uid),
                                                  NI_JSON_BY(put_job_state, "state"),
                                                  NI_JSON_AS(ni_live_job, alive, "processes"),
                                                  NI_JSON_BY(put_hang, "hang")};

/* of enum ni_hang_state */
static const char *const states[] = {"called", "launched", "kernel", "network", "finishing"};
OPEN(put_hash, ni_json_hex_text(j, key, v->hash))
OPEN(put_function, ni_json_text(j, key, v->func[0] ? v->func : NULL))
OPEN(put_call, ni_json_f64(j, key, CALL ? (double)v->rec_sn : NAN))
OPEN(put_state,
     ni_json_text(j, key, v->func[0] && v->state < sizeof states / sizeof *states ? states[v->state] : NULL))
static const struct ni_json_field rank_fields[] = {
    NI_JSON_AS(ni_live_open, who.job, "job_id"),
    WHO(attempt),
    WHO(rank),
    NI_JSON(ni_live_open, pid),
    WHO(gpu),
    WHO(comm),
    NI_JSON_BY(put_hash, "comm_id"),
    NI_JSON(ni_live_open, comm_rank),
    NI_JSON(ni_live_open, n_ranks),
    NI_JSON_AS(ni_live_open, started[NI_KIND_COLL], "collectives"),
    NI_JSON(ni_live_open, in_flight),
    NI_JSON(ni_live_open, stuck),
    NI_JSON_BY(put_function, "function"),
    NI_JSON(ni_live_open, sn),
    NI_JSON_BY(put_call, "call"),
    NI_JSON(ni_live_open, bytes),
    NI_JSON_BY(put_state, "state")};
#define FIELDS(j, fields, item) NI_JSON_ALL(j, fields, item, NULL)

static double divide(double a, double b) { return b > 0 ? a / b : NAN; }

/* A rank of a job in the communicators of one name. */
static uint64_t hash_rank(const struct ni_live *l, const struct ni_live_job *job,
                          const struct ni_live_who *w) {
  char comm[sizeof w->comm];
  return ni_hash_text(ni_hash(ni_hash(0, job ? (uint64_t)(job - l->job) : UINT64_MAX), (uint32_t)w->rank),
                      ni_safe_text(w->comm, comm, sizeof comm));
}

/* did: what its functions did in the last window. */
static void put_rank(struct ni_json *j, const struct ni_live_open *o, uint32_t uid, bool alive,
                     uint64_t unix_ns, const struct ni_live_func *did) {
  const struct ni_live_sums *w = &did->window;
  ni_json_object(j, NULL);
  FIELDS(j, rank_fields, o);
  ni_json_u64(j, "uid", uid);
  ni_json_bool(j, "alive", alive);
  ni_json_f64(j, "age_s", o->func[0] && unix_ns > o->since_ns ? (double)(unix_ns - o->since_ns) / 1e9 : 0);
  ni_json_f64(j, "operations_s", divide((double)w->records * 1e9, (double)did->window_ns));
  ni_json_f64(j, "bus_bytes_s", divide((double)w->bus_bytes * 1e9, (double)w->bus_ns));
  /*
   * Of communicators of one name, and of records that came behind time, there may be more than the window
   * has.
   */
  const double late = divide((double)w->late_ns, (double)did->window_ns);
  ni_json_f64(j, "late_share", late > 1 ? 1 : late);
  ni_json_end_object(j);
}

/* Is it of a job that is over, or of a rank that was begun anew? Else a killed rank has its row, so that
 * it is seen who is missing. */
static bool is_past(const struct ni_live_looked *k, const struct ni_live_process *p,
                    const struct ni_live_job *job) {
  return ni_life_gone(p->life) && (!job || !job->alive || ni_live_replaced(k, p));
}

static void put_ranks(struct ni_json *j, const struct ni_metrics_in *in) {
  const struct ni_live *l = in->live;
  const struct ni_live_func nothing = {0};
  struct ni_live_func *did = calloc(l->n_members + 1, sizeof *did); /* by the first member of that name */
  struct ni_map names = {0};
  size_t rows = 0;
  NI_EACH(const struct ni_live_func, f, l->func, did ? l->n_funcs : 0) {
    const struct ni_live_member *m = &l->member[f->member];
    int64_t first = ni_map_find_or_add(&names, hash_rank(l, &l->job[m->job], &m->who), 0, f->member);
    if (first < 0)
      continue;
    ni_add_counts(did[first].window.all, f->window.all);
    if (f->window_ns > did[first].window_ns)
      did[first].window_ns = f->window_ns;
  }
  NI_EACH(const struct ni_live_looked, k, l->look, l->n_looks) {
    const struct ni_live_process *p = k->process, *end = p + k->n_processes;
    for (const struct ni_live_open *o = k->open; o < k->open + k->n_open && rows < ROWS_MAX; o++, rows++) {
      if (p == end || p->pid != o->pid) /* mostly it is that of the one before */
        for (p = k->process; p < end && p->pid != o->pid;)
          p++;
      const struct ni_live_job *job = ni_live_job_of(l, o->who.job, o->who.attempt, k->uid);
      if (p < end && is_past(k, p, job))
        continue;
      int64_t m = did ? ni_map_get(&names, hash_rank(l, job, &o->who), 0) : -1;
      put_rank(j, o, k->uid, p < end && ni_live_up(p, in->mono_ns), in->unix_ns, m < 0 ? &nothing : &did[m]);
    }
  }
  ni_map_free(&names);
  free(did);
}

static bool is_same_entity(const struct ni_running_value *a, const struct ni_running_value *b) {
  return a->source == b->source && strcmp(a->entity, b->entity) == 0;
}

/* A gauge of the entity, in units of so many. NAN: it has no number. */
static double find_gauge(const struct ni_metrics_in *in, const struct ni_running_value *of, const char *name,
                         double unit) {
  NI_EACH(const struct ni_running_value, v, in->running->value, in->running->n)
  if (v->known && is_same_entity(v, of) && strcmp(v->name, name) == 0)
    return (double)(int64_t)v->total / unit;
  return NAN;
}

/*
 * What the entity's counters of this unified name rose in a second, of several the most. Values stay at their
 * places.
 */
static double find_rate(const struct ni_metrics_in *in, const struct ni_running_value *of,
                        const char *unified) {
  const struct ni_running_value *v = in->running->value;
  const struct ni_running none = {0}, *before = in->before ? in->before : &none;
  double most = NAN, ns = (double)(in->running->at_ns - before->at_ns);
  for (size_t i = 0; i < in->running->n && i < before->n; i++) {
    const char *name =
        v[i].known && is_same_entity(&v[i], of) ? ni_metric_unified(v[i].source, v[i].name) : NULL;
    double rise = (double)(v[i].total - before->value[i].total);
    if (name && strcmp(name, unified) == 0)
      most = fmax(most, divide(rise * 1e9, ns));
  }
  return most;
}

/* throttle_reasons are NVML's bits. */
static void put_gpu(struct ni_json *j, const struct ni_metrics_in *in, const struct ni_running_value *of) {
  static const struct {
    unsigned bits;
    const char *name;
  } reason[] = {{0x4, "power"}, {0x60, "thermal"}, {0x80, "brake"}};
  double bits = find_gauge(in, of, "throttle_reasons", 1);
  ni_json_i64(j, "gpu", atoi(of->entity + strcspn(of->entity, "0123456789")));
  ni_json_f64(j, "utilization", find_gauge(in, of, "utilization_gpu", 100));
  ni_json_f64(j, "power_w", find_gauge(in, of, "power", 1e3));
  ni_json_f64(j, "sm_hz", find_gauge(in, of, "clock_sm", 1e-6));
  ni_json_f64(j, "temperature_c", find_gauge(in, of, "temperature", 1));
  NI_JSON_ARRAY (j, "throttled")
    for (int i = 0; i < 3; i++)
      if (bits > 0 && (uint64_t)bits & reason[i].bits)
        ni_json_text(j, NULL, reason[i].name);
}

static void put_nic(struct ni_json *j, const struct ni_metrics_in *in, const struct ni_running_value *of) {
  ni_json_text(j, "nic", of->entity);
  ni_json_text(j, "source", ni_source_name(of->source));
  ni_json_f64(j, "rx_bytes_s", find_rate(in, of, "rx_bytes"));
  ni_json_f64(j, "tx_bytes_s", find_rate(in, of, "tx_bytes"));
  ni_json_f64(j, "link_bytes_s", of->link_bytes_s > 0 ? of->link_bytes_s : NAN);
  /* cycles of 1 GHz */
  ni_json_f64(j, "held", of->source == NI_METRIC_CXI ? find_rate(in, of, "tx_held") / 1e9 : NAN);
}

/* One row an entity: of GPUs, or of NICs. */
static void put_entities(struct ni_json *j, const struct ni_metrics_in *in, const char *key, bool gpus) {
  const unsigned sources =
      gpus ? 1u << NI_METRIC_GPU : 1u << NI_METRIC_CXI | 1u << NI_METRIC_IB | 1u << NI_METRIC_ETH;
  ni_json_array(j, key);
  for (size_t i = 0, k; in->running && i < in->running->n; i++) {
    const struct ni_running_value *v = &in->running->value[i];
    for (k = i; k > 0 && !is_same_entity(v, &in->running->value[k - 1]);)
      k--;
    if (k > 0 || !(sources >> v->source & 1))
      continue;
    NI_JSON_OBJECT (j, NULL)
      (gpus ? put_gpu : put_nic)(j, in, v);
  }
  ni_json_end_array(j);
}

void ni_now_json(FILE *f, const struct ni_metrics_in *in) {
  struct ni_json j;
  ni_json_open(&j, f, NULL);
  ni_json_text(&j, "schema", "nccl-inspector-now-1");
  ni_json_text(&j, "node", in->self->node);
  ni_json_u64(&j, "time_ns", in->unix_ns);
  ni_json_text(&j, "version", in->self->version);
  NI_JSON_ARRAY (&j, "jobs")
    for (size_t i = 0; i < in->live->n_jobs; i++)
      NI_JSON_OBJECT (&j, NULL) {
        FIELDS(&j, job_fields, &in->live->job[i]);
      }
  NI_JSON_ARRAY (&j, "ranks")
    put_ranks(&j, in);
  put_entities(&j, in, "gpus", true);
  put_entities(&j, in, "nics", false);
  ni_json_close(&j);
}
