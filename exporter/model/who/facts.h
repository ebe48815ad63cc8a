/*
 * What is known of the processes of logs while runs are told apart: numbers by keys. A key is what is asked
 * for (NI_FACT_...) and three numbers, whose meaning that says; what is not known has no number.
 *
 * One thread. Ownership: ni_facts_free(). Failure: -ENOMEM.
 */
#ifndef NI_WHO_FACTS_H
#define NI_WHO_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/index.h"

enum ni_fact_kind {
  NI_FACT_PROCESS = 1,
  NI_FACT_FILES,
  NI_FACT_HOST_NAME,
  NI_FACT_IDENTITY,
  NI_FACT_SPACE,
  NI_FACT_SLOT,
  NI_FACT_CLAIM,
  NI_FACT_HELD,
  NI_FACT_HAS,
  NI_FACT_ON_HOST,
  NI_FACT_GPU
};

struct ni_fact {
  uint64_t a, b;
  uint32_t c, what, number;
};

struct ni_facts {
  struct ni_fact *item;
  size_t n, cap;
  struct ni_index at_hash;
};

/* The number of a thing. If it is new: `number`; with put false UINT32_MAX, and it stays unknown. */
int64_t ni_fact_find(struct ni_facts *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c, bool put,
                     size_t number);
/* Sets a number that changes. 0 or -ENOMEM. */
int ni_fact_set(struct ni_facts *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c, size_t number);
bool ni_fact_is_known(struct ni_facts *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c);
void ni_facts_free(struct ni_facts *x);

#endif
