#include "counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct feed {
  struct ni_run *r;
  struct ni_summary *s;
  const struct ni_counters_also *also;
};

/* What summing by time says, where that was asked for. */
static int explain_too_many(struct feed *f, int e) {
  if (e == -E2BIG)
    ni_buckets_fail_too_many(f->r, "series_hosts", "host, device and counter");
  return e;
}

static int begin_counter_set(void *arg, const char *host, const struct ni_set *x) {
  struct feed *f = arg;
  int e = f->r->opt.bucket_ns
      ? explain_too_many(f, ni_host_buckets_begin_set(f->r, &f->s->buckets.hosts, host, x))
      : 0;
  return e < 0 ? e : ni_beside_set(&f->s->beside, host, x);
}

static int add_counter_pair(void *arg, const struct ni_series_sample *after,
                            const struct ni_reading *before) {
  struct feed *f = arg;
  f->s->counter_samples++;
  ni_beside_sample(&f->s->beside, before, after->reading);
  int e = f->r->opt.bucket_ns
      ? explain_too_many(f, ni_host_buckets_add(&f->s->buckets.hosts, f->r->opt.bucket_ns, after, before))
      : 0;
  return e == 0 && f->also ? f->also->pair(f->also->arg, after, before) : e;
}

static int read_counter_files(struct ni_run *r, struct feed *f) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    const struct ni_file *file = &r->files.file[i];
    struct ni_series_end end;
    if (!ni_is_series(file->path))
      continue;
    if (f->also)
      e = f->also->begin(f->also->arg, i);
    if (e == 0)
      e = ni_series_pairs(file->path, &(struct ni_series_pairs){f, begin_counter_set, add_counter_pair},
                          &end);
    if (e == 0)
      e = explain_too_many(f, ni_host_buckets_flush(&f->s->buckets.hosts));
    if (e == 0 && f->also)
      e = f->also->end(f->also->arg);
  }
  return e;
}

/* Of a host: what its NICs sent, where NCCL's proxies tell what they did. */
static int sum_sent_bytes(struct ni_run *r, struct ni_summary *s) {
  if (!(s->sent = calloc(s->n_hosts + 1, sizeof *s->sent)))
    return -ENOMEM;
  for (uint32_t h = 0; h < s->n_hosts; h++) {
    struct ni_sent x = {.host = h};
    uint64_t bytes[2] = {0};
    for (uint32_t i = 0; i < r->who.n_processes; i++)
      for (int k = 0; k < 2 && s->process[r->process_at[i]].host == h; k++)
        bytes[k] += r->process[i].sent_bytes[k];
    x.nccl_bytes = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    bool any = false;
    for (size_t i = 0; i < s->beside.n_entities; i++) {
      const struct ni_beside_entity *e = &s->beside.entity[i];
      const struct ni_beside_row *tx = ni_beside_unified(&s->beside, e, "tx_bytes");
      if (!tx || strcmp(e->host, s->host[h].name) != 0)
        continue;
      any = true;
      x.nic_bytes += tx->with;
      x.nic_least += tx->least;
      x.nic_most += tx->most;
    }
    if (any && x.nccl_bytes)
      s->sent[s->n_sent++] = x;
  }
  return 0;
}

int ni_counters_build(struct ni_run *r, struct ni_summary *s, const struct ni_counters_also *also) {
  if (!r->has_counters)
    return 0;
  struct ni_beside_process *p = calloc(s->n_processes + 1, sizeof *p);
  if (!p)
    return -ENOMEM;
  for (uint32_t i = 0; i < r->who.n_processes; i++) {
    const struct ni_sum_process *x = &r->process[i];
    p[r->process_at[i]] =
        (struct ni_beside_process){.host = ni_name_text(&r->names, x->host),
                                   .gpu = x->gpu,
                                   .cover = &x->cover,
                                   .gpu_pci = x->gpu_pci ? ni_name_text(&r->names, x->gpu_pci) : NULL};
  }
  ni_beside_begin(&s->beside, p, s->n_processes, s->first_us * 1000, s->last_us * 1000, s->n_bins);
  int e = read_counter_files(r, &(struct feed){r, s, also});
  if (e == 0)
    e = ni_beside_end(&s->beside);
  if (e == 0)
    e = sum_sent_bytes(r, s);
  s->beside.process = NULL;
  free(p);
  return e;
}
