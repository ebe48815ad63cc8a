#include "absent.h"

static size_t count_processes(struct ni_absent *a, struct ni_ledger_member *const *member, size_t n) {
  size_t processes = 0;
  a->stamp++;
  for (size_t i = 0; i < n; i++) {
    if (!member[i]->who->hash || member[i]->process->stamp == a->stamp)
      continue;
    member[i]->process->stamp = a->stamp;
    processes++;
  }
  return processes;
}

void ni_absent_begin(struct ni_absent *a, struct ni_ledger_member *const *member, size_t n) {
  *a = (struct ni_absent){.stamp = a->stamp};
  a->processes = count_processes(a, member, n);
}

void ni_absent_add_comm(struct ni_absent *a, struct ni_ledger_member *const *member, size_t n,
                        uint64_t missing) {
  int32_t n_ranks = member[0]->who->n_ranks;
  size_t i = 0;
  bool covers = count_processes(a, member, n) == a->processes;
  a->covered |= covers;
  if (covers && missing > a->of_all)
    a->of_all = missing;
  while (i < a->n_sizes && a->size[i].n_ranks != n_ranks)
    i++;
  if (i == NI_ABSENT_SIZES)
    i--;
  if (i == a->n_sizes)
    a->size[a->n_sizes++].n_ranks = n_ranks;
  a->size[i].missing += missing;
}

uint64_t ni_absent_count(const struct ni_absent *a) {
  uint64_t most = 0;
  if (a->covered)
    return a->of_all;
  for (size_t i = 0; i < a->n_sizes; i++)
    if (a->size[i].missing > most)
      most = a->size[i].missing;
  return most;
}
