#include "untold_sample.h"

#include <math.h>
#include <stdlib.h>

#define UNTOLD_MIN 64u   /* numbers of a rank: of fewer nobody can say that they are chosen by chance */
#define UNTOLD_SIGMA 4.0 /* there are as many runs of them as by chance, to within so many deviations */

struct numbers { /* of a run of the folder */
  double there, all;
  bool is_sample;
};

static double get_range(const struct ni_seq_set *x) { return (double)(x->highest - x->lowest + 1); }

/* Each number is there by chance, and not by its place. */
static bool is_chosen_by_chance(const struct ni_seq_set *x) {
  const double n = (double)x->distinct, part = n / get_range(x);
  const double runs = n * (1 - part), deviation = sqrt(n * part * (1 - part));
  return !x->floor && fabs((double)x->n - runs) <= UNTOLD_SIGMA * deviation + 1;
}

static void add_member(const struct ni_ledger *l, size_t member, uint64_t *of_comm, struct numbers *of_run) {
  const struct ni_ledger_kind *k = &l->member[member]->kind[NI_KIND_COLL];
  const struct ni_seq_set *x = &k->rec_sn;
  /* until the ledger is judged they are in the order of their numbers */
  const struct ni_who_member *who = l->member[member]->who;
  const uint32_t comm = (who ? who : &l->who.member[member])->comm;
  struct numbers *run = &of_run[l->who.comm[comm].run];
  if (k->stated || !l->member[member]->ours)
    run->is_sample = false;
  if (!x->distinct)
    return;
  if (of_comm[comm] && of_comm[comm] != x->distinct)
    run->is_sample = false;
  of_comm[comm] = x->distinct;
  if (x->distinct < UNTOLD_MIN)
    return;
  run->is_sample &= is_chosen_by_chance(x);
  run->there += (double)x->distinct;
  run->all += get_range(x);
}

double ni_find_untold_sampling(const struct ni_ledger *l) {
  uint32_t runs = 0;
  double most = 1;
  for (size_t i = 0; i < l->who.n_comms; i++)
    runs = l->who.comm[i].run > runs ? l->who.comm[i].run : runs;
  uint64_t *of_comm = calloc(l->who.n_comms + 1, sizeof *of_comm);
  struct numbers *of_run = calloc((size_t)runs + 1, sizeof *of_run);
  const bool has_room = of_comm && of_run;
  for (uint32_t i = 0; has_room && i <= runs; i++)
    of_run[i].is_sample = true;
  for (size_t i = 0; has_room && i < l->n_members; i++)
    add_member(l, i, of_comm, of_run);
  for (uint32_t i = 0; has_room && i <= runs; i++)
    if (of_run[i].is_sample && of_run[i].there > 0)
      most = fmax(most, of_run[i].all / of_run[i].there);
  free(of_comm);
  free(of_run);
  return most;
}
