/*
 * Handles and contexts: opaque 64-bit tags, never pointers.
 *
 * NCCL gives back what it was given, but with PXN a proxy hands us handles and contexts that another process
 * made, and buggy paths hand us handles of operations long finished (callbacks 4.3, 4.5). A tag can be
 * checked without touching memory it does not own: the payload is mixed with a random number of the process,
 * so that a foreign tag decodes to noise; index, page type and generation are then compared with what is
 * really there.
 *
 * Bits 63 to 60 are the kind. The others, from 59 down; "page" is that of the communicator, "slot" a number
 * of 128-byte units of the arena:
 *
 *   operation                    59..54 zero | 53..28 slot | 27..0 generation
 *   event, proxy operation       59..54 zero | 53..28 slot | 27..0 generation
 *   KernelCh                     59..54 channel | 53 direction | 52..27 page | 26..0 number
 *   KernelCh beside another      59..54 zero | 53..28 slot | 27..0 generation
 *   phase of a KernelCh          59..54 channel | 53 zero | 52..27 page | 26..25 phase | 24..0 number
 *   phase of one beside another  59..54 phase | 53..28 slot | 27..0 generation
 *   group, user group            59..34 page | 33..32 zero | 31..0 ordinal
 *   API call that is noted       59..34 page | 33..32 zero | 31..0 call_sn, low half
 *   API call                     59..34 slot or 0 | 33 captured | 32 Send or Recv | 31..0 call_sn, low half
 *   proxy step                   59..54 step modulo 64 | 53..28 slot of the operation | 27..0 its generation
 *   context                      59..54 zero | 53..28 page | 27..0 generation
 *
 * The kind is not mixed and never 0, so no tag is NULL. All functions are pure: any thread, wait-free.
 */
#ifndef NI_HANDLE_H
#define NI_HANDLE_H

#include <stdint.h>

enum ni_handle_kind {
  NI_H_NONE = 0,
  NI_H_GROUP = 1,
  NI_H_OP = 2,       /* Coll or P2p: the slot knows which */
  NI_H_CHANNEL = 3,  /* a KernelCh of an operation */
  NI_H_FILTERED = 4, /* an operation the settings leave out: its children are nobody's anomaly */
  /* an operation that found no slot: counted at its start, its children are not counted again */
  NI_H_DROPPED = 5,
  NI_H_CONTEXT = 6,
  /* CollApi, P2pApi: names its number also when its slot lives another life (graph replays) */
  NI_H_CALL = 7,
  NI_H_EVENT = 8, /* any other event with a slot */
  NI_H_PROXY = 9,
  NI_H_STEP = 10,
  NI_H_MORE = 11,       /* a KernelCh that is open beside another of its chain */
  NI_H_NOTED = 12,      /* CollApi without a line of its own, in its communicator's cell (call_cell.h) */
  NI_H_USER_GROUP = 13, /* GroupApi without a line of its own (user_group.h) */
  NI_H_PHASE = 14,      /* KernelPhase of a KernelCh */
  NI_H_PHASE_MORE = 15, /* the same of one that is open beside another of its chain */
};

#define NI_H_GEN_BITS 28
#define NI_H_GEN_MASK ((UINT64_C(1) << NI_H_GEN_BITS) - 1)
#define NI_H_IDX_BITS 26
#define NI_H_IDX_MASK ((UINT64_C(1) << NI_H_IDX_BITS) - 1)
#define NI_H_PAYLOAD_MASK ((UINT64_C(1) << 60) - 1)

static inline enum ni_handle_kind ni_handle_kind(const void *h) {
  return (enum ni_handle_kind)((uintptr_t)h >> 60);
}

/* payload, nonce: below 2^60. */
static inline void *ni_handle_pack(enum ni_handle_kind kind, uint64_t payload, uint64_t nonce) {
  return (void *)(uintptr_t)(((uint64_t)kind << 60 | payload) ^ nonce);
}

static inline uint64_t ni_handle_payload(const void *h, uint64_t nonce) {
  return ((uint64_t)(uintptr_t)h ^ nonce) & NI_H_PAYLOAD_MASK;
}

/* index: slot or page; gen is cut to its low 28 bits. */
static inline uint64_t ni_payload_slot(uint32_t index, uint32_t gen) {
  return ((uint64_t)index << NI_H_GEN_BITS) | (gen & NI_H_GEN_MASK);
}
static inline uint32_t ni_payload_index(uint64_t p) {
  return (uint32_t)((p >> NI_H_GEN_BITS) & NI_H_IDX_MASK);
}
static inline uint32_t ni_payload_gen(uint64_t p) { return (uint32_t)(p & NI_H_GEN_MASK); }

/* A KernelCh is found through its communicator's channel cell, not through its operation: number tells the
 * KernelChs of one cell apart (27 bits). */
#define NI_H_NUMBER_MASK ((UINT32_C(1) << 27) - 1)
static inline uint64_t ni_payload_cell(uint32_t channel, uint32_t dir, uint32_t comm_page, uint32_t number) {
  return (uint64_t)channel << 54 | (uint64_t)dir << 53 | (uint64_t)comm_page << 27 |
      (number & NI_H_NUMBER_MASK);
}
/* 2 x channel + direction */
static inline uint32_t ni_payload_cell_index(uint64_t p) { return (uint32_t)(p >> 53); }
static inline uint32_t ni_payload_cell_page(uint64_t p) { return (uint32_t)((p >> 27) & NI_H_IDX_MASK); }
static inline uint32_t ni_payload_cell_number(uint64_t p) { return (uint32_t)p & NI_H_NUMBER_MASK; }

/* A phase has its KernelCh's payload, with the phase in the place of the highest bits of the number. */
#define NI_H_PHASE_SHIFT 25
#define NI_H_PHASE_NUMBER_MASK ((UINT32_C(1) << NI_H_PHASE_SHIFT) - 1)
static inline uint64_t ni_payload_phase(uint64_t channel, uint32_t phase) {
  return (channel & ~(UINT64_C(3) << NI_H_PHASE_SHIFT)) | (uint64_t)(phase & 3) << NI_H_PHASE_SHIFT;
}
static inline uint32_t ni_payload_phase_of(uint64_t p) { return (uint32_t)(p >> NI_H_PHASE_SHIFT) & 3; }
static inline uint64_t ni_payload_phase_more(uint64_t more, uint32_t phase) {
  return more | (uint64_t)(phase & 3) << 54;
}
static inline uint32_t ni_payload_phase_more_of(uint64_t p) { return (uint32_t)(p >> 54) & 3; }

static inline uint64_t ni_payload_call(uint32_t slot, uint32_t captured, uint32_t p2p, uint32_t number) {
  return (uint64_t)slot << 34 | (uint64_t)captured << 33 | (uint64_t)p2p << 32 | number;
}
static inline uint32_t ni_payload_call_slot(uint64_t p) { return (uint32_t)(p >> 34) & NI_H_IDX_MASK; }
static inline uint32_t ni_payload_call_captured(uint64_t p) { return (uint32_t)(p >> 33) & 1; }
static inline uint32_t ni_payload_call_p2p(uint64_t p) { return (uint32_t)(p >> 32) & 1; }

static inline uint64_t ni_payload_step(uint32_t step, uint32_t slot, uint32_t gen) {
  return (uint64_t)(step & 63) << 54 | ni_payload_slot(slot, gen);
}
static inline uint32_t ni_payload_step_low(uint64_t p) { return (uint32_t)(p >> 54) & 63; }

static inline uint64_t ni_payload_group(uint32_t comm_page, uint32_t ordinal) {
  return ((uint64_t)comm_page << 34) | ordinal;
}
static inline uint32_t ni_payload_group_page(uint64_t p) { return (uint32_t)((p >> 34) & NI_H_IDX_MASK); }
static inline uint32_t ni_payload_group_ordinal(uint64_t p) { return (uint32_t)p; }

#endif
