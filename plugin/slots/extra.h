/*
 * State of what callbacks do beside recording, while somebody asks for it: bits of ni_g.armed say what. Then
 * they take the long way. Relaxed: who sees a bit late is not traced. chan_trace.h says how, and who reads
 * and writes.
 */
#ifndef NI_EXTRA_H
#define NI_EXTRA_H

#include "arena.h"

enum { NI_ARMED = 1, NI_EXTRA_TRACES = 4 };

struct ni_traces {
  _Atomic(_Atomic uint32_t *) of; /* slot -> page of `arena`, 0: none; NULL until verbose is first on */
  struct ni_arena arena;
  _Atomic uint64_t lost; /* operations that found no page */
};

#endif
