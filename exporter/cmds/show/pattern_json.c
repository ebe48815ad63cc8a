/* Programs of steps for programs. */
#include <errno.h>
#include <math.h>

#include "exporter/base/text/json_write.h"
#include "exporter/model/pattern/differ.h"
#include "exporter/model/who/who.h"
#include "pattern.h"

static void write_lane(struct ni_json *j, const struct ni_pattern_lane *l) {
  char comm[96];
  ni_json_text(j, "communicator", ni_pattern_lane_text(l, comm));
  ni_json_i64(j, "n_ranks", l->n_ranks);
  if (l->kind == NI_BLAME_COLL)
    return;
  if (l->peer == NI_PATTERN_ALL_PEERS)
    ni_json_u64(j, "peers", l->peers);
  else
    ni_json_i64(j, "peer", l->peer);
}

static void write_operation(struct ni_json *j, const char *key, const struct ni_pattern_lane *l,
                            const struct ni_pattern_place *p) {
  if (!p)
    return;
  ni_json_object(j, key);
  ni_json_text(j, "function", p->func);
  ni_json_u64(j, "bytes", p->bytes);
  if (p->bytes_most != p->bytes)
    ni_json_u64(j, "bytes_most", p->bytes_most);
  ni_json_text(j, "datatype", p->datatype);
  write_lane(j, l);
  ni_json_end_object(j);
}

static void write_place(struct ni_json *j, const struct ni_show_pattern *x, const struct ni_program *p,
                        const struct ni_pattern_place *at, bool ordered) {
  const char *algo, *proto;
  const double ranks = (double)at->ranks;
  const bool told = ni_show_form(x, at, &algo, &proto), timed = at->ranks && !at->by_call;
  ni_json_object(j, NULL);
  ni_json_text(j, "function", at->func);
  ni_json_u64(j, "bytes", at->bytes);
  if (at->bytes_most != at->bytes)
    ni_json_u64(j, "bytes_most", at->bytes_most);
  ni_json_text(j, "datatype", at->datatype);
  write_lane(j, &p->lane[at->lane]);
  ni_json_bool(j, "in_order", ordered);
  ni_json_f64(j, "median_ns", timed ? (double)at->median_ns / ranks : NAN);
  ni_json_rounded(j, "beside", timed ? (double)at->beside_permille / ranks / 1000 : NAN, 4);
  ni_json_text(j, "algo", told && *algo ? algo : NULL);
  ni_json_text(j, "proto", told && *proto ? proto : NULL);
  ni_json_end_object(j);
}

static void write_folded(struct ni_json *j, const struct ni_listing *list) {
  NI_JSON_ARRAY (j, "folded")
    for (size_t i = 0; i < list->n; i++) {
      const struct ni_listing_row *row = &list->row[i];
      if (row->kind == NI_LISTING_CLOSE || row->kind == NI_LISTING_BESIDE)
        continue;
      if (row->times < 2)
        continue;
      ni_json_object(j, NULL);
      ni_json_u64(j, "from", row->from);
      ni_json_u64(j, "operations", (row->to - row->from + 1) / row->times);
      ni_json_u64(j, "times", row->times);
      ni_json_end_object(j);
    }
}

static void write_irregular(struct ni_json *j, const struct ni_program *p) {
  NI_JSON_ARRAY (j, "irregular")
    for (uint32_t i = 0; i < p->n_lanes; i++) {
      const struct ni_pattern_lane *l = &p->lane[i];
      static const char *const kinds[] = {"collectives", "Send", "Recv"};
      if (!l->irregular)
        continue;
      ni_json_object(j, NULL);
      ni_json_text(j, "what", kinds[l->kind]);
      write_lane(j, l);
      ni_json_u64(j, "operations_least", l->least);
      ni_json_u64(j, "operations_most", l->most);
      ni_json_end_object(j);
    }
}

static void write_difference(struct ni_json *j, const struct ni_pattern_difference *d, uint32_t from) {
  ni_json_object(j, "differs_first");
  ni_json_u64(j, "from_program", from);
  if (d->position != UINT32_MAX)
    ni_json_u64(j, "operation", d->position);
  write_operation(j, "that_has", d->lane, d->here);
  write_operation(j, "this_has", d->lane, d->there);
  ni_json_end_object(j);
}

/* Writes where it differs from the program that it is nearest to. first: the first program of the run. */
static int write_nearest(struct ni_json *j, const struct ni_show_pattern *x, uint32_t k, uint32_t first) {
  const uint32_t nearest = ni_pattern_nearest(x->p, first, k);
  struct ni_pattern_difference d;
  struct ni_listing list;
  int e = ni_listing_make(&x->p->program[nearest], &list);
  if (e == 0)
    e = ni_pattern_differ(&x->p->program[nearest], &list, &x->p->program[k], &d);
  ni_listing_free(&list);
  if (e == 0)
    write_difference(j, &d, nearest - first);
  return e;
}

static int write_program(struct ni_json *j, const struct ni_show_pattern *x, uint32_t k, uint32_t first) {
  const struct ni_program *p = &x->p->program[k];
  struct ni_listing list;
  int e = ni_listing_make(p, &list);
  ni_json_object(j, NULL);
  NI_JSON_ARRAY (j, "ranks")
    for (uint32_t i = 0; i < x->p->n_ranks; i++)
      if (x->p->rank[i].program == k)
        ni_json_i64(j, NULL, x->s->process[x->p->rank[i].process].rank);
  ni_json_u64(j, "steps_least", p->steps_least);
  ni_json_u64(j, "steps_most", p->steps_most);
  ni_json_rounded(j, "exactly_so", p->steps ? (double)p->exact_steps / (double)p->steps : NAN, 6);
  if (e == 0 && k > first)
    e = write_nearest(j, x, k, first);
  NI_JSON_ARRAY (j, "operations")
    for (uint32_t i = 0; e == 0 && i < p->n_places; i++)
      write_place(j, x, p, &p->place[list.order[i]], i < list.n_ordered);
  write_folded(j, &list);
  write_irregular(j, p);
  ni_json_end_object(j);
  ni_listing_free(&list);
  return e;
}

static void write_without(struct ni_json *j, const struct ni_show_pattern *x, uint32_t run) {
  NI_JSON_ARRAY (j, "without_step")
    for (uint32_t i = 0; i < x->p->n_ranks; i++) {
      const struct ni_pattern_rank *r = &x->p->rank[i];
      if (r->run != run || r->program != NI_BLAME_NONE)
        continue;
      ni_json_object(j, NULL);
      ni_json_i64(j, "rank", x->s->process[r->process].rank);
      ni_json_text(j, "why", r->why_not);
      ni_json_end_object(j);
    }
}

static void write_counts(struct ni_json *j, const struct ni_show_pattern *x, uint32_t run) {
  NI_JSON_ARRAY (j, "histogram")
    for (uint32_t i = 0; i < x->p->n_counts; i++) {
      const struct ni_pattern_count *c = &x->p->count[i];
      if (c->run != run)
        continue;
      ni_json_object(j, NULL);
      ni_json_text(j, "function", c->func);
      ni_json_u64(j, "bytes", c->bytes);
      if (c->bytes_most != c->bytes)
        ni_json_u64(j, "bytes_most", c->bytes_most);
      if (c->sizes > 1)
        ni_json_u64(j, "sizes", c->sizes);
      ni_json_text(j, "datatype", c->datatype);
      ni_json_text(j, "communicator", c->label);
      ni_json_i64(j, "n_ranks", c->n_ranks);
      ni_json_u64(j, "records", c->records);
      ni_json_end_object(j);
    }
}

static int write_run(struct ni_json *j, const struct ni_show_pattern *x, uint32_t run) {
  uint32_t first = 0;
  int e = 0;
  ni_json_object(j, NULL);
  if (run)
    ni_json_u64(j, "run", run);
  ni_json_array(j, "programs");
  while (first < x->p->n_programs && x->p->program[first].run != run)
    first++;
  for (uint32_t k = first; e == 0 && k < x->p->n_programs && x->p->program[k].run == run; k++)
    e = write_program(j, x, k, first);
  ni_json_end_array(j);
  write_without(j, x, run);
  write_counts(j, x, run);
  ni_json_end_object(j);
  return e;
}

int ni_show_pattern_json(const struct ni_show_pattern *x) {
  const uint32_t last = ni_show_runs(x);
  struct ni_json j;
  int e = 0;
  ni_json_open(&j, stdout, "nccl-inspector-show-pattern-1");
  ni_json_bool(&j, "complete", x->s->complete);
  ni_json_u64(&j, "sample", ni_show_sample(x));
  ni_json_u64(&j, "left_out_by_settings", x->s->input.left_out_by_settings);
  ni_json_u64(&j, "left_out_by_options", x->r->tally.filtered);
  ni_json_array(&j, "runs");
  for (uint32_t run = last ? 1 : 0; e == 0 && run <= last; run++)
    e = write_run(&j, x, run);
  ni_json_end_array(&j);
  ni_json_close(&j);
  return e;
}
