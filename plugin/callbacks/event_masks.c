#include "event_masks.h"

#include <pthread.h>

#include "plugin/slots/state.h"

#define KERNEL_CH ((int)NI_KINDS(NI_EVENT_KERNEL_CH))
#define KERNEL_PHASE ((int)NI_KINDS(NI_EVENT_KERNEL_PHASE))

int ni_masks_value(uint32_t kinds, int interface, bool p2p) {
  /* Bits known to v1, v2: ProxyCtrl and below; v3, v4: NetPlugin; v5: KernelLaunch; v6: CeBatch; v7:
   * KernelPhase. Never more: another library of the same interface has other events there
   * (docs/nccl-callbacks.md 5). */
  static const uint32_t known[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};
  if (interface < 1 || interface > 7)
    return 0;
  if (!p2p)
    kinds &= ~(NI_KINDS(NI_EVENT_P2P) | NI_KINDS(NI_EVENT_P2P_API));
  int mask = (int)(kinds & known[interface]);
  return mask & KERNEL_CH ? mask : mask & ~KERNEL_PHASE; /* phases hang on KernelCh */
}

static int mask_of(uint32_t kinds) {
  /* P2Ps with the own rank must be seen where they put the counters apart (format/apart.h). */
  return ni_masks_value(kinds, ni_g.interface, ni_g.config.enable_p2p || ni_g.self_is_silent);
}

/* An atomic store: NCCL's threads read the int at any time (callbacks 5). */
static void store(uint32_t id, int value) {
  /*
   * Before the mask is written: an operation enqueued under it must not be taken for one that has no
   * channels.
   */
  if (value & KERNEL_CH)
    ni_store_rel(&ni_g.kernel_ch_ever, 1);
  /* Nor one whose task is made, or whose graph is captured, from here on for one that will have them: it may
   * start when the mask has the bit again. */
  else
    ni_add_rlx(&ni_g.mask_off[id], 1);
  ni_store_rlx(&ni_g.mask_seen[id], value);
  if (ni_g.mask[id])
    __atomic_store_n(ni_g.mask[id], value, __ATOMIC_RELAXED);
}

static void store_all(int value) {
  for (uint32_t i = 0; i < NI_MAX_MASKS; i++)
    if (ni_g.mask_users[i] && ni_g.mask[i])
      store(i, value);
}

void ni_masks_take(uint32_t kinds) {
  /* operation lines only: what else there is has others */
  if (!ni_g.config.control_lines)
    kinds &= NI_KINDS_STANDARD;
  ni_store_rlx(&ni_g.kinds, kinds & NI_KINDS_ALL);
}

bool ni_masks_set(uint32_t kinds) {
  /* a libnccl whose communicators are all finalized may be unloaded: not written then */
  pthread_mutex_lock(&ni_g.lock);
  bool lives = ni_load_rlx(&ni_g.live) != 0;
  bool switches = ((kinds ^ ni_load_rlx(&ni_g.kinds)) & KERNEL_CH) != 0;
  bool taken = !(lives && switches && ni_g.mask_shifts_counts);
  if (taken) {
    ni_masks_take(kinds);
    store_all(mask_of(ni_load_rlx(&ni_g.kinds)));
  }
  pthread_mutex_unlock(&ni_g.lock);
  return taken;
}

uint32_t ni_masks_kinds(void) { return ni_load_rlx(&ni_g.kinds); }

/* What another may have written there. */
static void take_notice(uint32_t id, int found) {
  bool changed = found != ni_load_rlx(&ni_g.mask_seen[id]);
  ni_store_rlx(&ni_g.mask_seen[id], found);
  if (found & KERNEL_CH)
    ni_store_rel(&ni_g.kernel_ch_ever, 1);
  else if (changed)
    ni_add_rlx(&ni_g.mask_off[id], 1);
}

bool ni_masks_changed(int *found, int *asked) {
  bool changed = false;
  pthread_mutex_lock(&ni_g.lock);
  for (uint32_t i = 0; i < NI_MAX_MASKS && !changed; i++) {
    if (!ni_g.mask_users[i] || !ni_g.mask[i])
      continue;
    *found = __atomic_load_n(ni_g.mask[i], __ATOMIC_RELAXED);
    *asked = mask_of(ni_load_rlx(&ni_g.kinds));
    changed = *found != ni_load_rlx(&ni_g.mask_seen[i]);
    take_notice(i, *found);
  }
  pthread_mutex_unlock(&ni_g.lock);
  return changed;
}

/* An entry never changes while a communicator of its NCCL lives; a fifth copy of libnccl shares the last
 * place, which holds NULL: its mask is written at init only, and KernelCh counts as on. */
uint8_t ni_masks_use(int *mask) {
  uint8_t i = 0;
  while (i < NI_MAX_MASKS - 1 && ni_g.mask[i] != mask && ni_g.mask[i])
    i++;
  if (i < NI_MAX_MASKS - 1 && !ni_g.mask[i])
    ni_g.mask[i] = mask; /* callbacks read it: written once */
  int value = mask_of(ni_load_rlx(&ni_g.kinds));
  if (ni_g.mask_users[i] && ni_g.mask[i])
    take_notice(i, __atomic_load_n(ni_g.mask[i], __ATOMIC_RELAXED));
  store(i, value);
  if (mask && ni_g.mask[i] != mask)
    __atomic_store_n(mask, value, __ATOMIC_RELAXED); /* the fifth copy's */
  ni_g.mask_users[i]++;
  return i;
}

void ni_masks_leave(uint8_t id) {
  if (ni_g.mask_users[id])
    ni_g.mask_users[id]--;
}
