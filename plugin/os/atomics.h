/*
 * C11 atomics with the memory order in the name, so that a reader sees it where it matters.
 *
 * Every use outside a plain counter says which other place it pairs with. NI_TESTPOINT marks the point
 * between two visible effects; the stress build (-DNI_STRESS) yields there at random so that short races
 * become long ones.
 */
#ifndef NI_ATOMICS_H
#define NI_ATOMICS_H

#include <stdatomic.h>
#include <stdint.h>

#define ni_load_rlx(p) atomic_load_explicit((p), memory_order_relaxed)
#define ni_load_acq(p) atomic_load_explicit((p), memory_order_acquire)
#define ni_load_sc(p) atomic_load_explicit((p), memory_order_seq_cst)
#define ni_store_rlx(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define ni_store_rel(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define ni_store_sc(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)
#define ni_add_rlx(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define ni_or_rel(p, v) atomic_fetch_or_explicit((p), (v), memory_order_release)
#define ni_or_sc(p, v) atomic_fetch_or_explicit((p), (v), memory_order_seq_cst)
#define ni_swap_acq(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define ni_swap_acqrel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
/* Weak compare-exchange: success order in the name, failure relaxed; *expected is renewed on failure. */
#define ni_cas_rlx(p, e, d) \
  atomic_compare_exchange_weak_explicit((p), (e), (d), memory_order_relaxed, memory_order_relaxed)
#define ni_cas_acq(p, e, d) \
  atomic_compare_exchange_weak_explicit((p), (e), (d), memory_order_acquire, memory_order_acquire)
#define ni_cas_rel(p, e, d) \
  atomic_compare_exchange_weak_explicit((p), (e), (d), memory_order_release, memory_order_relaxed)
#define ni_cas_acqrel(p, e, d) \
  atomic_compare_exchange_weak_explicit((p), (e), (d), memory_order_acq_rel, memory_order_acquire)

/* Plain fields that a thread may look at while their slot begins another life: it reads, fences (acquire),
 * and reads the slot's state again. Release stores, so that whoever has read one of the new values sees the
 * new state, too. */
#define ni_peek(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define ni_poke(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define NI_CACHE_LINE 64

#define ni_likely(x) __builtin_expect(!!(x), 1)
#define ni_unlikely(x) __builtin_expect(!!(x), 0)

#ifdef NI_STRESS
void ni_testpoint(void); /* testpoint.c */
extern void (*ni_testpoint_hook)(void);
#define NI_TESTPOINT() ni_testpoint()
#else
#define NI_TESTPOINT() ((void)0)
#endif

#endif
