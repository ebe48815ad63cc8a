#include "event_masks.h"

#include <pthread.h>

#include "plugin/slots/state.h"

int ni_masks_value(uint32_t kinds, int interface, bool p2p) {
  /* Bits known to v1, v2: ProxyCtrl and below; v3, v4: NetPlugin; v5: KernelLaunch; v6: CeBatch (profiler_abi.h). */
  static const uint32_t known[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff};
  if (interface < 1 || interface > 6) return 0;
  if (!p2p) kinds &= ~(NI_KINDS(NI_EVENT_P2P) | NI_KINDS(NI_EVENT_P2P_API));
  return (int)(kinds & known[interface]);
}

static int mask_now(void) {
  /* P2Ps with the own rank must be seen where they put the counters apart (format/apart.h). */
  int mask = ni_masks_value(ni_load_rlx(&ni_g.kinds), ni_g.interface, ni_g.config.enable_p2p || ni_g.self_is_silent);
  /* Before the mask is written: an operation enqueued under it must not be taken for one that has no channels. */
  if (mask & (int)NI_KINDS(NI_EVENT_KERNEL_CH)) ni_store_rel(&ni_g.kernel_ch_ever, 1);
  /* Nor one whose task is made, or whose graph is captured, from here on for one that will have them: it may start when
   * the mask has the bit again. Relaxed, as in mask_doubt. */
  else ni_store_rlx(&ni_g.mask_was_off, 1);
  return mask;
}

/* An atomic store: NCCL's threads read the int at any time (callbacks 5). */
static void store_all(void) {
  int value = mask_now();
  for (uint32_t i = 0; i < NI_MAX_MASKS; i++)
    if (ni_g.mask_users[i] && ni_g.mask[i]) __atomic_store_n(ni_g.mask[i], value, __ATOMIC_RELAXED);
}

void ni_masks_take(uint32_t kinds) {
  if (!ni_g.config.control_lines) kinds &= NI_KINDS_STANDARD; /* operation lines only: what else there is has others */
  ni_store_rlx(&ni_g.kinds, kinds & NI_KINDS_ALL);
}

void ni_masks_set(uint32_t kinds) {
  pthread_mutex_lock(&ni_g.lock); /* a libnccl whose communicators are all finalized may be unloaded: not written then */
  ni_masks_take(kinds);
  store_all();
  pthread_mutex_unlock(&ni_g.lock);
}

uint32_t ni_masks_kinds(void) { return ni_load_rlx(&ni_g.kinds); }

/* An entry never changes while a communicator of its NCCL lives; a fifth copy of libnccl shares the last place, which
 * holds NULL: its mask is written at init only, and KernelCh counts as on. */
uint8_t ni_masks_use(int *mask) {
  uint8_t i = 0;
  while (i < NI_MAX_MASKS - 1 && ni_g.mask[i] != mask && ni_g.mask[i]) i++;
  if (i < NI_MAX_MASKS - 1 && !ni_g.mask[i]) ni_g.mask[i] = mask; /* callbacks read it: written once */
  if (mask) __atomic_store_n(mask, mask_now(), __ATOMIC_RELAXED);
  ni_g.mask_users[i]++;
  return i;
}

void ni_masks_leave(uint8_t id) {
  if (ni_g.mask_users[id]) ni_g.mask_users[id]--;
}
